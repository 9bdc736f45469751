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
//! its reply. Bounded by the database, which forwards no more than `FORWARDED_BYTES_MAX` at a time.

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
    /// Conversions that the source has made, whose contents are still to come.
    converted: Vec<(Eid, Bytes)>,
    /// How many contents have come.
    contents: u64,
}

impl Outcomes {
    /// The database has forwarded a request.
    pub(super) fn push(&mut self, forward: Box<Forward>) {
        self.waiting.push_back(forward);
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

    /// The session tells how a request ended, after the change `last`. Returns the outcome, unless that has to wait.
    pub(super) fn ended(
        &mut self,
        request: RequestId,
        outcome: Outcome,
        last: Index,
    ) -> Option<(Eid, ForwardOutcome)> {
        let Sent {
            id,
            method,
            contents,
        } = self.sent.remove(&request)?;
        self.by_id.remove(&id);
        let outcome = match outcome {
            // The client asks for the new schema next, so the relay must have it.
            Outcome::Result(result)
                if method == ForwardMethod::Convert && contents == self.contents =>
            {
                self.converted.push((id, result.into()));
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
        let converted = std::mem::take(&mut self.converted);
        converted
            .into_iter()
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
