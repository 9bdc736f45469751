//! The outputs of one shard's sessions. Filled while inputs are handled, drained by the driver.

use corvid_monitor::SessionId;

use super::InboundFrame;
use crate::message::{Completion, DatabaseId, Piece, ToDatabase, ToShard};

/// Why the server closes a session, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// It sent no JSON-RPC message; the text is for the log.
    BadMessage(String),
    /// It sent a reply to no request.
    UnexpectedReply,
    /// The client sends no more messages and everything is answered.
    EndOfInput,
    /// The server wants the client to reconnect; the text says why.
    Disconnect(std::sync::Arc<str>),
}

/// Collected outputs, each list in order.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Bytes for sessions of this shard.
    pub send: Vec<(SessionId, Piece)>,
    /// Sessions to close once what is queued for them is written. A disconnect does not wait for a
    /// client that does not read.
    pub close: Vec<(SessionId, Close)>,
    /// Stop (true) or resume (false) reading from a session: its messages wait here.
    pub pause: Vec<(SessionId, bool)>,
    /// Long texts, to be parsed on another thread ([`InboundFrame::parse`]) and returned to
    /// [`Frontend::frame_parsed`](super::Frontend::frame_parsed). At most one for each session.
    pub to_parse: Vec<(SessionId, InboundFrame)>,
    /// For databases.
    pub to_databases: Vec<(DatabaseId, ToDatabase)>,
    /// For other shards.
    pub to_shards: Vec<(u16, ToShard)>,
}

impl Outputs {
    /// Has databases send the session's updates of all commits so far, before a notification. Returns the databases.
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

    /// Whether there are only outputs that most messages have: bytes for sessions, inputs for databases.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        let Outputs {
            send: _,
            close,
            pause,
            to_parse,
            to_databases: _,
            to_shards,
        } = self;
        close.is_empty() && pause.is_empty() && to_parse.is_empty() && to_shards.is_empty()
    }
}
