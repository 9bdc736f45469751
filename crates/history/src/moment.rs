//! How people name a moment of the history.
//!
//! | Form | Moment |
//! |---|---|
//! | `HEAD`, `now` | after the last commit |
//! | `HEAD~3` | before the last three commits |
//! | `-2h` (`s`, `min`, `h`, `d`, `w`) | so long ago |
//! | `2026-11-28`, `2026-11-28T10:00:00.123` | local time; with `Z` or `+02:00`, of that zone |
//! | `@1700000000000` | ms since the Unix epoch |
//! | at least 8 hexadecimal digits | after the commit whose id begins like this |
//!
//! Pure: the present time and the local zone are arguments.

use corvid_data::Uuid;

use crate::commit::ID_DIGITS_MIN;
use crate::error::HistoryError;

/// The forms, for error texts.
pub const FORMS: &str = "HEAD, HEAD~3, now, -2h, 2026-11-28, 2026-11-28T10:00:00, @1700000000000, or \
                         the id of a commit";

/// Digits of a SHA-1.
const HASH_DIGITS: usize = 40;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Units of time with their length, ms.
const UNITS: [(&str, i64); 5] = [
    ("s", 1000),
    ("min", MINUTE_MS),
    ("h", HOUR_MS),
    ("d", DAY_MS),
    ("w", 7 * DAY_MS),
];

/// A moment that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before so many of the last commits.
    Back(u64),
    /// After the last commit that was not later, ms since the Unix epoch.
    Time(i64),
    /// After the commit whose id begins like this, in lower case.
    Commit(String),
}

/// A date and time of day without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
    /// Ms since midnight.
    pub of_day_ms: i64,
}

impl Moment {
    /// Parses a text. `local` converts a local time to ms since the Unix epoch.
    ///
    /// # Errors
    /// The text has none of the forms, or is in the future.
    pub fn parse(
        text: &str,
        now_ms: i64,
        local: &dyn Fn(Civil) -> Option<i64>,
    ) -> Result<Moment, HistoryError> {
        let wrong = || HistoryError::Moment(format!("\"{text}\": a moment is {FORMS}"));
        if text == "HEAD" || text == "now" {
            return Ok(Moment::Back(0));
        }
        if let Some(count) = text.strip_prefix("HEAD~") {
            return count.parse().map(Moment::Back).map_err(|_| wrong());
        }
        if let Some(age) = text.strip_prefix('-') {
            let age_ms = parse_age(age).ok_or_else(wrong)?;
            return Ok(Moment::Time(now_ms.saturating_sub(age_ms)));
        }
        let time_ms = match text.strip_prefix('@') {
            Some(ms) => Some(ms.parse().map_err(|_| wrong())?),
            None => match Parser(text).time() {
                Some((civil, zone_ms)) => Some(match zone_ms {
                    Some(zone_ms) => civil.utc_ms() - zone_ms,
                    None => local(civil).ok_or_else(wrong)?,
                }),
                None => None,
            },
        };
        match time_ms {
            Some(time_ms) if time_ms > now_ms => {
                let problem = format!("\"{text}\" is in the future");
                Err(HistoryError::Moment(problem))
            }
            Some(time_ms) => Ok(Moment::Time(time_ms)),
            None => parse_id(text).ok_or_else(wrong),
        }
    }
}

impl Civil {
    /// The date and time of day that a text names without a zone: a local time.
    #[must_use]
    pub fn parse(text: &str) -> Option<Civil> {
        match Parser(text).time() {
            Some((civil, None)) => Some(civil),
            _ => None,
        }
    }

    /// The time in UTC, ms since the Unix epoch.
    #[must_use]
    pub fn utc_ms(self) -> i64 {
        // Years begin in March, so that the leap day comes last.
        let month = i64::from(self.month);
        let year = self.year - i64::from(month <= 2);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        // 719,468 days lie between March 1 of the year 0 and the epoch.
        (days + of_year - 719_468) * DAY_MS + self.of_day_ms
    }
}

fn parse_age(text: &str) -> Option<i64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<i64>().ok()?.checked_mul(*unit_ms)
}

fn parse_id(text: &str) -> Option<Moment> {
    let id = text.to_ascii_lowercase();
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    let is_hash = id.len() <= HASH_DIGITS && id.bytes().all(is_digit);
    let fits_uuid = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => is_digit(byte),
    };
    let is_uuid = id.len() <= Uuid::TEXT_LEN && id.bytes().enumerate().all(fits_uuid);
    (id.len() >= ID_DIGITS_MIN && (is_hash || is_uuid)).then_some(Moment::Commit(id))
}

/// The rest of a text with a date.
struct Parser<'t>(&'t str);

