//! The server's main thread: which databases and remotes there are, what `_Server` says of them, and who must be told when
//! that changes. Databases and connections run on threads of their own, and files are opened on threads of their own; this is the only
//! place that starts and ends them.

mod ending;
mod following;
mod opening;
mod reloading;
mod roles;
pub mod rollout;
mod sessions;
mod settings;
mod tls_columns;
mod waiting;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use corvid_data::uuid::UuidSource;
use corvid_data::{HashSeed, Schema, Uuid};
use corvid_engine::Database;
use corvid_os::errno;
use corvid_os::log_file::{LogFile, UnforcedName};
use corvid_os::mailbox::{MailSender, Mailbox};
use corvid_os::shard::{Limits, Shards};
use corvid_os::tls::Settings;
use corvid_os::unixctl::Replier;
use corvid_os::vlog::{self, Module, RateLimit};
use corvid_rpc::remote::ColumnRemote;
use corvid_service::directory::Directory;
use corvid_service::eras::{Era, Eras};
use corvid_service::frontend::Frontend;
use corvid_service::locks::Locks;
use corvid_service::message::{Control, DatabaseId, Event, ToDatabase, ToShard};
use corvid_service::pump::Limits as PumpLimits;
use corvid_service::replication::SourceId;
use corvid_service::reply_memory::ReplyMemory;
use corvid_service::storage::FileState;
use corvid_service::{DatabaseService, Model, Options, Pump, server_db};
use crossbeam_channel::Receiver;

use crate::audit::AuditLog;
use crate::backup::Backup;
use crate::configured::Configured;
use crate::database_thread::DatabaseThread;
use crate::driver::{Driver, Effects, Progress, read_clock};
use crate::heartbeat::Heartbeats;
use crate::inbox::Inbox;
use crate::limits;
use crate::main_thread::{MainThread, Report};
use crate::metrics::database::DatabaseFigures;
use crate::metrics::{Metrics, Stage, Surroundings};
use crate::open::RandomUuids;
use crate::recorder::{Recorder, RecorderSettings};
use crate::remotes::Remotes;
use crate::reports::{Questions, Reports};
use crate::saved::{Configuration, Saved};
use crate::shard::{RemoteTable, ShardMessage, ShardSessions};
use crate::storage::{InboxHandle, Storage};
use crate::sync::{ActiveBackup, Sync};
use crate::tls::TlsSettings;
use crate::worker::Worker;
use opening::Openings;
use rollout::Rollouts;
use waiting::Waiting;

/// A served database.
struct Served {
    id: DatabaseId,
    /// The file's name as given, or the database's own.
    name: String,
    /// For shards.
    shortcut: Inbox,
    inbox: Arc<MailSender<ToDatabase>>,
    thread: JoinHandle<()>,
    /// Whether the name of its file cannot be forced to disk.
    unforced_name: UnforcedName,
    /// `None`: it is standalone.
    model: Option<ActiveBackup>,
    /// The connection to what it follows, and what that is, while it is a backup.
    following: Option<(SourceId, String)>,
}

/// How the server keeps files and sizes itself.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Connection shards.
    pub shards: usize,
    /// Record modified columns as differences.
    pub column_diff: bool,
    /// Databases keep no transaction history, unless the configuration file says otherwise.
    pub no_history: bool,
    /// Transactions that take this long are logged, ms.
    pub slow_ms: u64,
    /// Where the audit trail is kept, if there is one.
    pub audit: Option<AuditLog>,
    /// Where databases are recorded, if they are.
    pub record: Option<RecorderSettings>,
    /// Key, certificate and the like.
    pub tls: Settings,
    /// Whether it is kept now.
    pub is_audited: bool,
    /// What it leaves out, as given.
    pub audit_exclude: String,
    /// What clients may have the server hold.
    pub limits: Limits,
    /// What was said of that.
    pub limit_settings: limits::Settings,
    /// What replies hold together, and may.
    pub reply_memory: Arc<ReplyMemory>,
    /// Where everything is counted, if anybody wants to know.
    pub metrics: Option<Arc<Metrics>>,
}

