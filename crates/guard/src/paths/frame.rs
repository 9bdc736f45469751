//! `frame`: finds the text of a transaction in bytes that were read from a socket, and parses its
//! envelope.

use std::hint::black_box;

use corvid_json::Framer;
use corvid_json::frame::Framed;
use corvid_rpc::Message;

use super::Path;
use crate::northbound;

pub(super) const PATH: Path = Path {
    name: "frame",
    about: "frames and parses the envelope of a transaction of 750 bytes",
    times: 200,
    prepare,
};

fn prepare(_times: usize) -> Box<dyn FnMut()> {
    let text = northbound::message(7);
    let mut framer = Framer::new();
    Box::new(move || {
        let framed = framer.advance(black_box(&text)).expect("JSON");
        let Framed::Complete { start, end } = framed else {
            panic!("a whole text");
        };
        let message = Message::parse(&text[start..end]).expect("a message");
        assert!(matches!(black_box(message), Message::Request { .. }));
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn transaction_has_the_described_length() {
        let bytes = crate::northbound::message(7).len();
        assert!((740..760).contains(&bytes), "{bytes}");
    }
}
