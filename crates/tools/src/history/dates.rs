//! Local times of the command line, and dates in the output.

use corvid_history::Civil;
use corvid_shell::{date, local_time};

/// A time as it is printed, which is also a moment: `2026-11-28T10:00:00.123Z`.
pub(crate) fn date_text(ms: i64) -> String {
    let mut text = date::utc_text(ms).replace(' ', "T");
    text.push('Z');
    text
}

/// Ms since the Unix epoch at a local time.
pub(crate) fn local(civil: Civil) -> Option<i64> {
    let second = u32::try_from(civil.of_day_ms / 1000).ok()?;
    let ms = local_time::to_ms(civil.year, civil.month, civil.day, second)?;
    Some(ms + civil.of_day_ms % 1000)
}
