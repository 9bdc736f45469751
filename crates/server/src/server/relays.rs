//! Relays: beginning one, its row in `_Server`, its source, its probe interval. Part of the main
//! thread.
//!
//! Invariant: a relay's name is checked before anything changes. Its row in `_Server` is inserted
//! before the main thread handles any message of its thread, and has no schema until the initial
//! contents arrive.

use corvid_consensus::member::Absence;
use corvid_net::errno;
use corvid_service::message::DatabaseId;
use corvid_service::server_db::{self, ServerRow};

use super::Server;
use super::databases::check_name;
use super::upstream::{JoiningDatabase, Upstream};
use crate::config::relay::RelaySettings;
use crate::relay::served::PreparedRelay;
use crate::remotes::options::RemoteOptions;

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
            source.options.probe_interval = self.upstreams.relay_probe_interval_ms;
        }
        let id = self.databases.new_id();
        let prepared = PreparedRelay {
            id,
            name: name.clone(),
            source,
            credentials: self.tls.credentials().clone(),
            hash_seed: self.shared.hash_seed,
            liveness: self.shared.liveness_registry.add(&format!("relay:{name}")),
            main: self.shared.main.clone(),
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
        self.databases.add_joining(&name, joining);
        self.publish();
        if self.configuration.is_started() {
            self.shared
                .disconnect_unaware(&format!("adding {name} database"));
        }
        self.databases
            .update_server_db(server_db::insert_without_schema(&name, NOT_CONNECTED));
        self.save();
        Ok(name)
    }

    /// Shows the state of a relay in `_Server`.
    pub(super) fn show_relay(&mut self, id: DatabaseId, row: ServerRow) {
        if let Some((name, Upstream::Relay(_))) = self.databases.upstream_numbered(id) {
            let update = server_db::update_row(name, row);
            self.databases.update_server_db(update);
        }
    }

    /// Restores the saved probe interval, for relays that begin from now on.
    pub(crate) fn restore_relay_probe_interval(&mut self, interval_ms: Option<u64>) {
        self.upstreams.relay_probe_interval_ms = interval_ms;
    }

    /// Sets the probe interval towards the sources of all relays, ms; 0: no probes.
    pub(crate) fn set_relay_probe_interval(&mut self, interval_ms: i64) {
        let mut options = RemoteOptions::default();
        options.set_probe_interval(interval_ms);
        self.upstreams.relay_probe_interval_ms = options.probe_interval;
        for relay in self.databases.relays_mut() {
            let mut source = relay.source().clone();
            source.options.probe_interval = options.probe_interval;
            relay.set_source(source);
        }
        self.save();
    }
}
