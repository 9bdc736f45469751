//! `transact`, its waiting and its release after storage.

use std::sync::{Mutex, PoisonError};

use corvid_data::{Arc, Delta, Tag, WireError};
use corvid_engine::{Context, LockOwner, Outcome};
use corvid_log::write_transaction;
use corvid_monitor::SessionId;

use super::parked::{Origin, Parked};
use super::triggers::Trigger;
use super::{DatabaseService, Now};
use crate::locks::Locks;
use crate::message::{Event, Handled, Request, Store, StoreError, Ticket, ToDatabase};

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
    pub(super) fn transact(&mut self, now: Now, mut request: Request) {
        // Waits count from here: the way from the socket is not the client's time.
        request.arrived_ms = now.mono_ms;
        if self.triggers.contains(request.session, &request.id) {
            let error = WireError::syntax(request.params(), "transact: duplicate request ID");
            self.fail(&request, &error);
            return;
        }
        let session = request.session;
        let committed = match self.attempt(now, request) {
            Attempt::Blocked => {
                self.outputs.handled(session, Handled::Yes);
                false
            }
            Attempt::Done { committed } => committed,
        };
        if committed {
            self.retry_triggers(now);
        }
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
        } = self.database.execute(params, &mut context)
        {
            let committed = delta.is_some();
            self.park(now, delta, durable, result, Origin::Server(params.to_vec()));
            if committed {
                self.retry_triggers(now);
            }
            self.release();
        }
    }

    /// Executes a request once; its answer is parked, or it joins the waiting ones.
    fn attempt(&mut self, now: Now, request: Request) -> Attempt {
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
        match self.database.execute(request.params(), &mut context) {
            Outcome::Done {
                result,
                delta,
                durable,
            } => {
                let committed = delta.is_some();
                self.park(
                    now,
                    delta,
                    durable,
                    result,
                    Origin::Client(Box::new(request)),
                );
                Attempt::Done { committed }
            }
            Outcome::Blocked { deadline_ms } => {
                if request.info.is_closed() {
                    return Attempt::Blocked;
                }
                let mut request = request;
                request.blocked = true;
                let deadline_ms = deadline_ms.map(|after| request.arrived_ms.saturating_add(after));
                self.triggers.push(Trigger {
                    request,
                    deadline_ms,
                });
                Attempt::Blocked
            }
        }
    }

    /// Queues an answer behind the record of its commit, and hands the record to the log.
    fn park(
        &mut self,
        now: Now,
        delta: Option<Arc<Delta>>,
        durable: bool,
        result: Vec<u8>,
        origin: Origin,
    ) {
        let record = delta
            .as_ref()
            .filter(|_| self.options.has_storage)
            .and_then(|delta| {
                let mut record = Vec::new();
                let (schema, is_diff) = (self.database.schema(), self.options.column_diff);
                write_transaction(&mut record, schema, delta, now.wall_ms, is_diff).map(|_| record)
            });
        let ticket = record.map(|record| {
            let ticket = self.take_ticket();
            self.outputs.stores.push(Store::Append {
                ticket,
                record,
                durable,
            });
            ticket
        });
        self.parked.push_back(Parked {
            ticket,
            delta,
            result,
            origin,
        });
    }

    /// Tries the waiting transactions again, oldest first, until a round commits nothing.
    fn retry_triggers(&mut self, now: Now) {
        let mut again = !self.triggers.is_empty();
        while again {
            again = false;
            for trigger in self.triggers.take_all() {
                again |= self.retry(now, trigger);
            }
        }
    }

    /// One more attempt of a waiting transaction; whether it committed something.
    fn retry(&mut self, now: Now, trigger: Trigger) -> bool {
        matches!(
            self.attempt(now, trigger.request),
            Attempt::Done { committed: true }
        )
    }

    /// When [`DatabaseService::tick`] must be called at the latest.
    #[must_use]
    pub fn next_deadline_ms(&self) -> Option<u64> {
        if self.conversion.is_some() {
            None
        } else {
            self.triggers.next_deadline()
        }
    }

    /// Tries waiting transactions whose deadline has come.
    pub fn tick(&mut self, now: Now) {
        if self.conversion.is_some() {
            return;
        }
        let mut committed = false;
        for trigger in self.triggers.take_expired(now.mono_ms) {
            committed |= self.retry(now, trigger);
        }
        if committed {
            self.retry_triggers(now);
        }
        self.release();
    }

    /// A record is stored, or failed to be.
    pub(super) fn stored(&mut self, now: Now, ticket: Ticket, result: Result<(), StoreError>) {
        if let Some(position) = self
            .compactions
            .iter()
            .position(|(waiting, _)| *waiting == ticket)
        {
            let (_, token) = self.compactions.swap_remove(position);
            self.outputs.events.push(Event::Compacted(token, result));
        } else if self
            .conversion
            .as_ref()
            .is_some_and(|conversion| conversion.ticket == ticket)
        {
            self.finish_conversion(result);
        } else {
            match result {
                Ok(()) => self.release_through(ticket),
                Err(error) => self.store_failed(ticket, &error),
            }
        }
        self.resume(now);
    }

    /// Releases answers that wait for no record.
    fn release(&mut self) {
        self.release_through(Ticket(0));
    }

    /// Releases answers in order up to the first whose record comes after `stored`. Monitors learn of all of them first, so
    /// that the updates that precede one reply already hold the commits that came along.
    fn release_through(&mut self, stored: Ticket) {
        let is_free = |parked: &Parked| parked.ticket.is_none_or(|ticket| ticket <= stored);
        let count = self
            .parked
            .iter()
            .take_while(|parked| is_free(parked))
            .count();
        if count == 0 {
            return;
        }
        let released: Vec<Parked> = self.parked.drain(..count).collect();
        for delta in released.iter().filter_map(|parked| parked.delta.as_ref()) {
            self.report_remotes(delta);
            let txn = if self.options.history {
                self.uuids.fresh()
            } else {
                corvid_data::Uuid::ZERO
            };
            self.monitors.commit(delta, txn, self.database.atom_count());
        }
        for parked in released {
            if let Origin::Client(request) = parked.origin {
                self.reply_boxed(&request, &parked.result);
            }
        }
    }

    /// The record of `ticket` could not be stored: its commit and all after it are undone; it is answered with the error, the
    /// later ones, which may have seen it, are executed again.
    fn store_failed(&mut self, ticket: Ticket, error: &StoreError) {
        let Some(first) = self
            .parked
            .iter()
            .position(|parked| parked.ticket == Some(ticket))
        else {
            return;
        };
        let mut undone: Vec<Parked> = self.parked.drain(first..).collect();
        for delta in undone
            .iter()
            .rev()
            .filter_map(|parked| parked.delta.as_ref())
        {
            self.database.undo(delta);
        }
        self.outputs
            .events
            .push(Event::StoreFailed(self.options.id, error.clone()));
        self.release();
        let failed = undone.remove(0);
        if let Origin::Client(request) = failed.origin {
            let result = with_trailing_error(failed.result, &error.to_wire());
            self.reply_boxed(&request, &result);
        }
        // Tickets of the re-executed ones are new; answers to the old ones find nothing parked and are ignored.
        for parked in undone.into_iter().rev() {
            self.deferred.push_front(match parked.origin {
                Origin::Client(request) => ToDatabase::Request(*request),
                Origin::Server(params) => {
                    ToDatabase::Control(crate::message::Control::Transact(params))
                }
            });
        }
    }

    pub(super) fn cancel(&mut self, session: SessionId, id: &[u8]) {
        if self.triggers.remove(session, id).is_some() {
            self.send_updates(session);
            self.outputs
                .error_json(session, id, b"\"canceled\"", Handled::No);
        }
    }

    /// Answers every waiting transaction with `canceled`.
    pub(super) fn cancel_triggers(&mut self) {
        for trigger in self.triggers.take_all() {
            self.cancel_request(&trigger.request);
        }
    }

    fn cancel_request(&mut self, request: &Request) {
        self.send_updates(request.session);
        self.outputs
            .error_json(request.session, &request.id, b"\"canceled\"", Handled::No);
    }

    /// Replies with a result; the session's pending updates go first.
    pub(super) fn reply(&mut self, request: Request, result: Vec<u8>) {
        if self.parked.is_empty() {
            self.reply_boxed(&request, &result);
        } else {
            self.parked.push_back(Parked {
                ticket: None,
                delta: None,
                result,
                origin: Origin::Client(Box::new(request)),
            });
        }
    }

    fn reply_boxed(&mut self, request: &Request, result: &[u8]) {
        self.send_updates(request.session);
        let handled = self.handled_by(request);
        self.outputs
            .reply(request.session, &request.id, result, handled);
    }

    /// Replies with an error object.
    pub(super) fn fail(&mut self, request: &Request, error: &WireError) {
        self.send_updates(request.session);
        self.outputs
            .error(request.session, &request.id, error, Handled::Yes);
    }

    /// A request that blocked was reported as handled then.
    fn handled_by(&self, request: &Request) -> Handled {
        if request.blocked {
            Handled::No
        } else {
            Handled::Yes
        }
    }

    /// Hands over everything the session has yet to be told.
    pub(super) fn send_updates(&mut self, session: SessionId) {
        let mut frames = Vec::new();
        self.monitors.flush(session, &mut frames);
        if !frames.is_empty() {
            self.monitors.set_ready(session, false);
            self.outputs.updates(session, frames);
        }
    }

    /// Composes updates for every session that is ready for them. Called once per batch of inputs.
    pub fn flush_updates(&mut self) {
        let mut sessions = Vec::new();
        self.monitors.take_pending(&mut sessions);
        for session in sessions {
            self.send_updates(session);
        }
    }
}

/// What an execution attempt came to.
enum Attempt {
    Done { committed: bool },
    Blocked,
}

/// Appends a commit-time error to a result array (protocol.md 5.1).
fn with_trailing_error(mut result: Vec<u8>, error: &WireError) -> Vec<u8> {
    debug_assert_eq!(result.last(), Some(&b']'));
    result.pop();
    if result.len() > 1 {
        result.push(b',');
    }
    error.write_json(&mut result);
    result.push(b']');
    result
}

/// `not allowed`, for conversion of a database that clients may not write.
pub(super) fn conversion_not_allowed(name: &str) -> WireError {
    WireError::new(
        Tag::NotAllowed,
        format!("conversion is not allowed for read-only database {name}"),
    )
}
