//! Replies leave in the order of their execution, each when the commits that it could have seen are
//! stored.
//!
//! Each reply is preceded by its session's updates up to the commits before it. Sessions without a
//! reply get all updates at the end of the batch.

use corvid_data::WireError;
use corvid_log::storage::LogPosition;
use corvid_monitor::{SessionId, Written};

use super::model::Model;
use super::subscriptions::{ReplyParts, Subscriptions, WrittenContents};
use super::{DatabaseService, Now};
use crate::message::{Completion, Request, SessionInfo, ToDatabase};
use crate::observers::AuditEntries;
use crate::replies::{Answer, Commit, Origin, Pending, Reason, WrittenBodies};
use crate::upstream::{Parts, Upstream};

impl DatabaseService {
    /// The model, and the parts that following another server uses.
    pub(super) fn model_and_parts(&mut self, now: Now) -> (&mut Model, Parts<'_>) {
        let parts = Parts {
            now,
            database: &mut self.database,
            environment: &mut self.environment,
            once: &mut self.executor.once,
            outputs: &mut self.outputs,
            barrier_queue: &mut self.barrier_queue,
            audit: &self.observers.audit,
            is_removed: self.is_removed,
            epoch: self.conversions.epoch,
            is_converting: self.conversions.is_waiting(&self.file),
            held_bytes_max: self.conversions.bytes_max,
            is_diff: self.file.is_diff(),
        };
        (&mut self.model, parts)
    }

    /// The part of a clustered database or a relay that depends on another server, and the parts
    /// that it uses.
    pub(super) fn following(&mut self, now: Now) -> Option<(&mut Upstream, Parts<'_>)> {
        let (model, parts) = self.model_and_parts(now);
        Some((model.upstream_mut()?, parts))
    }

    /// Whether a session is about to be closed ([`Environment::is_dismissed`]).
    ///
    /// [`Environment::is_dismissed`]: crate::environment::Environment::is_dismissed
    pub(super) fn is_dismissed(&self, info: &SessionInfo) -> bool {
        let epoch = self.conversions.epoch;
        self.environment.is_dismissed(info, self.is_removed, epoch)
    }

    /// The session of an input that must wait until its transactions in flight are answered.
    pub(super) fn awaited_session(&self, input: &ToDatabase) -> Option<SessionId> {
        let (outputs, environment) = (&self.outputs, &self.environment);
        let upstream = self.model.upstream()?;
        upstream.forwarding.awaited_by(input, outputs, environment)
    }

    /// Drops a request of a dismissed session without a reply.
    pub(super) fn drop_request(&mut self, request: &Request) {
        request.info.miss_cancellation();
        self.outputs.end_request(request);
    }

    /// Queues a reply to a request that changes no rows. It leaves at once if everything before it
    /// is stored.
    pub(super) fn answer_when_stored(&mut self, answer: Answer, origin: Origin) {
        if let (true, Origin::Client(request)) = (answer.changes_monitors(), &origin) {
            self.outputs.outboxes.begin_monitor_change(request.session);
        }
        self.pending.push(Pending::answer(answer, origin));
        self.release();
    }

    /// Replies with an outcome that is certain, after what is pending.
    pub(super) fn send_answer(&mut self, request: Box<Request>, reply: Answer, has_changed: bool) {
        if self.is_dismissed(&request.info) {
            self.drop_request(&request);
        // Otherwise it would overtake a reply of its session that waits for a record.
        } else if self.pending.is_empty() {
            self.answer(request, reply, has_changed);
        } else {
            let answer = Answer::Certain(Box::new(reply), has_changed);
            let origin = Origin::Client(request);
            self.pending.push(Pending::answer(answer, origin));
            self.release();
        }
    }

    /// Replies with a result when the commits that it could have seen are stored.
    pub(super) fn reply(&mut self, request: Box<Request>, result: Vec<u8>) {
        self.answer_when_stored(Answer::Result(result), Origin::Client(request));
    }

    /// Replies with an error object when the commits that it could have seen are stored.
    pub(super) fn refuse(&mut self, request: Box<Request>, error: WireError) {
        let answer = Answer::Error(Box::new(error));
        self.answer_when_stored(answer, Origin::Client(request));
    }

    /// The subscriptions, and the parts that a reply uses.
    fn replying(&mut self) -> (&mut Subscriptions, ReplyParts<'_>) {
        let parts = ReplyParts {
            outputs: &mut self.outputs,
            environment: &self.environment,
            slow: &mut self.observers.slow,
            is_removed: self.is_removed,
        };
        (&mut self.subscriptions, parts)
    }

    /// Replies with an error object at once.
    pub(super) fn fail(&mut self, request: &Request, error: &WireError) {
        let (subscriptions, mut parts) = self.replying();
        subscriptions.fail(request, error, &mut parts);
    }

