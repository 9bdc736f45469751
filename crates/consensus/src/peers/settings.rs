//! Settings of [`super::Peers`].

use corvid_log::cluster::{Cid, Sid};

/// The identity of a member and the limits of its connections.
#[derive(Clone, Debug)]
pub struct PeersSettings {
    /// The member's id.
    pub sid: Sid,
    /// The cluster; `None` until a joining server has learned it.
    pub cid: Option<Cid>,
    /// The member's own address, which it never dials.
    pub address: String,
    /// Maximum bytes of one received message; a longer one resets its connection. The unfinished
    /// messages of all connections together may have twice as many.
    pub message_bytes_max: usize,
}

/// An address to stay connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialTarget {
    /// The address in the list of servers, or of a remote while joining.
    pub address: String,
    /// The server that must answer there; `None` for any server of the cluster.
    pub sid: Option<Sid>,
}

/// Limits of the unsent messages of one connection; beyond them it is reset
/// (`cluster/set-backlog-threshold`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacklogLimits {
    /// Maximum number of messages; at least [`super::BACKLOG_CHECKED_FROM`].
    pub messages_max: usize,
    /// Maximum bytes; 0 means no limit.
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
