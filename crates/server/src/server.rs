//! The state of the main thread: the served databases, the remotes, the settings, and the commands
//! that wait for replies.
//!
//! Only the main thread starts and ends the threads of databases, shards and openings. It never
//! waits for a database, except when the server exits: it sends requests and handles the events
//! that come back ([`events`]). Each file of this folder adds the methods of one concern to
//! [`Server`]; none of them knows command lines or sockets.

mod commands;
mod events;
mod members;
mod opening;
pub(crate) mod pages;
mod pending_replies;
pub(crate) mod reconfiguration;
mod relays;
mod reload;
mod remotes;
mod roles;
pub(crate) mod serving;
mod sessions;
pub(crate) mod settings;
mod shutdown;
mod status;
#[cfg(test)]
mod tests;
mod tls_columns;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use corvid_data::uuid::UuidSource;
use corvid_data::{HashSeed, Uuid};
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
use crossbeam_channel::Receiver;

use crate::audit::AuditSlot;
use crate::config::applied::AppliedConfig;
use crate::config::replication::ReplicationSettings;
use crate::config::saved_config::{SavedConfig, SavedConfigFile};
use crate::database::history::Histories;
use crate::database::open::RandomUuids;
use crate::database::recorder::RecorderSettings;
use crate::jobs::Jobs;
use crate::limits;
use crate::liveness::LivenessRegistry;
use crate::main_handle::{MainHandle, MainMessage};
use crate::member::failure::Scenario;
use crate::metrics::{Metrics, SharedState, Stage};
use crate::read_history::HistoryReaders;
use crate::remotes::Remotes;
use crate::shard::{RemoteTable, ShardMessage, ShardSessions};
use crate::tls_settings::TlsSettings;
use crate::trusted_relays::TrustedRelays;
use opening::Openings;
use pages::Pages;
use pending_replies::PendingReplies;
use reconfiguration::Reconfigurations;
use serving::{Backing, ServedDatabase};
use status::StatusGatherings;
use upstream::JoiningDatabase;

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
    /// Whether records name the clients of their commits at present.
    pub(crate) records_clients: bool,
    /// `--record-clients`
    pub(crate) record_clients: bool,
}

/// The state of the main thread.
pub(crate) struct Server {
    config: Config,
    databases: BTreeMap<String, ServedDatabase>,
    /// Databases without contents yet: their servers are joining clusters, or their relays have not
    /// reached their sources.
    joining: BTreeMap<String, JoiningDatabase>,
    next_database: u32,
    shards: Arc<Shards<ShardMessage>>,
    remotes: Remotes,
    tls: TlsSettings,
    locks: Arc<Mutex<Locks>>,
    main: MainHandle,
    liveness_registry: Arc<LivenessRegistry>,
    events: Receiver<MainMessage>,
    pending: PendingReplies,
    openings: Openings,
    reconfigurations: Reconfigurations,
    epochs: SchemaEpochs,
    is_exiting: bool,
    is_started: bool,
    /// The configuration for a restarted server; `None`: a restarted server reads the configuration
    /// file.
    saved: Option<SavedConfigFile>,
    applied_config: Option<AppliedConfig>,
    server_id: Uuid,
    /// The hash seed of all databases.
    hash_seed: HashSeed,
    sync: ReplicationSettings,
    last_source: u64,
    /// The probe interval towards the sources of relays, ms, if a command has set it; 0: no probes.
    relay_probe_interval_ms: Option<u64>,
    /// Databases keep a transaction history.
    keeps_history: bool,
    /// `keep-history` of the configuration file that was applied last.
    configured_history: Option<Policy>,
    /// `record-clients` of the same file.
    configured_clients: Option<bool>,
    /// A clustered database has been served since the start.
    has_clusters: bool,
    /// The scenario of `cluster/failure-test`, for members that are served later.
    failure_scenario: Scenario,
    /// The monitoring pages.
    pages: Pages,
    /// Statuses that are being gathered.
    statuses: StatusGatherings,
}

impl Server {
    /// Starts a server that serves only `_Server`. `waker` ends the main loop's wait.
    ///
    /// # Errors
    /// Threads or descriptors are exhausted.
    pub(crate) fn start(config: Config, waker: Arc<mio::Waker>) -> std::io::Result<Server> {
        let (sender, events) = crossbeam_channel::unbounded();
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
        let keeps_history = !config.no_history;
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
            config,
            databases: BTreeMap::new(),
            joining: BTreeMap::new(),
            next_database: 0,
            shards,
            remotes,
            tls,
            locks,
            main,
            liveness_registry: Arc::default(),
            events,
            pending: PendingReplies::default(),
            openings: Openings::default(),
            reconfigurations: Reconfigurations::default(),
            epochs,
            is_exiting: false,
            is_started: false,
            saved: None,
            applied_config: None,
            server_id,
            hash_seed,
            sync: ReplicationSettings::default(),
            last_source: 0,
            relay_probe_interval_ms: None,
            keeps_history,
            configured_history: None,
            configured_clients: None,
            has_clusters: false,
            failure_scenario: Scenario::Clear,
            pages: Pages::default(),
            statuses: StatusGatherings::default(),
        };
        let schema =
            server_db::schema().map_err(|error| std::io::Error::other(error.to_string()))?;
        let database = Database::new(corvid_data::Arc::new(schema), hash_seed);
        let row = server.serve(server_db::NAME, database, Backing::Memory, None)?;
        server.update_server_db(row);
        Ok(server)
    }

    /// Keeps serving these monitoring pages until a setting changes them.
    pub(crate) fn keep_pages(&mut self, pages: Pages) {
        self.pages = pages;
    }

    /// Marks the first configuration as applied. From now on, changes to the set of databases close
    /// sessions that are not aware of changes, and the configuration is saved.
    pub(crate) fn started(&mut self, saved: Option<SavedConfigFile>) {
        self.is_started = true;
        self.config.metrics.set_stage(Stage::Serving);
        self.saved = saved;
        self.save();
    }

    fn save(&self) {
        let Some(saved) = &self.saved else {
            return;
        };
        let mut files: Vec<String> = self
            .databases
            .iter()
            .filter(|(name, _)| *name != server_db::NAME)
            .map(|(_, served)| served.name.clone())
            .collect();
        files.extend(self.joining.values().map(|joining| joining.name.clone()));
        saved.write(&SavedConfig {
            databases: files,
            remotes: self.remotes.given().map(str::to_owned).collect(),
            sync: self.sync.clone(),
            relay_probe_interval_ms: self.relay_probe_interval_ms,
        });
    }

    /// The names of served and joining databases, sorted.
    pub(crate) fn database_names(&self) -> impl Iterator<Item = &str> {
        let names = self.databases.keys().chain(self.joining.keys());
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        names.into_iter()
    }

    /// The liveness of the main thread, the databases and the openings.
    #[must_use]
    pub(crate) fn liveness_registry(&self) -> &Arc<LivenessRegistry> {
        &self.liveness_registry
    }

    /// The served databases, on one line, for the service manager's status.
    #[must_use]
    pub(crate) fn summary(&self) -> String {
        let names = self
            .database_names()
            .filter(|name| *name != server_db::NAME);
        match names.collect::<Vec<_>>().as_slice() {
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
