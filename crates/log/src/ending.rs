//! Judges damage in a standalone file: is it the end of the log, or has a complete file changed?
//!
//! ```text
//! [schema][contents][1][2][3 tor            an interrupted write: the log ends after 2
//! [schema][contents][1][2][3, wrong hash]   undecidable: the log ends there, after a copy
//! [schema][contents][1][2, wrong hash][3]   3 was written after 2: the file is rotten
//! [schema][contents, wrong hash]            written before the file had its name: rotten
//! ```
//!
//! A server appends one record after the other, so only the last one can be an interrupted write. A
//! compaction writes the *contents*, the record after the schema, to a file without a name, syncs
//! it, and only then renames it. So unreadable contents have changed on the disk, even if nothing
//! follows them. A log that ended before them would be an empty database.
//!
//! When does record 1 hold contents? Every program that writes contents says so in `_comment`. The
//! comment comes first in Corvid's records, and anywhere in those of the reference. A record 1 that
//! is complete but does not match its hash counts as contents too, because it is all that the
//! database has.
//!
//! Invariant: [`Ending::Torn`] is returned only for bytes that never were a complete record. Pure:
//! the server and the simulator ask before they open a damaged file, the tool before it gives
//! advice.

use memchr::memmem;

use crate::interruption::is_incomplete;
use crate::salvage::{self, Bytes};
use crate::{Cause, Damage, Magic, ReadError};

/// The meaning of damage for its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A write that never completed, with nothing after it. The next append replaces it.
    Torn,
    /// The log ends there, but the bytes to be cut off may hold acknowledged commits: the file must
    /// be copied first. The value counts the intact records that follow.
    Doubtful(u64),
    /// Bytes that were complete have changed: the file must not be opened.
    Rotten(Rot),
}

/// Why damage cannot be the end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rot {
    /// The record holds the contents of the database.
    Contents,
    /// Intact records follow; the value counts them.
    Middle(u64),
}

/// How the comments of contents begin, with their quotes escaped. A client cannot forge one in a
/// row, because a string would escape the quotes around `_comment`.
const CONTENTS: [&str; 6] = [
    "compacting database online",
    "compacted by ovsdb-tool",
    "converted by ovsdb-",
    "produced by \\\"ovsdb-",
    "salvaged by ovsdb-tool",
    "restored by ovsdb-tool",
];

/// The beginning of the `_comment` member.
const COMMENT: &[u8] = b"\"_comment\":\"";

/// How a header line begins.
const SIGN: &[u8] = b"OVSDB JSON ";

/// Bytes of `SIGN` that damage may have changed.
const WRONG_MAX: usize = 2;

/// Bytes searched at a time.
const WINDOW_BYTES: usize = 128 * 1024;

/// Number of the record after the schema.
const FIRST: u64 = 1;

/// Whether a record 1 whose `_comment` begins like this holds contents. `comment` is JSON text,
/// after the opening quote.
#[must_use]
pub fn is_of_contents(comment: &[u8]) -> bool {
    CONTENTS
        .iter()
        .any(|known| comment.starts_with(known.as_bytes()))
}

/// Judges the first damage of a file.
///
/// # Errors
/// The file cannot be read.
pub fn judge<B: Bytes>(mut bytes: B, damage: &Damage) -> Result<Ending, String> {
    let offset = damage.offset;
    let behind = salvage::records_behind(&mut bytes, Magic::Standalone, offset)?;
    let is_incomplete = match &damage.cause {
        Cause::Read(error) => is_incomplete(&mut bytes, Magic::Standalone, offset, error)?,
        // The hash is right: the record is as it was written.
        Cause::Content(_) | Cause::Commit(_) => false,
    };
    if damage.record == FIRST {
        // Judged before anything else. A file gets its name only after its contents are synced, so
        // no crash explains damaged contents, not even one that leaves a hole.
        let is_contents = has_comment_of_contents(&mut bytes, offset)?
            || !is_incomplete && was_complete(&mut bytes, damage)?;
        if is_contents {
            return Ok(Ending::Rotten(Rot::Contents));
        }
    }
    // A copy that did not complete may have cut off the reference's contents before their comment.
    // Such contents look like an interrupted first transaction, so they are not called torn.
    let may_be_contents =
        damage.record == FIRST && matches!(damage.cause, Cause::Read(ReadError::Short { .. }));
    Ok(match behind {
        0 if is_incomplete && !may_be_contents => Ending::Torn,
        // The bytes cannot tell whether the record was complete.
        0 => Ending::Doubtful(0),
        // Later blocks reached the disk and this one did not: a loss of power. The records after it
        // were written, perhaps acknowledged, and cannot be applied without it.
        _ if is_incomplete => Ending::Doubtful(behind),
        _ => Ending::Rotten(Rot::Middle(behind)),
    })
}

/// Whether the damaged bytes span a record from its first to its last byte.
fn was_complete<B: Bytes>(bytes: &mut B, damage: &Damage) -> Result<bool, String> {
    match &damage.cause {
        Cause::Read(ReadError::Hash { .. } | ReadError::Short { .. }) => Ok(true),
        // A damaged header line still resembles one. Foreign bytes appended to the file do not.
        Cause::Read(ReadError::Header { .. }) => {
            let mut begin = [0; SIGN.len()];
            let got = bytes.read_at(&mut begin, damage.offset)?;
            let pairs = begin[..got].iter().zip(SIGN);
            let wrong = pairs.filter(|(read, sign)| read != sign).count();
            Ok(got == SIGN.len() && wrong <= WRONG_MAX)
        }
        _ => Ok(false),
    }
}

/// Whether a comment of contents occurs anywhere after `offset`.
fn has_comment_of_contents<B: Bytes>(bytes: &mut B, offset: u64) -> Result<bool, String> {
    // A comment may begin in one window and end in the next.
    let overlap = COMMENT.len() + CONTENTS.map(str::len).into_iter().max().unwrap_or(0);
    let mut window = Vec::new();
    let mut room = vec![0; WINDOW_BYTES];
    let mut at = offset;
    loop {
        match bytes.read_at(&mut room, at)? {
            0 => return Ok(false),
            got => {
                window.extend_from_slice(&room[..got]);
                at += got as u64;
            }
        }
        let mut comments = memmem::find_iter(&window, COMMENT);
        if comments.any(|comment| {
            let text = &window[comment + COMMENT.len()..];
            CONTENTS
                .iter()
                .any(|contents| text.starts_with(contents.as_bytes()))
        }) {
            return Ok(true);
        }
        window.drain(..window.len().saturating_sub(overlap));
    }
}

#[cfg(test)]
mod tests;
