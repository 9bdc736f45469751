//! Requests of control commands and of the main loop to databases and shards. Part of the main
//! thread.
//!
//! The commands and their arguments are in [`crate::control`]. [`Server::ask_database`] sends a
//! command that a database answers; [`super::pending_replies`] keeps its continuation.

use std::sync::Arc;

use corvid_consensus::member::Absence;
use corvid_log::storage::StoreError;
use corvid_net::errno;
use corvid_service::member::file::{refusal, refusal_without};
use corvid_service::message::{Control, ControlAnswer, ToDatabase, ToShard};
use corvid_service::served_databases::absence_reason;
use corvid_shell::memory::Usage;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::Server;
use super::upstream::{JoiningDatabase, Upstream};
use crate::control::reports::{self, Gathering, Reports};
use crate::database::backup::Backup;
use crate::shard::ShardMessage;

impl Server {
    /// Sends a message to a database; does nothing if the database does not exist.
    pub(crate) fn control_database(&self, database: &str, control: Control) {
        if let Some(served) = self.databases.get(database) {
            let _ = served.mailbox.send(ToDatabase::Control(control));
        }
    }

    /// Sends a message with a fresh token to a database; `finish` gets the answer. If the database
    /// does not exist, `finish` is dropped, and a replier in it answers that the command was
    /// abandoned.
    pub(crate) fn ask_database(
        &mut self,
        database: &str,
        message: impl FnOnce(u64) -> Control,
        finish: impl FnOnce(&mut Server, ControlAnswer) + 'static,
    ) {
        if self.databases.contains_key(database) {
            let token = self.pending.await_answer(finish);
            self.control_database(database, message(token));
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
        let names: Vec<String> = self.databases.keys().cloned().collect();
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
        let (clusters, relays) = (self.cluster_usage(), self.relay_usage());
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
        self.to_shards(|| ToShard::DisconnectAll(reason.clone()));
    }

    /// Rejects conditional monitoring until restart, and closes every session.
    pub(crate) fn disable_monitor_cond(&self) {
        self.to_shards(|| ToShard::DisableMonitorCond);
        let reason: Arc<str> = Arc::from("user ran ovsdb-server/disable-monitor-cond");
        self.to_shards(|| ToShard::DisconnectAll(reason.clone()));
    }

    /// Compacts one database or all; `replier` is answered when all compactions have ended.
    pub(crate) fn compact(&mut self, only: Option<&str>, replier: Replier) {
        if only.is_some_and(|name| name.starts_with('_')) {
            replier.reply(Err("cannot compact built-in databases".to_owned()));
            return;
        }
        let wanted = |name: &str| only.map_or(!name.starts_with('_'), |only| only == name);
        let chosen = self.databases.keys().filter(|name| wanted(name));
        let chosen: Vec<String> = chosen.cloned().collect();
        let joining = self.joining.iter().filter(|(name, _)| wanted(name));
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
            self.control_database(&name, Control::Compact(Some(token)));
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
        if !self.databases.contains_key(database) {
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
                    let (main, jobs) = (server.main.clone(), &server.config.jobs);
                    backup.start(written, snapshot, main, is_exiting, jobs);
                });
            }
        }
    }

    /// Makes log records store modified columns as differences from now on.
    pub(crate) fn enable_column_diff(&mut self) {
        self.config.column_diff = true;
        for name in self.databases.keys() {
            self.control_database(name, Control::EnableColumnDiff);
        }
    }

    /// Makes conversions of clustered databases omit the rows from now on.
    pub(crate) fn enable_no_data_conversion(&mut self) {
        self.config.data_conversion = false;
        for name in self.databases.keys() {
            self.control_database(name, Control::EnableNoDataConversion);
        }
    }

    /// Reports whether a database can store its commits.
    pub(crate) fn storage_status(&mut self, database: &str, replier: Replier) {
        let Some(served) = self.databases.get(database) else {
            let absence = self.joining.get(database).map(|joining| joining.absence);
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
            None if self.databases.contains_key(database) => {
                replier.reply(Err(format!("{database} has no file")));
            }
            None => replier.reply(Err("no database by that name".to_owned())),
        }
    }

    pub(super) fn to_shards(&self, message: impl Fn() -> ToShard) {
        for shard in self.shards.handles() {
            shard.post(ShardMessage::Service(message()));
        }
    }
}
