//! Publishes a clustered database's index in `_Server`.
//!
//! The holder of the database sets the index and has `_Server` show it before it posts anything
//! that follows from the entry. If the mailbox of `_Server` is free, `_Server` does that inline,
//! which wakes no thread; otherwise by a message. Invariant: the holder never waits for `_Server`.

use corvid_log::cluster::Index;
use corvid_service::applied_index::AppliedIndex;
use corvid_service::message::{Control, ToDatabase};

use crate::database::handle::DatabaseHandle;

/// The publisher of one database's applied index.
#[derive(Debug)]
pub(crate) struct ShownIndex {
    applied: AppliedIndex,
    server_db: DatabaseHandle,
}

impl ShownIndex {
    /// Publishes a database's index in this `_Server`.
    #[must_use]
    pub(crate) fn new(applied: AppliedIndex, server_db: DatabaseHandle) -> ShownIndex {
        ShownIndex { applied, server_db }
    }

    /// Records that the entries through this one are applied.
    pub(crate) fn show(&self, index: Index) {
        if self.applied.set(index) {
            let show = Control::ShowIndex(self.applied.clone());
            let server_db = &self.server_db;
            server_db.send_or_execute(&mut vec![ToDatabase::Control(show)]);
        }
    }
}
