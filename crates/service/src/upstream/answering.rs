//! The order of replies and of execution within one session, for requests that depend on another
//! server.
//!
//! Outcomes become known in any order: by entries, by messages of the leader, by the end of doubt.
//! Invariants: the replies of a session leave in the order of its requests, except those of
//! requests that blocked. A request that is executed here is executed when the earlier ones of its
//! session are answered, so it reads what they wrote; later ones are not forwarded before it is
//! executed. A request of a session that is gone is not executed.
//!
//! A leader executes the transactions of a member in their order. So when the entry of one is
//! applied, the earlier ones of its session that have no entry changed nothing. If the leader's
//! message about them is late or lost, they are executed here, on the state before that entry. Only
//! if one of them would change something on this state, because of a commit of another session in
//! between, its outcome is awaited.

use corvid_log::cluster::Eid;
use corvid_monitor::SessionId;

use super::Parts;
use super::forwarding::Forwarding;
use super::in_flight::Number;
use super::request_stage::{Entry, Stage, Turn};
use super::steps::{Action, Reply, Steps, Task};
use crate::message::{DatabaseMethod, Request, ToDatabase};
use crate::replies::{Answer, Outputs, Reason};

/// Whether the reply to an earlier request of the session waits for initial contents.
fn awaits_contents(outputs: &Outputs, session: SessionId) -> bool {
    outputs
        .outboxes
        .is_blocked_by(session, Reason::InitialContents)
}

impl Forwarding {
    /// The outcome of a request that was taken is known: answers it now, or when the earlier
    /// requests of its session are answered.
    pub(crate) fn finish(
        &mut self,
        entry: Entry,
        answer: Answer,
        has_changed: bool,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        let (session, turn) = (entry.request.session, entry.turn());
        if entry.is_withdrawn() {
            self.forget(turn, parts);
        } else if entry.request.blocked
            || (self.in_flight.is_first(session, entry.number)
                && !awaits_contents(parts.outputs, session))
        {
            steps.push(Action::Answer(Reply {
                request: entry.request,
                answer,
                has_changed,
                turn: Some(turn),
            }));
        } else {
            let reply = answer;
            self.put_back(entry, Stage::Answered { reply, has_changed });
        }
    }

    /// Keeps the reply to a request that was not forwarded, if earlier ones of its session are in
    /// flight. Otherwise returns both.
    pub(crate) fn answer_in_order(
        &mut self,
        request: Box<Request>,
        reply: Answer,
        outputs: &mut Outputs,
    ) -> Option<(Box<Request>, Answer)> {
        let session = request.session;
        // A leader executes a request when the earlier ones of its session are answered.
        let comes_after_others =
            self.follows() && !request.blocked && outputs.outboxes.has_forwards(session);
        if !comes_after_others {
            return Some((request, reply));
        }
        let has_changed = false;
        self.in_flight
            .push(request, Stage::Answered { reply, has_changed });
        outputs.outboxes.begin_forward(session);
        None
    }

    /// Keeps a request in flight that was executed and is undone; the later requests of its session
    /// wait in its outbox. One of a session that is gone is dropped.
    pub(crate) fn keep(&mut self, request: Box<Request>, stage: Stage, outputs: &mut Outputs) {
        if request.info.is_closed() {
            outputs.end_request(&request);
            return;
        }
        if !request.blocked {
            outputs.outboxes.begin_forward(request.session);
            outputs.outboxes.block(request.session, Reason::Cluster);
        }
        self.in_flight.push(request, stage);
    }

    /// Puts a request that was taken into its place again.
    pub(crate) fn put_back(&mut self, entry: Entry, stage: Stage) {
        let session = entry.request.session;
        self.in_flight.put_back(entry, stage);
        self.in_flight.set_due(session);
    }

    /// A request that was taken is no longer in flight.
    pub(crate) fn forget(&mut self, turn: Turn, parts: &mut Parts<'_>) {
        self.in_flight.forget(turn.session, turn.number);
        self.end_forward(turn.session, turn.was_blocked, parts);
    }

    /// A request is no longer in flight: the inputs that its session has sent meanwhile may
    /// continue.
    pub(crate) fn end_forward(
        &mut self,
        session: SessionId,
        was_blocked: bool,
        parts: &mut Parts<'_>,
    ) {
        if was_blocked {
            return;
        }
        let outboxes = &mut parts.outputs.outboxes;
        outboxes.end_forward(session);
        self.in_flight.set_due(session);
        parts
            .barrier_queue
            .push_first(outboxes.take_unblocked(session));
    }

    /// Continues the sessions whose first requests in flight may have become ready. While a
    /// conversion waits, they wait for its end, as all inputs do: its entry must be the only one
    /// under way.
    pub(super) fn advance_due(&mut self, steps: &mut Steps, parts: &Parts<'_>) {
        if parts.is_converting {
            return;
        }
        if let Some(session) = self.in_flight.take_due() {
            steps.plan(Task::AdvanceSession(session));
            steps.plan(Task::Advance);
        }
    }

