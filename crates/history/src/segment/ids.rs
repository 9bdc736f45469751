//! The table of a segment's ids: how the id of each transaction begins, in the order of the text.
//! With it the file that has a commit is found among many without decompressing them.
//!
//! Four bytes a transaction are enough to rule out almost every other one; the record itself
//! decides. The table is read in pieces and never held, because it is only needed for commits that
//! are asked for by their ids.

use sha1::{Digest, Sha1};

use super::SegmentError;
use super::index::{SKIPPABLE_BYTES, SKIPPABLE_MAGIC};
use crate::read_at::{ReadAt, read_exactly};
use crate::scan::{ID_BEGINNING_BYTES, IdBeginning, Role, Seen};

/// Bytes of one read of the table.
const READ_BYTES: usize = 64 * 1024;

/// Where the table is in a segment, as the index knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdTable {
    /// Number of its entries: that of the transactions, or 0 if the segment has no table.
    pub entries: u64,
    /// SHA-1 of its entries.
    pub sha1: [u8; 20],
}

/// The ids of a text that is being read.
#[derive(Debug)]
pub(super) struct Ids {
    /// `None` once a transaction's id could not be told.
    entries: Option<Vec<u8>>,
}

impl Ids {
    /// The ids of nothing.
    pub(super) fn new() -> Ids {
        Ids {
            entries: Some(Vec::new()),
        }
    }

    /// Adds a record.
    pub(super) fn add(&mut self, seen: &Seen) {
        if seen.role != Role::Transaction {
            return;
        }
        match (seen.id, &mut self.entries) {
            (Some(id), Some(entries)) => entries.extend_from_slice(&id),
            _ => self.entries = None,
        }
    }

    /// The statement of the index about them.
    pub(super) fn table(&self) -> IdTable {
        let entries = self.entries.as_deref().unwrap_or_default();
        if entries.is_empty() {
            return IdTable::default();
        }
        IdTable {
            entries: (entries.len() / ID_BEGINNING_BYTES) as u64,
            sha1: Sha1::digest(entries).into(),
        }
    }

    /// Appends the table as a skippable frame, if there is one.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), SegmentError> {
        let entries = self.entries.as_deref().unwrap_or_default();
        if entries.is_empty() {
            return Ok(());
        }
        out.extend_from_slice(&frame_header(entries.len() as u64)?);
        out.extend_from_slice(entries);
        Ok(())
    }
}

impl IdTable {
    /// Bytes of the table in the segment.
    pub(super) fn bytes(&self) -> Option<u64> {
        if self.entries == 0 {
            return Some(0);
        }
        self.entries
            .checked_mul(ID_BEGINNING_BYTES as u64)?
            .checked_add(SKIPPABLE_BYTES as u64)
    }

    /// The numbers of the transactions whose id begins like this, counting from 0. The table begins
    /// at offset `start` of the file.
    ///
    /// # Errors
    /// Reading failed, or the table is damaged.
    pub(super) fn find(
        &self,
        file: &impl ReadAt,
        start: u64,
        wanted: IdBeginning,
    ) -> Result<Vec<u64>, SegmentError> {
        let damaged = SegmentError::Index("table of ids");
        let mut header = [0; SKIPPABLE_BYTES];
        read_exactly(file, &mut header, start).map_err(SegmentError::Read)?;
        let bytes = self.entries.saturating_mul(ID_BEGINNING_BYTES as u64);
        if header != frame_header(bytes)? {
            return Err(damaged);
        }
        let mut found = Vec::new();
        let mut hash = Sha1::new();
        let mut room = vec![0; READ_BYTES];
        let mut number = 0;
        while number < self.entries {
            let left = (self.entries - number).saturating_mul(ID_BEGINNING_BYTES as u64);
            let length = usize::try_from(left).map_or(READ_BYTES, |left| left.min(READ_BYTES));
            let offset = start + SKIPPABLE_BYTES as u64 + number * ID_BEGINNING_BYTES as u64;
            read_exactly(file, &mut room[..length], offset).map_err(SegmentError::Read)?;
            hash.update(&room[..length]);
            let (entries, _) = room[..length].as_chunks::<ID_BEGINNING_BYTES>();
            for entry in entries {
                if *entry == wanted {
                    found.push(number);
                }
                number += 1;
            }
        }
        if <[u8; 20]>::from(hash.finalize()) == self.sha1 {
            Ok(found)
        } else {
            Err(damaged)
        }
    }
}

/// The beginning of the skippable frame of a table of so many bytes.
fn frame_header(bytes: u64) -> Result<[u8; SKIPPABLE_BYTES], SegmentError> {
    let too_large = |_| SegmentError::Index("too large");
    let bytes = u32::try_from(bytes).map_err(too_large)?;
    let mut header = [0; SKIPPABLE_BYTES];
    header[..4].copy_from_slice(&SKIPPABLE_MAGIC.to_le_bytes());
    header[4..].copy_from_slice(&bytes.to_le_bytes());
    Ok(header)
}
