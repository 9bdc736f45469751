//! Requests of this server's sessions that depend on another server: they wait for a leader, are
//! forwarded to one, or are in doubt. Also the later requests of their sessions, whose replies must
//! not overtake theirs.
//!
//! Invariants: requests are numbered in the order in which they must be executed, and the replies
//! of a session leave in that order; blocked requests (`wait`) are exempt. A session's `undecided`
//! counts its requests that have not been executed or are in doubt; no later request of the session
//! is forwarded before those. The cost of an event is proportional to the requests that it
//! concerns. The size is bounded by the sessions' requests in flight and by their blocked
//! transactions. Nothing here knows rows or messages.

mod sought;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;
use corvid_consensus::database::{Finding, ForwardOutcome};
use corvid_data::{TrustedKeys, Uuid};
use corvid_log::cluster::{Eid, Index, Term};
use corvid_monitor::SessionId;

use super::request_stage::{Entry, Stage, index_of};
use crate::message::{DatabaseMethod, Request};
use crate::replies::Answer;

/// Bytes of forwarded requests at which forwarding stops, until half of them are answered.
const FORWARDED_BYTES_MAX: usize = 64 << 20;

/// Memory of a request in addition to its text, bytes.
const COST_BYTES: usize = 512;

/// A request's position in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u64);

/// The requests of one session.
#[derive(Default)]
struct OfSession {
    /// Requests in order. A request that has been taken and not forgotten keeps its position.
    ordered: VecDeque<Number>,
    /// Requests that had blocked, and are outside the order.
    blocked: BTreeSet<Number>,
    /// How many of `ordered` are undecided.
    undecided: usize,
    /// How many of `ordered` have a reply.
    answered: usize,
    /// A request that precedes all of `ordered`: it waited for initial contents, and is executed
    /// again.
    anew: Option<Box<Request>>,
}

/// The requests of a database that depend on another server.
#[derive(Default)]
pub(crate) struct InFlight {
    /// The current term.
    present: Term,
    /// The newest term with a committed entry: requests of earlier terms are no longer in doubt,
    /// except those that are sought.
    judged: Term,
    /// The last entry of the snapshot that may contain sought requests.
    sought_through: Index,
    last: u64,
    entries: BTreeMap<Number, Entry>,
    by_id: BTreeMap<Eid, Number>,
    /// Requests that have seen the effect of a proposal.
    by_seen: BTreeSet<(Eid, Number)>,
    by_session: HashMap<SessionId, OfSession, TrustedKeys>,
    /// Decided requests by the index that must be applied before they are answered.
    by_index: BTreeSet<(Index, Number)>,
    /// A lower bound of the terms in which requests were forwarded, proposed or seen; `None` if
    /// there are no such requests.
    oldest: Option<Term>,
    /// Number of requests that this database executes itself.
    local: usize,
    /// Bytes of the requests that a leader has.
    forwarded_bytes: usize,
    /// Bytes of the requests that no leader has, including `COST_BYTES` for each.
    waiting_bytes: usize,
    /// Forwarding has stopped at the limit of bytes.
    is_throttled: bool,
    /// Sessions whose first request may have become ready.
    due: Vec<SessionId>,
}

impl InFlight {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are requests that this database executes itself.
    pub(crate) fn has_local(&self) -> bool {
        self.local > 0
    }

    /// Adds a request. Also returns whether it may be forwarded now: no earlier request of its
    /// session is undecided.
    pub(crate) fn push(&mut self, request: Box<Request>, stage: Stage) -> (Number, bool) {
        self.last += 1;
        let number = Number(self.last);
        let of = self.by_session.entry(request.session).or_default();
        let is_next = request.blocked || of.undecided == 0;
        if request.blocked {
            of.blocked.insert(number);
        } else {
            of.ordered.push_back(number);
        }
        let entry = Entry {
            number,
            request,
            is_withdrawn: false,
            is_canceled: false,
            stage: Stage::Waiting,
        };
        self.insert(entry, stage);
        (number, is_next)
    }

