//! The file of a database as its service sees it: records of commits on their way there, new files
//! in its place, its growth, its error.
//!
//! Invariants. Positions only grow, one for each record. Requests to the storage leave in the order
//! in which they were made, and a record that leaves is complete (`file/records.rs`). There is at
//! most one new file at a time (`file/rewrites.rs`). The file knows no session and no table, and
//! makes no reply: it is given deltas and snapshots, and returns positions, requests and what a
//! stage of a new file means. In the pending queue it only reads the lengths of requests and
//! notes those of long records.
//!
//! A clustered database has positions and no file here: the file is its member's.

mod records;
mod rewrites;

use corvid_log::storage::{LogPosition, StorageRequest, StoreError};

use super::Now;
use crate::barrier::Activity;
use crate::message::FileReport;
use crate::storage::Growth;
use records::Records;
use rewrites::Rewrites;

pub(super) use rewrites::Progress;

/// The file of one database.
pub(super) struct DatabaseFile {
    /// How the file has grown, if there is a file.
    growth: Option<Growth>,
    /// Modified rows are recorded as column differences.
    is_diff: bool,
    /// Records name the clients of their commits.
    names_clients: bool,
    records: Records,
    rewrites: Rewrites,
    /// For the storage, in order.
    requests: Vec<StorageRequest>,
    next_position: LogPosition,
    /// Why the last commit could not be stored.
    error: Option<StoreError>,
}

impl DatabaseFile {
    pub(super) fn new(growth: Option<Growth>, is_diff: bool) -> DatabaseFile {
        DatabaseFile {
            growth,
            is_diff,
            names_clients: false,
            records: Records::default(),
            rewrites: Rewrites::default(),
            requests: Vec::new(),
            next_position: LogPosition(1),
            error: None,
        }
    }

    /// Reports whether a new file is under way.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        let DatabaseFile {
            growth: _,
            is_diff: _,
            names_clients: _,
            // Each of these is of a pending commit, which reports itself.
            records: _,
            rewrites,
            // The pump takes them in the same batch.
            requests: _,
            next_position: _,
            error: _,
        } = self;
        rewrites.report_activity(activity);
    }

    /// Whether there is a file.
    pub(super) fn exists(&self) -> bool {
        self.growth.is_some()
    }

    /// Whether modified rows are recorded as column differences.
    pub(super) fn is_diff(&self) -> bool {
        self.is_diff
    }

    /// Has modified rows recorded as column differences from now on.
    pub(super) fn enable_column_diff(&mut self) {
        self.is_diff = true;
    }

    /// Whether records name the clients of their commits.
    pub(super) fn names_clients(&self) -> bool {
        self.names_clients
    }

    /// Has records name the clients of their commits from now on, or not.
    pub(super) fn name_clients(&mut self, names_clients: bool) {
        self.names_clients = names_clients;
    }

    /// The position of the next record.
    pub(super) fn take_position(&mut self) -> LogPosition {
        let position = self.next_position;
        self.next_position = LogPosition(position.0 + 1);
        position
    }

    /// Why the last commit could not be stored, if it could not.
    pub(super) fn error(&self) -> Option<&StoreError> {
        self.error.as_ref()
    }

    /// Commits are stored again.
    pub(super) fn clear_error(&mut self) {
        self.error = None;
    }

    /// Commits cannot be stored, or not be applied.
    pub(super) fn set_error(&mut self, error: StoreError) {
        self.error = Some(error);
    }

    /// Whether there are requests to the storage.
    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether the file has grown so much that it is to be compacted.
    pub(super) fn is_due(&self, now: Now) -> bool {
        self.growth.is_some_and(|growth| growth.is_due(now.mono_ms))
    }

    /// When [`DatabaseFile::is_due`] may change without a commit, monotonic ms.
    pub(super) fn next_check_ms(&self, now: Now) -> Option<u64> {
        self.growth?.next_check_ms(now.mono_ms)
    }

    /// Checks what belongs together, between two inputs. O(requests to the storage): for
    /// simulations.
    ///
    /// # Panics
    /// It contradicts itself.
    pub(super) fn check(&self) {
        self.records.check(&self.requests);
        self.rewrites.check();
    }

    /// The state of the file, if there is one.
    pub(super) fn report(&self) -> Option<FileReport> {
        let (size, base, records) = self.growth?.figures();
        Some(FileReport {
            size,
            base,
            records,
            error: self.error.as_ref().map(|error| error.io_error.clone()),
            is_rewriting: !self.rewrites.is_idle(),
        })
    }
}
