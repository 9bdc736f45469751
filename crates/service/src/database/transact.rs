//! `transact`, its waiting and its release after storage.

use std::collections::BTreeSet;
use std::sync::{Arc as StdArc, Mutex, PoisonError};

use corvid_data::{Arc, Delta, Recorded, Tag, WireError};
use corvid_engine::{Allowance, Context, LockOwner, LongResult, Outcome, TooLong};
use corvid_monitor::SessionId;

use super::parked::{Answer, Origin, Parked};
use super::triggers::Trigger;
use super::{DatabaseService, Now};
use crate::job::Commit;
use crate::job::garbage::Garbage;
use crate::locks::Locks;
use crate::message::{Handled, Method, Request, Store, StoreError, Ticket};
use crate::quota;
use crate::reply_memory::Charge;

/// Rows taken into an index between two batches of inputs: about a millisecond.
const INDEXED_ROWS_PER_BATCH: usize = 8192;

/// While more of results is parked nothing is executed, bytes: it would be parked too.
const PARKED_BYTES_MAX: usize = 64 << 20;

/// A request is freed elsewhere when it is longer, bytes.
const FREED_BYTES: usize = 1 << 20;

/// Asks the lock table on behalf of a session.
struct SessionLocks<'a> {
    locks: &'a Mutex<Locks>,
    session: SessionId,
}

