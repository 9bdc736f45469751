//! How much history is kept: `--keep-history=POLICY`.
//!
//! A policy has up to three limits, and history is removed, oldest segment first, until all of them
//! hold. The newest segment always stays, so a policy that is smaller than one segment still keeps
//! one.
//!
//! | Form | Limits |
//! |---|---|
//! | `7d` (`s`, `min`, `h`, `d`, `w`) | the age of the last record of a segment |
//! | `2G` (`K`, `M`, `G`, `T`, powers of 1024) | the bytes of all segments |
//! | `10000` | the transactions of all segments |
//! | `off` | nothing is kept, and nothing is removed |

use std::fmt;
use std::str::FromStr;

use crate::segment::Summary;

/// Units of time with their length in ms, longest first, in which ages are shown.
const AGES: [(&str, u64); 4] = [
    ("d", 24 * 3_600_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("s", 1000),
];

/// A unit that is only read: most people count a week of history as `7d`.
const WEEK: [(&str, u64); 1] = [("w", 7 * 24 * 3_600_000)];

/// Units of size with their bytes, largest first.
const SIZES: [(&str, u64); 4] = [
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
];

/// The forms of a policy, for error texts.
const FORMS: &str = "an age (7d, 36h, 90min), a size (2G, 500M), a number of transactions (10000), \
                     several of these with commas, or off";

/// Limits of the history that is kept. Without any limit nothing is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Maximum age of a segment's last record, ms.
    pub age_ms: Option<u64>,
    /// Maximum bytes of all segments.
    pub bytes: Option<u64>,
    /// Maximum number of transactions in all segments.
    pub transactions: Option<u64>,
}

/// A text that is not a policy. Displays what is wrong and which forms there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; a history policy is {FORMS}")]
pub struct PolicyError {
    reason: String,
}

/// One part of a policy.
enum Limit {
    Age(u64),
    Bytes(u64),
    Transactions(u64),
}

impl Policy {
    /// Whether no history is kept.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Policy::default()
    }

    /// The number of segments to remove so that the limits hold, counted from the oldest.
    /// `segments` are all that exist, oldest first. Never counts the newest.
    #[must_use]
    pub fn excess(&self, now_ms: u64, segments: &[Summary]) -> usize {
        let removable = segments.len().saturating_sub(1);
        let sum = |of: fn(&Summary) -> u64| {
            segments
                .iter()
                .fold(0u64, |sum, s| sum.saturating_add(of(s)))
        };
        let mut bytes = sum(|summary| summary.bytes);
        let mut transactions = sum(|summary| summary.transactions);
        let mut excess = 0;
        for segment in &segments[..removable] {
            let is_too_old = self.age_ms.is_some_and(|age_ms| {
                let last_ms = u64::try_from(segment.last_ms).unwrap_or(0);
                last_ms.saturating_add(age_ms) < now_ms
            });
            let is_too_much = self.bytes.is_some_and(|limit| bytes > limit)
                || self.transactions.is_some_and(|limit| transactions > limit);
            if !is_too_old && !is_too_much {
                break;
            }
            bytes = bytes.saturating_sub(segment.bytes);
            transactions = transactions.saturating_sub(segment.transactions);
            excess += 1;
        }
        excess
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        let mut policy = Policy::default();
        if text == "off" {
            return Ok(policy);
        }
        for part in text.split(',') {
            let (place, limit, kind) = match parse_limit(part)? {
                Limit::Age(limit) => (&mut policy.age_ms, limit, "an age"),
                Limit::Bytes(limit) => (&mut policy.bytes, limit, "a size"),
                Limit::Transactions(limit) => {
                    (&mut policy.transactions, limit, "a number of transactions")
                }
            };
            if place.replace(limit).is_some() {
                return Err(wrong(format!("\"{text}\" has {kind} twice")));
            }
        }
        Ok(policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_off() {
            return f.write_str("off");
        }
        let age = self.age_ms.map(|limit| in_units(limit, &AGES));
        let bytes = self.bytes.map(|limit| in_units(limit, &SIZES));
        let transactions = self.transactions.map(|limit| limit.to_string());
        let parts: Vec<String> = [age, bytes, transactions].into_iter().flatten().collect();
        f.write_str(&parts.join(","))
    }
}

fn wrong(reason: String) -> PolicyError {
    PolicyError { reason }
}

