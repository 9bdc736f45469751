//! The steps that an event of the member, or news of a relay's source, makes necessary.
//!
//! Some of them are the database's ([`Action`]): [`Clustered::next`] returns them one by one, and is
//! told nothing when one is carried out. The others ([`Task`]) belong to this part, and are taken
//! between those. Invariant: what a step brings about comes before everything that was planned after
//! it. So steps are taken in the order in which plain calls would be made, while no function here
//! calls the database.

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_consensus::database::{Finding, Forward, ForwardOrigin};
use corvid_data::{Arc, Delta};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index, Term};
use corvid_monitor::SessionId;

use super::super::replies::Answer;
use super::applying::Batch;
use super::{Clustered, Entry, Part, Parts, Stage};
use crate::message::{Request, ToDatabase};
use crate::upstream::{Number, SourceChange, Turn};

/// The reply to a request.
pub(in super::super) struct Reply {
    pub(in super::super) request: Box<Request>,
    pub(in super::super) answer: Answer,
    pub(in super::super) has_changed: bool,
    /// Its turn in flight, which ends when it is answered.
    pub(in super::super) turn: Option<Turn>,
}

/// Something that the database is to do.
pub(in super::super) enum Action {
    /// Reply to a request, after what is pending.
    Answer(Reply),
    /// Execute a request of a session.
    Execute(Box<Request>),
    /// Execute a blocked transaction again.
    Retry(Box<Request>),
    /// Execute a transaction of a follower's session, unless it would change something: then it is
    /// put back in this stage. `before`: the request before whose entry it must be answered.
    TryHere {
        entry: Entry,
        otherwise: Stage,
        before: Option<Number>,
    },
    /// Execute requests that another member has forwarded.
    ExecuteForwards(ForwardOrigin, Vec<Forward>),
    /// The oldest commit of this leadership is committed, as this entry.
    ReleaseOwn(Index, Eid),
    /// The conversion that this database has proposed is committed.
    FinishConversion,
    /// Show an applied change to the sessions, then reply to the request that made it.
    Publish {
        eid: Eid,
        delta: Arc<Delta>,
        reply: Option<(Entry, Answer)>,
    },
    /// Retry the blocked transactions that a change affects, and release what is pending.
    RetryAffected(Arc<Delta>),
    /// Serve these contents, which are those after this entry.
    Swap(Box<Database>, Eid),
    /// The contents have another schema now: tell those who must know.
    EndSwap,
    /// The commits before this entry are not known: begin the history with it.
    RestartHistory(Eid),
    /// Undo the commits of this leadership, which is over; the part is this one from now on.
    GiveUpLeadership(Term, Part),
    /// Handle an input that waited for a replacement.
    Handle(ToDatabase),
    /// The database cannot continue, for this reason.
    BreakOff(String),
}

/// Something that this part does next.
pub(super) enum Task {
    /// Continue the sessions whose first requests may have become ready.
    Advance,
    /// Continue this session.
    AdvanceSession(SessionId),
    /// Answer or execute the first request of a session, and those after it that are ready.
    AdvanceFirst(SessionId),
    /// Answer the requests of a session before that one, whose entry is about to be applied.
    AnswerBefore(SessionId, Number),
    /// The same, by the id of the entry.
    AnswerBeforeEntry(Eid),
    /// Answer this request.
    Finish(Entry, Answer),
    /// This request is not in flight any more.
    Forget(Turn),
    /// Forward the requests that may go now.
    ForwardWaiting,
    /// Forward those that had no room, if there is room.
    EndThrottling,
    /// Answer the requests whose outcome is based on entries that are applied.
    FinishDecided,
    /// Answer the requests that have seen the entry with this id.
    FinishSeen(Eid),
    /// Answer the conversions of a relay that have succeeded by this change.
    FinishConverted(Index),
    /// Apply the next one of these entries.
    ApplyNext(Box<Batch>),
    /// Apply this entry, then the rest.
    ApplyData {
        entry: (Index, Eid, Bytes, Option<Bytes>),
        rest: Box<Batch>,
    },
    /// Apply these changes of a relay's source.
    ApplyChanges(Index, std::vec::IntoIter<SourceChange>),
    /// Apply the next one of them, all before it being applied.
    ApplyChange(Index, Box<SourceChange>, std::vec::IntoIter<SourceChange>),
    /// Everything through this entry, which has this term, is applied.
    EndEvent(Index, Term),
    /// Begin to lead in this term.
    Lead(Term),
    /// Execute what is in flight, as the leader.
    ExecuteInFlight,
    /// These contents are those after this entry.
    TakeContents(Box<Database>, Index, Eid),
    /// The snapshot through this entry is installed.
    FinishInstallation(Index, Term, Eid),
    /// The same, when outcomes based on it are told.
    EndInstallation(Index, Term),
    /// The entry with this id is in the snapshot.
    AnswerFound(Eid),
    /// These are not, or nobody knows.
    JudgeOthers(Index, Vec<(Eid, Finding)>),
    /// Everything that was found is judged.
    EndSearch,
}

