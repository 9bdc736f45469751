//! The client: a session, a replica, at most one open transaction, and what is outstanding (docs/spec/idl.md 1.1, 1.2, 1.4).
//!
//! A pure state machine, driven like the session below it: [`Idl::handle`] takes the time and bytes, [`Idl::poll_output`] returns actions,
//! [`Idl::poll_timeout`] the time of the next call. Everything a user holds is a plain value (row, column, transaction, fetch), so bindings need
//! no lifetimes; values of columns are cheap to clone, however large.
//!
//! Invariants. The replica changes only within [`Idl::handle`], which refuses to run while a transaction is open. The effects of one
//! transaction of the server become visible at once. When a transaction has succeeded, the replica shows it.

mod fetching;
mod reading;
mod transacting;

use std::collections::BTreeMap;

use corvid_data::{Arc, Schema, TableId, Uuid};
use corvid_session::{Client, Condition, Event, Input, Options, Outcome, Output, RequestId};

use crate::class::Class;
use crate::fetch::{FetchOutcome, Fetches};
use crate::handlers::Handlers;
use crate::log_queue::{IdlLogMessage, LogQueue};
use crate::metrics::Metrics;
use crate::mistake::{Mistake, UnreplicatedReads};
use crate::provisional_uuids::ProvisionalUuids;
use crate::replica::{Replica, Resync};
use crate::txn::compose::Expected;
use crate::txn::reply::{self, Verdict};
use crate::txn::{Misuse, OpenTxn, Status, TxnId};

/// The client of one database.
#[derive(Debug)]
pub struct Idl {
    client: Client,
    pub(crate) replica: Replica,
    pub(crate) handlers: Handlers,
    pub(crate) metrics: Metrics,
    open: Option<OpenTxn>,
    /// Transactions that were sent.
    outstanding: BTreeMap<RequestId, (TxnId, Expected)>,
    /// Transactions that succeeded while the contents were on their way anew: told when the replica shows them.
    unseen: Vec<(TxnId, Verdict)>,
    /// Transactions that are not open any more, until they are forgotten.
    closed: BTreeMap<TxnId, Closed>,
    fetches: Fetches,
    log: LogQueue,
    unreplicated_reads: UnreplicatedReads,
    last_txn: u64,
    /// For rows that the server is to name.
    provisional: ProvisionalUuids,
}

/// The record of a transaction.
#[derive(Debug)]
struct Closed {
    verdict: Verdict,
    /// It was aborted after it was sent: the answer is ignored.
    is_abandoned: bool,
}

impl Idl {
    /// A client for the database of `class`. `seed` is the seed of random choices; give each client another one. It connects once
    /// [`Idl::session`] is given remotes.
    #[must_use]
    pub fn new(class: Class, seed: u64) -> Idl {
        let mut options = Options::new(&class.schema.name, seed);
        options.interest = class.interest();
        options.schema = Some(class.schema.clone());
        Idl::with_options(class, options)
    }

    /// As [`Idl::new`], with settings of the session. Its interest becomes that of `class`, and its
    /// schema that of `class` if it has none.
    #[must_use]
    pub fn with_options(mut class: Class, options: Options) -> Idl {
        let mut log = LogQueue::default();
        for mistake in std::mem::take(&mut class.mistakes) {
            log.push(IdlLogMessage::Mistake(mistake));
        }
        let options = Options {
            interest: class.interest(),
            schema: options.schema.or_else(|| Some(class.schema.clone())),
            ..options
        };
        Idl {
            provisional: ProvisionalUuids::new(options.seed),
            unreplicated_reads: UnreplicatedReads::new(&class.schema),
            client: Client::new(options),
            replica: Replica::new(class, Resync::default()),
            handlers: Handlers::default(),
            metrics: Metrics::default(),
            open: None,
            outstanding: BTreeMap::new(),
            unseen: Vec::new(),
            closed: BTreeMap::new(),
            fetches: Fetches::default(),
            log,
            last_txn: 0,
        }
    }

