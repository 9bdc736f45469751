//! A client's end of a session: the messages that it got, and whether the server may send more.

use std::collections::BTreeMap;

use corvid_json::Value;
use corvid_service::frontend::Close;

/// One client.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// Messages in order of arrival.
    pub(crate) received: Vec<Value>,
    /// How many of them the play has looked at.
    pub(crate) seen: usize,
    /// Output stays in the server: no updates are composed, nothing is read from it.
    pub(crate) is_stalled: bool,
    /// The server does not read from it now.
    pub(crate) is_paused: bool,
    /// Something was sent and not reported as drained.
    pub(crate) is_full: bool,
    /// The server has closed, and why.
    pub(crate) closed: Option<Close>,
    /// The client has gone.
    pub(crate) is_gone: bool,
}

impl Client {
    /// Whether the server would read from it.
    pub(crate) fn is_heard(&self) -> bool {
        let is_stuck = self.is_stalled && self.is_full;
        let is_there = !self.is_gone && self.closed.is_none();
        is_there && !self.is_paused && !is_stuck
    }
}

/// Replaces UUIDs by their numbers in the order of first appearance.
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