enum Step {
    Action(Action),
    Task(Task),
}

/// The steps to take, in order.
#[derive(Default)]
pub(super) struct Steps {
    planned: VecDeque<Step>,
    /// Those that the present step has brought about.
    new: VecDeque<Step>,
}

impl Steps {
    /// Adds a step of the database.
    pub(super) fn push(&mut self, action: Action) {
        self.new.push_back(Step::Action(action));
    }

    /// Adds a step of this part.
    pub(super) fn plan(&mut self, task: Task) {
        self.new.push_back(Step::Task(task));
    }

    fn is_empty(&self) -> bool {
        self.planned.is_empty() && self.new.is_empty()
    }

    fn next(&mut self) -> Option<Step> {
        // Costs what is new, however much is planned: there may be a step for each session.
        while let Some(step) = self.new.pop_back() {
            self.planned.push_front(step);
        }
        self.planned.pop_front()
    }
}

impl Clustered {
    /// Plans to continue the sessions that may be able to.
    pub(in super::super) fn advance(&mut self) {
        if self.in_flight.has_due() {
            self.steps.plan(Task::Advance);
        }
    }

    /// Whether there are steps to take.
    pub(in super::super) fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Takes steps up to the next one that is the database's, and returns that.
    pub(in super::super) fn next(&mut self, parts: &mut Parts<'_>) -> Option<Action> {
        loop {
            match self.steps.next()? {
                Step::Action(action) => return Some(action),
                Step::Task(task) => self.carry_out(task, parts),
            }
        }
    }

    fn carry_out(&mut self, task: Task, parts: &mut Parts<'_>) {
        match task {
            Task::Advance => self.advance_due(parts),
            Task::AdvanceSession(session) => self.advance_session(session, parts),
            Task::AdvanceFirst(session) => self.advance_first(session, parts),
            Task::AnswerBefore(session, number) => self.answer_before(session, number),
            Task::AnswerBeforeEntry(eid) => self.answer_before_entry(eid),
            Task::Finish(entry, answer) => self.finish(entry, answer, false, parts),
            Task::Forget(turn) => self.forget(turn, parts),
            Task::ForwardWaiting => self.forward_waiting(parts),
            Task::EndThrottling => {
                if self.in_flight.end_throttling() {
                    self.steps.plan(Task::ForwardWaiting);
                }
            }
            Task::FinishDecided => self.finish_decided(parts),
            Task::FinishSeen(eid) => self.finish_seen(eid, parts),
            Task::FinishConverted(index) => self.finish_converted(index, parts),
            Task::ApplyNext(batch) => self.apply_next(batch, parts),
            Task::ApplyData { entry, rest } => self.apply_data(entry, rest, parts),
            Task::ApplyChanges(through, changes) => self.apply_next_change(through, changes),
            Task::ApplyChange(through, change, rest) => {
                self.apply_change(through, *change, rest, parts);
            }
            Task::EndEvent(through, term) => {
                self.report_applied(through);
                self.end_doubt(term, parts);
            }
            Task::Lead(term) => {
                self.part = Part::Leads(term);
                self.in_flight.begin_term(term);
                self.steps.plan(Task::ExecuteInFlight);
            }
            Task::ExecuteInFlight => self.execute_in_flight(parts),
            Task::TakeContents(database, index, eid) => self.take_contents(database, index, eid),
            Task::FinishInstallation(index, term, eid) => {
                self.finish_installation((index, eid), term, parts);
            }
            Task::EndInstallation(index, term) => self.end_installation(index, term, parts),
            Task::AnswerFound(eid) => self.answer_found(eid, parts),
            Task::JudgeOthers(through, others) => self.judge_others(through, others, parts),
            Task::EndSearch => self.end_search(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use corvid_data::Uuid;

    use super::*;

    fn seen(number: u8) -> Task {
        Task::FinishSeen(Eid(Uuid([number; 16])))
    }

    #[test]
    fn what_a_step_brings_about_comes_before_what_was_planned_after_it() {
        let mut steps = Steps::default();
        let mut order = Vec::new();
        steps.plan(seen(1));
        steps.plan(seen(4));
        while let Some(step) = steps.next() {
            let Step::Task(Task::FinishSeen(Eid(id))) = step else {
                panic!("only these are planned");
            };
            order.push(id.0[0]);
            if id.0[0] == 1 {
                steps.plan(seen(2));
                steps.plan(seen(3));
            }
        }
        assert_eq!(order, [1, 2, 3, 4]);
        assert!(steps.is_empty());
    }
}
