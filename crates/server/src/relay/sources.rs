//! The sources that relays are connected to, for readings of history: these have connections of
//! their own ([`crate::read_history`]).
//!
//! A relay's thread publishes its source when that changes; a reading copies it when it begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_net::tls::Credentials;

/// The source that a relay is connected to.
#[derive(Clone, Debug)]
pub(crate) struct ReachedSource {
    /// The active remote; `None`: the source connects to the relay, so a second connection cannot
    /// be made.
    pub(crate) remote: Option<String>,
    /// Differentiated services code point.
    pub(crate) dscp: u8,
    /// Credentials for `ssl:`.
    pub(crate) credentials: Arc<Credentials>,
    /// The source has announced `read_history` and `select_at`.
    pub(crate) reads_history: bool,
}

/// The relays of the server by the names of their databases.
#[derive(Debug, Default)]
pub(crate) struct RelaySources(Mutex<BTreeMap<String, Option<ReachedSource>>>);

impl RelaySources {
    /// A relay is connected to this source from now on; `None`: to no source.
    pub(super) fn set(&self, relay: &str, source: Option<ReachedSource>) {
        self.locked().insert(relay.to_owned(), source);
    }

    /// A relay has ended.
    pub(super) fn remove(&self, relay: &str) {
        self.locked().remove(relay);
    }

    /// The source of a database. `None`: the database is not a relay.
    pub(crate) fn of(&self, database: &str) -> Option<Option<ReachedSource>> {
        self.locked().get(database).cloned()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Option<ReachedSource>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
