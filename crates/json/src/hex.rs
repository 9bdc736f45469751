//! Hexadecimal digits to bytes, for UUIDs and hashes: every record has two of them.
//!
//! Invariant: digits of either case are accepted, and nothing else. Digits are decoded in a loop
//! without a branch or a table, which the compiler turns into vector instructions, and then packed
//! eight at a time.

/// The value of a byte that is not a digit. No digit's value has this bit, so combining values by
/// `|` preserves it.
const NO_DIGIT: u8 = 0x10;

/// The bytes that digits spell, eight digits to four bytes; `None` if any of them is not a digit.
///
/// ```
/// use corvid_json::hex;
/// assert_eq!(hex::bytes(&[*b"019aBcf0"]), Some([[0x01, 0x9a, 0xbc, 0xf0]]));
/// assert_eq!(hex::bytes(&[*b"019abcg0"]), None);
/// ```
#[must_use]
#[inline]
pub fn bytes<const N: usize>(digits: &[[u8; 8]; N]) -> Option<[[u8; 4]; N]> {
    let mut values = *digits;
    let mut seen = 0;
    for digit in values.as_flattened_mut() {
        *digit = value(*digit);
        seen |= *digit;
    }
    if seen >= NO_DIGIT {
        return None;
    }
    let mut bytes = [[0; 4]; N];
    for (four, eight) in bytes.iter_mut().zip(values) {
        *four = pack(eight);
    }
    Some(bytes)
}

#[inline]
fn value(digit: u8) -> u8 {
    let decimal = digit.wrapping_sub(b'0');
    let letter = (digit | 0x20).wrapping_sub(b'a');
    let of_letter = if letter < 6 { letter + 10 } else { NO_DIGIT };
    if decimal < 10 { decimal } else { of_letter }
}

/// Packs values below 16, two per byte.
#[inline]
fn pack(values: [u8; 8]) -> [u8; 4] {
    let mut packed = u64::from_be_bytes(values);
    packed = (packed | packed >> 4) & 0x00ff_00ff_00ff_00ff;
    packed = (packed | packed >> 8) & 0x0000_ffff_0000_ffff;
    packed |= packed >> 16;
    let [.., a, b, c, d] = packed.to_be_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_either_case_and_nothing_else() {
        for byte in 0..=u8::MAX {
            let expected = char::from(byte).to_digit(16);
            for at in (0..40).step_by(if cfg!(miri) { 13 } else { 1 }) {
                let mut digits = [*b"00000000"; 5];
                digits.as_flattened_mut()[at] = byte;
                let found = bytes(&digits);
                let found = found.map(|bytes| bytes.as_flattened()[at / 2]);
                let expected = expected.map(|value| value << (4 * ((at + 1) % 2)));
                assert_eq!(found.map(u32::from), expected, "{byte:#x}");
            }
        }
    }
}
