//! Transactions that their clients may send again ([`crate::once`]): which of them are executed.
//!
//! The database that executes decides: a standalone one, or that of a cluster's leader, which knows every commit that its log has. It remembers a commit when
//! it is executed, and forgets it when it is undone; the reply to one that is sent again waits behind the same record. A follower passes the id on
//! with the transaction, and remembers the results that come with the entries, for the time when it leads. A relay passes it on to its source, and
//! remembers the outcome that its source has told; one that is sent again while the first is on its way waits for that outcome. Invariant: no id
//! is executed twice. That holds for one that came to nothing, too: its client has been told so, and a copy that is late must change nothing.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use corvid_consensus::database::ForwardOutcome;
use corvid_data::{Tag, Uuid, WireError};

use super::DatabaseService;
use super::pending::{Answer, Pending};
use crate::message::{Completion, Request, ToDatabase};
use crate::once::{Key, Once, OnceOutcome, OnceTable, RESULT_BYTES_MAX, Verdict};

/// The transactions with ids.
pub(super) struct OnceState {
    table: OnceTable,
    /// Those that a relay has for its source, and the requests with the same ids that came later. Bounded by the requests under way.
    forwarded: BTreeMap<Uuid, Vec<Request>>,
    /// Those without a commit whose first reply waits for the records of earlier ones. Bounded by the pending replies.
    tentative: BTreeSet<Uuid>,
}

impl OnceState {
    /// Of a database whose last commit is this one.
    pub(super) fn new(last: Uuid) -> OnceState {
        OnceState {
            table: OnceTable::new(last),
            forwarded: BTreeMap::new(),
            tentative: BTreeSet::new(),
        }
    }

    /// The history begins anew with this commit: all others are forgotten.
    pub(super) fn restart(&mut self, last: Uuid) {
        self.table = OnceTable::new(last);
        self.tentative.clear();
    }

    /// There is a commit, and nothing is to be remembered but its id.
    pub(super) fn committed(&mut self, id: Uuid) {
        self.table.committed(id);
    }

    /// The result of a commit has come from another member. It is a part of a message, of which nothing else is to be kept.
    pub(super) fn know_result(&mut self, id: Uuid, result: &[u8]) {
        let result = Bytes::copy_from_slice(result);
        self.table
            .remember(Key::of_commit(id), OnceOutcome::Result(Some(result)));
    }

    /// The id of the commit of a transaction that its client may send again; it is executed now,
    /// by the leader of this term or by a database without one.
    pub(super) fn commit_id(&self, id: Uuid, term: Option<u64>) -> Uuid {
        self.table.commit_id(id, term)
    }

    /// The same of a transaction that its client may send again; its result, if that is whole.
    pub(super) fn executed(&mut self, id: Uuid, result: Option<Bytes>) {
        self.table.committed(id);
        self.table
            .remember(Key::of_commit(id), OnceOutcome::Result(result));
    }

    /// A transaction that its client may send again has been executed without a commit. One that
    /// cannot change anything is not remembered: it may be executed as often as its client likes,
    /// and must not push out outcomes that others need.
    pub(super) fn came_to_nothing(&mut self, id: Uuid, may_write: bool, result: &Answer) {
        if !may_write {
            return;
        }
        let Answer::Result(result) = result else {
            // A selection of many rows changes nothing whenever it is executed.
            return;
        };
        let is_short = result.len() <= RESULT_BYTES_MAX;
        let result = is_short.then(|| Bytes::copy_from_slice(result));
        self.table
            .remember(Key::of(id), OnceOutcome::Result(result));
        self.tentative.insert(id);
    }

    /// An outcome that is remembered is that of this text.
    pub(super) fn bind(&mut self, id: Uuid, text: &[u8]) {
        self.table.bind(id, text);
    }

    /// The reply of a transaction leaves.
    pub(super) fn released(&mut self, id: Option<Uuid>) {
        if let Some(id) = id {
            self.tentative.remove(&id);
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
    /// A request has come. If its client had not sent it before, it has not been executed among the commits up to now; a leader that decides
    /// about it later need not know those.
    pub(super) fn arrive_once(&mut self, request: &mut Request) {
        if let Some(once) = request.once.as_mut().filter(|_| !self.model.is_relay()) {
            let last = match self.model.cluster() {
                // Speculative commits may come to nothing.
                Some(cluster) => Some(cluster.applied_eid().0),
                None => self.once.table.last(),
            };
            once.after = once.after.or(last);
        }
    }

    /// Returns a transaction that is to be executed, or passed on. One that was executed before, or may have been, is answered, or waits for the
    /// first one's outcome.
    pub(super) fn resolve_once(&mut self, mut request: Box<Request>) -> Option<Box<Request>> {
        let Some(once) = request.once else {
            return Some(request);
        };
        if self.model.cluster().is_some() && request.info.is_closed() {
            // An earlier one of its session may have been dropped, and this one must not happen without it.
            self.end_request(&request);
            return None;
        }
        let answer = if self.once.table.is_of_another(once.id, request.params()) {
            let details = "transact_once: another transaction has this id";
            Answer::Error(Box::new(WireError::new(Tag::NotAllowed, details)))
        } else if let Some(outcome) = self.once.table.get(once.id) {
            answer_of(outcome)
        } else if self.once.forwarded.contains_key(&once.id) {
            // It must not hold up the later replies of its session.
            if !std::mem::replace(&mut request.blocked, true) {
                self.outputs.complete(request.session, Completion::Request);
            }
            let waiting = self.once.forwarded.entry(once.id).or_default();
            waiting.push(*request);
            return None;
        } else if self.is_follower() {
            return Some(request);
        } else {
            match self.judge_once(once) {
                Some(answer) => answer,
                None => return Some(request),
            }
        };
        self.answer_in_order(request, answer);
        None
    }

    /// The answer to a transaction, if it is not to be executed by this database, which executes.
    pub(super) fn judge_once(&mut self, once: Once) -> Option<Answer> {
        match self.once.table.judge(once) {
            Verdict::Executed(outcome) => Some(answer_of(outcome)),
            Verdict::Unknown => Some(Answer::Canceled),
            Verdict::New => None,
        }
    }

    /// These entries are undone.
    pub(super) fn forget_undone(&mut self, undone: &[Pending]) {
        for entry in undone.iter().rev() {
            match (&entry.commit, entry.origin.once_id()) {
                (Some(commit), _) => self.once.table.undone(commit.txn),
                (None, Some(id)) if self.once.tentative.remove(&id) => {
                    self.once.table.forget(Key::of(id));
                }
                _ => {}
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
    pub(super) fn decide_once(&mut self, request: &Request, outcome: &ForwardOutcome) {
        let Some(once) = request.once.filter(|_| self.model.is_relay()) else {
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
        self.once.table.remember(Key::of(once.id), outcome);
        self.once.bind(once.id, request.params());
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
