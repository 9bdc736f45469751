//! Initial contents of monitors that are too long to be written by the database itself.
//!
//! A request that starts such a monitor is executed like any other. A job writes its contents from
//! a snapshot of that moment, and its reply leaves when the contents are written and the commits
//! that they show are stored. Equal requests share one job and its result, until a change shows to
//! them. While contents of an earlier moment are being written, equal requests wait and are then
//! executed anew. So at most one job per distinct request is under way, however many clients ask
//! and however many commits come.
//!
//! Invariants: a session whose request waits here is blocked: its later requests are handled after
//! the reply, in order. Its new monitor gets no update before the reply, and every change since the
//! snapshot after it.

use std::collections::HashMap;
use std::sync::Arc;

use corvid_data::TrustedKeys;
use corvid_monitor::{
    ContentsId, MonitorResult, PendingStart, ResultHead, SessionId, SharedBody, Written,
};

use super::super::Now;
use super::Subscriptions;
use crate::client_memory::Charge;
use crate::environment::Environment;
use crate::job::Job;
use crate::message::{Completion, Request};
use crate::replies::{Contents, Joining, Outputs, Reason};

/// Rows that the database reads itself for the contents of one monitor; some 300 us.
const ROWS_MAX: usize = 1000;

/// How long contents are kept for equal requests.
const CACHED_MS: u64 = 10_000;

/// Requests that wait for initial contents.
#[derive(Debug)]
pub(super) struct InitialContents {
    pending_contents: HashMap<ContentsId, PendingContents, TrustedKeys>,
    /// When kept contents are dropped.
    expire_at_ms: Option<u64>,
    pub(super) rows_max: usize,
}

/// Contents that are being written, or wait for commits to be stored.
#[derive(Debug, Default)]
struct PendingContents {
    /// Entries of the pending queue that refer to them.
    pending: usize,
    /// The result of the job, when it is there: the text, or `None` if there was no room for it.
    written: Option<Option<SharedBody>>,
    /// Monitors whose entries have left the pending queue.
    answers: Vec<PendingReply>,
    /// Equal requests of a later moment.
    later: Vec<Request>,
}

/// A monitor that has joined and lacks nothing but its contents.
#[derive(Debug)]
pub(in super::super) struct PendingReply {
    request: Box<Request>,
    id: Arc<[u8]>,
    head: ResultHead,
}

/// A request whose contents are there, and whose reply has left or is refused now.
#[derive(Debug)]
pub(super) struct AwaitedReply {
    pub(super) request: Box<Request>,
    /// There was no room for the contents, and the monitor has ended. The caller refuses the
    /// request.
    pub(super) is_refused: bool,
}

/// The requests for which contents were written.
#[derive(Debug)]
pub(in super::super) struct WrittenContents {
    /// Monitors that are answered now.
    pub(in super::super) answers: Vec<PendingReply>,
    /// Equal requests of a later moment, which are executed anew.
    pub(in super::super) later: Vec<Request>,
}

impl Default for InitialContents {
    fn default() -> InitialContents {
        InitialContents {
            pending_contents: HashMap::default(),
            expire_at_ms: None,
            rows_max: ROWS_MAX,
        }
    }
}

impl InitialContents {
    /// Whether no request waits.
    pub(super) fn is_idle(&self) -> bool {
        self.pending_contents.is_empty()
    }

    /// A pending entry that refers to these contents has left, or is undone. Returns the contents,
    /// if they are written.
    fn end_pending(&mut self, contents: ContentsId) -> Option<Option<SharedBody>> {
        let pending_contents = self.pending_contents.get_mut(&contents)?;
        // Contents that are given up too early leave a session blocked for ever.
        assert!(
            pending_contents.pending > 0,
            "each pending entry leaves its contents once"
        );
        pending_contents.pending -= 1;
        let written = pending_contents.written.clone()?;
        if pending_contents.pending == 0 {
            self.pending_contents.remove(&contents);
        }
        Some(written)
    }
}

