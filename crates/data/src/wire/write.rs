//! Atoms and data as JSON.

use corvid_json::write;

use crate::{AtomRef, Datum};

/// Appends an atom (`5`, `"x"`, `["uuid","..."]`).
pub fn write_atom(out: &mut Vec<u8>, atom: AtomRef<'_>) {
    match atom {
        AtomRef::Integer(value) => write::integer(out, value),
        AtomRef::Real(value) => write::real(out, value.get()),
        AtomRef::Boolean(true) => out.extend_from_slice(b"true"),
        AtomRef::Boolean(false) => out.extend_from_slice(b"false"),
        AtomRef::String(text) => write::string(out, text.as_bytes()),
        AtomRef::Uuid(uuid) => {
            out.extend_from_slice(b"[\"uuid\",\"");
            out.extend_from_slice(&uuid.to_text());
            out.extend_from_slice(b"\"]");
        }
    }
}

/// Appends a datum: one-element sets bare, maps always as `["map",...]`; `is_map` tells what an empty one is.
///
/// ```
/// use corvid_data::{Atom, Datum, wire};
///
/// let mut out = Vec::new();
/// wire::write_datum(&mut out, &Datum::one(Atom::Integer(5)), false);
/// wire::write_datum(&mut out, &Datum::empty(), false);
/// wire::write_datum(&mut out, &Datum::pair(Atom::Integer(1), Atom::Integer(2)), true);
/// assert_eq!(out, br#"5["set",[]]["map",[[1,2]]]"#);
/// ```
pub fn write_datum(out: &mut Vec<u8>, datum: &Datum, is_map: bool) {
    if is_map {
        out.extend_from_slice(b"[\"map\",[");
        for (place, (key, value)) in datum.iter().enumerate() {
            out.extend_from_slice(if place > 0 { b",[" } else { b"[" });
            write_atom(out, key);
            if let Some(value) = value {
                out.push(b',');
                write_atom(out, value);
            }
            out.push(b']');
        }
        out.extend_from_slice(b"]]");
        return;
    }
    if datum.len() == 1 {
        datum.keys().for_each(|key| write_atom(out, key));
        return;
    }
    out.extend_from_slice(b"[\"set\",[");
    for (place, key) in datum.keys().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_atom(out, key);
    }
    out.extend_from_slice(b"]]");
}
