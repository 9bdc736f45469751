//! Requests of control commands and of the main loop to databases and shards. Part of the main
//! thread.
//!
//! The commands and their arguments are in [`crate::control`]. [`Server::ask_database`] sends a
//! command that a database answers; [`super::pending_replies`] keeps its continuation.

use std::sync::Arc;

use corvid_consensus::member::Absence;
use corvid_log::storage::StoreError;
use corvid_monitor::SessionId;
use corvid_net::errno;
use corvid_service::member::file::{refusal, refusal_without};
use corvid_service::message::{Control, ControlAnswer, ToShard};
use corvid_service::served_databases::absence_reason;
use corvid_shell::memory::Usage;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::roles::SourceConnection;
use super::served::ServedDatabase;
use super::upstream::{JoiningDatabase, Upstream};
use super::{Server, roles};
use crate::config::replication::{self, ActiveBackup, ReplicationSettings, StatusEntry};
use crate::control::reports::{self, Gathering, Reports};
use crate::control::sessions::{self, SessionList};
use crate::database::backup::Backup;
use crate::shard::ShardMessage;

impl Server {
    /// Sends a message with a fresh token to a database; `finish` gets the answer. If the database
    /// does not exist, `finish` is dropped, and a replier in it answers that the command was
    /// abandoned.
    pub(crate) fn ask_database(
        &mut self,
        database: &str,
        message: impl FnOnce(u64) -> Control,
        finish: impl FnOnce(&mut Server, ControlAnswer) + 'static,
    ) {
        if self.databases.serves(database) {
            let token = self.pending.await_answer(finish);
            self.databases.control(database, message(token));
        }
    }

    /// Passes a database's answer to the continuation with this token.
    pub(super) fn database_answered(&mut self, token: u64, answer: ControlAnswer) {
        if let Some(finish) = self.pending.answered(token) {
            finish(self, answer);
        }
    }

    /// Asks all databases for reports; `finish` gets them when the last one has arrived.
    pub(crate) fn ask_all(&mut self, finish: impl FnOnce(&mut Server, Reports) + 'static) {
        let names = self.databases.served_names();
        let gathering = Gathering::begin(names.len(), finish);
        for name in names {
            let (gathering, database) = (gathering.clone(), name.clone());
            self.ask_database(&name, Control::Report, move |server, answer| {
                if let ControlAnswer::Report(report) = answer
                    && let Some((finish, reports)) = gathering.add(database, *report)
                {
                    finish(server, reports);
                }
            });
        }
    }

    /// The counts of `memory/show`.
    pub(crate) fn usage(&self, reports: &Reports) -> Usage {
        let clusters = self.databases.cluster_usage();
        let relays = self.databases.relay_usage();
        reports::usage(reports, self.session_count(), &clusters, &relays)
    }

    /// Logs whether memory is to be trimmed after a compaction. The allocator returns memory within
    /// seconds in either case.
    pub(crate) fn set_trims_memory(&self, trims_memory: bool) {
        let state = if trims_memory { "enabled" } else { "disabled" };
        vlog::info(
            Module::OvsdbServer,
            format_args!("memory trimming after compaction {state}."),
        );
    }

    /// Closes every session.
    pub(crate) fn reconnect(&self) {
        let reason: Arc<str> = Arc::from("user ran ovsdb-server/reconnect");
        self.shared
            .to_shards(|| ToShard::DisconnectAll(reason.clone()));
    }

    /// Rejects conditional monitoring until restart, and closes every session.
    pub(crate) fn disable_monitor_cond(&self) {
        self.shared.to_shards(|| ToShard::DisableMonitorCond);
        let reason: Arc<str> = Arc::from("user ran ovsdb-server/disable-monitor-cond");
        self.shared
            .to_shards(|| ToShard::DisconnectAll(reason.clone()));
    }

    /// Compacts one database or all; `replier` is answered when all compactions have ended.
    pub(crate) fn compact(&mut self, only: Option<&str>, replier: Replier) {
        if only.is_some_and(|name| name.starts_with('_')) {
            replier.reply(Err("cannot compact built-in databases".to_owned()));
            return;
        }
        let wanted = |name: &str| only.map_or(!name.starts_with('_'), |only| only == name);
        let mut chosen = self.databases.served_names();
        chosen.retain(|name| wanted(name));
        let joining = self.databases.all_joining();
        let joining = joining.filter(|(name, _)| wanted(name));
        // A member without contents has nothing to compact, and a relay has no file.
        let outcome = |joining: &JoiningDatabase| match joining.upstream {
            Upstream::Member(_) => Err(refusal(refusal_without(joining.absence))),
            Upstream::Relay(_) => Ok(()),
        };
        let outcomes: Vec<Result<(), StoreError>> =
            joining.map(|(_, joining)| outcome(joining)).collect();
        let count = chosen.len() + outcomes.len();
        if count == 0 {
            replier.reply(Err("no database by that name".to_owned()));
            return;
        }
        let mut tokens = self.pending.countdown(count, Some(replier));
        for (token, outcome) in tokens.split_off(chosen.len()).into_iter().zip(outcomes) {
            self.database_answered(token, ControlAnswer::Compacted(outcome));
        }
        for (name, token) in chosen.into_iter().zip(tokens) {
            vlog::info(
                Module::OvsdbServer,
                format_args!("compacting {name} database by user request"),
            );
            self.databases.control(&name, Control::Compact(Some(token)));
        }
    }

