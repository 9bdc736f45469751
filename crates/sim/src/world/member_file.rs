//! The simulated disk of a member's file, and the threads that write, check and load it, as queues.
//! [`corvid_service::member::MemberFile`] decides what they do, as in the server.
//!
//! Invariant: a check or a load that has begun is executed when the run chooses it, in any order.
//! Both cluster simulations use this module.

use std::sync::Arc;

use corvid_log::cluster::snapshot_header::is_snapshot_intact;
use corvid_log::cluster::{BodyLocation, Eid, Index, Sid};
use corvid_log::storage::{StorageReply, StorageRequest, StoreError};
use corvid_log::{DiskFile as _, LogWriter};
use corvid_service::member::{BodyPart, FileEffects, ReceptionNumber};

use crate::world::dice::Dice;
use crate::world::disk::{Handle, SimDisk};
use crate::world::storage::Storage;

/// The file of a member on simulated threads.
pub(crate) type MemberFile = corvid_service::member::MemberFile<FileThreads>;

/// The simulated threads of a member's file.
#[derive(Debug)]
pub(crate) struct FileThreads {
    storage: Storage,
    disk: Arc<SimDisk>,
    dice: Dice,
    checks: Vec<Check>,
    loads: Vec<Load>,
    /// Parts of a received body in flight to the disk.
    parts: Vec<BodyPart<Handle>>,
}

/// A snapshot in the file whose hash must be checked.
#[derive(Debug)]
struct Check {
    to: Sid,
    index: Index,
    file: Handle,
}

/// An installed snapshot whose contents must be loaded.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) index: Index,
    pub(crate) eid: Eid,
    pub(crate) source: Result<(Handle, BodyLocation), String>,
}

impl FileThreads {
    /// The threads of a file that was just opened.
    pub(crate) fn new(writer: LogWriter<SimDisk>, is_quick: bool, dice: Dice) -> FileThreads {
        let disk = writer.disk().clone();
        FileThreads {
            storage: Storage::new(writer, is_quick),
            disk,
            dice,
            checks: Vec::new(),
            loads: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Whether the disk thread has work.
    pub(crate) fn disk_has_work(&self) -> bool {
        self.storage.disk_has_work()
    }

    /// The disk thread takes a step.
    pub(crate) fn work_on_disk(&mut self, dice: &mut Dice) -> Vec<StorageReply> {
        self.storage.work_on_disk(dice)
    }

    /// Whether the rewrite thread has work.
    pub(crate) fn rewrite_has_work(&self) -> bool {
        self.storage.rewrite_has_work()
    }

    /// The rewrite thread takes a step.
    pub(crate) fn work_on_rewrite(&mut self) -> Option<StorageReply> {
        let (rewriter, reply) = self.storage.work_on_rewrite();
        let Some(mut rewriter) = rewriter else {
            return reply;
        };
        let end = self.storage.end();
        let outcome = rewriter.run(|| end, || true);
        self.storage.written(rewriter, outcome)
    }

    /// Whether a snapshot must be checked.
    pub(crate) fn has_check(&self) -> bool {
        !self.checks.is_empty()
    }

    /// Whether the contents of a snapshot must be loaded.
    pub(crate) fn has_load(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Whether a part of a received body is in flight to the disk.
    pub(crate) fn has_part(&self) -> bool {
        !self.parts.is_empty()
    }

    /// A random part of a received body reaches the disk, or fails to.
    pub(crate) fn take_part(&mut self) -> (ReceptionNumber, Result<(), StoreError>) {
        let chosen = self.dice.below(self.parts.len());
        let mut part = self.parts.remove(chosen);
        let outcome = part.file.write_back(part.offset, part.length);
        let outcome = outcome.map_err(|fault| StoreError {
            details: "received".to_owned(),
            io_error: fault.text,
        });
        (part.reception, outcome)
    }

    /// A random check of a snapshot ends. Returns the waiting peer, the snapshot, and whether it is
    /// intact.
    pub(crate) fn check(&mut self) -> (Sid, Index, Result<bool, String>) {
        let chosen = self.dice.below(self.checks.len());
        let Check { to, index, file } = self.checks.remove(chosen);
        let outcome = is_snapshot_intact(&file).map_err(|fault| fault.text);
        (to, index, outcome)
    }

    /// Takes a random snapshot that must be loaded.
    pub(crate) fn take_load(&mut self) -> Load {
        let chosen = self.dice.below(self.loads.len());
        self.loads.remove(chosen)
    }
}

impl FileEffects for FileThreads {
    type Disk = SimDisk;

    fn disk(&self) -> &Arc<SimDisk> {
        &self.disk
    }

    fn store(&mut self, requests: Vec<StorageRequest>) -> Vec<StorageReply> {
        self.storage.store(requests)
    }

    fn observe_reply(&mut self, reply: &StorageReply) {
        self.storage.answered(reply);
    }

    fn is_poisoned(&self) -> bool {
        self.storage.is_poisoned()
    }

    fn open_present(&self) -> Option<Handle> {
        Some(self.disk.open())
    }

    fn begin_check(&mut self, to: Sid, index: Index, file: Handle) -> bool {
        self.checks.push(Check { to, index, file });
        true
    }

    fn begin_load(
        &mut self,
        index: Index,
        eid: Eid,
        source: Result<(Handle, BodyLocation), String>,
    ) {
        self.loads.push(Load { index, eid, source });
    }

    fn begin_write_back(&mut self, part: BodyPart<Handle>) -> bool {
        let can_begin = self.dice.below(16) != 0;
        if can_begin {
            self.parts.push(part);
        }
        can_begin
    }

    fn draw(&mut self) -> u64 {
        self.dice.draw()
    }

    fn date_ms(&self) -> i64 {
        0
    }
}