    /// Returns a taken request to its position, in this stage.
    pub(crate) fn put_back(&mut self, entry: Entry, stage: Stage) {
        self.insert(entry, stage);
    }

    fn insert(&mut self, mut entry: Entry, stage: Stage) {
        let number = entry.number;
        // Each index that the request enters here it leaves in `take`, by the same stage.
        self.count(&entry.request, &stage, true);
        if let Some(id) = stage.id() {
            self.by_id.insert(id, number);
        }
        if let Some(after) = stage.seen() {
            self.by_seen.insert((after, number));
        }
        if let Some(term) = stage.term() {
            self.oldest = Some(self.oldest.map_or(term, |oldest| oldest.min(term)));
        }
        match &stage {
            Stage::Waiting => self.waiting_bytes += cost(&entry.request),
            Stage::Forwarded { .. } => self.forwarded_bytes += entry.request.frame.len(),
            Stage::Decided(outcome) => {
                self.by_index
                    .extend(index_of(outcome).map(|index| (index, number)));
            }
            _ => {}
        }
        entry.stage = stage;
        self.entries.insert(number, entry);
    }

    /// Adds a request in this stage to the counts, or removes it.
    fn count(&mut self, request: &Request, stage: &Stage, is_there: bool) {
        if request.blocked {
            return;
        }
        let is_undecided = stage.is_undecided(self.present);
        let is_local = usize::from(matches!(stage, Stage::Local));
        self.local = if is_there {
            self.local + is_local
        } else {
            self.local - is_local
        };
        let is_answered = matches!(stage, Stage::Answered { .. });
        let Some(of) = self.by_session.get_mut(&request.session) else {
            return;
        };
        for (count, counts) in [
            (&mut of.undecided, is_undecided),
            (&mut of.answered, is_answered),
        ] {
            if is_there {
                *count += usize::from(counts);
            } else {
                *count -= usize::from(counts);
            }
        }
    }

    /// Takes a request and its stage. It keeps its position until it is forgotten.
    pub(crate) fn take(&mut self, number: Number) -> Option<(Entry, Stage)> {
        let mut entry = self.entries.remove(&number)?;
        let stage = std::mem::replace(&mut entry.stage, Stage::Waiting);
        self.count(&entry.request, &stage, false);
        if let Some(id) = stage.id() {
            self.by_id.remove(&id);
        }
        if let Some(after) = stage.seen() {
            self.by_seen.remove(&(after, number));
        }
        match &stage {
            Stage::Waiting => self.waiting_bytes -= cost(&entry.request),
            Stage::Forwarded { .. } => self.forwarded_bytes -= entry.request.frame.len(),
            Stage::Decided(outcome) => {
                if let Some(index) = index_of(outcome) {
                    self.by_index.remove(&(index, number));
                }
            }
            _ => {}
        }
        Some((entry, stage))
    }

    /// Removes a taken request from its session's order: the next one may become the first.
    pub(crate) fn forget(&mut self, session: SessionId, number: Number) {
        let Some(of) = self.by_session.get_mut(&session) else {
            return;
        };
        if of.ordered.front() == Some(&number) {
            of.ordered.pop_front();
        } else if let Ok(at) = of.ordered.binary_search(&number) {
            of.ordered.remove(at);
        } else {
            of.blocked.remove(&number);
        }
        if of.ordered.is_empty() && of.blocked.is_empty() && of.anew.is_none() {
            self.by_session.remove(&session);
        } else if of.undecided + of.answered > 0 {
            self.due.push(session);
        }
    }

    /// Keeps a request that must be executed again, before all others of its session. Returns it if
    /// the session has no others.
    pub(crate) fn push_anew(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        let session = request.session;
        let of = self.by_session.get_mut(&session);
        let Some(of) = of.filter(|of| !of.ordered.is_empty()) else {
            return Some(request);
        };
        of.anew = Some(request);
        self.due.push(session);
        None
    }

