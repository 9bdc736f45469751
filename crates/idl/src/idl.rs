//! The client: a session, a replica, at most one open transaction, and the outstanding requests
//! (docs/spec/idl.md 1.1, 1.2, 1.4).
//!
//! A pure state machine, driven like the session below it. [`Idl::handle`] takes the time and
//! bytes, [`Idl::poll_output`] returns actions, and [`Idl::poll_timeout`] returns the time of the
//! next call. Users hold only plain values (row, column, transaction, fetch), so bindings need no
//! lifetimes. Column values are cheap to clone, however large.
//!
//! Invariants. The replica changes only within [`Idl::handle`], which refuses to run while a
//! transaction is open. The effects of one of the server's transactions become visible together.
//! Once a transaction of this client has succeeded, the replica shows it.

mod asking;
mod fetching;
mod reading;
mod transacting;

pub use asking::{ASKED_MAX, Undo};

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
    /// Transactions that were sent and not answered yet.
    outstanding: BTreeMap<RequestId, (TxnId, Expected)>,
    /// Transactions that succeeded while no monitor was running, because new contents were on their
    /// way. Their success is reported once the replica shows them.
    unseen: Vec<(TxnId, Verdict)>,
    /// Transactions that are no longer open, until they are forgotten.
    closed: BTreeMap<TxnId, Closed>,
    fetches: Fetches,
    asked: asking::Answers,
    log: LogQueue,
    unreplicated_reads: UnreplicatedReads,
    last_txn: u64,
    /// UUIDs for inserted rows until the server assigns theirs.
    provisional: ProvisionalUuids,
}

/// The record of a transaction that is no longer open.
#[derive(Debug)]
struct Closed {
    verdict: Verdict,
    /// The transaction was aborted after it was sent, so its reply is ignored.
    is_abandoned: bool,
}

impl Idl {
    /// A client for the database of `class`. `seed` seeds its random choices: give each client a
    /// different one. The client connects once [`Idl::session`] has remotes.
    #[must_use]
    pub fn new(class: Class, seed: u64) -> Idl {
        let mut options = Options::new(&class.schema.name, seed);
        options.interest = class.interest();
        options.schema = Some(class.schema.clone());
        Idl::with_options(class, options)
    }

    /// Creates a client, as [`Idl::new`] does, with settings of the session. The interest of
    /// `options` is replaced by that of `class`; so is its schema, if it has none.
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
            asked: asking::Answers::new(),
            log,
            last_txn: 0,
        }
    }

    /// Number of transactions that were sent and not answered yet.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.outstanding.len() as u64
    }

    /// Sets how rows are replaced when the server sends all of them again.
    pub fn set_resync(&mut self, resync: Resync) {
        self.replica.set_resync(resync);
    }

    /// The session: remotes, probes, the lock and the choice of a server. Its updates reach the
    /// replica at the next [`Idl::handle`].
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

    /// The counters. Costs time proportional to the number of tables.
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

/// The state machine.
impl Idl {
    /// Handles an event, and brings the replica up to date. `now_ms` is the time of a monotonic
    /// clock in milliseconds.
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

    /// The next action for the driver; `None` if there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.client.poll_output()
    }

    /// When to call [`Idl::handle`] next, in milliseconds of the same clock; `None` if nothing is
    /// due before the next input.
    #[must_use]
    pub fn poll_timeout(&self, now_ms: u64) -> Option<u64> {
        self.client.poll_timeout(now_ms)
    }

    /// The next message for the log. The drivers pass all of them to the program's logger. Without
    /// a driver, the last [`LOG_MESSAGES_MAX`] are kept.
    ///
    /// [`LOG_MESSAGES_MAX`]: crate::log_queue::LOG_MESSAGES_MAX
    pub fn poll_log(&mut self) -> Option<IdlLogMessage> {
        // Reads have only shared access to the client, so their mistakes wait here for the next
        // poll.
        for column in self.unreplicated_reads.take() {
            let mistake = Mistake::not_replicated(&self.replica.class.schema, column);
            self.log.push(IdlLogMessage::Mistake(mistake));
        }
        self.log.pop()
    }

    /// Number of log messages dropped because the queue was full.
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
                // The contents have just been replaced, so they show every transaction that
                // succeeded while they were on their way. Only now may these be reported as
                // successful.
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
                    // Called last, so that handlers see the whole update.
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
            // Without a monitor the replica does not change. A conversion, for example, ends the
            // monitor. The commit becomes visible with the contents of the next monitor, so its
            // success waits for them.
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
        } else {
            self.take_in(request, outcome);
        }
    }
}

