//! The state of one session on its shard.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::held_deliveries::HeldDeliveries;
use super::inbound_frame::InboundFrame;
use crate::message::{DatabaseId, Piece, SessionInfo};
use crate::served_databases::ServedDatabases;

/// Requests of one session that may be in flight together.
const IN_FLIGHT_MAX: usize = 1024;

/// Bytes of requests of one session that may be in flight together; a single larger one is let through.
const IN_FLIGHT_BYTES_MAX: usize = 4 << 20;

/// Notifications about locks, and replies behind them, that may wait for databases; a session with more is closed. Other sessions cause
/// notifications.
pub(super) const NOTIFICATIONS_MAX: usize = 4096;

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<SessionInfo>,
    /// Its last request except `echo`: method and time, ms.
    pub(super) last_request: Option<(&'static str, u64)>,
    pub(super) in_flight: InFlight,
    /// The database that the requests in flight are for; `None`: they are fences.
    pub(super) target: Option<DatabaseId>,
    /// Fences were sent for the first waiting message, so it may be answered once nothing is in flight.
    pub(super) is_fenced: bool,
    /// The first waiting message waits for room, not until nothing is in flight.
    pub(super) is_throttled: bool,
    /// The client has closed its sending side.
    pub(super) has_ended: bool,
    /// It is to be closed: its later messages are ignored.
    pub(super) is_closing: bool,
    /// Nothing more is sent to it either.
    pub(super) is_dismissed: bool,
    /// Messages that wait for requests in flight, in order.
    pub(super) waiting: VecDeque<InboundFrame>,
    /// Another thread is parsing a message that precedes them.
    pub(super) is_parsing: bool,
    /// The length of that message, bytes; 0 when there is none.
    pub(super) parsing_bytes: usize,
    /// Notifications about locks that wait for fences, in order, and replies behind them.
    pub(super) notifications: VecDeque<PendingNotification>,
    /// The id of a request for a lock which is in flight because the source of a relay decides.
    pub(super) lock_request: Option<Box<[u8]>>,
    /// Canonical monitor id to the database that keeps it; ordered, as clients choose the ids.
    pub(super) monitors: BTreeMap<Arc<[u8]>, DatabaseId>,
    /// Databases that have seen this session; they are sent its end.
    pub(super) contacted: Vec<DatabaseId>,
    /// Databases that sent updates since the output was last drained.
    pub(super) updated_by: Vec<DatabaseId>,
    /// Deliveries that wait for an update of `_Server`.
    pub(super) held: HeldDeliveries,
}

/// A notification, or the reply to a request about a lock. It may be sent once these databases have sent their updates and the earlier ones
/// are sent.
#[derive(Debug)]
pub(super) struct PendingNotification {
    pub(super) awaits: Vec<DatabaseId>,
    pub(super) text: Piece,
    /// It completes a request in flight.
    pub(super) is_reply: bool,
}

/// Requests sent to a database and not complete yet, with their sizes. They complete in the order of sending, except those that block. So a
/// size may be counted for another request; the count is exact.
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

    /// Whether the next request must wait.
    fn is_full(&self) -> bool {
        self.sizes.len() >= IN_FLIGHT_MAX || self.bytes >= IN_FLIGHT_BYTES_MAX
    }

    /// Whether a session that waits for room may continue.
    pub(super) fn has_room(&self) -> bool {
        self.sizes.len() <= IN_FLIGHT_MAX / 2 && self.bytes <= IN_FLIGHT_BYTES_MAX / 2
    }

    pub(super) fn begin(&mut self, bytes: usize) {
        self.sizes.push_back(bytes);
        self.bytes += bytes;
    }

    pub(super) fn end(&mut self) {
        // The next request would be handled before the ones under way.
        assert!(!self.is_empty(), "a request completes once");
        self.bytes -= self.sizes.pop_front().unwrap_or(0);
        assert!(
            !self.is_empty() || self.bytes == 0,
            "the bytes in flight are those of the requests"
        );
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
            lock_request: None,
            monitors: BTreeMap::new(),
            contacted: Vec::new(),
            updated_by: Vec::new(),
            held: HeldDeliveries::default(),
        }
    }

    /// Whether a request for `database` may be sent now. Remembers if only room is missing.
    pub(super) fn admits(&mut self, database: DatabaseId) -> bool {
        let is_next = self.in_flight.is_empty() || self.target == Some(database);
        self.is_throttled = is_next && self.in_flight.is_full();
        is_next && !self.is_throttled
    }

    /// Whether something may be sent to databases behind the requests in flight. Remembers if not.
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

    /// Bytes of its messages that are not complete. Linear in the number of those that wait.
    pub(super) fn bytes_buffered(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(InboundFrame::len).sum();
        self.in_flight.bytes + self.parsing_bytes + waiting
    }

    /// Whether all messages of the client are handled and complete.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty() && !self.is_parsing
    }

    /// Whether its later messages are ignored. A session that missed a cancellation is about to be closed.
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

    /// Drops databases that are not served any more. Their requests in flight are answered all the same.
    pub(super) fn keep(&mut self, served: &ServedDatabases) {
        self.monitors
            .retain(|_, database| served.contains(*database));
        self.contacted.retain(|database| served.contains(*database));
    }

    /// A fence has been passed: returns the notifications and replies that may be sent now.
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
