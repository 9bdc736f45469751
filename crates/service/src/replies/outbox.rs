//! The outbox of a session that is blocked: requests that are not executed yet, and deliveries
//! queued after a body that is still being written.
//!
//! A session's requests are executed as they come unless a [`Reason`] blocks it; then they wait
//! here, in order. So do deliveries to a session from the first one on whose body is being written.
//! No other session waits for either.
//!
//! Invariant: an outbox exists while it holds something. A session may be blocked for several
//! reasons; its requests continue when the last reason is cleared, before all inputs that arrive
//! later.

use std::collections::{HashMap, VecDeque};

use corvid_data::TrustedKeys;
use corvid_monitor::SessionId;

use crate::job::garbage::{self, Garbage};
use crate::message::{Deliver, Piece, Request, ToDatabase};

/// Bytes of long replies that a session may get, with one more reply, before it must have read
/// them.
const UNREAD_BYTES_MAX: usize = 1 << 20;

/// A reason for not executing the requests of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reason {
    /// Initial contents of one of its monitors are being written.
    InitialContents = 1,
    /// A body for it is being written: a long result, or an update of many rows.
    DeferredReply = 2,
    /// It has as many unread replies as it may have.
    ReplyBackpressure = 4,
    /// It has sent a request about its monitors while a pending entry changes them.
    MonitorChange = 8,
    /// Earlier transactions of it depend on the rest of the cluster.
    Cluster = 16,
}

/// The requests and deliveries of one session that wait.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The bits of its reasons.
    reasons: u8,
    /// Requests since it was blocked.
    pub(crate) requests: VecDeque<ToDatabase>,
    /// The first one has a body that is being written. A result has its request, to report how long
    /// it took.
    pub(crate) deliveries: VecDeque<(Deliver, Option<Box<Request>>)>,
    /// The session is ready for updates after `deliveries`.
    pub(crate) is_ready: bool,
    /// The length of its long replies since it was last known to have read everything.
    unread_bytes: usize,
    /// Pending entries that change its monitors when they leave.
    monitor_changes: usize,
    /// Transactions that depend on the rest of the cluster, except blocked ones.
    forwards: usize,
}

/// The outboxes of the sessions that have one.
#[derive(Debug, Default)]
pub(crate) struct Outboxes(HashMap<SessionId, Outbox, TrustedKeys>);

impl Outbox {
    fn is_idle(&self) -> bool {
        self.reasons == 0
            && self.requests.is_empty()
            && self.deliveries.is_empty()
            && self.unread_bytes == 0
            && self.monitor_changes == 0
            && self.forwards == 0
    }

    /// Frees the deliveries of a closed session. They are bounded by its requests in flight.
    pub(crate) fn into_garbage(self) -> Garbage {
        let pieces = self
            .deliveries
            .iter()
            .flat_map(|(deliver, _)| &deliver.pieces);
        let bytes = pieces.map(|piece| match piece {
            Piece::Long(frame) | Piece::Update(frame) => frame
                .body
                .unwritten()
                .map_or(0, |text| garbage::rows(text.rows())),
            Piece::Message(text) => text.len(),
        });
        Garbage::new(bytes.sum(), self)
    }

    /// Whether the session is blocked for this reason.
    pub(crate) fn is_blocked_by(&self, reason: Reason) -> bool {
        self.reasons & reason as u8 != 0
    }
}