    /// Takes the session's request that must be executed again.
    pub(crate) fn take_anew(&mut self, session: SessionId) -> Option<Box<Request>> {
        self.by_session.get_mut(&session)?.anew.take()
    }

    /// The session's first request in order, and its stage.
    pub(crate) fn first(&self, session: SessionId) -> Option<(&Entry, &Stage)> {
        let of = self.by_session.get(&session)?;
        let number = of.ordered.front().filter(|_| of.anew.is_none())?;
        let entry = self.entries.get(number)?;
        Some((entry, &entry.stage))
    }

    /// Whether this request is the first of its session.
    pub(crate) fn is_first(&self, session: SessionId, number: Number) -> bool {
        let of = self.by_session.get(&session);
        of.is_some_and(|of| of.ordered.front() == Some(&number) && of.anew.is_none())
    }

    /// The session of the request with this id, if earlier requests of the session are not
    /// answered.
    pub(crate) fn has_earlier(&self, id: Eid) -> Option<(SessionId, Number)> {
        let number = *self.by_id.get(&id)?;
        let request = &self.entries.get(&number)?.request;
        let is_behind = !request.blocked && !self.is_first(request.session, number);
        is_behind.then_some((request.session, number))
    }

    /// Marks a session that may be able to continue.
    pub(crate) fn set_due(&mut self, session: SessionId) {
        let of = self.by_session.get(&session);
        if of.is_some_and(|of| of.undecided + of.answered > 0) {
            self.due.push(session);
        }
    }

    /// Whether a session may be able to continue.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Takes a session that may be able to continue.
    pub(crate) fn take_due(&mut self) -> Option<SessionId> {
        self.due.pop()
    }

    /// The session's next request to forward: it is waiting, and no earlier one is undecided.
    pub(crate) fn next_waiting(&self, session: SessionId) -> Option<Number> {
        let of = self.by_session.get(&session)?;
        // Nothing is forwarded before an earlier request of the session that is undecided: it may
        // still have to be executed, and must come first.
        if of.undecided == 0 || self.is_throttled {
            return None;
        }
        let mut entries = of
            .ordered
            .iter()
            .filter_map(|number| self.entries.get(number));
        let next = entries.find(|entry| entry.stage.is_undecided(self.present))?;
        matches!(next.stage, Stage::Waiting).then_some(next.number)
    }

    /// Whether requests may be forwarded. At the limit, forwarding stops until
    /// [`InFlight::end_throttling`].
    pub(crate) fn has_room(&mut self) -> bool {
        self.is_throttled |= self.forwarded_bytes > FORWARDED_BYTES_MAX;
        !self.is_throttled
    }

    /// Whether forwarding, which had stopped, starts again now.
    pub(crate) fn end_throttling(&mut self) -> bool {
        let is_over = self.is_throttled && self.forwarded_bytes <= FORWARDED_BYTES_MAX / 2;
        self.is_throttled &= !is_over;
        is_over
    }

    /// Bytes of the requests that wait for a leader, including `COST_BYTES` for each.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The session's requests that a leader has, with their ids.
    pub(crate) fn forwarded_of(&self, session: SessionId) -> impl Iterator<Item = (&Request, Eid)> {
        let of = self.by_session.get(&session);
        let numbers = of.map(|of| of.ordered.iter().chain(&of.blocked));
        let entries = numbers.into_iter().flatten();
        let entries = entries.filter_map(|number| self.entries.get(number));
        entries.filter_map(|entry| match &entry.stage {
            Stage::Forwarded { id, .. } => Some((&*entry.request, *id)),
            _ => None,
        })
    }

    /// Marks all sessions with requests in order as due. Returns the waiting blocked requests, in
    /// order.
    pub(crate) fn set_all_due(&mut self) -> Vec<Number> {
        let mut blocked = Vec::new();
        let mut sessions = BTreeSet::new();
        for (number, entry) in &self.entries {
            if !entry.request.blocked {
                sessions.insert(entry.request.session);
            } else if matches!(entry.stage, Stage::Waiting) {
                blocked.push(*number);
            }
        }
        self.due = sessions.into_iter().rev().collect();
        blocked
    }

