//! The state of one session on its shard.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::held_deliveries::HeldDeliveries;
use super::inbound_frame::InboundFrame;
use crate::message::{DatabaseId, Piece, SessionInfo};
use crate::served_databases::ServedDatabases;

/// Requests of one session that may be in flight at a time.
const IN_FLIGHT_MAX: usize = 1024;

/// Bytes of requests of one session that may be in flight at a time; a single larger one is let
/// through.
const IN_FLIGHT_BYTES_MAX: usize = 4 << 20;

/// Notifications about locks, and replies queued after them, that may wait for fences; a session
/// that exceeds the limit is closed. Other sessions can cause notifications.
pub(super) const NOTIFICATIONS_MAX: usize = 4096;

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Arc<SessionInfo>,
    /// The session's last request except `echo`: method and time, ms.
    pub(super) last_request: Option<(&'static str, u64)>,
    /// Requests received, `echo` included.
    pub(super) requests_received: u64,
    /// Updates of monitors sent.
    pub(super) updates_sent: u64,
    pub(super) in_flight: InFlight,
    /// The database of the requests in flight; `None` if they are fences.
    pub(super) target: Option<DatabaseId>,
    /// Fences were sent for the first waiting message: it is answered once nothing is in flight.
    pub(super) is_fenced: bool,
    /// The first waiting message waits for room, not until nothing is in flight.
    pub(super) is_throttled: bool,
    /// The client has closed its sending side.
    pub(super) has_ended: bool,
    /// The session is about to be closed: its later messages are ignored.
    pub(super) is_closing: bool,
    /// A database that it may have used is gone: its later messages are ignored, so it must be
    /// closed even if it began after the removal, at a shard that had not heard of it yet.
    pub(super) has_lost_database: bool,
    /// Nothing more is sent to the session either.
    pub(super) is_dismissed: bool,
    /// Messages that wait for requests in flight, in order.
    pub(super) waiting: VecDeque<InboundFrame>,
    /// Another thread is parsing a message that precedes the waiting ones.
    pub(super) is_parsing: bool,
    /// The length of that message, bytes; 0 if there is none.
    pub(super) parsing_bytes: usize,
    /// Notifications about locks that wait for fences, and replies queued after them, in order.
    pub(super) notifications: VecDeque<PendingNotification>,
    /// The id of a lock request in flight, on which a relay's source decides.
    pub(super) lock_request: Option<Box<[u8]>>,
    /// The id of a request about history in flight.
    pub(super) history_request: Option<Box<[u8]>>,
    /// The session may have readings of history, which end with it.
    pub(super) has_readings: bool,
    /// Canonical monitor id to the database that has the monitor; ordered, since clients choose the
    /// ids.
    pub(super) monitors: BTreeMap<Arc<[u8]>, DatabaseId>,
    /// Databases that know this session; they are told when it ends.
    pub(super) contacted: Vec<DatabaseId>,
    /// Databases that have sent updates since the output was last drained.
    pub(super) updated_by: Vec<DatabaseId>,
    /// Deliveries that wait for an update of `_Server`.
    pub(super) held: HeldDeliveries,
}

/// A notification about a lock, or a reply queued after one. It may be sent once the databases in
/// `awaits` have sent their updates and all earlier notifications are sent.
#[derive(Debug)]
pub(super) struct PendingNotification {
    pub(super) awaits: Vec<DatabaseId>,
    pub(super) text: Piece,
    /// The text completes a request in flight.
    pub(super) is_reply: bool,
}

/// Requests sent to databases and not complete yet, with their sizes. They complete in the order of
/// sending, except those that block. So a size may be taken off for another request; the number of
/// requests is exact.
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

    /// Whether a throttled session may continue: both figures are at most half their limit.
    pub(super) fn has_room(&self) -> bool {
        self.sizes.len() <= IN_FLIGHT_MAX / 2 && self.bytes <= IN_FLIGHT_BYTES_MAX / 2
    }

    pub(super) fn begin(&mut self, bytes: usize) {
        self.sizes.push_back(bytes);
        self.bytes += bytes;
    }

    pub(super) fn end(&mut self) {
        // A count that is off by one would start the next request while others are still in flight.
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
            requests_received: 0,
            updates_sent: 0,
            in_flight: InFlight::default(),
            target: None,
            is_fenced: false,
            is_throttled: false,
            has_ended: false,
            is_closing: false,
            has_lost_database: false,
            is_dismissed: false,
            waiting: VecDeque::new(),
            is_parsing: false,
            parsing_bytes: 0,
            notifications: VecDeque::new(),
            lock_request: None,
            history_request: None,
            has_readings: false,
            monitors: BTreeMap::new(),
            contacted: Vec::new(),
            updated_by: Vec::new(),
            held: HeldDeliveries::default(),
        }
    }

    /// Whether a request for `database` may be sent now. Sets `is_throttled` if only the limit
    /// forbids it.
    pub(super) fn admits(&mut self, database: DatabaseId) -> bool {
        // Requests in flight all go to one database: replies of two databases could overtake each
        // other.
        let is_next = self.in_flight.is_empty() || self.target == Some(database);
        self.is_throttled = is_next && self.in_flight.is_full();
        is_next && !self.is_throttled
    }

    /// Whether one more request may be in flight. Sets `is_throttled` if not.
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

    /// Bytes of messages that are not complete. Linear in the number of waiting messages.
    pub(super) fn bytes_buffered(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(InboundFrame::len).sum();
        self.in_flight.bytes + self.parsing_bytes + waiting
    }

    /// Whether every message of the client is handled and complete.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty() && !self.is_parsing
    }

    /// Whether the session's later messages are ignored. A session that missed a cancellation is
    /// about to be closed.
    pub(super) fn ignores_input(&self) -> bool {
        self.is_closing || self.info.has_missed_cancellation()
    }

    /// The databases that the session monitors, each once.
    pub(super) fn monitored(&self) -> Vec<DatabaseId> {
        let mut databases: Vec<_> = self.monitors.values().copied().collect();
        databases.sort_unstable();
        databases.dedup();
        databases
    }

    /// Ids of the session's monitors on databases other than this one.
    pub(super) fn monitors_elsewhere(&self, database: DatabaseId) -> Vec<Arc<[u8]>> {
        self.monitors
            .iter()
            .filter(|(_, owner)| **owner != database)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Forgets databases that are no longer served. Their requests in flight are still answered.
    pub(super) fn keep(&mut self, served: &ServedDatabases) {
        self.monitors
            .retain(|_, database| served.contains(*database));
        self.contacted.retain(|database| served.contains(*database));
    }

    /// A fence has been passed: returns the notifications and replies that may be sent now.
    ///
    /// Fences of a database are passed in the order of sending, so this one belongs to the first
    /// notification that awaits the database. A notification that awaits nothing still waits for
    /// those before it.
    pub(super) fn pass_fence(&mut self, database: DatabaseId) -> Vec<PendingNotification> {
        let awaited = self.notifications.iter_mut().find_map(|notification| {
            let position = notification
                .awaits
                .iter()
                .position(|awaited| *awaited == database)?;
            Some((notification, position))
        });
        // Example: notification 1 awaits `a` and `b`, notification 2 awaits `a`. The first fence of
        // `a` that is passed belongs to 1, the second to 2. Notification 2 leaves when both of 1's
        // fences and its own are passed.
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
