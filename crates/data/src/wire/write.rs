//! Atoms and data as JSON.

use corvid_json::write;

use crate::datum::Chunk;
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

/// Appends a datum: one-element sets bare, maps always as `["map",...]`. `is_map` decides how an
/// empty datum is written.
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
        datum.for_each_chunk(|before, chunk| write_pairs(out, before, chunk));
        out.extend_from_slice(b"]]");
    } else if datum.len() == 1 {
        datum.for_each_chunk(|_, chunk| write_atom(out, chunk.keys.get(0)));
    } else {
        out.extend_from_slice(b"[\"set\",[");
        datum.for_each_chunk(|before, chunk| write_elements(out, before, chunk));
        out.extend_from_slice(b"]]");
    }
}

/// Appends a run of a map, after `before` pairs were written.
fn write_pairs(out: &mut Vec<u8>, before: usize, chunk: Chunk<'_>) {
    for at in 0..chunk.len() {
        let (key, value) = chunk.get(at);
        out.extend_from_slice(if before + at > 0 { b",[" } else { b"[" });
        write_atom(out, key);
        if let Some(value) = value {
            out.push(b',');
            write_atom(out, value);
        }
        out.push(b']');
    }
}

/// Appends a run of a set, after `before` elements were written.
fn write_elements(out: &mut Vec<u8>, before: usize, chunk: Chunk<'_>) {
    for at in 0..chunk.len() {
        if before + at > 0 {
            out.push(b',');
        }
        write_atom(out, chunk.keys.get(at));
    }
}
