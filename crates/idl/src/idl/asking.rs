//! Requests of other methods, besides transactions and fetches: they neither use nor change the
//! replica.
//!
//! Invariant: at most [`ASKED_MAX`] are remembered. A program that abandons a wait leaves an answer
//! behind, which a later request pushes out.

use std::collections::BTreeMap;

use corvid_session::{Outcome, RequestId};

use super::Idl;

/// Requests whose answers are kept at a time.
pub const ASKED_MAX: usize = 16;

/// The requests, by ids that only grow.
pub(super) type Answers = BTreeMap<RequestId, Request>;

/// The state of a request.
#[derive(Debug)]
pub(super) enum Request {
    Waiting,
    Answered(Outcome),
    /// The program does not want the answer.
    Withdrawn(Undo),
}

/// The request that undoes one whose result has come although it was withdrawn: method and
/// parameters, made of the result.
pub type Undo = fn(&Idl, &[u8]) -> Option<(&'static str, Vec<u8>)>;

impl Idl {
    /// Sends a request of any method; `params` is a JSON array. Returns `None`, and sends nothing,
    /// unless the contents are current.
    pub fn ask(&mut self, method: &str, params: &[u8]) -> Option<RequestId> {
        let request = self.client.send_request(method, params)?;
        while self.asked.len() >= ASKED_MAX
            && let Some((oldest, _)) = self.asked.pop_first()
        {
            self.client.forget_request(oldest);
        }
        self.asked.insert(request, Request::Waiting);
        Some(request)
    }

    /// Whether [`Idl::take_answer`] has an answer.
    #[must_use]
    pub fn is_answered(&self, request: RequestId) -> bool {
        !matches!(self.asked.get(&request), Some(Request::Waiting))
    }

    /// Takes the answer to a request that [`Idl::ask`] has sent. [`Outcome::Lost`] if there is
    /// none.
    pub fn take_answer(&mut self, request: RequestId) -> Outcome {
        match self.asked.remove(&request) {
            Some(Request::Answered(outcome)) => outcome,
            Some(Request::Waiting) => {
                self.client.forget_request(request);
                Outcome::Lost
            }
            Some(Request::Withdrawn(_)) | None => Outcome::Lost,
        }
    }

    /// Asks the server to cancel a request that [`Idl::ask`] has sent. Its result may be under way
    /// already: `undo` makes a request of it, whose answer is dropped.
    pub fn withdraw(&mut self, request: RequestId, undo: Undo) {
        match self.asked.remove(&request) {
            Some(Request::Waiting) => {
                self.asked.insert(request, Request::Withdrawn(undo));
                self.client.cancel_request(request);
            }
            Some(Request::Answered(outcome)) => self.undo(undo, &outcome),
            Some(Request::Withdrawn(_)) | None => {}
        }
    }

    /// Takes in the answer to a request of this kind.
    pub(super) fn take_in(&mut self, request: RequestId, outcome: Outcome) {
        match self.asked.remove(&request) {
            Some(Request::Withdrawn(undo)) => self.undo(undo, &outcome),
            Some(_) => {
                self.asked.insert(request, Request::Answered(outcome));
            }
            None => {}
        }
    }

    fn undo(&mut self, undo: Undo, outcome: &Outcome) {
        let Outcome::Result(result) = outcome else {
            return;
        };
        if let Some((method, params)) = undo(self, result)
            && let Some(request) = self.client.send_request(method, &params)
        {
            self.client.forget_request(request);
        }
    }
}
