//! The library driven by messages one by one, several of them in a turn.

use corvid_data::Uuid;
use corvid_log::cluster::{Eid, Index, Sid, Term};

use super::{Opening, Outgoing, RaftNode};
use crate::entry::EntryBody;
use crate::message::{PeerMessage, Rejection};

fn sid(number: u8) -> Sid {
    Sid(Uuid([number; 16]))
}

/// Stores and applies everything. Returns the messages.
fn turn(node: &mut RaftNode) -> Vec<(Sid, PeerMessage)> {
    let mut messages = Vec::new();
    while let Some(work) = node.ready() {
        node.stored(work.number);
        if let Some(last) = work.committed.last() {
            node.applied(last.index);
        }
        for (to, outgoing) in work.messages.into_iter().chain(work.promises) {
            if let Outgoing::Message(message) = outgoing {
                messages.push((to, message));
            }
        }
    }
    messages
}

fn vote(term: u64, is_prevote: bool) -> PeerMessage {
    PeerMessage::VoteReply {
        term: Term(term),
        is_prevote,
        is_granted: true,
        commit: Index(0),
        commit_term: Term(0),
    }
}

fn reply(index: u64, hint: Option<u64>) -> PeerMessage {
    PeerMessage::AppendReply {
        term: Term(2),
        index: Index(index),
        commit: Index(1),
        rejection: hint.map(|hint| Rejection {
            hint: Index(hint),
            hint_term: Term(2),
        }),
    }
}

/// A member of three that leads in term 2 from entry 2 on, which both others have.
fn leader() -> RaftNode {
    let opening = Opening {
        sid: sid(1),
        snapshot: (Index(1), Term(1)),
        entries: Vec::new(),
        term: Term(1),
        vote: None,
        commit: Index(1),
        voters: vec![sid(1), sid(2), sid(3)],
    };
    let mut node = RaftNode::new(&opening, 10).expect("a member");
    turn(&mut node);
    node.campaign();
    turn(&mut node);
    node.step(sid(2), vote(2, true));
    turn(&mut node);
    node.step(sid(2), vote(2, false));
    turn(&mut node);
    assert!(node.is_leader());
    for peer in [2, 3] {
        node.step(sid(peer), reply(2, None));
        turn(&mut node);
    }
    node
}

#[test]
fn entries_keep_their_place_when_a_commit_and_a_rejection_come_in_one_turn() {
    let mut node = leader();
    let bodies: Vec<EntryBody> = (3..=5)
        .map(|number| EntryBody::commit(Eid(Uuid([number; 16])), b"[null,{}]"))
        .collect();
    assert!(node.propose(bodies.clone()));
    turn(&mut node);
    // Peer 3 makes a majority, of which peer 2 is told; peer 2 says that it has lost what was sent to it.
    node.step(sid(3), reply(5, None));
    node.tell_commit();
    node.step(sid(2), reply(5, Some(2)));
    let mut sent = 0;
    for (to, message) in turn(&mut node) {
        let PeerMessage::Append {
            prev_index,
            entries,
            ..
        } = message
        else {
            continue;
        };
        for (at, (_, body)) in entries.iter().enumerate() {
            let index = prev_index.0 + 1 + at as u64;
            let place = usize::try_from(index - 3).expect("small");
            assert_eq!(Some(body), bodies.get(place), "{index} to {to}");
            sent += 1;
        }
    }
    assert!(sent > 0, "peer 2 gets its entries again");
}

#[test]
fn ids_of_strangers_have_a_limit() {
    let own = Sid(corvid_data::Uuid([1; 16]));
    let mut node = RaftNode::empty(own, super::ELECTION_TICKS);
    let limit = super::SIDS_MAX;
    for number in 1..=2 * limit as u64 {
        let mut bytes = [9; 16];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        let (term, commit) = (Term(1), Index(0));
        node.step(
            Sid(corvid_data::Uuid(bytes)),
            PeerMessage::Heartbeat { term, commit },
        );
    }
    assert_eq!(node.sids.len(), limit);
}