impl LockOwner for SessionLocks<'_> {
    fn owns(&self, lock: &str) -> bool {
        self.locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .owns(self.session, lock)
    }
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
        let left = self.transact_within(now, request, &mut self.patience());
        assert!(left.is_none(), "nothing limits it");
    }

    /// All the time that it takes, but for long selections.
    pub(super) fn patience(&self) -> Allowance {
        Allowance::unlimited().but_for_selects(self.select_steps_max)
    }

    /// The same, if it fits into the allowance; else the request is handed back, and nothing has changed.
    pub(super) fn transact_within(
        &mut self,
        now: Now,
        mut request: Box<Request>,
        allowance: &mut Allowance,
    ) -> Option<Box<Request>> {
        if request.place.is_none() {
            if self.triggers.find(request.session, &request.id).is_some() {
                self.refuse_duplicate(request);
                return None;
            }
            request.place = Some(self.next_place);
            self.next_place += 1;
            // Waits count from here: the way from the socket is not the client's time.
            request.arrived_ms = now.mono_ms;
        }
        *allowance = self.outputs.reply_memory.limit(*allowance);
        let Ok(outcome) = self.execute(now, &request, allowance) else {
            return Some(request);
        };
        let committed = self.settle(now, request, outcome);
        self.retry_concerned(now, committed.as_deref());
        self.release();
        None
    }

    fn refuse_duplicate(&mut self, request: Box<Request>) {
        let error = WireError::syntax(request.params(), "transact: duplicate request ID");
        self.park(Answer::Error(Box::new(error)), Origin::Client(request));
        self.release();
    }

    /// A transaction of the server itself. It must succeed: a failure is a bug in what composed it.
    pub(super) fn transact_internally(&mut self, now: Now, params: &[u8]) {
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            role: None,
            client_id: None,
            can_wait: false,
            uuids: &mut *self.uuids,
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
            self.park_executed(now, delta, durable, Answer::Result(result), origin);
            self.retry_concerned(now, committed.as_deref());
            self.release();
        }
    }

    /// A transaction of what a backup follows: stored and told like any other, answered to nobody.
    ///
    /// # Errors
    /// It does not fit what is here; nothing changes then.
    pub(super) fn replicate(&mut self, now: Now, recorded: Recorded) -> Result<(), WireError> {
        let delta = Arc::new(self.database.replay(recorded, &mut *self.uuids)?);
        if delta.is_empty() {
            return Ok(());
        }
        let nothing = Answer::Result(Vec::new());
        self.park_executed(now, Some(delta.clone()), false, nothing, Origin::Source);
        self.retry_concerned(now, Some(&delta));
        self.release();
        Ok(())
    }

    /// Executes a request once; its answer is parked, or it joins the waiting ones. Returns what it committed.
    fn attempt(&mut self, now: Now, request: Box<Request>) -> Option<Arc<Delta>> {
        let mut allowance = self.outputs.reply_memory.limit(self.patience());
        match self.execute(now, &request, &mut allowance) {
            Ok(outcome) => self.settle(now, request, outcome),
            Err(TooLong) => unreachable!("nothing limits it"),
        }
    }

    fn execute(
        &mut self,
        now: Now,
        request: &Request,
        allowance: &mut Allowance,
    ) -> Result<Outcome, TooLong> {
        let locks = SessionLocks {
            locks: &self.locks,
            session: request.session,
        };
        let role = (!request.info.role.is_empty()).then_some(request.info.role.as_str());
        let mut context = Context {
            elapsed_ms: now.mono_ms.saturating_sub(request.arrived_ms),
            read_only: request.info.read_only || self.options.read_only,
            role,
            client_id: request.info.client_id.as_deref(),
            can_wait: true,
            uuids: &mut *self.uuids,
            locks: &locks,
        };
        self.database
            .execute_within(request.params(), &mut context, allowance)
    }

    /// Parks the answer of an executed request, or has it wait. Returns what it committed.
    fn settle(
        &mut self,
        now: Now,
        mut request: Box<Request>,
        outcome: Outcome,
    ) -> Option<Arc<Delta>> {
        match outcome {
            Outcome::Done {
                result,
                left_out,
                owed_bytes,
                delta,
                durable,
                tally,
            } => {
                self.counts.executed(&tally, delta.is_some());
                let refused = self.refusal(&request, tally.error, &result);
                let answer = if left_out.is_empty() {
                    Answer::Result(result)
                } else {
                    let memory = &self.outputs.reply_memory;
                    let charge = match delta {
                        Some(_) => Charge::owed(memory, owed_bytes),
                        None => Charge::new(memory),
                    };
                    let result = LongResult::new(result, left_out);
                    Answer::Long(Box::new(result), StdArc::new(charge))
                };
                if tally.error == Some(Tag::ResourcesExhausted) {
                    self.outputs.reply_memory.refuse();
                }
                let committed = delta.clone();
                let origin = Origin::Client(request);
                self.park_executed(now, delta, durable, answer, origin);
                if let (Some(refused), Some(parked)) = (refused, self.parked.back_mut()) {
                    parked.refused = Some(refused);
                }
                committed
            }
            Outcome::Blocked { deadline_ms, reads } => {
                if !request.blocked && !self.triggers.admits(request.session, request.frame.len()) {
                    let error = quota::exhausted("waiting transactions");
                    let origin = Origin::Client(request);
                    self.park(Answer::Error(Box::new(error)), origin);
                    return None;
                }
                if !std::mem::replace(&mut request.blocked, true) {
                    self.counts.waited += 1;
                    self.outputs.handled(request.session, Handled::Yes);
                }
                let place = request.place.filter(|_| !request.info.is_closed())?;
                let deadline_ms = deadline_ms.map(|after| request.arrived_ms.saturating_add(after));
                let trigger = Trigger {
                    request,
                    deadline_ms,
                    reads,
                };
                self.triggers.insert(place, trigger);
                None
            }
        }
    }

    /// Queues an answer behind the record of its commit, and hands the record to the log.
    fn park_executed(
        &mut self,
        now: Now,
        delta: Option<Arc<Delta>>,
        durable: bool,
        answer: Answer,
        origin: Origin,
    ) {
        let recorded = delta.as_ref();
        let recorded = recorded.and_then(|delta| self.record(now, delta, durable));
        let (ticket, record_bytes) = recorded.unzip();
        self.parked_bytes += answer.len();
        self.parked.push_back(Parked {
            ticket,
            record_bytes: record_bytes.unwrap_or(0),
            date_ms: now.wall_ms,
            delta,
            refused: None,
            answer,
            origin,
        });
    }

    /// Whether so much of results waits for the disk that no more should be made.
    pub(super) fn is_parking_much(&self) -> bool {
        self.parked_bytes > PARKED_BYTES_MAX
    }

    /// Queues an answer that waits for no record of its own.
    pub(super) fn park(&mut self, answer: Answer, origin: Origin) {
        self.parked_bytes += answer.len();
        self.parked.push_back(Parked {
            ticket: None,
            record_bytes: 0,
            date_ms: 0,
            delta: None,
            refused: None,
            answer,
            origin,
        });
    }

    /// Tries the waiting transactions again that a commit concerns.
    fn retry_concerned(&mut self, now: Now, committed: Option<&Delta>) {
        if let Some(delta) = committed.filter(|_| !self.triggers.is_empty()) {
            let places = self.triggers.concerned(delta);
            self.retry(now, places);
        }
    }

    /// Tries waiting transactions again, oldest first. What one of them commits is seen by younger ones in this round and lets older
    /// ones try in the next.
    fn retry(&mut self, now: Now, places: BTreeSet<u64>) {
        let mut round = places;
        let mut next = BTreeSet::new();
        loop {
            let Some(place) = round.pop_first() else {
                if next.is_empty() {
                    return;
                }
                std::mem::swap(&mut round, &mut next);
                continue;
            };
            let Some(trigger) = self.triggers.remove(place) else {
                continue;
            };
            if let Some(delta) = self.attempt(now, trigger.request) {
                let mut older = self.triggers.concerned(&delta);
                round.append(&mut older.split_off(&place));
                next.append(&mut older);
            }
        }
    }

    /// When [`DatabaseService::tick`] and [`DatabaseService::flush_updates`] must be called at the latest.
    #[must_use]
    pub fn next_deadline_ms(&self, now: Now) -> Option<u64> {
        let updates = self.updates_due_ms();
        if self.is_conversion_waiting() {
            return updates;
        }
        let growth = self.growth.filter(|_| self.may_compact());
        let check = growth.and_then(|growth| growth.next_check_ms(now.mono_ms));
        let trigger = self.triggers.next_deadline();
        let forget = self.first_answers.next_deadline_ms();
        let index = self.database.is_indexing().then_some(now.mono_ms);
        let deadlines = [trigger, check, forget, index, updates];
        deadlines.into_iter().flatten().min()
    }

    /// Tries waiting transactions whose deadline has come, compacts a file that has grown, goes on with indexes that conditions want. To
    /// be called once per batch of inputs.
    pub fn tick(&mut self, now: Now) {
        if self.is_conversion_waiting() {
            return;
        }
        let expired = self.triggers.expired(now.mono_ms);
        if !expired.is_empty() {
            self.retry(now, expired);
            self.release();
            self.resume(now);
        }
        self.compact_if_due(now);
        self.forget_contents(now);
        if self.database.is_indexing() {
            self.database.index(INDEXED_ROWS_PER_BATCH);
        }
    }

    /// Records are stored, or failed to be.
    pub(super) fn stored(&mut self, now: Now, ticket: Ticket, result: Result<(), StoreError>) {
        self.slow.set_now(now);
        match result {
            Ok(()) => {
                self.storage_error = None;
                self.release_through(ticket);
            }
            Err(error) => self.store_failed(now, ticket, &error),
        }
        self.advance_conversion(now);
        self.resume(now);
    }

    /// Releases answers that wait for no record.
    pub(super) fn release(&mut self) {
        self.release_through(Ticket(0));
    }

    /// Releases answers in order up to the first whose record comes after `stored`. Each is preceded by what its session has to be told up
    /// to and including that commit; sessions that asked for nothing are told of all of them at the end of the batch.
    fn release_through(&mut self, stored: Ticket) {
        let is_free = |parked: &Parked| parked.ticket.is_none_or(|ticket| ticket <= stored);
        while self.parked.front().is_some_and(is_free) {
            let Some(mut parked) = self.parked.pop_front() else {
                return;
            };
            self.parked_bytes -= parked.answer.len();
            if let Some(delta) = &parked.delta {
                self.counts.committed += 1;
                if let Some(conversion) = &mut self.conversion {
                    conversion.released(Commit {
                        delta: delta.clone(),
                        date_ms: parked.date_ms,
                    });
                }
                self.report_remotes(delta);
                self.log_rows(delta);
                let txn = super::txn_id(self.options.history, &mut *self.uuids);
                self.monitors.commit(delta, txn, self.database.atom_count());
                self.rounds.add(delta.changes.len());
                for (dropped, atoms) in self.monitors.take_dropped() {
                    self.outputs.free(Garbage::commit(dropped, atoms));
                }
                self.audit_commit(&parked, txn, delta);
                if let Origin::Client(request) = &parked.origin {
                    self.note_slow_commit(request, delta);
                }
            }
            if let Some(refused) = parked.refused.take() {
                self.audit_refused(parked.date_ms, &parked.origin, *refused);
            }
            let has_changed = parked.delta.is_some();
            if let Origin::Client(request) = parked.origin {
                self.answer(request, parked.answer, has_changed);
            }
        }
    }

    /// The records up to `last` could not be stored, which were written together: their commits and all after them are undone. They are
    /// answered with the error; the others, which may have seen them, are executed again. Tickets of those are new; answers to the old
    /// ones find nothing parked and are ignored.
    fn store_failed(&mut self, now: Now, last: Ticket, error: &StoreError) {
        let has_failed = |parked: &Parked| parked.ticket.is_some_and(|ticket| ticket <= last);
        let Some(first) = self.parked.iter().position(has_failed) else {
            return;
        };
        let undone: Vec<Parked> = self.parked.drain(first..).collect();
        self.parked_bytes = self.parked.iter().map(|parked| parked.answer.len()).sum();
        for delta in undone
            .iter()
            .rev()
            .filter_map(|parked| parked.delta.as_ref())
        {
            self.database.undo(delta);
        }
        self.storage_error = Some(error.clone());
        // Records that were not handed over yet are of commits that are undone.
        self.outputs
            .stores
            .retain(|store| !matches!(store, Store::Append { .. }));
        self.records.forget();
        self.monitors.forget_foretold();
        self.outputs.stores.push(Store::Recover);
        self.release();
        self.report_remotes_again();
        for parked in undone {
            let failed = has_failed(&parked);
            self.counts.unstored += u64::from(failed);
            if failed {
                self.audit_unstored(&parked, error);
            }
            match (parked.origin, parked.answer) {
                // Behind those that are executed again, for answers keep their order.
                (origin @ Origin::Client(_), Answer::Result(mut result)) if failed => {
                    add_error(&mut result, &error.to_wire());
                    self.park(Answer::Result(result), origin);
                }
                (origin @ Origin::Client(_), Answer::Long(mut result, charge)) if failed => {
                    add_error(result.around_mut(), &error.to_wire());
                    self.park(Answer::Long(result, charge), origin);
                }
                (Origin::Client(request), _) => self.request(now, request),
                // What the server itself wrote is of no use to anybody when it cannot be stored.
                (Origin::Server(params), _) if !failed => self.transact_internally(now, &params),
                (Origin::Server(_), _) => {}
                (Origin::Source, _) => self.source_not_stored(now),
            }
        }
        self.release();
    }

    pub(super) fn cancel(&mut self, now: Now, session: SessionId, id: &[u8]) {
        if self.is_conversion_asked_by(session, id) {
            self.cancel_conversion(now);
            return;
        }
        let place = self.triggers.find(session, id);
        if let Some(trigger) = place.and_then(|place| self.triggers.remove(place)) {
            self.cancel_request(&trigger.request, Handled::No);
        }
    }

    /// Answers every waiting transaction with `canceled`, because the database goes or has another schema. Sessions that are not aware are
    /// about to be closed and hear nothing.
    pub(super) fn cancel_triggers(&mut self) {
        for trigger in self.triggers.take_all() {
            if trigger.request.info.is_aware() {
                self.cancel_request(&trigger.request, Handled::No);
            } else {
                trigger.request.info.miss_cancellation();
            }
        }
    }

    pub(super) fn cancel_request(&mut self, request: &Request, handled: Handled) {
        self.send_updates(request.session);
        self.outputs
            .error_json(request.session, &request.id, b"\"canceled\"", handled);
    }

    /// Replies with a result; the session's pending updates go first.
    pub(super) fn reply(&mut self, request: Box<Request>, result: Vec<u8>) {
        let origin = Origin::Client(request);
        self.park(Answer::Result(result), origin);
        self.release();
    }

    fn answer(&mut self, request: Box<Request>, answer: Answer, has_changed: bool) {
        if request.stamp != 0 && !request.blocked && request.method == Method::Transact {
            self.outputs.answered.push(request.stamp);
        }
        match answer {
            Answer::Result(result) => {
                self.send_updates(request.session);
                let handled = handled_by(&request);
                self.outputs
                    .reply(request.session, &request.id, &result, handled);
                self.count_reply(&request);
                let bytes = request.frame.len() + result.len();
                if bytes > FREED_BYTES {
                    if !has_changed {
                        self.slow.answered_long(&request);
                    }
                    self.outputs.free(Garbage::new(bytes, (request, result)));
                } else if !has_changed {
                    self.slow.answered(request);
                }
            }
            Answer::Long(result, charge) => self.reply_late(request, *result, charge),
            Answer::Error(error) => self.fail(&request, &error),
        }
    }

    /// Replies with an error object at once; nothing may be parked.
    pub(super) fn fail(&mut self, request: &Request, error: &WireError) {
        self.send_updates(request.session);
        self.outputs
            .error(request.session, &request.id, error, handled_by(request));
    }
}

/// A request that blocked was reported as handled then.
pub(super) fn handled_by(request: &Request) -> Handled {
    if request.blocked {
        Handled::No
    } else {
        Handled::Yes
    }
}

/// Appends a commit-time error to a result array (docs/spec/protocol.md 5.1).
fn add_error(result: &mut Vec<u8>, error: &WireError) {
    debug_assert_eq!(result.last(), Some(&b']'));
    result.pop();
    if result.len() > 1 {
        result.push(b',');
    }
    error.write_json(result);
    result.push(b']');
}

/// `not allowed`, for conversion of a database that clients may not write.
pub(super) fn conversion_not_allowed(name: &str) -> WireError {
    WireError::new(
        Tag::NotAllowed,
        format!("conversion is not allowed for read-only database {name}"),
    )
}