/// The state of the main thread.
pub struct Server {
    config: Config,
    databases: BTreeMap<String, Served>,
    next_database: u32,
    shards: Arc<Shards<ShardMessage>>,
    remotes: Remotes,
    tls: TlsSettings,
    locks: Arc<Mutex<Locks>>,
    main: MainThread,
    heartbeats: Arc<Heartbeats>,
    events: Receiver<Report>,
    waiting: Waiting,
    openings: Openings,
    rollouts: Rollouts,
    questions: Questions,
    eras: Eras,
    is_exiting: bool,
    is_started: bool,
    /// Where a server that takes our place finds what is served.
    saved: Option<Saved>,
    configured: Option<Configured>,
    server_id: Uuid,
    /// Of every database.
    hash_seed: HashSeed,
    sync: Sync,
    last_source: u64,
    /// Databases keep a transaction history.
    keeps_history: bool,
}

impl Server {
    /// A server with `_Server` and nothing else. `waker` ends the main loop's wait.
    ///
    /// # Errors
    /// Threads or descriptors are exhausted.
    pub fn start(config: Config, waker: Arc<mio::Waker>) -> std::io::Result<Server> {
        let (sender, events) = crossbeam_channel::unbounded();
        let main = MainThread {
            events: sender,
            lines_dropped: Arc::default(),
            waker,
        };
        let locks = Arc::new(Mutex::new(Locks::new()));
        let eras = Eras::default();
        let remote_options = RemoteTable::default();
        let mut shards = Shards::prepare(config.shards)?;
        let tls = TlsSettings::new(config.tls.clone());
        shards.set_limits(config.limits);
        shards.set_credentials(tls.credentials().clone());
        let handles = shards.handles().to_vec();
        let mut figures = Vec::new();
        if let Some(metrics) = &config.metrics {
            figures = metrics.add_shards(&handles);
            metrics.set_surroundings(Surroundings {
                credentials: tls.credentials().clone(),
                locks: locks.clone(),
                refusals: shards.refusals(),
                reply_memory: config.reply_memory.clone(),
                audit: config.audit.clone(),
            });
        }
        let keeps_history = !config.no_history;
        let server_id: Uuid = RandomUuids::new()?.fresh();
        let hash_seed = crate::open::hash_seed()?;
        shards.start(|number| {
            let figures = figures.get(number).cloned();
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let frontend = Frontend::new(
                number,
                Arc::new(Directory::default()),
                locks.clone(),
                eras.clone(),
                server_id,
            );
            let remotes = remote_options.clone();
            ShardSessions::new(number, frontend, remotes, handles.clone(), figures)
        })?;
        let shards = Arc::new(shards);
        let remotes = Remotes::new(shards.clone(), remote_options);
        let mut server = Server {
            config,
            databases: BTreeMap::new(),
            next_database: 0,
            shards,
            remotes,
            tls,
            locks,
            main,
            heartbeats: Arc::default(),
            events,
            waiting: Waiting::default(),
            openings: Openings::default(),
            rollouts: Rollouts::default(),
            questions: Questions::default(),
            eras,
            is_exiting: false,
            is_started: false,
            saved: None,
            configured: None,
            server_id,
            hash_seed,
            sync: Sync::default(),
            last_source: 0,
            keeps_history,
        };
        let schema =
            server_db::schema().map_err(|error| std::io::Error::other(error.to_string()))?;
        let database = Database::new(corvid_data::Arc::new(schema), hash_seed);
        let row = server.serve(server_db::NAME, database, None, None)?;
        server.tell_server_db(row);
        Ok(server)
    }

    /// From now on changes of the set of databases are told to clients, and what is served is kept for a successor.
    pub fn started(&mut self, saved: Option<Saved>) {
        self.is_started = true;
        if let Some(metrics) = &self.config.metrics {
            metrics.set_stage(Stage::Serving);
        }
        self.saved = saved;
        self.save();
    }

