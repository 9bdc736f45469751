//! A client's end of a session: what it was sent, and whether that is more than it reads.

use corvid_json::Value;
use corvid_service::frontend::Close;

/// One client.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// Messages in order of arrival.
    pub(crate) received: Vec<Value>,
    /// How many of them a play has looked at.
    pub(crate) seen: usize,
    /// Output stays in the server: no updates are composed, nothing is read from it.
    pub(crate) is_stalled: bool,
    /// The server does not want texts now.
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
