//! Backpressure on sessions that do not read their replies.
//!
//! Requests arrive in batches, and some replies are ten thousand times as long as their requests.
//! So long replies are counted. A session that has been sent more than a megabyte of them is
//! blocked until its shard reports that it has read everything: at most that much and one reply
//! more waits for a client that does not read, however many requests it has sent. Short replies are
//! bounded by the number of requests in flight.
//!
//! Invariant: the delivery that crosses the limit asks for a report (as updates do). So a session
//! that is blocked here continues when its output is drained, when it is closed, or when the
//! database is removed. When a client closes without having read, its unexecuted requests are
//! dropped, as if they had never been read from the socket, where the reference leaves them.

use corvid_monitor::{Monitors, SessionId};

use super::{Outputs, Reason};
use crate::client_memory::COUNTED_BYTES;
use crate::environment::Environment;
use crate::message::{Piece, Request};

impl Outputs {
    /// Counts the reply that was just composed for a request. If it crosses the limit, blocks the
    /// session until its shard reports that it has read everything.
    pub(crate) fn count_reply(
        &mut self,
        request: &Request,
        monitors: &mut Monitors,
        environment: &Environment,
    ) {
        // No shard reports for a closed session.
        if environment.is_closed(&request.info) {
            return;
        }
        // A deferred reply is counted when it is delivered.
        let session = request.session;
        if self.outboxes.is_blocked_by(session, Reason::DeferredReply) {
            return;
        }
        let Some(reply) = self.deliveries.back_mut() else {
            return;
        };
        // The report of another session would end the wait of this one, or nobody would.
        assert_eq!(
            reply.session, session,
            "a reply is counted right after it was composed"
        );
        let bytes: usize = reply.pieces.iter().map(Piece::len).sum();
        if bytes >= COUNTED_BYTES && self.outboxes.count_unread(session, bytes) {
            reply.report_drained = true;
            monitors.set_ready(session, false);
        }
    }

    /// The session has read everything, and is ready for updates, now or when its bodies are
    /// written. The caller resumes the session if it was blocked for that.
    pub(crate) fn mark_drained(&mut self, session: SessionId, monitors: &mut Monitors) {
        self.outboxes.clear_unread(session);
        match self.outboxes.awaiting_body(session) {
            Some(outbox) => outbox.is_ready = true,
            None => monitors.set_ready(session, true),
        }
    }
}
