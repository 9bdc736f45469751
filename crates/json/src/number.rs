//! The number rule: a number is an integer if its exact value is an integer that fits 64 bits,
//! however it is spelled.
//!
//! The decision is based on the decimal digits, never on a rounded double. So
//! `1.00000000000000000000000000000000001` is a real and `100000000000000000000e-2` an integer. The
//! reader calls this file, and so does everything else that reads numbers from text.

use std::fmt::Write as _;

use thiserror::Error;

/// A JSON number, classified by value (RFC 7047 leaves this open; observed behaviour,
/// docs/spec/protocol.md 1.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Exactly an `i64`.
    Integer(i64),
    /// Anything else; always finite, never negative zero.
    Real(f64),
}

/// Why a text is not a number. Displays with the reference's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// A sign without a digit after it.
    #[error("'-' must be followed by digit")]
    Sign,
    /// `01`, `00`.
    #[error("leading zeros not allowed")]
    LeadingZero,
    /// `1.`, `1.e5`.
    #[error("decimal point must be followed by digit")]
    Point,
    /// `1e`, `1e+`.
    #[error("exponent must contain at least one digit")]
    Exponent,
    /// An exponent beyond 32 bits.
    #[error("exponent outside valid range")]
    ExponentRange,
    /// Something else follows the number.
    #[error("syntax error in number")]
    Trailing,
    /// Too large for a double.
    #[error("number outside valid range")]
    Range,
}

/// Limit on the exponent's magnitude. The reference gives up above it, one below the largest `i32`.
const EXPONENT_MAGNITUDE_MAX: u64 = i32::MAX as u64 - 1;

/// Number of decimal digits that always fit a `u64`.
const DIGITS_MAX: u64 = 19;

/// Classifies the text of a JSON number. `None` if it is malformed or overflows, or if its exponent
/// exceeds 32 bits.
///
/// ```
/// use corvid_json::number::{parse, Number};
/// assert_eq!(parse(b"123.4500e2"), Some(Number::Integer(12345)));
/// assert_eq!(parse(b"0.5"), Some(Number::Real(0.5)));
/// assert_eq!(parse(b"1e400"), None);
/// ```
#[must_use]
pub fn parse(text: &[u8]) -> Option<Number> {
    classify(text).ok()
}

/// Classifies the text of a JSON number.
///
/// # Errors
/// The first fault, in the order in which the reference checks.
pub fn classify(text: &[u8]) -> Result<Number, Fault> {
    match plain_integer(text) {
        Some(integer) => Ok(Number::Integer(integer)),
        None => Decimal::parse(text)?.number(text),
    }
}

/// The integer at the start of `text` and its length, in the common case: at most 18 digits,
/// followed by a byte that cannot belong to a number.
#[inline]
pub(crate) fn leading_integer(text: &[u8]) -> Option<(i64, usize)> {
    let start = usize::from(text.first() == Some(&b'-'));
    let (mut magnitude, mut end) = (0_i64, start);
    while let Some(digit @ b'0'..=b'9') = text.get(end) {
        if end == start + 18 {
            return None;
        }
        magnitude = magnitude * 10 + i64::from(digit - b'0');
        end += 1;
    }
    let is_spelled_well = end == start + 1 || (end > start && text[start] != b'0');
    if !is_spelled_well || matches!(text.get(end), Some(b'+' | b'-' | b'.' | b'e' | b'E')) {
        return None;
    }
    Some((if start == 1 { -magnitude } else { magnitude }, end))
}

/// The common case: an optional sign and at most 18 digits.
fn plain_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut magnitude = 0_i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + i64::from(digit);
    }
    Some(if negative { -magnitude } else { magnitude })
}

