//! The requests that a relay has for its source, and their outcomes.
//!
//! ```text
//! waiting (no monitored source) ---> sent ---> answered: the source's reply, unchanged
//!    |                ^                |---> connection lost: "canceled"; may have been executed
//!    |                |                |---> connection lost, server executes ids once: unresolved
//!    |                |                |        |---> its client goes, or has gone: not sent again
//!    |                +---- a server that executes ids once, which decides ------------+
//!    |                                another server: "canceled" <---------------------+
//!    +---> withdrawn: never sent
//! ```
//!
//! Invariant: each request has exactly one outcome. Requests are sent in the order in which they
//! came, so each session's requests stay in order. An outcome names the change that the database
//! must have applied before the client gets the reply: the last one that the source sent before its
//! reply. If a conversion has ended the monitor, the source sends no changes at that moment; the
//! change is then the next contents. The database bounds the requests: it forwards at most
//! `FORWARDED_BYTES_MAX` at a time.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardMethod, ForwardOutcome};
use corvid_data::Uuid;
use corvid_json::{ArrayWriter, Reader};
use corvid_log::cluster::{Eid, Index};
use corvid_session::{Client, Outcome, RequestId};

use super::repetition::{ACCUSATIONS_MAX, REFUSED, Repetition};
use super::source_locks::SourceLocks;
use crate::message::Withdrawal;
use crate::once::{self, CANCELED};

/// A request that has been sent to the source.
#[derive(Debug)]
struct Sent {
    forward: Box<Forward>,
    /// The last commit that the relay had seen when it first sent the request.
    after: Uuid,
    /// The source that got the request executes its id once.
    is_once: bool,
    /// The request was sent with guards, whose results are hidden from the client.
    is_guarded: bool,
    /// How many contents had arrived before the request was sent.
    contents: u64,
    /// Connections that the source closed while it had the request.
    losses: u32,
    /// How many of those closures this request was accused of.
    accusations: u32,
    /// Its client has gone. It is not sent again: the client may have had its answer over another
    /// relay since, and the later the copy comes, the more may have been forgotten by then.
    is_abandoned: bool,
}

/// Connections that the source may close while it has a request; then the request is canceled. It
/// may be the cause in a way that [`Repetition`] does not detect, for instance through its reply.
const LOSSES_MAX: u32 = 16;

/// A request that has not been sent.
#[derive(Debug)]
enum Waiting {
    Forward(Box<Forward>),
    /// The claim to the lock of this name has changed.
    Lock(String),
}

/// Whether the connected source executes ids once.
fn executes_once(client: &Client) -> bool {
    // Without a transaction history, the source cannot tell whether a commit was made.
    client.server_id().is_some_and(once::is_announced) && client.last_id() != Uuid::ZERO
}

/// The requests that a relay has for its source, by their state.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    waiting: VecDeque<Waiting>,
    sent: BTreeMap<RequestId, Sent>,
    by_id: BTreeMap<Eid, RequestId>,
    /// Requests whose connection was lost, in the order of sending.
    unresolved: VecDeque<Sent>,
    /// Results that must follow contents which have not arrived yet.
    held: Vec<(Eid, Bytes)>,
    /// Conversions that the source has made, each by the `echo` sent after it.
    fences: BTreeMap<RequestId, (Eid, Bytes)>,
    /// How many contents have arrived.
    contents: u64,
    repetition: Repetition,
}

impl Outcomes {
    /// Queues a request that the database has forwarded.
    pub(super) fn push(&mut self, forward: Box<Forward>) {
        self.waiting.push_back(Waiting::Forward(forward));
    }

    /// Queues a changed claim to a lock after everything that waits.
    pub(super) fn push_lock(&mut self, name: String) {
        self.waiting.push_back(Waiting::Lock(name));
    }

    /// Drops queued claims: they are made again over the next connection, after everything that
    /// waits.
    pub(super) fn drop_locks(&mut self) {
        let is_forward = |waiting: &Waiting| matches!(waiting, Waiting::Forward(_));
        self.waiting.retain(is_forward);
    }

    /// How many requests and claims wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many requests the source has.
    pub(super) fn sent(&self) -> usize {
        self.sent.len()
    }

