//! Replies to clients: each follows the updates of its session.
//!
//! Invariant: a reply that is composed here leaves now, or is queued after a body of its session
//! that is still being written. Long ones count towards the limit of unread replies. The caller
//! decides when a reply may leave, and resumes the sessions that may continue after it.

use std::sync::Arc as StdArc;

use corvid_data::WireError;
use corvid_engine::LongResult;
use corvid_monitor::{SessionId, SharedBody};

use super::Subscriptions;
use super::initial_contents::{AwaitedReply, PendingReply};
use crate::client_memory::{self, COUNTED_BYTES, Charge};
use crate::environment::Environment;
use crate::job::garbage::Garbage;
use crate::message::{Completion, DatabaseMethod, Request};
use crate::observers::SlowLog;
use crate::replies::{Answer, Outputs, Reason};

/// A longer request is freed by the reaper, bytes.
const FREED_BYTES: usize = 1 << 20;

/// The parts of the database that a reply uses.
pub(in super::super) struct ReplyParts<'a> {
    pub(in super::super) outputs: &'a mut Outputs,
    pub(in super::super) environment: &'a Environment,
    pub(in super::super) slow: &'a mut SlowLog,
    /// The database is removed.
    pub(in super::super) is_removed: bool,
}

impl Subscriptions {
    /// Replies to a request whose entry leaves. True if a reason has ended for which the later
    /// requests of its session wait.
    pub(in super::super) fn answer(
        &mut self,
        request: Box<Request>,
        answer: Answer,
        has_changed: bool,
        parts: &mut ReplyParts<'_>,
    ) -> bool {
        if let Answer::Certain(reply, has_changed) = answer {
            return self.answer(request, *reply, has_changed, parts);
        }
        // The time of a blocked transaction is that of its wait: it says nothing about the server.
        if request.stamp != 0 && !request.blocked && request.method == DatabaseMethod::Transact {
            parts.outputs.answered.push(request.stamp);
        }
        let session = request.session;
        let changes_monitors = answer.changes_monitors();
        match answer {
            Answer::Result(result) => self.answer_result(request, result, has_changed, parts),
            Answer::Long(result, charge) => self.answer_long(request, *result, charge, parts),
            Answer::Error(error) => self.fail(&request, &error, parts),
            Answer::Refused(error) => self.send_refusal(&request, &error, parts),
            Answer::Canceled => self.cancel_request(&request, Completion::of(&request), parts),
            Answer::Joined(joining) => {
                let (outputs, environment) = (&mut *parts.outputs, parts.environment);
                let ended = self.release_joined(request, *joining, outputs, environment);
                if let Some(ended) = ended {
                    self.end_wait_for_contents(&ended, parts);
                }
            }
            Answer::ConditionChanged(change) => {
                let (outputs, environment) = (&mut *parts.outputs, parts.environment);
                self.release_condition(&request, *change, outputs, environment);
            }
            Answer::MonitorCanceled => {
                self.release_cancel(&request, parts.outputs, parts.environment);
            }
            Answer::Event(_) | Answer::Blocked | Answer::Nothing | Answer::Certain(..) => {
                unreachable!("clients are answered")
            }
        }
        // Only now do later requests about its monitors see them as the client does.
        if changes_monitors {
            parts.outputs.outboxes.end_monitor_change(session);
        }
        changes_monitors
    }

    fn answer_result(
        &mut self,
        request: Box<Request>,
        result: Vec<u8>,
        has_changed: bool,
        parts: &mut ReplyParts<'_>,
    ) {
        let session = request.session;
        self.send_updates(session, parts.outputs, parts.environment);
        let completion = Completion::of(&request);
        let outputs = &mut *parts.outputs;
        outputs.reply(session, &request.id, &result, completion);
        outputs.count_reply(&request, &mut self.monitors, parts.environment);
        let bytes = request.frame.len() + result.len();
        if bytes > FREED_BYTES {
            if !has_changed {
                parts.slow.keep_long(&request);
            }
            outputs.free(Garbage::new(bytes, (request, result)));
        } else if !has_changed {
            parts.slow.keep(request);
        }
    }

    /// Replies with a deferred result, once it is written.
    fn answer_long(
        &mut self,
        request: Box<Request>,
        result: LongResult,
        charge: StdArc<Charge>,
        parts: &mut ReplyParts<'_>,
    ) {
        let (outputs, environment) = (&mut *parts.outputs, parts.environment);
        self.send_updates(request.session, outputs, environment);
        outputs.defer_reply(request, result, charge, &mut self.monitors, environment);
    }

    /// Replies with an error object.
    pub(in super::super) fn fail(
        &mut self,
        request: &Request,
        error: &WireError,
        parts: &mut ReplyParts<'_>,
    ) {
        let mut json = Vec::new();
        error.write_json(&mut json);
        self.send_refusal(request, &json, parts);
    }

    /// Replies that a request is canceled.
    pub(in super::super) fn cancel_request(
        &mut self,
        request: &Request,
        completion: Completion,
        parts: &mut ReplyParts<'_>,
    ) {
        let session = request.session;
        self.send_updates(session, parts.outputs, parts.environment);
        let outputs = &mut *parts.outputs;
        outputs.error_json(session, &request.id, b"\"canceled\"", completion);
    }

    /// Replies with an error, which is JSON. Without room for a long one, the reply says only that.
    fn send_refusal(&mut self, request: &Request, error: &[u8], parts: &mut ReplyParts<'_>) {
        let (session, completion) = (request.session, Completion::of(request));
        let (outputs, environment) = (&mut *parts.outputs, parts.environment);
        self.send_updates(session, outputs, environment);
        let bytes = request.id.len() + error.len();
        if !environment.has_room_to_repeat(bytes) {
            let error = client_memory::exhausted();
            outputs.error(session, &request.id, &error, completion);
            return;
        }
        outputs.error_json(session, &request.id, error, completion);
        // No shard reports to a database that is removed.
        if bytes >= COUNTED_BYTES && !parts.is_removed {
            outputs.count_reply(request, &mut self.monitors, environment);
        }
    }

    /// Replies with contents that are written; without a text there was no room for them. Returns
    /// the session, whose later requests waited for that.
    pub(in super::super) fn answer_contents(
        &mut self,
        reply: PendingReply,
        text: Option<&SharedBody>,
        parts: &mut ReplyParts<'_>,
    ) -> SessionId {
        let (outputs, environment) = (&mut *parts.outputs, parts.environment);
        let ended = self.answer_awaited(reply, text, outputs, environment);
        self.end_wait_for_contents(&ended, parts);
        ended.request.session
    }

    /// A request for a monitor has waited for contents that are written now: refuses it if there
    /// was no room for them.
    fn end_wait_for_contents(&mut self, ended: &AwaitedReply, parts: &mut ReplyParts<'_>) {
        let request = &ended.request;
        if ended.is_refused {
            self.fail(request, &client_memory::exhausted(), parts);
        }
        let outboxes = &mut parts.outputs.outboxes;
        outboxes.clear(request.session, Reason::InitialContents);
    }
}
