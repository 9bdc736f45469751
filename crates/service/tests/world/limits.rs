//! Limits kept by other servers and by the shards' loop, for the worlds and the cluster in these
//! tests.

use corvid_consensus::PeerMessage;
use corvid_consensus::database::Forward;
use corvid_consensus::limits::check_forward;
use corvid_consensus::wire::{self, Envelope, Incoming, Receiver};
use corvid_data::Uuid;
use corvid_json::frame::{Framed, Framer};
use corvid_json::{PEER_DEPTH_MAX, WRAPPING_BYTES};
use corvid_log::cluster::{Cid, Term};
use corvid_monitor::SessionId;
use corvid_service::frontend::{Close, is_passed_on, shard_of};

use crate::cluster::sid;
use crate::world::World;

/// A member accepts a forwarded transaction: its message is readable, and the receiver's guard
/// passes it.
pub(crate) fn assert_is_taken(forward: &Forward) {
    let (from, to) = (sid(0), sid(1));
    let cid = Cid::new(Uuid([9; 16]));
    let message = PeerMessage::Forward {
        term: Term(1),
        first: 1,
        answered: 0,
        forwards: vec![forward.clone()],
    };
    let envelope = Envelope {
        cluster: cid,
        to: Some(to),
        from,
    };
    let text = wire::encode(&envelope, &message);
    let framed = Framer::with_depth_max(PEER_DEPTH_MAX).advance(&text);
    let end = text.len();
    assert_eq!(framed, Ok(Framed::Complete { start: 0, end }));
    let receiver = Receiver { sid: to, cid };
    let read = wire::decode(&text, &receiver).expect("a message");
    let Incoming::Message { message: read, .. } = read else {
        panic!("{read:?}");
    };
    assert_eq!(read, message);
    let PeerMessage::Forward {
        forwards: read_forwards,
        ..
    } = read
    else {
        unreachable!("it equals the message");
    };
    // The receiver's guard makes this check too.
    assert_eq!(check_forward(&read_forwards[0]), Ok(()));
}

impl World {
    /// A text arrives at a shard, which applies the same limits as the reactor.
    pub(crate) fn text_arrives(&mut self, session: SessionId, text: Vec<u8>) {
        let bytes_max = self.text_bytes_max;
        let frontend = &mut self.shards[usize::from(shard_of(session))].frontend;
        let begun = &text[..text.len().min(1024)];
        let is_too_long = |bytes: usize| text.len() > bytes_max.saturating_add(bytes);
        match is_passed_on(begun) {
            true if is_too_long(WRAPPING_BYTES) => frontend.overlong(session, begun, bytes_max),
            false if is_too_long(0) => {
                let client = self.clients.get_mut(&session).expect("connected");
                client.closed = Some(Close::Disconnect("too long".into()));
                self.disconnect(session);
            }
            _ => frontend.frame(self.now_ms, session, text),
        }
    }
}