/// The exact value `±significand × 10^power`, without leading and trailing zeros in the
/// significand.
///
/// For example, `-0120.50e3` has the digits `1205` and the power 2: three from the exponent, minus
/// the one decimal place that is left.
#[derive(Default)]
struct Decimal {
    negative: bool,
    /// The significand. Valid while `digits` is at most [`DIGITS_MAX`].
    significand: u64,
    /// Number of digits of the significand; 0 means the value zero.
    digits: u64,
    /// Zeros seen after the last digit of the significand.
    zeros: u64,
    /// Digits after the decimal point.
    places: u64,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &[u8]) -> Result<Decimal, Fault> {
        let mut decimal = Decimal::default();
        let mut rest = text;
        if let [b'-', after @ ..] = rest {
            decimal.negative = true;
            rest = after;
        }
        rest = match rest {
            [b'0', b'0'..=b'9', ..] => return Err(Fault::LeadingZero),
            [b'0'..=b'9', ..] => decimal.read_digits(rest).1,
            _ => return Err(Fault::Sign),
        };
        if let [b'.', after @ ..] = rest {
            let (places, after) = decimal.read_digits(after);
            if places == 0 {
                return Err(Fault::Point);
            }
            decimal.places = places;
            rest = after;
        }
        if let [b'e' | b'E', after @ ..] = rest {
            rest = decimal.read_exponent(after)?;
        }
        if rest.is_empty() {
            Ok(decimal)
        } else {
            Err(Fault::Trailing)
        }
    }

    /// Reads a run of digits into the significand. Returns its length and the rest of the text.
    fn read_digits<'t>(&mut self, text: &'t [u8]) -> (u64, &'t [u8]) {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (run, rest) = text.split_at(length);
        for &byte in run {
            if byte == b'0' {
                self.zeros += u64::from(self.digits > 0);
                continue;
            }
            self.digits += self.zeros + 1;
            if self.digits <= DIGITS_MAX {
                for _ in 0..=self.zeros {
                    self.significand *= 10;
                }
                self.significand += u64::from(byte - b'0');
            }
            self.zeros = 0;
        }
        (length as u64, rest)
    }

    /// Reads the exponent after the `e`. Returns the rest of the text.
    fn read_exponent<'t>(&mut self, text: &'t [u8]) -> Result<&'t [u8], Fault> {
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let length = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if length == 0 {
            return Err(Fault::Exponent);
        }
        let mut magnitude = 0_u64;
        for &byte in &digits[..length] {
            magnitude = magnitude
                .saturating_mul(10)
                .saturating_add(u64::from(byte - b'0'));
        }
        if magnitude > EXPONENT_MAGNITUDE_MAX {
            return Err(Fault::ExponentRange);
        }
        let magnitude = i64::try_from(magnitude).map_err(|_| Fault::ExponentRange)?;
        self.exponent = if negative { -magnitude } else { magnitude };
        Ok(&digits[length..])
    }

    fn number(&self, text: &[u8]) -> Result<Number, Fault> {
        if self.digits == 0 {
            return Ok(Number::Integer(0));
        }
        if let Some(integer) = self.integer() {
            return Ok(Number::Integer(integer));
        }
        // The grammar was checked, so the standard parser (correctly rounded) accepts the text.
        let real = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
            .ok_or(Fault::Trailing)?;
        if real.is_infinite() {
            return Err(Fault::Range);
        }
        Ok(Number::Real(positive_zero(real)))
    }

    /// The value as an `i64`, if it is one. The last digit of the significand is not zero, so a
    /// negative power means a fraction.
    fn integer(&self) -> Option<i64> {
        let power = i128::from(self.exponent) - i128::from(self.places) + i128::from(self.zeros);
        let power = u64::try_from(power).ok()?;
        if self.digits.checked_add(power)? > DIGITS_MAX {
            return None;
        }
        let magnitude = (0..power).fold(self.significand, |value, _| value * 10);
        if self.negative {
            0_i64.checked_sub_unsigned(magnitude)
        } else {
            i64::try_from(magnitude).ok()
        }
    }
}

fn positive_zero(real: f64) -> f64 {
    if real == 0.0 { 0.0 } else { real }
}

/// Appends `value` as C's `%.15g` prints it, with negative zero as `0`.
///
/// Infinities and NaN cannot arise in a database. They are written as `0`, so that the output stays
/// JSON.
pub fn write_real(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 || !value.is_finite() {
        out.push(b'0');
        return;
    }
    if value < 0.0 {
        out.push(b'-');
    }
    let mut scientific = Scientific::default();
    // `D.DDDDDDDDDDDDDDeX`: the 15 significant digits, correctly rounded, and the exponent after
    // rounding.
    if write!(scientific, "{:.14e}", value.abs()).is_err() {
        out.push(b'0');
        return;
    }
    let (digits, exponent) = scientific.parts();
    write_general(out, &digits, exponent);
}

