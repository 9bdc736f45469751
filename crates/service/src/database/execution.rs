//! The execution of one request: its operations run against the tables, its outcome joins the
//! queue of replies, and the record of its commit is requested.
//!
//! Invariant: when a call returns, a commit is executed, recorded as its model wants, and has its
//! entry among the pending replies; or nothing has changed. Blocked transactions that the commit
//! may have freed are the caller's, and so is the moment at which replies leave. An execution does
//! not know barriers, conversions or other servers.

use std::sync::Arc as StdArc;

use bytes::Bytes;
use corvid_data::{Arc, Delta, Tag, Uuid};
use corvid_engine::{Context, Database, LongResult, Outcome, TooLong, WorkBudget};
use corvid_log::storage::LogPosition;

use super::Now;
use super::clustered::Clustered;
use super::file::DatabaseFile;
use super::model::{Model, StoredBy};
use super::subscriptions::Subscriptions;
use crate::client_memory::Charge;
use crate::environment::Environment;
use crate::executor::{Executor, record_end};
use crate::message::{Completion, Request};
use crate::observers::Observers;
use crate::once;
use crate::once::recorded::Line;
use crate::recorded_client;
use crate::replies::{Answer, Commit, Origin, Outputs, Pending, PendingQueue};
use crate::upstream::TransactionKind;

/// The parts that an execution uses.
pub(super) struct Execution<'a> {
    pub(super) now: Now,
    pub(super) model: &'a mut Model,
    pub(super) database: &'a mut Database,
    pub(super) environment: &'a mut Environment,
    pub(super) subscriptions: &'a mut Subscriptions,
    pub(super) executor: &'a mut Executor,
    pub(super) pending: &'a mut PendingQueue,
    pub(super) file: &'a mut DatabaseFile,
    pub(super) observers: &'a mut Observers,
    pub(super) outputs: &'a mut Outputs,
}

/// The term in which a database leads its cluster.
fn led(member: &Clustered) -> Option<u64> {
    member.led_term().map(|term| term.0)
}

