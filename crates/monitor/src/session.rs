//! What is known of one session: its monitors, and which of them have something to tell.
//!
//! Invariant: a monitor is in `dirty` once exactly while it is behind. Owned by `Monitors`.

use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

use crate::group::{GroupId, MonitorKey, Place};
use crate::{SessionId, Version};

/// One monitor.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// Whose it is.
    pub(crate) session: SessionId,
    /// Canonical.
    pub(crate) id: StdArc<[u8]>,
    /// The kind of its notifications.
    pub(crate) version: Version,
    /// With whom it shares them.
    pub(crate) group: GroupId,
    /// What it has been told.
    pub(crate) place: Place,
    /// Its request is not answered yet: until then it is told nothing.
    pub(crate) is_awaited: bool,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its monitors by canonical id; ordered, as clients choose the ids.
    pub(crate) monitors: BTreeMap<StdArc<[u8]>, MonitorKey>,
    /// Those that are behind, in order of their first untold change.
    pub(crate) dirty: Vec<MonitorKey>,
    /// Its output is drained.
    pub(crate) is_ready: bool,
    /// It stands in the list of sessions to be asked for.
    pub(crate) is_listed: bool,
}

impl Session {
    /// No monitors, ready.
    pub(crate) fn new() -> Session {
        Session {
            monitors: BTreeMap::new(),
            dirty: Vec::new(),
            is_ready: true,
            is_listed: false,
        }
    }

    /// Whether it is to be put in the list now; the caller then does so.
    pub(crate) fn list(&mut self) -> bool {
        let list = self.is_ready && !self.is_listed && !self.dirty.is_empty();
        self.is_listed |= list;
        list
    }
}
