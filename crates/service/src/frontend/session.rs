//! What a shard remembers of one session.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::message::{DatabaseId, SessionInfo};

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<SessionInfo>,
    /// Requests sent to `target` and not handled yet.
    pub(super) outstanding: u32,
    /// The database that the outstanding requests are for.
    pub(super) target: Option<DatabaseId>,
    /// Fences were sent for the first waiting message, so it may be answered once nothing is outstanding.
    pub(super) fenced: bool,
    /// The client has closed its sending side.
    pub(super) has_ended: bool,
    /// Messages that wait for outstanding requests, in order.
    pub(super) waiting: VecDeque<Vec<u8>>,
    /// Canonical monitor id to the database that keeps it.
    pub(super) monitors: HashMap<Arc<[u8]>, DatabaseId>,
    /// Databases that have seen this session and must hear of its end.
    pub(super) known_to: Vec<DatabaseId>,
    /// Databases that sent updates since the output was last drained.
    pub(super) updated_by: Vec<DatabaseId>,
}

impl Session {
    pub(super) fn new(info: Arc<SessionInfo>) -> Session {
        Session {
            info,
            outstanding: 0,
            target: None,
            fenced: false,
            has_ended: false,
            waiting: VecDeque::new(),
            monitors: HashMap::new(),
            known_to: Vec::new(),
            updated_by: Vec::new(),
        }
    }

    /// Counts a request sent to `database`.
    pub(super) fn begin(&mut self, database: DatabaseId) {
        self.outstanding += 1;
        self.target = Some(database);
        if !self.known_to.contains(&database) {
            self.known_to.push(database);
        }
    }

    /// Ids of monitors on other databases than this one.
    pub(super) fn monitors_elsewhere(&self, database: DatabaseId) -> Vec<Arc<[u8]>> {
        self.monitors
            .iter()
            .filter(|(_, owner)| **owner != database)
            .map(|(id, _)| id.clone())
            .collect()
    }
}
