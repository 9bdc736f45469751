//! The order of replies and of execution within one session, for requests that depend on the rest of the cluster.
//!
//! Outcomes become known in any order: by entries, by messages of the leader, by the end of doubt. Invariants: the replies of a session leave
//! in the order of its requests, except those of requests that blocked. A request that is executed here is executed when the earlier ones of
//! its session are answered, so it reads what they wrote; later ones are not forwarded before it is executed. A request of a session that is
//! gone is not executed.
//!
//! A leader executes the transactions of a member in their order. So when the entry of one is applied, the earlier ones of its session that
//! have no entry changed nothing; where the leader's message is late or lost, they are executed here, on the state before that entry. Only if
//! one of them would change something on this state, because of a commit of another session in between, its outcome is awaited.

use corvid_log::cluster::Eid;
use corvid_monitor::SessionId;

use super::super::replies::{Answer, Outputs, Reason};
use super::steps::{Action, Reply, Task};
use super::{Clustered, Entry, Parts, Stage};
use crate::message::{DatabaseMethod, Request, ToDatabase};
use crate::upstream::{Number, Turn};

/// Whether the reply to an earlier request of the session waits for initial contents.
fn awaits_contents(outputs: &Outputs, session: SessionId) -> bool {
    outputs
        .outboxes
        .is_blocked_by(session, Reason::InitialContents)
}

impl Clustered {
    /// The outcome of a request that was taken is known: answers it now, or when the earlier requests of its session are answered.
    pub(in super::super) fn finish(
        &mut self,
        entry: Entry,
        answer: Answer,
        has_changed: bool,
        parts: &mut Parts<'_>,
    ) {
        let (session, turn) = (entry.request.session, entry.turn());
        if entry.is_withdrawn() {
            self.forget(turn, parts);
        } else if entry.request.blocked
            || (self.in_flight.is_first(session, entry.number)
                && !awaits_contents(parts.outputs, session))
        {
            self.steps.push(Action::Answer(Reply {
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
    pub(in super::super) fn answer_in_order(
        &mut self,
        request: Box<Request>,
        reply: Answer,
        outputs: &mut Outputs,
    ) -> Option<(Box<Request>, Answer)> {
        let session = request.session;
        // A leader executes a request when the earlier ones of its session are answered.
        let is_behind =
            self.follows() && !request.blocked && outputs.outboxes.has_forwards(session);
        if !is_behind {
            return Some((request, reply));
        }
        let has_changed = false;
        self.in_flight
            .push(request, Stage::Answered { reply, has_changed });
        outputs.outboxes.begin_forward(session);
        None
    }

    /// Puts a request that was taken into its place again.
    pub(in super::super) fn put_back(&mut self, entry: Entry, stage: Stage) {
        let session = entry.request.session;
        self.in_flight.put_back(entry, stage);
        self.in_flight.set_due(session);
    }

    /// A request that was taken is not in flight any more.
    pub(in super::super) fn forget(&mut self, turn: Turn, parts: &mut Parts<'_>) {
        self.in_flight.forget(turn.session, turn.number);
        self.end_forward(turn.session, turn.was_blocked, parts);
    }

    /// A request is not in flight any more: what its session has sent meanwhile may continue.
    pub(in super::super) fn end_forward(
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

    /// Continues the sessions whose first requests in flight may have become ready. While a conversion waits, they wait for its end, as all
    /// inputs do: its entry must be the only one under way.
    pub(super) fn advance_due(&mut self, parts: &Parts<'_>) {
        if parts.is_converting() {
            return;
        }
        if let Some(session) = self.in_flight.take_due() {
            self.steps.plan(Task::AdvanceSession(session));
            self.steps.plan(Task::Advance);
        }
    }

    pub(super) fn advance_session(&mut self, session: SessionId, parts: &Parts<'_>) {
        let outboxes = &parts.outputs.outboxes;
        if !outboxes.is_blocked_except_by_cluster(session)
            && let Some(request) = self.in_flight.take_anew(session)
        {
            self.steps.push(Action::Execute(request));
        }
        self.steps.plan(Task::AdvanceFirst(session));
    }

    /// Answers or executes the first request of a session, if it is ready; then the next one. Then
    /// forwards those that may follow.
    pub(super) fn advance_first(&mut self, session: SessionId, parts: &mut Parts<'_>) {
        if self.begin_first(session, parts) {
            self.steps.plan(Task::AdvanceFirst(session));
            return;
        }
        while let Some(number) = self.in_flight.next_waiting(session) {
            if !self.send_forward(number, parts) {
                return;
            }
        }
    }

    /// Answers or executes the first request of a session, if it is ready. True if the next one may
    /// be the first then.
    fn begin_first(&mut self, session: SessionId, parts: &mut Parts<'_>) -> bool {
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
                    self.finish(entry, reply, has_changed, parts);
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
                self.execute_first(number, parts)
            }
            _ => false,
        }
    }

    /// Executes the first request of a session, which no leader has.
    fn execute_first(&mut self, number: Number, parts: &mut Parts<'_>) -> bool {
        let Some((entry, _)) = self.in_flight.take(number) else {
            return false;
        };
        if self.follows() && entry.request.method == DatabaseMethod::Transact {
            self.steps.push(Action::TryHere {
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
            self.steps.push(Action::Execute(request));
        }
        // Its place ends when it is executed: no later request of its session is forwarded before.
        self.steps.plan(Task::Forget(turn));
        true
    }

    /// A transaction that was tried here has ended, and its place with it. If it came before a
    /// request whose entry is about to be applied, the next one is tried.
    pub(in super::super) fn end_trial(
        &mut self,
        turn: Turn,
        before: Option<Number>,
        parts: &mut Parts<'_>,
    ) {
        self.forget(turn, parts);
        if let Some(number) = before {
            self.plan_answers_before(turn.session, number);
        }
    }

    /// The entry with this id is about to be applied: the earlier requests of its session changed nothing, and are answered.
    pub(super) fn answer_before_entry(&mut self, eid: Eid) {
        if let Some((session, number)) = self.in_flight.has_earlier(eid) {
            self.plan_answers_before(session, number);
        }
    }

    fn plan_answers_before(&mut self, session: SessionId, number: Number) {
        self.steps.plan(Task::AdvanceSession(session));
        self.steps.plan(Task::AnswerBefore(session, number));
    }

    /// Tries the first request of a session here, if it comes before that one and nothing is known
    /// of it.
    pub(super) fn answer_before(&mut self, session: SessionId, number: Number) {
        let Some((first, stage)) = self.in_flight.first(session) else {
            return;
        };
        let is_unknown = matches!(stage, Stage::Forwarded { result: None, .. })
            && !first.is_withdrawn()
            && first.request.once.is_none();
        let first = first.number;
        if first >= number || !is_unknown {
            return;
        }
        if let Some((entry, otherwise)) = self.in_flight.take(first) {
            self.steps.push(Action::TryHere {
                entry,
                otherwise,
                before: Some(number),
            });
        }
    }
}
