//! Bodies so long that the database does not write them itself: results of transactions that select
//! much, updates of many rows.
//!
//! The content of such a body is fixed when it may leave. A job writes the body, and the database
//! delivers it then.
//!
//! Invariants: until then, later messages to the session queue after it, changes for the session
//! merge, and the session's requests wait. Before all monitors are removed (the database is
//! converted or removed), the database writes the bodies itself. A delivered body is complete: no
//! shard waits for one.

use std::sync::Arc;

use corvid_engine::{LongResult, Slice};
use corvid_monitor::{DeferredBody, Frame, Guard, Monitors, NOTHING, SessionId, SharedBody};

use super::outputs::{error_text, reply_around};
use super::{Outputs, Reason};
use crate::client_memory::{COUNTED_BYTES, Charge, exhausted};
use crate::environment::Environment;
use crate::job::Job;
use crate::job::garbage::{self, Garbage};
use crate::message::{Completion, Deliver, Piece, Request};

/// Steps that the database spends on the selections of one transaction (a step looks at a row or
/// writes an atom); some 500 us.
pub(crate) const SELECT_STEPS_MAX: u64 = 8192;

/// The result of a transaction with deferred selections. It has no pieces when it would take too
/// much memory.
#[derive(Debug)]
struct DeferredResult {
    result: LongResult,
    charge: Arc<Charge>,
}

impl DeferredResult {
    /// Charges bytes that were just written. False when the body must end here.
    fn count(&self, bytes: usize, is_repeated: bool) -> bool {
        let may_go_on = self.charge.count_written(bytes, is_repeated);
        if !may_go_on {
            self.charge.give_up();
        }
        may_go_on
    }
}

impl DeferredBody for DeferredResult {
    fn pieces(&self) -> &[Arc<[u8]>] {
        let meter = |bytes, is_repeated| self.count(bytes, is_repeated);
        self.result.text_within(&meter)
    }

    fn advance(&self, slice: &mut Slice) -> usize {
        let meter = |bytes, is_repeated| self.count(bytes, is_repeated);
        self.result.advance(&meter, slice)
    }

    fn is_written(&self) -> bool {
        self.result.is_written()
    }

    fn rows(&self) -> usize {
        self.result.rows()
    }

    fn guard(&self) -> Option<Guard> {
        Some(self.charge.clone())
    }
}

/// Bodies that were written, and are delivered now.
#[derive(Debug, Default)]
pub(crate) struct WrittenBodies {
    /// The requests of long results among them, which show how long they took.
    pub(crate) results: Vec<Request>,
    /// Sessions that wait for no body any longer. The caller resumes them.
    pub(crate) ended: Vec<SessionId>,
}

impl Outputs {
    /// Replies with a deferred result, once it is written. The session has its updates up to the
    /// result.
    pub(crate) fn defer_reply(
        &mut self,
        request: Box<Request>,
        result: LongResult,
        charge: Arc<Charge>,
        monitors: &mut Monitors,
        environment: &Environment,
    ) {
        if environment.is_closed(&request.info) {
            self.free(Garbage::new(garbage::rows(result.rows()), result));
            return;
        }
        let body = SharedBody::Deferred(Arc::new(DeferredResult { result, charge }));
        let mut reply = vec![reply_around(&request.id, body)];
        self.defer_bodies(request.session, &mut reply, monitors, environment);
        // Only updates cancel out.
        assert_eq!(reply.len(), 1, "every request is answered once");
        for reply in reply {
            let completion = Completion::of(&request);
            if is_refused(&reply) {
                self.error(request.session, &request.id, &exhausted(), completion);
                continue;
            }
            self.reply_shared(request.session, reply, completion);
        }
        match self.outboxes.awaiting_body(request.session) {
            Some(outbox) => {
                if let Some((_, source)) = outbox.deliveries.back_mut() {
                    *source = Some(request);
                }
            }
            None => self.count_reply(&request, monitors, environment),
        }
    }

    /// Has the unwritten bodies of these frames written, and blocks the session until they are.
    pub(crate) fn defer_bodies(
        &mut self,
        session: SessionId,
        frames: &mut Vec<Frame>,
        monitors: &mut Monitors,
        environment: &Environment,
    ) {
        // Another thread may have written a body that an earlier job asked for.
        let is_unwritten = |body: &&Arc<dyn DeferredBody>| environment.flag(|| !body.is_written());
        let deferred = frames.iter().filter_map(|frame| frame.body.deferred());
        let bodies: Vec<_> = deferred.filter(is_unwritten).cloned().collect();
        let is_waiting = self.outboxes.is_blocked_by(session, Reason::DeferredReply);
        if bodies.is_empty() {
            if !is_waiting {
                frames.retain_mut(|frame| self.finish_body(frame));
            }
            return;
        }
        if !is_waiting {
            self.outboxes.block(session, Reason::DeferredReply);
            if let Some(outbox) = self.outboxes.awaiting_body(session) {
                outbox.is_ready = monitors.is_ready(session);
            }
            // Changes for the session merge until the body is written.
            monitors.set_ready(session, false);
        }
        let jobs = bodies
            .into_iter()
            .map(|body| Job::DeferredBody(session, body));
        self.jobs.extend(jobs);
    }

