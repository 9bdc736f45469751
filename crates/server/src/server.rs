//! The state of the main thread: the served databases, the remotes, the settings, and the commands
//! that wait for replies.
//!
//! Only the main thread starts and ends the threads of databases, shards and openings. It never
//! waits for a database, except when the server exits: it sends requests and handles the events
//! that come back ([`events`]).
//!
//! Parts own the state: [`databases`], [`shared`] (what threads share), [`roles`], [`history`]
//! (settings), [`upstream`], [`opening`], [`reconfiguration`], [`pending_replies`],
//! [`column_reads`], [`status`] and [`pages`]. A part gets what it needs from another as an
//! argument. The other files add the methods of one concern to [`Server`]. None of them knows
//! command lines or sockets.

mod column_reads;
mod commands;
pub(crate) mod databases;
mod events;
mod history;
mod members;
mod opening;
pub(crate) mod pages;
mod pending_replies;
pub(crate) mod reconfiguration;
mod relays;
mod remotes;
mod roles;
mod served;
mod serving;
pub(crate) mod settings;
mod shared;
mod shutdown;
mod status;
#[cfg(test)]
mod tests;
mod upstream;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use corvid_data::uuid::UuidSource;
use corvid_engine::Database;
use corvid_history::Policy;
use corvid_net::tls::Settings;
use corvid_reactor::shard::{Limits, Shards};
use corvid_service::client_memory::ClientMemory;
use corvid_service::frontend::Frontend;
use corvid_service::locks::Locks;
use corvid_service::once;
use corvid_service::schema_epoch::SchemaEpochs;
use corvid_service::served_databases::ServedDatabases;
use corvid_service::server_db;
use corvid_shell::unixctl::Replier;

use crate::audit::AuditSlot;
use crate::config::saved_config::{SavedConfig, SavedConfigFile};
use crate::database::history::Histories;
use crate::database::open::RandomUuids;
use crate::database::recorder::RecorderSettings;
use crate::jobs::Jobs;
use crate::limits;
use crate::liveness::LivenessRegistry;
use crate::main_handle::MainHandle;
use crate::metrics::{Metrics, SharedState, Stage};
use crate::read_history::HistoryReaders;
use crate::remotes::Remotes;
use crate::shard::{RemoteTable, ShardSessions};
use crate::tls_settings::TlsSettings;
use crate::trusted_relays::TrustedRelays;
use databases::Databases;
use history::HistorySettings;
use opening::Openings;
use pages::Pages;
use pending_replies::PendingReplies;
use reconfiguration::Configuration;
use roles::Roles;
use serving::Backing;
use shared::Shared;
use status::StatusGatherings;
use upstream::UpstreamSettings;

/// The settings of a server, from the command line; some of them change at run time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    /// The number of connection shards.
    pub(crate) shards: usize,
    /// Log records store modified columns as differences.
    pub(crate) column_diff: bool,
    /// Conversions of clustered databases are proposed together with the converted rows.
    pub(crate) data_conversion: bool,
    /// Databases keep no transaction history, unless the configuration file asks for it.
    pub(crate) no_history: bool,
    /// Transactions that take at least this long are logged, ms.
    pub(crate) slow_ms: u64,
    /// The audit log, once it is open.
    pub(crate) audit: AuditSlot,
    /// The flight recorder's settings, if databases are recorded.
    pub(crate) record: Option<RecorderSettings>,
    /// TLS settings: key, certificate, peers, protocols.
    pub(crate) tls: Settings,
    /// Whether transactions are currently written to the audit log.
    pub(crate) is_audited: bool,
    /// The tables that the audit log leaves out, as given by the user.
    pub(crate) audit_exclude: String,
    /// The relays that are trusted to speak for their clients.
    pub(crate) trusted_relays: Arc<TrustedRelays>,
    /// The connection limits in force.
    pub(crate) limits: Limits,
    /// The limits as given by the user.
    pub(crate) limit_settings: limits::Settings,
    /// The memory that clients make the server hold, and its limits.
    pub(crate) client_memory: Arc<ClientMemory>,
    /// The metrics and their switch.
    pub(crate) metrics: Arc<Metrics>,
    /// The long jobs that run now.
    pub(crate) jobs: Jobs,
    /// The policy by which replaced files are kept, and the histories of the databases.
    pub(crate) histories: Arc<Histories>,
    /// The policy of the command line.
    pub(crate) keep_history: Policy,
    /// `--record-clients`
    pub(crate) record_clients: bool,
}

/// The state of the main thread: its parts, each of which owns its state.
pub(crate) struct Server {
    config: Config,
    shared: Shared,
    databases: Databases,
    roles: Roles,
    history: HistorySettings,
    upstreams: UpstreamSettings,
    remotes: Remotes,
    tls: TlsSettings,
    openings: Openings,
    configuration: Configuration,
    pending: PendingReplies,
    /// Statuses that are being gathered.
    statuses: StatusGatherings,
    /// The monitoring pages.
    pages: Pages,
    is_exiting: bool,
}

