//! Requests of this member's sessions that depend on the rest of the cluster: they wait for a leader, are with one, or are in doubt.
//!
//! ```text
//! Waiting ---> Forwarded ---> (its entry is applied: answered)
//!    ^           |    |-----> Decided ---> (applied through its index: answered, or tried again)
//!    |           |
//!    +-----------+            an entry of a later term is committed before its own: it never happened
//!    +---------- Proposed     by this database while it led; otherwise like Forwarded
//!    +---------- Seen         executed by it without a change, after a proposal that is in doubt; true if that is
//! ```
//!
//! Invariants: requests are numbered in the order in which they must be executed. A request that is with a leader has an id, which no other
//! request ever had. `undecided` counts the requests that are waiting or in doubt; while it is zero, a new request need not look at others.
//! Bounded by the requests under way of the sessions and by their blocked transactions. Knows no rows and no messages.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use corvid_consensus::database::ForwardOutcome;
use corvid_data::TrustedKeys;
use corvid_log::cluster::{Eid, Index, Term};
use corvid_monitor::SessionId;

use super::super::pending::Answer;
use crate::message::Request;

/// Bytes of forwarded requests; beyond that, further ones wait until half of those are answered.
const FORWARDED_BYTES_MAX: usize = 64 << 20;

/// The number of a request in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u64);

/// A request, and what is known of it.
pub(crate) struct Entry {
    pub(crate) request: Box<Request>,
    /// Its session is gone.
    is_withdrawn: bool,
    stage: Stage,
}

/// The knowledge about a request.
pub(crate) enum Stage {
    /// No leader has it.
    Waiting,
    /// The leader of this term has it.
    Forwarded {
        term: Term,
        id: Eid,
        /// The locks that its session held.
        locks: Vec<String>,
        /// The result, which is true if the entry is committed.
        result: Option<Bytes>,
    },
    /// This database executed it as the leader of this term, and the entry may be committed. The reply is true if it is.
    Proposed { term: Term, id: Eid, reply: Answer },
    /// This database executed it as the leader of this term, without a change, on the state after the proposal with this id. The reply is
    /// true if that is committed.
    Seen {
        term: Term,
        after: Eid,
        reply: Answer,
    },
    /// The outcome is certain once the entries that it is based on are applied.
    Decided(ForwardOutcome),
}

/// The requests of one session.
#[derive(Default)]
struct OfSession(BTreeSet<Number>);

/// See the module.
#[derive(Default)]
pub(crate) struct InFlight {
    /// The member's term.
    present: Term,
    last: u64,
    entries: BTreeMap<Number, Entry>,
    by_id: BTreeMap<Eid, Number>,
    /// Requests that have seen a proposal.
    by_seen: BTreeSet<(Eid, Number)>,
    by_session: HashMap<SessionId, OfSession, TrustedKeys>,
    /// Decided requests by the index that must be applied.
    by_index: BTreeSet<(Index, Number)>,
    undecided: usize,
    /// The length of the requests that are with a leader.
    forwarded_bytes: usize,
}

impl Entry {
    /// Whether its session is gone.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn
    }
}

impl Stage {
    /// Whether it waits, or depends on a leadership that is over in `term`.
    fn is_undecided(&self, present: Term) -> bool {
        match self {
            Stage::Waiting | Stage::Proposed { .. } | Stage::Seen { .. } => true,
            Stage::Forwarded { term, .. } => *term < present,
            Stage::Decided(_) => false,
        }
    }

    fn id(&self) -> Option<Eid> {
        match self {
            Stage::Forwarded { id, .. } | Stage::Proposed { id, .. } => Some(*id),
            Stage::Waiting | Stage::Seen { .. } | Stage::Decided(_) => None,
        }
    }
}

/// The entry that an outcome is based on; `None`: its own.
fn index_of(outcome: &ForwardOutcome) -> Option<Index> {
    match outcome {
        ForwardOutcome::Proposed(_) => None,
        ForwardOutcome::Unchanged(index, _)
        | ForwardOutcome::Refused(index, _)
        | ForwardOutcome::Blocked(index) => Some(*index),
    }
}

impl InFlight {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a request that no leader has.
    pub(crate) fn push(&mut self, request: Box<Request>) -> Number {
        self.add(request, Stage::Waiting)
    }

    /// Adds a request that this database proposed in a term that is over.
    pub(crate) fn push_proposed(
        &mut self,
        term: Term,
        id: Eid,
        request: Box<Request>,
        reply: Answer,
    ) {
        let number = self.add(request, Stage::Proposed { term, id, reply });
        self.by_id.insert(id, number);
    }

