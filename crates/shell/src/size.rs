//! Sizes on command lines: `64M`, `4G`, `1000`.

/// Parses a number of bytes, optionally followed by `K`, `M` or `G` for 2^10, 2^20 or 2^30. `None`
/// if the text has another form or the number is too large.
///
/// ```
/// use corvid_shell::size;
/// assert_eq!(size::parse("64M"), Some(64 << 20));
/// assert_eq!(size::parse("64MB"), None);
/// ```
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    // Excludes a sign, which the number parser would accept.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_number_and_at_most_one_letter() {
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse("3k"), Some(3072));
        assert_eq!(parse("16777216G"), Some(1 << 54));
        for bad in [
            "",
            "K",
            "1KK",
            "1T",
            "-1",
            "+1",
            "1.5M",
            " 1",
            "17179869184G",
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