impl Server {
    /// Starts a server that serves only `_Server`. `waker` ends the main loop's wait.
    ///
    /// # Errors
    /// Threads or descriptors are exhausted.
    pub(crate) fn start(config: Config, waker: Arc<mio::Waker>) -> std::io::Result<Server> {
        let (sender, inbox) = crossbeam_channel::unbounded();
        let main = MainHandle {
            events: sender,
            lines_dropped: Arc::default(),
            waker,
        };
        let mut locks = Locks::new();
        locks.set_client_memory(config.client_memory.clone());
        let locks = Arc::new(Mutex::new(locks));
        let epochs = SchemaEpochs::default();
        let remote_options = RemoteTable::default();
        let mut shards = Shards::prepare(config.shards)?;
        let tls = TlsSettings::new(config.tls.clone());
        shards.set_limits(config.limits);
        shards.set_credentials(tls.credentials().clone());
        let handles = shards.handles().to_vec();
        let figures = config.metrics.add_shards(&handles);
        config.metrics.set_shared_state(SharedState {
            credentials: tls.credentials().clone(),
            locks: locks.clone(),
            refusals: shards.refusals(),
            client_memory: config.client_memory.clone(),
            audit: config.audit.clone(),
            histories: config.histories.clone(),
            main: main.clone(),
        });
        config.histories.set_policy(config.keep_history);
        let server_id = once::announce_history(once::announce(RandomUuids::new()?.fresh()));
        let hash_seed = crate::database::open::hash_seed()?;
        let histories = config.histories.clone();
        let jobs = config.jobs.clone();
        let readers = HistoryReaders::new(handles.clone(), histories, hash_seed, jobs);
        let readers = Arc::new(readers);
        shards.start(|number| {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let mut frontend = Frontend::new(
                number,
                Arc::new(ServedDatabases::default()),
                locks.clone(),
                epochs.clone(),
                server_id,
            );
            frontend.set_client_memory(config.client_memory.clone());
            frontend.read_history();
            let remotes = remote_options.clone();
            let relays = config.trusted_relays.clone();
            ShardSessions::new(
                number,
                frontend,
                remotes,
                relays,
                readers.clone(),
                handles.clone(),
                figures[usize::from(number)].clone(),
            )
        })?;
        let shards = Arc::new(shards);
        let remotes = Remotes::new(shards.clone(), remote_options);
        let mut server = Server {
            history: HistorySettings::new(&config),
            config,
            shared: Shared {
                shards,
                locks,
                main,
                inbox,
                liveness_registry: Arc::default(),
                epochs,
                hash_seed,
            },
            databases: Databases::default(),
            roles: Roles::new(server_id),
            upstreams: UpstreamSettings::default(),
            remotes,
            tls,
            openings: Openings::default(),
            configuration: Configuration::default(),
            pending: PendingReplies::default(),
            statuses: StatusGatherings::default(),
            pages: Pages::default(),
            is_exiting: false,
        };
        let schema =
            server_db::schema().map_err(|error| std::io::Error::other(error.to_string()))?;
        let database = Database::new(corvid_data::Arc::new(schema), hash_seed);
        let row = server.serve(server_db::NAME, database, Backing::Memory, None)?;
        server.databases.update_server_db(row);
        Ok(server)
    }

    /// Keeps serving these monitoring pages until a setting changes them.
    pub(crate) fn keep_pages(&mut self, pages: Pages) {
        self.pages = pages;
    }

    /// Marks the first configuration as applied. From now on, changes to the set of databases close
    /// sessions that are not aware of changes, and the configuration is saved.
    pub(crate) fn started(&mut self, saved: Option<SavedConfigFile>) {
        self.configuration.started(saved);
        self.config.metrics.set_stage(Stage::Serving);
        self.save();
    }

    fn save(&self) {
        self.configuration.save(|| SavedConfig {
            databases: self.databases.file_names().map(str::to_owned).collect(),
            remotes: self.remotes.given().map(str::to_owned).collect(),
            sync: self.roles.settings().clone(),
            relay_probe_interval_ms: self.upstreams.relay_probe_interval_ms,
        });
    }

    /// Has shards find the present databases.
    fn publish(&self) {
        let is_exiting = self.pending.is_exiting.load(Ordering::Relaxed);
        self.shared.publish(&self.databases, is_exiting);
    }

    /// The databases, for commands that only ask.
    #[must_use]
    pub(crate) fn databases(&self) -> &Databases {
        &self.databases
    }

    /// The liveness of the main thread, the databases and the openings.
    #[must_use]
    pub(crate) fn liveness_registry(&self) -> &Arc<LivenessRegistry> {
        &self.shared.liveness_registry
    }

    /// The served databases, on one line, for the service manager's status.
    #[must_use]
    pub(crate) fn summary(&self) -> String {
        match self.databases.users_names().collect::<Vec<_>>().as_slice() {
            [] => "serving no database".to_owned(),
            names => format!("serving {}", names.join(", ")),
        }
    }

    /// The number of sessions of all remotes.
    pub(crate) fn session_count(&self) -> usize {
        self.remotes.session_count()
    }
}

fn answer(replier: Option<Replier>, outcome: Result<String, String>) {
    if let Some(replier) = replier {
        replier.reply(outcome);
    }
}
