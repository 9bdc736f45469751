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

/// Requests, with their answers once these are here. Ids only grow.
pub(super) type Answers = BTreeMap<RequestId, Option<Outcome>>;

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
        self.asked.insert(request, None);
        Some(request)
    }

    /// Whether [`Idl::take_answer`] has an answer.
    #[must_use]
    pub fn is_answered(&self, request: RequestId) -> bool {
        !matches!(self.asked.get(&request), Some(None))
    }

    /// Takes the answer to a request that [`Idl::ask`] has sent. [`Outcome::Lost`] if there is
    /// none.
    pub fn take_answer(&mut self, request: RequestId) -> Outcome {
        match self.asked.remove(&request) {
            Some(Some(outcome)) => outcome,
            Some(None) => {
                self.client.forget_request(request);
                Outcome::Lost
            }
            None => Outcome::Lost,
        }
    }
}