    /// Replies that a request is canceled.
    pub(super) fn cancel_request(&mut self, request: &Request, completion: Completion) {
        let (subscriptions, mut parts) = self.replying();
        subscriptions.cancel_request(request, completion, &mut parts);
    }

    /// Releases replies that wait for no record.
    pub(super) fn release(&mut self) {
        self.release_through(LogPosition(0));
    }

    /// Releases replies in order up to the first whose record comes after `stored`.
    pub(super) fn release_through(&mut self, stored: LogPosition) {
        while let Some(entry) = self.pending.pop_stored(stored) {
            let Pending {
                commit,
                date_ms,
                refused,
                answer,
                origin,
            } = entry;
            let has_changed = commit.is_some();
            // From here on an undo cannot take it back, so a copy of it is never executed.
            self.executor.once.released(origin.once_id());
            // Before the reply: the updates that precede it are to have its own changes.
            if let Some(commit) = commit {
                self.release_commit(&commit, date_ms, &origin);
            }
            // As the entry of a commit, it is in the trail before its client knows the outcome.
            if let Some(refused) = refused {
                let schema = self.database.schema();
                let entry = AuditEntries::of_refused(schema, date_ms, &origin, *refused);
                self.outputs.audit.push(entry);
            }
            match origin {
                Origin::Client(request) => self.answer(request, answer, has_changed),
                Origin::Cancel(session, _) => self.outputs.complete(session, Completion::Request),
                Origin::Control(_) => {
                    if let Answer::Event(event) = answer {
                        self.outputs.events.push(*event);
                    }
                }
                Origin::Forwarded(forwarded) => {
                    if let Some(member) = self.model.member_mut() {
                        member.release_forwarded(forwarded, answer);
                    }
                }
                Origin::Server(_) | Origin::Source | Origin::Member(_) => {}
            }
        }
    }

    /// A commit is stored: sessions may see it.
    pub(super) fn release_commit(&mut self, commit: &Commit, date_ms: i64, origin: &Origin) {
        let delta = &commit.delta;
        // A conversion begins with the stored state, and carries over the commits stored since.
        self.conversions
            .observe_commit(delta, date_ms, commit.record_bytes);
        let atoms = self.database.atom_count();
        self.subscriptions
            .release_commit(delta, atoms, &mut self.outputs);
        let (database, outputs) = (&self.database, &mut self.outputs);
        self.observers
            .observe_commit(commit, date_ms, origin, database, outputs);
    }

    /// Replies to a request at once.
    fn answer(&mut self, request: Box<Request>, answer: Answer, has_changed: bool) {
        let session = request.session;
        let (subscriptions, mut parts) = self.replying();
        if subscriptions.answer(request, answer, has_changed, &mut parts) {
            self.resume_if_unblocked(session);
        }
    }

    /// Sends a session all its pending updates.
    pub(super) fn send_updates(&mut self, session: SessionId) {
        self.subscriptions
            .send_updates(session, &mut self.outputs, &self.environment);
    }

    /// Ends a monitor, because the replies before its end have left.
    pub(super) fn release_monitor_cancel(&mut self, request: &Request) {
        self.subscriptions
            .release_cancel(request, &mut self.outputs, &self.environment);
    }

    /// The session's output is drained.
    pub(super) fn handle_drained(&mut self, session: SessionId) {
        self.subscriptions.mark_drained(session, &mut self.outputs);
        self.resume_if_unblocked(session);
    }

    /// A body is written, perhaps for another session: delivers everything that need not wait any
    /// longer.
    pub(super) fn deliver_written_body(&mut self, now: Now, session: SessionId) {
        self.observers.slow.set_now(now);
        let (outputs, environment) = (&mut self.outputs, &self.environment);
        let subscriptions = &mut self.subscriptions;
        let written = subscriptions.deliver_written(session, outputs, environment);
        self.end_bodies(written);
    }

    /// Reports long results that leave late, and resumes the sessions that waited for them.
    fn end_bodies(&mut self, written: WrittenBodies) {
        let name = &self.database.schema().name;
        for request in &written.results {
            let slow = self.observers.slow.report_result(request, name);
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
            let (subscriptions, mut parts) = self.replying();
            let session = subscriptions.answer_contents(reply, written.text.as_ref(), &mut parts);
            inputs.extend(self.take_unblocked(session));
        }
        self.requeue(later, &mut inputs);
        self.barrier_queue.push_first(inputs);
    }

    /// Before all monitors are removed: has requests without a reply executed anew afterwards.
    pub(super) fn abandon_initial_contents(&mut self) {
        let written = self.subscriptions.write_all_bodies(&mut self.outputs);
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
            .cancel_all(&mut self.outputs, &self.environment);
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
