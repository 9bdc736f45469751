//! Replies leave in the order of their execution, each when the commits that it could have seen are stored.
//!
//! Each reply is preceded by its session's updates up to the commits before it. Sessions without a reply get all updates at the end of the
//! batch.

use corvid_data::WireError;
use corvid_log::storage::LogPosition;
use corvid_monitor::{SessionId, Written};

use super::clustered::{Clustered, Parts};
use super::observers::AuditEntries;
use super::replies::{Answer, Commit, Origin, Pending, Reason, WrittenBodies};
use super::subscriptions::{AwaitedReply, WrittenContents};
use super::{DatabaseService, Now};
use crate::client_memory::{self, COUNTED_BYTES};
use crate::job::garbage::Garbage;
use crate::message::{Completion, DatabaseMethod, Request, SessionInfo, ToDatabase};

/// A longer request is freed by the reaper, bytes.
const FREED_BYTES: usize = 1 << 20;

impl DatabaseService {
    /// The state of a clustered database or a relay, if it is one, and the parts that it uses.
    pub(super) fn following(&mut self, now: Now) -> Option<(&mut Clustered, Parts<'_>)> {
        let cluster = self.model.cluster_mut()?;
        let parts = Parts {
            now,
            database: &mut self.database,
            environment: &mut self.environment,
            once: &mut self.executor.once,
            outputs: &mut self.outputs,
            barrier_queue: &mut self.barrier_queue,
            audit: &self.observers.audit,
            conversions: &self.conversions,
            file: &self.file,
            is_removed: self.is_removed,
        };
        Some((cluster, parts))
    }

    /// Whether a session is about to be closed ([`Conversions::is_dismissed`]).
    ///
    /// [`Conversions::is_dismissed`]: super::conversion::Conversions::is_dismissed
    pub(super) fn is_dismissed(&self, info: &SessionInfo) -> bool {
        let environment = &self.environment;
        self.conversions
            .is_dismissed(self.is_removed, info, environment)
    }

    /// The session of an input that must wait until its transactions in flight are answered.
    pub(super) fn awaited_session(&self, input: &ToDatabase) -> Option<SessionId> {
        let (outputs, environment) = (&self.outputs, &self.environment);
        let cluster = self.model.cluster()?;
        cluster.awaited_by(input, outputs, environment)
    }

    /// Drops a request of a dismissed session without a reply.
    pub(super) fn drop_request(&mut self, request: &Request) {
        request.info.miss_cancellation();
        self.outputs.end_request(request);
    }

    /// Queues a reply to a request that changes no rows. It leaves at once if everything before it is stored.
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

    /// Replies with an error object at once.
    pub(super) fn fail(&mut self, request: &Request, error: &WireError) {
        let mut json = Vec::new();
        error.write_json(&mut json);
        self.send_refusal(request, &json);
    }

    /// Replies that a request is canceled.
    pub(super) fn cancel_request(&mut self, request: &Request, completion: Completion) {
        self.send_updates(request.session);
        self.outputs
            .error_json(request.session, &request.id, b"\"canceled\"", completion);
    }

