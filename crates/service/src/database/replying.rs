//! The way of a reply to its session: after the updates before it, after long bodies that are still
//! being written, and past the outbox of the session, whose later requests may continue then.
//!
//! Invariant: a reply that is sent here leaves after all updates of its session that are released.
//! A session whose last reason to wait ends here has its requests at the head of the barrier's
//! queue, or in flight, when the call returns. The caller decides when a reply may leave; this file
//! executes no transaction, and knows no pending reply and no file.

use corvid_data::WireError;
use corvid_engine::Database;
use corvid_monitor::{SessionId, Written};

use super::Now;
use super::model::Model;
use super::subscriptions::{ReplyParts, Subscriptions, WrittenContents};
use crate::barrier::BarrierQueue;
use crate::environment::Environment;
use crate::executor::Trigger;
use crate::job::JobNumber;
use crate::message::{Completion, Request, ToDatabase};
use crate::observers::SlowLog;
use crate::read_history::PastRead;
use crate::replies::{Answer, Outputs, Reason, WrittenBodies};

/// The parts that a reply uses.
pub(super) struct Replying<'a> {
    /// Of which only requests in flight are used.
    pub(super) model: &'a mut Model,
    /// Of which only the name is used.
    pub(super) database: &'a Database,
    pub(super) environment: &'a Environment,
    pub(super) subscriptions: &'a mut Subscriptions,
    pub(super) barrier_queue: &'a mut BarrierQueue,
    pub(super) slow: &'a mut SlowLog,
    pub(super) outputs: &'a mut Outputs,
    /// The database is not served any more.
    pub(super) is_removed: bool,
}

