//! A client's end of a session: the messages it has received, and whether the server may send more.

use std::collections::BTreeMap;

use corvid_json::Value;
use corvid_service::frontend::Close;

/// One client.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// Messages in order of arrival.
    pub(crate) received: Vec<Value>,
    /// How many of them the play has read.
    pub(crate) seen: usize,
    /// The client does not read: its output stays in the server, and no updates are composed.
    pub(crate) is_stalled: bool,
    /// The server has stopped reading from the client.
    pub(crate) is_paused: bool,
    /// Output was sent and has not been reported as drained.
    pub(crate) is_full: bool,
    /// Why the server has closed the session; `None` if it has not.
    pub(crate) closed: Option<Close>,
    /// The client has disconnected.
    pub(crate) is_gone: bool,
}

impl Client {
    /// Whether the server would read from the client.
    pub(crate) fn is_heard(&self) -> bool {
        let is_stuck = self.is_stalled && self.is_full;
        let is_there = !self.is_gone && self.closed.is_none();
        is_there && !self.is_paused && !is_stuck
    }
}

/// Replaces UUIDs by numbers in the order of first appearance.
pub(crate) fn shorten(text: &str, names: &mut BTreeMap<String, usize>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(position) = rest.find('-') {
        let start = position.saturating_sub(8);
        match rest.get(start..start + 36).filter(|found| is_uuid(found)) {
            Some(found) => {
                let next = names.len();
                let number = *names.entry(found.to_owned()).or_insert(next);
                out.push_str(&rest[..start]);
                out.push_str(&format!("<{number}>"));
                rest = &rest[start + 36..];
            }
            None => {
                out.push_str(&rest[..=position]);
                rest = &rest[position + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_uuid(text: &str) -> bool {
    text.bytes()
        .enumerate()
        .all(|(position, byte)| match position {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
