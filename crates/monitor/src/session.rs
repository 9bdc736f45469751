//! The state of one session: its monitors, and which of them have pending changes.
//!
//! Invariant: a monitor is in `dirty` exactly once while it is behind and its request is answered.
//! Owned by `Monitors`.

use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

use crate::group::{GroupId, MemberState, MonitorKey};
use crate::{SessionId, Version};

/// One monitor.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// The session that the monitor belongs to.
    pub(crate) session: SessionId,
    /// Canonical JSON.
    pub(crate) id: StdArc<[u8]>,
    /// The kind of the monitor's notifications.
    pub(crate) version: Version,
    /// The group that the monitor belongs to.
    pub(crate) group: GroupId,
    /// How much has been sent to the monitor's client.
    pub(crate) state: MemberState,
    /// Whether the request has no reply yet, so that nothing else may be sent for the monitor.
    pub(crate) awaits_reply: bool,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The session's monitors by canonical id. The map is ordered, because clients choose the ids.
    pub(crate) monitors: BTreeMap<StdArc<[u8]>, MonitorKey>,
    /// Monitors that are behind, in the order of their first pending change.
    pub(crate) dirty: Vec<MonitorKey>,
    /// Whether the session's output is drained.
    pub(crate) is_ready: bool,
    /// Whether the session is in the list of sessions to flush.
    pub(crate) is_listed: bool,
}

impl Session {
    /// A session without monitors, ready.
    pub(crate) fn new() -> Session {
        Session {
            monitors: BTreeMap::new(),
            dirty: Vec::new(),
            is_ready: true,
            is_listed: false,
        }
    }

    /// Whether the caller must put the session in the list now. Marks it as listed.
    pub(crate) fn list(&mut self) -> bool {
        let list = self.is_ready && !self.is_listed && !self.dirty.is_empty();
        self.is_listed |= list;
        list
    }
}