impl Outboxes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a session is blocked for this reason.
    pub(crate) fn is_blocked_by(&self, session: SessionId, reason: Reason) -> bool {
        let found = self.0.get(&session);
        found.is_some_and(|outbox| outbox.is_blocked_by(reason))
    }

    /// Whether a session is blocked for another reason than its transactions that depend on the
    /// rest of the cluster.
    pub(crate) fn is_blocked_except_by_cluster(&self, session: SessionId) -> bool {
        let found = self.0.get(&session);
        found.is_some_and(|outbox| outbox.reasons & !(Reason::Cluster as u8) != 0)
    }

    /// Whether requests of a session wait.
    pub(crate) fn has_requests(&self, session: SessionId) -> bool {
        let found = self.0.get(&session);
        found.is_some_and(|outbox| !outbox.requests.is_empty())
    }

    /// Whether an input must wait because its session is blocked.
    pub(crate) fn must_queue(&self, input: &ToDatabase) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let outbox = sender(input).and_then(|session| self.0.get(&session));
        // A fence asks for updates of what is stored, and waits for no leader.
        let passed = match input {
            ToDatabase::Fence(..) => Reason::Cluster as u8,
            _ => 0,
        };
        outbox.is_some_and(|outbox| outbox.reasons & !passed != 0)
    }

    /// Keeps an input of a blocked session.
    pub(crate) fn push_request(&mut self, input: ToDatabase) {
        let outbox = sender(&input).and_then(|session| self.0.get_mut(&session));
        // Nothing else takes the input out again: it would be lost.
        assert!(
            outbox.as_ref().is_some_and(|outbox| outbox.reasons != 0),
            "only inputs of blocked sessions wait"
        );
        if let Some(outbox) = outbox {
            outbox.requests.push_back(input);
        }
    }

    /// Keeps an input before all others of its session.
    pub(crate) fn put_back(&mut self, input: ToDatabase) {
        let session = sender(&input);
        assert!(
            session.is_some(),
            "only inputs of sessions wait in outboxes"
        );
        if let Some(session) = session {
            let outbox = self.0.entry(session).or_default();
            outbox.requests.push_front(input);
        }
    }

    /// Blocks a session.
    pub(crate) fn block(&mut self, session: SessionId, reason: Reason) {
        self.0.entry(session).or_default().reasons |= reason as u8;
    }

    /// Clears a reason. [`Outboxes::take_unblocked`] must follow when the session's requests may be
    /// executed.
    pub(crate) fn clear(&mut self, session: SessionId, reason: Reason) {
        if let Some(outbox) = self.0.get_mut(&session) {
            // Later messages would overtake those that wait for a body.
            assert!(
                reason != Reason::DeferredReply || outbox.deliveries.is_empty(),
                "a session is blocked while its deliveries wait for a body"
            );
            outbox.reasons &= !(reason as u8);
        }
    }

    /// Takes the requests of a session, if nothing blocks it.
    pub(crate) fn take_unblocked(&mut self, session: SessionId) -> VecDeque<ToDatabase> {
        let Some(outbox) = self.0.get_mut(&session) else {
            return VecDeque::new();
        };
        if outbox.reasons != 0 {
            return VecDeque::new();
        }
        assert!(
            outbox.deliveries.is_empty(),
            "a request is executed after the deliveries before it"
        );
        let requests = std::mem::take(&mut outbox.requests);
        if outbox.is_idle() {
            self.0.remove(&session);
        }
        requests
    }

    /// Removes the outbox of a closed session.
    pub(crate) fn remove(&mut self, session: SessionId) -> Option<Outbox> {
        self.0.remove(&session)
    }

    /// The outbox of a session that waits for a body.
    pub(crate) fn awaiting_body(&mut self, session: SessionId) -> Option<&mut Outbox> {
        let outbox = self.0.get_mut(&session)?;
        outbox
            .is_blocked_by(Reason::DeferredReply)
            .then_some(outbox)
    }

    /// Keeps a delivery to a session that waits for a body; otherwise returns it.
    pub(crate) fn push_delivery(&mut self, deliver: Deliver) -> Option<Deliver> {
        if self.0.is_empty() {
            return Some(deliver);
        }
        let Some(outbox) = self.awaiting_body(deliver.session) else {
            let outbox = self.0.get(&deliver.session);
            assert!(
                outbox.is_none_or(|outbox| outbox.deliveries.is_empty()),
                "deliveries of a session leave in order"
            );
            return Some(deliver);
        };
        // An update makes the session unready until it is drained.
        outbox.is_ready &= !deliver.report_drained;
        outbox.deliveries.push_back((deliver, None));
        None
    }

    /// The sessions that are blocked for this reason, in order.
    pub(crate) fn blocked_by(&self, reason: Reason) -> Vec<SessionId> {
        let found = self.0.iter();
        let mut sessions: Vec<_> = found
            .filter(|(_, outbox)| outbox.is_blocked_by(reason))
            .map(|(session, _)| *session)
            .collect();
        sessions.sort_unstable();
        sessions
    }

    /// Counts a long reply. True when the session is blocked from now on, until its shard reports
    /// that the reply has been read.
    pub(crate) fn count_unread(&mut self, session: SessionId, bytes: usize) -> bool {
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
    pub(crate) fn clear_unread(&mut self, session: SessionId) {
        if let Some(outbox) = self.0.get_mut(&session) {
            outbox.unread_bytes = 0;
            outbox.reasons &= !(Reason::ReplyBackpressure as u8);
        }
    }

    /// Whether a pending entry changes the session's monitors.
    pub(crate) fn changes_monitors(&self, session: SessionId) -> bool {
        let found = self.0.get(&session);
        found.is_some_and(|outbox| outbox.monitor_changes > 0)
    }

    /// Whether transactions of the session depend on the rest of the cluster.
    pub(crate) fn has_forwards(&self, session: SessionId) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let found = self.0.get(&session);
        found.is_some_and(|outbox| outbox.forwards > 0)
    }

    /// A transaction of the session depends on the rest of the cluster.
    pub(crate) fn begin_forward(&mut self, session: SessionId) {
        self.0.entry(session).or_default().forwards += 1;
    }

    /// Such a transaction has ended. [`Outboxes::take_unblocked`] must follow.
    pub(crate) fn end_forward(&mut self, session: SessionId) {
        if let Some(outbox) = self.0.get_mut(&session) {
            outbox.forwards = outbox.forwards.saturating_sub(1);
            if outbox.forwards == 0 {
                outbox.reasons &= !(Reason::Cluster as u8);
            }
        }
    }

    /// A pending entry changes the session's monitors when it leaves.
    pub(crate) fn begin_monitor_change(&mut self, session: SessionId) {
        self.0.entry(session).or_default().monitor_changes += 1;
    }

    /// Checks each outbox, between two inputs. O(outboxes): for simulations.
    ///
    /// # Panics
    /// An outbox contradicts itself.
    pub(crate) fn check(&self) {
        for (session, outbox) in &self.0 {
            let is_blocked = |reason| outbox.is_blocked_by(reason);
            assert!(!outbox.is_idle(), "{session:?}: an outbox holds something");
            assert!(
                outbox.requests.is_empty() || outbox.reasons != 0,
                "{session:?}: requests wait for a reason"
            );
            assert!(
                outbox.deliveries.is_empty() || is_blocked(Reason::DeferredReply),
                "{session:?}: deliveries wait for a body"
            );
            assert!(
                outbox.monitor_changes > 0 || !is_blocked(Reason::MonitorChange),
                "{session:?}: a pending entry changes its monitors"
            );
            assert!(
                outbox.forwards > 0 || !is_blocked(Reason::Cluster),
                "{session:?}: a transaction depends on the rest of the cluster"
            );
            assert!(
                outbox.unread_bytes <= UNREAD_BYTES_MAX,
                "{session:?}: more unread bytes block it"
            );
        }
    }

    /// Such an entry has left, or is undone. [`Outboxes::take_unblocked`] must follow.
    pub(crate) fn end_monitor_change(&mut self, session: SessionId) {
        if let Some(outbox) = self.0.get_mut(&session) {
            outbox.monitor_changes = outbox.monitor_changes.saturating_sub(1);
            if outbox.monitor_changes == 0 {
                outbox.reasons &= !(Reason::MonitorChange as u8);
            }
        }
    }
}

/// The inputs of a closed session; there are at most as many as it may have in flight.
pub(crate) fn inputs_as_garbage(inputs: VecDeque<ToDatabase>) -> Garbage {
    let bytes = inputs.iter().map(|input| match input {
        ToDatabase::Request(request) => request.frame.len(),
        _ => 0,
    });
    Garbage::new(bytes.sum(), inputs)
}

/// The session whose requests an input must not overtake.
fn sender(input: &ToDatabase) -> Option<SessionId> {
    match input {
        ToDatabase::Request(request) => Some(request.session),
        ToDatabase::Fence(session, _) | ToDatabase::Cancel(session, _) => Some(*session),
        _ => None,
    }
}
