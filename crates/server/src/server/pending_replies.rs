//! Control commands that wait for databases, members or shards, and the continuation of each.
//!
//! A request to a database or a shard carries a token (or a name, or a number) that its answer
//! brings back; the token finds the continuation here. This file does not know how commands are
//! carried out. Only the main thread uses it.
//!
//! Invariant: a token is answered once. A second answer finds no continuation.

use corvid_log::storage::StoreError;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use corvid_reactor::mailbox::MailSender;
use corvid_service::member::file::REFUSED;
use corvid_service::message::{ControlAnswer, DatabaseId, ToDatabase};
use corvid_shell::unixctl::{Outcome, Replier};

use super::Server;
use super::column_reads::ColumnReads;
use crate::control::sessions::SessionList;
use crate::status::MemberStatus;

/// The rest of a command, run with a database's answer.
type Continuation = Box<dyn FnOnce(&mut Server, ControlAnswer)>;

/// The rest of a command, run with a member's status; `None`: the member has ended.
type MemberContinuation = Box<dyn FnOnce(&mut Server, Option<MemberStatus>)>;

/// The rest of a command, run with all sessions.
type SessionsContinuation = Box<dyn FnOnce(&mut Server, SessionList)>;

/// All pending commands.
#[derive(Default)]
pub(super) struct PendingReplies {
    last_token: u64,
    /// Commands that databases answer.
    answers: HashMap<u64, Continuation>,
    /// The tokens in `answers` that wait for a change of role.
    roles: HashSet<u64>,
    /// Commands whose answer is the text of the reply. Those that a member answers have the name of
    /// its database.
    repliers: HashMap<u64, (Option<String>, Replier)>,
    /// Backups that wait for their snapshot or are being written.
    backups: HashMap<u64, Replier>,
    /// Set when the server exits: cancels backups and openings.
    pub(super) is_exiting: Arc<AtomicBool>,
    /// Requests for the status of a member, with the name of its database.
    members: HashMap<u64, (String, MemberContinuation)>,
    /// Lists of sessions: the sessions that have arrived, the number of shards still to answer, and
    /// the continuation.
    lists: HashMap<u64, (SessionList, usize, SessionsContinuation)>,
    /// Databases that are being removed.
    pub(super) removals: HashMap<DatabaseId, Removal>,
    /// Columns that databases are reading.
    pub(super) columns: ColumnReads,
}

/// A database that is being removed.
pub(super) struct Removal {
    pub(super) name: String,
    /// The removal may wait for the disk and for a rewrite, whose answers reach the database only
    /// while this sender exists. `None`: the server was still joining, so there is no database.
    pub(super) _mailbox: Option<Arc<MailSender<ToDatabase>>>,
    /// The reason given to the sessions that are closed because they are not aware of changes.
    pub(super) reason: String,
    pub(super) replier: Option<Replier>,
}

