//! Pending entries: commits and replies between execution and release.
//!
//! Every commit and every reply, of every kind, is an entry, made from the state after the commits
//! before it. It leaves when all of those commits are stored. When a commit cannot be stored, it is
//! undone with everything after it, and the requests of the later entries are executed again. Not
//! entries are commits that a follower or a relay applies, which are released at once, and replies
//! with the outcome from another server, unless entries are before them.
//!
//! Invariant: entries leave in the order of their execution. An entry keeps its request until it
//! leaves.

use bytes::Bytes;
use corvid_consensus::database::ForwardOrigin;
use corvid_log::cluster::{Eid, Sid};
use corvid_log::storage::LogPosition;
use std::collections::VecDeque;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, Uuid, WireError};
use corvid_engine::LongResult;
use corvid_monitor::{ConditionChange, SessionId};

use super::Joining;
use crate::audit::Action;
use crate::barrier::{Activity, UnderWay};
use crate::client_memory::Charge;
use crate::message::{Control, Event, Request};

/// Bytes of pending replies; beyond that no request is executed, because its reply would be pending
/// too.
const BYTES_MAX: usize = 64 << 20;

/// An entry of the queue.
pub(crate) struct Pending {
    /// The commit, if it is one.
    pub(crate) commit: Option<Commit>,
    /// When it was executed, the `_date` of its record; ms since the Unix epoch.
    pub(crate) date_ms: i64,
    /// The entry of the audit trail about a refusal.
    pub(crate) refused: Option<Box<Action>>,
    /// The reply.
    pub(crate) answer: Answer,
    /// The origin of the entry, kept whole, so that it can be executed again.
    pub(crate) origin: Origin,
}

/// The changes of an entry.
pub(crate) struct Commit {
    /// Its position in the log; `None`: there is nothing to record.
    pub(crate) position: Option<LogPosition>,
    /// Length of its record.
    pub(crate) record_bytes: usize,
    /// Its id, fixed when it was executed.
    pub(crate) txn: Uuid,
    /// The changes.
    pub(crate) delta: Arc<Delta>,
}

/// The reply of an entry.
pub(crate) enum Answer {
    /// The `result` as JSON.
    Result(Vec<u8>),
    /// The `result`, whose deferred selections are written when it may leave.
    Long(Box<LongResult>, StdArc<Charge>),
    /// The `error`.
    Error(Box<WireError>),
    /// The `error` as JSON, from another member of the cluster.
    Refused(Bytes),
    /// The reply to a request whose outcome is certain, and whether that is a commit: it waits for
    /// earlier replies and for no record.
    Certain(Box<Answer>, bool),
    /// The bare `"canceled"`.
    Canceled,
    /// A monitor has joined.
    Joined(Box<Joining>),
    /// A change of a monitor's conditions, which takes effect when the entry leaves.
    ConditionChanged(Box<ConditionChange>),
    /// The end of a monitor, which takes effect when the entry leaves.
    MonitorCanceled,
    /// An event.
    Event(Box<Event>),
    /// A forwarded transaction whose `wait` is not satisfied.
    Blocked,
    /// No reply.
    Nothing,
}

/// The origin of an entry.
pub(crate) enum Origin {
    /// A client.
    Client(Box<Request>),
    /// A client's `cancel` of the request with this id.
    Cancel(SessionId, Box<[u8]>),
    /// The server itself, with the `params` text.
    Server(Vec<u8>),
    /// The server itself, with a control message that changes nothing.
    Control(Control),
    /// The source of a backup.
    Source,
    /// Another member of the cluster: the leader, if it is known.
    Member(Option<Sid>),
    /// A transaction that another member of the cluster has forwarded.
    Forwarded(Forwarded),
}

/// A transaction that another member of the cluster forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forwarded {
    pub(crate) origin: ForwardOrigin,
    pub(crate) id: Eid,
    /// The id that its client has given it, and may send it again with.
    pub(crate) once: Option<Uuid>,
}

impl Origin {
    /// The id of a transaction that its client may send again.
    pub(crate) fn once_id(&self) -> Option<Uuid> {
        match self {
            Origin::Client(request) => Some(request.once?.id),
            Origin::Forwarded(forwarded) => forwarded.once,
            _ => None,
        }
    }
}

/// The queue of pending entries.
#[derive(Default)]
pub(crate) struct PendingQueue {
    entries: VecDeque<Pending>,
    /// The length of their replies.
    bytes: usize,
    /// The position of the last commit that was added.
    last: Option<LogPosition>,
}

impl From<Vec<u8>> for Answer {
    fn from(result: Vec<u8>) -> Answer {
        Answer::Result(result)
    }
}

impl Answer {
    /// Bytes that this reply keeps in memory; a long result has none yet.
    fn len(&self) -> usize {
        match self {
            Answer::Result(result) => result.len(),
            Answer::ConditionChanged(change) => change.len(),
            Answer::Joined(joining) => joining.len(),
            Answer::Error(error) => error.len(),
            Answer::Refused(error) => error.len(),
            Answer::Certain(reply, _) => reply.len(),
            _ => 0,
        }
    }

    /// Whether the session's monitors change when the entry leaves.
    pub(crate) fn changes_monitors(&self) -> bool {
        matches!(
            self,
            Answer::Joined(_) | Answer::ConditionChanged(_) | Answer::MonitorCanceled
        )
    }
}

impl Pending {
    /// An entry that has changed nothing.
    pub(crate) fn answer(answer: Answer, origin: Origin) -> Pending {
        Pending {
            commit: None,
            date_ms: 0,
            refused: None,
            answer,
            origin,
        }
    }