    /// Delivers everything that need not wait any longer, because a body is written, perhaps
    /// another session's.
    pub(crate) fn deliver_written(
        &mut self,
        session: SessionId,
        monitors: &mut Monitors,
        environment: &Environment,
    ) -> WrittenBodies {
        let mut written = WrittenBodies::default();
        loop {
            let Some(outbox) = self.outboxes.awaiting_body(session) else {
                return written;
            };
            let first = outbox.deliveries.front();
            if first.is_some_and(|(deliver, _)| environment.flag(|| is_unwritten(deliver))) {
                return written;
            }
            let Some((deliver, request)) = outbox.deliveries.pop_front() else {
                break;
            };
            let result = self.deliver(deliver, request, monitors);
            written.results.extend(result.map(|request| *request));
        }
        // Every delivery has left, so the session's later ones may leave as they come.
        self.end_bodies(session, monitors);
        written.ended.push(session);
        written
    }

    /// Writes and delivers every deferred body at once.
    pub(crate) fn write_all_bodies(&mut self, monitors: &mut Monitors) -> WrittenBodies {
        let mut written = WrittenBodies::default();
        for session in self.outboxes.blocked_by(Reason::DeferredReply) {
            let outbox = self.outboxes.awaiting_body(session);
            let deliveries = outbox.map(|outbox| std::mem::take(&mut outbox.deliveries));
            for (deliver, request) in deliveries.into_iter().flatten() {
                let result = self.deliver(deliver, request, monitors);
                written.results.extend(result.map(|request| *request));
            }
            self.end_bodies(session, monitors);
            written.ended.push(session);
        }
        written
    }

    /// The session waits for no body any longer.
    fn end_bodies(&mut self, session: SessionId, monitors: &mut Monitors) {
        if let Some(outbox) = self.outboxes.awaiting_body(session) {
            monitors.set_ready(session, outbox.is_ready);
            self.outboxes.clear(session, Reason::DeferredReply);
        }
    }

    /// Delivers messages whose bodies are written. Returns the request of a long result among them.
    fn deliver(
        &mut self,
        mut deliver: Deliver,
        request: Option<Box<Request>>,
        monitors: &mut Monitors,
    ) -> Option<Box<Request>> {
        deliver.pieces.retain_mut(|piece| match piece {
            Piece::Long(frame) | Piece::Update(frame) => self.finish_body(frame),
            Piece::Message(_) => true,
        });
        if let Some(request) = &request {
            let mut pieces = deliver.pieces.iter_mut();
            let refused = pieces.find(|piece| piece.frame().is_some_and(is_refused));
            if let Some(piece) = refused {
                *piece = Piece::Message(error_text(&request.id, &exhausted()));
            }
        }
        if deliver.report_drained && deliver.pieces.is_empty() {
            // The shard would not report that an empty delivery is drained.
            self.mark_drained(deliver.session, monitors);
            return request;
        }
        let bytes: usize = deliver.pieces.iter().map(Piece::len).sum();
        let session = deliver.session;
        let is_counted = !deliver.report_drained && bytes >= COUNTED_BYTES;
        if is_counted && self.outboxes.count_unread(session, bytes) {
            deliver.report_drained = true;
            if let Some(outbox) = self.outboxes.awaiting_body(session) {
                outbox.is_ready = false;
            }
        }
        debug_assert!(!is_unwritten(&deliver), "no shard waits for a body");
        self.deliveries.push_back(deliver);
        request
    }

    /// Replaces a frame's deferred body by its bytes, which are written now if they are missing.
    /// False for an update whose changes cancel out.
    fn finish_body(&mut self, frame: &mut Frame) -> bool {
        let Some(source) = frame.body.detach_source() else {
            return true;
        };
        let bytes = garbage::rows(source.rows());
        self.free(Garbage::new(bytes, source));
        !matches!(frame.body.pieces(), [only] if **only == *NOTHING)
    }
}

/// Whether a deferred result was refused because it would have taken too much memory.
fn is_refused(frame: &Frame) -> bool {
    matches!(&frame.body, SharedBody::Guarded(pieces, _) if pieces.is_empty())
}

fn is_unwritten(deliver: &Deliver) -> bool {
    let mut pieces = deliver.pieces.iter();
    pieces.any(|piece| {
        let frame = piece.frame();
        frame.is_some_and(|frame| frame.body.unwritten().is_some())
    })
}
