//! The file of a member: its records, written by the threads of [`Storage`], and the snapshots in it.
//!
//! Invariant: requests and replies of one kind keep their order. A snapshot that the database has made is kept until the member says that it
//! is written, or not wanted.

use bytes::Bytes;
use corvid_consensus::MemberEvent;
use corvid_consensus::member::Rewrite;
use corvid_consensus::message::SnapshotMeta;
use corvid_engine::Snapshot;
use corvid_log::cluster::{Cid, Index, Recovered};
use corvid_log::storage::{RewriteStage, StorageReply, StorageRequest, StoreError};
use corvid_shell::log_file::LogFile;

use super::handle::MemberHandle;
use crate::database::storage::{FileOwner, Storage};

/// See the module.
pub(crate) struct MemberFile {
    storage: Storage,
    /// The snapshot that the database has made, with the token of the command that asked for it.
    made: Option<(Option<u64>, Snapshot)>,
}

impl MemberFile {
    /// Starts the file's threads.
    ///
    /// # Errors
    /// Threads are exhausted.
    pub(super) fn open(
        file: LogFile,
        _recovered: &Recovered,
        owner: MemberHandle,
    ) -> std::io::Result<MemberFile> {
        let storage = Storage::new(file, FileOwner::Member(owner), None)?;
        Ok(MemberFile {
            storage,
            made: None,
        })
    }

    /// Carries out requests; returns the replies of those that are complete.
    pub(super) fn store(&mut self, requests: Vec<StorageRequest>) -> Vec<StorageReply> {
        self.storage.store(requests)
    }

    /// Observes a reply that the member is about to get. Returns the database's, if a file with its snapshot is in place or has failed.
    pub(super) fn observe_reply(&mut self, reply: &StorageReply) -> Option<MemberEvent> {
        self.storage.observe_reply(reply);
        let result = match reply {
            StorageReply::Rewrite(_, Ok(RewriteStage::Lasting)) => Ok(()),
            StorageReply::Rewrite(_, Err(error)) => Err(error.clone()),
            _ => return None,
        };
        let (token, _) = self.made.take()?;
        Some(MemberEvent::Compacted { token, result })
    }

    /// Keeps a snapshot of the database.
    pub(super) fn keep_snapshot(&mut self, token: Option<u64>, snapshot: Snapshot) {
        self.made = Some((token, snapshot));
    }

    /// The member does not want the snapshot: nothing has changed since the last one, or it may not write one now.
    pub(super) fn reject_snapshot(&mut self) -> Option<MemberEvent> {
        let (token, _) = self.made.take()?;
        let result = Err(StoreError {
            details: "not storing a duplicate snapshot".to_owned(),
            io_error: String::new(),
        });
        Some(MemberEvent::Compacted { token, result })
    }

    /// Begins a new file with the snapshot of the database.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite) -> Vec<StorageReply> {
        vec![StorageReply::Rewrite(rewrite.number, Err(not_built()))]
    }

    /// Reads a part of the body of the snapshot in the file.
    pub(super) fn read_snapshot(
        &self,
        _index: Index,
        _offset: u64,
        _bytes_max: usize,
    ) -> Result<Bytes, StoreError> {
        Err(not_built())
    }

    /// Begins a new file for a snapshot of a peer.
    pub(super) fn begin_snapshot(&mut self, _meta: SnapshotMeta) {}

    /// Appends to the body of that snapshot; returns where it ends now.
    pub(super) fn write_snapshot(
        &mut self,
        _index: Index,
        _offset: u64,
        _bytes: &Bytes,
    ) -> Result<u64, StoreError> {
        Err(not_built())
    }

    /// Gives that file up.
    pub(super) fn abandon_snapshot(&mut self) {}

    /// Puts that file in place.
    pub(super) fn install_snapshot(
        &mut self,
        _snapshot: SnapshotMeta,
        _cid: Option<Cid>,
        _records: Vec<u8>,
    ) {
    }

    /// Begins to load the contents of the snapshot in the file; the owner gets [`ToMember::Loaded`](super::handle::ToMember::Loaded).
    pub(super) fn load_snapshot(&mut self, _index: Index) {}

    /// Completes all pending writes and closes the file.
    pub(super) fn close(self) {
        self.storage.close();
    }
}

fn not_built() -> StoreError {
    StoreError {
        details: "snapshots of members are not built yet".to_owned(),
        io_error: String::new(),
    }
}
