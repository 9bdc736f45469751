//! Outcomes of forwarded transactions, on their way back to the followers.

use bytes::Bytes;
use corvid_consensus::database::ForwardOrigin;
use corvid_consensus::{
    ClientIdentity, Forward, ForwardMethod, ForwardOutcome, Input, MemberEvent, MemberRequest,
    Output, PeerMessage,
};
use corvid_data::Uuid;
use corvid_log::cluster::{Eid, Sid};

use crate::cluster::{Cluster, sid};

fn eid(follower: Sid, number: u8) -> Eid {
    let mut bytes = follower.0.0;
    bytes[15] = number;
    Eid(Uuid(bytes))
}

/// Forwards five transactions of each follower to the leader, whose database answers them in one
/// turn with results of this many bytes. Returns the numbers of outcomes in each message.
fn messages(result_bytes: usize) -> Vec<(Sid, Vec<u64>)> {
    let mut cluster = Cluster::new(3, 41);
    let leader = cluster.await_leader();
    cluster.run(1500);
    let now_ms = cluster.now_ms;
    let followers: Vec<Sid> = (1..=3).map(sid).filter(|other| *other != leader).collect();
    let node = cluster.nodes.get_mut(&leader).expect("a server");
    let member = node.member.as_mut().expect("running");
    let term = member.status(now_ms).term;
    for from in &followers {
        let forward = |number| Forward {
            id: eid(*from, number),
            method: ForwardMethod::default(),
            params: Bytes::from_static(b"[]"),
            client: ClientIdentity::default(),
            elapsed_ms: 0,
            once: None,
        };
        let message = PeerMessage::Forward {
            term,
            first: 1,
            answered: 0,
            forwards: (1..=5).map(forward).collect(),
        };
        member.handle(
            now_ms,
            Input::Peer {
                from: *from,
                message,
            },
        );
    }
    let mut requests = Vec::new();
    while let Some(output) = member.next_output() {
        if let Output::Database(MemberEvent::Execute { origin, forwards }) = output {
            requests.extend(forwards.into_iter().map(|forward| (origin, forward.id)));
        }
    }
    assert_eq!(requests.len(), 10);
    for (origin, id) in requests {
        let result = Bytes::from(vec![b' '; result_bytes]);
        let request = MemberRequest::Outcome {
            origin: ForwardOrigin { ..origin },
            id,
            outcome: ForwardOutcome::Proposed(result),
        };
        member.handle(now_ms, Input::Database(request));
    }
    let mut messages = Vec::new();
    while let Some(output) = member.next_output() {
        if let Output::Send {
            to,
            message: PeerMessage::Outcomes { outcomes, .. },
        } = output
        {
            let numbers = outcomes.iter().map(|(number, _, _)| *number).collect();
            messages.push((to, numbers));
        }
    }
    messages
}

#[test]
fn those_of_one_turn_leave_in_one_message_to_each_follower() {
    let messages = messages(100);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_ne!(messages[0].0, messages[1].0);
    for (_, numbers) in messages {
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn long_results_do_not_wait_for_one_another() {
    let messages = messages(600_000);
    assert_eq!(messages.len(), 6, "{messages:?}");
    let numbers = messages.iter().map(|(_, numbers)| numbers.len());
    assert_eq!(numbers.sum::<usize>(), 10);
}