impl Execution<'_> {
    pub(super) fn execute(
        &mut self,
        request: &Request,
        budget: &mut WorkBudget,
    ) -> Result<Outcome, TooLong> {
        let (uuids, locks) = self.environment.of_session(request.session);
        let identities = request.identities();
        let read_only = request.is_read_only() || !self.model.accepts_client_writes();
        let mut context = Context {
            elapsed_ms: self.now.mono_ms.saturating_sub(request.arrived_ms),
            read_only,
            identities: &identities,
            can_wait: true,
            uuids,
            locks: &locks,
        };
        let mut outcome = self
            .database
            .execute_within(request.params(), &mut context, budget)?;
        let once = request.once.filter(|once| once.is_repeated);
        if once.is_some() && self.has_records() && !self.model.is_follower() && !read_only {
            let may_change = || TransactionKind::of(request.params()).may_change;
            record_end(&mut outcome, once, may_change);
        }
        // Before its length is judged.
        if self.has_records() {
            let names_clients = self.file.names_clients();
            let client = || names_clients.then(|| recorded_client::of_request(request));
            recorded_client::complete_outcome(&mut outcome, client);
        }
        let is_diff = self.file.is_diff();
        Ok(match self.model.member() {
            Some(member) => member.limit_entry(outcome, self.database, is_diff),
            None => outcome,
        })
    }

    /// Whether commits have records.
    fn has_records(&self) -> bool {
        let stored_by = self.model.stored_by(self.file.exists());
        !matches!(stored_by, StoredBy::Execution)
    }

    /// Makes the comment of a commit of the server itself name the server, if records name clients.
    pub(super) fn name_server(&self, delta: &mut Arc<Delta>) {
        if self.has_records() && self.file.names_clients() {
            recorded_client::complete(delta, Some(&recorded_client::of_server()));
        }
    }

    /// Queues the reply of an executed request, or blocks it. Returns its commit.
    pub(super) fn queue_outcome(
        &mut self,
        request: Box<Request>,
        outcome: Outcome,
    ) -> Option<Arc<Delta>> {
        match outcome {
            Outcome::Done {
                result,
                deferred_selections,
                deferred_bytes,
                delta,
                durable,
                tally,
            } => {
                self.observers.counts.executed(&tally, delta.is_some());
                let audit = &self.observers.audit;
                let refused = audit.describe_refusal(&request, tally.error, &result);
                let answer = if deferred_selections.is_empty() {
                    Answer::Result(result)
                } else {
                    let memory = self.environment.memory();
                    let charge = match delta {
                        Some(_) => Charge::reserved(memory, deferred_bytes),
                        None => Charge::new(memory),
                    };
                    let result = LongResult::new(result, deferred_selections);
                    Answer::Long(Box::new(result), StdArc::new(charge))
                };
                if tally.error == Some(Tag::ResourcesExhausted) && !tally.has_failed_at_commit {
                    self.environment.memory().refuse();
                }
                let origin = Origin::Client(request);
                // Retries of blocked transactions, which the caller makes, have later replies.
                let committed = self.queue(delta, durable, answer, origin);
                if refused.is_some() {
                    self.pending.set_refused(refused);
                }
                committed
            }
            Outcome::Blocked { deadline_ms, reads } => {
                let session = request.session;
                let environment = &*self.environment;
                match self
                    .executor
                    .block(request, deadline_ms, reads, environment)
                {
                    Ok(true) => {
                        self.observers.counts.blocked += 1;
                        self.outputs.complete(session, Completion::Request);
                    }
                    Ok(false) => {}
                    Err((request, error)) => {
                        let answer = Answer::Error(Box::new(error));
                        let origin = Origin::Client(request);
                        self.pending.push(Pending::answer(answer, origin));
                    }
                }
                None
            }
        }
    }

    /// Queues a reply, which waits for the record of its commit, and requests the record to be
    /// stored. Returns the commit.
    pub(super) fn queue(
        &mut self,
        delta: Option<Arc<Delta>>,
        durable: bool,
        answer: Answer,
        origin: Origin,
    ) -> Option<Arc<Delta>> {
        if delta.is_none()
            && let Origin::Client(request) = &origin
            && let Some(once) = request.once
        {
            let text = request.params();
            let may_change = TransactionKind::of(text).may_change;
            let once_state = &mut self.executor.once;
            once_state.came_to_nothing(once, may_change, &answer);
            once_state.bind(once.id, text);
        }
        let commit = delta.map(|mut delta| {
            // Readers of the history would be told of a change, and find none.
            let once = origin.once_id();
            debug_assert!(
                !delta.is_empty() || once.is_some(),
                "a commit changes something, or records the end of a transaction"
            );
            let mut txn = match (&origin, once) {
                (_, Some(id)) => self
                    .executor
                    .once
                    .commit_id(id, self.model.member().and_then(led)),
                (Origin::Forwarded(forwarded), None) => forwarded.id.0,
                _ => self.environment.txn_id(self.subscriptions.keeps_history()),
            };
            let result = match (&answer, once) {
                (Answer::Result(result), Some(_)) if result.len() <= once::RESULT_BYTES_MAX => {
                    Some(Bytes::copy_from_slice(result))
                }
                _ => None,
            };
            // Commits of a source are not this server's own; entries of a cluster have ids.
            let is_own = matches!(origin, Origin::Client(_) | Origin::Server(_));
            let is_in_file = matches!(self.model.stored_by(self.file.exists()), StoredBy::Log);
            let is_numbered = is_own && is_in_file && self.subscriptions.keeps_history();
            let are_sent = self.subscriptions.sends_ids();
            let once_state = &mut self.executor.once;
            // The seed is the id before this commit, so the record tells that one, too.
            let seed = (is_numbered && once_state.needs_seed(once.is_some(), are_sent))
                .then(|| once_state.last())
                .flatten();
            // A record that names its commit needs no end before it: the next one that does not
            // name its commit ends the lines.
            let must_end = is_in_file && !is_numbered && once_state.must_end_lines();
            let ends_lines = must_end && once.is_none();
            if is_own && ends_lines {
                once::recorded::end_lines(&mut Arc::make_mut(&mut delta).comment);
            } else if is_own && is_in_file {
                // The id and the result that are remembered below are those that a restarted server
                // reads from the record.
                let is_named = once.is_some() || seed.is_some();
                let line = is_named.then_some(Line {
                    id: txn,
                    seed,
                    result: result.as_deref(),
                });
                Self::complete_comment(&mut delta, line);
            }
            let recorded = self.record(&delta, durable, txn, result.clone());
            // A commit without a record has no number, because a restarted server counts records.
            if recorded.is_some() && is_numbered {
                let numbered = self.executor.once.number_record(seed);
                if let (None, Some(id)) = (once, numbered) {
                    txn = id;
                }
            } else if recorded.is_some() && ends_lines {
                self.executor.once.end_lines();
            }
            self.subscriptions.execute(&delta, txn);
            match once {
                Some(_) => self.executor.once.executed(txn, result),
                None => self.executor.once.committed(txn),
            }
            let (position, record_bytes) = recorded.unzip();
            if let Origin::Client(request) = &origin
                && let Some(id) = once
            {
                self.executor.once.bind(id, request.params());
            }
            Commit {
                position,
                record_bytes: record_bytes.unwrap_or(0),
                txn,
                delta,
            }
        });
        let committed = commit.as_ref().map(|commit| commit.delta.clone());
        self.pending.push(Pending {
            commit,
            date_ms: self.now.wall_ms,
            refused: None,
            answer,
            origin,
        });
        committed
    }

    /// Makes the last line of a commit's comment name it, or keeps the client's own text from
    /// looking like such a line.
    fn complete_comment(delta: &mut Arc<Delta>, line: Option<Line<'_>>) {
        if line.is_some() || !delta.comment.is_empty() {
            // A copy would cost as much as the commit.
            debug_assert!(Arc::get_mut(delta).is_some(), "the delta is not shared yet");
            once::recorded::complete_comment(&mut Arc::make_mut(delta).comment, line);
        }
    }

    /// Requests the record of a commit to be stored. Returns its position, with its length unless
    /// it is long; `None`: there is nothing to record. `txn` is its id; `result` is for the other
    /// members of a cluster.
    fn record(
        &mut self,
        delta: &Arc<Delta>,
        durable: bool,
        txn: Uuid,
        result: Option<Bytes>,
    ) -> Option<(LogPosition, usize)> {
        match self.model.stored_by(self.file.exists()) {
            StoredBy::Execution => None,
            StoredBy::Cluster => {
                let (member, schema) = (self.model.member_mut()?, self.database.schema());
                let is_diff = self.file.is_diff();
                let bytes = member.propose(self.now, (schema, delta), txn, result, is_diff);
                self.observers.counts.recorded(bytes);
                Some((self.file.take_position(), bytes))
            }
            StoredBy::Log => {
                let (schema, counts) = (self.database.schema(), &mut self.observers.counts);
                let recorded = self.file.record(self.now, schema, delta, durable, counts)?;
                if recorded.is_long {
                    // Other threads compose the updates while the record is composed.
                    let updates = self.subscriptions.precompute_updates(delta);
                    self.outputs.jobs.extend(updates);
                }
                Some((recorded.position, recorded.bytes))
            }
        }
    }
}