    /// The request with this number.
    pub(crate) fn request(&self, number: Number) -> Option<&Request> {
        Some(&self.entries.get(&number)?.request)
    }

    /// The other server is only asked for the outcome of a waiting transaction with an id, and
    /// executes nothing.
    pub(crate) fn only_ask(&mut self, number: Number) {
        let entry = self.entries.get_mut(&number);
        if let Some(once) = entry.and_then(|entry| entry.request.once.as_mut()) {
            once.after = Some(Uuid::ZERO);
        }
    }

    /// A waiting request has been forwarded under this id.
    pub(crate) fn forwarded(&mut self, number: Number, id: Eid, locks: Vec<String>) {
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        let term = self.present;
        entry.stage = Stage::Forwarded {
            term,
            id,
            locks,
            result: None,
        };
        self.forwarded_bytes += entry.request.frame.len();
        self.waiting_bytes -= cost(&entry.request);
        if !entry.request.blocked
            && let Some(of) = self.by_session.get_mut(&entry.request.session)
        {
            of.undecided -= 1;
        }
        self.by_id.insert(id, number);
        self.oldest = Some(self.oldest.map_or(term, |oldest| oldest.min(term)));
    }

    /// Begins a term: requests forwarded in earlier terms are in doubt.
    pub(crate) fn begin_term(&mut self, term: Term) {
        // Forwarded requests become undecided without being touched, so the counts are made anew.
        // Once per term this is cheap.
        self.present = term;
        for of in self.by_session.values_mut() {
            of.undecided = 0;
        }
        for entry in self.entries.values() {
            if !entry.request.blocked
                && entry.stage.is_undecided(term)
                && let Some(of) = self.by_session.get_mut(&entry.request.session)
            {
                of.undecided += 1;
            }
        }
    }

    /// The outcome of a forwarded request has arrived; the request may be decided already. Returns
    /// the request and its reply if that answers it.
    pub(crate) fn outcome(&mut self, id: Eid, outcome: ForwardOutcome) -> Option<(Entry, Answer)> {
        let number = self.by_id.get(&id).copied()?;
        let entry = self.entries.get_mut(&number)?;
        let (stage, is_committed) = match &mut entry.stage {
            Stage::Sought {
                before, finding, ..
            } => (&mut **before, *finding == Some(Finding::Committed)),
            stage => (stage, false),
        };
        match (stage, outcome) {
            (Stage::Forwarded { result, .. }, ForwardOutcome::Proposed(text)) => {
                // The snapshot has shown that the entry is committed; only the result was missing.
                if is_committed {
                    let (entry, _) = self.take(number)?;
                    return Some((entry, Answer::Result(text.into())));
                }
                // A result alone answers nothing: the proposal may still fail. The reply waits for
                // the entry.
                *result = Some(text);
            }
            (Stage::Forwarded { .. }, outcome) => {
                let session = entry.request.session;
                let (entry, _) = self.take(number)?;
                self.insert(entry, Stage::Decided(outcome));
                self.set_due(session);
            }
            _ => {}
        }
        None
    }

    /// Takes the request that was forwarded or proposed under this id, which is now committed.
    pub(crate) fn take_committed(&mut self, id: Eid) -> Option<(Entry, Stage)> {
        let number = self.by_id.get(&id).copied()?;
        let (entry, stage) = self.take(number)?;
        Some((entry, stage.before_search()))
    }

    /// Takes the first request that has seen the proposal with this id, which is now committed.
    pub(crate) fn take_seen(&mut self, id: Eid) -> Option<(Entry, Answer)> {
        let (after, number) = *self.by_seen.range((id, Number(0))..).next()?;
        if after != id {
            return None;
        }
        let (entry, stage) = self.take(number)?;
        match stage.before_search() {
            Stage::Seen { reply, .. } => Some((entry, reply)),
            _ => None,
        }
    }