    fn save(&self) {
        let Some(saved) = &self.saved else {
            return;
        };
        let files = self
            .databases
            .iter()
            .filter(|(name, _)| *name != server_db::NAME);
        saved.write(&Configuration {
            databases: files.map(|(_, served)| served.name.clone()).collect(),
            remotes: self.remotes.given().map(str::to_owned).collect(),
            sync: self.sync.clone(),
        });
    }

    /// Starts the thread of a database and makes it known to the shards. Returns the transaction that shows it in `_Server`.
    fn serve(
        &mut self,
        name: &str,
        database: Database,
        file: Option<(LogFile, FileState)>,
        model: Option<ActiveBackup>,
    ) -> std::io::Result<Vec<u8>> {
        let schema: corvid_data::Arc<Schema> = database.schema().clone();
        let id = DatabaseId(self.next_database);
        self.next_database += 1;
        let is_server = file.is_none();
        let options = Options {
            id,
            model: match &file {
                None => Model::internal(),
                Some((_, state)) => Model::standalone(Some(*state)),
            },
            column_diff: self.config.column_diff,
            history: !is_server && self.keeps_history,
        };
        let mailbox = Mailbox::new();
        let sender = Arc::new(mailbox.sender());
        let weak: Weak<MailSender<ToDatabase>> = Arc::downgrade(&sender);
        let handle = InboxHandle(weak);
        let figures = self.config.metrics.as_ref().map(|metrics| {
            let figures = Arc::new(DatabaseFigures::new(handle.0.clone()));
            metrics.add_database(&schema.name, figures.clone());
            figures
        });
        let unforced_name = file
            .as_ref()
            .map_or_else(UnforcedName::default, |(file, _)| {
                file.disk().unforced_name().clone()
            });
        let storage = file
            .map(|(file, _)| Storage::new(file, handle.clone(), figures.clone()))
            .transpose()?;
        let freeing = figures.as_ref().map(|figures| figures.freeing.clone());
        let jobs = Worker::new(handle, freeing.unwrap_or_default())?;
        let uuids = Box::new(RandomUuids::new()?);
        let (locks, eras) = (self.locks.clone(), self.eras.clone());
        let now = read_clock();
        let recorder = self.begin_recording(&schema.name);
        let mut pump = if recorder.is_some() {
            let limits = PumpLimits::default();
            Pump::recorded(now, options, limits, database, locks, eras, uuids)
        } else {
            let service = DatabaseService::new(now, options, database, locks, eras, uuids);
            Pump::new(service)
        };
        let service = pump.service_mut();
        service.set_slow_ms(self.config.slow_ms);
        service.set_reply_memory(self.config.reply_memory.clone());
        let audit = self.config.audit.clone().filter(|_| !is_server);
        service.set_audited(audit.is_some() && self.config.is_audited);
        let effects = Effects {
            storage,
            worker: jobs,
            shards: self.shards.handles().to_vec(),
            main: self.main.clone(),
            audit,
            heartbeat: self.heartbeats.add(&format!("db:{}", schema.name)),
            figures,
            recorder,
            progress: Progress::default(),
        };
        let row = server_db::insert(&schema, pump.service().model().server_row());
        let driver = Arc::new(Mutex::new(Driver { pump, effects }));
        let shortcut = Inbox::new(driver.clone(), mailbox.sender());
        let label = format!("db_{}", schema.name);
        let worker = DatabaseThread {
            driver,
            mailbox,
            label,
        };
        let thread = std::thread::Builder::new()
            .name(format!("db:{}", schema.name))
            .spawn(move || worker.run())?;
        let served = Served {
            id,
            name: name.to_owned(),
            shortcut,
            inbox: sender,
            thread,
            unforced_name,
            model,
            following: None,
        };
        let is_backup = served.model.as_ref().is_some_and(|model| model.is_backup);
        self.databases.insert(schema.name.to_string(), served);
        let token = is_backup.then(|| self.waiting.several(1, None)[0]);
        let connection = token.and_then(|token| self.tell_role(&schema.name, token));
        self.publish();
        self.open_source(connection);
        Ok(row)
    }

