//! `transact`: execution, blocking, retries. `release` sends the replies.
//!
//! These functions execute a transaction. A transaction that exceeds its budget changes nothing and
//! is returned.
//!
//! | Function | Called | Budget |
//! |---|---|---|
//! | `try_inline` (`batch.rs`) | by the pump, on a shard | one for all inputs of the batch |
//! | `handle_unless_long` (`batch.rs`) | by the pump on the database thread, but for the first input of a batch | the steps after which a transaction is long |
//! | `transact` | for the first input of a batch, or one that has waited | none |
//! | `transact_within` | by those three: numbers the request, executes it, queues its reply, retries blocked transactions | theirs |
//! | `attempt` | to retry a blocked transaction | none |
//! | `execute` | by the last two: calls `execute_within` of the engine | theirs |
//!
//! No budget still limits long selections (`Executor::work_budget`).

use std::collections::BTreeSet;
use std::sync::Arc as StdArc;

use bytes::Bytes;
use corvid_data::{Arc, Delta, Recorded, Tag, Uuid, WireError};
use corvid_engine::{Context, LockOwner, LongResult, Outcome, TooLong, WorkBudget};
use corvid_log::storage::LogPosition;

use super::clustered::Clustered;
use super::model::StoredBy;
use super::{DatabaseService, Now};
use crate::client_memory::Charge;
use crate::executor::Resolved;
use crate::message::{Completion, Request};
use crate::once;
use crate::replies::{Answer, Commit, Origin, Pending};
use crate::upstream::TransactionKind;

/// The term in which a database leads its cluster.
fn led(member: &Clustered) -> Option<u64> {
    member.led_term().map(|term| term.0)
}

/// The server itself holds no locks.
struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _lock: &str) -> bool {
        false
    }
}

impl DatabaseService {
    pub(super) fn transact(&mut self, now: Now, request: Box<Request>) {
        let left = self.transact_within(now, request, &mut self.executor.work_budget());
        assert!(left.is_none(), "nothing limits it");
    }

    /// Executes a transaction if it fits into the budget. Otherwise returns its request, and
    /// nothing has changed.
    pub(super) fn transact_within(
        &mut self,
        now: Now,
        mut request: Box<Request>,
        budget: &mut WorkBudget,
    ) -> Option<Box<Request>> {
        let is_new = request.seqno.is_none();
        if is_new {
            if self
                .executor
                .triggers
                .find(request.session, &request.id)
                .is_some()
            {
                self.refuse_duplicate(request);
                return None;
            }
            request.seqno = Some(self.executor.take_seqno());
            // Timeouts count from here: the way from the socket does not take of the client's time.
            request.arrived_ms = now.mono_ms;
            self.arrive_once(&mut request);
        }
        // Before it is forwarded: a copy of one that is on its way must not be sent as well.
        let request = self.resolve_once(request)?;
        let (outputs, environment) = (&self.outputs, &self.environment);
        let upstream = self.model.upstream();
        let forwarding = upstream.map(|upstream| &upstream.forwarding);
        if forwarding.is_some_and(|it| it.forwards_at_once(&request, outputs, environment)) {
            self.forward(now, request);
            return None;
        }
        *budget = self.environment.limit_selections(*budget);
        let Ok(outcome) = self.execute(now, &request, budget) else {
            return Some(request);
        };
        let committed = self.queue_outcome(now, request, outcome);
        self.retry_affected(now, committed.as_deref());
        self.release();
        None
    }

    /// A request has come for the first time. Unless its client has sent it before, none of the
    /// commits up to now is its own. So a leader that decides about it later need not know those.
    fn arrive_once(&self, request: &mut Request) {
        let Some(once) = &mut request.once else {
            return;
        };
        let last = match self.model.upstream() {
            // Its source judges it.
            Some(upstream) if upstream.forwarding.is_relay() => return,
            // Speculative commits may come to nothing.
            Some(upstream) => Some(upstream.contents.applied_eid().0),
            None => self.executor.once.last(),
        };
        once.after = once.after.or(last);
    }

