//! Moments of the command line.

use corvid_history::{Moment, Position};
use corvid_net::clock;

use super::{OpenHistory, failure};
use crate::failure::Failure;
use crate::history::{date_text, local};

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
fn parse(text: &str) -> Result<Moment, Failure> {
    Moment::parse(text, clock::wall_ms(), &local).map_err(failure)
}
