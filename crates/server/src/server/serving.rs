//! Starts to serve a database: its pump, its file, its threads, its recording, and the directory
//! through which shards reach it. Part of the main thread.
//!
//! Invariant: when [`Server::serve`] returns, the shards' next messages reach the database, and its
//! role has been sent to it. [`super::shutdown`] stops serving a database.

use std::sync::{Arc, Mutex, Weak};

use corvid_data::Schema;
use corvid_disk::log_file::{LogFile, UnforcedName};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index};
use corvid_net::errno;
use corvid_reactor::mailbox::{MailSender, Mailbox};
use corvid_service::applied_index::AppliedIndex;
use corvid_service::message::{DatabaseId, ToDatabase};
use corvid_service::once::RecordedCommits;
use corvid_service::pump::Limits as PumpLimits;
use corvid_service::storage::FileState;
use corvid_service::{DatabaseService, Model, Options, Pump, Setting, member_row, server_db};
use corvid_shell::vlog::{self, Module};

use super::served::ServedDatabase;
use super::upstream::Upstream;
use super::{Server, roles};
use crate::audit::AuditSlot;
use crate::config::replication::ActiveBackup;
use crate::database::driver::{BatchState, Driver, Effects, read_clock};
use crate::database::handle::DatabaseHandle;
use crate::database::jobs::JobThreads;
use crate::database::open::RandomUuids;
use crate::database::recorder::Recorder;
use crate::database::shown_index::ShownIndex;
use crate::database::storage::{FileOwner, ReplySender, Storage};
use crate::database::thread::DatabaseThread;
use crate::database::upstream::UpstreamHandle;
use crate::member::prepared::PreparedMember;
use crate::metrics::database::DatabaseFigures;
use crate::metrics::switch::Switched;
use crate::read_history::PastReader;

/// Where the commits of a database are kept.
pub(super) enum Backing {
    /// Nowhere: `_Server`.
    Memory,
    /// A separate file, whose records name these commits.
    File(LogFile, FileState, RecordedCommits),
    /// The file of its member. The contents include these entries: the last applied one, and the
    /// last one with data. The file names these commits.
    Member(Box<PreparedMember>, Index, Eid, RecordedCommits),
    /// The initial contents, after this entry, of a database whose member has just joined its
    /// cluster or whose relay has reached its source. The database keeps its number.
    Joined(DatabaseId, Box<Upstream>, Index, Eid, RecordedCommits),
}

impl Server {
    /// Starts the thread of a database and publishes the database to the shards. Returns the
    /// transaction that inserts its row in `_Server`.
    ///
    /// # Errors
    /// A thread cannot be started, or the system has no random numbers. The database leaves no
    /// trace then; the thread of a joined database has not been ended.
    pub(super) fn serve(
        &mut self,
        name: &str,
        database: Database,
        backing: Backing,
        replication: Option<ActiveBackup>,
    ) -> std::io::Result<Vec<u8>> {
        let schema = database.schema().clone();
        let outcome = self.start_database(name, database, backing, replication);
        if outcome.is_err() {
            self.config.metrics.remove_database(&schema.name);
        }
        outcome
    }

