//! Orders of control commands and of the main loop to databases and shards. Part of the main thread.
//!
//! The commands and their arguments are in [`crate::control`]. A command that depends on a database's report is answered by
//! [`super::pending_replies`].

use std::sync::Arc;

use corvid_consensus::member::Absence;
use corvid_net::errno;
use corvid_service::member::file::{refusal, refusal_without};
use corvid_service::message::{Control, ToDatabase, ToShard};
use corvid_service::served_databases::absence_reason;
use corvid_shell::memory::Usage;
use corvid_shell::unixctl::Replier;
use corvid_shell::vlog::{self, Module};

use super::Server;
use super::upstream::{JoiningDatabase, Upstream};
use crate::control::reports::{self, Reports};
use crate::database::backup::Backup;
use crate::shard::ShardMessage;

impl Server {
    /// Asks all databases for reports; `finish` gets them when the last one has arrived.
    pub(crate) fn ask(&mut self, finish: impl FnOnce(&mut Server, Reports) + 'static) {
        for (name, token) in self
            .report_requests
            .ask(self.databases.keys().cloned(), finish)
        {
            let report = ToDatabase::Control(Control::Report(token));
            let _ = self.databases[&name].mailbox.send(report);
        }
    }

    /// The counts of `memory/show`.
    pub(crate) fn usage(&self, reports: &Reports) -> Usage {
        let (clusters, relays) = (self.cluster_usage(), self.relay_usage());
        reports::usage(reports, self.session_count(), &clusters, &relays)
    }

    /// Begins or ends logging the changed rows of a table.
    pub(crate) fn log_rows(&self, database: &str, table: &str, is_logged: bool) {
        if let Some(served) = self.databases.get(database) {
            let order = Control::LogRows(table.to_owned(), is_logged);
            let _ = served.mailbox.send(ToDatabase::Control(order));
        }
    }

    /// Logs whether memory is to be trimmed after a compaction. The allocator trims it within seconds in any case.
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

    /// Refuses conditional monitoring until restart and closes every session.
    pub(crate) fn disable_monitor_cond(&self) {
        self.to_shards(|| ToShard::DisableMonitorCond);
        let reason: Arc<str> = Arc::from("user ran ovsdb-server/disable-monitor-cond");
        self.to_shards(|| ToShard::DisconnectAll(reason.clone()));
    }

    /// Compacts one database or all; `replier` is answered when all are done.
    pub(crate) fn compact(&mut self, only: Option<&str>, replier: Replier) {
        if only.is_some_and(|name| name.starts_with('_')) {
            replier.reply(Err("cannot compact built-in databases".to_owned()));
            return;
        }
        let wanted = |name: &str| only.map_or(!name.starts_with('_'), |only| only == name);
        let chosen: Vec<&String> = self.databases.keys().filter(|name| wanted(name)).collect();
        let joining = self.joining.iter().filter(|(name, _)| wanted(name));
        let joining: Vec<&JoiningDatabase> = joining.map(|(_, joining)| joining).collect();
        let count = chosen.len() + joining.len();
        if count == 0 {
            replier.reply(Err("no database by that name".to_owned()));
            return;
        }
        let mut tokens = self.pending.countdown(count, Some(replier));
        for (token, joining) in tokens.split_off(chosen.len()).into_iter().zip(joining) {
            // A member without contents has nothing to compact, and a relay has no file.
            let outcome = match joining.upstream {
                Upstream::Member(_) => Err(refusal(refusal_without(joining.absence))),
                Upstream::Relay(_) => Ok(()),
            };
            self.pending.complete_one(token, outcome);
        }
        for (name, token) in chosen.into_iter().zip(tokens) {
            vlog::info(
                Module::OvsdbServer,
                format_args!("compacting {name} database by user request"),
            );
            let _ = self.databases[name]
                .mailbox
                .send(ToDatabase::Control(Control::Compact(Some(token))));
        }
    }

    /// Whether there is an audit log, on or off.
    pub(crate) fn is_audit_open(&self) -> bool {
        self.config.audit.get().is_some()
    }

    /// Opens the audit log again after rotation, if there is one. `replier` is answered when all earlier entries are in the old file.
    pub(crate) fn reopen_audit_log(&self, replier: Replier) {
        match self.config.audit.get() {
            None => replier.reply(Ok(String::new())),
            Some(audit) => audit.reopen(|outcome| {
                let outcome = outcome.map(|()| String::new());
                replier.reply(outcome.map_err(|error| errno::text(&error)));
            }),
        }
    }

    /// Writes a copy of a database to a new file; `replier` is answered when the copy is on disk.
    pub(crate) fn backup(&mut self, database: &str, file: &str, replier: Replier) {
        let Some(served) = self.databases.get(database) else {
            replier.reply(Err("no database by that name".to_owned()));
            return;
        };
        match Backup::new(file) {
            Err(error) => replier.reply(Err(error)),
            Ok(backup) => {
                let token = self.pending.backup(backup, replier);
                let _ = served
                    .mailbox
                    .send(ToDatabase::Control(Control::Snapshot(token)));
            }
        }
    }

    /// From now on log records hold modified columns as differences.
    pub(crate) fn enable_column_diff(&mut self) {
        self.config.column_diff = true;
        for served in self.databases.values() {
            let enable = ToDatabase::Control(Control::EnableColumnDiff);
            let _ = served.mailbox.send(enable);
        }
    }

    /// From now on conversions of clustered databases are proposed without their rows.
    pub(crate) fn enable_no_data_conversion(&mut self) {
        self.config.data_conversion = false;
        for served in self.databases.values() {
            let enable = ToDatabase::Control(Control::EnableNoDataConversion);
            let _ = served.mailbox.send(enable);
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
        let token = self.pending.status(replier, served.unforced_name.clone());
        let _ = served
            .mailbox
            .send(ToDatabase::Control(Control::StorageStatus(token)));
    }

    pub(super) fn to_shards(&self, message: impl Fn() -> ToShard) {
        for shard in self.shards.handles() {
            shard.post(ShardMessage::Service(message()));
        }
    }
}
