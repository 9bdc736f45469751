//! The disk: what this member's file has, which requests to it are in flight, and what happens when
//! it fails.
//!
//! | File | Owns |
//! |---|---|
//! | `log_file.rs` | requested records, stored records, and the messages that wait |
//! | `records.rs` | the text of records |
//! | `rewrite.rs` | a new file with a new snapshot |
//! | `repair.rs` | a damaged file, which a snapshot from the leader replaces |
//!
//! Invariant: only after the storage has answered does the algorithm hear that work is stored, and
//! does a message that promises a record leave. A failing file costs acknowledgements, never data:
//! the log in memory has everything that the file lacks, and is written again. The file records the
//! leader and the lists of members, but nothing here depends on who they are. This part must not
//! know elections or other members' snapshots.

pub(crate) mod log_file;
pub(crate) mod records;
pub(crate) mod repair;
pub(crate) mod rewrite;

use corvid_log::cluster::{Eid, Index, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, StoreError};
use corvid_rpc::Level;

use super::FileState;
use super::context::Context;
use crate::message::{PeerMessage, SnapshotMeta};
use crate::raft_node::{Outgoing, Work};
use log_file::{LogFile, Mark, Stored, Trouble};
use records::Records;
use repair::Repair;

/// The member's file and its snapshot.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) file: LogFile,
    snapshot: StoredSnapshot,
    /// Set while the file is damaged.
    repair: Option<Repair>,
    /// When to retry a rewrite that the file needs, ms.
    next_rewrite_ms: u64,
    /// Why the last write that failed did.
    error: Option<StoreError>,
}

/// The snapshot in the file; index 0 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredSnapshot {
    pub(crate) index: Index,
    pub(crate) term: Term,
    /// The id of the last entry with data that it includes.
    pub(crate) eid: Eid,
}

impl StoredSnapshot {
    /// Its description for a peer, without the length of its body. `servers` is the list as of its
    /// index.
    pub(crate) fn meta(self, servers: &Servers, timer_ms: u64) -> SnapshotMeta {
        SnapshotMeta {
            index: self.index,
            term: self.term,
            eid: self.eid,
            servers: servers.clone(),
            election_timer_ms: timer_ms,
            body_bytes: 0,
        }
    }
}

impl Disk {
    pub(crate) fn new(file: LogFile, snapshot: StoredSnapshot, repair: Option<Repair>) -> Disk {
        Disk {
            file,
            snapshot,
            repair,
            next_rewrite_ms: u64::MAX,
            error: None,
        }
    }

    pub(crate) fn deadline_ms(&self) -> u64 {
        let repair = self.repair.as_ref().map_or(u64::MAX, Repair::next_ms);
        self.file
            .deadline_ms()
            .min(self.next_rewrite_ms)
            .min(repair)
    }

    /// The snapshot in the file.
    pub(crate) fn snapshot(&self) -> StoredSnapshot {
        self.snapshot
    }

