//! What the server measures of itself, and the pages that show it (`--metrics-listen`): `/metrics`, `/livez`, `/readyz`.
//!
//! Threads count into cells of their own, in atomics; nothing that they share with one another is touched for it, and without the option
//! nothing is measured. How much there is of everything is not counted but asked for: a scrape *calls* each database and each shard, which
//! look after it between two batches of work. Who does not come within a quarter of a second is shown as it was last seen; who does not come
//! for a minute is stuck. The pages are served by a thread that owns nothing and waits for nobody, so they answer whatever
//! the others do.
//!
//! Owned by everybody who counts, through an [`std::sync::Arc`]. It knows neither what operations mean nor what sockets are.

pub(crate) mod database;
mod exposition;
pub(crate) mod families;
mod health;
mod pages;
mod plain;
pub(crate) mod shard;
mod status_request;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use corvid_net::tls::Credentials;
use corvid_reactor::shard::{Refusals, ShardHandle};
use corvid_service::locks::Locks;
use corvid_service::reply_memory::ReplyMemory;

use crate::audit::AuditLog;
use crate::shard::ShardMessage;
use database::DatabaseFigures;
use shard::ShardFigures;

/// The figures of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    stage: AtomicU8,
    databases: Mutex<BTreeMap<String, Arc<DatabaseFigures>>>,
    shards: OnceLock<Vec<Shard>>,
    shared_state: OnceLock<SharedState>,
}

/// One shard, and the way to it.
#[derive(Debug)]
struct Shard {
    figures: Arc<ShardFigures>,
    handle: ShardHandle<ShardMessage>,
}

/// What else is looked at.
#[derive(Debug)]
pub(crate) struct SharedState {
    /// Of TLS.
    pub(crate) credentials: Arc<Credentials>,
    /// All of them.
    pub(crate) locks: Arc<Mutex<Locks>>,
    /// Of connections.
    pub(crate) refusals: Refusals,
    /// Of replies.
    pub(crate) reply_memory: Arc<ReplyMemory>,
    /// Where the audit trail is kept, if there is one.
    pub(crate) audit: Option<AuditLog>,
}

/// How far the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It opens what it is to serve.
    Opening,
    /// It serves.
    Serving,
    /// It has been told to exit.
    Ending,
}

impl Metrics {
    /// How far it has come.
    fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Opening,
            1 => Stage::Serving,
            _ => Stage::Ending,
        }
    }

    /// It has come further.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Makes the figures of each shard, in order. Once.
    #[must_use]
    pub(crate) fn add_shards(
        &self,
        handles: &[ShardHandle<ShardMessage>],
    ) -> Vec<Arc<ShardFigures>> {
        let shards = self.shards.get_or_init(|| {
            let shard = |handle: &ShardHandle<ShardMessage>| Shard {
                figures: Arc::default(),
                handle: handle.clone(),
            };
            handles.iter().map(shard).collect()
        });
        shards.iter().map(|shard| shard.figures.clone()).collect()
    }

    /// Tells what else to look at. Once.
    pub(crate) fn set_shared_state(&self, shared_state: SharedState) {
        // A second time would find the same.
        let _ = self.shared_state.set(shared_state);
    }

    /// A database is served from now on.
    pub(crate) fn add_database(&self, name: &str, figures: Arc<DatabaseFigures>) {
        self.databases().insert(name.to_owned(), figures);
    }

    /// It is served no more.
    pub(crate) fn remove_database(&self, name: &str) {
        self.databases().remove(name);
    }

    /// Held for moments only: by whoever opens databases, and by the pages.
    fn databases(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DatabaseFigures>>> {
        self.databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The databases of the moment.
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
