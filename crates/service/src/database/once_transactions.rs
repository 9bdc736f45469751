//! Transactions that their clients may send again ([`crate::once`]): which of them are executed.
//!
//! A standalone database remembers a commit when it is executed, and forgets it when it is undone; the reply to one that is sent again waits behind
//! the same record. A relay remembers the outcome that its source has told; one that is sent again while the first is on its way waits for that
//! outcome. A clustered database remembers nothing yet, so it executes only what was not sent before. Invariant: no id is executed twice.

use std::collections::BTreeMap;

use bytes::Bytes;
use corvid_consensus::database::ForwardOutcome;
use corvid_data::Uuid;

use super::pending::{Answer, Origin, Pending};
use super::{DatabaseService, Now};
use crate::message::{Completion, Request, ToDatabase};
use crate::once::{OnceOutcome, OnceTable};

/// The transactions with ids.
pub(super) struct OnceState {
    table: OnceTable,
    /// Those that a relay has for its source, and the requests with the same ids that came later. Bounded by the requests under way.
    forwarded: BTreeMap<Uuid, Vec<Request>>,
}

impl OnceState {
    pub(super) fn new(now_ms: u64) -> OnceState {
        OnceState {
            table: OnceTable::new(now_ms),
            forwarded: BTreeMap::new(),
        }
    }
}

/// The reply to a transaction that has been executed before.
fn answer_of(outcome: &OnceOutcome) -> Answer {
    match outcome {
        OnceOutcome::Result(Some(result)) => Answer::Result(result.to_vec()),
        // It happened, and its result is lost.
        OnceOutcome::Result(None) => Answer::Canceled,
        OnceOutcome::Error(error) => Answer::Refused(error.clone()),
    }
}

impl DatabaseService {
    /// Returns a transaction that is to be executed. One that was executed before, or may have been, is answered, or waits for the first one's
    /// outcome.
    pub(super) fn resolve_once(
        &mut self,
        now: Now,
        mut request: Box<Request>,
        is_new: bool,
    ) -> Option<Box<Request>> {
        let Some(once) = request.once else {
            return Some(request);
        };
        let is_member = self.model.cluster().is_some() && !self.model.is_relay();
        let answer = match self.once.table.get(once.id) {
            Some(outcome) => answer_of(outcome),
            None if is_new && is_member && once.age_ms > 0 => Answer::Canceled,
            None if is_new && !is_member && !self.once.table.vouches(now.mono_ms, once) => {
                Answer::Canceled
            }
            None => {
                if !self.once.forwarded.contains_key(&once.id) {
                    return Some(request);
                }
                // It must not hold up the later replies of its session.
                if !std::mem::replace(&mut request.blocked, true) {
                    self.outputs.complete(request.session, Completion::Request);
                }
                let waiting = self.once.forwarded.entry(once.id).or_default();
                waiting.push(*request);
                return None;
            }
        };
        self.answer_when_stored(answer, Origin::Client(request));
        None
    }

    /// A standalone database has executed a transaction that changed something; its result, if it is whole.
    pub(super) fn remember_commit(
        &mut self,
        now: Now,
        request: &Request,
        result: Option<&Vec<u8>>,
    ) {
        if let Some(once) = request.once.filter(|_| self.model.cluster().is_none()) {
            let result = result.map(|result| Bytes::copy_from_slice(result));
            let outcome = OnceOutcome::Result(result);
            self.once.table.remember(now.mono_ms, once.id, outcome);
        }
    }

    /// The commits of these entries are undone.
    pub(super) fn forget_undone(&mut self, undone: &[Pending]) {
        for entry in undone {
            if let (Origin::Client(request), Some(_)) = (&entry.origin, &entry.commit)
                && let Some(once) = request.once
            {
                self.once.table.undone(once.id);
            }
        }
    }

    /// A relay is about to have a transaction for its source.
    pub(super) fn begin_once(&mut self, request: &Request) {
        if let Some(once) = request.once {
            self.once.forwarded.entry(once.id).or_default();
        }
    }

    /// The source of a relay has decided about a transaction.
    pub(super) fn decide_once(&mut self, now: Now, request: &Request, outcome: &ForwardOutcome) {
        let Some(once) = request.once else {
            return;
        };
        let outcome = match outcome {
            ForwardOutcome::Unchanged(_, result) => OnceOutcome::Result(Some(result.clone())),
            ForwardOutcome::Refused(_, error) => OnceOutcome::Error(error.clone()),
            // It was not sent.
            ForwardOutcome::Blocked(_) | ForwardOutcome::Proposed(_) => {
                self.drop_once(request);
                return;
            }
        };
        let waiting = self.once.forwarded.remove(&once.id);
        for request in waiting.into_iter().flatten() {
            if request.info.is_closed() {
                continue;
            }
            let answer = answer_of(&outcome);
            self.send_answer(Box::new(request), answer, false);
        }
        self.once.table.remember(now.mono_ms, once.id, outcome);
    }

    /// A transaction was not executed and will not be: those with the same id take its place.
    pub(super) fn drop_once(&mut self, request: &Request) {
        let Some(once) = request.once.filter(|_| self.model.is_relay()) else {
            return;
        };
        let waiting = self.once.forwarded.remove(&once.id);
        let requests = waiting.into_iter().flatten();
        let requests = requests.map(|request| ToDatabase::Request(Box::new(request)));
        self.queue_first(requests.collect::<Vec<_>>());
    }

    /// The database is removed: nothing is forwarded any more. Returns the requests that waited for outcomes.
    pub(super) fn take_once_waiting(&mut self) -> Vec<Request> {
        let forwarded = std::mem::take(&mut self.once.forwarded);
        forwarded.into_values().flatten().collect()
    }
}
