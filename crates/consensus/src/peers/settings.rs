//! Settings of [`super::Peers`].

use corvid_log::cluster::{Cid, Sid};

/// The identity of a member and the limits of its connections.
#[derive(Clone, Debug)]
pub struct PeersSettings {
    /// The member's id.
    pub sid: Sid,
    /// The cluster; `None` until a joining server has learned it.
    pub cid: Option<Cid>,
    /// The member's own address, which is never dialled.
    pub address: String,
    /// Bytes of one received message, at most; a longer one resets its connection. Those of all connections together have twice as much.
    pub message_bytes_max: usize,
}

/// An address to keep a connection to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialTarget {
    /// As in the list of servers, or the address of a remote while joining.
    pub address: String,
    /// The server that must answer there; `None`: any server of the cluster.
    pub sid: Option<Sid>,
}

/// Unsent messages of one connection, beyond which it is reset (`cluster/set-backlog-threshold`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacklogLimits {
    /// Messages; at least [`super::BACKLOG_CHECKED_FROM`].
    pub messages_max: usize,
    /// Bytes; 0 is without limit.
    pub bytes_max: u64,
}

impl Default for BacklogLimits {
    fn default() -> BacklogLimits {
        BacklogLimits {
            messages_max: 500,
            bytes_max: u64::from(u32::MAX),
        }
    }
}