/// Lays out 15 significant digits as the `g` conversion does: without trailing zeros, with an
/// exponent outside 10^-4..10^15.
fn write_general(out: &mut Vec<u8>, digits: &[u8; 15], exponent: i32) {
    let kept = digits
        .iter()
        .rposition(|&digit| digit != b'0')
        .map_or(1, |last| last + 1);
    let digits = &digits[..kept];
    if !(-4..15).contains(&exponent) {
        out.push(digits[0]);
        if kept > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b'0');
        }
        crate::write::integer(out, i64::from(exponent.abs()));
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend((exponent + 1..0).map(|_| b'0'));
        out.extend_from_slice(digits);
    } else {
        let whole = exponent.unsigned_abs() as usize + 1;
        out.extend_from_slice(&digits[..kept.min(whole)]);
        if kept > whole {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        } else {
            out.extend((kept..whole).map(|_| b'0'));
        }
    }
}

/// A buffer for one positive double in scientific notation: at most `1.` + 14 digits + `e-308`.
#[derive(Default)]
struct Scientific {
    text: [u8; 24],
    len: usize,
}

impl Scientific {
    /// The 15 digits without the point, and the exponent.
    fn parts(&self) -> ([u8; 15], i32) {
        let mut digits = [b'0'; 15];
        digits[0] = self.text[0];
        digits[1..].copy_from_slice(&self.text[2..16]);
        let mut exponent = 0;
        let mut negative = false;
        for &byte in &self.text[17..self.len] {
            match byte {
                b'-' => negative = true,
                digit => exponent = exponent * 10 + i32::from(digit - b'0'),
            }
        }
        (digits, if negative { -exponent } else { exponent })
    }
}

impl std::fmt::Write for Scientific {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.text
            .get_mut(self.len..end)
            .ok_or(std::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Fault, Number, classify, leading_integer, parse, write_real};

    fn integer(text: &str) -> Option<i64> {
        match parse(text.as_bytes()) {
            Some(Number::Integer(integer)) => Some(integer),
            _ => None,
        }
    }

    fn real(text: &str) -> Option<f64> {
        match parse(text.as_bytes()) {
            Some(Number::Real(real)) => Some(real),
            _ => None,
        }
    }