    /// Transactions that were sent and are not answered.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.outstanding.len() as u64
    }

    /// How the rows are replaced when the server sends all of them again.
    pub fn set_resync(&mut self, resync: Resync) {
        self.replica.set_resync(resync);
    }

    /// The session: remotes, probes, the lock, the choice of a server. Its updates reach the replica at the next
    /// [`Idl::handle`].
    pub fn session(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The session, for reading its state.
    #[must_use]
    pub fn session_state(&self) -> &Client {
        &self.client
    }

    /// The client's schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.replica.class.schema
    }

    /// The counters. The cost is proportional to the number of tables.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let [rows_inserted, rows_modified, rows_deleted] = self.replica.changes;
        let rows = self.replica.tables.iter().map(|table| table.len() as u64);
        Metrics {
            session: self.client.metrics(),
            rows_inserted,
            rows_modified,
            rows_deleted,
            rows: rows.sum(),
            ..self.metrics
        }
    }

    /// The class: the modes of tables and columns.
    #[must_use]
    pub fn class(&self) -> &Class {
        &self.replica.class
    }
}

/// The machine.
impl Idl {
    /// Handles an event, and brings the replica up to date.
    ///
    /// # Errors
    /// A transaction is open; commit or abort it first. The input was not handled.
    pub fn handle(&mut self, now_ms: u64, input: Input<'_>) -> Result<(), Misuse> {
        if self.open.is_some() {
            return Err(Misuse::TransactionOpen);
        }
        self.client.handle(now_ms, input);
        while let Some(event) = self.client.poll_event() {
            self.event(now_ms, event);
        }
        Ok(())
    }

    /// The next action for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.client.poll_output()
    }

    /// When to call [`Idl::handle`] next; `None` when nothing is due before the next input.
    #[must_use]
    pub fn poll_timeout(&self, now_ms: u64) -> Option<u64> {
        self.client.poll_timeout(now_ms)
    }

    /// The next message for the log. The drivers pass all of them to the program's logger. Without a driver the last [`LOG_MESSAGES_MAX`] are
    /// kept.
    ///
    /// [`LOG_MESSAGES_MAX`]: crate::log_queue::LOG_MESSAGES_MAX
    pub fn poll_log(&mut self) -> Option<IdlLogMessage> {
        for column in self.unreplicated_reads.take() {
            let mistake = Mistake::not_replicated(&self.replica.class.schema, column);
            self.log.push(IdlLogMessage::Mistake(mistake));
        }
        self.log.pop()
    }

    /// How many log messages were dropped because the queue was full.
    #[must_use]
    pub fn log_messages_dropped(&self) -> u64 {
        self.log.dropped()
    }

    fn event(&mut self, now_ms: u64, event: Event) {
        match event {
            Event::Connected | Event::MonitorEnded | Event::LockNotification { .. } => {}
            Event::Disconnected => self.tell_unseen(),
            Event::Locked => self.replica.seqno += u64::from(self.client.is_monitoring()),
            Event::Log(message) => self.log.push(IdlLogMessage::Session(message)),
            Event::Update(update) => {
                let mut complaints = Vec::new();
                let is_reply = update.is_reply;
                let applied = self.replica.apply(update, &mut complaints);
                if is_reply {
                    self.tell_unseen();
                }
                for complaint in complaints {
                    self.log.push(IdlLogMessage::Column(complaint));
                }
                if let Err(details) = applied {
                    self.metrics.updates_refused += 1;
                    self.client.flag_inconsistency(now_ms, &details);
                } else {
                    self.metrics.updates_applied += 1;
                    self.call_handlers();
                }
            }
            Event::Reply { id, outcome } => self.answered(now_ms, id, outcome),
        }
    }

    fn answered(&mut self, now_ms: u64, request: RequestId, outcome: Outcome) {
        if let Some((txn, expected)) = self.outstanding.remove(&request) {
            let verdict = match &outcome {
                Outcome::Result(result) => reply::judge(result, &expected),
                Outcome::Error(error) => reply::judge_error(error),
                Outcome::Lost => Verdict::of(Status::TryAgain),
            };
            if verdict.is_inconsistent {
                let details = "the server does not know the database";
                self.client.flag_inconsistency(now_ms, details);
            }
            self.metrics.count(verdict.status);
            if let Some(error) = &verdict.error {
                self.log.refused(error);
            }
            // A monitor that a conversion has ended shows nothing: what was committed since comes with the contents of the next.
            if verdict.status == Status::Success && !self.client.is_monitoring() {
                self.unseen.push((txn, verdict));
            } else {
                self.end(txn, verdict);
            }
        } else if let Some(fetch) = self.fetches.take(request) {
            let outcome = match outcome {
                Outcome::Result(result) => crate::fetch::apply(&mut self.replica, &fetch, &result),
                Outcome::Error(error) => {
                    FetchOutcome::Error(String::from_utf8_lossy(&error).into_owned())
                }
                Outcome::Lost => FetchOutcome::Disconnected,
            };
            self.fetches.ended(&fetch, outcome);
            self.replica.seqno += 1;
        }
    }
}

