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

use super::super::replies::{Answer, Origin, Pending, Reason};
use super::super::{DatabaseService, Now};
use super::in_flight::Number;
use super::request_stage::{Entry, Stage};
use crate::message::{Completion, DatabaseMethod, Request, ToDatabase};

impl DatabaseService {
    /// The outcome of a request that was taken is known: answers it now, or when the earlier requests of its session are answered.
    pub(super) fn finish(&mut self, entry: Entry, reply: Answer, has_changed: bool) {
        let (session, number) = (entry.request.session, entry.number);
        if entry.is_withdrawn() {
            self.forget(session, number, entry.request.blocked);
        } else if entry.request.blocked || self.is_next_reply(session, number) {
            let was_blocked = entry.request.blocked;
            self.send_answer(entry.request, reply, has_changed);
            self.forget(session, number, was_blocked);
        } else {
            self.put_back(entry, Stage::Answered { reply, has_changed });
        }
    }

    /// Replies to a request that was not forwarded, behind the earlier ones of its session.
    pub(in super::super) fn answer_in_order(&mut self, request: Box<Request>, reply: Answer) {
        let session = request.session;
        // A leader executes a request when the earlier ones of its session are answered.
        let is_behind = self.model.is_follower()
            && !request.blocked
            && self.outputs.outboxes.has_forwards(session);
        match self.model.in_flight_mut().filter(|_| is_behind) {
            Some(in_flight) => {
                let has_changed = false;
                in_flight.push(request, Stage::Answered { reply, has_changed });
                self.outputs.outboxes.begin_forward(session);
            }
            None => self.answer_when_stored(reply, Origin::Client(request)),
        }
    }

    /// Whether nothing of its session must leave before the reply to this request.
    fn is_next_reply(&self, session: SessionId, number: Number) -> bool {
        let cluster = self.model.cluster();
        cluster.is_some_and(|cluster| cluster.in_flight.is_first(session, number))
            && !self.awaits_contents(session)
    }

    /// Whether the reply to an earlier request of the session waits for initial contents.
    fn awaits_contents(&self, session: SessionId) -> bool {
        let outboxes = &self.outputs.outboxes;
        outboxes.is_blocked_by(session, Reason::InitialContents)
    }