    /// The recording of a database that is about to be served, if there is to be one. It is served without when it cannot be recorded.
    fn begin_recording(&self, name: &str) -> Option<Recorder> {
        let settings = self.config.record.as_ref()?;
        let recorder = Recorder::begin(settings, name);
        let failed = |error: &std::io::Error| {
            let (directory, error) = (settings.directory.display(), errno::text(error));
            let text = format_args!("{name}: cannot be recorded in {directory}: {error}");
            vlog::warn(Module::OvsdbServer, text);
        };
        recorder.inspect_err(failed).ok()
    }

    /// Names of served databases, sorted.
    pub fn database_names(&self) -> impl Iterator<Item = &str> {
        self.databases.keys().map(String::as_str)
    }

    /// Asks all databases for reports; `finish` gets them when the last one is in.
    pub fn ask(&mut self, finish: impl FnOnce(&mut Server, Reports) + 'static) {
        for (name, token) in self.questions.ask(self.databases.keys().cloned(), finish) {
            let report = ToDatabase::Control(Control::Report(token));
            let _ = self.databases[&name].inbox.send(report);
        }
    }

    /// Logs the rows of a table as they change, or no longer.
    pub fn log_rows(&self, database: &str, table: &str, is_logged: bool) {
        if let Some(served) = self.databases.get(database) {
            let order = Control::LogRows(table.to_owned(), is_logged);
            let _ = served.inbox.send(ToDatabase::Control(order));
        }
    }

    /// Who works on what for how long, for other threads to look at.
    #[must_use]
    pub fn heartbeats(&self) -> &Arc<Heartbeats> {
        &self.heartbeats
    }

