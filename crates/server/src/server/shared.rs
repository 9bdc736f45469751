//! The state that the threads of a server share, and the main thread's way to the shards.
//!
//! Invariant: shards learn of locks that have moved before they learn of the databases. This part
//! does not know what a database is for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_data::HashSeed;
use corvid_monitor::SessionId;
use corvid_reactor::shard::{ShardHandle, Shards};
use corvid_service::frontend::shard_of;
use corvid_service::locks::Locks;
use corvid_service::message::ToShard;
use corvid_service::schema_epoch::{SchemaEpoch, SchemaEpochs};
use crossbeam_channel::Receiver;

use super::databases::Databases;
use crate::liveness::LivenessRegistry;
use crate::main_handle::{MainHandle, MainMessage};
use crate::shard::ShardMessage;

/// The state that the threads of a server share.
pub(super) struct Shared {
    pub(super) shards: Arc<Shards<ShardMessage>>,
    pub(super) locks: Arc<Mutex<Locks>>,
    /// The handle with which other threads send to the main thread.
    pub(super) main: MainHandle,
    /// The messages that they have sent.
    pub(super) inbox: Receiver<MainMessage>,
    pub(super) liveness_registry: Arc<LivenessRegistry>,
    pub(super) epochs: SchemaEpochs,
    /// The hash seed of all databases.
    pub(super) hash_seed: HashSeed,
}

impl Shared {
    pub(super) fn locks(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard that serves a session.
    pub(super) fn shard_of(&self, session: SessionId) -> Option<&ShardHandle<ShardMessage>> {
        self.shards.handles().get(usize::from(shard_of(session)))
    }

    /// The shard that connects to the sources of backups.
    pub(super) fn source_shard(&self) -> &ShardHandle<ShardMessage> {
        &self.shards.handles()[0]
    }

    /// Sends a message to every shard.
    pub(super) fn to_shards(&self, message: impl Fn() -> ToShard) {
        for shard in self.shards.handles() {
            shard.post(ShardMessage::Service(message()));
        }
    }

    /// Has shards find these databases from now on.
    pub(super) fn publish(&self, databases: &Databases, is_exiting: bool) {
        // Locks are placed before the shards learn of the databases: a shard tells a new relay
        // about its sessions' lock claims at that moment.
        let relay = databases.first_relay();
        let is_served = |id| databases.is_served(id);
        let notified = self.locks().set_relay(relay, is_served);
        let (mut directory, handles) = databases.directory();
        if is_exiting {
            directory.set_exiting();
        }
        let directory = Arc::new(directory);
        for shard in self.shards.handles() {
            shard.post(ShardMessage::Databases(directory.clone(), handles.clone()));
        }
        for session in notified {
            if let Some(shard) = self.shard_of(session) {
                let notification = ToShard::LockNotifications(session);
                shard.post(ShardMessage::Service(notification));
            }
        }
    }

    /// Closes the sessions that began before this change of the served databases and are not aware
    /// of changes. A session that begins later sees only the new set of databases.
    pub(super) fn disconnect_unaware(&self, reason: &str) {
        self.disconnect_unaware_before(self.epochs.advance(), reason);
    }

    /// As [`Shared::disconnect_unaware`], for a change that is known by its epoch.
    pub(super) fn disconnect_unaware_before(&self, epoch: SchemaEpoch, reason: &str) {
        let reason: Arc<str> = Arc::from(reason);
        self.to_shards(|| ToShard::DisconnectUnaware(reason.clone(), epoch));
    }
}