    /// Whether the file has the contents of a member.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshot.index > Index(0)
    }

    /// Whether the file is damaged and not replaced yet.
    pub(crate) fn is_repairing(&self) -> bool {
        self.repair.is_some()
    }

    /// Whether the file accepts nothing until it is rewritten.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.file.trouble == Trouble::Poisoned
    }

    /// Whether the file accepts no appends at present.
    pub(crate) fn is_in_trouble(&self) -> bool {
        self.file.trouble != Trouble::None
    }

    /// Whether a new file is being written.
    pub(crate) fn is_rewriting(&self) -> bool {
        self.file.rewriting.is_some()
    }

    /// The state for operators.
    pub(crate) fn state(&self, cx: &Context) -> FileState {
        if self.is_repairing() {
            return FileState::Damaged;
        }
        if let Some(failure) = &cx.failure {
            return failure.file_state();
        }
        match self.file.trouble {
            Trouble::None => FileState::Intact,
            Trouble::Failed { .. } => FileState::Failing,
            Trouble::Poisoned => FileState::Poisoned,
        }
    }

    /// Why the file takes no records at present, in the operating system's words; `None`: it does.
    pub(crate) fn error(&self) -> Option<&str> {
        let error = self.error.as_ref().filter(|_| self.is_in_trouble())?;
        Some(&error.io_error)
    }

    /// Requests the records of this work. The caller sends the messages that may leave now, and
    /// then tells the algorithm the number.
    pub(crate) fn store(&mut self, cx: &mut Context, work: Work) -> Stored {
        let mut requests = Vec::new();
        let stored = self.file.store(work, &cx.node, &mut requests);
        cx.store(requests);
        stored
    }

    /// The storage has stored records up to this position. Returns the messages that waited for
    /// them; `None` if the answer is for requests that were abandoned.
    pub(crate) fn answer(
        &mut self,
        cx: &mut Context,
        position: LogPosition,
    ) -> Option<Vec<(Sid, Outgoing)>> {
        if let Trouble::Failed { .. } = self.file.trouble {
            // If no retry is in flight, the answer is older than the failure.
            if !self.file.is_waiting() {
                return None;
            }
            self.file.trouble = Trouble::None;
            let text =
                "writes to the file succeed again; this member has stored the missing records";
            cx.log(Level::Info, text.to_owned());
        }
        let stored = self.file.release(position);
        if let Some(number) = stored.number {
            cx.node.stored(number);
        }
        Some(stored.messages)
    }

    /// Requests records that were left out while the file was in trouble.
    pub(crate) fn catch_up(&mut self, cx: &mut Context) {
        let mut requests = Vec::new();
        let number = self.file.catch_up(&cx.node, &mut requests);
        cx.store(requests);
        if let Some(number) = number {
            cx.node.stored(number);
        }
    }

    /// Requests what a failed append has left out, if a retry is due.
    pub(crate) fn retry(&mut self, cx: &mut Context) {
        let mut requests = Vec::new();
        self.file.retry(cx.now_ms, &cx.node, &mut requests);
        cx.store(requests);
    }

    /// Requests records on which nothing waits.
    pub(crate) fn append(&mut self, cx: &mut Context, records: Records) {
        let mut requests = Vec::new();
        self.file.append(records, &mut requests);
        cx.store(requests);
    }

    /// An append has failed. Returns whether that is news; another member should lead then.
    pub(crate) fn fail_append(
        &mut self,
        cx: &mut Context,
        position: LogPosition,
        error: &StoreError,
    ) -> bool {
        if self.file.is_obsolete(position) {
            return false;
        }
        self.give_up_unswapped(cx);
        self.error = Some(error.clone());
        if let Some(failure) = &mut cx.failure {
            failure.forget_note();
        }
        if !self.file.fail(cx.now_ms) {
            return false;
        }
        let StoreError { details, io_error } = error;
        cx.log(
            Level::Error,
            format!(
                "{details}: {io_error}; this member acknowledges nothing until writes to its file \
                 succeed again, and keeps retrying: check the disk"
            ),
        );
        true
    }

    /// Writes the note of a failure. If the file accepts no record now or is being replaced, a
    /// later turn tries again.
    pub(crate) fn note_failure(&mut self, cx: &mut Context) {
        let is_ready = !self.is_in_trouble() && !self.is_rewriting();
        let failure = cx.failure.as_mut().filter(|_| is_ready);
        if let Some(records) = failure.and_then(super::failure::Failure::take_note) {
            self.append(cx, records);
        }
    }

    /// Logs that the file is damaged, if it is.
    pub(crate) fn log_repair(&self, cx: &mut Context) {
        if let Some(repair) = &self.repair {
            repair.log_begin(cx);
        }
    }

    /// Asks for a snapshot to replace a damaged file, if it is time.
    pub(crate) fn repair_time(&mut self, cx: &mut Context, is_receiving: bool) {
        if let Some(repair) = &mut self.repair {
            repair.ask(cx, is_receiving);
        }
    }

    /// A connection is up: a member with a damaged file need not wait any longer.
    pub(crate) fn ask_for_repair(&mut self, cx: &mut Context, is_receiving: bool) {
        if let Some(repair) = &mut self.repair {
            repair.ask_now(cx, is_receiving);
        }
    }

    /// Whether the state of the file lets this member handle a message.
    pub(crate) fn heeds(&self, message: &PeerMessage) -> bool {
        !self.is_repairing() || repair::concerns_repair(message)
    }

    /// Whether a snapshot has everything that this member may have acknowledged and lost.
    pub(crate) fn is_enough(&self, meta: &SnapshotMeta) -> bool {
        self.repair.as_ref().is_none_or(|it| it.is_enough(meta))
    }

    /// The file has been replaced: it holds this snapshot from the leader, this term and vote, and
    /// nothing else.
    pub(crate) fn replace(
        &mut self,
        cx: &mut Context,
        snapshot: StoredSnapshot,
        hard: (Term, Option<Sid>),
    ) {
        if let Some(rewriting) = self.file.rewriting.take() {
            // The rewrite may have begun during the installation. Nothing else would end it, and
            // the next rewrite waits for its end.
            self.give_up_rewrite(cx, &rewriting);
        }
        if let Some(repair) = self.repair.take() {
            repair.complete(cx, snapshot.index);
        }
        // The log in memory has no entry with the snapshot's index and term, so the library drops
        // it.
        self.file.restart(Mark {
            hard,
            last: snapshot.index,
            commit: snapshot.index,
        });
        self.take_snapshot(snapshot);
    }

    /// The file has another snapshot.
    fn take_snapshot(&mut self, snapshot: StoredSnapshot) {
        // An older one would bring back a state that later, already dropped entries have changed.
        assert!(
            snapshot.index >= self.snapshot.index,
            "snapshot {} replaces snapshot {}",
            snapshot.index,
            self.snapshot.index
        );
        self.snapshot = snapshot;
    }
}