    /// Adds a request that this database executed, in a term that is over, on the state after a proposal.
    pub(crate) fn push_seen(
        &mut self,
        term: Term,
        after: Eid,
        request: Box<Request>,
        reply: Answer,
    ) {
        let number = self.add(request, Stage::Seen { term, after, reply });
        self.by_seen.insert((after, number));
    }

    fn add(&mut self, request: Box<Request>, stage: Stage) -> Number {
        self.last += 1;
        let number = Number(self.last);
        let of = self.by_session.entry(request.session).or_default();
        of.0.insert(number);
        self.undecided += 1;
        let entry = Entry {
            request,
            is_withdrawn: false,
            stage,
        };
        self.entries.insert(number, entry);
        number
    }

    /// Whether a waiting request may be forwarded in this term: no earlier request of its session waits or is in doubt, and there is room.
    pub(crate) fn may_forward(&self, number: Number) -> bool {
        if self.forwarded_bytes > FORWARDED_BYTES_MAX {
            return false;
        }
        // This one is counted.
        if self.undecided <= 1 {
            return true;
        }
        let Some(entry) = self.entries.get(&number) else {
            return false;
        };
        if entry.request.blocked {
            return true;
        }
        let of = self.by_session.get(&entry.request.session);
        let mut earlier = of.into_iter().flat_map(|of| of.0.range(..number));
        earlier.all(|earlier| {
            let earlier = self.entries.get(earlier);
            earlier.is_none_or(|entry| {
                entry.request.blocked || !entry.stage.is_undecided(self.present)
            })
        })
    }

    /// The waiting requests in order, if there may be room for some.
    pub(crate) fn waiting(&self) -> Vec<Number> {
        if self.undecided == 0 || self.forwarded_bytes > FORWARDED_BYTES_MAX / 2 {
            return Vec::new();
        }
        let waiting = self.entries.iter();
        let waiting = waiting.filter(|(_, entry)| matches!(entry.stage, Stage::Waiting));
        waiting.map(|(number, _)| *number).collect()
    }

    /// The request with this number.
    pub(crate) fn request(&self, number: Number) -> Option<&Request> {
        Some(&self.entries.get(&number)?.request)
    }

    /// A waiting request is forwarded.
    pub(crate) fn forwarded(&mut self, number: Number, id: Eid, locks: Vec<String>) {
        if let Some(entry) = self.entries.get_mut(&number) {
            self.forwarded_bytes += entry.request.frame.len();
            self.undecided -= 1;
            entry.stage = Stage::Forwarded {
                term: self.present,
                id,
                locks,
                result: None,
            };
            self.by_id.insert(id, number);
        }
    }

    /// A new term: what was forwarded in earlier ones is in doubt.
    pub(crate) fn begin_term(&mut self, term: Term) {
        self.present = term;
        let entries = self.entries.values();
        self.undecided = entries
            .filter(|entry| entry.stage.is_undecided(term))
            .count();
    }

    /// The outcome of a forwarded request has arrived. It may be one that is decided already.
    pub(crate) fn outcome(&mut self, id: Eid, outcome: ForwardOutcome) {
        let Some(number) = self.by_id.get(&id).copied() else {
            return;
        };
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        match (&mut entry.stage, outcome) {
            (Stage::Forwarded { result, .. }, ForwardOutcome::Proposed(text)) => {
                *result = Some(text);
            }
            (Stage::Forwarded { .. }, outcome) => {
                self.undecided -= usize::from(entry.stage.is_undecided(self.present));
                self.forwarded_bytes -= entry.request.frame.len();
                self.by_id.remove(&id);
                let index = index_of(&outcome);
                self.by_index.extend(index.map(|index| (index, number)));
                entry.stage = Stage::Decided(outcome);
            }
            _ => {}
        }
    }

    /// Removes the request whose entry has this id.
    pub(crate) fn take_committed(&mut self, id: Eid) -> Option<(Entry, Stage)> {
        let number = self.by_id.get(&id).copied()?;
        self.remove(number)
    }

    /// Removes the first request that has seen the proposal with this id, which is committed.
    pub(crate) fn take_seen(&mut self, id: Eid) -> Option<(Entry, Answer)> {
        let (after, number) = *self.by_seen.range((id, Number(0))..).next()?;
        if after != id {
            return None;
        }
        match self.remove(number)? {
            (entry, Stage::Seen { reply, .. }) => Some((entry, reply)),
            _ => None,
        }
    }

    /// Removes the next decided request whose outcome is based on entries up to this one.
    pub(crate) fn take_decided(&mut self, applied: Index) -> Option<(Entry, ForwardOutcome)> {
        let (index, number) = *self.by_index.first()?;
        if index > applied {
            return None;
        }
        let (entry, stage) = self.remove(number)?;
        match stage {
            Stage::Decided(outcome) => Some((entry, outcome)),
            _ => None,
        }
    }

