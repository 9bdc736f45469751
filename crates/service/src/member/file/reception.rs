//! The body of a peer's snapshot, on its way into a file of its own before it is installed.
//!
//! Parts are handed to the disk as they arrive ([`FileEffects::begin_write_back`]). The peer may
//! send more once the disk has them, so the disk sets the pace. Otherwise the page cache would
//! collect the body and write it all at once, delaying syncs of other files on the same disk.
//! Nothing received is promised to be durable (`corvid_log::cluster::ReceivedBody`).
//!
//! Invariant: at most one part is in flight; the bytes that arrive meanwhile form the next part.

use bytes::Bytes;
use corvid_consensus::Input;
use corvid_consensus::message::SnapshotMeta;
use corvid_log::DiskFile as _;
use corvid_log::cluster::{Index, ReceivedBody};
use corvid_log::storage::StoreError;

use super::MemberFile;
use super::effects::FileEffects;
use super::refusal::error_of;

/// Numbers the bodies that a member receives: a part of an earlier body may complete late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceptionNumber(pub u64);

/// A part of a body that is handed to the disk.
#[derive(Debug)]
pub struct BodyPart<H> {
    /// The body that the part belongs to.
    pub reception: ReceptionNumber,
    /// The body's file.
    pub file: H,
    /// Offset of the part in the file, bytes.
    pub offset: u64,
    /// Length of the part, bytes.
    pub length: u64,
}

/// A body that is being received.
#[derive(Debug)]
pub(super) struct Reception<E: FileEffects> {
    number: ReceptionNumber,
    pub(super) meta: SnapshotMeta,
    pub(super) body: ReceivedBody<E::Disk>,
    /// End of the bytes that the disk has or that are on their way to it.
    handed: u64,
    is_under_way: bool,
}

impl<E: FileEffects> MemberFile<E> {
    /// Starts a file for the body of a peer's snapshot; a body in progress is dropped.
    pub fn begin_snapshot(&mut self, meta: SnapshotMeta) {
        self.receiving = None;
        self.last_reception.0 += 1;
        // The first write reports and logs the failure.
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

    /// Appends to the body of that snapshot. Returns the input for the member, unless the disk must
    /// have the bytes first ([`MemberFile::written_back`]).
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
            // If no thread can hand the bytes on, the peer is told at once: it must not wait for a
            // reply that never comes.
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
            // Bytes that arrived meanwhile are acknowledged when the disk has them, or now if no
            // thread can hand them on.
            Ok(()) if self.hand_on() => Ok(handed),
            Ok(()) => Ok(arrived),
            Err(error) => {
                self.receiving = None;
                Err(error)
            }
        };
        Some(Input::SnapshotWritten { index, end })
    }

    /// Hands the bytes that have arrived to the disk. Returns false if there are none or no thread
    /// can be started; the sync of the new file then writes them.
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
        // Only now: if no thread could be started, the next attempt hands on the same bytes.
        receiving.handed = end;
        receiving.is_under_way = true;
        true
    }

    /// Abandons the body that is being received.
    pub fn abandon_snapshot(&mut self) {
        self.receiving = None;
    }
}
