//! Long messages: heartbeats pass them, all other messages keep their order, and their length is
//! bounded.

use super::*;
use crate::database::{ClientIdentity, Forward, ForwardMethod};

/// A member with a connection of another one, which accepts messages of up to `message_bytes_max`
/// bytes.
pub(super) fn receiver(
    own: Sid,
    other: Sid,
    message_bytes_max: usize,
) -> (Peers, ConnectionNumber) {
    let mut peers = Peers::new(PeersSettings {
        message_bytes_max,
        ..member(own, Some(cid())).settings
    });
    let number = peers.accepted(0, "tcp:peer:1");
    peers.received(0, number, &hello(other, own));
    let own_hello = written(outputs(&mut peers));
    peers.written(0, number, own_hello.iter().map(Bytes::len).sum());
    (peers, number)
}

fn forward(bytes: usize) -> PeerMessage {
    let forward = Forward {
        id: Eid(Uuid([1; 16])),
        method: ForwardMethod::Transact,
        params: format!("[\"{}\"]", "it's ".repeat(bytes / 5)).into(),
        client: ClientIdentity::default(),
        elapsed_ms: 0,
        once: None,
    };
    PeerMessage::Forward {
        term: Term(1),
        first: 1,
        answered: 0,
        forwards: vec![forward],
    }
}

pub(super) fn written(outputs: Vec<PeersOutput>) -> Vec<Bytes> {
    let bytes = outputs.into_iter().filter_map(|output| match output {
        PeersOutput::Write { bytes, .. } => Some(bytes),
        _ => None,
    });
    bytes.collect()
}

fn messages(outputs: Vec<PeersOutput>) -> Vec<PeerMessage> {
    let messages = outputs.into_iter().filter_map(|output| match output {
        PeersOutput::Message { message, .. } => Some(message),
        _ => None,
    });
    messages.collect()
}

#[test]
fn a_heartbeat_passes_a_long_message_and_nothing_else_does() {
    const MAX: usize = 64 << 20;
    let (mut a, to_b) = receiver(A, B, MAX);
    let (mut b, from_a) = receiver(B, A, MAX);
    let heartbeat = PeerMessage::Heartbeat {
        term: Term(1),
        commit: Index(1),
    };
    let long = forward(8 << 20);
    a.send(0, B, &long);
    a.send(0, B, &message(7));
    let mut wire = written(outputs(&mut a));
    let unsent: usize = wire.iter().map(Bytes::len).sum();
    assert!(
        unsent < 2 << 20,
        "{unsent} bytes are in front of a heartbeat"
    );
    a.send(0, B, &heartbeat);
    wire.extend(written(outputs(&mut a)));
    let mut received = Vec::new();
    let mut next = 0;
    while let Some(bytes) = wire.get(next).cloned() {
        next += 1;
        a.written(0, to_b, bytes.len());
        wire.extend(written(outputs(&mut a)));
        b.received(0, from_a, &bytes);
        received.extend(messages(outputs(&mut b)));
    }
    assert_eq!(received.len(), 3);
    assert_eq!(received[0], heartbeat);
    assert!(received[1] == long, "it is whole");
    assert_eq!(received[2], message(7));
    assert_eq!(a.backlog_bytes(), 0);
}

#[test]
fn a_message_in_parts_is_bounded_and_no_part_is_in_parts() {
    let part = |part: &[u8], is_last| wire::encode_part(&envelope(B, A), part, is_last);
    let (mut a, number) = receiver(A, B, 1 << 20);
    for _ in 0..4 {
        a.received(0, number, &part(&[b'x'; 300_000], false));
    }
    let told = outputs(&mut a);
    assert!(is_closed(&told, number));
    assert!(lines(&told)[0].ends_with("message is longer than 1048576 bytes"));

    let (mut a, number) = receiver(A, B, 1 << 20);
    a.received(0, number, &part(&part(b"x", false), true));
    let told = outputs(&mut a);
    assert!(is_closed(&told, number));
    assert!(lines(&told)[0].ends_with("a message in parts that is itself a part"));
}

#[test]
fn a_message_that_no_member_takes_is_not_sent() {
    let (mut a, _) = receiver(A, B, 1 << 20);
    a.send(0, B, &forward(2 << 20));
    let told = outputs(&mut a);
    assert!(lines(&told)[0].contains("exceeds the limit for messages between members, not sent"));
    assert!(written(told).is_empty());
}
