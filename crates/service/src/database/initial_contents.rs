//! Initial contents of monitors that are too long to be written by the database itself.
//!
//! A request that starts such a monitor is executed like any other. A job writes its contents from a snapshot of that moment, and its reply
//! leaves when the contents are written and the commits that they show are stored. Equal requests share one job and its result, until a
//! change shows to them. While contents of an earlier moment are being written, equal requests wait and are then executed anew. So at most
//! one job per distinct request is under way, however many clients ask and however many commits come.
//!
//! Invariants: a session whose request waits here is blocked: its later requests are handled after the reply, in order. Its new monitor
//! gets no update before the reply, and every change since the snapshot after it.

use std::collections::HashMap;
use std::sync::Arc;

use corvid_data::TrustedKeys;
use corvid_monitor::{ContentsId, MonitorResult, PendingStart, ResultHead, SharedBody, Written};

use super::outbox::Reason;
use super::pending::Answer;
use super::{DatabaseService, Now};
use crate::client_memory::{Charge, exhausted};
use crate::job::Job;
use crate::message::{Completion, Request, ToDatabase};
use crate::recording::Setting;

/// Rows that the database reads itself for the contents of one monitor; some 300 us.
const ROWS_MAX: usize = 1000;

/// How long contents are kept for equal requests.
const CACHED_MS: u64 = 10_000;

/// A monitor that has joined, and whose reply has not left.
#[derive(Debug)]
pub(super) struct Joining {
    /// Canonical JSON of its id.
    pub(super) id: Arc<[u8]>,
    /// Its initial contents.
    pub(super) contents: Contents,
}

/// The initial contents of a monitor.
#[derive(Debug)]
pub(super) enum Contents {
    /// All of them.
    Written(MonitorResult),
    /// A job is writing them.
    Awaited(ContentsId, ResultHead),
}

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
struct PendingReply {
    request: Box<Request>,
    id: Arc<[u8]>,
    head: ResultHead,
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

    /// When kept contents are due to be dropped.
    pub(super) fn next_deadline_ms(&self) -> Option<u64> {
        self.expire_at_ms
    }

    /// A pending entry that refers to these contents has left, or is undone. Returns the contents, if they are written.
    fn end_pending(&mut self, contents: ContentsId) -> Option<Option<SharedBody>> {
        let pending_contents = self.pending_contents.get_mut(&contents)?;
        pending_contents.pending -= 1;
        let written = pending_contents.written.clone()?;
        if pending_contents.pending == 0 {
            self.pending_contents.remove(&contents);
        }
        Some(written)
    }
}

impl DatabaseService {
    /// Sets how many rows the database reads itself for the initial contents of a monitor; contents of more are left to a job.
    pub fn set_initial_rows_max(&mut self, rows: usize) {
        self.tape.setting(Setting::InitialRowsMax, rows as u64);
        self.initial_contents.rows_max = rows;
    }

    /// A monitor has joined whose reply must wait for its contents.
    pub(super) fn await_contents(&mut self, request: &Request, awaited: PendingStart) -> Joining {
        let session = request.session;
        self.outputs
            .outboxes
            .block(session, Reason::InitialContents);
        let pending_contents = &mut self.initial_contents.pending_contents;
        pending_contents
            .entry(awaited.contents)
            .or_default()
            .pending += 1;
        let memory = &self.outputs.client_memory;
        let order = awaited.order;
        let job = order
            .map(|order| Job::InitialContents(session, Box::new((order, Charge::new(memory)))));
        self.outputs.jobs.extend(job);
        Joining {
            id: awaited.id,
            contents: Contents::Awaited(awaited.contents, awaited.head),
        }
    }

    /// Handles a request anew when these contents are written.
    pub(super) fn retry_after_contents(&mut self, request: Request, contents: ContentsId) {
        let session = request.session;
        self.outputs
            .outboxes
            .block(session, Reason::InitialContents);
        let pending_contents = &mut self.initial_contents.pending_contents;
        pending_contents
            .entry(contents)
            .or_default()
            .later
            .push(request);
    }

    /// Takes the requests that are handled anew when contents are written: they are handled in another way. In order of sessions.
    pub(super) fn take_waiting_for_contents(&mut self) -> Vec<Request> {
        let mut taken = Vec::new();
        for pending_contents in self.initial_contents.pending_contents.values_mut() {
            taken.append(&mut pending_contents.later);
        }
        // A closed session waits for nothing.
        let outboxes = &mut self.outputs.outboxes;
        taken.retain(|request| outboxes.is_blocked_by(request.session, Reason::InitialContents));
        for request in &taken {
            outboxes.clear(request.session, Reason::InitialContents);
        }
        taken.sort_unstable_by_key(|request| request.session);
        taken
    }

    /// The commits that a monitor's contents show are stored: replies, now or when the contents are written.
    pub(super) fn release_joined(&mut self, request: Box<Request>, joining: Joining) {
        let Joining { id, contents } = joining;
        let is_there = self.monitors.mark_contents_stored(request.session, &id);
        match contents {
            Contents::Written(result) if is_there => self.answer_joined(&request, &id, result),
            Contents::Written(_) => {}
            Contents::Awaited(contents, head) => {
                let written = self.initial_contents.end_pending(contents);
                let reply = PendingReply { request, id, head };
                match written {
                    Some(text) => {
                        self.answer_awaited(&reply, text.as_ref());
                        self.unblock(reply.request.session, Reason::InitialContents);
                    }
                    None => {
                        let pending_contents =
                            self.initial_contents.pending_contents.get_mut(&contents);
                        if let Some(pending_contents) = pending_contents.filter(|_| is_there) {
                            pending_contents.answers.push(reply);
                        }
                    }
                }
            }
        }
    }

