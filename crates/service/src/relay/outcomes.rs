//! The requests that a relay has for its source, and their outcomes.
//!
//! ```text
//! waiting (no monitored source) ---> sent ---> answered: the source's reply, unchanged
//!    |                                 |-----> its connection is lost: "canceled", the change may have been made
//!    +---> withdrawn: never sent
//! ```
//!
//! Invariant: each request has exactly one outcome. Requests are sent in the order in which they came, so those of one session keep theirs.
//! An outcome names the change that the database must have applied before its client gets the reply: the last one that the source sent before
//! its reply. Where the source tells no changes at that moment, because a conversion has ended its monitor, that change is the contents that
//! come next. Bounded by the database, which forwards no more than `FORWARDED_BYTES_MAX` at a time.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_consensus::database::{Forward, ForwardMethod, ForwardOutcome};
use corvid_log::cluster::{Eid, Index};
use corvid_session::{Client, Outcome, RequestId};

/// The error of a request whose outcome will never be known.
const CANCELED: &[u8] = b"\"canceled\"";

/// A request that the source has.
#[derive(Debug)]
struct Sent {
    id: Eid,
    method: ForwardMethod,
    /// How many contents had come by then.
    contents: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    waiting: VecDeque<Box<Forward>>,
    sent: BTreeMap<RequestId, Sent>,
    by_id: BTreeMap<Eid, RequestId>,
    /// Results that depend on contents which are still to come.
    held: Vec<(Eid, Bytes)>,
    /// Conversions that have been made, each with the `echo` behind it.
    fences: BTreeMap<RequestId, (Eid, Bytes)>,
    /// How many contents have come.
    contents: u64,
}

impl Outcomes {
    /// The database has forwarded a request.
    pub(super) fn push(&mut self, forward: Box<Forward>) {
        self.waiting.push_back(forward);
    }

    /// How many requests wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many requests the source has.
    pub(super) fn sent(&self) -> usize {
        self.sent.len()
    }

    /// Sends what waits, as far as the session takes it.
    pub(super) fn send(&mut self, client: &mut Client) {
        while let Some(forward) = self.waiting.front() {
            let method = match forward.method {
                ForwardMethod::Transact => "transact",
                ForwardMethod::Convert => "convert",
            };
            let Some(request) = client.send_request(method, &forward.params) else {
                return;
            };
            let sent = Sent {
                id: forward.id,
                method: forward.method,
                contents: self.contents,
            };
            self.by_id.insert(sent.id, request);
            self.sent.insert(request, sent);
            self.waiting.pop_front();
        }
    }

    /// No client waits for a request any more. Returns its outcome if it was not sent.
    pub(super) fn withdraw(
        &mut self,
        client: &mut Client,
        id: Eid,
        last: Index,
    ) -> Option<ForwardOutcome> {
        if let Some(request) = self.by_id.get(&id) {
            // It may be waiting there, for ever.
            client.cancel_request(*request);
            return None;
        }
        let at = self.waiting.iter().position(|forward| forward.id == id)?;
        self.waiting.remove(at);
        Some(canceled(last))
    }

    /// The session tells how a request ended, after the change `last`; `is_current` if that is the last one which the source had made by then.
    /// Returns the outcome, unless it has to wait for contents.
    pub(super) fn ended(
        &mut self,
        request: RequestId,
        outcome: Outcome,
        last: Index,
        is_current: bool,
        client: &mut Client,
    ) -> Option<(Eid, ForwardOutcome)> {
        if let Some((id, result)) = self.fences.remove(&request) {
            if !is_current || outcome == Outcome::Lost {
                self.held.push((id, result));
                return None;
            }
            return Some((id, ForwardOutcome::Unchanged(last, result)));
        }
        let Sent {
            id,
            method,
            contents,
        } = self.sent.remove(&request)?;
        self.by_id.remove(&id);
        let outcome = match outcome {
            Outcome::Result(result) if !is_current => {
                self.held.push((id, result.into()));
                return None;
            }
            // The client asks for the new schema next, so the relay must have it. A source may tell of the end of the monitor behind its reply,
            // or not end it, where the schema is the same as before: an `echo` shows which.
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
            Outcome::Lost => lost(last),
        };
        Some((id, outcome))
    }

    /// Contents have come, which are the change `index`. Returns the outcomes that waited for them.
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

/// The outcome of a request whose connection was lost after it was sent. A source of another make cannot be asked what became of it.
fn lost(last: Index) -> ForwardOutcome {
    canceled(last)
}

fn canceled(last: Index) -> ForwardOutcome {
    ForwardOutcome::Refused(last, Bytes::from_static(CANCELED))
}