    /// Sends what waits, as far as the session accepts it. First come the requests that the same
    /// server or cluster may have executed already. Returns the outcomes of requests that another
    /// server had.
    pub(super) fn send(
        &mut self,
        client: &mut Client,
        locks: &mut SourceLocks,
        last: Index,
    ) -> Vec<(Eid, ForwardOutcome)> {
        let is_once = executes_once(client);
        let judges_clients = client.server_id().is_some_and(once::judges_clients);
        let last_id = client.last_id();
        let mut decided = Vec::new();
        // In the original order, before anything newer: a request must not overtake an earlier one
        // of its session whose outcome is unknown. Example: A and B were sent, the connection is
        // lost, C waits. The source gets A, B, C, and executes A and B at most once.
        while let Some(mut sent) = self.unresolved.pop_front() {
            // This source would execute the request a second time. Any other judges by the commit
            // that the relay had seen, and may be another server: a source that was restarted, a
            // member of its cluster, a relay of it.
            if !is_once {
                decided.push((sent.forward.id, canceled(last)));
                continue;
            }
            if !self.repetition.may_send() {
                self.unresolved.push_front(sent);
                return decided;
            }
            let form = Form::of(&sent.forward, is_once, Some(sent.after), judges_clients);
            sent.is_guarded = form.is_guarded;
            let Some(request) = client.send_request(form.method, &form.params) else {
                self.unresolved.push_front(sent);
                return decided;
            };
            self.begin(request, sent);
            let is_last = self.unresolved.is_empty();
            self.repetition
                .sent(request, is_last, || client.send_request("echo", b"[]"));
        }
        // Requests on trial go first: a newer one would be blamed for a connection that an older
        // one ends.
        if !self.repetition.may_send() {
            return decided;
        }
        while let Some(waiting) = self.waiting.front() {
            let forward = match waiting {
                Waiting::Forward(forward) => forward,
                Waiting::Lock(name) => {
                    self.cancel_asserting(client, locks, name);
                    if !locks.send(client, name) {
                        break;
                    }
                    self.waiting.pop_front();
                    continue;
                }
            };
            // The client may have sent the request before and name the commit that it had seen
            // then, or it has waited here since that commit.
            let known = forward.once.and_then(|once| once.after);
            let after = known.map(|after| after.0);
            // It may have been executed through another relay, and this source cannot tell.
            if forward.once.is_some_and(|once| once.is_repeated) && !is_once {
                decided.push((forward.id, canceled(last)));
                self.waiting.pop_front();
                continue;
            }
            let form = Form::of(forward, is_once, after, judges_clients);
            let Some(request) = client.send_request(form.method, &form.params) else {
                break;
            };
            // Removed from the queue only now that the session has accepted it.
            let is_guarded = form.is_guarded;
            let Some(Waiting::Forward(forward)) = self.waiting.pop_front() else {
                break;
            };
            let sent = Sent {
                is_once: is_once && forward.method == ForwardMethod::Transact,
                after: after.unwrap_or(last_id),
                contents: self.contents,
                is_guarded,
                losses: 0,
                accusations: 0,
                is_abandoned: false,
                forward,
            };
            self.begin(request, sent);
        }
        decided
    }

    /// A lock is about to be released. Cancels the transactions at the source that assert it: a
    /// blocked one must not be retried when the relay owns the lock for another session. Those
    /// already executed are not affected.
    fn cancel_asserting(&self, client: &mut Client, locks: &SourceLocks, name: &str) {
        if !locks.must_give_back(name) {
            return;
        }
        for (request, sent) in &self.sent {
            if sent.forward.client.locks.iter().any(|lock| lock == name) {
                client.cancel_request(*request);
            }
        }
    }

    fn begin(&mut self, request: RequestId, sent: Sent) {
        let known = self.by_id.insert(sent.forward.id, request);
        assert!(known.is_none(), "the source has a request once");
        let before = self.sent.insert(request, sent);
        assert!(before.is_none(), "a reply belongs to one request");
    }