    /// Replies, behind what is pending.
    pub(in super::super) fn send_answer(
        &mut self,
        request: Box<Request>,
        reply: Answer,
        has_changed: bool,
    ) {
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

    /// Ends a request of a closed session.
    pub(in super::super) fn end_request(&mut self, request: &Request) {
        let completion = Completion::of(request);
        self.outputs.complete(request.session, completion);
    }

    /// Puts a request that was taken into its place again.
    pub(super) fn put_back(&mut self, entry: Entry, stage: Stage) {
        let session = entry.request.session;
        if let Some(in_flight) = self.model.in_flight_mut() {
            in_flight.put_back(entry, stage);
            in_flight.set_due(session);
        }
    }

    /// A request that was taken is not in flight any more.
    pub(super) fn forget(&mut self, session: SessionId, number: Number, was_blocked: bool) {
        if let Some(in_flight) = self.model.in_flight_mut() {
            in_flight.forget(session, number);
        }
        self.end_forward(session, was_blocked);
    }

    /// A request is not in flight any more.
    pub(super) fn end_forward(&mut self, session: SessionId, was_blocked: bool) {
        if !was_blocked {
            self.outputs.outboxes.end_forward(session);
            self.resume_if_unblocked(session);
        }
    }

    /// Takes the requests of a session's outbox, if nothing blocks it any more; what it has in flight may continue.
    pub(in super::super) fn take_unblocked(
        &mut self,
        session: SessionId,
    ) -> impl DoubleEndedIterator<Item = ToDatabase> + use<> {
        if let Some(in_flight) = self.model.in_flight_mut() {
            in_flight.set_due(session);
        }
        self.outputs.outboxes.take_unblocked(session).into_iter()
    }

    /// Has a request that waited for initial contents executed anew before the others of its session in flight. Returns it if there are none.
    pub(in super::super) fn keep_anew(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        match self.model.in_flight_mut() {
            Some(in_flight) => in_flight.push_anew(request),
            None => Some(request),
        }
    }

    /// Continues the sessions whose first requests in flight may have become ready. While a conversion waits, they wait for its end, as all
    /// inputs do: its entry must be the only one under way.
    pub(in super::super) fn advance_due(&mut self, now: Now) {
        while !self.conversions.is_waiting(&self.file) {
            let Some(session) = self
                .model
                .in_flight_mut()
                .and_then(super::InFlight::take_due)
            else {
                return;
            };
            self.advance_session(now, session);
        }
    }

    fn advance_session(&mut self, now: Now, session: SessionId) {
        let outboxes = &self.outputs.outboxes;
        if !outboxes.is_blocked_except_by_cluster(session)
            && let Some(request) = self
                .model
                .in_flight_mut()
                .and_then(|it| it.take_anew(session))
        {
            self.execute_request(now, request);
        }
        while self.advance_first(now, session) {}
        while let Some(number) = self
            .model
            .cluster()
            .and_then(|cluster| cluster.in_flight.next_waiting(session))
        {
            if !self.send_forward(now, number) {
                return;
            }
        }
    }

    /// Answers or executes the first request of a session, if it is ready. True if the next one is the first then.
    fn advance_first(&mut self, now: Now, session: SessionId) -> bool {
        let in_flight = self.model.cluster().map(super::Clustered::in_flight);
        let Some((first, stage)) = in_flight.and_then(|in_flight| in_flight.first(session)) else {
            return false;
        };
        let number = first.number;
        let method = first.request.method;
        match stage {
            Stage::Answered { .. } if !self.awaits_contents(session) => {
                let taken = self.model.in_flight_mut().and_then(|it| it.take(number));
                if let Some((entry, Stage::Answered { reply, has_changed })) = taken {
                    self.finish(entry, reply, has_changed);
                }
                true
            }
            Stage::Local => {
                let outboxes = &mut self.outputs.outboxes;
                if outboxes.is_blocked_except_by_cluster(session) {
                    return false;
                }
                if method.is_about_monitors() && outboxes.changes_monitors(session) {
                    outboxes.block(session, Reason::MonitorChange);
                    return false;
                }
                self.execute_first(now, number)
            }
            _ => false,
        }
    }

    /// Executes the first request of a session, which no leader has. False if it waits for a leader after all.
    fn execute_first(&mut self, now: Now, number: Number) -> bool {
        let Some((entry, _)) = self.model.in_flight_mut().and_then(|it| it.take(number)) else {
            return false;
        };
        if self.model.is_follower() && entry.request.method == DatabaseMethod::Transact {
            return self.execute_here(now, entry, Stage::Waiting);
        }
        let session = entry.request.session;
        let request = entry.request;
        if request.info.is_closed() {
            self.end_request(&request);
        } else if request.method == DatabaseMethod::Convert {
            // It waits until nothing is pending, before the later requests of its session.
            let outboxes = &mut self.outputs.outboxes;
            outboxes.put_back(ToDatabase::Request(request));
        } else {
            self.execute_request(now, request);
        }
        self.forget(session, number, false);
        true
    }

    /// Executes a transaction of a follower's session, of which no earlier request is in flight, unless it would change something: then it is
    /// put back in this stage.
    fn execute_here(&mut self, now: Now, entry: Entry, otherwise: Stage) -> bool {
        let request = &entry.request;
        let (session, number) = (request.session, entry.number);
        if request.info.is_closed() {
            self.end_request(&entry.request);
            self.forget(session, number, false);
            return true;
        }
        if self.is_dismissed(&request.info) {
            self.drop_request(&entry.request);
            self.forget(session, number, false);
            return true;
        }
        let mut budget = self
            .environment
            .limit_selections(self.executor.work_budget());
        let Ok(outcome) = self.execute(now, request, &mut budget) else {
            unreachable!("nothing limits it")
        };
        if self.undo_for_leader(request, &outcome) {
            self.put_back(entry, otherwise);
            return false;
        }
        let committed = self.queue_outcome(now, entry.request, outcome);
        debug_assert!(committed.is_none(), "a follower commits nothing");
        self.release();
        self.forget(session, number, false);
        true
    }

    /// The entry with this id is about to be applied: the earlier requests of its session changed nothing, and are answered.
    pub(super) fn answer_before(&mut self, now: Now, eid: Eid) {
        let in_flight = self.model.cluster().map(super::Clustered::in_flight);
        let behind = in_flight.and_then(|in_flight| in_flight.has_earlier(eid));
        let Some((session, number)) = behind else {
            return;
        };
        loop {
            self.advance_session(now, session);
            let in_flight = self.model.cluster().map(super::Clustered::in_flight);
            let Some((first, stage)) = in_flight.and_then(|in_flight| in_flight.first(session))
            else {
                return;
            };
            let (first, is_unknown) = (
                first.number,
                matches!(stage, Stage::Forwarded { result: None, .. })
                    && !first.is_withdrawn()
                    && first.request.once.is_none(),
            );
            if first >= number || !is_unknown {
                return;
            }
            let Some((entry, stage)) = self.model.in_flight_mut().and_then(|it| it.take(first))
            else {
                return;
            };
            if !self.execute_here(now, entry, stage) {
                return;
            }
        }
    }
}
