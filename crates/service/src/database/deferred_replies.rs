//! Bodies so long that the database does not write them itself: results of transactions that select much, updates of many rows.
//!
//! The content of such a body is fixed when it may leave. A job writes the body, and the database delivers it then.
//!
//! Invariants: until then, later messages to the session queue behind it, changes for the session merge, and the session's requests wait.
//! Before all monitors are removed (the database is converted or removed), the database writes the bodies itself. A delivered body is
//! complete: no shard waits for one.

use std::sync::Arc;

use corvid_engine::{LongResult, Slice};
use corvid_monitor::{DeferredBody, Frame, Guard, NOTHING, SessionId, SharedBody};

use super::outbox::Reason;
use super::outputs::{error_text, reply_around};
use super::release::completion_of;
use super::{DatabaseService, Now};
use crate::client_memory::{COUNTED_BYTES, Charge, exhausted};
use crate::job::Job;
use crate::job::garbage::{self, Garbage};
use crate::message::{Deliver, Piece, Request};
use crate::recording::Setting;

/// Steps that the database spends on the selections of one transaction (a step looks at a row or writes an atom); some 500 us.
pub(super) const SELECT_STEPS_MAX: u64 = 8192;

/// The result of a transaction with deferred selections. It has no pieces when it would take too much memory.
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

impl DatabaseService {
    /// Sets how many steps the database spends on the selections of one transaction; the rest is deferred to a job.
    pub fn set_select_steps_max(&mut self, steps: u64) {
        self.tape.setting(Setting::SelectStepsMax, steps);
        self.select_steps_max = steps;
    }

    /// Sets how many changed rows an update may have before its body is deferred to a job. A step of
    /// a long update gets the text of so many rows of 1 KiB, and 4 KiB at least.
    pub fn set_update_rows_max(&mut self, rows: usize) {
        // With shorter steps a slow client would get a message for each commit that it has missed.
        const STEP_ROWS_MIN: usize = 4;
        const STEP_BYTES_PER_ROW: u64 = 1024;
        self.tape.setting(Setting::UpdateRowsMax, rows as u64);
        self.monitors.set_update_rows_max(rows);
        let rows = rows.max(STEP_ROWS_MIN) as u64;
        self.monitors
            .set_step_bytes(rows.saturating_mul(STEP_BYTES_PER_ROW));
    }

    /// Replies with a deferred result, once it is written.
    pub(super) fn defer_reply(
        &mut self,
        request: Box<Request>,
        result: LongResult,
        charge: Arc<Charge>,
    ) {
        self.send_updates(request.session);
        if self.tape.flag(|| request.info.is_closed()) {
            self.outputs
                .free(Garbage::new(garbage::rows(result.rows()), result));
            return;
        }
        let body = SharedBody::Deferred(Arc::new(DeferredResult { result, charge }));
        let mut reply = vec![reply_around(&request.id, body)];
        self.defer_bodies(request.session, &mut reply);
        for reply in reply {
            let completion = completion_of(&request);
            if is_refused(&reply) {
                let (session, id) = (request.session, &request.id);
                self.outputs.error(session, id, &exhausted(), completion);
                continue;
            }
            self.outputs
                .reply_shared(request.session, reply, completion);
        }
        match self.outputs.outboxes.awaiting_body(request.session) {
            Some(outbox) => {
                if let Some((_, source)) = outbox.deliveries.back_mut() {
                    *source = Some(request);
                }
            }
            None => self.count_reply(&request),
        }
    }

