//! Appends and snapshots that end before the commit index.
//!
//! The library answers them with its commit index: it assumes that the leader's log equals its own
//! up to there, and has compared no term. The leader would then count entries that it never sent.
//! So the answer becomes a rejection whose hint is the commit index. That hint is past the rejected
//! entry, which never happens in the library's own rejections. The leader continues from there: its
//! next append names the entry at the commit index, which [`crate::guard`] compares.
//!
//! ```text
//! leader                                     member, committed through 40
//!   |--- Append(prev 20, entries 21..30) --->|  these are its own; nothing is said about 31..40
//!   |<-- AppendReply(rejected 20, hint 40) --|
//!   |--- Append(prev 40, term 7) ----------->|  compared: the member's entry 40 is of term 7
//!   |<-- AppendReply(40) --------------------|  counts
//! ```
//!
//! Invariant: a member never acknowledges an entry that the answered message did not contain.

use corvid_log::cluster::{Index, Term};
use raft::eraftpb::{Message, MessageType};
use raft::{INVALID_INDEX, ProgressState};

use super::RaftNode;
use crate::guard::CommittedLog;
use crate::message::{PeerMessage, Rejection};

/// The term and hint of a rejection whose hint is past the rejected entry.
pub(super) fn hint(message: &PeerMessage) -> Option<(Term, Index)> {
    match message {
        PeerMessage::AppendReply {
            term,
            index,
            rejection: Some(Rejection { hint, .. }),
            ..
        } if hint > index => Some((*term, *hint)),
        _ => None,
    }
}

/// The entry before those of an append, and the last entry of an append or a snapshot.
pub(super) fn place(message: &Message) -> Option<(u64, u64)> {
    match message.get_msg_type() {
        MessageType::MsgAppend => {
            let count = message.get_entries().len() as u64;
            Some((message.index, message.index + count))
        }
        MessageType::MsgSnapshot => {
            let index = message.get_snapshot().get_metadata().index;
            Some((index, index))
        }
        _ => None,
    }
}

/// Turns acknowledgements of entries past the message's last one into rejections with a hint.
pub(super) fn ask_back(
    answers: &mut [Message],
    (before, last): (u64, u64),
    term: impl Fn(u64) -> u64,
) {
    let acknowledgements = answers.iter_mut().filter(|answer| {
        answer.get_msg_type() == MessageType::MsgAppendResponse
            && !answer.reject
            && answer.index > last
    });
    for answer in acknowledgements {
        answer.reject = true;
        answer.reject_hint = answer.index;
        answer.log_term = term(answer.index);
        answer.index = before;
    }
}

impl RaftNode {
    /// Handles a peer that has committed entries up to `commit` and could not compare what it was
    /// sent: the next append to it names that entry.
    pub(super) fn probe_from(&mut self, id: u64, commit: Index) {
        let raft = &mut self.raw.raft;
        // A peer that has committed more than this leader has another history. It detects that when
        // it compares the leader's last entry.
        let next = commit.0.min(raft.raft_log.last_index()) + 1;
        let Some(progress) = raft.mut_prs().get_mut(id) else {
            return;
        };
        progress.recent_active = true;
        if progress.pending_request_snapshot <= commit.0 {
            // The peer already has everything that the snapshot would give it. It does not
            // acknowledge a snapshot that ends before its commit index, so the request would be
            // repeated forever.
            progress.pending_request_snapshot = INVALID_INDEX;
        }
        let is_snapshot = progress.state == ProgressState::Snapshot;
        if !is_snapshot && progress.next_idx >= next {
            // An append that reaches the entry is in flight, or is the next one.
            return;
        }
        progress.become_probe();
        progress.next_idx = next.max(progress.matched + 1);
        raft.send_append(id);
        self.after_call();
    }
}

impl CommittedLog for RaftNode {
    fn commit(&self) -> Index {
        RaftNode::commit(self)
    }

    fn boundary(&self) -> (Index, Term) {
        self.raw.store().boundary()
    }

    fn term(&self, index: Index) -> Option<Term> {
        self.term_of(index)
    }

    fn eid(&self, index: Index) -> Option<corvid_log::cluster::Eid> {
        let context = raft::GetEntriesContext::empty(false);
        let entries = self.raw.raft.raft_log.entries(index.0, 1, context).ok()?;
        let body = super::convert::entry(entries.first()?).body;
        body.as_commit().map(|(eid, _)| eid)
    }
}