    /// No client waits for this request any more. Returns the outcome if the request was never
    /// sent, or is abandoned.
    pub(super) fn withdraw(
        &mut self,
        client: &mut Client,
        id: Eid,
        why: Withdrawal,
        last: Index,
    ) -> Option<ForwardOutcome> {
        if let Some(request) = self.by_id.get(&id) {
            if why != Withdrawal::GoneForNow {
                // The request may be blocked at the source forever.
                client.cancel_request(*request);
            }
            if let Some(sent) = self.sent.get_mut(request) {
                sent.is_abandoned |= why != Withdrawal::Canceled;
            }
            return None;
        }
        let is_meant =
            |waiting: &Waiting| matches!(waiting, Waiting::Forward(forward) if forward.id == id);
        if let Some(at) = self.waiting.iter().position(is_meant) {
            self.waiting.remove(at);
            return Some(ForwardOutcome::Blocked(last));
        }
        let mut unresolved = self.unresolved.iter();
        let at = unresolved.position(|sent| sent.forward.id == id)?;
        self.unresolved.remove(at);
        Some(match why {
            Withdrawal::GoneForNow => ForwardOutcome::Blocked(last),
            Withdrawal::Gone | Withdrawal::Canceled => canceled(last),
        })
    }

    /// The connection has ended; `is_by_source`: the source closed it. The session then ends its
    /// requests ([`Outcomes::ended`]).
    pub(super) fn connection_ends(&mut self, is_by_source: bool) {
        self.repetition.connection_ends(is_by_source);
        if is_by_source {
            self.sent.values_mut().for_each(|sent| sent.losses += 1);
        }
    }

    /// A request has ended, after the change `last`. `is_current`: `last` is the newest change that
    /// the source had made by then. Returns the outcome, unless it must wait for contents.
    pub(super) fn ended(
        &mut self,
        request: RequestId,
        outcome: Outcome,
        last: Index,
        is_current: bool,
        client: &mut Client,
    ) -> Option<(Eid, ForwardOutcome)> {
        if self.repetition.passed(request, self.unresolved.is_empty()) {
            return None;
        }
        if let Some((id, result)) = self.fences.remove(&request) {
            if !is_current || outcome == Outcome::Lost {
                self.held.push((id, result));
                return None;
            }
            return Some((id, ForwardOutcome::Unchanged(last, result)));
        }
        let mut sent = self.sent.remove(&request)?;
        sent.accusations += u32::from(self.repetition.accuses(request));
        let (id, method) = (sent.forward.id, sent.forward.method);
        let contents = sent.contents;
        let known = self.by_id.remove(&id);
        assert_eq!(known, Some(request), "a request has one outcome");
        let outcome = match outcome {
            Outcome::Result(result) if sent.is_guarded => {
                Outcome::Result(without_guards(&sent.forward, result))
            }
            outcome => outcome,
        };
        let outcome = match outcome {
            Outcome::Result(result) if !is_current => {
                self.held.push((id, result.into()));
                return None;
            }
            // The client asks for the new schema next, so the relay must have it first. The source
            // may announce the end of the monitor after its reply, or keep the monitor if the
            // schema is unchanged. The answer to an `echo` shows which.
            Outcome::Result(result)
                if method == ForwardMethod::Convert && contents == self.contents =>
            {
                match client.send_request("echo", b"[]") {
                    Some(fence) => drop(self.fences.insert(fence, (id, result.into()))),
                    None => self.held.push((id, result.into())),
                }
                return None;
            }
            Outcome::Result(result) => ForwardOutcome::Unchanged(last, result.into()),
            Outcome::Error(error) => ForwardOutcome::Refused(last, error.into()),
            // The client's next copy names the commit that the client had seen, so the source
            // judges it as if this one had never been here.
            Outcome::Lost if sent.is_abandoned && sent.forward.once.is_some() => {
                ForwardOutcome::Blocked(last)
            }
            Outcome::Lost if sent.is_abandoned => canceled(last),
            Outcome::Lost if sent.accusations >= ACCUSATIONS_MAX => {
                ForwardOutcome::Refused(last, Bytes::from_static(REFUSED))
            }
            Outcome::Lost if sent.is_once && sent.losses < LOSSES_MAX => {
                self.unresolved.push_back(sent);
                return None;
            }
            // A source that does not execute ids once cannot be asked whether it executed the
            // request.
            Outcome::Lost => canceled(last),
        };
        Some((id, outcome))
    }

