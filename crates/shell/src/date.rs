//! Wall time as the tools print it: Gregorian dates, for any year that 64 bits of milliseconds can
//! hold.
//!
//! A pure function of the time. The patterns of [`crate::vlog`] use local time and the C library.

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The number of days from 0000-03-01, where a 400-year cycle of the Gregorian calendar begins, to
/// 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// The number of days in 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// `YYYY-MM-DD HH:MM:SS.mmm` in UTC, from milliseconds since the Unix epoch.
#[must_use]
pub fn utc_text(ms: i64) -> String {
    let (year, month, day) = date(ms.div_euclid(DAY_MS));
    let of_day = ms.rem_euclid(DAY_MS);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, millis) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

/// Year, month and day of a day since the Unix epoch. Internally years begin in March, so that the
/// leap day comes last.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let of_cycle = days.rem_euclid(CYCLE_DAYS);
    // 1460 days are four years without the leap day; 36,524 days are a century without its last
    // leap day.
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / (CYCLE_DAYS - 1)) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    // From March on, every five months have 153 days.
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (
        year + days.div_euclid(CYCLE_DAYS) * 400 + i64::from(month <= 2),
        month,
        day,
    )
}

#[cfg(test)]
mod tests {
    use super::utc_text;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "1970-01-01 00:00:00.000"),
            (1_700_000_000_123, "2023-11-14 22:13:20.123"),
            (951_782_400_000, "2000-02-29 00:00:00.000"),
            (951_868_799_999, "2000-02-29 23:59:59.999"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000"),
            (1_735_689_599_000, "2024-12-31 23:59:59.000"),
            (-5000, "1969-12-31 23:59:55.000"),
            (253_402_300_800_000, "10000-01-01 00:00:00.000"),
            (99_999_999_999_999_999, "3170843-11-07 09:46:39.999"),
            (i64::MAX, "292278994-08-17 07:12:55.807"),
        ] {
            assert_eq!(utc_text(ms), expected);
        }
    }
}