    /// Whether an audit log is open, switched on or off.
    pub(crate) fn is_audit_open(&self) -> bool {
        self.config.audit.get().is_some()
    }

    /// Reopens the audit log after rotation, if there is one. `replier` is answered when all
    /// earlier entries are in the old file.
    pub(crate) fn reopen_audit_log(&self, replier: Replier) {
        match self.config.audit.get() {
            None => replier.reply(Ok(String::new())),
            Some(audit) => audit.reopen(|outcome| {
                let outcome = outcome.map(|()| String::new());
                replier.reply(outcome.map_err(|error| errno::text(&error)));
            }),
        }
    }

    /// Writes a backup of a database to a new file; `replier` is answered when the backup is on
    /// disk.
    pub(crate) fn backup(&mut self, database: &str, file: &str, replier: Replier) {
        if !self.databases.serves(database) {
            replier.reply(Err("no database by that name".to_owned()));
            return;
        }
        match Backup::new(file) {
            Err(error) => replier.reply(Err(error)),
            Ok(backup) => {
                let written = self.pending.backup(replier);
                self.ask_database(database, Control::Snapshot, move |server, answer| {
                    let ControlAnswer::Snapshot(Some(snapshot)) = answer else {
                        let removed = Err("database removed".to_owned());
                        return server.pending.backed_up(written, removed);
                    };
                    let is_exiting = server.pending.is_exiting.clone();
                    let (main, jobs) = (server.shared.main.clone(), &server.config.jobs);
                    backup.start(written, snapshot, main, is_exiting, jobs);
                });
            }
        }
    }

    /// Makes log records store modified columns as differences from now on.
    pub(crate) fn enable_column_diff(&mut self) {
        self.config.column_diff = true;
        for name in self.databases.served_names() {
            self.databases.control(&name, Control::EnableColumnDiff);
        }
    }

    /// Makes conversions of clustered databases omit the rows from now on.
    pub(crate) fn enable_no_data_conversion(&mut self) {
        self.config.data_conversion = false;
        for name in self.databases.served_names() {
            self.databases
                .control(&name, Control::EnableNoDataConversion);
        }
    }

    /// Reports whether a database can store its commits.
    pub(crate) fn storage_status(&mut self, database: &str, replier: Replier) {
        let Some(served) = self.databases.served(database) else {
            let joining = self.databases.joining(database);
            let absence = joining.map(|joining| joining.absence);
            replier.reply(match absence {
                Some(Absence::Joining) => Ok("status: ok\n".to_owned()),
                Some(absence @ (Absence::Damaged | Absence::Failed)) => {
                    let why = absence_reason(absence);
                    Ok(format!("status: ovsdb error: {why}\n"))
                }
                None => Err("Failed to find the database.".to_owned()),
            });
            return;
        };
        let name = served.unforced_name.clone();
        self.ask_database(database, Control::StorageStatus, move |_, answer| {
            if let ControlAnswer::StorageStatus(error) = answer {
                replier.reply(Ok(reports::storage_status(
                    error.as_ref(),
                    name.get().map(String::as_str),
                )));
            }
        });
    }

    /// Lists the history of a database on disk.
    pub(crate) fn show_history(&self, database: &str, replier: Replier) {
        let histories = &self.config.histories;
        let listed = histories.text(database).zip(histories.json(database));
        match listed {
            Some((text, json)) => replier.reply_in_format(|| text, || json),
            None if self.databases.serves(database) => {
                replier.reply(Err(format!("{database} has no file")));
            }
            None => replier.reply(Err("no database by that name".to_owned())),
        }
    }
}

/// Sessions. The shards answer between two pieces of work.
impl Server {
    /// Lists all sessions; `replier` is answered when all shards have listed theirs.
    pub(crate) fn list_sessions(&mut self, replier: Replier) {
        self.gather_sessions(|server, all| {
            let locks = server.shared.locks();
            replier.reply_in_format(
                || sessions::lines(&all.sessions, &locks),
                || sessions::json(&all.sessions, &locks),
            );
        });
    }

    /// Asks all shards for their sessions; `finish` gets them, sorted, when all have answered.
    pub(super) fn gather_sessions(
        &mut self,
        finish: impl FnOnce(&mut Server, SessionList) + 'static,
    ) {
        let shards = self.shared.shards.handles();
        let token = self.pending.list(shards.len(), finish);
        for shard in shards {
            shard.post(ShardMessage::ListSessions(token, self.shared.main.clone()));
        }
    }

