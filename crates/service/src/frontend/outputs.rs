//! What the sessions of a shard want done. Filled while inputs are handled, drained by the driver.

use corvid_monitor::SessionId;

use crate::message::{DatabaseId, Piece, ToDatabase, ToShard};

/// Collected outputs, each list in order.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Bytes for sessions of this shard.
    pub send: Vec<(SessionId, Piece)>,
    /// Sessions to close once what is queued for them is written, with the reason for the log.
    pub close: Vec<(SessionId, String)>,
    /// Stop (true) or go on (false) reading from a session: messages of it wait here.
    pub pause: Vec<(SessionId, bool)>,
    /// For databases.
    pub to_databases: Vec<(DatabaseId, ToDatabase)>,
    /// For other shards.
    pub to_shards: Vec<(u16, ToShard)>,
}
