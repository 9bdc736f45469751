//! First contents of monitors that are too long to be written by the database itself.
//!
//! A request that starts such a monitor is taken at a settled moment, its contents are ordered as a job on a snapshot of that
//! moment, and the reply leaves when they are there. Equal requests share one job, and, until a change shows to them, its
//! outcome. While contents of an earlier moment are being written, requests for the same put themselves off until then, so
//! however many clients ask and however many commits come, at most one job per distinct request is under way.
//!
//! Invariants: a session whose request waits here is held, whatever it sends meanwhile is handled after the reply, in order;
//! its new monitor is told nothing before the reply and everything after the snapshot from then on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use corvid_monitor::{Awaited, ContentsId, ResultHead, Written};
use foldhash::fast::FixedState;

use super::{DatabaseService, Now};
use crate::job::Job;
use crate::message::{Handled, Request, ToDatabase};
use crate::reply_memory::{Charge, exhausted};

/// Rows that the database looks at itself for the contents of one monitor; some 300 us.
const ROWS_MAX: usize = 1000;

/// How long contents are kept for others who ask the same.
const KEPT_MS: u64 = 10_000;

/// What waits for contents.
#[derive(Debug)]
pub(super) struct FirstAnswers {
    underway: HashMap<ContentsId, Underway, FixedState>,
    /// When contents are dropped.
    forget_at_ms: Option<u64>,
    pub(super) rows_max: usize,
}

/// Contents that are being written.
#[derive(Debug, Default)]
struct Underway {
    answers: Vec<Waiting>,
    /// Requests for the same at a later moment.
    later: Vec<Request>,
}

/// A monitor that exists but for its reply.
#[derive(Debug)]
struct Waiting {
    request: Request,
    id: Arc<[u8]>,
    head: ResultHead,
}

impl Default for FirstAnswers {
    fn default() -> FirstAnswers {
        FirstAnswers {
            underway: HashMap::default(),
            forget_at_ms: None,
            rows_max: ROWS_MAX,
        }
    }
}

impl FirstAnswers {
    /// Whether nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.underway.is_empty()
    }

    /// When contents that nobody asked for again are due to be dropped.
    pub(super) fn next_deadline_ms(&self) -> Option<u64> {
        self.forget_at_ms
    }
}

impl DatabaseService {
    /// Sets how many rows the database looks at itself for the first contents of a monitor; more are left to the worker.
    pub fn set_first_rows_max(&mut self, rows: usize) {
        self.first_answers.rows_max = rows;
    }

    /// A monitor was made whose reply must wait.
    pub(super) fn await_contents(&mut self, request: Request, awaited: Awaited) {
        self.held.hold(request.session);
        let underway = self
            .first_answers
            .underway
            .entry(awaited.contents)
            .or_default();
        underway.answers.push(Waiting {
            request,
            id: awaited.id,
            head: awaited.head,
        });
        let memory = &self.outputs.reply_memory;
        let order = awaited.order;
        let job = order.map(|order| Job::Contents(order, Charge::new(memory)));
        self.outputs.jobs.extend(job);
    }

    /// A request is to be handled when these contents are there.
    pub(super) fn put_off(&mut self, request: Request, contents: ContentsId) {
        self.held.hold(request.session);
        let underway = self.first_answers.underway.entry(contents).or_default();
        underway.later.push(request);
    }

    /// Contents are there: everybody who waits for them is answered, and goes on.
    pub(super) fn contents_written(&mut self, now: Now, written: &Written) {
        let Some(underway) = self.first_answers.underway.remove(&written.id) else {
            return;
        };
        self.monitors.written(written);
        self.first_answers.forget_at_ms = Some(now.mono_ms + KEPT_MS);
        let mut inputs = Vec::new();
        for Waiting { request, id, head } in underway.answers {
            let Some(followers) = self.held.let_go(request.session) else {
                continue;
            };
            inputs.extend(followers);
            let Some(text) = &written.text else {
                self.monitors.cancel(request.session, &id);
                self.kept.remove(request.session, &id);
                self.fail(&request, &exhausted());
                continue;
            };
            self.send_updates(request.session);
            let reply = head.with(text.clone()).into_reply(&request.id);
            let handled = Handled::MonitorAdded(id.clone());
            self.outputs.reply_shared(request.session, reply, handled);
            self.count_reply(&request);
            self.monitors.answered(request.session, &id);
        }
        self.let_go(underway.later, &mut inputs);
        self.go_on_with(inputs);
        self.resume(now);
    }

    /// All monitors are about to be removed: requests that were not answered yet are handled anew afterwards.
    pub(super) fn give_up_first_answers(&mut self) {
        self.write_all_late();
        let mut inputs = Vec::new();
        for (_, underway) in std::mem::take(&mut self.first_answers.underway) {
            let answers = underway.answers.into_iter();
            self.let_go(answers.map(|waiting| waiting.request), &mut inputs);
            self.let_go(underway.later, &mut inputs);
        }
        self.go_on_with(inputs);
    }

    /// Appends requests that wait here, each with what its session sent after it; sessions that are closed want nothing.
    fn let_go(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        inputs: &mut Vec<ToDatabase>,
    ) {
        for request in requests {
            if let Some(followers) = self.held.let_go(request.session) {
                inputs.push(ToDatabase::Request(Box::new(request)));
                inputs.extend(followers);
            }
        }
    }

    /// Handles these before everything else that is deferred, when the state allows.
    pub(super) fn go_on_with(&mut self, inputs: impl IntoIterator<Item = ToDatabase>) {
        let mut inputs: VecDeque<ToDatabase> = inputs.into_iter().collect();
        inputs.append(&mut self.deferred);
        self.deferred = inputs;
    }

    /// Drops contents that were kept for long enough.
    pub(super) fn forget_contents(&mut self, now: Now) {
        let answers = &mut self.first_answers;
        if answers.forget_at_ms.is_some_and(|at| at <= now.mono_ms) {
            answers.forget_at_ms = None;
            self.monitors.forget_contents();
        }
    }
}
