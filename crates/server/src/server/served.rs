//! A served database, as the main thread knows it: its threads, its handles, its role.

use std::sync::Arc;
use std::thread::JoinHandle;

use corvid_disk::log_file::UnforcedName;
use corvid_reactor::mailbox::MailSender;
use corvid_service::applied_index::AppliedIndex;
use corvid_service::message::{Control, DatabaseId, ToDatabase};
use corvid_service::replication::SourceId;

use super::upstream::Upstream;
use crate::config::replication::ActiveBackup;
use crate::database::handle::DatabaseHandle;

/// A served database.
pub(super) struct ServedDatabase {
    pub(super) id: DatabaseId,
    /// The absolute name of the file, the relay's argument, or the database's own name.
    pub(super) name: String,
    /// The handle for shards.
    pub(super) handle: DatabaseHandle,
    pub(super) mailbox: Arc<MailSender<ToDatabase>>,
    pub(super) thread: JoinHandle<()>,
    /// Set if the name of the database's file cannot be synced.
    pub(super) unforced_name: UnforcedName,
    /// The thread that decides the database's commits, if it is clustered or a relay.
    pub(super) upstream: Option<Upstream>,
    /// The index that the database shows in `_Server`, if it is clustered.
    pub(super) applied: Option<AppliedIndex>,
    /// `None`: standalone, clustered or a relay.
    pub(super) replication: Option<ActiveBackup>,
    /// The connection to the database's source, and the source's remote, while the database is a
    /// backup.
    pub(super) source: Option<(SourceId, String)>,
}

impl ServedDatabase {
    /// Sends the database a message.
    pub(super) fn control(&self, control: Control) {
        // The database may have ended.
        let _ = self.mailbox.send(ToDatabase::Control(control));
    }
}
