//! Relays: beginning one, its row in `_Server`, its source, its probe interval. Part of the main
//! thread.
//!
//! Invariant: a relay's name is checked before anything changes. Its row in `_Server` is inserted
//! before the main thread handles any message of its thread, and has no schema until the initial
//! contents arrive.

use std::sync::PoisonError;

use corvid_consensus::member::Absence;
use corvid_log::Magic;
use corvid_monitor::SessionId;
use corvid_net::errno;
use corvid_service::frontend::shard_of;
use corvid_service::message::{DatabaseId, ToShard};
use corvid_service::server_db::{self, ServerRow};

use super::Server;
use super::serving::check_name;
use super::upstream::{JoiningDatabase, Upstream};
use crate::config::file::DatabaseConfig;
use crate::config::relay::RelaySettings;
use crate::control::reports::RelayUsage;
use crate::relay::served::PreparedRelay;
use crate::remotes::options::RemoteOptions;
use crate::shard::ShardMessage;

/// The row in `_Server` of a relay that has not reached its source.
const NOT_CONNECTED: ServerRow = ServerRow {
    model: "relay",
    is_connected: false,
    is_leader: false,
};

impl Server {
    /// Begins a relay. Returns the database's name.
    ///
    /// # Errors
    /// The name is reserved or taken, or threads or descriptors are exhausted.
    pub(super) fn add_relay(&mut self, settings: RelaySettings) -> Result<String, String> {
        let name = settings.name.clone();
        check_name(&name, self.is_taken(&name))?;
        let argument = settings.argument();
        let mut source = settings.source;
        if source.options.probe_interval.is_none() {
            source.options.probe_interval = self.relay_probe_interval_ms;
        }
        let id = self.new_database_id();
        let prepared = PreparedRelay {
            id,
            name: name.clone(),
            source,
            credentials: self.tls.credentials().clone(),
            hash_seed: self.hash_seed,
            liveness: self.liveness_registry.add(&format!("relay:{name}")),
            main: self.main.clone(),
            histories: self.config.histories.clone(),
        };
        let relay = prepared.start().map_err(|error| errno::text(&error))?;
        self.config.metrics.add_relay(&name, relay.handle.clone());
        let joining = JoiningDatabase {
            // The reference reports relays as joining too.
            absence: Absence::Joining,
            id,
            name: argument,
            upstream: Upstream::Relay(relay),
        };
        self.joining.insert(name.clone(), joining);
        self.publish();
        if self.is_started {
            self.disconnect_unaware(&format!("adding {name} database"));
        }
        self.update_server_db(server_db::insert_without_schema(&name, NOT_CONNECTED));
        self.save();
        Ok(name)
    }

    /// Shows the state of a relay in `_Server`.
    pub(super) fn show_relay(&mut self, id: DatabaseId, row: ServerRow) {
        if let Some((name, Upstream::Relay(_))) = self.upstream_numbered(id) {
            let update = server_db::update_row(name, row);
            self.update_server_db(update);
        }
    }

    /// Decides where locks live: at the source of the first relay by name, or in this server if it
    /// has no relay. Returns the sessions that must be notified.
    pub(super) fn place_locks(&self) -> Vec<SessionId> {
        let mut ids = self.databases.values().map(|served| served.id);
        let relay = ids.find(|id| self.is_relay(*id));
        let is_served = |id| self.databases.values().any(|served| served.id == id);
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.set_relay(relay, is_served)
    }

    /// Has shards pass on lock notifications.
    pub(super) fn notify_of_locks(&self, sessions: Vec<SessionId>) {
        for session in sessions {
            if let Some(shard) = self.shards.handles().get(usize::from(shard_of(session))) {
                let notification = ToShard::LockNotifications(session);
                shard.post(ShardMessage::Service(notification));
            }
        }
    }

    /// Whether a database is a relay.
    pub(super) fn is_relay(&self, id: DatabaseId) -> bool {
        let served = self.databases.values().find(|served| served.id == id);
        let upstream = served.and_then(|served| served.upstream.as_ref());
        upstream.and_then(Upstream::relay).is_some()
    }

    /// The kind of a database's file; `None`: the database is a relay.
    #[must_use]
    pub(crate) fn file_kind(&self, database: &str) -> Option<Magic> {
        match self.upstream(database) {
            None => Some(Magic::Standalone),
            Some(Upstream::Member(_)) => Some(Magic::Clustered),
            Some(Upstream::Relay(_)) => None,
        }
    }

    /// Changes the source of a relay to that of a configuration file's entry, if they differ. The
    /// contents stay.
    pub(super) fn set_relay_source(
        &mut self,
        database: &str,
        entry: &str,
        config: &DatabaseConfig,
    ) {
        let Some(settings) = RelaySettings::of_entry(entry, config) else {
            return;
        };
        let argument = settings.argument();
        let name = match (
            self.databases.get_mut(database),
            self.joining.get_mut(database),
        ) {
            (Some(served), _) => Some((&mut served.name, served.upstream.as_mut())),
            (None, Some(joining)) => Some((&mut joining.name, Some(&mut joining.upstream))),
            (None, None) => None,
        };
        if let Some((name, Some(Upstream::Relay(relay)))) = name {
            *name = argument;
            relay.set_source(settings.source);
        }
    }

    /// Restores the saved probe interval, for relays that begin from now on.
    pub(crate) fn restore_relay_probe_interval(&mut self, interval_ms: Option<u64>) {
        self.relay_probe_interval_ms = interval_ms;
    }

    /// Sets the probe interval towards the sources of all relays, ms; 0: no probes.
    pub(crate) fn set_relay_probe_interval(&mut self, interval_ms: i64) {
        let mut options = RemoteOptions::default();
        options.set_probe_interval(interval_ms);
        self.relay_probe_interval_ms = options.probe_interval;
        let databases = self.databases.values_mut();
        let served = databases.filter_map(|served| served.upstream.as_mut());
        let joining = self.joining.values_mut();
        let joining = joining.map(|joining| &mut joining.upstream);
        for relay in served.chain(joining).filter_map(Upstream::relay_mut) {
            let mut source = relay.source().clone();
            source.options.probe_interval = options.probe_interval;
            relay.set_source(source);
        }
        self.save();
    }

    /// Counts over all relays, for `memory/show`.
    pub(super) fn relay_usage(&self) -> RelayUsage {
        let mut usage = RelayUsage::default();
        for relay in self
            .upstreams()
            .filter_map(|(_, upstream)| upstream.relay())
        {
            usage.add(relay.handle.figures());
        }
        usage
    }
}