    pub(super) fn sessions_listed(&mut self, token: u64, sessions: SessionList) {
        if let Some((all, finish)) = self.pending.listed(token, sessions) {
            finish(self, all);
        }
    }

    /// Closes the session with this hexadecimal number, as shown in the list.
    pub(crate) fn close_session(&mut self, id: &str, replier: Replier) {
        let number = u64::from_str_radix(id, 16).ok().map(SessionId);
        let shard = |id| self.shared.shard_of(id);
        match number.and_then(|id| Some((id, shard(id)?.clone()))) {
            None => replier.reply(Err("no such session".to_owned())),
            Some((id, shard)) => {
                let token = self.pending.await_reply(None, replier);
                shard.post(ShardMessage::CloseSession(
                    id,
                    token,
                    self.shared.main.clone(),
                ));
            }
        }
    }
}

/// Roles of databases: see [`Roles`](super::roles::Roles).
impl Server {
    /// Restores saved settings, for databases that are served from now on.
    pub(crate) fn set_sync(&mut self, settings: ReplicationSettings) {
        self.roles.restore(settings);
    }

    /// The source that backups follow, or will follow.
    pub(crate) fn sync_source(&self) -> String {
        self.roles.source(&self.databases)
    }

    /// Sets the source. It takes effect at the next command that makes backups connect.
    pub(crate) fn set_sync_source(&mut self, source: &str) {
        self.roles.set_source(source, &mut self.databases);
        self.save();
    }

    /// Makes every database a backup; `replier` is answered when all are backups.
    pub(crate) fn become_backup(&mut self, replier: Replier) {
        match self.roles.become_backup() {
            Ok(()) => self.apply_roles(replier, |_| true),
            Err(text) => replier.reply(Ok(text)),
        }
    }

    /// Makes every database active; `replier` is answered when all are active.
    pub(crate) fn become_active(&mut self, replier: Replier) {
        self.roles.become_active();
        self.apply_roles(replier, |served| served.replication.is_some());
    }

    /// The tables that backups do not replicate, as given by the user.
    pub(crate) fn sync_excluded(&self) -> String {
        self.roles.excluded(&self.databases)
    }

    /// Sets the tables that backups do not replicate, and restarts the replication; `replier` is
    /// answered when it has restarted.
    pub(crate) fn set_sync_excluded(&mut self, excluded: &str, replier: Replier) {
        self.roles.set_excluded(excluded, &mut self.databases);
        self.apply_roles(replier, |served| served.source.is_some());
    }

    /// Sets the probe interval towards the source, ms; 0: no probes.
    pub(crate) fn set_sync_probe_interval(&mut self, interval_ms: u64) {
        let (databases, shared) = (&mut self.databases, &self.shared);
        self.roles
            .set_probe_interval(interval_ms, databases, shared);
        self.save();
    }

    /// Reports the status of backups.
    pub(crate) fn sync_status(&mut self, replier: Replier) {
        self.ask_all(|server, reports| {
            let served = server.databases.all_served();
            let shown = served.map(|(name, served)| StatusEntry {
                name,
                replication: served.replication.as_ref(),
                source: served.source.as_ref().map_or("", |(_, source)| source),
                standing: reports.get(name).and_then(|report| report.replication),
            });
            let shown: Vec<StatusEntry<'_>> = shown.collect();
            replier.reply(Ok(replication::status(&shown)));
        });
    }

    /// Changes the replication of a served database without closing the database. Does nothing if
    /// the settings are the same.
    pub(super) fn set_replication(&mut self, database: &str, replication: Option<ActiveBackup>) {
        let Some(served) = self.databases.served_mut(database) else {
            return;
        };
        if served.replication == replication {
            return;
        }
        served.replication = replication;
        let token = self.pending.countdown(1, None)[0];
        self.apply_role(database, token);
    }

    /// Applies the present settings to the databases that `concerns` selects.
    fn apply_roles(&mut self, replier: Replier, concerns: impl Fn(&ServedDatabase) -> bool) {
        let chosen = self.roles.assign(&mut self.databases, concerns);
        self.save();
        if chosen.is_empty() {
            replier.reply(Ok(String::new()));
            return;
        }
        let tokens = self.pending.countdown(chosen.len(), Some(replier));
        for (name, token) in chosen.iter().zip(tokens) {
            self.apply_role(name, token);
        }
    }

    /// Applies the role of a database from the beginning.
    fn apply_role(&mut self, database: &str, token: u64) {
        let connection = self.send_role(database, token);
        roles::open_source(connection, &self.shared);
    }

    /// Sends a database its role. Returns the connection that it needs as a backup.
    #[must_use]
    pub(super) fn send_role(&mut self, database: &str, token: u64) -> Option<SourceConnection> {
        self.pending.await_role(token);
        let (databases, shared) = (&mut self.databases, &self.shared);
        self.roles.send(database, token, databases, shared)
    }
}
