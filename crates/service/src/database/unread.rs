//! Sessions that have replies waiting and do not read them.
//!
//! Requests arrive in batches, and some answers are ten thousand times as long as their requests. So long replies are counted, and when
//! a session has been sent more than [`UNREAD_BYTES_MAX`] of them it is held until its shard reports that it has read everything: what
//! waits for a client that does not read is that much and one reply more, however many requests it has sent ahead. Short replies are
//! bounded by the number of requests that may be under way.
//!
//! Invariant: the delivery that crosses the line asks for a report (as updates do), so a session that is held here is let go when its
//! output is drained, when it is closed, or when the database goes. What a client has sent ahead when it closes without having read is
//! dropped, as if it had never been taken from the socket, where the reference leaves it.

use std::collections::{HashMap, HashSet};

use corvid_monitor::SessionId;
use foldhash::fast::FixedState;

use super::DatabaseService;
use crate::message::{Piece, Request};

/// Shorter replies are not counted, bytes.
const COUNTED_BYTES: usize = 4 << 10;

/// A session is sent this much, and one reply more, before it must have read it, bytes.
const UNREAD_BYTES_MAX: usize = 1 << 20;

/// What sessions were sent since they were last known to have read everything.
#[derive(Debug, Default)]
pub(super) struct Unread {
    sent: HashMap<SessionId, usize, FixedState>,
    /// Those that have just been sent too much, and are to be held.
    overdue: Vec<SessionId>,
    held: HashSet<SessionId, FixedState>,
}

impl Unread {
    /// Counts a reply. True when it is to be heard that it has been read.
    pub(super) fn count(&mut self, session: SessionId, pieces: &[Piece]) -> bool {
        let bytes: usize = pieces.iter().map(Piece::len).sum();
        if bytes < COUNTED_BYTES {
            return false;
        }
        let sent = self.sent.entry(session).or_default();
        *sent += bytes;
        let is_overdue = *sent > UNREAD_BYTES_MAX;
        if is_overdue {
            self.sent.remove(&session);
            self.overdue.push(session);
        }
        is_overdue
    }

    /// Whether the session is held for what it has not read.
    pub(super) fn holds(&self, session: SessionId) -> bool {
        self.held.contains(&session)
    }

    /// Forgets a session; whether it was held.
    pub(super) fn forget(&mut self, session: SessionId) -> bool {
        self.sent.remove(&session);
        self.overdue.retain(|found| *found != session);
        self.held.remove(&session)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.overdue.is_empty() && self.held.is_empty()
    }
}

impl DatabaseService {
    /// Counts the reply that was just composed for a request, and asks for a report of its having been read if that is due.
    pub(super) fn count_reply(&mut self, request: &Request) {
        // Nobody reports for a session that is gone.
        if request.info.is_closed() {
            return;
        }
        // It is counted when it is delivered.
        if self.outputs.late.contains(request.session) {
            return;
        }
        let Some(reply) = self.outputs.deliveries.last_mut() else {
            return;
        };
        if self.unread.count(request.session, &reply.pieces) {
            reply.updates = true;
            self.monitors.set_ready(request.session, false);
        }
    }

    /// Holds the sessions that have just been sent too much. To be called before a request is looked at.
    pub(super) fn hold_unread(&mut self) {
        while let Some(session) = self.unread.overdue.pop() {
            // Who is held for another answer is counted anew when that is sent.
            if !self.held.contains(session) {
                self.held.hold(session);
                self.unread.held.insert(session);
            }
        }
    }

    /// The session has read everything: it goes on if it was held for that.
    pub(super) fn has_read(&mut self, session: SessionId) {
        // Perhaps before its next request, for which it would have been held.
        if self.unread.forget(session) {
            let sent = self.held.let_go(session).unwrap_or_default();
            self.go_on_with(sent);
        }
    }

    /// Lets everybody go on, for nothing will be reported any more.
    pub(super) fn let_unread_go(&mut self) {
        self.unread.overdue.clear();
        let mut sessions: Vec<_> = self.unread.held.iter().copied().collect();
        sessions.sort_unstable();
        for session in sessions {
            self.has_read(session);
        }
    }
}
