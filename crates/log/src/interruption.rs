//! Distinguishes a write that never completed from damage to bytes that were once complete.
//!
//! A record was never complete if
//!
//! - the file ends within it and no intact record follows: a crash interrupted the write; or
//! - it has a *hole*: blocks that never reached the disk and that read as zeros. A valid record
//!   contains no zero byte. A hole may be short where a block ends soon after the record begins, or
//!   begins shortly before the record ends.
//!
//! A crash leaves no other damage, and a bit that flips on the disk produces neither form.
//! [`crate::ending`] calls this module for standalone files, [`crate::cluster`] for members' files.

use crate::salvage::{self, Bytes};
use crate::{Magic, ReadError};

/// Consecutive zero bytes that make a hole. A flipped bit produces at most one zero byte.
const HOLE_BYTES_MIN: usize = 16;

/// A record has two lines: its header and its body.
const LINES_OF_RECORD: u32 = 2;

/// Bytes per read.
const PIECE_BYTES: usize = 64 * 1024;

/// Whether the record at `offset`, unreadable because of `error`, is a write that never completed.
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
            // The file ends with the start of a header line.
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
        // A flipped digit may make the header promise more bytes than the record has.
        Look::Complete(line_end) => matches!(end, Some((end, true)) if end < line_end),
        Look::Open => matches!(end, Some((_, true))),
    })
}

/// Whether the shown part of a malformed header line is a prefix of a valid header line or begins
/// with one.
fn is_beginning_of_line(shown: &[u8], magic: Magic) -> bool {
    let line = ["OVSDB ", magic.word()].concat();
    let length = shown.len().min(line.len());
    shown[..length] == line.as_bytes()[..length]
}

/// The end of a record with an intact header, and whether its last byte is zero. A zero there means
/// that the block in which the record ends never reached the disk: no single flipped bit turns a
/// line feed into a zero. The check matters when the next record is damaged too, because then
/// nothing else shows where this one ends. If the last byte is not zero, a hole after it belongs to
/// the next record.
fn promised_end<B: Bytes>(bytes: &mut B, error: &ReadError) -> Result<Option<(u64, bool)>, String> {
    let ReadError::Hash { length, offset, .. } = error else {
        return Ok(None);
    };
    let mut last = [1];
    let end = offset + length;
    let got = bytes.read_at(&mut last, end.saturating_sub(1))?;
    Ok(Some((end, got == 1 && last == [0])))
}

/// Whether the file ends within the line at `offset`. A record that ends with a line feed is whole,
/// whatever length its header claims.
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

/// The outcome of a scan from the start of a damaged record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// A hole before the end of the record.
    Hole,
    /// The end of the record, at this offset: its header line and its body have each ended in a
    /// line feed.
    Complete(u64),
    /// Neither, up to the limit.
    Open,
}

/// Scans the record at `from` for a hole, up to `limit` or, without a limit, to the end of the
/// file. At the very end of the file a shorter run of zeros counts too. A hole after the record
/// belongs to the next write, which may have been interrupted although this one completed.
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
            // No single flipped bit turns the first or last byte of a record into a zero.
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