    /// Has the unwritten bodies of these frames written, and blocks the session until they are.
    pub(super) fn defer_bodies(&mut self, session: SessionId, frames: &mut Vec<Frame>) {
        // Another thread may have written a body that an earlier job asked for.
        let is_unwritten = |body: &&Arc<dyn DeferredBody>| self.tape.flag(|| !body.is_written());
        let deferred = frames.iter().filter_map(|frame| frame.body.deferred());
        let bodies: Vec<_> = deferred.filter(is_unwritten).cloned().collect();
        let outboxes = &mut self.outputs.outboxes;
        let is_waiting = outboxes.is_blocked_by(session, Reason::DeferredReply);
        if bodies.is_empty() {
            if !is_waiting {
                frames.retain_mut(|frame| self.finish_body(frame));
            }
            return;
        }
        if !is_waiting {
            outboxes.block(session, Reason::DeferredReply);
            if let Some(outbox) = outboxes.awaiting_body(session) {
                outbox.is_ready = self.monitors.is_ready(session);
            }
            self.monitors.set_ready(session, false);
        }
        let jobs = bodies
            .into_iter()
            .map(|body| Job::DeferredBody(session, body));
        self.outputs.jobs.extend(jobs);
    }

    /// The session's output is drained.
    pub(super) fn drained(&mut self, session: SessionId) {
        self.output_read(session);
        match self.outputs.outboxes.awaiting_body(session) {
            Some(outbox) => outbox.is_ready = true,
            None => self.monitors.set_ready(session, true),
        }
    }

    /// A body is written, perhaps another session's: delivers what need not wait any longer.
    pub(super) fn body_written(&mut self, now: Now, session: SessionId) {
        self.slow.set_now(now);
        loop {
            let Some(outbox) = self.outputs.outboxes.awaiting_body(session) else {
                return;
            };
            let first = outbox.deliveries.front();
            if first.is_some_and(|(deliver, _)| self.tape.flag(|| is_unwritten(deliver))) {
                return;
            }
            let Some((deliver, request)) = outbox.deliveries.pop_front() else {
                break;
            };
            self.deliver(deliver, request);
        }
        self.end_bodies(session);
    }

    /// Writes every deferred body at once.
    pub(super) fn write_all_bodies(&mut self) {
        for session in self.outputs.outboxes.blocked_by(Reason::DeferredReply) {
            let outbox = self.outputs.outboxes.awaiting_body(session);
            let deliveries = outbox.map(|outbox| std::mem::take(&mut outbox.deliveries));
            for (deliver, request) in deliveries.into_iter().flatten() {
                self.deliver(deliver, request);
            }
            self.end_bodies(session);
        }
    }

    /// The session waits for no body any longer.
    fn end_bodies(&mut self, session: SessionId) {
        if let Some(outbox) = self.outputs.outboxes.awaiting_body(session) {
            let is_ready = outbox.is_ready;
            self.monitors.set_ready(session, is_ready);
            self.unblock(session, Reason::DeferredReply);
        }
    }

    fn deliver(&mut self, mut deliver: Deliver, request: Option<Box<Request>>) {
        deliver.pieces.retain_mut(|piece| match piece {
            Piece::Long(frame) | Piece::Update(frame) => self.finish_body(frame),
            Piece::Message(_) => true,
        });
        if let Some(request) = request {
            let mut pieces = deliver.pieces.iter_mut();
            let refused = pieces.find(|piece| piece.frame().is_some_and(is_refused));
            if let Some(piece) = refused {
                *piece = Piece::Message(error_text(&request.id, &exhausted()));
            }
            self.report_slow_result(&request);
        }
        if deliver.report_drained && deliver.pieces.is_empty() {
            // The shard would not report that an empty delivery is drained.
            self.drained(deliver.session);
            return;
        }
        let bytes: usize = deliver.pieces.iter().map(Piece::len).sum();
        let (outboxes, session) = (&mut self.outputs.outboxes, deliver.session);
        let is_counted = !deliver.report_drained && bytes >= COUNTED_BYTES;
        if is_counted && outboxes.count_unread(session, bytes) {
            deliver.report_drained = true;
            if let Some(outbox) = outboxes.awaiting_body(session) {
                outbox.is_ready = false;
            }
        }
        self.outputs.deliveries.push_back(deliver);
    }

    /// Replaces a frame's deferred body by its bytes, which are written now if they are missing. False for an update whose changes cancel
    /// out.
    fn finish_body(&mut self, frame: &mut Frame) -> bool {
        let Some(source) = frame.body.detach_source() else {
            return true;
        };
        let bytes = garbage::rows(source.rows());
        self.outputs.free(Garbage::new(bytes, source));
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
