//! Replies leave in the order of their execution, each when the commits that it could have seen are stored.
//!
//! Each reply is preceded by its session's updates up to the commits before it. Sessions without a reply get all updates at the end of the
//! batch.

use corvid_data::WireError;
use corvid_log::storage::{LogPosition, StoreError};
use corvid_monitor::SessionId;

use super::outbox::Reason;
use super::pending::{Answer, Commit, Origin, Pending};
use super::{DatabaseService, Now};
use crate::client_memory::{self, COUNTED_BYTES, SHORT_BYTES};
use crate::job;
use crate::job::garbage::Garbage;
use crate::message::{Completion, DatabaseMethod, Request};

/// A longer request is freed by the reaper, bytes.
const FREED_BYTES: usize = 1 << 20;

impl DatabaseService {
    /// Queues a reply to a request that changes no rows. It leaves at once if everything before it is stored.
    pub(super) fn answer_when_stored(&mut self, answer: Answer, origin: Origin) {
        if let (true, Origin::Client(request)) = (answer.changes_monitors(), &origin) {
            self.outputs.outboxes.begin_monitor_change(request.session);
        }
        self.pending.push(Pending::answer(answer, origin));
        self.release();
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

    /// Replies with an error, which is JSON. Without room for a long one, the reply says only that.
    fn send_refusal(&mut self, request: &Request, error: &[u8]) {
        let (session, completion) = (request.session, completion_of(request));
        self.send_updates(session);
        let bytes = request.id.len() + error.len();
        if !self.has_room_to_repeat(bytes) {
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

    /// Whether there is room for a reply of this length that repeats its request, bytes. Counts a
    /// refusal.
    pub(super) fn has_room_to_repeat(&self, bytes: usize) -> bool {
        let memory = &self.outputs.client_memory;
        let has_room = bytes <= SHORT_BYTES || self.tape.flag(|| memory.has_room_to_repeat(bytes));
        if !has_room {
            memory.refuse();
        }
        has_room
    }

    /// Whether a reply or an update of this length may begin, bytes. Counts a refusal.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        let memory = &self.outputs.client_memory;
        let has_room = bytes <= SHORT_BYTES || self.tape.flag(|| memory.has_room_for(bytes));
        if !has_room {
            memory.refuse();
        }
        has_room
    }

    /// Records are stored, or have failed.
    pub(super) fn stored(
        &mut self,
        now: Now,
        position: LogPosition,
        result: Result<(), StoreError>,
    ) {
        self.slow.set_now(now);
        match result {
            Ok(()) => {
                self.storage_error = None;
                self.release_through(position);
            }
            Err(error) => self.undo_unstored(now, position, &error),
        }
        self.advance_conversion(now);
        self.resume(now);
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
            self.once.released(origin.once_id());
            if let Some(commit) = commit {
                self.release_commit(&commit, date_ms, &origin);
            }
            if let Some(refused) = refused {
                self.audit_refused(date_ms, &origin, *refused);
            }
            match origin {
                Origin::Client(request) => self.answer(request, answer, has_changed),
                Origin::Cancel(session, _) => self.outputs.complete(session, Completion::Request),
                Origin::Control(_) => {
                    if let Answer::Event(event) = answer {
                        self.outputs.events.push(*event);
                    }
                }
                Origin::Forwarded(forwarded) => self.release_forwarded(forwarded, answer),
                Origin::Server(_) | Origin::Source | Origin::Member(_) => {}
            }
        }
    }

    /// A commit is stored: sessions may see it.
    pub(super) fn release_commit(&mut self, commit: &Commit, date_ms: i64, origin: &Origin) {
        let delta = &commit.delta;
        self.counts.committed += 1;
        if let Some(conversion) = &mut self.conversion {
            let released = job::Commit {
                delta: delta.clone(),
                date_ms,
            };
            conversion.released(released, commit.record_bytes, self.conversion_bytes_max);
        }
        self.report_remotes(delta);
        self.log_rows(delta);
        self.monitors.stored(delta, self.database.atom_count());
        self.flush_pacing.add(delta.changes.len());
        for (dropped, atoms) in self.monitors.take_dropped() {
            self.outputs.free(Garbage::commit(dropped, atoms));
        }
        self.audit_commit(date_ms, origin, commit);
        if let Origin::Client(request) = origin {
            self.report_slow_commit(request, delta);
        }
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
            Answer::Long(result, charge) => self.defer_reply(request, *result, charge),
            Answer::Error(error) => self.fail(&request, &error),
            Answer::Refused(error) => self.send_refusal(&request, &error),
            Answer::Canceled => self.cancel_request(&request, completion_of(&request)),
            Answer::Joined(joining) => self.release_joined(request, *joining),
            Answer::ConditionChanged(change) => self.release_condition(&request, *change),
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
        let completion = completion_of(&request);
        self.outputs
            .reply(request.session, &request.id, &result, completion);
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

    /// Clears a reason for which a session was blocked. Resumes its requests if that was the last one.
    pub(super) fn unblock(&mut self, session: SessionId, reason: Reason) {
        self.outputs.outboxes.clear(session, reason);
        self.resume_if_unblocked(session);
    }

    /// Resumes a session's requests, if nothing blocks it any more.
    pub(super) fn resume_if_unblocked(&mut self, session: SessionId) {
        let requests = self.take_unblocked(session);
        self.queue_first(requests);
    }
}

/// A request that blocked was reported as complete then.
pub(super) fn completion_of(request: &Request) -> Completion {
    if request.blocked {
        Completion::None
    } else {
        Completion::Request
    }
}