    /// Takes the next decided request whose outcome depends on no entry after this one.
    pub(crate) fn take_decided(&mut self, applied: Index) -> Option<(Entry, ForwardOutcome)> {
        let (index, number) = *self.by_index.first()?;
        if index > applied {
            return None;
        }
        match self.take(number)? {
            (entry, Stage::Decided(outcome)) => Some((entry, outcome)),
            _ => None,
        }
    }

    /// Takes a successful conversion of a relay whose outcome depends on no change after this one.
    pub(crate) fn take_converted(&mut self, index: Index) -> Option<(Entry, Bytes)> {
        let mut decided = self.by_index.range(..=(index, Number(u64::MAX)));
        let (_, number) = *decided.find(|(_, number)| {
            let entry = self.entries.get(number);
            entry.is_some_and(|entry| {
                entry.request.method == DatabaseMethod::Convert
                    && matches!(entry.stage, Stage::Decided(ForwardOutcome::Unchanged(..)))
            })
        })?;
        match self.take(number)? {
            (entry, Stage::Decided(ForwardOutcome::Unchanged(_, result))) => Some((entry, result)),
            _ => None,
        }
    }

    /// An entry of this term is committed. Requests of earlier terms that are still here never
    /// happened: they are executed again. So are later requests of their sessions that changed
    /// nothing. Returns the blocked requests that wait again.
    pub(crate) fn end_doubt(&mut self, committed: Term) -> Vec<Number> {
        // The leader of this term had every entry committed in earlier terms, and they precede its
        // own. Example: A was forwarded in term 3. When the first entry of term 4 is committed and
        // A's entry has not come, it never will, so A may run again.
        self.judged = self.judged.max(committed);
        if self.oldest.is_none_or(|oldest| oldest >= committed) {
            return Vec::new();
        }
        let mut over = Vec::new();
        let mut oldest: Option<Term> = None;
        let mut sessions = BTreeSet::new();
        for (number, entry) in &self.entries {
            let session = entry.request.session;
            let follows = !entry.request.blocked && sessions.contains(&session);
            match entry.stage.term() {
                Some(term) if term < committed => {
                    if !entry.request.blocked && !entry.is_withdrawn {
                        sessions.insert(session);
                    }
                    over.push(*number);
                }
                Some(term) => oldest = Some(oldest.map_or(term, |oldest| oldest.min(term))),
                // A later request of the same session that changed nothing has read the state
                // without the earlier one, which is about to run: it must run again after it.
                None if follows && entry.may_execute_again() => over.push(*number),
                None => {}
            }
        }
        self.oldest = oldest;
        let mut blocked = Vec::new();
        for number in over {
            let Some((entry, _)) = self.take(number) else {
                continue;
            };
            if entry.is_withdrawn {
                self.forget(entry.request.session, number);
                continue;
            }
            if entry.request.blocked {
                blocked.push(number);
            } else {
                self.due.push(entry.request.session);
            }
            let stage = entry.again();
            self.insert(entry, stage);
        }
        blocked
    }

    /// The newest term in which an entry is committed: nothing forwarded before it is in doubt.
    pub(crate) fn judged(&self) -> Term {
        self.judged
    }

    /// This database leads now: it executes every request that has no reply and is not sought.
    /// Returns the blocked requests, and the sessions of all others. Drops requests of closed
    /// sessions.
    pub(crate) fn make_local(&mut self) -> (Vec<Entry>, BTreeSet<SessionId>) {
        let numbers: Vec<Number> = self.entries.keys().copied().collect();
        let mut blocked = Vec::new();
        let mut sessions = BTreeSet::new();
        for number in numbers {
            let Some((entry, stage)) = self.take(number) else {
                continue;
            };
            let session = entry.request.session;
            let is_sought = matches!(stage, Stage::Sought { .. });
            if entry.is_withdrawn || entry.request.blocked && !is_sought {
                self.forget(session, number);
                blocked.extend((!entry.is_withdrawn).then_some(entry));
                continue;
            }
            if !entry.request.blocked {
                sessions.insert(session);
            }
            let stage = match stage {
                kept @ (Stage::Answered { .. } | Stage::Sought { .. }) => kept,
                _ => Stage::Local,
            };
            self.insert(entry, stage);
        }
        // No stage with a term is left: the leader itself executes every request without a reply,
        // and sought ones have no term.
        self.oldest = None;
        self.is_throttled = false;
        self.due = sessions.iter().rev().copied().collect();
        (blocked, sessions)
    }