impl Subscriptions {
    /// Sets how many rows the database reads itself for the initial contents of a monitor; contents
    /// of more are left to a job.
    pub(in super::super) fn set_initial_rows_max(&mut self, rows: usize) {
        self.contents.rows_max = rows;
    }

    /// When kept contents, or outcomes of searches, are due to be dropped, monotonic ms.
    pub(in super::super) fn contents_expire_at_ms(&self) -> Option<u64> {
        let absences = self.absences.expire_at_ms();
        self.contents.expire_at_ms.into_iter().chain(absences).min()
    }

    /// A monitor has joined whose reply must wait for its contents.
    pub(super) fn await_contents(
        &mut self,
        request: &Request,
        awaited: PendingStart,
        outputs: &mut Outputs,
        environment: &Environment,
    ) -> Joining {
        let session = request.session;
        outputs.outboxes.block(session, Reason::InitialContents);
        let pending_contents = &mut self.contents.pending_contents;
        pending_contents
            .entry(awaited.contents)
            .or_default()
            .pending += 1;
        let memory = environment.memory();
        let order = awaited.order;
        let job = order
            .map(|order| Job::InitialContents(session, Box::new((order, Charge::new(memory)))));
        outputs.jobs.extend(job);
        Joining {
            id: awaited.id,
            contents: Contents::Awaited(awaited.contents, awaited.head),
        }
    }

    /// Has a request executed anew when these contents are written.
    pub(super) fn retry_after_contents(
        &mut self,
        request: Request,
        contents: ContentsId,
        outputs: &mut Outputs,
    ) {
        let session = request.session;
        outputs.outboxes.block(session, Reason::InitialContents);
        let pending_contents = &mut self.contents.pending_contents;
        pending_contents
            .entry(contents)
            .or_default()
            .later
            .push(request);
    }

    /// Takes the requests that are executed anew when contents are written or a search ends: they
    /// are executed in another way. In order of sessions.
    pub(in super::super) fn take_waiting_for_contents(
        &mut self,
        outputs: &mut Outputs,
    ) -> Vec<Request> {
        let mut taken = Vec::new();
        for pending_contents in self.contents.pending_contents.values_mut() {
            taken.append(&mut pending_contents.later);
        }
        taken.extend(self.absences.take_waiting());
        // A closed session waits for nothing.
        let outboxes = &mut outputs.outboxes;
        taken.retain(|request| outboxes.is_blocked_by(request.session, Reason::InitialContents));
        for request in &taken {
            outboxes.clear(request.session, Reason::InitialContents);
        }
        taken.sort_unstable_by_key(|request| request.session);
        taken
    }

    /// The commits that a monitor's contents show are stored: replies, now or when the contents are
    /// written. Returns the request if it has waited for contents that are written; the caller ends
    /// the wait of its session.
    pub(super) fn release_joined(
        &mut self,
        request: Box<Request>,
        joining: Joining,
        outputs: &mut Outputs,
        environment: &Environment,
    ) -> Option<AwaitedReply> {
        let Joining { id, contents } = joining;
        let is_there = self.monitors.mark_contents_stored(request.session, &id);
        match contents {
            Contents::Written(result) => {
                if is_there {
                    self.answer_joined(&request, &id, result, outputs, environment);
                }
                None
            }
            Contents::Awaited(contents, head) => {
                let written = self.contents.end_pending(contents);
                let reply = PendingReply { request, id, head };
                if let Some(text) = written {
                    return Some(self.answer_awaited(reply, text.as_ref(), outputs, environment));
                }
                let pending_contents = self.contents.pending_contents.get_mut(&contents);
                if let Some(pending_contents) = pending_contents.filter(|_| is_there) {
                    pending_contents.answers.push(reply);
                }
                None
            }
        }
    }