    /// What is served, on one line, for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let names = self
            .database_names()
            .filter(|name| *name != server_db::NAME);
        match names.collect::<Vec<_>>().as_slice() {
            [] => "serving no database".to_owned(),
            names => format!("serving {}", names.join(", ")),
        }
    }

    /// Sessions of all remotes.
    pub fn session_count(&self) -> usize {
        self.remotes.session_count()
    }

    /// Whether memory is given back after a compaction. The allocator does so by itself within seconds, asked or not.
    pub fn set_trims_memory(&self, trims_memory: bool) {
        let state = if trims_memory { "enabled" } else { "disabled" };
        vlog::info(
            Module::OvsdbServer,
            format_args!("memory trimming after compaction {state}."),
        );
    }

    /// Closes every session.
    pub fn reconnect(&self) {
        let reason: Arc<str> = Arc::from("user ran ovsdb-server/reconnect");
        self.to_shards(|| ToShard::DisconnectAll(reason.clone()));
    }

    /// Refuses conditional monitoring until restart and closes every session.
    pub fn disable_monitor_cond(&self) {
        self.to_shards(|| ToShard::DisableMonitorCond);
        let reason: Arc<str> = Arc::from("user ran ovsdb-server/disable-monitor-cond");
        self.to_shards(|| ToShard::DisconnectAll(reason.clone()));
    }

    /// Compacts one database or all; `replier` is answered when all are done.
    pub fn compact(&mut self, only: Option<&str>, replier: Replier) {
        if only.is_some_and(|name| name.starts_with('_')) {
            replier.reply(Err("cannot compact built-in databases".to_owned()));
            return;
        }
        let wanted = |name: &str| only.map_or(!name.starts_with('_'), |only| only == name);
        let chosen: Vec<&String> = self.databases.keys().filter(|name| wanted(name)).collect();
        if chosen.is_empty() {
            replier.reply(Err("no database by that name".to_owned()));
            return;
        }
        let tokens = self.waiting.several(chosen.len(), Some(replier));
        for (name, token) in chosen.into_iter().zip(tokens) {
            vlog::info(
                Module::OvsdbServer,
                format_args!("compacting {name} database by user request"),
            );
            let _ = self.databases[name]
                .inbox
                .send(ToDatabase::Control(Control::Compact(Some(token))));
        }
    }

    /// Opens the audit log again after rotation, if there is one; `replier` is answered when everything from before is in the old file.
    pub fn reopen_audit_log(&self, replier: Replier) {
        match &self.config.audit {
            None => replier.reply(Ok(String::new())),
            Some(audit) => audit.reopen(|outcome| {
                let outcome = outcome.map(|()| String::new());
                replier.reply(outcome.map_err(|error| errno::text(&error)));
            }),
        }
    }

    /// Writes a copy of a database to a new file; `replier` is answered when it is on disk.
    pub fn backup(&mut self, database: &str, file: &str, replier: Replier) {
        let Some(served) = self.databases.get(database) else {
            replier.reply(Err("no database by that name".to_owned()));
            return;
        };
        match Backup::new(file) {
            Err(error) => replier.reply(Err(error)),
            Ok(backup) => {
                let token = self.waiting.backup(backup, replier);
                let _ = served
                    .inbox
                    .send(ToDatabase::Control(Control::Snapshot(token)));
            }
        }
    }

    /// Records modified columns as differences from now on.
    pub fn enable_column_diff(&mut self) {
        self.config.column_diff = true;
        for served in self.databases.values() {
            let enable = ToDatabase::Control(Control::EnableColumnDiff);
            let _ = served.inbox.send(enable);
        }
    }

    /// Tells whether what a database commits can be stored.
    pub fn storage_status(&mut self, database: &str, replier: Replier) {
        let Some(served) = self.databases.get(database) else {
            replier.reply(Err("Failed to find the database.".to_owned()));
            return;
        };
        let token = self.waiting.status(replier, served.unforced_name.clone());
        let _ = served
            .inbox
            .send(ToDatabase::Control(Control::StorageStatus(token)));
    }

    /// Ends the main loop.
    pub fn exit(&mut self) {
        self.is_exiting = true;
    }

    /// Whether the main loop is to end.
    #[must_use]
    pub fn is_exiting(&self) -> bool {
        self.is_exiting
    }

    /// Takes care of what the database threads report.
    pub fn run_events(&mut self) {
        while let Ok(report) = self.events.try_recv() {
            self.run_report(report);
        }
        let dropped = self.main.lines_dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            vlog::warn(
                Module::Transaction,
                format_args!("{dropped} messages dropped: they came faster than they were logged"),
            );
        }
        self.advance();
    }

    fn run_report(&mut self, report: Report) {
        match report {
            Report::Event(event) => self.run_event(event),
            Report::Opened(token, outcome) => self.opened(token, *outcome),
            Report::BackedUp(token, outcome) => self.waiting.backed_up(token, outcome),
            Report::SessionsListed(token, sessions) => self.sessions_listed(token, sessions),
            Report::SessionClosed(token, is_closed) => {
                self.waiting.session_closed(token, is_closed);
            }
            Report::Barrier(answer) => {
                // Who asked may have stopped waiting.
                let _ = answer.send(());
            }
        }
    }

    fn run_event(&mut self, event: Event) {
        match event {
            // Sessions that are closed are told nothing, so they go before `_Server` changes; here and below.
            Event::Converted(_, schema, era) => {
                let reason = format!("committed {} database schema conversion", schema.name);
                self.disconnect_unaware(&reason, Some(era));
                self.tell_server_db(server_db::update_schema(&schema));
            }
            Event::Removed(id) => {
                if let Some(removal) = self.waiting.removals.remove(&id) {
                    self.disconnect_unaware(&removal.reason, None);
                    self.tell_server_db(server_db::delete(&removal.name));
                    answer(removal.replier, Ok(String::new()));
                }
            }
            Event::Compacted(Some(token), result) => self.waiting.one_done(token, result),
            Event::RoleSet(token) => self.waiting.one_done(token, Ok(())),
            Event::Replication(notice) => roles::log(&notice),
            Event::Compacted(None, result) => {
                if let Err(error) = result {
                    vlog::warn(
                        Module::OvsdbServer,
                        format_args!("compaction failed: {}", error.to_wire()),
                    );
                }
            }
            Event::Snapshot(token, snapshot) => {
                self.waiting.snapshot_taken(token, snapshot, &self.main);
            }
            Event::StorageStatus(token, error) => self.waiting.status_told(token, error),
            Event::Followed(name, found) => self.followed(&name, found),
            Event::Report(token, report) => {
                if let Some((finish, reports)) = self.questions.answered(token, *report) {
                    finish(self, reports);
                }
            }
            Event::ColumnLost(error) => {
                vlog::warn(Module::OvsdbServer, format_args!("{error}"));
            }
            Event::Slow(line) => vlog::info(Module::Transaction, format_args!("{line}")),
            Event::RowLogged(line) => vlog::info(Module::Transaction, format_args!("{line}")),
            Event::NoStatusColumn(table) => {
                static LIMIT: RateLimit = RateLimit::new(1, 1);
                let message = format_args!("No status column present in the {table} table");
                vlog::warn_limited(&LIMIT, Module::OvsdbServer, message);
            }
            Event::NoTarget(table) => {
                static LIMIT: RateLimit = RateLimit::new(1, 1);
                let message =
                    format_args!("Table `{table}' has missing or invalid `target' column");
                vlog::info_limited(&LIMIT, Module::OvsdbServer, message);
            }
            Event::RemotesChanged(name, texts) if self.tls.concerns(&name) => {
                self.tls.set(&name, &texts);
            }
            Event::RemotesChanged(name, rows) => {
                let source = ColumnRemote::parse(&name);
                if source.is_some_and(|source| self.databases.contains_key(source.database)) {
                    self.remotes.set_rows(&name, rows);
                }
            }
        }
    }

    fn publish(&self) {
        let mut directory = Directory::default();
        let mut inboxes = HashMap::new();
        for (name, served) in &self.databases {
            directory.insert(name, served.id);
            inboxes.insert(served.id, served.shortcut.clone());
        }
        let directory = Arc::new(directory);
        for shard in self.shards.handles() {
            shard.post(ShardMessage::Databases(directory.clone(), inboxes.clone()));
        }
    }

    fn tell_server_db(&self, params: Vec<u8>) {
        if let Some(served) = self.databases.get(server_db::NAME) {
            let _ = served
                .inbox
                .send(ToDatabase::Control(Control::Transact(params)));
        }
    }

    fn disconnect_unaware(&self, reason: &str, era: Option<Era>) {
        let reason: Arc<str> = Arc::from(reason);
        self.to_shards(|| ToShard::DisconnectUnaware(reason.clone(), era));
    }

    fn to_shards(&self, message: impl Fn() -> ToShard) {
        for shard in self.shards.handles() {
            shard.post(ShardMessage::Service(message()));
        }
    }
}

fn answer(replier: Option<Replier>, outcome: Result<String, String>) {
    if let Some(replier) = replier {
        replier.reply(outcome);
    }
}

/// Whether a database may be served by its name.
///
/// # Errors
/// Worded as the reference does.
pub(crate) fn check_name(name: &str, is_taken: bool) -> Result<(), String> {
    if name.starts_with('_') {
        return Err(format!(
            "ovsdb error: {name}: names beginning with \"_\" are reserved"
        ));
    }
    if is_taken {
        return Err(format!("ovsdb error: {name}: duplicate database name"));
    }
    Ok(())
}

/// Whether a database is to be another server's, `relay:NAME:REMOTES`. What only begins like that is the name of a file.
pub(crate) fn is_relay(file: &str) -> bool {
    let parts = file
        .strip_prefix("relay:")
        .and_then(|rest| rest.split_once(':'));
    parts.is_some_and(|(_, remotes)| !remotes.is_empty())
}

/// Whether two names mean one file, links included.
pub(crate) fn same_file(a: &str, b: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}
