//! Results of transactions that select so much that the database does not write them itself.
//!
//! The engine leaves long selections out of such a result ([`corvid_engine::LongResult`]); when it may leave, it is written as a job,
//! away from the database, and the reply follows. Which rows it shows was settled when the transaction was executed.
//!
//! Invariants: from that moment until the reply its session is told nothing, and what it sends waits, so it sees the order that it
//! would see if the result had been written at once. Whatever must be said to the session all the same (another of its transactions
//! stops waiting, the database is converted or removed) has the result written on the spot first.

use std::collections::HashMap;
use std::sync::Arc;

use corvid_engine::LongResult;
use corvid_monitor::SessionId;
use foldhash::fast::FixedState;

use super::{DatabaseService, Now};
use crate::job::{Job, JobNumber};
use crate::message::Request;

/// Steps that the database spends on the selections of one transaction (looks at a row, writes an atom); some 500 us.
const SELECT_STEPS_MAX: u64 = 8192;

/// Results that are being written.
#[derive(Debug)]
pub(super) struct LongResults {
    under_way: HashMap<SessionId, UnderWay, FixedState>,
    pub(super) select_steps_max: u64,
}

#[derive(Debug)]
struct UnderWay {
    number: JobNumber,
    request: Request,
    result: Arc<LongResult>,
    /// The session's output is drained: it is to be told of changes once it has the reply.
    is_ready: bool,
}

impl Default for LongResults {
    fn default() -> LongResults {
        LongResults {
            under_way: HashMap::default(),
            select_steps_max: SELECT_STEPS_MAX,
        }
    }
}

impl LongResults {
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }
}

impl DatabaseService {
    /// Sets how many steps the database spends on the selections of one transaction; what takes more is left to the worker.
    pub fn set_select_steps_max(&mut self, steps: u64) {
        self.long_results.select_steps_max = steps;
    }

    /// Has a result that may leave now written and then sent.
    pub(super) fn write_away(&mut self, request: Request, result: LongResult) {
        let session = request.session;
        self.send_updates(session);
        if request.info.is_closed() {
            self.outputs.free(result);
            return;
        }
        let result = Arc::new(result);
        if self.held.contains(session) {
            // It waits for first contents besides.
            self.outputs.reply_long(&request, result.text());
            self.count_reply(&request);
            self.outputs.free(result);
            return;
        }
        self.last_job += 1;
        let number = JobNumber(self.last_job);
        let under_way = UnderWay {
            number,
            request,
            result: result.clone(),
            is_ready: self.monitors.is_ready(session),
        };
        self.long_results.under_way.insert(session, under_way);
        self.held.hold(session);
        self.monitors.set_ready(session, false);
        self.outputs.jobs.push(Job::Result {
            number,
            session,
            result,
        });
    }

    /// A job is done, perhaps in vain.
    pub(super) fn result_written(
        &mut self,
        now: Now,
        number: JobNumber,
        session: SessionId,
        result: Arc<LongResult>,
    ) {
        let under_way = self.long_results.under_way.get(&session);
        if under_way.is_some_and(|under_way| under_way.number == number) {
            self.slow.set_now(now);
            self.complete(session);
        }
        self.outputs.free(result);
    }

    /// The session's output is drained.
    pub(super) fn drained(&mut self, session: SessionId) {
        self.has_read(session);
        match self.long_results.under_way.get_mut(&session) {
            Some(under_way) => under_way.is_ready = true,
            None => self.monitors.set_ready(session, true),
        }
    }

    /// Replies with the session's result that is being written, if there is one. Writes or awaits what is not written yet.
    pub(super) fn complete(&mut self, session: SessionId) {
        let Some(under_way) = self.long_results.under_way.remove(&session) else {
            return;
        };
        let UnderWay {
            request,
            result,
            is_ready,
            ..
        } = under_way;
        self.note_slow_result(&request);
        self.outputs.reply_long(&request, result.text());
        self.outputs.free(result);
        self.monitors.set_ready(session, is_ready);
        self.count_reply(&request);
        let sent = self.held.let_go(session).unwrap_or_default();
        self.go_on_with(sent);
    }

    /// The session is closed.
    pub(super) fn drop_result(&mut self, session: SessionId) {
        if let Some(under_way) = self.long_results.under_way.remove(&session) {
            self.outputs.free(under_way.result);
        }
    }

    /// Replies with every result that is being written.
    pub(super) fn complete_all(&mut self) {
        let mut sessions: Vec<_> = self.long_results.under_way.keys().copied().collect();
        sessions.sort_unstable();
        for session in sessions {
            self.complete(session);
        }
    }
}
