//! Control commands that wait for reports of databases or shards, and their repliers.
//!
//! An order to a database or a shard carries a token (or a name, or a number) that its report brings back. The report finds the replier here by
//! the token. This file does not know how commands are carried out. Used by the main thread only.

use corvid_log::storage::StoreError;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use corvid_engine::Snapshot;
use corvid_reactor::mailbox::MailSender;
use corvid_service::member::file::REFUSED;
use corvid_service::message::{DatabaseId, ToDatabase};
use corvid_shell::log_file::UnforcedName;
use corvid_shell::unixctl::Replier;

use super::tls_columns;
use crate::control::sessions::ListedSession;
use crate::database::backup::Backup;
use crate::main_handle::MainHandle;

/// All pending commands.
#[derive(Default)]
pub(super) struct PendingReplies {
    last_token: u64,
    countdowns: HashMap<u64, Rc<RefCell<Countdown>>>,
    /// The tokens of `countdowns` that wait for a change of role.
    roles: HashSet<u64>,
    /// Backups; the file is `None` when the snapshot has arrived and is being written.
    backups: HashMap<u64, (Option<Backup>, Replier)>,
    /// Set when the server exits: cancels backups and openings.
    pub(super) is_exiting: Arc<AtomicBool>,
    statuses: HashMap<u64, (Replier, UnforcedName)>,
    /// Lists of sessions: those that have arrived, the number of shards that have not answered, and the replier.
    lists: HashMap<u64, (Vec<ListedSession>, usize, Replier)>,
    /// Orders to close a session.
    closings: HashMap<u64, Replier>,
    /// Commands of clusters' members.
    members: HashMap<u64, Replier>,
    /// Databases that are being removed.
    pub(super) removals: HashMap<DatabaseId, Removal>,
    /// Reads of columns, by the text of the remote that names the column. The list may be empty.
    pub(super) column_reads: HashMap<String, Vec<Replier>>,
    /// Those of `column_reads` that the configuration under way waits for.
    pub(super) checked_remotes: HashSet<String>,
    /// The errors of those reads.
    pub(super) bad_remotes: Vec<String>,
    /// Reads of columns that hold TLS settings.
    pub(super) tls: tls_columns::PendingColumns,
}

/// A database that is being removed.
pub(super) struct Removal {
    pub(super) name: String,
    /// The removal may wait for the disk and for a rewrite, whose answers reach the database only while this sender exists. `None`: the
    /// server was joining a cluster, so there is no database.
    pub(super) _mailbox: Option<Arc<MailSender<ToDatabase>>>,
    /// Why sessions that are not aware of changes are closed.
    pub(super) reason: String,
    pub(super) replier: Option<Replier>,
}

/// A command that several databases carry out: compaction, a change of roles.
struct Countdown {
    databases_left: usize,
    errors: Vec<String>,
    replier: Option<Replier>,
}

impl PendingReplies {
    fn token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// Adds a command that so many databases carry out. Returns a token for each. `replier` is answered when all are done.
    pub(super) fn countdown(&mut self, databases: usize, replier: Option<Replier>) -> Vec<u64> {
        let countdowns = Rc::new(RefCell::new(Countdown {
            databases_left: databases,
            errors: Vec::new(),
            replier,
        }));
        let tokens: Vec<u64> = (0..databases).map(|_| self.token()).collect();
        let entries = tokens.iter().map(|token| (*token, countdowns.clone()));
        self.countdowns.extend(entries);
        tokens
    }

    /// A database has succeeded or failed.
    pub(super) fn complete_one(&mut self, token: u64, outcome: Result<(), StoreError>) {
        self.roles.remove(&token);
        if let Some(countdowns) = self.countdowns.remove(&token) {
            countdowns.borrow_mut().complete_one(outcome);
        }
    }

    /// Marks this token as a change of role.
    pub(super) fn await_role(&mut self, token: u64) {
        self.roles.insert(token);
    }