    /// Contents have arrived, as the change `index`. Returns the outcomes that waited for them.
    pub(super) fn contents_come(
        &mut self,
        index: Index,
    ) -> impl Iterator<Item = (Eid, ForwardOutcome)> + use<> {
        self.contents += 1;
        let held = std::mem::take(&mut self.held);
        held.into_iter()
            .map(move |(id, result)| (id, ForwardOutcome::Unchanged(index, result)))
    }
}

/// A request as it is sent to the source.
struct Form<'f> {
    method: &'static str,
    params: Cow<'f, [u8]>,
    is_guarded: bool,
}

impl<'f> Form<'f> {
    /// The form for a source that executes ids once or not, and that checks the roles of clients or
    /// not. A source that checks them does so on the rows that it changes. Any other source checks
    /// only the relay's session, so the transaction carries its guards.
    fn of(
        forward: &'f Forward,
        is_once: bool,
        after: Option<Uuid>,
        judges_clients: bool,
    ) -> Form<'f> {
        let plain = |method| Form {
            method,
            params: Cow::Borrowed(&forward.params),
            is_guarded: false,
        };
        if forward.method == ForwardMethod::Convert {
            return plain("convert");
        }
        let for_source = forward.client.for_source.as_ref();
        if let Some(for_source) = for_source.filter(|_| judges_clients) {
            let id = is_once.then_some(forward.id.0);
            let client = Some(&*for_source.client);
            return Form {
                method: "transact_once",
                params: once::params(id, after, &forward.params, client).into(),
                is_guarded: false,
            };
        }
        let guarded = for_source.and_then(|for_source| for_source.guarded.as_ref());
        let params = guarded.map_or(&forward.params, |guarded| &guarded.params);
        let (method, params) = match is_once {
            true => {
                let params = once::params(Some(forward.id.0), after, params, None);
                ("transact_once", params.into())
            }
            false => ("transact", Cow::Borrowed(&**params)),
        };
        Form {
            method,
            params,
            is_guarded: guarded.is_some(),
        }
    }
}

/// The `result` of a transaction without the results of its guards. A guard that failed becomes the
/// error of the operation that it guards.
fn without_guards(forward: &Forward, result: Vec<u8>) -> Vec<u8> {
    let for_source = forward.client.for_source.as_ref();
    let Some(guarded) = for_source.and_then(|for_source| for_source.guarded.as_ref()) else {
        return result;
    };
    let mut reader = Reader::trusted(&result);
    if reader.begin_array().is_err() {
        return result;
    }
    let mut guards = guarded.guards.iter().peekable();
    let mut out = Vec::with_capacity(result.len());
    let mut array = ArrayWriter::new(&mut out);
    let mut has_failed = false;
    let mut at = 0;
    while let Ok(true) = reader.next_element() {
        let Ok(element) = reader.skip() else {
            return result;
        };
        let guard = guards.next_if(|guard| guard.at == at);
        at += 1;
        match guard {
            Some(guard) if is_error(element) => {
                array.element().extend_from_slice(&guard.error);
                has_failed = true;
            }
            Some(_) => {}
            // The `null` of the operation whose guard failed: the error above has taken its place.
            None if std::mem::take(&mut has_failed) => {}
            None => array.element().extend_from_slice(element),
        }
    }
    array.end();
    out
}

/// Whether this is the result of a failed operation.
fn is_error(result: &[u8]) -> bool {
    let mut reader = Reader::trusted(result);
    if reader.begin_object().is_err() {
        return false;
    }
    while let Ok(Some(name)) = reader.next_member() {
        if *name == *b"error" {
            return true;
        }
        if reader.skip().is_err() {
            return false;
        }
    }
    false
}

/// The outcome of a request about which nothing more can be learned.
fn canceled(last: Index) -> ForwardOutcome {
    ForwardOutcome::Refused(last, Bytes::from_static(CANCELED))
}
