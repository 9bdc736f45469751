//! The way of a clustered database's index into `_Server`.
//!
//! The holder of the database sets the index and has `_Server` show it before it posts what follows
//! from the entry: inline if the mailbox of `_Server` is free, which wakes no thread, and otherwise
//! by a message. Invariant: it never waits for `_Server`.

use corvid_log::cluster::Index;
use corvid_service::applied_index::AppliedIndex;
use corvid_service::message::{Control, ToDatabase};

use crate::database::handle::DatabaseHandle;

/// See the module.
#[derive(Debug)]
pub(crate) struct ShownIndex {
    applied: AppliedIndex,
    server_db: DatabaseHandle,
}

impl ShownIndex {
    /// Shows the index of a database in this `_Server`.
    #[must_use]
    pub(crate) fn new(applied: AppliedIndex, server_db: DatabaseHandle) -> ShownIndex {
        ShownIndex { applied, server_db }
    }

    /// The entries through this one are applied.
    pub(crate) fn show(&self, index: Index) {
        if self.applied.set(index) {
            let show = Control::ShowIndex(self.applied.clone());
            let server_db = &self.server_db;
            server_db.send_or_execute(&mut vec![ToDatabase::Control(show)]);
        }
    }
}