    /// Whether a change of role is pending.
    pub(super) fn awaits_roles(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Adds a backup; returns the token of its snapshot.
    pub(super) fn backup(&mut self, backup: Backup, replier: Replier) -> u64 {
        let token = self.token();
        self.backups.insert(token, (Some(backup), replier));
        token
    }

    /// Begins to write a backup whose snapshot has arrived; `None`: the database is being removed.
    pub(super) fn snapshot_taken(
        &mut self,
        token: u64,
        snapshot: Option<Snapshot>,
        main: &MainHandle,
    ) {
        let Some((backup, _)) = self.backups.get_mut(&token) else {
            return;
        };
        match (backup.take(), snapshot) {
            (Some(backup), Some(snapshot)) => {
                let is_exiting = self.is_exiting.clone();
                backup.start(token, snapshot, main.clone(), is_exiting);
            }
            _ => self.backed_up(token, Err("database removed".to_owned())),
        }
    }

    /// A backup is written, or has failed.
    pub(super) fn backed_up(&mut self, token: u64, outcome: Result<String, String>) {
        if let Some((_, replier)) = self.backups.remove(&token) {
            replier.reply(outcome);
        }
    }

    /// Adds a list of the sessions of so many shards.
    pub(super) fn list(&mut self, shards: usize, replier: Replier) -> u64 {
        let token = self.token();
        self.lists.insert(token, (Vec::new(), shards, replier));
        token
    }

    /// Adds the sessions of one shard. The last shard's call returns the complete list and the replier.
    pub(super) fn listed(
        &mut self,
        token: u64,
        sessions: Vec<ListedSession>,
    ) -> Option<(Vec<ListedSession>, Replier)> {
        let (all, left, _) = self.lists.get_mut(&token)?;
        all.extend(sessions);
        *left -= 1;
        if *left > 0 {
            return None;
        }
        let (all, _, replier) = self.lists.remove(&token)?;
        Some((all, replier))
    }

    /// Adds an order to close a session.
    pub(super) fn closing(&mut self, replier: Replier) -> u64 {
        let token = self.token();
        self.closings.insert(token, replier);
        token
    }

    /// The session is being closed, or does not exist.
    pub(super) fn session_closed(&mut self, token: u64, is_closed: bool) {
        if let Some(replier) = self.closings.remove(&token) {
            let none = || Err("no such session".to_owned());
            replier.reply(if is_closed { Ok(String::new()) } else { none() });
        }
    }

    /// Adds a command of a cluster's member.
    pub(super) fn of_member(&mut self, replier: Replier) -> u64 {
        let token = self.token();
        self.members.insert(token, replier);
        token
    }

    /// A member has carried out a command.
    pub(super) fn member_answered(&mut self, token: u64, outcome: Result<String, String>) {
        if let Some(replier) = self.members.remove(&token) {
            replier.reply(outcome);
        }
    }

    /// Whether a removal or a backup is pending.
    pub(super) fn is_ending(&self) -> bool {
        !self.removals.is_empty() || !self.backups.is_empty()
    }

    /// Adds a query of a database's storage status.
    pub(super) fn status(&mut self, replier: Replier, name: UnforcedName) -> u64 {
        let token = self.token();
        self.statuses.insert(token, (replier, name));
        token
    }

    /// Answers a query. `error`: why the last commit could not be stored. Scripts compare the first line, so a warning is on a second one.
    pub(super) fn storage_status_reported(&mut self, token: u64, error: Option<StoreError>) {
        if let Some((replier, name)) = self.statuses.remove(&token) {
            let status = error.map_or("ok".to_owned(), |error| error.to_wire().to_string());
            let warning = name
                .get()
                .map_or_else(String::new, |words| format!("warning: {words}\n"));
            replier.reply(Ok(format!("status: {status}\n{warning}")));
        }
    }
}

impl Countdown {
    fn complete_one(&mut self, outcome: Result<(), StoreError>) {
        self.databases_left -= 1;
        let error = outcome.err().map(|error| match error.io_error.as_str() {
            REFUSED => format!("ovsdb error: {}", error.details),
            _ => error.to_wire().to_string(),
        });
        self.errors.extend(error);
        if self.databases_left == 0
            && let Some(replier) = self.replier.take()
        {
            replier.reply(if self.errors.is_empty() {
                Ok(String::new())
            } else {
                Err(self.errors.join("\n"))
            });
        }
    }
}