    /// Continues a session: first the request that came before all those in flight.
    pub(super) fn advance_session(
        &mut self,
        session: SessionId,
        steps: &mut Steps,
        parts: &Parts<'_>,
    ) {
        let outboxes = &parts.outputs.outboxes;
        if !outboxes.is_blocked_except_by_cluster(session)
            && let Some(request) = self.in_flight.take_anew(session)
        {
            steps.push(Action::Execute(request));
        }
        steps.plan(Task::AdvanceFirst(session));
    }

    /// Answers or executes the first request of a session, if it is ready; then the next one. Then
    /// forwards those that may follow.
    pub(super) fn advance_first(
        &mut self,
        session: SessionId,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        if self.begin_first(session, steps, parts) {
            steps.plan(Task::AdvanceFirst(session));
            return;
        }
        while let Some(number) = self.in_flight.next_waiting(session) {
            if !self.send_forward(number, steps, parts) {
                return;
            }
        }
    }

    /// Answers or executes the first request of a session, if it is ready. True if the next one may
    /// be the first then.
    fn begin_first(
        &mut self,
        session: SessionId,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) -> bool {
        let Some((first, stage)) = self.in_flight.first(session) else {
            return false;
        };
        let number = first.number;
        let method = first.request.method;
        match stage {
            Stage::Answered { .. } if !awaits_contents(parts.outputs, session) => {
                if let Some((entry, Stage::Answered { reply, has_changed })) =
                    self.in_flight.take(number)
                {
                    self.finish(entry, reply, has_changed, steps, parts);
                }
                true
            }
            Stage::Local => {
                let outboxes = &mut parts.outputs.outboxes;
                if outboxes.is_blocked_except_by_cluster(session) {
                    return false;
                }
                if method.is_about_monitors() && outboxes.changes_monitors(session) {
                    outboxes.block(session, Reason::MonitorChange);
                    return false;
                }
                self.execute_first(number, steps, parts)
            }
            _ => false,
        }
    }

    /// Executes the first request of a session, which no leader has.
    fn execute_first(&mut self, number: Number, steps: &mut Steps, parts: &mut Parts<'_>) -> bool {
        let Some((entry, _)) = self.in_flight.take(number) else {
            return false;
        };
        if self.follows() && entry.request.method == DatabaseMethod::Transact {
            steps.push(Action::TryHere {
                entry,
                otherwise: Stage::Waiting,
                before: None,
            });
            return true;
        }
        let turn = Turn {
            was_blocked: false,
            ..entry.turn()
        };
        let request = entry.request;
        if request.info.is_closed() {
            parts.outputs.end_request(&request);
        } else if request.method == DatabaseMethod::Convert {
            // It waits until nothing is pending, before the later requests of its session.
            let outboxes = &mut parts.outputs.outboxes;
            outboxes.put_back(ToDatabase::Request(request));
        } else {
            steps.push(Action::Execute(request));
        }
        // Its place ends when it is executed: no later request of its session is forwarded before.
        steps.plan(Task::Forget(turn));
        true
    }

    /// A transaction that was tried here has ended, and its place with it. If it came before a
    /// request whose entry is about to be applied, the next one is tried.
    pub(super) fn end_trial(
        &mut self,
        turn: Turn,
        before: Option<Number>,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        self.forget(turn, parts);
        if let Some(number) = before {
            plan_answers_before(turn.session, number, steps);
        }
    }

    /// The entry with this id is about to be applied: the earlier requests of its session changed
    /// nothing, and are answered.
    pub(super) fn answer_before_entry(&self, eid: Eid, steps: &mut Steps) {
        if let Some((session, number)) = self.in_flight.has_earlier(eid) {
            plan_answers_before(session, number, steps);
        }
    }

    /// Tries the first request of a session here, if it comes before that one and nothing is known
    /// of it.
    pub(super) fn answer_before(&mut self, session: SessionId, number: Number, steps: &mut Steps) {
        let Some((first, stage)) = self.in_flight.first(session) else {
            return;
        };
        // A transaction with an id is judged by the leader alone: it may be a copy.
        let is_unknown = matches!(stage, Stage::Forwarded { result: None, .. })
            && !first.is_withdrawn()
            && first.request.once.is_none();
        let first = first.number;
        if first >= number || !is_unknown {
            return;
        }
        if let Some((entry, otherwise)) = self.in_flight.take(first) {
            steps.push(Action::TryHere {
                entry,
                otherwise,
                before: Some(number),
            });
        }
    }

    /// Answers the next request that has seen this entry, which is committed.
    pub(super) fn finish_seen(&mut self, eid: Eid, steps: &mut Steps, parts: &mut Parts<'_>) {
        if let Some((entry, reply)) = self.in_flight.take_seen(eid) {
            self.finish(entry, reply, false, steps, parts);
            steps.plan(Task::FinishSeen(eid));
        }
    }
}

fn plan_answers_before(session: SessionId, number: Number, steps: &mut Steps) {
    steps.plan(Task::AdvanceSession(session));
    steps.plan(Task::AnswerBefore(session, number));
}
