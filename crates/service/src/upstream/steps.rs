//! The steps that an event of the member, or news of a relay's source, makes necessary.
//!
//! An [`Action`] is the database's: it is returned to the database, which reports nothing when it
//! has carried it out. A [`Task`] belongs to the upstream itself, a [`MemberTask`] to the part that
//! only a member of a cluster has. All are taken from one queue. Invariant: what a step brings
//! about comes before everything that was planned after that step. So steps are taken in the order
//! in which plain calls would be made, while no part here calls the database.

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_consensus::database::{Committed, Finding, Forward, ForwardOrigin};
use corvid_data::{Arc, Delta};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index, Term};
use corvid_monitor::SessionId;

use super::in_flight::Number;
use super::request_stage::{Entry, Stage, Turn};
use super::role::Role;
use crate::message::{Request, SourceChange, ToDatabase};
use crate::once::RecordedCommits;
use crate::replies::Answer;

/// The reply to a request.
pub(crate) struct Reply {
    pub(crate) request: Box<Request>,
    pub(crate) answer: Answer,
    pub(crate) has_changed: bool,
    /// Its turn in flight, which ends when it is answered.
    pub(crate) turn: Option<Turn>,
}

/// A step of the database.
pub(crate) enum Action {
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
    /// The oldest commit of this leadership, or the conversion that it has proposed, is committed
    /// as this entry.
    ReleaseOwn(Index, Eid),
    /// Show an applied change to the sessions, then reply to the request that made it.
    Publish {
        eid: Eid,
        delta: Arc<Delta>,
        reply: Option<(Entry, Answer)>,
    },
    /// Retry the blocked transactions that a change affects, and release what is pending.
    RetryAffected(Arc<Delta>),
    /// Ask the leader for the outcomes of the blocked transactions whose commits the installed
    /// snapshot may contain, because it does not name them.
    ForwardBlocked,
    /// Serve these contents, which are those after this entry.
    Swap(Box<Database>, Eid),
    /// The contents have another schema now: tell those who must know.
    EndSwap,
    /// The commits before this entry are not known: begin the history with it.
    RestartHistory(Eid),
    /// Undo the commits of this leadership, which is over; the role is this one from now on.
    GiveUpLeadership(Term, Role),
    /// Handle an input that waited for a replacement.
    Handle(ToDatabase),
    /// The database cannot continue, for this reason.
    BreakOff(String),
}

/// A step of the upstream.
pub(crate) enum Task {
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
    /// This request is no longer in flight.
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
    /// Apply these changes of a relay's source.
    ApplyChanges(Index, std::vec::IntoIter<SourceChange>),
    /// Apply the next one of them; all before it are applied.
    ApplyChange(Index, Box<SourceChange>, std::vec::IntoIter<SourceChange>),
    /// Everything through this entry, which has this term, is applied.
    EndEvent(Index, Term),
    /// An entry of this term is committed: what depends on an earlier term never happened.
    EndDoubt(Term),
    /// These contents are those after this entry.
    TakeContents(Box<Database>, Index, Eid),
    /// The snapshot through this entry is installed, and names these commits.
    FinishInstallation(Index, Term, Eid, Box<RecordedCommits>),
    /// The same, when outcomes based on it are told.
    EndInstallation(Index, Term),
}

/// A step of the part that only a member of a cluster has.
pub(crate) enum MemberTask {
    /// Apply the next one of these entries.
    ApplyNext(Box<EntryBatch>),
    /// Apply this entry, then the rest.
    ApplyData {
        entry: (Index, Eid, Bytes, Option<Bytes>),
        rest: Box<EntryBatch>,
    },
    /// Begin to lead in this term.
    Lead(Term),
    /// Execute what is in flight, as the leader.
    ExecuteInFlight,
    /// The contents are those of a snapshot through this entry: ask about what it may contain.
    AskForSought(Index),
    /// The entry with this id is in the snapshot.
    AnswerFound(Eid),
    /// These are not, or nobody knows.
    JudgeOthers(Index, Vec<(Eid, Finding)>),
    /// Everything that was found is judged.
    EndSearch,
}

/// Committed entries that are being applied.
pub(crate) struct EntryBatch {
    pub(crate) through: Index,
    pub(crate) term: Term,
    /// The last entry that was applied before them.
    pub(crate) before: Index,
    pub(crate) entries: std::vec::IntoIter<Committed>,
}

/// One step.
pub(crate) enum Step {
    Action(Action),
    Task(Task),
    Member(MemberTask),
}

/// The steps to take, in order.
#[derive(Default)]
pub(crate) struct Steps {
    planned: VecDeque<Step>,
    /// Those that the present step has brought about.
    new: VecDeque<Step>,
}

impl Steps {
    /// Adds a step of the database.
    pub(crate) fn push(&mut self, action: Action) {
        self.new.push_back(Step::Action(action));
    }

    /// Adds a step of the upstream.
    pub(crate) fn plan(&mut self, task: Task) {
        self.new.push_back(Step::Task(task));
    }

    /// Adds a step of a member.
    pub(crate) fn plan_for_member(&mut self, task: MemberTask) {
        self.new.push_back(Step::Member(task));
    }

    /// Whether there are steps to take.
    pub(super) fn is_empty(&self) -> bool {
        self.planned.is_empty() && self.new.is_empty()
    }

    /// Takes the next step.
    pub(super) fn next(&mut self) -> Option<Step> {
        // Costs what is new, however much is planned: there may be a step for each session.
        while let Some(step) = self.new.pop_back() {
            self.planned.push_front(step);
        }
        self.planned.pop_front()
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
