//! Atoms and data as text.

use crate::{AtomRef, ColumnType, Datum, Uuid};

/// Appends an atom. Strings are quoted only if necessary.
///
/// ```
/// use corvid_data::{AtomRef, Str, text};
///
/// let mut out = String::new();
/// text::write_atom(&mut out, AtomRef::String(&Str::new("br-int")));
/// out.push(' ');
/// text::write_atom(&mut out, AtomRef::String(&Str::new("true")));
/// assert_eq!(out, r#"br-int "true""#);
/// ```
pub fn write_atom(out: &mut String, atom: AtomRef<'_>) {
    match atom {
        AtomRef::String(text) if needs_quotes(text) => {
            json(out, |bytes| {
                corvid_json::write::string(bytes, text.as_bytes());
            });
        }
        other => write_atom_bare(out, other),
    }
}

/// Appends an atom. Strings are never quoted.
pub fn write_atom_bare(out: &mut String, atom: AtomRef<'_>) {
    match atom {
        AtomRef::Integer(value) => json(out, |bytes| corvid_json::write::integer(bytes, value)),
        AtomRef::Real(value) => json(out, |bytes| corvid_json::write::real(bytes, value.get())),
        AtomRef::Boolean(value) => out.push_str(if value { "true" } else { "false" }),
        AtomRef::String(text) => out.push_str(text),
        AtomRef::Uuid(uuid) => out.extend(uuid.to_text().map(char::from)),
    }
}

/// Appends a datum, in `[]` or `{}` if the type's max exceeds 1 or the datum is empty.
pub fn write_datum(out: &mut String, datum: &Datum, column_type: &ColumnType) {
    let is_bracketed = column_type.max > 1 || datum.is_empty();
    let (open, close) = if column_type.is_map() {
        ('{', '}')
    } else {
        ('[', ']')
    };
    if is_bracketed {
        out.push(open);
    }
    write_elements(out, datum, ", ", write_atom);
    if is_bracketed {
        out.push(close);
    }
}

/// Appends the `--bare` form: unquoted, separated by one space.
pub fn write_datum_bare(out: &mut String, datum: &Datum, column_type: &ColumnType) {
    let _ = column_type;
    write_elements(out, datum, " ", write_atom_bare);
}

fn write_elements(
    out: &mut String,
    datum: &Datum,
    separator: &str,
    write: fn(&mut String, AtomRef<'_>),
) {
    for (index, (key, value)) in datum.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        write(out, key);
        if let Some(value) = value {
            out.push('=');
            write(out, value);
        }
    }
}

/// A word that reads back as itself needs no quotes. `true`, `false` and UUIDs would read as
/// something else.
fn needs_quotes(text: &str) -> bool {
    let is_word = match text.as_bytes() {
        [first, rest @ ..] => {
            (first.is_ascii_alphabetic() || *first == b'_')
                && rest
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte))
        }
        [] => false,
    };
    !is_word || text == "true" || text == "false" || Uuid::parse(text.as_bytes()).is_some()
}

/// Appends the output of a JSON writer. The writers copy valid UTF-8 or emit ASCII.
fn json(out: &mut String, write: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = Vec::new();
    write(&mut bytes);
    out.push_str(&String::from_utf8_lossy(&bytes));
}
