//! Commits: waiting proposals, committed entries, and how far the database has applied them.
//!
//! ```text
//! propose --> waiting --> in the algorithm's log --> committed --> applied by the database
//! ```
//!
//! Invariant: the algorithm's commit index never falls, and the database never applies past it.
//! Release builds assert both: a member that broke one of them would acknowledge or show data that
//! may be lost. This part must not know the file or the list of members. Of the leader it knows
//! only whether it is this member.

pub(crate) mod catching_up;
pub(crate) mod notice;

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_log::cluster::{Eid, Index, Term};

use super::context::Context;
use crate::database::{Committed, Proposal};
use crate::entry::EntryBody;
use crate::raft_node::LogEntry;
use catching_up::CatchingUp;
use notice::CommitNotice;

/// Tracks proposals and commits.
#[derive(Debug)]
pub(crate) struct Commits {
    /// Proposals that the algorithm has not accepted yet, in order.
    waiting: VecDeque<Proposal>,
    /// The election timer of a proposed entry that is not committed yet, ms.
    proposed_timer_ms: Option<u64>,
    /// The last entry handed to the database.
    last: Index,
    /// The id of the last entry with data that was handed to the database.
    last_eid: Eid,
    /// The last entry that the database has applied.
    applied: Index,
    pub(crate) notice: CommitNotice,
    pub(crate) catching_up: CatchingUp,
}

impl Commits {
    /// Everything up to `applied` is in the database. `is_new`: the server's file has no entry yet.
    pub(crate) fn new(applied: Index, last_eid: Eid, is_new: bool) -> Commits {
        Commits {
            waiting: VecDeque::new(),
            proposed_timer_ms: None,
            last: applied,
            last_eid,
            applied,
            notice: CommitNotice::new(),
            catching_up: CatchingUp::new(is_new),
        }
    }

    /// Queues proposals of the database that leads.
    pub(crate) fn enqueue(&mut self, proposals: Vec<Proposal>) {
        self.waiting.extend(proposals);
    }

    /// Proposes everything that is waiting, in one step. If the algorithm does not accept it now,
    /// it keeps waiting.
    pub(crate) fn propose(&mut self, cx: &mut Context) {
        if self.waiting.is_empty() {
            return;
        }
        let body = |proposal: &Proposal| {
            let result = proposal.result.clone().unwrap_or_default();
            EntryBody::commit(proposal.eid, &proposal.data).with_result(result)
        };
        if cx.node.propose(self.waiting.iter().map(body).collect()) {
            self.waiting.clear();
        }
    }

    /// Proposes another election timer. Returns whether the algorithm accepts it now.
    pub(crate) fn propose_timer(&mut self, cx: &mut Context, timer_ms: u64) -> bool {
        let is_accepted = cx.node.propose(vec![EntryBody::election_timer(timer_ms)]);
        if is_accepted {
            self.proposed_timer_ms = Some(timer_ms);
        }
        is_accepted
    }

    /// The election timer of a proposed entry that is not committed yet, ms.
    pub(crate) fn proposed_timer_ms(&self) -> Option<u64> {
        self.proposed_timer_ms
    }

    /// An entry with an election timer has been committed.
    pub(crate) fn forget_proposed_timer(&mut self) {
        self.proposed_timer_ms = None;
    }

    /// This member no longer leads. If necessary, the database proposes again in the next term.
    pub(crate) fn forget_proposals(&mut self) {
        self.waiting.clear();
        self.proposed_timer_ms = None;
    }

    /// Handles a committed entry. Returns the event for the database, if the entry has data.
    /// Entries of `own_term` are the database's own proposals, which it has already applied.
    pub(crate) fn commit(&mut self, entry: &LogEntry, own_term: Option<Term>) -> Option<Committed> {
        // A gap or a repetition would make this member's rows differ from the others'.
        assert!(
            entry.index == self.last.next(),
            "entry {} is committed after entry {}",
            entry.index,
            self.last
        );
        self.last = entry.index;
        let (eid, data) = entry.body.as_commit()?;
        self.last_eid = eid;
        let index = entry.index;
        if own_term == Some(entry.term) {
            return Some(Committed::Own { index, eid });
        }
        let result: &Bytes = entry.body.result();
        Some(Committed::Data {
            index,
            eid,
            data,
            result: (!result.is_empty()).then(|| result.clone()),
        })
    }

    /// A snapshot has replaced all entries up to this one. The database has not applied it yet.
    pub(crate) fn restart(&mut self, index: Index, eid: Eid) {
        assert!(
            index >= self.last,
            "a snapshot through {index} takes back entry {}",
            self.last
        );
        self.last = index;
        self.last_eid = eid;
    }

    /// The database has applied everything up to this entry.
    pub(crate) fn apply(&mut self, index: Index) {
        assert!(
            index <= self.last,
            "the database has applied {index}, but was told {} only",
            self.last
        );
        self.applied = self.applied.max(index);
    }

    /// The last entry that the database has applied.
    pub(crate) fn applied(&self) -> Index {
        self.applied
    }

    /// The id of the last entry with data that was handed to the database.
    pub(crate) fn last_eid(&self) -> Eid {
        self.last_eid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::context::fixture;
    use corvid_data::Uuid;

    fn commits() -> Commits {
        Commits::new(Index(4), Eid(Uuid::ZERO), false)
    }

    fn entry(index: u64, term: u64, number: u8) -> LogEntry {
        LogEntry {
            term: Term(term),
            index: Index(index),
            body: EntryBody::commit(Eid(Uuid([number; 16])), b"[null,{}]"),
        }
    }

    #[test]
    fn entries_of_the_leadership_that_the_database_knows_of_are_its_own() {
        let mut commits = commits();
        let (own, other) = (entry(5, 3, 1), entry(6, 2, 2));
        let committed = commits.commit(&own, Some(Term(3)));
        assert!(matches!(committed, Some(Committed::Own { .. })));
        let committed = commits.commit(&other, Some(Term(3)));
        let is_data = |it: &Committed| matches!(it, Committed::Data { result: None, .. });
        assert!(committed.as_ref().is_some_and(is_data), "{committed:?}");
        assert_eq!(commits.last_eid(), Eid(Uuid([2; 16])));
        commits.apply(Index(6));
        commits.apply(Index(5));
        assert_eq!(commits.applied(), Index(6), "an answer that comes late");
    }

    #[test]
    #[should_panic(expected = "entry 6 is committed after entry 4")]
    fn no_entry_is_left_out() {
        commits().commit(&entry(6, 3, 1), None);
    }

    #[test]
    #[should_panic(expected = "the database has applied 5, but was told 4 only")]
    fn nothing_is_applied_that_is_not_committed() {
        commits().apply(Index(5));
    }

    #[test]
    fn proposals_wait_until_the_member_leads() {
        let (mut commits, mut cx) = (commits(), fixture::follower());
        let proposal = Proposal {
            eid: Eid(Uuid([1; 16])),
            data: Bytes::from_static(b"[null,{}]"),
            result: None,
        };
        commits.enqueue(vec![proposal]);
        commits.propose(&mut cx);
        assert_eq!(commits.waiting.len(), 1);
        let mut cx = fixture::leader();
        let before = cx.node.last_index();
        commits.propose(&mut cx);
        assert!(commits.waiting.is_empty());
        assert_eq!(cx.node.last_index(), before.next());
    }
}
