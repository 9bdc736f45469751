//! Messages of other members of a cluster.

use bytes::Bytes;
use corvid_consensus::guard::{self, CommittedLog, GuardView};
use corvid_consensus::wire::{self, Envelope, Incoming, Receiver};
use corvid_consensus::{ConnectionNumber, PeerMessage, Peers, PeersOutput, PeersSettings};
use corvid_data::Uuid;
use corvid_json::frame::whole_texts;
use corvid_log::cluster::{Cid, Eid, Index, Sid, Term};

/// The receiver and the sender of the messages in the seeds.
const RECEIVER: Sid = Sid(Uuid([0xbb; 16]));
const SENDER: Sid = Sid(Uuid([0xaa; 16]));

/// Reads a stream of messages. A decoded message stays the same when it is encoded and decoded
/// again, on the fast path. Entries that the guard accepts become records of a file with the right
/// term and index. The connections of a member that receives the stream stay consistent.
///
/// # Panics
/// If one of these invariants is broken.
pub fn peer_messages(input: &[u8]) {
    for text in whole_texts(input) {
        read(&Bytes::copy_from_slice(text));
    }
    for piece in [input.len().max(1), 61] {
        receive(input, piece);
    }
}

fn cluster() -> Option<Cid> {
    Cid::new(Uuid([0xcc; 16]))
}

fn read(text: &Bytes) {
    for cid in [cluster(), None] {
        let receiver = Receiver { sid: RECEIVER, cid };
        let Ok(Incoming::Message { from, message, .. }) = wire::decode(text, &receiver) else {
            continue;
        };
        let envelope = Envelope {
            cluster: cluster(),
            to: Some(RECEIVER),
            from,
        };
        let again = wire::encode(&envelope, &message);
        match wire::decode(&again, &receiver) {
            Ok(Incoming::Message {
                from: sender,
                message: same,
                ..
            }) => {
                assert_eq!((sender, &same), (from, &message));
            }
            other => panic!("{message:?} became {other:?}"),
        }
        check(from, &message);
    }
}

/// A log in which half of everything is committed.
#[derive(Debug)]
struct Anything;

impl CommittedLog for Anything {
    fn commit(&self) -> Index {
        Index(1 << 39)
    }

    fn boundary(&self) -> (Index, Term) {
        (Index(100), Term(3))
    }

    fn term(&self, index: Index) -> Option<Term> {
        (index >= Index(100)).then_some(Term(3))
    }

    fn eid(&self, _: Index) -> Option<Eid> {
        None
    }
}

fn check(from: Sid, message: &PeerMessage) {
    let view = GuardView {
        sid: RECEIVER,
        term: Term(5),
        leader: None,
        last_index: Index(1 << 40),
        persisted: Index(1 << 40),
        sent: Index(0),
        log: &Anything,
    };
    if guard::check(from, message, &view).is_err() {
        return;
    }
    if let PeerMessage::Append { entries, .. } = message {
        for (term, body) in entries {
            let entry = body.parse(*term, Index(7)).expect("an entry of a file");
            assert_eq!((entry.term, entry.index), (*term, Index(7)));
            let data = entry.payload.map(|payload| (payload.eid, payload.data));
            let commit = body.as_commit();
            assert_eq!(
                commit.as_ref().map(|(eid, data)| (*eid, &data[..])),
                data.as_ref().map(|(eid, data)| (*eid, data.json()))
            );
        }
    }
}

/// Passes the input to a member with one accepted connection.
fn receive(input: &[u8], piece: usize) {
    let mut peers = Peers::new(PeersSettings {
        sid: RECEIVER,
        cid: cluster(),
        address: "tcp:10.0.0.2:6644".to_owned(),
        message_bytes_max: 1 << 20,
    });
    let number = peers.accepted(0, "tcp:10.0.0.1:40000");
    let mut is_open = true;
    let mut is_up = false;
    for (turn, bytes) in input.chunks(piece).enumerate() {
        let now_ms = turn as u64;
        peers.received(now_ms, number, bytes);
        take_outputs(&mut peers, number, &mut is_open, &mut is_up);
        peers.send(now_ms, SENDER, &PeerMessage::NotMember { term: Term(1) });
        peers.time(now_ms);
        take_outputs(&mut peers, number, &mut is_open, &mut is_up);
    }
    // The member must notice that the connection has become silent.
    peers.time(1 << 32);
    peers.time(1 << 33);
    take_outputs(&mut peers, number, &mut is_open, &mut is_up);
    assert!(!is_open && !is_up && peers.connection_count() == 0);
    assert_eq!((peers.disconnections(), peers.backlog_bytes()), (1, 0));
}

fn take_outputs(peers: &mut Peers, open: ConnectionNumber, is_open: &mut bool, is_up: &mut bool) {
    while let Some(output) = peers.next_output() {
        match output {
            PeersOutput::Write { number, .. } => assert!(*is_open && number == open),
            PeersOutput::Close { number } => {
                assert!(*is_open && number == open);
                *is_open = false;
            }
            PeersOutput::PeerUp(_) => assert!(*is_open && !std::mem::replace(is_up, true)),
            PeersOutput::PeerDown(_) => assert!(!*is_open && std::mem::take(is_up)),
            PeersOutput::Message { .. } => assert!(*is_open && *is_up),
            PeersOutput::Log { text, .. } => assert!(text.len() < 2000),
            // A text of 2,048 bytes, all of which may be escaped.
            PeersOutput::Traffic { text } => assert!(text.len() < 100_000),
            PeersOutput::Dial { .. } | PeersOutput::PeerRefused(_) => {
                panic!("no address was given")
            }
            PeersOutput::LearnedCluster(_) => panic!("the cluster was known"),
        }
    }
}