    /// Undoes a monitor that has joined.
    pub(in super::super) fn undo_joined(
        &mut self,
        session: SessionId,
        joining: &Joining,
        outputs: &mut Outputs,
    ) {
        if self.monitors.cancel(session, &joining.id) {
            self.quota.remove(session, &joining.id);
        }
        if let Contents::Awaited(contents, _) = &joining.contents {
            self.contents.end_pending(*contents);
            outputs.outboxes.clear(session, Reason::InitialContents);
        }
    }

    /// Contents are written. Returns the requests that wait for them, if any are known.
    pub(in super::super) fn end_contents(
        &mut self,
        now: Now,
        written: &Written,
    ) -> Option<WrittenContents> {
        let pending_contents = self.contents.pending_contents.get_mut(&written.id)?;
        assert!(
            pending_contents.written.is_none(),
            "one job writes the contents"
        );
        let answers = std::mem::take(&mut pending_contents.answers);
        let later = std::mem::take(&mut pending_contents.later);
        pending_contents.written = Some(written.text.clone());
        // Entries that are still in the queue find the text when they leave.
        if pending_contents.pending == 0 {
            self.contents.pending_contents.remove(&written.id);
        }
        self.monitors.written(written);
        self.contents.expire_at_ms = Some(now.mono_ms + CACHED_MS);
        Some(WrittenContents { answers, later })
    }

    /// Replies with contents that are written; without a text there was no room for them.
    pub(super) fn answer_awaited(
        &mut self,
        reply: PendingReply,
        text: Option<&SharedBody>,
        outputs: &mut Outputs,
        environment: &Environment,
    ) -> AwaitedReply {
        let PendingReply { request, id, head } = reply;
        let session = request.session;
        let mut is_refused = false;
        match text {
            Some(text) if self.monitors.contains(session, &id) => {
                let result = head.with(text.clone());
                self.answer_joined(&request, &id, result, outputs, environment);
            }
            None if self.monitors.cancel(session, &id) => {
                self.quota.remove(session, &id);
                is_refused = true;
            }
            _ => {}
        }
        AwaitedReply {
            request,
            is_refused,
        }
    }

    fn answer_joined(
        &mut self,
        request: &Request,
        id: &Arc<[u8]>,
        result: MonitorResult,
        outputs: &mut Outputs,
        environment: &Environment,
    ) {
        let session = request.session;
        self.send_updates(session, outputs, environment);
        let reply = result.into_reply(&request.id);
        let completion = Completion::MonitorAdded(id.clone());
        outputs.reply_shared(session, reply, completion);
        outputs.count_reply(request, &mut self.monitors, environment);
        self.monitors.mark_replied(session, id);
    }

    /// Takes all requests that wait for contents, because all monitors are about to be removed:
    /// they are executed anew afterwards.
    pub(in super::super) fn take_awaiting_contents(&mut self) -> Vec<Request> {
        let pending_contents = std::mem::take(&mut self.contents.pending_contents);
        let mut pending_contents: Vec<_> = pending_contents.into_iter().collect();
        pending_contents.sort_unstable_by_key(|(contents, _)| *contents);
        let mut requests = Vec::new();
        for (_, pending_contents) in pending_contents {
            assert_eq!(pending_contents.pending, 0, "everything is stored");
            let answers = pending_contents.answers.into_iter();
            requests.extend(answers.map(|reply| *reply.request));
            requests.extend(pending_contents.later);
        }
        requests.extend(self.absences.take_waiting());
        self.absences.abandon();
        requests
    }

    /// Drops contents that were kept for long enough.
    pub(in super::super) fn expire_contents(&mut self, now: Now) {
        self.absences.expire(now);
        let contents = &mut self.contents;
        if contents.expire_at_ms.is_some_and(|at| at <= now.mono_ms) {
            contents.expire_at_ms = None;
            self.monitors.drop_contents();
        }
    }
}
