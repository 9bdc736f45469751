//! Sessions that have replies waiting and do not read them.
//!
//! Requests arrive in batches, and some answers are ten thousand times as long as their requests. So long replies are counted, and when
//! a session has been sent more than a megabyte of them it is blocked until its shard reports that it has read everything: what
//! waits for a client that does not read is that much and one reply more, however many requests it has sent ahead. Short replies are
//! bounded by the number of requests that may be under way.
//!
//! Invariant: the delivery that crosses the line asks for a report (as updates do), so a session that is blocked here goes on when its
//! output is drained, when it is closed, or when the database goes. What a client has sent ahead when it closes without having read is
//! dropped, as if it had never been taken from the socket, where the reference leaves it.

use corvid_monitor::SessionId;

use super::DatabaseService;
use super::outbox::Reason;
use crate::message::{Piece, Request};
use crate::reply_memory::COUNTED_BYTES;

impl DatabaseService {
    /// Counts the reply that was just composed for a request, and asks for a report of its having been read if that is due.
    pub(super) fn count_reply(&mut self, request: &Request) {
        // Nobody reports for a session that is gone.
        if self.tape.flag(|| request.info.is_closed()) {
            return;
        }
        // It is counted when it is delivered.
        let session = request.session;
        if self
            .outputs
            .outboxes
            .is_blocked_by(session, Reason::DeferredReply)
        {
            return;
        }
        let Some(reply) = self.outputs.deliveries.back_mut() else {
            return;
        };
        let bytes: usize = reply.pieces.iter().map(Piece::len).sum();
        if bytes >= COUNTED_BYTES && self.outputs.outboxes.count_unread(session, bytes) {
            reply.updates = true;
            self.monitors.set_ready(session, false);
        }
    }

    /// The session has read everything: it goes on if it was blocked for that.
    pub(super) fn output_read(&mut self, session: SessionId) {
        self.outputs.outboxes.clear_unread(session);
        let sent = self.outputs.outboxes.take_unblocked(session);
        self.queue_first(sent);
    }

    /// Lets everybody go on, for nothing will be reported any more.
    pub(super) fn unblock_all_unread_sessions(&mut self) {
        for session in self.outputs.outboxes.blocked_by(Reason::ReplyBackpressure) {
            self.output_read(session);
        }
    }
}