    /// Returns a transaction that is to be executed, or passed on. A copy of one that was executed
    /// before, or may have been, is answered, or waits for the outcome of the first.
    fn resolve_once(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        let Some(once) = request.once else {
            return Some(request);
        };
        if self.model.upstream().is_some() && request.info.is_closed() {
            // An earlier one of its session may have been dropped, and this one must not happen
            // without it.
            self.outputs.end_request(&request);
            return None;
        }
        let is_follower = self.model.is_follower();
        match self.executor.once.resolve(request, once, is_follower) {
            Resolved::New(request) => return Some(request),
            Resolved::Answered(request, answer) => {
                let left = match self.model.upstream_mut() {
                    Some(upstream) => {
                        let forwarding = &mut upstream.forwarding;
                        forwarding.answer_in_order(request, answer, &mut self.outputs)
                    }
                    None => Some((request, answer)),
                };
                if let Some((request, answer)) = left {
                    self.answer_when_stored(answer, Origin::Client(request));
                }
            }
            Resolved::Waits(Some(session)) => self.outputs.complete(session, Completion::Request),
            Resolved::Waits(None) => {}
        }
        None
    }

    fn refuse_duplicate(&mut self, request: Box<Request>) {
        let error = WireError::syntax(request.params(), "transact: duplicate request ID");
        self.refuse(request, error);
    }