fn parse_limit(part: &str) -> Result<Limit, PolicyError> {
    let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = part.split_at(digits);
    if number.is_empty() {
        return Err(wrong(match part {
            "" => "a part is empty".to_owned(),
            "off" => "off does not go with limits".to_owned(),
            _ => format!("\"{part}\" does not begin with a number"),
        }));
    }
    let too_large = || wrong(format!("\"{part}\" is too large"));
    let number: u64 = number.parse().map_err(|_| too_large())?;
    if number == 0 {
        return Err(wrong(format!("\"{part}\" would keep nothing")));
    }
    if unit.is_empty() {
        return Ok(Limit::Transactions(number));
    }
    let scale = |units: &[(&str, u64)]| {
        let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
        Some(number.checked_mul(*factor))
    };
    if let Some(age_ms) = scale(&AGES).or_else(|| scale(&WEEK)) {
        return Ok(Limit::Age(age_ms.ok_or_else(too_large)?));
    }
    if let Some(bytes) = scale(&SIZES) {
        return Ok(Limit::Bytes(bytes.ok_or_else(too_large)?));
    }
    // `500m` may mean minutes or megabytes, and the difference is years of history.
    Err(wrong(match unit {
        "m" => format!("\"{part}\": write min for minutes or M for MiB"),
        _ => format!("\"{part}\": there is no unit \"{unit}\""),
    }))
}

/// The number in the largest unit that divides it. The smallest unit divides every limit that was
/// parsed; another one is rounded up to it.
fn in_units(number: u64, units: &[(&str, u64)]) -> String {
    let fit = units
        .iter()
        .find(|(_, factor)| number.is_multiple_of(*factor));
    match (fit, units.last()) {
        (Some((name, factor)), _) => format!("{}{name}", number / factor),
        (None, Some((name, factor))) => format!("{}{name}", number.div_ceil(*factor)),
        (None, None) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Policy, String> {
        text.parse().map_err(|error: PolicyError| error.reason)
    }

    fn segment(number: u64, bytes: u64, transactions: u64, last_ms: i64) -> Summary {
        Summary {
            number,
            bytes,
            transactions,
            first_ms: 0,
            last_ms,
        }
    }

    #[test]
    fn texts_are_read_and_shown_in_canonical_form() {
        for (text, shown) in [
            ("off", "off"),
            ("7d", "7d"),
            ("1w", "7d"),
            ("36h", "36h"),
            ("48h", "2d"),
            ("90min", "90min"),
            ("90s", "90s"),
            ("2G", "2G"),
            ("1024M", "1G"),
            ("500M", "500M"),
            ("10000", "10000"),
            ("10000,2G,3d", "3d,2G,10000"),
        ] {
            let policy = parse(text).expect(text);
            assert_eq!(policy.to_string(), shown);
            assert_eq!(parse(shown), Ok(policy));
        }
    }

    #[test]
    fn nonsense_is_an_error_that_names_it() {
        for (text, reason) in [
            ("", "a part is empty"),
            ("7d,", "a part is empty"),
            ("d", "\"d\" does not begin with a number"),
            ("-7d", "\"-7d\" does not begin with a number"),
            ("7d,off", "off does not go with limits"),
            ("0", "\"0\" would keep nothing"),
            ("0d", "\"0d\" would keep nothing"),
            ("7m", "\"7m\": write min for minutes or M for MiB"),
            ("7 d", "\"7 d\": there is no unit \" d\""),
            ("2GB", "\"2GB\": there is no unit \"GB\""),
            ("1.5G", "\"1.5G\": there is no unit \".5G\""),
            ("7d,8h", "\"7d,8h\" has an age twice"),
            ("1,2", "\"1,2\" has a number of transactions twice"),
            (
                "99999999999999999999",
                "\"99999999999999999999\" is too large",
            ),
            (
                "18446744073709551615T",
                "\"18446744073709551615T\" is too large",
            ),
        ] {
            assert_eq!(parse(text), Err(reason.to_owned()), "{text:?}");
        }
        let error = "x".parse::<Policy>().expect_err("not a policy").to_string();
        assert!(error.contains("7d"), "{error}");
    }

    #[test]
    fn oldest_segments_go_until_every_limit_holds() {
        let day = 24 * 3_600_000;
        let segments = [
            segment(1, 100, 10, day),
            segment(2, 100, 10, 2 * day),
            segment(3, 100, 10, 3 * day),
        ];
        let now_ms = u64::try_from(4 * day).unwrap_or(0);
        for (policy, excess) in [
            ("1w", 0),
            ("2d", 1),
            ("1h", 2),
            ("30", 0),
            ("29", 1),
            ("1", 2),
            ("1K", 0),
            ("2d,15", 2),
            ("off", 0),
        ] {
            let policy = parse(policy).expect(policy);
            assert_eq!(policy.excess(now_ms, &segments), excess, "{policy}");
            assert_eq!(policy.excess(now_ms, &[]), 0);
        }
        let bytes = Policy {
            bytes: Some(250),
            ..Policy::default()
        };
        assert_eq!(bytes.excess(now_ms, &segments), 1);
    }
}
