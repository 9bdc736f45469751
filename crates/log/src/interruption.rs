//! Telling a write that never completed from damage to bytes that were complete once.
//!
//! A record was never complete if
//!
//! - the file ends within it, and no intact record follows: a crash interrupted the write; or
//! - it has a *hole*: blocks that the disk never got and that read as zeros. No record holds a zero
//!   byte. A hole may be short where a block ends soon after the record begins, or begins shortly
//!   before the record ends.
//!
//! No crash leaves any other damage. A bit that changes on the disk makes neither of the two.
//! Called by [`crate::ending`] for standalone files, and by [`crate::cluster`] for members' files.

use crate::salvage::{self, Bytes};
use crate::{Magic, ReadError};

/// Zero bytes in a row that make a hole. A flipped bit makes at most one of them.
const HOLE_BYTES_MIN: usize = 16;

/// Its header and its body.
const LINES_OF_RECORD: u32 = 2;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Whether the write of the record at `offset`, which cannot be read because of `error`, never
/// completed.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn is_incomplete<B: Bytes>(
    bytes: &mut B,
    magic: Magic,
    offset: u64,
    error: &ReadError,
) -> Result<bool, String> {
    let next = salvage::next_whole(&mut *bytes, magic, offset)?;
    let is_cut_short = match error {
        ReadError::Short { offset, .. } => is_last_line(bytes, *offset)?,
        ReadError::Header { shown, .. } => {
            // The beginning of a header line, and nothing else.
            is_beginning_of_line(shown, magic) && is_last_line(bytes, offset)?
        }
        _ => false,
    };
    if is_cut_short && next.is_none() {
        return Ok(true);
    }
    let end = promised_end(bytes, error)?;
    let limit = match end {
        Some((end, false)) => Some(next.map_or(end, |next| next.min(end))),
        _ => next,
    };
    Ok(match look(bytes, offset, limit)? {
        Look::Hole => true,
        // The header may promise more than there is, if one of its digits has changed.
        Look::Complete(line_end) => matches!(end, Some((end, true)) if end < line_end),
        Look::Open => matches!(end, Some((_, true))),
    })
}

/// Whether the shown part of a malformed header line is how every header line of the kind begins.
fn is_beginning_of_line(shown: &[u8], magic: Magic) -> bool {
    let line = ["OVSDB ", magic.word()].concat();
    let length = shown.len().min(line.len());
    shown[..length] == line.as_bytes()[..length]
}

/// The end of a record whose header is whole, and whether its last byte is a zero: the disk never got
/// the block in which it ends. No flipped bit makes a zero of a line feed. The next record may be damaged
/// too, and then nothing else shows where this one ends. If the last byte is not zero, a hole after it
/// belongs to the next record.
fn promised_end<B: Bytes>(bytes: &mut B, error: &ReadError) -> Result<Option<(u64, bool)>, String> {
    let ReadError::Hash { length, offset, .. } = error else {
        return Ok(None);
    };
    let mut last = [1];
    let end = offset + length;
    let got = bytes.read_at(&mut last, end.saturating_sub(1))?;
    Ok(Some((end, got == 1 && last == [0])))
}

/// Whether the file ends within the line at `offset`. A record whose last line feed is there is
/// whole, no matter what length its header claims.
fn is_last_line<B: Bytes>(bytes: &mut B, offset: u64) -> Result<bool, String> {
    let mut room = vec![0; PIECE_BYTES];
    let mut at = offset;
    loop {
        match bytes.read_at(&mut room, at)? {
            0 => return Ok(true),
            got if memchr::memchr(b'\n', &room[..got]).is_some() => return Ok(false),
            got => at += got as u64,
        }
    }
}

/// The outcome of a look at the bytes from the beginning of a damaged record on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It has a hole before the record ends.
    Hole,
    /// The record ends here: the header line and the body have one line feed each, at their ends.
    Complete(u64),
    /// Neither, up to the limit.
    Open,
}

/// Looks for a hole in the record at `from`, before `limit`, or, without a limit, before the end of
/// the file. A shorter run of zeros counts at the very end of the file. A hole after the record
/// belongs to the next write, which may have been interrupted although this one was complete.
fn look<B: Bytes>(bytes: &mut B, from: u64, limit: Option<u64>) -> Result<Look, String> {
    let mut room = vec![0; PIECE_BYTES];
    let mut at = from;
    let (mut zeros, mut lines) = (0, 0);
    loop {
        let got = bytes.read_at(&mut room, at)?;
        if got == 0 {
            return Ok(if zeros > 0 { Look::Hole } else { Look::Open });
        }
        for byte in &room[..got] {
            zeros = if *byte == 0 { zeros + 1 } else { 0 };
            // No flipped bit makes a zero of the first or the last byte of a record.
            let is_edge = at == from || limit == Some(at + 1);
            if zeros >= HOLE_BYTES_MIN || zeros > 0 && is_edge {
                return Ok(Look::Hole);
            }
            lines += u32::from(*byte == b'\n');
            at += 1;
            if lines == LINES_OF_RECORD {
                return Ok(Look::Complete(at));
            }
            if zeros == 0 && limit.is_some_and(|limit| at >= limit) {
                return Ok(Look::Open);
            }
        }
    }
}
