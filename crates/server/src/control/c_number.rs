//! Numbers in arguments of commands, as functions of the C library read them: scripts may pass what
//! the reference accepts.

/// The number at the start of the text, as `atoll` reads it: blanks and a sign may stand before the
/// digits, and anything after them. 0 without digits, and for a negative number.
pub(crate) fn leading(text: &str) -> u64 {
    let (is_negative, digits) = after_sign(text);
    let digits = digits.bytes().map_while(digit);
    let number = digits.fold(0_u64, |value, digit| {
        value.saturating_mul(10).saturating_add(digit)
    });
    if is_negative { 0 } else { number }
}

/// The whole text, as `strtoull` reads it: blanks and a sign may stand before the digits, and a
/// negative number wraps. `None` without digits, beyond 64 bits, and if anything follows.
pub(crate) fn wrapped(text: &str) -> Option<u64> {
    let (is_negative, digits) = after_sign(text);
    // `parse` would take a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// Whether there is a minus sign, and the text after blanks and the sign.
fn after_sign(text: &str) -> (bool, &str) {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use super::{leading, wrapped};

    #[test]
    fn numbers_are_read_as_the_c_library_reads_them() {
        let texts = ["1000x", " +1000", "1999.9", "1e3", "0x10", "-5", "x", ""];
        assert_eq!(texts.map(leading), [1000, 1000, 1999, 1, 0, 0, 0, 0]);
        assert_eq!(leading("99999999999999999999"), u64::MAX);

        let texts = [
            "100",
            " +0100",
            "18446744073709551615",
            "-1",
            "-18446744073709551516",
        ];
        let read = [100, 100, u64::MAX, u64::MAX, 100].map(Some);
        assert_eq!(texts.map(wrapped), read);
        for wrong in [
            "100x",
            "100 ",
            "x",
            "",
            "-",
            "+-1",
            "0x64",
            "18446744073709551616",
        ] {
            assert_eq!(wrapped(wrong), None, "{wrong}");
        }
    }
}
