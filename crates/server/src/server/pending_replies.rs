//! Replies that wait for what databases report.
//!
//! A control command that concerns databases is sent on with a token, or under a name or number that the report brings back; the report
//! finds here whom to answer. Nothing here knows how a command is carried out. Used by the main thread only.

use corvid_log::storage::StoreError;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use corvid_engine::Snapshot;
use corvid_reactor::mailbox::MailSender;
use corvid_service::message::{DatabaseId, ToDatabase};
use corvid_shell::log_file::UnforcedName;
use corvid_shell::unixctl::Replier;

use super::tls_columns;
use crate::control::sessions::ListedSession;
use crate::database::backup::Backup;
use crate::main_handle::MainHandle;

/// What is waited for.
#[derive(Default)]
pub(super) struct PendingReplies {
    last_token: u64,
    countdowns: HashMap<u64, Rc<RefCell<Countdown>>>,
    /// Of `countdowns`: databases that have yet to take their role.
    roles: HashSet<u64>,
    /// The copy to be written stands here until there is a snapshot.
    backups: HashMap<u64, (Option<Backup>, Replier)>,
    /// The server exits: backups under way give up.
    pub(super) is_exiting: Arc<AtomicBool>,
    statuses: HashMap<u64, (Replier, UnforcedName)>,
    /// Sessions of shards that have answered, the number of those that have not, and who wants to know.
    lists: HashMap<u64, (Vec<ListedSession>, usize, Replier)>,
    /// Sessions that are to be closed.
    closings: HashMap<u64, Replier>,
    /// Databases that are being removed, with their names.
    pub(super) removals: HashMap<DatabaseId, Removal>,
    /// By the text of a remote that a database was asked for.
    pub(super) follows: HashMap<String, Vec<Replier>>,
    /// Of `follows`: remotes that the configuration names, to be checked before it counts as carried out.
    pub(super) checked_remotes: HashSet<String>,
    /// Why configured remotes name nothing.
    pub(super) bad_remotes: Vec<String>,
    /// Columns that name settings of TLS.
    pub(super) tls: tls_columns::PendingColumns,
}

/// A database that is being removed.
pub(super) struct Removal {
    pub(super) name: String,
    /// The removal may wait for the disk and for a new file. Their answers reach the database only while this sender exists.
    pub(super) inbox: Arc<MailSender<ToDatabase>>,
    /// What sessions that are not aware of changes are told as they are closed.
    pub(super) reason: String,
    pub(super) replier: Option<Replier>,
}

/// Something that countdowns databases do: compaction, a change of roles.
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

    /// `replier`, if anybody, waits until so many databases have done something; a token for each.
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

    /// A database has done it, or not.
    pub(super) fn complete_one(&mut self, token: u64, outcome: Result<(), StoreError>) {
        self.roles.remove(&token);
        if let Some(countdowns) = self.countdowns.remove(&token) {
            countdowns.borrow_mut().complete_one(outcome);
        }
    }

    /// What this token is for is that a database takes its role.
    pub(super) fn await_role(&mut self, token: u64) {
        self.roles.insert(token);
    }

    /// Whether a database has yet to take its role.
    pub(super) fn awaits_roles(&self) -> bool {
        !self.roles.is_empty()
    }

    /// `replier` waits until a snapshot has been taken and written.
    pub(super) fn backup(&mut self, backup: Backup, replier: Replier) -> u64 {
        let token = self.token();
        self.backups.insert(token, (Some(backup), replier));
        token
    }

    /// The snapshot is there, and its writing begins; `None`: the database is being removed.
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

    /// The copy is written, or not.
    pub(super) fn backed_up(&mut self, token: u64, outcome: Result<(), String>) {
        if let Some((_, replier)) = self.backups.remove(&token) {
            replier.reply(outcome.map(|()| String::new()));
        }
    }

    /// `replier` waits until so many shards have told of their sessions.
    pub(super) fn list(&mut self, shards: usize, replier: Replier) -> u64 {
        let token = self.token();
        self.lists.insert(token, (Vec::new(), shards, replier));
        token
    }

    /// A shard has told of its sessions; the last one yields all of them, and whom to answer.
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

    /// `replier` waits until a session is being closed.
    pub(super) fn closing(&mut self, replier: Replier) -> u64 {
        let token = self.token();
        self.closings.insert(token, replier);
        token
    }

    /// It is, or there is no such session.
    pub(super) fn session_closed(&mut self, token: u64, is_closed: bool) {
        if let Some(replier) = self.closings.remove(&token) {
            let none = || Err("no such session".to_owned());
            replier.reply(if is_closed { Ok(String::new()) } else { none() });
        }
    }

    /// Whether a database that goes, or a backup, has yet to end.
    pub(super) fn is_ending(&self) -> bool {
        !self.removals.is_empty() || !self.backups.is_empty()
    }

    /// `replier` waits to hear whether what a database commits can be stored.
    pub(super) fn status(&mut self, replier: Replier, name: UnforcedName) -> u64 {
        let token = self.token();
        self.statuses.insert(token, (replier, name));
        token
    }

    /// Why the last commit could not be stored, if so. Scripts compare the first line, so what else is to be said follows on another.
    pub(super) fn status_told(&mut self, token: u64, error: Option<StoreError>) {
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
        let error = outcome.err().map(|error| error.to_wire().to_string());
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