    /// Undoes a monitor that has joined.
    pub(super) fn undo_joined(&mut self, request: &Request, joining: &Joining) {
        let session = request.session;
        if self.monitors.cancel(session, &joining.id) {
            self.monitor_quota.remove(session, &joining.id);
        }
        if let Contents::Awaited(contents, _) = &joining.contents {
            self.initial_contents.end_pending(*contents);
            self.outputs
                .outboxes
                .clear(session, Reason::InitialContents);
        }
    }

    /// Contents are written: replies to every request that waits for them, and resumes their sessions.
    pub(super) fn contents_written(&mut self, now: Now, written: &Written) {
        let Some(pending_contents) = self.initial_contents.pending_contents.get_mut(&written.id)
        else {
            return;
        };
        let answers = std::mem::take(&mut pending_contents.answers);
        let later = std::mem::take(&mut pending_contents.later);
        pending_contents.written = Some(written.text.clone());
        if pending_contents.pending == 0 {
            self.initial_contents.pending_contents.remove(&written.id);
        }
        self.monitors.written(written);
        self.initial_contents.expire_at_ms = Some(now.mono_ms + CACHED_MS);
        let mut inputs = Vec::new();
        for reply in answers {
            self.answer_awaited(&reply, written.text.as_ref());
            let session = reply.request.session;
            let outboxes = &mut self.outputs.outboxes;
            outboxes.clear(session, Reason::InitialContents);
            inputs.extend(self.take_unblocked(session));
        }
        self.requeue(later, &mut inputs);
        self.queue_first(inputs);
        self.resume(now);
    }

    fn answer_awaited(&mut self, reply: &PendingReply, text: Option<&SharedBody>) {
        let PendingReply { request, id, head } = reply;
        let session = request.session;
        match text {
            Some(text) if self.monitors.contains(session, id) => {
                self.answer_joined(request, id, head.clone().with(text.clone()));
            }
            None if self.monitors.cancel(session, id) => {
                self.monitor_quota.remove(session, id);
                self.fail(request, &exhausted());
            }
            _ => {}
        }
    }

    fn answer_joined(&mut self, request: &Request, id: &Arc<[u8]>, result: MonitorResult) {
        let session = request.session;
        self.send_updates(session);
        let reply = result.into_reply(&request.id);
        let completion = Completion::MonitorAdded(id.clone());
        self.outputs.reply_shared(session, reply, completion);
        self.count_reply(request);
        self.monitors.mark_replied(session, id);
    }

    /// Before all monitors are removed: has requests without a reply handled anew afterwards.
    pub(super) fn abandon_initial_contents(&mut self) {
        self.write_all_bodies();
        let pending_contents = std::mem::take(&mut self.initial_contents.pending_contents);
        let mut pending_contents: Vec<_> = pending_contents.into_iter().collect();
        pending_contents.sort_unstable_by_key(|(contents, _)| *contents);
        let mut inputs = Vec::new();
        for (_, pending_contents) in pending_contents {
            debug_assert_eq!(pending_contents.pending, 0, "everything is stored");
            let answers = pending_contents.answers.into_iter();
            self.requeue(answers.map(|reply| *reply.request), &mut inputs);
            self.requeue(pending_contents.later, &mut inputs);
        }
        self.queue_first(inputs);
    }

    /// Has requests that wait here handled anew, each before later ones of its session. Requests of closed sessions are dropped.
    fn requeue(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        inputs: &mut Vec<ToDatabase>,
    ) {
        for request in requests {
            let session = request.session;
            let outboxes = &mut self.outputs.outboxes;
            if !outboxes.is_blocked_by(session, Reason::InitialContents) {
                continue;
            }
            outboxes.clear(session, Reason::InitialContents);
            if let Some(request) = self.keep_anew(Box::new(request)) {
                let outboxes = &mut self.outputs.outboxes;
                outboxes.put_back(ToDatabase::Request(request));
                inputs.extend(self.take_unblocked(session));
            }
        }
    }

    /// Drops contents that were kept for long enough.
    pub(super) fn expire_contents(&mut self, now: Now) {
        let contents = &mut self.initial_contents;
        if contents.expire_at_ms.is_some_and(|at| at <= now.mono_ms) {
            contents.expire_at_ms = None;
            self.monitors.drop_contents();
        }
    }
}

impl Joining {
    /// Bytes of contents that this entry keeps in memory.
    pub(super) fn len(&self) -> usize {
        match &self.contents {
            Contents::Written(result) => result.whole_len(),
            Contents::Awaited(..) => 0,
        }
    }

    /// The answer for contents that are written already.
    pub(super) fn written(id: Arc<[u8]>, result: MonitorResult) -> Answer {
        let contents = Contents::Written(result);
        Answer::Joined(Box::new(Joining { id, contents }))
    }
}