/// Ends of transactions.
impl Idl {
    fn end(&mut self, txn: TxnId, verdict: Verdict) {
        let closed = self.closed.get_mut(&txn);
        if let Some(closed) = closed.filter(|closed| !closed.is_abandoned) {
            closed.verdict = verdict;
        }
    }

    /// The contents have come, or their connection is gone and it may take long until they do.
    fn tell_unseen(&mut self) {
        for (txn, verdict) in std::mem::take(&mut self.unseen) {
            self.end(txn, verdict);
        }
    }
}

/// Changes.
impl Idl {
    /// Grows with every visible change of the replica: rows that come or go, changes of columns that alert, every reply to a monitor
    /// request, the lock when it is acquired, every fetch that ends.
    #[must_use]
    pub fn change_seqno(&self) -> u64 {
        self.replica.seqno
    }

    /// Grows whenever rows were dropped together with their tracked changes, which only [`Resync::Reload`] does. A program that processes
    /// tracked changes starts over then.
    #[must_use]
    pub fn resync_epoch(&self) -> u64 {
        self.replica.epoch
    }

    /// Whether contents have ever arrived.
    #[must_use]
    pub fn has_ever_connected(&self) -> bool {
        self.client.has_ever_had_contents()
    }

    /// [`Idl::change_seqno`] at the last insertion, modification and deletion in a table; 0 for none.
    #[must_use]
    pub fn table_seqnos(&self, table: TableId) -> [u64; 3] {
        self.replica.watches[usize::from(table.0)].seqnos
    }

    /// The rows of a table that changed since [`Idl::clear_changes`], in the order of their first change.
    #[must_use]
    pub fn changes(&self, table: TableId) -> &[crate::track::Tracked] {
        self.replica.watches[usize::from(table.0)].track.entries()
    }

    /// Clears the tracked changes.
    pub fn clear_changes(&mut self) {
        for watch in &mut self.replica.watches {
            watch.track.clear();
        }
    }

    /// The changes of a row since [`Idl::clear_changes`].
    #[must_use]
    pub fn change_of(&self, table: TableId, uuid: Uuid) -> Option<&crate::track::Tracked> {
        self.replica.watches[usize::from(table.0)].track.get(uuid)
    }
}

/// Conditions.
impl Idl {
    /// Sets the condition of a table. Returns the number that [`Idl::condition_seqno`] must reach before the condition is in force.
    ///
    /// # Errors
    /// [`Misuse::Condition`]: a server would refuse a clause, by its schema, or by the client's
    /// before the server's is known. Nothing has changed.
    pub fn set_condition(
        &mut self,
        now_ms: u64,
        table: TableId,
        condition: Condition,
    ) -> Result<u64, Misuse> {
        let name = &self.replica.class.schema.table(table).name;
        Ok(self.client.set_condition(now_ms, name, condition)?)
    }

    /// The server's error as JSON, if the number is that of the last change of conditions that it
    /// refused. The session goes on with the conditions before that change.
    #[must_use]
    pub fn condition_refusal(&self, promise: u64) -> Option<&str> {
        self.client.condition_refusal(promise)
    }

    /// The number up to which conditions are in force, or were refused
    /// ([`Idl::condition_refusal`]): compare with `>=`.
    #[must_use]
    pub fn condition_seqno(&self) -> u64 {
        self.client.condition_seqno()
    }
}
