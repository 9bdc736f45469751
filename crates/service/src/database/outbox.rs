//! What waits of each session, and why: requests that are not executed yet, and what is said to it behind a text that is still being
//! written.
//!
//! A session's requests are executed as they come unless something [blocks](Reason) it; then they wait here, in order. So does what is said
//! to it from a text on that is being written. Nobody else waits for either.
//!
//! Invariant: an outbox exists while there is something to remember of its session. A session may be blocked for several reasons; its requests
//! go on when the last one is gone, before everything that has not been looked at.

use std::collections::{HashMap, VecDeque};

use corvid_data::TrustedKeys;
use corvid_monitor::SessionId;

use crate::job::garbage::{self, Garbage};
use crate::message::{Deliver, Piece, Request, ToDatabase};

/// A session is sent this much of long replies, and one reply more, before it must have read it, bytes.
const UNREAD_BYTES_MAX: usize = 1 << 20;

/// Why the requests of a session are not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Reason {
    /// Initial contents of a monitor of it are being written.
    InitialContents = 1,
    /// A text for it is being written: a long result, or an update of many rows.
    DeferredReply = 2,
    /// It has been sent as much as may wait unread.
    ReplyBackpressure = 4,
    /// It has sent a request about its monitors while another one changes them that may not leave yet.
    MonitorChange = 8,
}

/// What waits of one session.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The bits of its reasons.
    reasons: u8,
    /// What it has sent since it was blocked.
    pub(super) requests: VecDeque<ToDatabase>,
    /// Begins with a text that is being written. Of results with the request, to tell how long it took.
    pub(super) deliveries: VecDeque<(Deliver, Option<Box<Request>>)>,
    /// The session's output is drained: after `deliveries` it is to be told of changes.
    pub(super) is_ready: bool,
    /// Of long replies, since it was last known to have read everything.
    unread_bytes: usize,
    /// Pending entries that change its monitors when they leave.
    monitor_changes: usize,
}

/// The outboxes of the sessions that have one.
#[derive(Debug, Default)]
pub(super) struct Outboxes(HashMap<SessionId, Outbox, TrustedKeys>);

impl Outbox {
    fn is_idle(&self) -> bool {
        self.reasons == 0
            && self.requests.is_empty()
            && self.deliveries.is_empty()
            && self.unread_bytes == 0
            && self.monitor_changes == 0
    }

    /// Nobody is to be told any more. What a session is told until its texts are written is bounded by its requests under way.
    pub(super) fn into_garbage(self) -> Garbage {
        let pieces = self
            .deliveries
            .iter()
            .flat_map(|(deliver, _)| &deliver.pieces);
        let bytes = pieces.map(|piece| match piece {
            Piece::Update(frame) => frame
                .body
                .unwritten()
                .map_or(0, |text| garbage::rows(text.rows())),
            Piece::Message(text) => text.len(),
        });
        Garbage::new(bytes.sum(), self)
    }

    /// Whether it is blocked for this reason.
    pub(super) fn is_blocked_by(&self, reason: Reason) -> bool {
        self.reasons & reason as u8 != 0
    }
}