    fn printed(value: f64) -> String {
        let mut out = Vec::new();
        write_real(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn leading_integers_agree_with_the_number_rule() {
        let texts = [
            "0",
            "-0",
            "7",
            "-7",
            "00",
            "01",
            "-",
            "",
            "+1",
            "1.0",
            "1e3",
            "1E3",
            "1-",
            "1+",
            "x",
            "999999999999999999",
            "-999999999999999999",
            "9223372036854775807",
        ];
        let mut found = 0;
        for text in texts {
            for end in ["", ",1", "]", "}", " ", "\n"] {
                let longer = format!("{text}{end}");
                if let Some((integer, length)) = leading_integer(longer.as_bytes()) {
                    assert_eq!(length, text.len(), "{longer}");
                    assert_eq!(parse(text.as_bytes()), Some(Number::Integer(integer)));
                    found += 1;
                }
            }
        }
        assert_eq!(found, 6 * 6);
    }

    #[test]
    fn integers_are_recognised_by_value_in_any_spelling() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("0e5", 0),
            ("0e999", 0),
            ("1.0", 1),
            ("1e3", 1000),
            ("1E+3", 1000),
            ("1e05", 100_000),
            ("10e-1", 1),
            ("123.4500e2", 12345),
            ("1e18", 1_000_000_000_000_000_000),
            ("100000000000000000000e-2", 1_000_000_000_000_000_000),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            (
                "0.0000000000000000000000000009223372036854775807e46",
                i64::MAX,
            ),
            ("-922337203685477580800e-2", i64::MIN),
        ] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_no_64_bit_integer_are_reals() {
        for (text, value) in [
            ("0.5", 0.5),
            ("1e19", 1e19),
            ("9223372036854775808", 9_223_372_036_854_775_808.0),
            ("-9223372036854775809", -9_223_372_036_854_775_808.0),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
            ("18446744073709551619", 18_446_744_073_709_551_616.0),
            ("12345678901234567890", 12_345_678_901_234_567_890.0),
            ("1.00000000000000000000000000000000001", 1.0),
            ("1e308", 1e308),
            ("1e-310", 1e-310),
        ] {
            assert_eq!(real(text), Some(value), "{text}");
        }
        for text in ["1e-400", "-1e-400"] {
            assert_eq!(
                real(text).map(f64::to_bits),
                Some(0),
                "{text} underflows to a real, positive zero"
            );
        }
    }

    #[test]
    fn faults_are_named() {
        for (text, fault) in [
            ("", Fault::Sign),
            ("-", Fault::Sign),
            ("-x", Fault::Sign),
            ("+1", Fault::Sign),
            (".5", Fault::Sign),
            ("01", Fault::LeadingZero),
            ("-01", Fault::LeadingZero),
            ("00.5", Fault::LeadingZero),
            ("1.", Fault::Point),
            ("1.e5", Fault::Point),
            ("1e", Fault::Exponent),
            ("1e+", Fault::Exponent),
            ("1e2147483647", Fault::ExponentRange),
            ("1e-2147483647", Fault::ExponentRange),
            ("0e99999999999999999999999999", Fault::ExponentRange),
            ("1.5.5", Fault::Trailing),
            ("1-2", Fault::Trailing),
            ("1e5.5", Fault::Trailing),
            ("1e400", Fault::Range),
            ("-1e400", Fault::Range),
            ("1e2147483646", Fault::Range),
        ] {
            assert_eq!(classify(text.as_bytes()), Err(fault), "{text}");
        }
    }

    #[test]
    fn reals_print_with_15_significant_digits() {
        for (value, text) in [
            (3.0, "3"),
            (0.1 + 0.2, "0.3"),
            (123_456_789.123_456_79, "123456789.123457"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1e20, "1e+20"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (5e-324, "4.94065645841247e-324"),
            (f64::MAX, "1.79769313486232e+308"),
            (999_999_999_999_999.9, "1e+15"),
            (100_000_000_000_000.5, "100000000000000"),
            (100_000_000_000_001.5, "100000000000002"),
            (-0.0, "0"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(printed(value), text);
        }
    }

    /// The C library's output, which differs from ours only in the sign of zero.
    #[allow(unsafe_code)]
    fn c_library(value: f64) -> String {
        let mut buffer = [0_u8; 64];
        // SAFETY: the buffer outlives the call, its true length is passed, and the format takes
        // exactly one double.
        let length = unsafe {
            libc::snprintf(
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                c"%.15g".as_ptr(),
                value,
            )
        };
        String::from_utf8(buffer[..usize::try_from(length).unwrap()].to_vec()).unwrap()
    }

    /// Generated cases of each property. miri is a thousand times slower.
    const CASES: u32 = if cfg!(miri) { 8 } else { 4096 };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]

        #[test]
        #[cfg_attr(miri, ignore = "it calls the C library")]
        fn reals_print_as_the_c_library_does(bits in any::<u64>(), short in -1_000_000_000_i64..1_000_000_000, scale in -20_i32..20) {
            let any = f64::from_bits(bits);
            if any.is_finite() && any != 0.0 {
                prop_assert_eq!(printed(any), c_library(any));
            }
            let short = short as f64 * 10_f64.powi(scale);
            if short != 0.0 {
                prop_assert_eq!(printed(short), c_library(short));
            }
        }

        /// Halves with 16 significant digits are exact ties at 15, where rounding rules differ.
        #[test]
        #[cfg_attr(miri, ignore = "it calls the C library")]
        fn ties_round_to_even(whole in 100_000_000_000_000_i64..1_000_000_000_000_000) {
            let tie = whole as f64 + 0.5;
            prop_assert_eq!(printed(tie), c_library(tie));
        }

        #[test]
        fn every_spelling_of_an_integer_is_that_integer(value in any::<i64>(), shift in 0_usize..30) {
            prop_assert_eq!(integer(&value.to_string()), Some(value));
            prop_assert_eq!(integer(&format!("{value}{}e-{shift}", "0".repeat(shift))), Some(value));
            prop_assert_eq!(integer(&format!("{value}.{}", "0".repeat(shift + 1))), Some(value));
        }

        #[test]
        fn acceptance_agrees_with_an_independent_parser(text in "-?[0-9]{1,3}(\\.[0-9]{0,3})?([eE][-+]?[0-9]{0,3})?") {
            let theirs = serde_json::from_str::<f64>(&text);
            match classify(text.as_bytes()) {
                Ok(Number::Integer(integer)) => prop_assert_eq!(integer as f64, theirs.unwrap()),
                Ok(Number::Real(real)) => prop_assert_eq!(real, theirs.unwrap() + 0.0),
                Err(_) => prop_assert!(theirs.is_err()),
            }
        }
    }
}
