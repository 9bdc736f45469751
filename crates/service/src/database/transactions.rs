//! `transact`: execution, blocking, retries. `release` sends the replies.
//!
//! Functions that execute a transaction. One that exceeds its budget changes nothing and is returned.
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
use super::executor::{Resolved, Trigger, trigger_bytes};
use super::model::StoredBy;
use super::replies::{Answer, Commit, Origin, Pending};
use super::{DatabaseService, Now};
use crate::client_memory::{self, Charge, Retained};
use crate::message::{Completion, Request};
use crate::once;
use crate::session_limits;
use crate::upstream::TransactionKind;

/// The term in which a database leads its cluster.
fn led(cluster: &Clustered) -> Option<u64> {
    cluster.led_term().map(|term| term.0)
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

    /// Executes a transaction if it fits into the budget. Otherwise returns its request, and nothing has changed.
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
        let request = self.resolve_once(request)?;
        let (outputs, environment) = (&self.outputs, &self.environment);
        let cluster = self.model.cluster();
        if cluster.is_some_and(|it| it.forwards_at_once(&request, outputs, environment)) {
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

    /// A request has come. If its client had not sent it before, it has not been executed among the commits up to now; a leader that decides
    /// about it later need not know those.
    fn arrive_once(&self, request: &mut Request) {
        let Some(once) = &mut request.once else {
            return;
        };
        let last = match self.model.cluster() {
            // Its source judges it.
            Some(cluster) if cluster.is_relay() => return,
            // Speculative commits may come to nothing.
            Some(cluster) => Some(cluster.applied_eid().0),
            None => self.executor.once.last(),
        };
        once.after = once.after.or(last);
    }

    /// Returns a transaction that is to be executed, or passed on. One that was executed before, or may have been, is answered, or waits for the
    /// first one's outcome.
    fn resolve_once(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        let Some(once) = request.once else {
            return Some(request);
        };
        if self.model.cluster().is_some() && request.info.is_closed() {
            // An earlier one of its session may have been dropped, and this one must not happen without it.
            self.outputs.end_request(&request);
            return None;
        }
        let is_follower = self.model.is_follower();
        match self.executor.once.resolve(request, once, is_follower) {
            Resolved::New(request) => return Some(request),
            Resolved::Answered(request, answer) => {
                let left = match self.model.cluster_mut() {
                    Some(cluster) => cluster.answer_in_order(request, answer, &mut self.outputs),
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

    /// Executes a transaction of the server itself. It must succeed: a failure is a bug in the code that composed it.
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

    /// Applies a transaction of a backup's source. It is stored and causes updates like any other, and has no reply.
    ///
    /// # Errors
    /// It does not fit the present rows; nothing changes then.
    pub(super) fn replicate(&mut self, now: Now, recorded: Recorded) -> Result<(), WireError> {
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

    /// Executes a request once. Queues its reply, or adds it to the blocked transactions. Returns its commit.
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
        Ok(match self.model.cluster() {
            Some(cluster) => cluster.limit_entry(outcome, &mut self.database, is_diff),
            None => outcome,
        })
    }

    /// Queues the reply of an executed request, or blocks it. Returns its commit.
    pub(super) fn queue_outcome(
        &mut self,
        now: Now,
        mut request: Box<Request>,
        outcome: Outcome,
    ) -> Option<Arc<Delta>> {
        let (cluster, database) = (self.model.cluster(), &mut self.database);
        if cluster.is_some_and(|it| it.withdraw_trial(&request, &outcome, database)) {
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
                let committed = delta.clone();
                let origin = Origin::Client(request);
                self.queue_executed(now, delta, durable, answer, origin);
                if refused.is_some() {
                    self.pending.set_refused(refused);
                }
                committed
            }
            Outcome::Blocked { deadline_ms, reads } => {
                let bytes = trigger_bytes(&request, &reads);
                if let Some(error) = self.refuse_to_block(&request, bytes) {
                    let error = Box::new(error);
                    let origin = Origin::Client(request);
                    self.pending
                        .push(Pending::answer(Answer::Error(error), origin));
                    return None;
                }
                if !std::mem::replace(&mut request.blocked, true) {
                    self.observers.counts.blocked += 1;
                    self.outputs.complete(request.session, Completion::Request);
                }
                // Without one it would be dropped, and never answered.
                assert!(
                    request.seqno.is_some(),
                    "a transaction is numbered before it is executed"
                );
                let seqno = request
                    .seqno
                    .filter(|_| !self.environment.is_closed(&request.info))?;
                let deadline_ms = deadline_ms.map(|after| request.arrived_ms.saturating_add(after));
                let trigger = Trigger {
                    request,
                    deadline_ms,
                    reads,
                    _retained: Retained::new(self.environment.memory(), bytes),
                };
                self.executor.triggers.insert(seqno, trigger);
                None
            }
        }
    }

    /// Why a transaction may not wait, if it may not. One that has waited before may wait again.
    fn refuse_to_block(&self, request: &Request, bytes: usize) -> Option<WireError> {
        if request.blocked {
            return None;
        }
        let (session, text_bytes) = (request.session, request.frame.len());
        if !self.executor.triggers.admits(session, text_bytes) {
            return Some(session_limits::exhausted("waiting transactions"));
        }
        let is_small = self.executor.triggers.is_small(session, text_bytes);
        let has_room = self.environment.has_room_to_keep(is_small, bytes);
        (!has_room).then(client_memory::exhausted_kept)
    }

    /// Queues a reply behind the record of its commit, and requests the record to be stored.
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
            let may_write = text.is_none_or(|text| TransactionKind::of(text).may_write);
            self.executor.once.came_to_nothing(id, may_write, &answer);
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
                    .commit_id(id, self.model.cluster().and_then(led)),
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

    /// Requests the record of a commit to be stored. Returns its position, with its length unless it is long; `None`: there is nothing to
    /// record. `txn` is its id; `result` is for the other members of a cluster.
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
                let (cluster, schema) = (self.model.cluster_mut()?, self.database.schema());
                let is_diff = self.file.is_diff();
                let bytes = cluster.propose(now, (schema, delta), txn, result, is_diff);
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
        if let Some((cluster, mut parts)) = self.following(now) {
            cluster.forward(request, &mut parts);
        }
    }

    /// Retries the blocked transactions that a commit affects.
    pub(super) fn retry_affected(&mut self, now: Now, committed: Option<&Delta>) {
        if let Some(delta) = committed.filter(|_| !self.executor.triggers.is_empty()) {
            let seqnos = self.executor.triggers.affected(delta);
            self.retry(now, seqnos);
        }
    }

    /// Retries blocked transactions, oldest first. A commit of one of them retries younger ones in this round and older ones in the next.
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

    /// Answers every blocked transaction with `canceled`, because the database is removed or has another schema. Sessions that are not
    /// aware of changes are about to be closed and get no reply.
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

/// `not allowed`, for conversion of a database that clients may not write.
pub(super) fn conversion_not_allowed(name: &str) -> WireError {
    WireError::new(
        Tag::NotAllowed,
        format!("conversion is not allowed for read-only database {name}"),
    )
}
