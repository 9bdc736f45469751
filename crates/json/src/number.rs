//! The number rule: a number is an integer when its exact value is one that fits 64 bits, however it is spelled.

/// A JSON number, classified by value (RFC 7047 leaves this open; observed behaviour, protocol.md 1.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Exactly an `i64`.
    Integer(i64),
    /// Anything else; always finite, never negative zero.
    Real(f64),
}

/// Classifies the text of a JSON number. `None` when it is malformed, overflows, or its exponent exceeds 32 bits.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Number> {
    let _ = text;
    todo!()
}

/// Appends `value` as C's `%.15g` prints it, with negative zero as `0`.
pub fn write_real(out: &mut Vec<u8>, value: f64) {
    let _ = (out, value);
    todo!()
}
