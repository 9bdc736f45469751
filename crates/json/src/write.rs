//! Writing compact JSON, byte for byte as protocol.md 1.4 says.

use crate::Value;

/// Appends a string literal, escaping `"`, `\` and bytes below 0x20 only.
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    let _ = (out, text);
    todo!()
}

/// Appends an integer.
pub fn integer(out: &mut Vec<u8>, value: i64) {
    let _ = (out, value);
    todo!()
}

/// Appends a real, `%.15g`.
pub fn real(out: &mut Vec<u8>, value: f64) {
    crate::number::write_real(out, value);
}

/// Appends a tree, compact, members sorted.
pub fn value(out: &mut Vec<u8>, value: &Value) {
    let _ = (out, value);
    todo!()
}
