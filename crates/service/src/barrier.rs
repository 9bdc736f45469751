//! Barriers: which inputs wait, for what, and whether anything is under way.
//!
//! An input that replaces the database or its file waits until nothing is pending, and every input
//! after it waits too. Each part reports its own activity ([`Activity`]). A [`Question`],
//! such as whether all sessions are idle, is answered from these reports: [`UnderWay::prevents`]
//! says which activity makes the answer "no". A part reports by destructuring itself, so a new
//! field, or a new kind of activity, does not compile until its meaning for barriers is decided.
//!
//! Invariant: inputs at the barrier are executed in the order in which they came, before all later
//! ones.

use std::collections::VecDeque;

use corvid_consensus::database::{ForwardMethod, MemberEvent};
use corvid_monitor::SessionId;

use crate::message::{DatabaseMethod, ToDatabase};

/// The condition that an input waits for, with every input after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// A conversion starts or swaps its file in.
    Conversion,
    /// A new file is being put in place.
    Swap,
    /// Pending replies have so many bytes that no more may be made.
    Room,
    /// Everything pending is stored.
    Stored,
}

/// Something under way in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum UnderWay {
    /// Transactions wait for rows.
    BlockedTransactions,
    /// Replies wait for records.
    PendingReplies,
    /// They have so many bytes that no more may be made.
    FullReplies,
    /// Inputs wait at the barrier.
    QueuedInputs,
    /// Sessions are blocked, or have unread replies.
    Outboxes,
    /// Sessions monitor something, or wait for initial contents.
    Subscriptions,
    /// Columns that configure remotes are watched.
    WatchedColumns,
    /// A schema change.
    Conversion,
    /// A new file is being written, or wanted.
    NewFile,
    /// A compaction for growth waits at the barrier.
    QueuedCompaction,
    /// Requests depend on the rest of the cluster.
    InFlight,
    /// Some of those wait to be executed here.
    LocalRequests,
    /// Contents are being replaced by those of the cluster.
    Replacement,
    /// The database is removed.
    Removed,
}

/// A question about everything that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Has no session left anything behind?
    IsIdle,
    /// Is the next commit short?
    IsShort,
    /// May a transaction be executed now?
    MayExecute,
    /// Is an event of the member short?
    MayExecuteForOthers,
    /// May growth alone have the file compacted?
    MayCompact,
}

const ALL: [UnderWay; 14] = [
    UnderWay::BlockedTransactions,
    UnderWay::PendingReplies,
    UnderWay::FullReplies,
    UnderWay::QueuedInputs,
    UnderWay::Outboxes,
    UnderWay::Subscriptions,
    UnderWay::WatchedColumns,
    UnderWay::Conversion,
    UnderWay::NewFile,
    UnderWay::QueuedCompaction,
    UnderWay::InFlight,
    UnderWay::LocalRequests,
    UnderWay::Replacement,
    UnderWay::Removed,
];

const _: () = {
    let mut next = 0;
    while next < ALL.len() {
        assert!(
            ALL[next] as usize == next,
            "a state has the bit of its place"
        );
        next += 1;
    }
};

impl UnderWay {
    /// Whether it answers a question with no.
    const fn prevents(self, question: Question) -> bool {
        use Question::{IsIdle, IsShort, MayCompact, MayExecute, MayExecuteForOthers};
        match self {
            // A commit retries them.
            UnderWay::BlockedTransactions => matches!(question, IsIdle | IsShort),
            UnderWay::PendingReplies | UnderWay::Outboxes | UnderWay::Subscriptions => {
                matches!(question, IsIdle)
            }
            UnderWay::FullReplies => matches!(question, IsShort | MayExecute),
            UnderWay::QueuedInputs => matches!(question, IsIdle | IsShort | MayExecute),
            // A commit has the columns read.
            UnderWay::WatchedColumns => matches!(question, IsShort),
            UnderWay::Conversion => {
                matches!(question, IsIdle | IsShort | MayExecute | MayCompact)
            }
            UnderWay::NewFile => matches!(question, IsIdle | IsShort | MayCompact),
            UnderWay::QueuedCompaction => matches!(question, MayCompact),
            UnderWay::InFlight => matches!(question, IsIdle),
            // An event may let them be executed here.
            UnderWay::LocalRequests => matches!(question, MayExecuteForOthers),
            UnderWay::Replacement => matches!(question, IsIdle | MayExecuteForOthers),
            UnderWay::Removed => matches!(question, IsShort | MayExecute | MayCompact),
        }
    }
}

