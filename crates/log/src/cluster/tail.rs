//! Judging the end of a member's file that cannot be read: could the member have forgotten a promise?
//!
//! A member answers a peer only after a sync, and a sync forces everything before it to the disk. So the bytes from the first bad record on
//! were never synced, and promise nothing, if
//!
//! - the file ends within that record, and nothing whole follows: a write that a crash interrupted; or
//! - the record has a *hole*, blocks that the disk never got and that read as zeros. No record holds a zero byte. A hole may be short where
//!   a block ends soon after the record begins, or begins shortly before the record ends.
//!
//! Any other damage may be in bytes that were synced. The member may have voted, or acknowledged entries, in the records that are lost; if it
//! went on as if it had not, the cluster could lose commits (docs/spec/distribution.md 1.4). The promises that the rest of the file proves are read
//! by [`super::promises`]. Called by [`super::recovery`].

use corvid_data::WireError;

use super::promises::Obstacle;
use crate::salvage::{self, Bytes};
use crate::{Magic, ReadError};

/// Zero bytes in a row that make a hole. A flipped bit makes at most one of them.
const HOLE_BYTES_MIN: usize = 16;

/// How every header line begins, as far as messages show a malformed one.
const SIGN: &[u8] = b"OVSDB CLUSTER";

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The first record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDamage {
    /// Its number, counting from 0.
    pub record: u64,
    /// The offset of its header.
    pub offset: u64,
    /// The error.
    pub error: ReadError,
    /// The bytes from there on were never synced.
    pub is_unsynced: bool,
    /// If they may have been: why the member's cluster cannot make the loss good. `None`: it can
    /// ([`super::RecoveredMembership::Damaged`]).
    pub obstacle: Option<Obstacle>,
}

impl MemberDamage {
    /// Whether records that the member has acknowledged may be lost. Then it must neither vote nor serve until it is rebuilt. Otherwise
    /// the first append replaces the damaged bytes.
    #[must_use]
    pub fn may_have_forgotten(&self) -> bool {
        !self.is_unsynced
    }

    /// The error in the reference's words about `file`.
    #[must_use]
    pub fn to_wire(&self, file: &str) -> WireError {
        self.error.to_wire(file)
    }
}

/// Judges the damage `error` of the record at `offset`.
///
/// # Errors
/// The file cannot be read.
pub(super) fn is_unsynced<B: Bytes>(
    bytes: &mut B,
    offset: u64,
    error: &ReadError,
) -> Result<bool, String> {
    let next = salvage::next_whole(&mut *bytes, Magic::Clustered, offset)?;
    let is_cut_short = match error {
        ReadError::Short { offset, .. } => is_last_line(bytes, *offset)?,
        ReadError::Header { shown, .. } => {
            // The beginning of a header line, and nothing else.
            let length = shown.len().min(SIGN.len());
            shown[..length] == SIGN[..length] && is_last_line(bytes, offset)?
        }
        _ => false,
    };
    if is_cut_short && next.is_none() {
        return Ok(true);
    }
    Ok(ends_with_zero(bytes, error)? || has_hole(bytes, offset, next)?)
}

/// Whether the last byte of a record whose header is whole is a zero: the disk never got the block in which it ends. No flipped bit makes
/// one of a line feed. The record behind it may be damaged too, so nothing else need show where this one ends.
fn ends_with_zero<B: Bytes>(bytes: &mut B, error: &ReadError) -> Result<bool, String> {
    let ReadError::Hash { length, offset, .. } = error else {
        return Ok(false);
    };
    let mut last = [1];
    let at = (offset + length).saturating_sub(1);
    Ok(bytes.read_at(&mut last, at)? == 1 && last == [0])
}

/// Whether the file ends within the line at `offset`. A record whose last line feed is there is whole, whatever length its header claims.
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

/// Whether a hole begins between `from` and `limit`, or, without a limit, the end of the file. A shorter run of zeros counts at the very end
/// of the file.
fn has_hole<B: Bytes>(bytes: &mut B, from: u64, limit: Option<u64>) -> Result<bool, String> {
    let mut room = vec![0; PIECE_BYTES];
    let mut at = from;
    let mut zeros = 0;
    loop {
        let got = bytes.read_at(&mut room, at)?;
        if got == 0 {
            return Ok(zeros > 0);
        }
        for byte in &room[..got] {
            zeros = if *byte == 0 { zeros + 1 } else { 0 };
            // No flipped bit makes a zero of the first or the last byte of a record.
            let is_edge = at == from || limit == Some(at + 1);
            if zeros >= HOLE_BYTES_MIN || zeros > 0 && is_edge {
                return Ok(true);
            }
            at += 1;
            if zeros == 0 && limit.is_some_and(|limit| at >= limit) {
                return Ok(false);
            }
        }
    }
}
