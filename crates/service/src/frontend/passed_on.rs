//! Requests that a relay passes on for its clients, known by their beginning.
//!
//! A relay wraps the transactions of its clients in `transact_once`, so the text that it sends
//! nests one level deeper and is a little longer than the text that it got. And a relay does not
//! know how long a text its source takes. If the source closed the connection, the relay would
//! send the text again, and no other client of the relay could write. So a text that is too long
//! is answered with an error, and only its own client learns of it. Requests for locks are made
//! again over the next connection, too.

use corvid_data::{Tag, WireError};
use corvid_json::Reader;
use corvid_monitor::SessionId;
use corvid_rpc::message;

use super::Frontend;
use crate::message::Piece;

/// Levels that `transact_once` adds around the `params` of `transact`.
pub(super) const ONCE_LEVELS: usize = 1;

const _: () = assert!(ONCE_LEVELS <= corvid_json::WRAPPING_LEVELS);

/// Methods whose requests are sent again when their connection is lost.
const METHODS: [&[u8]; 4] = [b"transact_once", b"lock", b"steal", b"unlock"];

/// The id and the method of a request that begins like this, in the form in which our clients
/// write it.
fn read_beginning(begun: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let mut reader = Reader::new(begun);
    reader.begin_object().ok()?;
    if !reader.try_member(b"id") {
        return None;
    }
    let id = reader.skip().ok()?;
    if !reader.try_member(b"method") {
        return None;
    }
    Some((id, reader.string().ok()?.into_owned()))
}

/// Whether a text that begins like this is a request that a relay passes on.
#[must_use]
pub fn is_passed_on(begun: &[u8]) -> bool {
    read_beginning(begun).is_some_and(|(_, method)| METHODS.contains(&&*method))
}

/// Whether a text that begins like this may nest deeper than a client's.
pub(super) fn wraps_transaction(begun: &[u8]) -> bool {
    read_beginning(begun).is_some_and(|(_, method)| method == METHODS[0])
}

impl Frontend {
    /// A text of [`is_passed_on`] was longer than `bytes_max`: its client gets an error.
    pub fn overlong(&mut self, session: SessionId, begun: &[u8], bytes_max: usize) {
        let is_heard = |session: &super::Session| !session.ignores_input();
        if !self.sessions.get(&session).is_some_and(is_heard) {
            return;
        }
        let Some((id, _)) = read_beginning(begun) else {
            return;
        };
        let details = format!("request is longer than {bytes_max} bytes, the limit of the server");
        let mut error = Vec::new();
        WireError::new(Tag::ResourcesExhausted, details).write_json(&mut error);
        let mut text = Vec::new();
        message::write_error_reply(&mut text, &message::canonical_id(id), &error);
        // The beginning of a text is short, and so is an id in it.
        self.outputs.send.push((session, Piece::Message(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_tells_what_is_passed_on() {
        let once = br#"{"id":17,"method":"transact_once","params":["#;
        assert!(is_passed_on(once) && wraps_transaction(once));
        let lock = br#"{"id":"x","method":"lock","params":["aaa"#;
        assert!(is_passed_on(lock) && !wraps_transaction(lock));
        for other in [
            &br#"{"id":17,"method":"transact","params":["#[..],
            br#"{"params":[],"id":17,"method":"transact_once""#,
            br#"{"id":17,"method":"transact_on"#,
            b"[[[[",
            b"",
        ] {
            assert!(!is_passed_on(other) && !wraps_transaction(other));
        }
    }
}