    fn position(&self) -> Option<LogPosition> {
        self.commit.as_ref()?.position
    }

    /// Whether its own record is among those up to `last`.
    pub(crate) fn is_recorded_by(&self, last: LogPosition) -> bool {
        self.position().is_some_and(|position| position <= last)
    }
}

impl PendingQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Reports what is pending.
    pub(crate) fn report_activity(&self, activity: &mut Activity) {
        activity.report(UnderWay::PendingReplies, !self.is_empty());
        activity.report(UnderWay::FullReplies, self.is_full());
    }

    /// Whether so many bytes are pending that no more replies should be made.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX
    }

    /// Adds an entry after all others.
    pub(crate) fn push(&mut self, entry: Pending) {
        if let Some(position) = entry.position() {
            // A stored position releases everything before it, so none may come late.
            assert!(self.last < Some(position), "positions only grow");
            self.last = Some(position);
        }
        self.bytes += entry.answer.len();
        self.entries.push_back(entry);
    }

    /// Adds an entry of the audit trail to the last one.
    pub(crate) fn set_refused(&mut self, refused: Option<Box<Action>>) {
        if let Some(last) = self.entries.back_mut() {
            last.refused = refused;
        }
    }

    /// Removes and returns the first entry, if everything up to its own record is stored when the
    /// records up to `stored` are.
    pub(crate) fn pop_stored(&mut self, stored: LogPosition) -> Option<Pending> {
        // Zero is the position before all records. A later one that no entry has had would release
        // replies whose records do not exist yet.
        assert!(
            stored == LogPosition(0) || self.last >= Some(stored),
            "nothing is stored before it is executed"
        );
        let first = self.entries.front()?;
        if first.position().is_some_and(|position| position > stored) {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.answer.len();
        Some(entry)
    }

    /// Removes and returns all entries from the first one on whose record is among those up to
    /// `last`.
    pub(crate) fn take_failed(&mut self, last: LogPosition) -> Vec<Pending> {
        let first = self
            .entries
            .iter()
            .position(|entry| entry.is_recorded_by(last));
        let failed = first.map(|first| self.entries.split_off(first));
        let failed: Vec<Pending> = failed.into_iter().flatten().collect();
        self.bytes -= failed.iter().map(|entry| entry.answer.len()).sum::<usize>();
        // The replies that stay leave next, and nothing that they could have seen is undone.
        assert!(
            self.entries.iter().all(|entry| entry.position().is_none()) || failed.is_empty(),
            "a record before a failed one is stored"
        );
        failed
    }

    /// Removes and returns all entries.
    pub(crate) fn take_all(&mut self) -> Vec<Pending> {
        self.check();
        self.bytes = 0;
        std::mem::take(&mut self.entries).into()
    }

    /// The commits, oldest first.
    pub(crate) fn commits(&self) -> impl DoubleEndedIterator<Item = &Commit> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| entry.commit.as_ref())
    }

    /// Checks the account of bytes and the order of positions. O(entries): for simulations.
    ///
    /// # Panics
    /// The queue contradicts itself.
    pub(crate) fn check(&self) {
        let bytes: usize = self.entries.iter().map(|entry| entry.answer.len()).sum();
        assert_eq!(self.bytes, bytes, "the bytes of replies are their sum");
        let positions = || self.entries.iter().filter_map(Pending::position);
        assert!(
            positions().zip(positions().skip(1)).all(|(a, b)| a < b),
            "entries leave in the order of their positions"
        );
        assert!(
            positions().next_back() <= self.last,
            "the last position is remembered"
        );
    }

    /// The entry with this record.
    pub(crate) fn find_mut(&mut self, position: LogPosition) -> Option<&mut Pending> {
        let mut entries = self.entries.iter_mut();
        entries.find(|entry| entry.position() == Some(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(position: u64) -> Pending {
        let mut entry = Pending::answer(Answer::Result(vec![b'x'; 10]), Origin::Source);
        entry.commit = Some(Commit {
            position: Some(LogPosition(position)),
            record_bytes: 1,
            txn: Uuid::ZERO,
            delta: Arc::new(Delta::default()),
        });
        entry
    }

    #[test]
    fn a_reply_waits_for_the_records_before_it() {
        let mut queue = PendingQueue::default();
        queue.push(commit(1));
        queue.push(Pending::answer(Answer::Nothing, Origin::Source));
        queue.push(commit(2));
        assert!(queue.pop_stored(LogPosition(0)).is_none());
        assert!(queue.pop_stored(LogPosition(1)).is_some());
        let reply = queue.pop_stored(LogPosition(1));
        assert!(reply.is_some_and(|entry| entry.commit.is_none()));
        assert!(queue.pop_stored(LogPosition(1)).is_none());
        assert_eq!((queue.len(), queue.bytes), (1, 10));
    }

    #[test]
    fn a_failed_record_takes_everything_after_it() {
        let mut queue = PendingQueue::default();
        queue.push(Pending::answer(Answer::Nothing, Origin::Source));
        queue.push(commit(1));
        queue.push(Pending::answer(Answer::Nothing, Origin::Source));
        queue.push(commit(2));
        let failed = queue.take_failed(LogPosition(1));
        assert_eq!((failed.len(), queue.len(), queue.bytes), (3, 1, 0));
        assert!(failed[0].is_recorded_by(LogPosition(1)));
        assert!(!failed[2].is_recorded_by(LogPosition(1)), "executed again");
    }

    #[test]
    #[should_panic(expected = "positions only grow")]
    fn a_position_that_comes_late_is_refused() {
        let mut queue = PendingQueue::default();
        queue.push(commit(2));
        queue.push(commit(1));
    }
}