/// A command that several databases carry out, such as a compaction or a change of roles.
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

    /// Registers `finish` for a database's answer. Returns the answer's token.
    pub(super) fn await_answer(
        &mut self,
        finish: impl FnOnce(&mut Server, ControlAnswer) + 'static,
    ) -> u64 {
        let token = self.token();
        self.answers.insert(token, Box::new(finish));
        token
    }

    /// Takes the continuation with this token, if it is still pending.
    pub(super) fn answered(&mut self, token: u64) -> Option<Continuation> {
        self.roles.remove(&token);
        self.answers.remove(&token)
    }

    /// Adds a command that this number of databases carry out. Returns a token for each. `replier`
    /// is answered when all have answered.
    pub(super) fn countdown(&mut self, databases: usize, replier: Option<Replier>) -> Vec<u64> {
        let countdown = Rc::new(RefCell::new(Countdown {
            databases_left: databases,
            errors: Vec::new(),
            replier,
        }));
        let one = |_| {
            let countdown = countdown.clone();
            self.await_answer(move |_, answer| {
                countdown.borrow_mut().complete_one(answer.outcome());
            })
        };
        (0..databases).map(one).collect()
    }

    /// Marks this token as a change of role.
    pub(super) fn await_role(&mut self, token: u64) {
        assert!(
            self.answers.contains_key(&token),
            "a change of role is answered"
        );
        self.roles.insert(token);
    }

    /// Whether a change of role is pending.
    pub(super) fn awaits_roles(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Adds a backup. Returns the token of its outcome.
    pub(super) fn backup(&mut self, replier: Replier) -> u64 {
        let token = self.token();
        self.backups.insert(token, replier);
        token
    }

    /// Answers a backup that is written or has failed.
    pub(super) fn backed_up(&mut self, token: u64, outcome: Outcome) {
        if let Some(replier) = self.backups.remove(&token) {
            replier.reply(outcome);
        }
    }

    /// Registers `finish` for the status of the member of `database`. Returns the answer's token.
    pub(super) fn await_member(
        &mut self,
        database: &str,
        finish: impl FnOnce(&mut Server, Option<MemberStatus>) + 'static,
    ) -> u64 {
        let token = self.token();
        let waiting = (database.to_owned(), Box::new(finish) as MemberContinuation);
        self.members.insert(token, waiting);
        token
    }

    /// Takes the continuation with this token, if it is still pending.
    pub(super) fn told(&mut self, token: u64) -> Option<MemberContinuation> {
        self.members.remove(&token).map(|(_, finish)| finish)
    }

    /// The member of `database` has ended and answers nothing more: refuses the commands that wait
    /// for it. Returns the continuations that wait for its status, in the order of the requests.
    #[must_use]
    pub(super) fn member_ended(&mut self, database: &str) -> Vec<MemberContinuation> {
        let is_of = |waiting: &Option<String>| waiting.as_deref() == Some(database);
        let commands = self.repliers.extract_if(|_, (waiting, _)| is_of(waiting));
        for (_, (_, replier)) in commands {
            replier.reply(Err(ended(database)));
        }
        let members = &mut self.members;
        let mut told: Vec<_> = members
            .extract_if(|_, (name, _)| name == database)
            .collect();
        told.sort_unstable_by_key(|(token, _)| *token);
        told.into_iter().map(|(_, (_, finish))| finish).collect()
    }

    /// Adds a list of the sessions of this number of shards, which `finish` gets.
    pub(super) fn list(
        &mut self,
        shards: usize,
        finish: impl FnOnce(&mut Server, SessionList) + 'static,
    ) -> u64 {
        let token = self.token();
        self.lists
            .insert(token, (SessionList::default(), shards, Box::new(finish)));
        token
    }

    /// Adds the sessions of one shard. The last shard's call returns the complete list, sorted, and
    /// the continuation.
    pub(super) fn listed(
        &mut self,
        token: u64,
        sessions: SessionList,
    ) -> Option<(SessionList, SessionsContinuation)> {
        let (all, left, _) = self.lists.get_mut(&token)?;
        all.sessions.extend(sessions.sessions);
        all.requests += sessions.requests;
        assert!(*left > 0, "each shard answers once");
        *left -= 1;
        if *left > 0 {
            return None;
        }
        let (mut all, _, finish) = self.lists.remove(&token)?;
        all.sessions.sort_unstable_by_key(|listed| listed.session);
        Some((all, finish))
    }

    /// Adds a command that a shard, or the member of this database, answers with the reply. Returns
    /// the answer's token.
    pub(super) fn await_reply(&mut self, member: Option<&str>, replier: Replier) -> u64 {
        let token = self.token();
        let waiting = (member.map(str::to_owned), replier);
        self.repliers.insert(token, waiting);
        token
    }

    /// Answers a command added by [`PendingReplies::await_reply`].
    pub(super) fn reply(&mut self, token: u64, outcome: Outcome) {
        if let Some((_, replier)) = self.repliers.remove(&token) {
            replier.reply(outcome);
        }
    }

    /// Whether a removal or a backup is pending.
    pub(super) fn is_ending(&self) -> bool {
        !self.removals.is_empty() || !self.backups.is_empty()
    }
}

/// The answer to a command whose member has ended.
pub(super) fn ended(database: &str) -> String {
    format!("{database}: the member has ended")
}

impl Countdown {
    fn complete_one(&mut self, outcome: Result<(), StoreError>) {
        assert!(self.databases_left > 0, "each database answers once");
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