/// Ends of transactions.
impl Idl {
    fn end(&mut self, txn: TxnId, verdict: Verdict) {
        let closed = self.closed.get_mut(&txn);
        // An aborted transaction keeps its status, whatever the server replies.
        if let Some(closed) = closed.filter(|closed| !closed.is_abandoned) {
            closed.verdict = verdict;
        }
    }

    /// Reports the transactions in `unseen`. Either their contents have arrived, or the connection
    /// is lost and it may take long until they do.
    fn tell_unseen(&mut self) {
        for (txn, verdict) in std::mem::take(&mut self.unseen) {
            self.end(txn, verdict);
        }
    }
}

/// Changes.
impl Idl {
    /// Increments with every visible change of the replica: inserted and deleted rows, changes of
    /// columns that alert, every reply to a monitor request, acquiring the lock, and every fetch
    /// that ends.
    #[must_use]
    pub fn change_seqno(&self) -> u64 {
        self.replica.seqno
    }

    /// Increments whenever rows were dropped together with their tracked changes, which only
    /// [`Resync::Reload`] does. A program that processes tracked changes then has to start over.
    #[must_use]
    pub fn resync_epoch(&self) -> u64 {
        self.replica.epoch
    }

    /// Whether contents have ever arrived.
    #[must_use]
    pub fn has_ever_connected(&self) -> bool {
        self.client.has_ever_had_contents()
    }

    /// The values of [`Idl::change_seqno`] at the last insertion, modification and deletion in a
    /// table, in this order; 0 if there was none.
    #[must_use]
    pub fn table_seqnos(&self, table: TableId) -> [u64; 3] {
        self.replica.watches[usize::from(table.0)].seqnos
    }

    /// The rows of a table that changed since [`Idl::clear_changes`], in the order of their first
    /// change.
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

    /// Pauses or resumes the tracking of a table's changes. Pausing it clears those that are
    /// listed. Meanwhile rows that refer to the table's rows are not listed for changes of those.
    /// Saves time and memory while rows arrive that are not to count as changes, such as those of a
    /// new condition.
    ///
    /// ```
    /// # use corvid_idl::{Column, Idl};
    /// # use corvid_session::Condition;
    /// /// Monitors a table whose condition was false. Its rows do not count as inserted.
    /// fn begin(idl: &mut Idl, now_ms: u64, name: Column) -> Result<u64, corvid_idl::Misuse> {
    ///     idl.set_tracking(name.table, false);
    ///     idl.set_condition(now_ms, name.table, Condition::all())
    ///     // Later, once `condition_seqno` has reached the number: `set_tracking(.., true)`.
    /// }
    /// ```
    pub fn set_tracking(&mut self, table: TableId, is_on: bool) {
        let watch = &mut self.replica.watches[usize::from(table.0)];
        watch.is_paused = !is_on;
        if !is_on {
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
    /// Sets the condition of a table. The condition is in force once [`Idl::condition_seqno`]
    /// reaches the returned number.
    ///
    /// # Errors
    /// [`Misuse::Condition`]: a server would refuse a clause. The check uses the server's schema,
    /// or the client's while the server's is unknown. Nothing has changed.
    pub fn set_condition(
        &mut self,
        now_ms: u64,
        table: TableId,
        condition: Condition,
    ) -> Result<u64, Misuse> {
        let name = &self.replica.class.schema.table(table).name;
        Ok(self.client.set_condition(now_ms, name, condition)?)
    }

    /// The server's error as JSON, if the server refused the condition change with this number and
    /// has refused no later one. The session continues with the conditions before that change.
    #[must_use]
    pub fn condition_refusal(&self, promise: u64) -> Option<&str> {
        self.client.condition_refusal(promise)
    }

    /// The number up to which condition changes are in force or refused
    /// ([`Idl::condition_refusal`]): compare with `>=`.
    #[must_use]
    pub fn condition_seqno(&self) -> u64 {
        self.client.condition_seqno()
    }
}
