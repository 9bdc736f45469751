//! Requests that a relay forwards for its clients, recognized by how they begin.
//!
//! A relay wraps its clients' transactions in `transact_once`, so its text nests one level deeper
//! and is a little longer than the client's. A relay does not know how long a text its source
//! accepts. If the source closed the connection over a long text, the relay would reconnect and
//! send it again, and none of its clients could write. So the source answers such a text with an
//! error, which only that client sees. Lock requests are treated alike because a relay repeats them
//! over its next connection too.

use corvid_data::{Tag, WireError};
use corvid_json::Reader;
use corvid_monitor::SessionId;
use corvid_rpc::message;

use super::Frontend;
use crate::message::Piece;

/// Nesting levels that `transact_once` adds to the `params` of `transact`.
pub(super) const ONCE_LEVELS: usize = 1;

const _: () = assert!(ONCE_LEVELS <= corvid_json::WRAPPING_LEVELS);

/// Methods whose requests a relay sends again when it loses the connection.
const METHODS: [&[u8]; 4] = [b"transact_once", b"lock", b"steal", b"unlock"];

/// The id and the method of a request that begins like this; `None` unless its members are in the
/// order in which a relay writes them.
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

/// Whether a text that begins like this is a request forwarded by a relay.
#[must_use]
pub fn is_passed_on(begun: &[u8]) -> bool {
    read_beginning(begun).is_some_and(|(_, method)| METHODS.contains(&&*method))
}

/// Whether a text that begins like this may nest deeper than a client's text.
pub(super) fn wraps_transaction(begun: &[u8]) -> bool {
    read_beginning(begun).is_some_and(|(_, method)| method == METHODS[0])
}

impl Frontend {
    /// Answers a text with an error because it is longer than `bytes_max`. `begun` is its
    /// beginning, for which [`is_passed_on`] holds.
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
        // `begun` is short, and so is the id in it.
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
