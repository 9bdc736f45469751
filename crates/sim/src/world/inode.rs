//! The bytes of one simulated file: those on the medium, and those that the kernel has not written
//! there yet.
//!
//! Invariant: `current` is the content that a reader sees. As long as no sync has failed, it equals
//! the medium plus all changes in order. After a failed sync some changes count as clean although
//! they are not on the medium: they are still readable, and no later sync saves them.

use crate::world::dice::Dice;

/// Bytes that a medium writes atomically. Real media write 512 or 4096; a simulation's records are
/// small.
const SECTOR_BYTES: usize = 64;

/// A change that is not on the medium yet.
#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Cut { length: usize },
}

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    medium: Vec<u8>,
    changes: Vec<Change>,
    current: Vec<u8>,
    /// A sync has failed: readable bytes may be missing on the medium.
    pub(super) is_doubtful: bool,
    /// Whether bits have flipped.
    pub(super) is_rotten: bool,
    /// The flipped bits of bytes that the medium had: offsets and bits.
    rotten: Vec<(usize, usize)>,
    /// Number of open handles.
    pub(super) handles: usize,
}

impl Inode {
    /// A file whose bytes are all on the medium.
    pub(super) fn lasting(bytes: Vec<u8>) -> Inode {
        Inode {
            medium: bytes.clone(),
            current: bytes,
            ..Inode::default()
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.current
    }

    /// The bytes that are on the medium in any case.
    pub(super) fn lasting_bytes(&self) -> &[u8] {
        &self.medium
    }

    /// The same bytes, before any of them rotted.
    pub(super) fn intact_lasting_bytes(&self) -> Vec<u8> {
        let mut bytes = self.medium.clone();
        for (position, bit) in &self.rotten {
            if let Some(byte) = bytes.get_mut(*position) {
                *byte ^= 1 << bit;
            }
        }
        bytes
    }

    /// Whether the medium has every change.
    pub(super) fn is_synced(&self) -> bool {
        self.changes.is_empty() && !self.is_doubtful
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let change = Change::Write {
            offset,
            bytes: bytes.to_vec(),
        };
        change.apply(&mut self.current);
        self.changes.push(change);
    }

    pub(super) fn cut(&mut self, length: usize) {
        let change = Change::Cut { length };
        change.apply(&mut self.current);
        self.changes.push(change);
    }

    /// A sync succeeds: all dirty bytes, and the length, are on the medium now.
    pub(super) fn sync(&mut self) {
        for change in self.changes.drain(..) {
            change.apply(&mut self.medium);
        }
        self.medium.resize(self.current.len(), 0);
    }

    /// A sync fails: some changes reach the medium, the others are dropped, and the kernel counts
    /// all of them as clean.
    pub(super) fn fail_sync(&mut self, dice: &mut Dice) {
        self.is_doubtful = true;
        for change in self.changes.drain(..) {
            if dice.chance(40) {
                change.apply(&mut self.medium);
            }
        }
    }

    /// Power is lost: the medium remains, with some of the changes, whole or in part.
    pub(super) fn lose_power(&mut self, dice: &mut Dice) {
        let changes = std::mem::take(&mut self.changes);
        let length = self.medium.len();
        let has_cut = changes
            .iter()
            .any(|change| matches!(change, Change::Cut { .. }));
        match dice.below(4) {
            // All changes, as if the kernel had just written everything back.
            0 => {
                for change in &changes {
                    change.apply(&mut self.medium);
                }
            }
            // A prefix of the changes in the order of write-back, the last one torn.
            1 => {
                let kept = dice.below(changes.len() + 1);
                for change in &changes[..kept] {
                    change.apply(&mut self.medium);
                }
                if let Some(torn) = changes.get(kept) {
                    torn.apply_prefix(&mut self.medium, dice);
                }
            }
            // Any of the changes, whole or in part.
            _ => {
                for change in &changes {
                    match dice.below(4) {
                        0 | 1 => change.apply(&mut self.medium),
                        2 => change.apply_sectors(&mut self.medium, dice),
                        _ => change.grow(&mut self.medium, dice),
                    }
                }
                if !has_cut && self.medium.len() > length && dice.chance(25) {
                    let grown = self.medium.len() - length;
                    self.medium.truncate(length + dice.below(grown));
                }
            }
        }
        self.drop_cache();
    }

    /// The bytes that a failed sync seemed to have lost have reached the medium after all.
    pub(super) fn recover(&mut self) {
        self.changes.clear();
        self.medium.clone_from(&self.current);
        self.is_doubtful = false;
    }

    /// The cache is dropped: readers see the medium's content.
    pub(super) fn drop_cache(&mut self) {
        for change in self.changes.drain(..) {
            change.apply(&mut self.medium);
        }
        self.current.clone_from(&self.medium);
        self.is_doubtful = false;
    }

    /// Flips one bit of byte `position`, both on the medium and in pending changes: otherwise
    /// write-back would heal it.
    pub(super) fn flip(&mut self, position: usize, bit: usize) {
        let bit = bit % 8;
        self.is_rotten = true;
        if position < self.medium.len() {
            self.rotten.push((position, bit));
        }
        let flip = |byte: &mut u8| *byte ^= 1 << bit;
        for bytes in [&mut self.medium, &mut self.current] {
            bytes.get_mut(position).into_iter().for_each(flip);
        }
        for change in &mut self.changes {
            if let Change::Write { offset, bytes } = change
                && let Some(within) = position.checked_sub(*offset)
            {
                bytes.get_mut(within).into_iter().for_each(flip);
            }
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write {
                offset,
                bytes: written,
            } => put(bytes, *offset, written),
            Change::Cut { length } => bytes.truncate(*length),
        }
    }

    fn apply_prefix(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        if let Change::Write {
            offset,
            bytes: written,
        } = self
        {
            let kept = dice.below(written.len() + 1);
            put(bytes, *offset, &written[..kept]);
        }
    }

    /// Some sectors of the change reach the medium.
    fn apply_sectors(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        if let Change::Write {
            offset,
            bytes: written,
        } = self
        {
            let mut from = 0;
            while from < written.len() {
                let to_boundary = SECTOR_BYTES - (offset + from) % SECTOR_BYTES;
                let to = written.len().min(from + to_boundary);
                if dice.chance(60) {
                    put(bytes, offset + from, &written[from..to]);
                }
                from = to;
            }
        }
    }

    /// The change does not reach the medium, but may extend the file.
    fn grow(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        if let Change::Write {
            offset,
            bytes: written,
        } = self
        {
            let end = offset + written.len();
            if bytes.len() < end && dice.chance(50) {
                bytes.resize(end, 0);
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    let end = offset + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_saves_written_bytes_and_a_failed_one_does_not() {
        let mut dice = Dice::new(1);
        for _ in 0..50 {
            let mut file = Inode::lasting(b"old".to_vec());
            file.write(3, b" and new");
            file.sync();
            file.lose_power(&mut dice);
            assert_eq!(file.bytes(), b"old and new");
        }
        let mut lost = 0;
        for _ in 0..50 {
            let mut file = Inode::lasting(b"old".to_vec());
            file.write(3, b" and new");
            file.fail_sync(&mut dice);
            assert_eq!(file.bytes(), b"old and new");
            file.sync();
            file.lose_power(&mut dice);
            lost += usize::from(file.bytes() != b"old and new");
        }
        assert!(lost > 10, "{lost}");
    }

    #[test]
    fn rotten_byte_is_not_healed_by_writing_it_back() {
        let mut dice = Dice::new(3);
        for _ in 0..50 {
            let mut file = Inode::lasting(b"o".to_vec());
            file.write(1, b"ab");
            file.flip(2, 0);
            file.lose_power(&mut dice);
            assert_ne!(file.bytes().get(2), Some(&b'b'));
        }
    }

    #[test]
    fn unsynced_bytes_are_kept_lost_torn_and_reordered() {
        let mut seen = std::collections::BTreeSet::new();
        let mut dice = Dice::new(2);
        for _ in 0..200 {
            let mut file = Inode::lasting(b"o".to_vec());
            file.write(1, b"ab");
            file.write(3, b"cd");
            file.lose_power(&mut dice);
            seen.insert(file.bytes().to_vec());
        }
        for expected in [&b"o"[..], b"oa", b"oab", b"oabcd", b"o\0\0cd"] {
            assert!(seen.contains(expected), "{expected:?}");
        }
    }
}
