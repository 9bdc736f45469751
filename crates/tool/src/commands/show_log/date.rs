//! Dates of records in UTC.

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Days from 0000-03-01 to 1970-01-01 in the proleptic Gregorian calendar.
const EPOCH_DAYS: i64 = 719_468;
/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// `YYYY-MM-DD HH:MM:SS.mmm` for ms since the Unix epoch.
pub(super) fn utc_text(ms: i64) -> String {
    let (year, month, day) = civil(ms.div_euclid(DAY_MS));
    let of_day = ms.rem_euclid(DAY_MS);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, millis) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

/// Year, month and day of a day since the Unix epoch. Years begin in March here, so that the leap day is the last: day
/// 59 since the epoch is 1970-03-01, day 0 of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let era = days.div_euclid(ERA_DAYS);
    let of_era = days.rem_euclid(ERA_DAYS);
    // Leap days before this day: one every 1460 days, none every 36,524, one on the last day of the era.
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / (ERA_DAYS - 1)) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 31 30 31 30 31 days, five months 153 days.
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00.000"),
            (-5000, "1969-12-31 23:59:55.000"),
            (1_700_000_000_123, "2023-11-14 22:13:20.123"),
            (951_782_400_000, "2000-02-29 00:00:00.000"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000"),
            (99_999_999_999_999_999, "3170843-11-07 09:46:39.999"),
            (253_402_300_800_000, "10000-01-01 00:00:00.000"),
            (i64::MAX, "292278994-08-17 07:12:55.807"),
        ] {
            assert_eq!(utc_text(ms), text);
        }
    }
}