impl Replying<'_> {
    /// The subscriptions, and what they use for a reply.
    fn parts(&mut self) -> (&mut Subscriptions, ReplyParts<'_>) {
        let parts = ReplyParts {
            outputs: self.outputs,
            environment: self.environment,
            slow: self.slow,
            is_removed: self.is_removed,
        };
        (self.subscriptions, parts)
    }

    /// Replies with an error object at once.
    pub(super) fn fail(&mut self, request: &Request, error: &WireError) {
        let (subscriptions, mut parts) = self.parts();
        subscriptions.fail(request, error, &mut parts);
    }

    /// Replies that a request is canceled.
    pub(super) fn cancel_request(&mut self, request: &Request, completion: Completion) {
        let (subscriptions, mut parts) = self.parts();
        subscriptions.cancel_request(request, completion, &mut parts);
    }

    /// Answers every blocked transaction with `canceled`, because the database is removed or has
    /// another schema. Sessions that are not aware of changes are about to be closed and get no
    /// reply.
    pub(super) fn cancel_triggers(&mut self, triggers: impl IntoIterator<Item = Trigger>) {
        for trigger in triggers {
            if self.environment.is_aware(&trigger.request.info) {
                self.cancel_request(&trigger.request, Completion::None);
            } else {
                trigger.request.info.miss_cancellation();
            }
        }
    }

    /// Replies to a request at once.
    pub(super) fn answer(&mut self, request: Box<Request>, answer: Answer, has_changed: bool) {
        let session = request.session;
        let (subscriptions, mut parts) = self.parts();
        if subscriptions.answer(request, answer, has_changed, &mut parts) {
            self.resume_if_unblocked(session);
        }
    }

    /// Sends a session all its pending updates.
    pub(super) fn send_updates(&mut self, session: SessionId) {
        self.subscriptions
            .send_updates(session, self.outputs, self.environment);
    }

    /// Ends a monitor, because the replies before its end have left.
    pub(super) fn release_monitor_cancel(&mut self, request: &Request) {
        self.subscriptions
            .release_cancel(request, self.outputs, self.environment);
    }

    /// The session's output is drained.
    pub(super) fn mark_drained(&mut self, session: SessionId) {
        self.subscriptions.mark_drained(session, self.outputs);
        self.resume_if_unblocked(session);
    }

    /// A body is written, perhaps for another session: delivers everything that need not wait any
    /// longer.
    pub(super) fn deliver_written_body(&mut self, now: Now, session: SessionId) {
        self.slow.set_now(now);
        let (outputs, environment) = (&mut *self.outputs, self.environment);
        let written = self
            .subscriptions
            .deliver_written(session, outputs, environment);
        self.end_bodies(written);
    }

    /// Reports long results that leave late, and resumes the sessions that waited for them.
    fn end_bodies(&mut self, written: WrittenBodies) {
        let name = &self.database.schema().name;
        for request in &written.results {
            let slow = self.slow.report_result(request, name);
            self.outputs.events.extend(slow);
        }
        for session in written.ended {
            self.resume_if_unblocked(session);
        }
    }

    /// Contents are written: replies to every request that waits for them, and resumes their
    /// sessions.
    pub(super) fn answer_written_contents(&mut self, now: Now, written: &Written) {
        let Some(WrittenContents { answers, later }) =
            self.subscriptions.end_contents(now, written)
        else {
            return;
        };
        let mut inputs = Vec::new();
        for reply in answers {
            let (subscriptions, mut parts) = self.parts();
            let session = subscriptions.answer_contents(reply, written.text.as_ref(), &mut parts);
            inputs.extend(self.take_unblocked(session));
        }
        self.requeue(later, &mut inputs);
        self.barrier_queue.push_first(inputs);
    }

    /// A search for what a client has missed has ended: the requests that wait for it are executed
    /// anew.
    pub(super) fn answer_past(&mut self, now: Now, number: JobNumber, read: Option<Box<PastRead>>) {
        let (read, schema) = (read.map(|read| *read), self.database.schema());
        let requests = self.subscriptions.end_past(now, number, read, schema);
        let mut inputs = Vec::new();
        self.requeue(requests, &mut inputs);
        self.barrier_queue.push_first(inputs);
    }

    /// Before all monitors are removed: has requests without a reply executed anew afterwards.
    pub(super) fn abandon_initial_contents(&mut self) {
        let written = self.subscriptions.write_all_bodies(self.outputs);
        self.end_bodies(written);
        let requests = self.subscriptions.take_awaiting_contents();
        let mut inputs = Vec::new();
        self.requeue(requests, &mut inputs);
        self.barrier_queue.push_first(inputs);
    }

    /// Has requests that waited for contents executed anew, each before later ones of its session.
    /// Requests of closed sessions are dropped.
    fn requeue(&mut self, requests: Vec<Request>, inputs: &mut Vec<ToDatabase>) {
        for request in requests {
            let session = request.session;
            let outboxes = &mut self.outputs.outboxes;
            if !outboxes.is_blocked_by(session, Reason::InitialContents) {
                continue;
            }
            outboxes.clear(session, Reason::InitialContents);
            let request = Box::new(request);
            // One of a session with requests in flight is executed before those.
            let left = match self.model.in_flight_mut() {
                Some(in_flight) => in_flight.push_anew(request),
                None => Some(request),
            };
            if let Some(request) = left {
                let outboxes = &mut self.outputs.outboxes;
                outboxes.put_back(ToDatabase::Request(request));
                inputs.extend(self.take_unblocked(session));
            }
        }
    }

    /// Removes every monitor. Notifies the sessions that are aware of changes, and the shards in
    /// any case.
    pub(super) fn cancel_monitors(&mut self) {
        self.abandon_initial_contents();
        self.subscriptions
            .cancel_all(self.outputs, self.environment);
    }

    /// Takes the requests of a session's outbox, if nothing blocks the session; its requests in
    /// flight may continue.
    fn take_unblocked(
        &mut self,
        session: SessionId,
    ) -> impl DoubleEndedIterator<Item = ToDatabase> + use<> {
        if let Some(in_flight) = self.model.in_flight_mut() {
            in_flight.set_due(session);
        }
        self.outputs.outboxes.take_unblocked(session).into_iter()
    }

    /// Resumes a session's requests, if nothing blocks it.
    pub(super) fn resume_if_unblocked(&mut self, session: SessionId) {
        let requests = self.take_unblocked(session);
        self.barrier_queue.push_first(requests);
    }
}
