//! Moments of the command line, and dates in the output.

use corvid_history::{Civil, Moment, Position};
use corvid_net::clock;
use corvid_shell::{date, local_time};

use super::{OpenHistory, failure};
use crate::failure::Failure;

/// The position at a moment, as the user spells it.
///
/// # Errors
/// The text is not a moment, or the history does not have it.
pub(crate) fn locate(history: &OpenHistory, text: &str) -> Result<Position, Failure> {
    let moment = parse(text)?;
    history.locate(&moment, text, &date_text).map_err(failure)
}

/// As [`locate`], for the beginning of a range: `None` for a time before the history.
///
/// # Errors
/// As for [`locate`].
pub(crate) fn locate_beginning(
    history: &OpenHistory,
    text: &str,
) -> Result<Option<Position>, Failure> {
    if let Moment::Time(time_ms) = parse(text)?
        && history
            .first_ms()
            .map_err(failure)?
            .is_some_and(|first_ms| time_ms < first_ms)
    {
        return Ok(None);
    }
    locate(history, text).map(Some)
}

/// Parses a moment.
///
/// # Errors
/// The text is not a moment, or is in the future.
pub(crate) fn parse(text: &str) -> Result<Moment, Failure> {
    Moment::parse(text, clock::wall_ms(), &local).map_err(failure)
}

/// A time as it is printed, which is also a moment: `2026-11-28T10:00:00.123Z`.
pub(crate) fn date_text(ms: i64) -> String {
    let mut text = date::utc_text(ms).replace(' ', "T");
    text.push('Z');
    text
}

fn local(civil: Civil) -> Option<i64> {
    let second = u32::try_from(civil.of_day_ms / 1000).ok()?;
    let ms = local_time::to_ms(civil.year, civil.month, civil.day, second)?;
    Some(ms + civil.of_day_ms % 1000)
}
