//! What a shard remembers of one session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::inbound_frame::InboundFrame;
use crate::message::{DatabaseId, SessionInfo};
use crate::served_databases::ServedDatabases;

/// Requests of one session that may be under way together.
const IN_FLIGHT_MAX: usize = 1024;

/// Bytes of requests of one session that may be under way together; a single larger one is let through.
const IN_FLIGHT_BYTES_MAX: usize = 4 << 20;

/// Notices about locks, and replies behind them, that may wait for the updates of databases; a session with more is closed. Others cause them.
pub(super) const NOTIFICATIONS_MAX: usize = 4096;

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<SessionInfo>,
    /// Its last request that was acted upon, `echo` apart: method and time, ms.
    pub(super) last_request: Option<(&'static str, u64)>,
    pub(super) in_flight: InFlight,
    /// The database that the requests under way are for; `None`: they are fences.
    pub(super) target: Option<DatabaseId>,
    /// Fences were sent for the first waiting message, so it may be answered once nothing is under way.
    pub(super) is_fenced: bool,
    /// The first waiting message waits for room, not for everything under way.
    pub(super) is_throttled: bool,
    /// The client has closed its sending side.
    pub(super) has_ended: bool,
    /// It is to be closed: nothing more that it sends is looked at.
    pub(super) is_closing: bool,
    /// Besides, nothing more is sent to it.
    pub(super) is_dismissed: bool,
    /// Messages that wait for requests under way, in order.
    pub(super) waiting: VecDeque<InboundFrame>,
    /// A text of it that comes before those is being read elsewhere.
    pub(super) is_parsing: bool,
    /// Its length, bytes; 0 when there is none.
    pub(super) parsing_bytes: usize,
    /// Notices about locks that wait for fences, in order, and replies behind them.
    pub(super) notifications: VecDeque<PendingNotification>,
    /// Canonical monitor id to the database that keeps it; ordered, as clients choose the ids.
    pub(super) monitors: BTreeMap<Arc<[u8]>, DatabaseId>,
    /// Databases that have seen this session and must hear of its end.
    pub(super) contacted: Vec<DatabaseId>,
    /// Databases that sent updates since the output was last drained.
    pub(super) updated_by: Vec<DatabaseId>,
}

/// A notice, or the reply to a request about a lock, that may be sent once these databases have sent their updates and what stands
/// before it is sent.
#[derive(Debug)]
pub(super) struct PendingNotification {
    pub(super) awaits: Vec<DatabaseId>,
    pub(super) text: Vec<u8>,
    /// A request under way ends with it.
    pub(super) is_reply: bool,
}

/// Requests sent to a database and not handled yet, with their sizes. They are handled in the order of sending but for those that
/// block, so a size may be taken for another's; the count is exact.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl InFlight {
    pub(super) fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether another one must wait.
    fn is_full(&self) -> bool {
        self.sizes.len() >= IN_FLIGHT_MAX || self.bytes >= IN_FLIGHT_BYTES_MAX
    }

    /// Whether a session that had to wait for room is to go on.
    pub(super) fn has_room(&self) -> bool {
        self.sizes.len() <= IN_FLIGHT_MAX / 2 && self.bytes <= IN_FLIGHT_BYTES_MAX / 2
    }

    pub(super) fn begin(&mut self, bytes: usize) {
        self.sizes.push_back(bytes);
        self.bytes += bytes;
    }

    pub(super) fn end(&mut self) {
        debug_assert!(!self.is_empty(), "a request is completion once");
        self.bytes -= self.sizes.pop_front().unwrap_or(0);
    }
}

impl Session {
    pub(super) fn new(info: Arc<SessionInfo>) -> Session {
        Session {
            info,
            last_request: None,
            in_flight: InFlight::default(),
            target: None,
            is_fenced: false,
            is_throttled: false,
            has_ended: false,
            is_closing: false,
            is_dismissed: false,
            waiting: VecDeque::new(),
            is_parsing: false,
            parsing_bytes: 0,
            notifications: VecDeque::new(),
            monitors: BTreeMap::new(),
            contacted: Vec::new(),
            updated_by: Vec::new(),
        }
    }

    /// Whether a request for `database` may be sent now. If not for want of room, takes note of that.
    pub(super) fn admits(&mut self, database: DatabaseId) -> bool {
        let is_next = self.in_flight.is_empty() || self.target == Some(database);
        self.is_throttled = is_next && self.in_flight.is_full();
        is_next && !self.is_throttled
    }

    /// Whether something may be sent to databases that goes behind what is under way. If not, takes note of that.
    pub(super) fn has_room(&mut self) -> bool {
        self.is_throttled = self.in_flight.is_full();
        !self.is_throttled
    }

    /// Counts a request sent to `database`.
    pub(super) fn begin(&mut self, database: DatabaseId, bytes: usize) {
        self.in_flight.begin(bytes);
        self.target = Some(database);
        if !self.contacted.contains(&database) {
            self.contacted.push(database);
        }
    }

    /// Bytes of its messages that are not handled. Linear in the number of those that wait.
    pub(super) fn bytes_buffered(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(InboundFrame::len).sum();
        self.in_flight.bytes + self.parsing_bytes + waiting
    }

    /// Whether everything that the client sent is done with.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty() && !self.is_parsing
    }

    /// Whether nothing more that it sends is looked at. A session that lost something untold is about to be closed.
    pub(super) fn ignores_input(&self) -> bool {
        self.is_closing || self.info.has_missed_cancellation()
    }

    /// Databases that it monitors, each once.
    pub(super) fn monitored(&self) -> Vec<DatabaseId> {
        let mut databases: Vec<_> = self.monitors.values().copied().collect();
        databases.sort_unstable();
        databases.dedup();
        databases
    }

    /// Ids of monitors on other databases than this one.
    pub(super) fn monitors_elsewhere(&self, database: DatabaseId) -> Vec<Arc<[u8]>> {
        self.monitors
            .iter()
            .filter(|(_, owner)| **owner != database)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Forgets databases that are not served any more. Requests for them that are under way are answered all the same.
    pub(super) fn keep(&mut self, served: &ServedDatabases) {
        self.monitors
            .retain(|_, database| served.contains(*database));
        self.contacted.retain(|database| served.contains(*database));
    }

    /// Takes note of a fence that a notice waited for; returns the notices that may be sent now.
    pub(super) fn pass_fence(&mut self, database: DatabaseId) -> Vec<PendingNotification> {
        let awaited = self.notifications.iter_mut().find_map(|notification| {
            let position = notification
                .awaits
                .iter()
                .position(|awaited| *awaited == database)?;
            Some((notification, position))
        });
        if let Some((notification, position)) = awaited {
            notification.awaits.swap_remove(position);
        }
        let mut passed = Vec::new();
        while self
            .notifications
            .front()
            .is_some_and(|notification| notification.awaits.is_empty())
        {
            passed.extend(self.notifications.pop_front());
        }
        passed
    }
}
