//! `peer-append`: entries of the log are sent from a leader to a follower. They are composed as a
//! message, the message is found in the bytes of the connection, and the entries are read.

use std::hint::black_box;

use corvid_consensus::wire::{self, Envelope, Incoming, Receiver};
use corvid_consensus::{EntryBody, PeerMessage};
use corvid_data::Uuid;
use corvid_json::Framer;
use corvid_json::frame::Framed;
use corvid_log::cluster::{Cid, Eid, Index, Sid, Term};

use super::Path;
use crate::northbound;

pub(super) const PATH: Path = Path {
    name: "peer-append",
    about: "writes and reads a message of ten log entries of 750 bytes",
    times: 200,
    prepare,
};

const ENTRIES: u8 = 10;

fn prepare(_times: usize) -> Box<dyn FnMut()> {
    let envelope = Envelope {
        cluster: Cid::new(Uuid([3; 16])),
        to: Some(Sid(Uuid([2; 16]))),
        from: Sid(Uuid([1; 16])),
    };
    let receiver = Receiver {
        sid: Sid(Uuid([2; 16])),
        cid: envelope.cluster,
    };
    let body = |number: u8| EntryBody::commit(Eid(Uuid([number; 16])), &northbound::message(7));
    let message = PeerMessage::Append {
        term: Term(3),
        prev_index: Index(1000),
        prev_term: Term(3),
        commit: Index(990),
        entries: (0..ENTRIES).map(|number| (Term(3), body(number))).collect(),
    };
    let mut framer = Framer::new();
    Box::new(move || {
        let sent = wire::encode(&envelope, black_box(&message));
        let framed = framer.advance(&sent).expect("JSON");
        let length = sent.len();
        assert_eq!(
            framed,
            Framed::Complete {
                start: 0,
                end: length
            }
        );
        let incoming = wire::decode(&sent, &receiver).expect("a message");
        assert!(matches!(black_box(incoming), Incoming::Message { .. }));
    })
}
