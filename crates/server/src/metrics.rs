//! The server's metrics, and the pages that show them (`--metrics-listen`): `/metrics`, `/livez`,
//! `/readyz`, `/status.json`.
//!
//! Each thread counts in its own atomic cells. While metrics are off ([`switch`]), nothing is
//! measured. Totals (sessions, atoms, queues) are not counted: a scrape *requests* them
//! ([`status_request`]) from each database and each shard, which publish them between two batches
//! of work. If a thread does not answer within a quarter of a second, its previous status is shown;
//! if it does not answer for a minute, it is stuck. The thread that serves the pages owns nothing
//! and holds no lock for long, so it answers however busy the other threads are.
//!
//! Shared by all counting threads through an [`std::sync::Arc`]. This module knows neither
//! operations nor sockets.

pub(crate) mod database;
mod exposition;
pub(crate) mod families;
mod health;
pub(crate) mod listen;
pub(crate) mod member;
mod pages;
mod plain;
pub(crate) mod relay;
pub(crate) mod shard;
mod status_page;
mod status_request;
pub(crate) mod switch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use corvid_net::tls::Credentials;
use corvid_reactor::shard::{Refusals, ShardHandle};
use corvid_service::client_memory::ClientMemory;
use corvid_service::locks::Locks;

use crate::audit::AuditSlot;
use crate::database::history::Histories;
use crate::main_handle::MainHandle;
use crate::relay::handle::RelayHandle;
use crate::shard::ShardMessage;
use database::DatabaseFigures;
use member::MemberFigures;
use shard::ShardFigures;
use status_page::StatusPage;
use switch::{Switch, Switched};

/// The figures of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    switch: Switch,
    stage: AtomicU8,
    databases: Mutex<BTreeMap<String, Arc<DatabaseFigures>>>,
    members: Mutex<BTreeMap<String, Arc<MemberFigures>>>,
    relays: Mutex<BTreeMap<String, RelayHandle>>,
    shards: OnceLock<Vec<Shard>>,
    shared_state: OnceLock<SharedState>,
    status: StatusPage,
}

/// One shard's figures, and its handle.
#[derive(Debug)]
struct Shard {
    figures: Arc<ShardFigures>,
    handle: ShardHandle<ShardMessage>,
}

/// The state of other parts that the pages read.
#[derive(Debug)]
pub(crate) struct SharedState {
    /// The credentials, for the expiry of their certificates.
    pub(crate) credentials: Arc<Credentials>,
    /// The lock table.
    pub(crate) locks: Arc<Mutex<Locks>>,
    /// The count of refused connections, and their limit.
    pub(crate) refusals: Refusals,
    /// The memory that clients make the server hold.
    pub(crate) client_memory: Arc<ClientMemory>,
    /// The audit log, once it is open.
    pub(crate) audit: AuditSlot,
    /// The histories of the databases.
    pub(crate) histories: Arc<Histories>,
    /// The main thread, which gathers the status of the server.
    pub(crate) main: MainHandle,
}

/// The stage of the server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The server is opening the databases of its first configuration.
    Opening,
    /// The server is serving them.
    Serving,
    /// The server is exiting.
    Ending,
}

impl Metrics {
    /// The current stage.
    fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Opening,
            1 => Stage::Serving,
            _ => Stage::Ending,
        }
    }

    /// Begins a stage.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// The switch for the measurements.
    pub(crate) fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Creates the figures of each shard, in order. Called once.
    #[must_use]
    pub(crate) fn add_shards(
        &self,
        handles: &[ShardHandle<ShardMessage>],
    ) -> Vec<Switched<ShardFigures>> {
        let shards = self.shards.get_or_init(|| {
            let shard = |handle: &ShardHandle<ShardMessage>| Shard {
                figures: Arc::default(),
                handle: handle.clone(),
            };
            handles.iter().map(shard).collect()
        });
        let switched = |shard: &Shard| Switched::new(shard.figures.clone(), &self.switch);
        shards.iter().map(switched).collect()
    }

    /// Sets the state of other parts. Called once.
    pub(crate) fn set_shared_state(&self, shared_state: SharedState) {
        // Called once, so this cannot fail.
        let _ = self.shared_state.set(shared_state);
    }

    /// Adds a database's figures.
    pub(crate) fn add_database(&self, name: &str, figures: Arc<DatabaseFigures>) {
        self.databases().insert(name.to_owned(), figures);
    }

    /// Records that the file of a database ended in damage and was copied.
    pub(crate) fn set_salvage_copy(&self, name: &str, copy: PathBuf) {
        if let Some(figures) = self.databases().get(name) {
            figures.set_salvage_copy(copy);
        }
    }

    /// Removes a database's figures, including those of its member or relay.
    pub(crate) fn remove_database(&self, name: &str) {
        self.databases().remove(name);
        self.locked_members().remove(name);
        self.locked_relays().remove(name);
    }

    /// Adds a relay's handle, which has its figures.
    pub(crate) fn add_relay(&self, name: &str, relay: RelayHandle) {
        self.locked_relays().insert(name.to_owned(), relay);
    }

    fn locked_relays(&self) -> MutexGuard<'_, BTreeMap<String, RelayHandle>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All relays, by name.
    fn relays(&self) -> Vec<(String, RelayHandle)> {
        let relays = self.locked_relays();
        let pair = |(name, relay): (&String, &RelayHandle)| (name.clone(), relay.clone());
        relays.iter().map(pair).collect()
    }

    /// Adds the figures of a clustered database's member.
    pub(crate) fn add_member(&self, name: &str, figures: Arc<MemberFigures>) {
        self.locked_members().insert(name.to_owned(), figures);
    }

    fn locked_members(&self) -> MutexGuard<'_, BTreeMap<String, Arc<MemberFigures>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The members of clustered databases, by name.
    fn members(&self) -> Vec<(String, Arc<MemberFigures>)> {
        let members = self.locked_members();
        let pair =
            |(name, figures): (&String, &Arc<MemberFigures>)| (name.clone(), figures.clone());
        members.iter().map(pair).collect()
    }

    /// Held only briefly, by the main thread and by the pages.
    fn databases(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DatabaseFigures>>> {
        self.databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The served databases, by name.
    fn served(&self) -> Vec<(String, Arc<DatabaseFigures>)> {
        let databases = self.databases();
        let pair =
            |(name, figures): (&String, &Arc<DatabaseFigures>)| (name.clone(), figures.clone());
        databases.iter().map(pair).collect()
    }

    fn shards(&self) -> &[Shard] {
        self.shards.get().map_or(&[], Vec::as_slice)
    }
}