impl Question {
    /// The bits of everything that answers it with no.
    const fn mask(self) -> u16 {
        let mut mask = 0;
        let mut next = 0;
        while next < ALL.len() {
            if ALL[next].prevents(self) {
                mask |= 1 << ALL[next] as u8;
            }
            next += 1;
        }
        mask
    }
}

/// Everything that is under way, as the parts report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity(u16);

impl Activity {
    /// Reports whether something is under way.
    pub(crate) fn report(&mut self, something: UnderWay, is_under_way: bool) {
        self.0 |= u16::from(is_under_way) << something as u8;
    }

    /// Whether nothing that is under way answers the question with no.
    pub(crate) fn allows(self, question: Question) -> bool {
        self.0 & question.mask() == 0
    }
}

/// Inputs at the barrier: the first one waits for it, the others come after the first.
#[derive(Default)]
pub(crate) struct BarrierQueue(VecDeque<ToDatabase>);

impl BarrierQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an input after all others.
    pub(crate) fn push(&mut self, input: ToDatabase) {
        self.0.push_back(input);
    }

    /// Adds inputs before all others, in their order.
    pub(crate) fn push_first<I>(&mut self, inputs: I)
    where
        I: IntoIterator<Item = ToDatabase, IntoIter: DoubleEndedIterator>,
    {
        for input in inputs.into_iter().rev() {
            self.0.push_front(input);
        }
    }

    /// Takes the first input.
    pub(crate) fn pop(&mut self) -> Option<ToDatabase> {
        self.0.pop_front()
    }

    /// Drops the inputs that are no longer wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&ToDatabase) -> bool) {
        self.0.retain(is_wanted);
    }
}

/// Whether an input of a closed session is executed all the same: a transaction that arrived before
/// the end is, and so is what is not of that session.
pub(crate) fn outlives(input: &ToDatabase, closed: SessionId) -> bool {
    match input {
        ToDatabase::Request(request) => {
            request.session != closed || request.method == DatabaseMethod::Transact
        }
        ToDatabase::Fence(fenced, _) => *fenced != closed,
        _ => true,
    }
}

/// Whether an input replaces the database, its file, its history or its role, or begins to.
pub(crate) fn replaces_something(input: &ToDatabase) -> bool {
    match input {
        ToDatabase::Request(request) => request.method == DatabaseMethod::Convert,
        ToDatabase::Member(event) => has_conversion(event),
        ToDatabase::Control(control) => control.replaces_something(),
        _ => false,
    }
}

/// Whether another member asks for transactions to be executed.
pub(crate) fn is_execution(input: &ToDatabase) -> bool {
    matches!(input, ToDatabase::Member(MemberEvent::Execute { .. }))
}

/// Whether an event of the member asks for a conversion.
pub(crate) fn has_conversion(event: &MemberEvent) -> bool {
    match event {
        MemberEvent::Execute { forwards, .. } => {
            let mut forwards = forwards.iter();
            forwards.any(|forward| forward.method == ForwardMethod::Convert)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(something: UnderWay) -> Activity {
        let mut activity = Activity::default();
        activity.report(something, true);
        activity
    }

    #[test]
    fn each_state_has_a_bit_of_its_own_and_prevents_something() {
        let questions = [
            Question::IsIdle,
            Question::IsShort,
            Question::MayExecute,
            Question::MayExecuteForOthers,
            Question::MayCompact,
        ];
        let mut seen = 0;
        for something in ALL {
            let activity = with(something);
            assert_eq!(activity.0.count_ones(), 1);
            assert_eq!(seen & activity.0, 0, "{something:?}");
            seen |= activity.0;
            let mut prevented = questions.iter().filter(|it| something.prevents(**it));
            assert!(prevented.next().is_some(), "{something:?}");
            for question in questions {
                assert_eq!(activity.allows(question), !something.prevents(question));
            }
        }
        for question in questions {
            assert!(Activity::default().allows(question));
        }
    }

    #[test]
    fn a_state_that_is_not_under_way_prevents_nothing() {
        let mut activity = with(UnderWay::PendingReplies);
        activity.report(UnderWay::Conversion, false);
        assert!(activity.allows(Question::MayExecute) && !activity.allows(Question::IsIdle));
    }

    #[test]
    fn inputs_that_are_put_first_keep_their_order() {
        let mut queue = BarrierQueue::default();
        queue.push(ToDatabase::Drained(SessionId(3)));
        let first = [1, 2].map(|number| ToDatabase::Drained(SessionId(number)));
        queue.push_first(first);
        let order = std::iter::from_fn(|| queue.pop()).map(|input| match input {
            ToDatabase::Drained(session) => session.0,
            _ => unreachable!("only these were queued"),
        });
        assert_eq!(order.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
