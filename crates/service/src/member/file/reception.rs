//! The body of a peer's snapshot on its way into a file of its own, before it is installed.
//!
//! Parts of it are handed to the disk as they arrive ([`FileEffects::begin_write_back`]), and the peer learns that it may send more when the disk has
//! them. So the pace is the disk's: bytes do not pile up in the cache of the system until it writes them all at once, and syncs of other files
//! on the same disk wait. Nothing of it is promised (`corvid_log::cluster::ReceivedBody`).
//!
//! Invariant: one part is under way at a time. The bytes that arrive meanwhile are the next one.

use bytes::Bytes;
use corvid_consensus::Input;
use corvid_consensus::message::SnapshotMeta;
use corvid_log::DiskFile as _;
use corvid_log::cluster::{Index, ReceivedBody};
use corvid_log::storage::StoreError;

use super::MemberFile;
use super::effects::FileEffects;
use super::refusal::error_of;

/// Numbers the bodies that a member receives: a part of an earlier one may end late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceptionNumber(pub u64);

/// A part of a body that is handed to the disk.
#[derive(Debug)]
pub struct BodyPart<H> {
    /// The body.
    pub reception: ReceptionNumber,
    /// Its file.
    pub file: H,
    /// Where the part begins.
    pub offset: u64,
    /// Its length, bytes.
    pub length: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Reception<E: FileEffects> {
    number: ReceptionNumber,
    pub(super) meta: SnapshotMeta,
    pub(super) body: ReceivedBody<E::Disk>,
    /// Where the bytes end that the disk has, or that are on their way to it.
    handed: u64,
    is_under_way: bool,
}

impl<E: FileEffects> MemberFile<E> {
    /// Begins a file for the body of a peer's snapshot.
    pub fn begin_snapshot(&mut self, meta: SnapshotMeta) {
        self.receiving = None;
        self.last_reception.0 += 1;
        // A failure is reported, and logged, by the first write.
        if let Ok(body) = ReceivedBody::begin(self.effects.disk(), &meta) {
            self.receiving = Some(Reception {
                number: self.last_reception,
                meta,
                body,
                handed: 0,
                is_under_way: false,
            });
        }
    }

    /// Appends to the body of that snapshot. The input for the member follows when the disk has the bytes ([`MemberFile::written_back`]), unless it is
    /// returned.
    pub fn write_snapshot(&mut self, index: Index, offset: u64, bytes: &Bytes) -> Option<Input> {
        let receiving = self
            .receiving
            .as_mut()
            .filter(|receiving| receiving.meta.index == index);
        let Some(receiving) = receiving else {
            let end = Err(error_of("the snapshot that is received cannot be stored"));
            return Some(Input::SnapshotWritten { index, end });
        };
        match receiving.body.write(offset, bytes) {
            Ok(_) if receiving.is_under_way => None,
            Ok(end) if !self.hand_on() => {
                let end = Ok(end);
                Some(Input::SnapshotWritten { index, end })
            }
            Ok(_) => None,
            Err(error) => {
                self.receiving = None;
                let end = Err(error.into());
                Some(Input::SnapshotWritten { index, end })
            }
        }
    }

    /// The disk has a part of this body, or has failed. Returns the input for the member.
    pub fn written_back(
        &mut self,
        number: ReceptionNumber,
        outcome: Result<(), StoreError>,
    ) -> Option<Input> {
        let receiving = self.receiving.as_mut()?;
        if receiving.number != number {
            return None;
        }
        assert!(receiving.is_under_way, "a part is handed to the disk once");
        receiving.is_under_way = false;
        let (index, handed, arrived) =
            (receiving.meta.index, receiving.handed, receiving.body.end());
        let end = match outcome {
            // The bytes that have arrived since are told when the disk has them, or now if nobody can hand them to it.
            Ok(()) if self.hand_on() => Ok(handed),
            Ok(()) => Ok(arrived),
            Err(error) => {
                self.receiving = None;
                Err(error)
            }
        };
        Some(Input::SnapshotWritten { index, end })
    }

    /// Hands the bytes that have arrived to the disk. False when there are none, or nobody can do it: the syncs of the new file bring them to disk then.
    fn hand_on(&mut self) -> bool {
        let Some(receiving) = &mut self.receiving else {
            return false;
        };
        assert!(!receiving.is_under_way, "one part is under way at a time");
        let (file, end) = (receiving.body.file().0.share(), receiving.body.end());
        assert!(
            receiving.handed <= end,
            "the disk is handed bytes that have arrived"
        );
        let Ok(file) = file else {
            return false;
        };
        let part = BodyPart {
            reception: receiving.number,
            file,
            offset: receiving.handed,
            length: end - receiving.handed,
        };
        if part.length == 0 || !self.effects.begin_write_back(part) {
            return false;
        }
        receiving.handed = end;
        receiving.is_under_way = true;
        true
    }

    /// Gives that file up.
    pub fn abandon_snapshot(&mut self) {
        self.receiving = None;
    }
}