    /// An entry of this term is committed: what was forwarded or proposed in earlier terms and is still here never happened, and waits again.
    pub(crate) fn end_doubt(&mut self, committed: Term) {
        if self.undecided == 0 {
            return;
        }
        let present = self.present;
        let mut gone = Vec::new();
        for (number, entry) in &mut self.entries {
            let is_over = match &entry.stage {
                Stage::Forwarded { term, .. }
                | Stage::Proposed { term, .. }
                | Stage::Seen { term, .. } => *term < committed,
                Stage::Waiting | Stage::Decided(_) => false,
            };
            if !is_over {
                continue;
            }
            if entry.is_withdrawn {
                gone.push(*number);
                continue;
            }
            if let Some(id) = entry.stage.id() {
                self.by_id.remove(&id);
            }
            if matches!(entry.stage, Stage::Forwarded { .. }) {
                self.forwarded_bytes -= entry.request.frame.len();
            }
            if let Stage::Seen { after, .. } = entry.stage {
                self.by_seen.remove(&(after, *number));
            }
            self.undecided += usize::from(!entry.stage.is_undecided(present));
            entry.stage = Stage::Waiting;
        }
        for number in gone {
            self.remove(number);
        }
    }

    /// Removes all requests, in order. Those of sessions that are gone are dropped.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Box<Request>> + use<> {
        let all = std::mem::take(self);
        self.last = all.last;
        self.present = all.present;
        let entries = all.entries.into_values();
        let wanted = entries.filter(|entry| !entry.is_withdrawn);
        wanted.map(|entry| entry.request)
    }

    /// Removes the requests that may have become part of a snapshot, so that nobody will ever know. Those that changed nothing wait again.
    pub(crate) fn take_doubtful(&mut self) -> Vec<Entry> {
        for (_, number) in std::mem::take(&mut self.by_seen) {
            if let Some(entry) = self.entries.get_mut(&number) {
                entry.stage = Stage::Waiting;
            }
        }
        let entries = self.entries.iter();
        let doubtful = entries.filter(|(_, entry)| entry.stage.id().is_some());
        let doubtful: Vec<Number> = doubtful.map(|(number, _)| *number).collect();
        let taken = doubtful
            .into_iter()
            .filter_map(|number| self.remove(number));
        taken
            .map(|(entry, _)| entry)
            .filter(|entry| !entry.is_withdrawn)
            .collect()
    }

    /// Removes a waiting request of a session by the client's id.
    pub(crate) fn take_waiting(&mut self, session: SessionId, id: &[u8]) -> Option<Entry> {
        let of = self.by_session.get(&session)?;
        let found = of.0.iter().copied().find(|number| {
            self.entries.get(number).is_some_and(|entry| {
                *entry.request.id == *id && matches!(entry.stage, Stage::Waiting)
            })
        })?;
        self.remove(found).map(|(entry, _)| entry)
    }

    /// A session is gone. Returns its requests that no leader has; the others end in silence.
    pub(crate) fn withdraw(&mut self, session: SessionId) -> Vec<Entry> {
        let Some(of) = self.by_session.get(&session) else {
            return Vec::new();
        };
        let mut withdrawn = Vec::new();
        for number in of.0.clone() {
            let Some(entry) = self.entries.get_mut(&number) else {
                continue;
            };
            entry.is_withdrawn = true;
            if matches!(entry.stage, Stage::Waiting) {
                withdrawn.extend(self.remove(number).map(|(entry, _)| entry));
            }
        }
        withdrawn
    }

    fn remove(&mut self, number: Number) -> Option<(Entry, Stage)> {
        let mut entry = self.entries.remove(&number)?;
        let stage = std::mem::replace(&mut entry.stage, Stage::Waiting);
        self.undecided -= usize::from(stage.is_undecided(self.present));
        if let Some(id) = stage.id() {
            self.by_id.remove(&id);
        }
        match &stage {
            Stage::Forwarded { .. } => self.forwarded_bytes -= entry.request.frame.len(),
            Stage::Decided(outcome) => {
                if let Some(index) = index_of(outcome) {
                    self.by_index.remove(&(index, number));
                }
            }
            Stage::Seen { after, .. } => {
                self.by_seen.remove(&(*after, number));
            }
            Stage::Waiting | Stage::Proposed { .. } => {}
        }
        let session = entry.request.session;
        if let Some(of) = self.by_session.get_mut(&session) {
            of.0.remove(&number);
            if of.0.is_empty() {
                self.by_session.remove(&session);
            }
        }
        Some((entry, stage))
    }
}