    /// Removes the requests that have a position in their session's order; blocked ones stay.
    pub(crate) fn take_ordered(&mut self) -> Vec<(Box<Request>, Stage)> {
        let ordered = self.entries.values().filter(|it| !it.request.blocked);
        let numbers: Vec<Number> = ordered.map(|entry| entry.number).collect();
        let mut taken = Vec::new();
        for number in numbers {
            if let Some((entry, stage)) = self.take(number) {
                self.forget(entry.request.session, number);
                taken.extend((!entry.is_withdrawn).then_some((entry.request, stage)));
            }
        }
        taken
    }

    /// Takes the requests that must be executed again.
    pub(crate) fn take_all_anew(&mut self) -> Vec<Request> {
        let mut taken: Vec<Request> = Vec::new();
        let of_sessions = self.by_session.values_mut();
        taken.extend(of_sessions.filter_map(|of| of.anew.take().map(|request| *request)));
        taken.sort_unstable_by_key(|request| request.session);
        self.by_session
            .retain(|_, of| !of.ordered.is_empty() || !of.blocked.is_empty());
        taken
    }

    /// Removes all requests, in order. Drops those of closed sessions.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (Box<Request>, Stage)> + use<> {
        let all = std::mem::take(self);
        // Numbers and term continue, so a later request never gets an earlier number.
        self.last = all.last;
        self.present = all.present;
        let mut of_sessions: Vec<_> = all.by_session.into_iter().collect();
        of_sessions.sort_unstable_by_key(|(session, _)| *session);
        let anew = of_sessions.into_iter().filter_map(|(_, of)| of.anew);
        let anew = anew.map(|request| (request, Stage::Local));
        let entries = all.entries.into_values();
        let wanted = entries.filter(|entry| !entry.is_withdrawn);
        anew.chain(wanted.map(|entry| (entry.request, entry.stage)))
    }

    /// Removes a session's waiting request by the client's id.
    pub(crate) fn take_waiting(&mut self, session: SessionId, id: &[u8]) -> Option<Entry> {
        let of = self.by_session.get(&session)?;
        let mut numbers = of.ordered.iter().chain(&of.blocked).copied();
        let found = numbers.find(|number| {
            self.entries.get(number).is_some_and(|entry| {
                *entry.request.id == *id && matches!(entry.stage, Stage::Waiting)
            })
        })?;
        let (entry, _) = self.take(found)?;
        self.forget(session, found);
        Some(entry)
    }

    /// A session cancels its request with this id, which may have blocked. If a leader has it and
    /// does not execute it, it must not block again.
    pub(crate) fn cancel_blocked(&mut self, session: SessionId, id: &[u8]) {
        let of = self.by_session.get(&session);
        for number in of.into_iter().flat_map(|of| &of.blocked) {
            if let Some(entry) = self.entries.get_mut(number) {
                entry.is_canceled |= *entry.request.id == *id;
            }
        }
    }

    /// A session has closed. Returns its requests that no leader has; the others end without a
    /// reply.
    pub(crate) fn withdraw(&mut self, session: SessionId) -> Vec<Entry> {
        let Some(of) = self.by_session.get_mut(&session) else {
            return Vec::new();
        };
        of.anew = None;
        let numbers: Vec<Number> = of.ordered.iter().chain(&of.blocked).copied().collect();
        let mut withdrawn = Vec::new();
        for number in numbers {
            let Some(entry) = self.entries.get_mut(&number) else {
                continue;
            };
            entry.is_withdrawn = true;
            // A request that a leader may have executed keeps its entry: its outcome is still
            // matched, and ends without a reply.
            let is_with_leader = entry.stage.id().is_some();
            if !is_with_leader && let Some((entry, _)) = self.take(number) {
                self.forget(session, number);
                withdrawn.push(entry);
            }
        }
        withdrawn
    }
}

