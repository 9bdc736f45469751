//! The library driven by single messages, several of them in one turn.

use corvid_data::Uuid;
use corvid_log::cluster::{Eid, Index, Servers, Sid, Term};

use super::{COMMITTED_BYTES_MAX, Opening, Outgoing, RaftNode, UNCOMMITTED_BYTES_MAX};
use crate::entry::EntryBody;
use crate::message::{PeerMessage, Rejection};

fn sid(number: u8) -> Sid {
    Sid(Uuid([number; 16]))
}

/// Stores and applies everything. Returns all outgoing messages.
fn outgoing(node: &mut RaftNode) -> Vec<(Sid, Outgoing)> {
    let mut all = Vec::new();
    while let Some(work) = node.ready() {
        node.stored(work.number);
        if let Some(last) = work.committed.last() {
            node.applied(last.index);
        }
        all.extend(work.messages.into_iter().chain(work.promises));
    }
    all
}

/// Stores and applies everything. Returns the messages to send.
fn turn(node: &mut RaftNode) -> Vec<(Sid, PeerMessage)> {
    let messages = outgoing(node).into_iter();
    let messages = messages.filter_map(|(to, outgoing)| match outgoing {
        Outgoing::Message(message) => Some((to, message)),
        Outgoing::Snapshot => None,
    });
    messages.collect()
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

/// One member of three, which leads in term 2 from entry 2 on. Nobody else has that entry yet.
fn new_leader() -> RaftNode {
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
    node
}

/// One member of three, which leads in term 2 from entry 2 on. Both others have that entry.
fn leader() -> RaftNode {
    let mut node = new_leader();
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
    // Peer 3 completes a majority, and peer 2 is told of the commit. Peer 2 says that it has lost
    // what it was sent.
    node.step(sid(3), reply(5, None));
    node.append_to(sid(2));
    node.append_to(sid(3));
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

/// A damaged peer asked for a snapshot. In the meantime it has committed more than the snapshot
/// holds, and says so instead of acknowledging the snapshot.
#[test]
fn a_peer_that_has_committed_more_than_a_snapshot_is_not_sent_it_again() {
    let mut node = leader();
    assert!(node.propose(commits(3, 10)));
    turn(&mut node);
    node.step(sid(2), reply(5, None));
    turn(&mut node);
    node.set_snapshot(Index(4), Term(2));
    node.begin_snapshot(sid(3), Index(4));
    let is_snapshot = |sent: &(Sid, Outgoing)| matches!(sent, (_, Outgoing::Snapshot));
    assert!(outgoing(&mut node).iter().any(is_snapshot));
    node.step(sid(3), reply(4, Some(5)));
    let sent = outgoing(&mut node);
    assert!(!sent.iter().any(is_snapshot), "it is offered once more");
    node.step(sid(3), reply(5, None));
    assert!(node.propose(commits(1, 10)));
    let sent = turn(&mut node);
    assert!(sent.iter().any(|(to, _)| *to == sid(3)), "appends go on");
}

/// This many commits, each of slightly more than `bytes` bytes.
fn commits(count: u8, bytes: usize) -> Vec<EntryBody> {
    let data = vec![b' '; bytes];
    let body = EntryBody::commit(Eid(Uuid([7; 16])), &data);
    vec![body; usize::from(count)]
}

#[test]
fn entries_of_one_proposal_leave_in_one_message() {
    let mut node = leader();
    assert!(node.propose(commits(5, 10)));
    let sent = turn(&mut node).into_iter().filter_map(|(to, message)| {
        let PeerMessage::Append { entries, .. } = message else {
            return None;
        };
        Some((to, entries.len()))
    });
    assert_eq!(sent.collect::<Vec<_>>(), [(sid(2), 5), (sid(3), 5)]);
}

#[test]
fn a_proposal_beyond_what_may_be_under_way_is_not_accepted() {
    let mut node = leader();
    assert!(!node.propose(Vec::new()), "an empty one");
    let many = u8::try_from(UNCOMMITTED_BYTES_MAX >> 24).expect("small");
    assert!(node.propose(commits(many - 1, 1 << 24)));
    assert!(!node.propose(commits(2, 1 << 24)), "too much is under way");
    assert!(node.propose(commits(1, 100)));
}

#[test]
fn committed_entries_are_handed_over_in_batches() {
    let mut node = leader();
    let many = u8::try_from(COMMITTED_BYTES_MAX >> 20).expect("small") + 3;
    assert!(node.propose(commits(many, 1 << 20)));
    turn(&mut node);
    node.step(sid(2), reply(2 + u64::from(many), None));
    let mut batches = Vec::new();
    while let Some(work) = node.ready() {
        node.stored(work.number);
        if let Some(last) = work.committed.last() {
            batches.push(work.committed.len());
            node.applied(last.index);
        }
    }
    assert!(batches.len() > 1, "{batches:?}");
    assert_eq!(batches.iter().sum::<usize>(), usize::from(many));
}

#[test]
fn voters_change_one_at_a_time_and_in_a_term_with_a_committed_entry() {
    let early = new_leader();
    assert!(!early.may_change_voters(), "none of its term is committed");
    let mut node = leader();
    assert!(node.may_change_voters());
    let list = EntryBody::servers(&Servers::one(sid(4), "tcp:1.2.3.4:4"));
    assert!(node.propose_change(sid(4), true, &list));
    assert!(!node.may_change_voters(), "a change is under way");
    turn(&mut node);
    assert!(!node.may_change_voters(), "it is not committed");
    let mut node = leader();
    node.transfer(sid(2));
    assert!(!node.may_change_voters(), "another member is to lead");
}

#[test]
fn a_server_whose_id_begins_like_a_members_is_not_taken_for_it() {
    let mut node = leader();
    let mut bytes = [2; 16];
    bytes[15] = 9;
    let impostor = Sid(Uuid(bytes));
    assert!(node.collides(impostor) && !node.collides(sid(2)));
    assert!(node.propose(commits(1, 10)));
    turn(&mut node);
    node.step(impostor, reply(3, None));
    assert_eq!(node.commit(), Index(2));
    node.step(sid(2), reply(3, None));
    assert_eq!(node.commit(), Index(3));
}

/// A member with these voters, in term 1, after a snapshot of entry 1.
fn member_among(voters: &[Sid]) -> RaftNode {
    let opening = Opening {
        sid: sid(1),
        snapshot: (Index(1), Term(1)),
        entries: Vec::new(),
        term: Term(1),
        vote: None,
        commit: Index(1),
        voters: voters.to_vec(),
    };
    RaftNode::new(&opening, 10).expect("a member")
}

#[test]
fn the_only_voter_stands_for_election_when_everything_is_stored() {
    let mut node = member_among(&[sid(1)]);
    let (term, commit) = (Term(2), Index(1));
    node.step(sid(2), PeerMessage::Heartbeat { term, commit });
    let work = node.ready().expect("a new term");
    node.campaign();
    assert!(!node.is_leader(), "its term is not stored");
    node.stored(work.number);
    node.campaign();
    assert!(node.is_leader());
}

#[test]
fn a_snapshot_counts_as_applied_when_it_is_stored() {
    let voters = [1, 2, 3].map(sid);
    let mut node = member_among(&voters);
    let (index, term) = (Index(10), Term(2));
    node.install(sid(2), term, (index, term), &voters);
    let work = node.ready().expect("a snapshot");
    // The library ends the process if it is told that an entry is applied which is not stored.
    node.applied(index);
    node.stored(work.number);
    node.applied(index);
    assert_eq!((node.commit(), node.persisted()), (index, index));
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

#[test]
fn entries_are_not_acknowledged_to_a_leader_whose_term_ended_in_the_same_turn() {
    let append = |term: u64| PeerMessage::Append {
        term: Term(term),
        prev_index: Index(1),
        prev_term: Term(1),
        commit: Index(1),
        entries: vec![(Term(term), EntryBody::empty())],
    };
    let replies = |node: &mut RaftNode| -> Vec<(Sid, u64)> {
        let messages = turn(node).into_iter();
        let replies = messages.filter_map(|(to, message)| match message {
            PeerMessage::AppendReply { term, .. } => Some((to, term.0)),
            _ => None,
        });
        replies.collect()
    };
    let voters = [1, 2, 3].map(sid);
    let mut node = member_among(&voters);
    node.step(sid(2), append(2));
    assert_eq!(replies(&mut node), [(sid(2), 2)], "its term lasts");
    let mut node = member_among(&voters);
    node.step(sid(2), append(2));
    // It replaces the entry, which is therefore never stored.
    node.step(sid(3), append(3));
    assert_eq!(replies(&mut node), [(sid(3), 3)]);
}
