//! The outputs of one shard's sessions: filled while inputs are handled, drained by the driver.

use corvid_monitor::SessionId;

use super::InboundFrame;
use crate::message::{Completion, DatabaseId, Piece, ToDatabase, ToShard};
use crate::read_history::Order;

/// Why the server closes a session, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// The client sent text that is not a JSON-RPC message, for this reason.
    BadMessage(String),
    /// The client sent a reply that matches no request.
    UnexpectedReply,
    /// The client sends no more messages and everything is answered.
    EndOfInput,
    /// The server makes the client reconnect, for this reason.
    Disconnect(std::sync::Arc<str>),
}

/// An input of the readings of history ([`crate::read_history::Readings`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHistory {
    /// A request, answered by [`ToShard::History`].
    Request(Box<Order>),
    /// The session cancels its request.
    Cancel(SessionId),
    /// The session has ended.
    Closed(SessionId),
}

/// Collected outputs, each list in order.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Bytes for sessions of this shard.
    pub send: Vec<(SessionId, Piece)>,
    /// Sessions to close once their queued output is written. A disconnect does not wait for a
    /// client that does not read.
    pub close: Vec<(SessionId, Close)>,
    /// Stop (true) or resume (false) reading from a session whose messages are queued in the shard.
    pub pause: Vec<(SessionId, bool)>,
    /// Long texts to parse on another thread ([`InboundFrame::parse`]) and return to
    /// [`Frontend::frame_parsed`](super::Frontend::frame_parsed); at most one per session.
    pub to_parse: Vec<(SessionId, InboundFrame)>,
    /// Inputs for databases.
    pub to_databases: Vec<(DatabaseId, ToDatabase)>,
    /// Requests about history, and the ends of sessions that made some.
    pub to_history: Vec<ToHistory>,
    /// Messages for other shards, by number.
    pub to_shards: Vec<(u16, ToShard)>,
}

impl Outputs {
    /// Fences these databases before a notification: each first sends the session's updates of all
    /// commits so far. Returns the databases.
    pub(super) fn fence_notification(
        &mut self,
        session: SessionId,
        databases: Vec<DatabaseId>,
    ) -> Vec<DatabaseId> {
        for database in &databases {
            let fence = ToDatabase::Fence(session, Completion::NotificationFence);
            self.to_databases.push((*database, fence));
        }
        databases
    }

    /// Whether there are only the outputs of most messages: bytes for sessions and inputs for
    /// databases.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        let Outputs {
            send: _,
            close,
            pause,
            to_parse,
            to_databases: _,
            to_history,
            to_shards,
        } = self;
        let is_parsed = to_parse.is_empty() && to_history.is_empty();
        close.is_empty() && pause.is_empty() && is_parsed && to_shards.is_empty()
    }
}
