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
    /// The session that it belongs to.
    pub(crate) session: SessionId,
    /// Canonical JSON.
    pub(crate) id: StdArc<[u8]>,
    /// The kind of its notifications.
    pub(crate) version: Version,
    /// The group that it belongs to.
    pub(crate) group: GroupId,
    /// How much has been sent to it.
    pub(crate) state: MemberState,
    /// Its request has no reply yet, so nothing else may be sent to it.
    pub(crate) awaits_reply: bool,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its monitors by canonical id. An ordered map, because clients choose the ids.
    pub(crate) monitors: BTreeMap<StdArc<[u8]>, MonitorKey>,
    /// Monitors that are behind, in the order of their first pending change.
    pub(crate) dirty: Vec<MonitorKey>,
    /// Its output is drained.
    pub(crate) is_ready: bool,
    /// It is in the list of sessions to flush.
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
