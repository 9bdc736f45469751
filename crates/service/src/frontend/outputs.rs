//! What the sessions of a shard want done. Filled while inputs are handled, drained by the driver.

use corvid_monitor::SessionId;

use super::InboundFrame;
use crate::message::{DatabaseId, Piece, ToDatabase, ToShard};

/// Why the server closes a session, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// What it sent is no JSON-RPC message; the log's words for it.
    BadMessage(String),
    /// It sent a reply that nobody asked for.
    UnexpectedReply,
    /// The client sends no more messages and everything is answered.
    EndOfInput,
    /// The server wants it to start over; the words say why.
    Disconnect(std::sync::Arc<str>),
}

/// Collected outputs, each list in order.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Bytes for sessions of this shard.
    pub send: Vec<(SessionId, Piece)>,
    /// Sessions to close once what is queued for them is written.
    pub close: Vec<(SessionId, Close)>,
    /// Stop (true) or go on (false) reading from a session: messages of it wait here.
    pub pause: Vec<(SessionId, bool)>,
    /// Long texts, to be read ([`InboundFrame::parse`]) where nobody waits for it and brought back to
    /// [`Frontend::frame_parsed`](super::Frontend::frame_parsed). At most one for each session.
    pub to_parse: Vec<(SessionId, InboundFrame)>,
    /// For databases.
    pub to_databases: Vec<(DatabaseId, ToDatabase)>,
    /// For other shards.
    pub to_shards: Vec<(u16, ToShard)>,
}

impl Outputs {
    /// Whether nothing is left to be done but what most texts need: something sent, something for a database.
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