impl Parser<'_> {
    /// A whole date, with its distance to UTC if it names a zone.
    fn time(mut self) -> Option<(Civil, Option<i64>)> {
        let year = self.number(4)?;
        self.sign('-')?;
        let month = self.number(2)?;
        self.sign('-')?;
        let day = self.number(2)?;
        let mut of_day_ms = 0;
        let mut zone_ms = None;
        if self.sign('T').or_else(|| self.sign(' ')).is_some() {
            let hour = self.number(2)?;
            self.sign(':')?;
            let minute = self.number(2)?;
            let mut second = 0;
            if self.sign(':').is_some() {
                second = self.number(2)?;
                if self.sign('.').is_some() {
                    of_day_ms += self.fraction()?;
                }
            }
            if hour > 23 || minute > 59 || second > 59 {
                return None;
            }
            of_day_ms += hour * HOUR_MS + minute * MINUTE_MS + second * 1000;
            zone_ms = self.zone()?;
        }
        let is_date = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
        let civil = Civil {
            year,
            month: u32::try_from(month).ok()?,
            day: u32::try_from(day).ok()?,
            of_day_ms,
        };
        (is_date && self.0.is_empty()).then_some((civil, zone_ms))
    }

    /// The zone, if there is one; `None` if there is something else.
    #[allow(clippy::option_option)] // no zone, and no valid zone
    fn zone(&mut self) -> Option<Option<i64>> {
        if self.0.is_empty() {
            return Some(None);
        }
        if self.sign('Z').is_some() {
            return Some(Some(0));
        }
        let direction = if self.sign('+').is_some() { 1 } else { -1 };
        if direction < 0 {
            self.sign('-')?;
        }
        let hours = self.number(2)?;
        self.sign(':');
        let minutes = self.number(2)?;
        (hours <= 23 && minutes <= 59)
            .then_some(Some(direction * (hours * HOUR_MS + minutes * MINUTE_MS)))
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        number.parse().ok()
    }

    /// One to three digits after the point, as ms.
    fn fraction(&mut self) -> Option<i64> {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let ms = match digits {
            1 => self.number(1)? * 100,
            2 => self.number(2)? * 10,
            3 => self.number(3)?,
            _ => return None,
        };
        Some(ms)
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        self.0 = self.0.strip_prefix(sign)?;
        Some(())
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    /// A zone two hours east of UTC.
    fn parse(text: &str) -> Result<Moment, String> {
        let local = |civil: Civil| Some(civil.utc_ms() - 2 * HOUR_MS);
        Moment::parse(text, NOW_MS, &local).map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_is_read() {
        for (text, moment) in [
            ("HEAD", Moment::Back(0)),
            ("now", Moment::Back(0)),
            ("HEAD~3", Moment::Back(3)),
            ("-90s", Moment::Time(NOW_MS - 90_000)),
            ("-2h", Moment::Time(NOW_MS - 7_200_000)),
            ("-3d", Moment::Time(NOW_MS - 3 * DAY_MS)),
            ("-15min", Moment::Time(NOW_MS - 900_000)),
            ("@1700000000000", Moment::Time(1_700_000_000_000)),
            ("2023-11-14T22:13:20Z", Moment::Time(1_700_000_000_000)),
            ("2023-11-14T22:13:20.5Z", Moment::Time(1_700_000_000_500)),
            ("2023-11-14T23:13:20+01:00", Moment::Time(1_700_000_000_000)),
            ("2023-11-14T20:43:20-0130", Moment::Time(1_700_000_000_000)),
            ("2023-11-15T00:13:20", Moment::Time(1_700_000_000_000)),
            ("2023-11-15 00:13:20.123", Moment::Time(1_700_000_000_123)),
            ("2023-11-15T00:13", Moment::Time(1_699_999_980_000)),
            ("2024-02-29", Moment::Time(1_709_157_600_000)),
            ("1970-01-01T00:00Z", Moment::Time(0)),
            ("5F36B2EA", Moment::Commit("5f36b2ea".to_owned())),
            ("5f36b2ea-2906", Moment::Commit("5f36b2ea-2906".to_owned())),
        ] {
            assert_eq!(parse(text), Ok(moment), "{text}");
        }
    }

    #[test]
    fn local_times_are_those_without_a_zone() {
        for text in ["2023-11-15", "2023-11-15T00:13", "2023-11-15 00:13:20.123"] {
            assert!(Civil::parse(text).is_some(), "{text}");
        }
        for text in [
            "HEAD",
            "-2h",
            "@1",
            "2023-11-14T22:13:20Z",
            "2023-11-14T22:13+01:00",
            "x",
        ] {
            assert_eq!(Civil::parse(text), None, "{text}");
        }
    }

    #[test]
    fn other_texts_are_errors_that_list_the_forms() {
        for text in [
            "",
            "HEAD~",
            "HEAD~x",
            "yesterday",
            "-2",
            "-2m",
            "--2h",
            "2h",
            "@",
            "@x",
            "2026-13-01",
            "2023-02-29",
            "2023-11-14T25:00",
            "2023-11-14T10",
            "2023-11-14T10:00X",
            "abc",
            "1234567",
            "2023-11-14T10:00:00.1234",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("a moment is HEAD"), "{text}: {error}");
        }
        for text in ["2099-01-01", "@1800000000001", "2027-01-15T08:00:01Z"] {
            let error = parse(text).expect_err(text);
            assert!(error.ends_with("is in the future"), "{text}: {error}");
        }
    }
}
