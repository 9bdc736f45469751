//! Message envelopes.

use corvid_json::Reader;
use corvid_rpc::message::{Message, canonical_id};
use corvid_rpc::session::{Received, Session};

/// Parses messages. The parts of an accepted message are valid JSON, an id has only one canonical
/// text, and the replies that we send are messages.
///
/// # Panics
/// If one of these invariants is broken.
pub fn message(text: &[u8]) {
    let Ok(message) = Message::parse(text) else {
        return;
    };
    let (id, value) = match &message {
        Message::Request { id, params, .. } => (Some(*id), *params),
        Message::Notification { params, .. } => (None, *params),
        Message::Reply { id, result } => (Some(*id), *result),
        Message::ErrorReply { id, error } => (Some(*id), *error),
    };
    valid(value);
    if let Some(id) = id {
        valid(id);
        // An id that is a real loses digits the first time, as in the reference's echo.
        let canonical = canonical_id(&canonical_id(id));
        assert_eq!(canonical_id(&canonical), canonical);
    }
    if let Received::Echo(answer) = Session::new(0, 0).receive(message) {
        assert!(matches!(Message::parse(&answer), Ok(Message::Reply { .. })));
    }
}

fn valid(value: &[u8]) {
    let mut reader = Reader::new(value);
    reader
        .skip()
        .and_then(|_| reader.end())
        .expect("part of a valid message");
}