    /// Executes a transaction of the server itself. It must succeed: a failure is a bug in the code
    /// that composed it.
    pub(super) fn transact_as_server(&mut self, now: Now, params: &[u8]) {
        if self.model.is_follower() {
            return;
        }
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: false,
            uuids: self.environment.uuids(),
            locks: &NoLocks,
        };
        if let Outcome::Done {
            result,
            delta,
            durable,
            ..
        } = self.database.execute(params, &mut context)
        {
            let origin = Origin::Server(params.to_vec());
            let committed = delta.clone();
            self.queue_executed(now, delta, durable, Answer::Result(result), origin);
            self.retry_affected(now, committed.as_deref());
            self.release();
        }
    }

    /// Applies a transaction of a backup's source. It is stored and causes updates like any other,
    /// and has no reply.
    ///
    /// # Errors
    /// It does not fit the present rows; nothing changes then.
    pub(super) fn replicate(&mut self, now: Now, mut recorded: Recorded) -> Result<(), WireError> {
        recorded.comment = self.executor.once.replicated_comment().or(recorded.comment);
        let delta = Arc::new(
            self.database
                .apply_recorded(recorded, self.environment.uuids())?,
        );
        if delta.is_empty() {
            return Ok(());
        }
        let nothing = Answer::Result(Vec::new());
        self.queue_executed(now, Some(delta.clone()), false, nothing, Origin::Source);
        self.retry_affected(now, Some(&delta));
        self.release();
        Ok(())
    }

    /// Executes a request once. Queues its reply, or adds it to the blocked transactions. Returns
    /// its commit.
    pub(super) fn attempt(&mut self, now: Now, request: Box<Request>) -> Option<Arc<Delta>> {
        let request = self.resolve_once(request)?;
        let mut budget = self
            .environment
            .limit_selections(self.executor.work_budget());
        match self.execute(now, &request, &mut budget) {
            Ok(outcome) => self.queue_outcome(now, request, outcome),
            Err(TooLong) => unreachable!("nothing limits it"),
        }
    }

    pub(super) fn execute(
        &mut self,
        now: Now,
        request: &Request,
        budget: &mut WorkBudget,
    ) -> Result<Outcome, TooLong> {
        let (uuids, locks) = self.environment.of_session(request.session);
        let identities = request.identities();
        let mut context = Context {
            elapsed_ms: now.mono_ms.saturating_sub(request.arrived_ms),
            read_only: request.is_read_only() || !self.model.accepts_client_writes(),
            identities: &identities,
            can_wait: true,
            uuids,
            locks: &locks,
        };
        let outcome = self
            .database
            .execute_within(request.params(), &mut context, budget)?;
        let is_diff = self.file.is_diff();
        Ok(match self.model.member() {
            Some(member) => member.limit_entry(outcome, &mut self.database, is_diff),
            None => outcome,
        })
    }

    /// Queues the reply of an executed request, or blocks it. Returns its commit.
    pub(super) fn queue_outcome(
        &mut self,
        now: Now,
        request: Box<Request>,
        outcome: Outcome,
    ) -> Option<Arc<Delta>> {
        let (upstream, database) = (self.model.upstream(), &mut self.database);
        let forwarding = upstream.map(|upstream| &upstream.forwarding);
        if forwarding.is_some_and(|it| it.withdraw_trial(&request, &outcome, database)) {
            self.forward(now, request);
            return None;
        }
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
                let delta = self.name_in_record(delta, request.once, &answer);
                let committed = delta.clone();
                let origin = Origin::Client(request);
                // Retries of blocked transactions, which the caller makes, have later replies.
                self.queue_executed(now, delta, durable, answer, origin);
                if refused.is_some() {
                    self.pending.set_refused(refused);
                }
                committed
            }
            Outcome::Blocked { deadline_ms, reads } => {
                let session = request.session;
                let environment = &self.environment;
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

    /// Has the record of a commit name it, if its client may send the transaction again: a restarted
    /// server finds the id and the result there.
    fn name_in_record(
        &self,
        mut delta: Option<Arc<Delta>>,
        once: Option<once::Once>,
        answer: &Answer,
    ) -> Option<Arc<Delta>> {
        if let Some(delta) = &mut delta
            && matches!(self.model.stored_by(self.file.exists()), StoredBy::Log)
        {
            let commit = once.map(|once| self.executor.once.recorded_commit(once.id, answer));
            if commit.is_some() || !delta.comment.is_empty() {
                once::recorded::complete_comment(&mut Arc::make_mut(delta).comment, commit);
            }
        }
        delta
    }

    /// Queues a reply, which waits for the record of its commit, and requests the record to be
    /// stored.
    pub(super) fn queue_executed(
        &mut self,
        now: Now,
        delta: Option<Arc<Delta>>,
        durable: bool,
        answer: Answer,
        origin: Origin,
    ) {
        if delta.is_none()
            && let Some(id) = origin.once_id()
        {
            let text = match &origin {
                Origin::Client(request) => Some(request.params()),
                _ => None,
            };
            let may_change = text.is_none_or(|text| TransactionKind::of(text).may_change);
            self.executor.once.came_to_nothing(id, may_change, &answer);
            if let Some(text) = text {
                self.executor.once.bind(id, text);
            }
        }
        let commit = delta.map(|delta| {
            // Readers of the history would be told of a change, and find none.
            debug_assert!(!delta.is_empty(), "a commit changes something");
            let once = origin.once_id();
            let txn = match (&origin, once) {
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
            let recorded = self.record(now, &delta, durable, txn, result.clone());
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
        self.pending.push(Pending {
            commit,
            date_ms: now.wall_ms,
            refused: None,
            answer,
            origin,
        });
    }

    /// Requests the record of a commit to be stored. Returns its position, with its length unless
    /// it is long; `None`: there is nothing to record. `txn` is its id; `result` is for the other
    /// members of a cluster.
    fn record(
        &mut self,
        now: Now,
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
                let bytes = member.propose(now, (schema, delta), txn, result, is_diff);
                self.observers.counts.recorded(bytes);
                Some((self.file.take_position(), bytes))
            }
            StoredBy::Log => {
                let (schema, counts) = (self.database.schema(), &mut self.observers.counts);
                let recorded = self.file.record(now, schema, delta, durable, counts)?;
                if recorded.is_long {
                    // Other threads compose the updates while the record is composed.
                    let updates = self.subscriptions.precompute_updates(delta);
                    self.outputs.jobs.extend(updates);
                }
                Some((recorded.position, recorded.bytes))
            }
        }
    }

    /// Has the leader of the cluster, or a relay's source, execute a request.
    pub(super) fn forward(&mut self, now: Now, request: Box<Request>) {
        if let Some((upstream, mut parts)) = self.following(now) {
            upstream.forward(request, &mut parts);
        }
    }

    /// Retries the blocked transactions that a commit affects.
    pub(super) fn retry_affected(&mut self, now: Now, committed: Option<&Delta>) {
        if let Some(delta) = committed.filter(|_| !self.executor.triggers.is_empty()) {
            let seqnos = self.executor.triggers.affected(delta);
            self.retry(now, seqnos);
        }
    }

    /// Retries blocked transactions, oldest first. A commit of one of them retries younger ones in
    /// this round and older ones in the next.
    pub(super) fn retry(&mut self, now: Now, seqnos: BTreeSet<u64>) {
        let mut round = seqnos;
        let mut next = BTreeSet::new();
        loop {
            let Some(seqno) = round.pop_first() else {
                if next.is_empty() {
                    return;
                }
                std::mem::swap(&mut round, &mut next);
                continue;
            };
            let Some(trigger) = self.executor.triggers.remove(seqno) else {
                continue;
            };
            if let Some(delta) = self.attempt(now, trigger.request) {
                let mut older = self.executor.triggers.affected(&delta);
                round.append(&mut older.split_off(&seqno));
                next.append(&mut older);
            }
        }
    }

    /// Answers every blocked transaction with `canceled`, because the database is removed or has
    /// another schema. Sessions that are not aware of changes are about to be closed and get no
    /// reply.
    pub(super) fn cancel_triggers(&mut self) {
        for trigger in self.executor.triggers.take_all() {
            if self.environment.is_aware(&trigger.request.info) {
                self.cancel_request(&trigger.request, Completion::None);
            } else {
                trigger.request.info.miss_cancellation();
            }
        }
    }
}
