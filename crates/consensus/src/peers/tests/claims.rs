//! Processes that claim the id of a server.

use super::*;

/// A member with a connection that it dialled at B's address, where B has answered.
fn dialled_to_b() -> (Peers, ConnectionNumber) {
    let mut a = member(A, Some(cid()));
    a.set_targets(0, &[target(B)]);
    let number = dialled(&outputs(&mut a)).expect("an attempt");
    a.connected(0, number);
    a.received(0, number, &hello(B, A));
    outputs(&mut a);
    (a, number)
}

/// A process at this address connects and claims to be B.
fn claim(a: &mut Peers, now_ms: u64, name: &str) -> ConnectionNumber {
    let number = a.accepted(now_ms, name);
    a.received(now_ms, number, &hello(B, A));
    number
}

/// The connection over which a message to B leaves.
fn way_to_b(a: &mut Peers) -> Option<ConnectionNumber> {
    outputs(a);
    a.send(0, B, &message(1));
    outputs(a).into_iter().find_map(|output| match output {
        PeersOutput::Write { number, .. } => Some(number),
        _ => None,
    })
}

const ELSEWHERE: &str = "tcp:10.0.0.66:41514";
const HOST_OF_B: &str = "tcp:10.0.0.187:41514";

#[test]
fn a_process_elsewhere_that_claims_a_server_gets_none_of_its_messages() {
    let (mut a, true_one) = dialled_to_b();
    let claimed = claim(&mut a, 100, ELSEWHERE);
    let events = outputs(&mut a);
    assert!(!events.contains(&PeersOutput::PeerUp(B)), "{events:?}");
    let probe = PeersOutput::Write {
        number: true_one,
        bytes: corvid_rpc::message::PROBE.into(),
    };
    assert!(events.contains(&probe), "{events:?}");
    assert_eq!(way_to_b(&mut a), Some(true_one));
    a.received(200, true_one, br#"{"id":"echo","result":[],"error":null}"#);
    a.time(100 + vouching::CHALLENGE_MS);
    assert!(!is_closed(&outputs(&mut a), true_one));
    assert_eq!(way_to_b(&mut a), Some(true_one));
    // Its malformed messages end only its own connection.
    a.refuse(1200, B, "forged");
    let events = outputs(&mut a);
    assert!(is_closed(&events, claimed) && !is_closed(&events, true_one));
}

#[test]
fn a_connection_that_died_unnoticed_gives_way_to_a_process_elsewhere() {
    let (mut a, dead) = dialled_to_b();
    let claimed = claim(&mut a, 100, ELSEWHERE);
    assert_eq!(a.deadline_ms(100), Some(100 + vouching::CHALLENGE_MS));
    outputs(&mut a);
    a.time(100 + vouching::CHALLENGE_MS);
    let events = outputs(&mut a);
    assert!(is_closed(&events, dead), "{events:?}");
    assert!(events.contains(&PeersOutput::PeerUp(B)), "{events:?}");
    assert_eq!(way_to_b(&mut a), Some(claimed));
}

#[test]
fn a_server_at_its_own_host_takes_its_place_at_once() {
    let (mut a, _) = dialled_to_b();
    let newer = claim(&mut a, 100, HOST_OF_B);
    assert!(outputs(&mut a).contains(&PeersOutput::PeerUp(B)));
    assert_eq!(way_to_b(&mut a), Some(newer));
}

#[test]
fn many_claims_close_no_connection_of_the_true_server() {
    let (mut a, _) = dialled_to_b();
    let true_one = claim(&mut a, 100, HOST_OF_B);
    for _ in 0..3 * ACCEPTED_PER_SERVER_MAX {
        claim(&mut a, 100, ELSEWHERE);
        let events = outputs(&mut a);
        assert!(!is_closed(&events, true_one), "{events:?}");
    }
    // Many processes that claim other servers do not do so either.
    for number in 0..2 * ACCEPTED_MAX {
        let sid = Sid(Uuid([number as u8 % 0xa0 + 1; 16]));
        let accepted = a.accepted(100, ELSEWHERE);
        a.received(100, accepted, &hello(sid, A));
        let events = outputs(&mut a);
        assert!(!is_closed(&events, true_one), "{events:?}");
    }
    assert_eq!(way_to_b(&mut a), Some(true_one));
}

#[test]
fn the_list_of_members_decides_which_connection_is_better() {
    let mut a = member(A, Some(cid()));
    let true_one = claim(&mut a, 0, HOST_OF_B);
    let claimed = claim(&mut a, 0, ELSEWHERE);
    assert_eq!(way_to_b(&mut a), Some(claimed), "no list is known");
    a.set_targets(100, &[target(B)]);
    assert!(outputs(&mut a).contains(&PeersOutput::PeerUp(B)));
    assert_eq!(way_to_b(&mut a), Some(true_one));
}