#[cfg(test)]
mod tests {
    use super::rewrite::Made;
    use super::*;
    use crate::member::Output;
    use crate::member::context::fixture::{self, list, sid};
    use corvid_data::Uuid;

    /// A file with a snapshot of entry 8, and entries up to 10.
    fn disk() -> Disk {
        let mark = Mark {
            hard: (Term(3), None),
            last: Index(10),
            commit: Index(10),
        };
        let file = LogFile::new(sid(1), true, LogPosition::OPENING, mark);
        let snapshot = StoredSnapshot {
            index: Index(8),
            term: Term(2),
            eid: Eid(Uuid::ZERO),
        };
        Disk::new(file, snapshot, None)
    }

    /// Whether a snapshot of this entry is written to a new file.
    fn is_written(disk: &mut Disk, cx: &mut Context, index: u64, is_installing: bool) -> bool {
        let made = Made {
            index: Index(index),
            eid: Eid(Uuid::ZERO),
            contents: None,
        };
        let servers = Some(list(&[1]));
        disk.compact(cx, made, (servers, 1000), None, is_installing);
        match cx.outbox.take() {
            Some(Output::Rewrite(_)) => true,
            Some(Output::RejectSnapshot(_)) => false,
            other => panic!("{other:?}"),
        }
    }

    /// The log in memory does not yield entries that the file's snapshot includes. A file with an
    /// older snapshot would lack the entries between the two.
    #[test]
    fn a_poisoned_file_is_not_written_again_with_an_older_snapshot() {
        let mut cx = fixture::leader_with_log(10);
        let mut disk = disk();
        assert!(disk.poison(&mut cx) && !disk.poison(&mut cx), "once");
        while cx.outbox.take().is_some() {}
        assert!(!is_written(&mut disk, &mut cx, 7, false));
        assert!(is_written(&mut disk, &mut cx, 8, false));
    }

    /// The database may finish a snapshot while one of the leader replaces the file.
    #[test]
    fn no_new_file_is_begun_while_a_snapshot_is_installed() {
        let mut cx = fixture::leader_with_log(10);
        let mut disk = disk();
        assert!(!is_written(&mut disk, &mut cx, 9, true));
        assert!(is_written(&mut disk, &mut cx, 9, false));
    }
}