    fn start_database(
        &mut self,
        name: &str,
        database: Database,
        backing: Backing,
        replication: Option<ActiveBackup>,
    ) -> std::io::Result<Vec<u8>> {
        let schema: corvid_data::Arc<Schema> = database.schema().clone();
        let id = match &backing {
            Backing::Joined(id, ..) => *id,
            Backing::Memory | Backing::File(..) | Backing::Member(..) => self.databases.new_id(),
        };
        let is_server_db = matches!(backing, Backing::Memory);
        let mut file = None;
        let mut recorded = RecordedCommits::default();
        let mut member = None;
        let mut joined = None;
        // Only a member has an applied index: a relay shows none.
        let mut applied = None;
        let model = match backing {
            Backing::Memory => Model::server_db(),
            Backing::File(of_database, state, of_file) => {
                recorded = of_file;
                file = Some((of_database, state));
                Model::standalone()
            }
            Backing::Member(of_member, index, eid, of_file) => {
                recorded = of_file;
                member = Some(of_member);
                applied = Some(index);
                Model::clustered(index, eid)
            }
            Backing::Joined(_, upstream, index, eid, of_file) => {
                recorded = of_file;
                let model = match &*upstream {
                    Upstream::Member(_) => {
                        applied = Some(index);
                        Model::clustered(index, eid)
                    }
                    Upstream::Relay(_) => Model::relay(index, eid),
                };
                joined = Some((*upstream, index));
                model
            }
        };
        let applied = applied.map(|index| AppliedIndex::new(&schema.name, index));
        let server_db = self.databases.served(server_db::NAME);
        let server_db = server_db.map(|served| served.handle.clone());
        let options = Options {
            id,
            model,
            file: file.as_ref().map(|(_, state)| *state),
            column_diff: self.config.column_diff,
            history: !is_server_db && self.history.is_kept(),
            recorded,
        };
        let mailbox = Mailbox::new();
        let sender = Arc::new(mailbox.sender());
        let weak: Weak<MailSender<ToDatabase>> = Arc::downgrade(&sender);
        let replies = ReplySender(weak);
        let metrics = &self.config.metrics;
        let figures = Arc::new(DatabaseFigures::new(replies.0.clone()));
        metrics.add_database(&schema.name, figures.clone());
        let figures = Switched::new(figures, metrics.switch());
        let unforced_name = file
            .as_ref()
            .map_or_else(UnforcedName::default, |(file, _)| {
                file.disk().unforced_name().clone()
            });
        let storage = file
            .map(|(file, _)| {
                let owner = FileOwner::Database(replies.clone());
                let figures = Some(figures.state().clone());
                let histories = &self.config.histories;
                let jobs = self.config.jobs.clone();
                Storage::new(file, &schema.name, owner, figures, histories, jobs)
            })
            .transpose()?;
        let past = PastReader::new(self.config.histories.clone(), &schema.name);
        let shards = self.shared.shards.handles().to_vec();
        let freeing = figures.state().freeing.clone();
        let (listed, owner) = (self.config.jobs.clone(), schema.name.to_string());
        let jobs = JobThreads::new(replies, freeing, Some(past), shards, listed, owner)?;
        let uuids = Box::new(RandomUuids::new()?);
        let (locks, epochs) = (self.shared.locks.clone(), self.shared.epochs.clone());
        let now = read_clock();
        let recorder = match options.model.can_be_recorded() {
            true => self.begin_recording(&schema.name),
            false => self.log_unrecorded(&schema.name),
        };
        let mut pump = if recorder.is_some() {
            let limits = PumpLimits::default();
            Pump::with_tape(now, options, limits, database, locks, epochs, uuids)
        } else {
            let service = DatabaseService::new(now, options, database, locks, epochs, uuids);
            Pump::new(service)
        };
        let service = pump.service_mut();
        service.set_slow_ms(self.config.slow_ms);
        service.set_data_conversion(self.config.data_conversion);
        if self.history.names_clients() {
            service.set(Setting::RecordClients, 1);
        }
        service.set_client_memory(self.config.client_memory.clone());
        // Only the server itself changes `_Server`, so its commits are not audited.
        let audit = match is_server_db {
            true => AuditSlot::default(),
            false => self.config.audit.clone(),
        };
        service.set_audited(audit.get().is_some() && self.config.is_audited);
        let effects = Effects {
            storage,
            upstream: match (&member, &joined) {
                (Some(member), _) => Some(UpstreamHandle::Member(member.handle().clone())),
                (None, Some((upstream, _))) => Some(upstream.handle()),
                (None, None) => None,
            },
            shown_index: applied
                .clone()
                .zip(server_db)
                .map(|(applied, server_db)| ShownIndex::new(applied, server_db)),
            job_threads: jobs,
            shards: self.shared.shards.handles().to_vec(),
            main: self.shared.main.clone(),
            audit,
            liveness: self
                .shared
                .liveness_registry
                .add(&format!("db:{}", schema.name)),
            figures,
            recorder,
            batch: BatchState::default(),
        };
        let row = match (&member, &joined) {
            (Some(member), _) => member_row::insert(&schema.name, Some(&schema), member.row()),
            // The row has existed since the server began to join, or the relay to connect.
            (None, Some(_)) => server_db::update_schema(&schema),
            (None, None) => server_db::insert(&schema, pump.service().model().server_row()),
        };
        let driver = Arc::new(Mutex::new(Driver { pump, effects }));
        let handle = DatabaseHandle::new(driver.clone(), mailbox.sender());
        let label = format!("db_{}", schema.name);
        let database_thread = DatabaseThread {
            driver,
            mailbox,
            label,
        };
        let thread = std::thread::Builder::new()
            .name(format!("db:{}", schema.name))
            .spawn(move || database_thread.run())?;
        // The database's thread runs before the member's or relay's, which sends it events at once.
        let upstream = match (member, joined) {
            (Some(member), _) => {
                let figures = self.member_figures(&schema.name);
                let main = self.shared.main.clone();
                let member = member.start(id, Some(handle.clone()), main, figures)?;
                Some(Upstream::Member(member))
            }
            (None, Some((upstream, index))) => {
                upstream.served(index, handle.clone());
                Some(upstream)
            }
            (None, None) => None,
        };
        let served = ServedDatabase {
            id,
            upstream,
            applied,
            name: name.to_owned(),
            handle,
            mailbox: sender,
            thread,
            unforced_name,
            replication,
            source: None,
        };
        let is_backup = served
            .replication
            .as_ref()
            .is_some_and(|replication| replication.is_backup);
        self.databases.add_served(&schema.name, served);
        // In this order: the role is in the mailbox before `publish` lets shards send requests, and
        // the source is dialled only when its shard can reach the database.
        let token = is_backup.then(|| self.pending.countdown(1, None)[0]);
        let connection = token.and_then(|token| self.send_role(&schema.name, token));
        self.publish();
        roles::open_source(connection, &self.shared);
        Ok(row)
    }

    /// Begins the recording of a database that is about to be served, with `--record`. If that
    /// fails, the database is served without a recording.
    pub(super) fn begin_recording(&self, name: &str) -> Option<Recorder> {
        let settings = self.config.record.as_ref()?;
        let recorder = Recorder::begin(settings, name);
        let failed = |error: &std::io::Error| {
            let (directory, error) = (settings.directory.display(), errno::text(error));
            let text = format_args!("{name}: cannot record to {directory}: {error}");
            vlog::warn(Module::OvsdbServer, text);
        };
        recorder.inspect_err(failed).ok()
    }

    /// Logs that a database is not recorded, although `--record` asks for recordings.
    fn log_unrecorded(&self, name: &str) -> Option<Recorder> {
        if self.config.record.is_some() {
            let text = format_args!("{name}: not recorded: only standalone databases are");
            vlog::info(Module::OvsdbServer, text);
        }
        None
    }
}