    /// Replies with an error, which is JSON. Without room for a long one, the reply says only that.
    fn send_refusal(&mut self, request: &Request, error: &[u8]) {
        let (session, completion) = (request.session, Completion::of(request));
        self.send_updates(session);
        let bytes = request.id.len() + error.len();
        if !self.environment.has_room_to_repeat(bytes) {
            let error = client_memory::exhausted();
            self.outputs.error(session, &request.id, &error, completion);
            return;
        }
        self.outputs
            .error_json(session, &request.id, error, completion);
        // No shard reports to a database that is removed.
        if bytes >= COUNTED_BYTES && !self.is_removed {
            self.count_reply(request);
        }
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
            self.executor.once.released(origin.once_id());
            if let Some(commit) = commit {
                self.release_commit(&commit, date_ms, &origin);
            }
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
                    if let Some(cluster) = self.model.cluster_mut() {
                        cluster.release_forwarded(forwarded, answer);
                    }
                }
                Origin::Server(_) | Origin::Source | Origin::Member(_) => {}
            }
        }
    }

    /// A commit is stored: sessions may see it.
    pub(super) fn release_commit(&mut self, commit: &Commit, date_ms: i64, origin: &Origin) {
        let delta = &commit.delta;
        self.conversions
            .observe_commit(delta, date_ms, commit.record_bytes);
        let atoms = self.database.atom_count();
        self.subscriptions
            .release_commit(delta, atoms, &mut self.outputs);
        let (database, outputs) = (&self.database, &mut self.outputs);
        self.observers
            .observe_commit(commit, date_ms, origin, database, outputs);
    }

    pub(super) fn answer(&mut self, request: Box<Request>, answer: Answer, has_changed: bool) {
        if let Answer::Certain(reply, has_changed) = answer {
            self.answer(request, *reply, has_changed);
            return;
        }
        if request.stamp != 0 && !request.blocked && request.method == DatabaseMethod::Transact {
            self.outputs.answered.push(request.stamp);
        }
        let session = request.session;
        let changes_monitors = answer.changes_monitors();
        match answer {
            Answer::Result(result) => self.answer_result(request, result, has_changed),
            Answer::Long(result, charge) => {
                let (outputs, environment) = (&mut self.outputs, &self.environment);
                self.subscriptions
                    .defer_reply(request, *result, charge, outputs, environment);
            }
            Answer::Error(error) => self.fail(&request, &error),
            Answer::Refused(error) => self.send_refusal(&request, &error),
            Answer::Canceled => self.cancel_request(&request, Completion::of(&request)),
            Answer::Joined(joining) => {
                let (outputs, environment) = (&mut self.outputs, &self.environment);
                let subscriptions = &mut self.subscriptions;
                let ended = subscriptions.release_joined(request, *joining, outputs, environment);
                if let Some(ended) = ended {
                    self.refuse_awaited(&ended);
                    self.unblock(session, Reason::InitialContents);
                }
            }
            Answer::ConditionChanged(change) => {
                let (outputs, environment) = (&mut self.outputs, &self.environment);
                self.subscriptions
                    .release_condition(&request, *change, outputs, environment);
            }
            Answer::MonitorCanceled => self.release_monitor_cancel(&request),
            Answer::Event(_) | Answer::Blocked | Answer::Nothing | Answer::Certain(..) => {
                unreachable!("clients are answered")
            }
        }
        if changes_monitors {
            self.outputs.outboxes.end_monitor_change(session);
            self.resume_if_unblocked(session);
        }
    }

    fn answer_result(&mut self, request: Box<Request>, result: Vec<u8>, has_changed: bool) {
        self.send_updates(request.session);
        let completion = Completion::of(&request);
        self.outputs
            .reply(request.session, &request.id, &result, completion);
        self.count_reply(&request);
        let bytes = request.frame.len() + result.len();
        if bytes > FREED_BYTES {
            if !has_changed {
                self.observers.slow.keep_long(&request);
            }
            self.outputs.free(Garbage::new(bytes, (request, result)));
        } else if !has_changed {
            self.observers.slow.keep(request);
        }
    }

    /// Sends a session all its pending updates.
    pub(super) fn send_updates(&mut self, session: SessionId) {
        self.subscriptions
            .send_updates(session, &mut self.outputs, &self.environment);
    }

    /// Counts the reply that was just composed for a request.
    fn count_reply(&mut self, request: &Request) {
        self.subscriptions
            .count_reply(request, &mut self.outputs, &self.environment);
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

    /// A body is written, perhaps another session's: delivers what need not wait any longer.
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

    /// Contents are written: replies to every request that waits for them, and resumes their sessions.
    pub(super) fn answer_written_contents(&mut self, now: Now, written: &Written) {
        let Some(WrittenContents { answers, later }) =
            self.subscriptions.end_contents(now, written)
        else {
            return;
        };
        let mut inputs = Vec::new();
        for reply in answers {
            let (text, outputs) = (written.text.as_ref(), &mut self.outputs);
            let subscriptions = &mut self.subscriptions;
            let ended = subscriptions.answer_awaited(reply, text, outputs, &self.environment);
            self.refuse_awaited(&ended);
            let session = ended.request.session;
            self.outputs
                .outboxes
                .clear(session, Reason::InitialContents);
            inputs.extend(self.take_unblocked(session));
        }
        self.requeue(later, &mut inputs);
        self.barrier_queue.push_first(inputs);
    }

    /// Refuses a request for a monitor whose contents had no room.
    fn refuse_awaited(&mut self, ended: &AwaitedReply) {
        if ended.is_refused {
            self.fail(&ended.request, &client_memory::exhausted());
        }
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

    /// Removes every monitor. Notifies the sessions that are aware of changes, and the shards in any case.
    pub(super) fn cancel_monitors(&mut self) {
        self.abandon_initial_contents();
        self.subscriptions
            .cancel_all(&mut self.outputs, &self.environment);
    }

    /// Clears a reason for which a session was blocked. Resumes its requests if that was the last one.
    fn unblock(&mut self, session: SessionId, reason: Reason) {
        self.outputs.outboxes.clear(session, reason);
        self.resume_if_unblocked(session);
    }

    /// Takes the requests of a session's outbox, if nothing blocks it any more; what it has in flight may continue.
    fn take_unblocked(
        &mut self,
        session: SessionId,
    ) -> impl DoubleEndedIterator<Item = ToDatabase> + use<> {
        if let Some(in_flight) = self.model.in_flight_mut() {
            in_flight.set_due(session);
        }
        self.outputs.outboxes.take_unblocked(session).into_iter()
    }

    /// Resumes a session's requests, if nothing blocks it any more.
    pub(super) fn resume_if_unblocked(&mut self, session: SessionId) {
        let requests = self.take_unblocked(session);
        self.barrier_queue.push_first(requests);
    }
}