impl Outboxes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a session is blocked for this reason.
    pub(super) fn is_blocked_by(&self, session: SessionId, reason: Reason) -> bool {
        let found = self.0.get(&session);
        found.is_some_and(|outbox| outbox.is_blocked_by(reason))
    }

    /// Whether requests of a session wait here.
    pub(super) fn has_requests(&self, session: SessionId) -> bool {
        let found = self.0.get(&session);
        found.is_some_and(|outbox| !outbox.requests.is_empty())
    }

    /// Whether an input must wait because its session is blocked.
    pub(super) fn must_queue(&self, input: &ToDatabase) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let outbox = sender(input).and_then(|session| self.0.get(&session));
        outbox.is_some_and(|outbox| outbox.reasons != 0)
    }

    /// Keeps an input for which that is so.
    pub(super) fn push_request(&mut self, input: ToDatabase) {
        if let Some(session) = sender(&input) {
            self.0.entry(session).or_default().requests.push_back(input);
        }
    }

    /// Keeps an input before everything else that its session has sent.
    pub(super) fn put_back(&mut self, input: ToDatabase) {
        if let Some(session) = sender(&input) {
            let outbox = self.0.entry(session).or_default();
            outbox.requests.push_front(input);
        }
    }

    /// Blocks a session.
    pub(super) fn block(&mut self, session: SessionId, reason: Reason) {
        self.0.entry(session).or_default().reasons |= reason as u8;
    }

    /// Takes a reason away; [`Outboxes::take_unblocked`] must follow, when what the session has sent may be executed.
    pub(super) fn clear(&mut self, session: SessionId, reason: Reason) {
        if let Some(outbox) = self.0.get_mut(&session) {
            outbox.reasons &= !(reason as u8);
        }
    }

    /// What a session has sent, if nothing blocks it any more.
    pub(super) fn take_unblocked(&mut self, session: SessionId) -> VecDeque<ToDatabase> {
        let Some(outbox) = self.0.get_mut(&session) else {
            return VecDeque::new();
        };
        if outbox.reasons != 0 {
            return VecDeque::new();
        }
        let requests = std::mem::take(&mut outbox.requests);
        if outbox.is_idle() {
            self.0.remove(&session);
        }
        requests
    }

    /// The session is closed.
    pub(super) fn remove(&mut self, session: SessionId) -> Option<Outbox> {
        self.0.remove(&session)
    }

    /// Of a session that waits for a text.
    pub(super) fn awaiting_body(&mut self, session: SessionId) -> Option<&mut Outbox> {
        let outbox = self.0.get_mut(&session)?;
        outbox
            .is_blocked_by(Reason::DeferredReply)
            .then_some(outbox)
    }

    /// Keeps what is said to a session that waits for a text; gives it back if it does not.
    pub(super) fn push_delivery(&mut self, deliver: Deliver) -> Option<Deliver> {
        if self.0.is_empty() {
            return Some(deliver);
        }
        let Some(outbox) = self.awaiting_body(deliver.session) else {
            return Some(deliver);
        };
        // It is drained again when this is.
        outbox.is_ready &= !deliver.updates;
        outbox.deliveries.push_back((deliver, None));
        None
    }

    /// The sessions that are blocked for this reason, in order.
    pub(super) fn blocked_by(&self, reason: Reason) -> Vec<SessionId> {
        let found = self.0.iter();
        let mut sessions: Vec<_> = found
            .filter(|(_, outbox)| outbox.is_blocked_by(reason))
            .map(|(session, _)| *session)
            .collect();
        sessions.sort_unstable();
        sessions
    }

    /// Counts a long reply. True when it is to be heard that it has been read: until then the session is blocked.
    pub(super) fn count_unread(&mut self, session: SessionId, bytes: usize) -> bool {
        let outbox = self.0.entry(session).or_default();
        outbox.unread_bytes += bytes;
        if outbox.unread_bytes <= UNREAD_BYTES_MAX {
            return false;
        }
        outbox.unread_bytes = 0;
        outbox.reasons |= Reason::ReplyBackpressure as u8;
        true
    }

    /// A session has read everything. [`Outboxes::take_unblocked`] must follow.
    pub(super) fn clear_unread(&mut self, session: SessionId) {
        if let Some(outbox) = self.0.get_mut(&session) {
            outbox.unread_bytes = 0;
            outbox.reasons &= !(Reason::ReplyBackpressure as u8);
        }
    }

    /// Whether a pending entry changes the session's monitors.
    pub(super) fn changes_monitors(&self, session: SessionId) -> bool {
        let found = self.0.get(&session);
        found.is_some_and(|outbox| outbox.monitor_changes > 0)
    }

    /// A pending entry changes the session's monitors when it leaves.
    pub(super) fn begin_monitor_change(&mut self, session: SessionId) {
        self.0.entry(session).or_default().monitor_changes += 1;
    }

    /// It has left, or is undone. [`Outboxes::take_unblocked`] must follow.
    pub(super) fn end_monitor_change(&mut self, session: SessionId) {
        if let Some(outbox) = self.0.get_mut(&session) {
            outbox.monitor_changes = outbox.monitor_changes.saturating_sub(1);
            if outbox.monitor_changes == 0 {
                outbox.reasons &= !(Reason::MonitorChange as u8);
            }
        }
    }
}

/// The session whose requests an input must not overtake.
fn sender(input: &ToDatabase) -> Option<SessionId> {
    match input {
        ToDatabase::Request(request) => Some(request.session),
        ToDatabase::Fence(session, _) | ToDatabase::Cancel(session, _) => Some(*session),
        _ => None,
    }
}
