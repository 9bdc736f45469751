//! The outputs of a member in order, and how much of the log was sent to each peer.
//!
//! Invariant: outputs leave in the order in which they were put. A peer's mark is raised before the
//! message with the entries can leave, so a peer never acknowledges an entry past the mark:
//! [`crate::guard`] refuses such acknowledgements.

use std::collections::{BTreeMap, VecDeque};

use corvid_log::cluster::{Index, Sid, Term};

use super::Output;
use crate::message::PeerMessage;

/// The queue of outputs.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Output>,
    /// The last entry sent to each peer, and the term in which this member sent it.
    sent: BTreeMap<Sid, (Term, Index)>,
    /// The newest commit index that each peer was told. One index for all would not do: an answer
    /// to one follower may carry a commit index that no message to the others has.
    told_commits: BTreeMap<Sid, Index>,
}

impl Outbox {
    pub(crate) fn put(&mut self, output: Output) {
        if let Output::Send { to, message } = &output {
            self.mark(*to, message);
        }
        self.queue.push_back(output);
    }

    pub(crate) fn take(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The last entry that this member has sent to a peer as the leader of this term; 0 if none.
    pub(crate) fn sent_to(&self, sid: Sid, term: Term) -> Index {
        let sent = self.sent.get(&sid).filter(|(known, _)| *known == term);
        sent.map_or(Index(0), |(_, end)| *end)
    }

    /// The newest commit index that a peer was told.
    pub(crate) fn told_commit(&self, sid: Sid) -> Index {
        self.told_commits.get(&sid).copied().unwrap_or_default()
    }

    /// Notes that a peer knows this commit index, or will with its next append.
    pub(crate) fn note_commit(&mut self, sid: Sid, commit: Index) {
        let told = self.told_commits.entry(sid).or_insert(commit);
        *told = commit.max(*told);
    }

    /// Forgets a peer that is gone and not a member.
    pub(crate) fn forget_peer(&mut self, sid: Sid) {
        self.sent.remove(&sid);
        self.told_commits.remove(&sid);
    }

    fn mark(&mut self, to: Sid, message: &PeerMessage) {
        let (term, end) = match message {
            PeerMessage::Append {
                term,
                prev_index,
                entries,
                commit,
                ..
            } => {
                self.note_commit(to, *commit);
                (*term, Index(prev_index.0 + entries.len() as u64))
            }
            PeerMessage::SnapshotOffer { term, snapshot } => (*term, snapshot.index),
            _ => return,
        };
        let mark = self.sent.entry(to).or_insert((term, end));
        // In a new term the count starts over: entries that this member sent as leader of an
        // earlier term may have been overwritten.
        *mark = match *mark {
            (known, before) if known == term => (term, before.max(end)),
            _ => (term, end),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;

    fn append(term: u64, prev_index: u64, commit: u64) -> Output {
        let message = PeerMessage::Append {
            term: Term(term),
            prev_index: Index(prev_index),
            prev_term: Term(1),
            commit: Index(commit),
            entries: Vec::new(),
        };
        let to = Sid(Uuid([7; 16]));
        Output::Send { to, message }
    }

    #[test]
    fn a_peer_is_marked_by_term_and_never_lowered_within_one() {
        let mut outbox = Outbox::default();
        let to = Sid(Uuid([7; 16]));
        assert_eq!(outbox.sent_to(to, Term(3)), Index(0));
        outbox.put(append(3, 8, 5));
        outbox.put(append(3, 4, 4));
        assert_eq!(outbox.sent_to(to, Term(3)), Index(8));
        assert_eq!(outbox.sent_to(to, Term(4)), Index(0), "another term");
        assert_eq!(outbox.told_commit(to), Index(5));
        outbox.put(append(4, 2, 5));
        assert_eq!(outbox.sent_to(to, Term(4)), Index(2), "counted anew");
        outbox.forget_peer(to);
        assert_eq!(outbox.sent_to(to, Term(4)), Index(0));
        assert_eq!(std::iter::from_fn(|| outbox.take()).count(), 3);
        assert!(outbox.is_empty());
    }
}