/// Memory of a waiting request, bytes.
fn cost(request: &Request) -> usize {
    request.frame.len() + COST_BYTES
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::SessionInfo;

    fn request(session: u64) -> Box<Request> {
        let params = br#"["D",{"op":"insert","table":"T","row":{}}]"#;
        Box::new(Request {
            session: SessionId(session),
            info: Arc::new(SessionInfo::new(false, String::new(), None)),
            arrived_ms: 0,
            stamp: 0,
            id: Box::default(),
            method: DatabaseMethod::Transact,
            frame: params.to_vec(),
            params: 0..params.len(),
            seqno: None,
            blocked: false,
            foreign_monitors: Vec::new(),
            once: None,
            client: None,
        })
    }

    fn eid(number: u8) -> Eid {
        Eid(Uuid([number; 16]))
    }

    /// Two requests of one session, forwarded in this term under the ids 1 and 2.
    fn forwarded(term: Term) -> (InFlight, Number, Number) {
        let mut in_flight = InFlight::default();
        in_flight.begin_term(term);
        let (first, is_next) = in_flight.push(request(1), Stage::Waiting);
        assert!(is_next);
        in_flight.forwarded(first, eid(1), Vec::new());
        let (second, is_next) = in_flight.push(request(1), Stage::Waiting);
        assert!(is_next, "what is with the leader holds nothing up");
        in_flight.forwarded(second, eid(2), Vec::new());
        (in_flight, first, second)
    }

    #[test]
    fn an_outcome_waits_for_the_entry_that_it_is_based_on() {
        let (mut in_flight, first, _) = forwarded(Term(1));
        let outcome = ForwardOutcome::Unchanged(Index(5), Bytes::from_static(b"[]"));
        assert!(in_flight.outcome(eid(1), outcome).is_none());
        assert!(in_flight.take_decided(Index(4)).is_none());
        let decided = in_flight.take_decided(Index(5));
        assert!(decided.is_some_and(|(entry, _)| entry.number == first));
    }

    #[test]
    fn requests_of_an_earlier_term_are_in_doubt_until_an_entry_of_a_later_one() {
        let (mut in_flight, first, second) = forwarded(Term(1));
        in_flight.begin_term(Term(2));
        assert!(in_flight.next_waiting(SessionId(1)).is_none(), "in doubt");
        in_flight.end_doubt(Term(1));
        assert!(
            in_flight.next_waiting(SessionId(1)).is_none(),
            "an entry of its own term"
        );
        in_flight.end_doubt(Term(2));
        assert_eq!(in_flight.next_waiting(SessionId(1)), Some(first));
        in_flight.forwarded(first, eid(3), Vec::new());
        assert_eq!(in_flight.next_waiting(SessionId(1)), Some(second));
    }

    #[test]
    fn a_committed_request_is_taken_once_and_the_next_one_becomes_the_first() {
        let (mut in_flight, first, second) = forwarded(Term(1));
        assert_eq!(in_flight.has_earlier(eid(2)), Some((SessionId(1), second)));
        let (entry, stage) = in_flight.take_committed(eid(1)).expect("it is in flight");
        assert!(entry.number == first && matches!(stage, Stage::Forwarded { .. }));
        assert!(in_flight.take_committed(eid(1)).is_none());
        assert!(
            !in_flight.is_first(SessionId(1), second),
            "its turn is not over"
        );
        in_flight.forget(SessionId(1), first);
        assert!(in_flight.is_first(SessionId(1), second));
    }
}
