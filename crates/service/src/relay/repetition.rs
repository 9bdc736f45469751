//! Requests that are sent again over another connection, and the one upon which the source closes it.
//!
//! ```text
//! loss ---> all at once, then `echo` ---> its reply: done
//!                 |
//!                 +- loss before that reply ---> one at a time, each with an `echo`
//!                                                    |         +---> its reply: the next one
//!                                                    +- loss before that reply: this one is accused
//! ```
//!
//! A source that does not take a request (it is too long for `--max-message`, for instance) closes
//! the connection when it reads it, so it never answers the `echo` behind it. Our sources answer
//! such a request with an error ([`crate::frontend::is_passed_on`]); this is for those that do not.
//! Invariant: a request that was alone before the `echo` when the source closed the connection, so
//! many times ([`ACCUSATIONS_MAX`]), is not sent again. Once is not enough, since networks fail and
//! processes end. A connection that the relay gives up accuses no request.

use corvid_session::RequestId;

/// Accusations after which a request is refused.
pub(super) const ACCUSATIONS_MAX: u32 = 3;

/// The error of a request upon which the source closes the connection.
pub(super) const REFUSED: &[u8] = br#"{"details":"the relay's source closes the connection upon this request, which is not sent again; whether it was executed is not known","error":"canceled"}"#;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    /// The `echo` behind what was sent again, while it is not answered.
    fence: Option<RequestId>,
    /// The request in front of it, if it was the only one.
    suspect: Option<RequestId>,
    /// Requests that were sent again and have no fence yet.
    unfenced: usize,
    /// One at a time.
    is_careful: bool,
    /// The request upon which the last connection was closed.
    accused: Option<RequestId>,
}

impl Repetition {
    /// Whether the next request may be sent.
    pub(super) fn may_send(&self) -> bool {
        !self.is_careful || self.fence.is_none()
    }

    /// A request was sent again; `is_last`: no other one follows at once. `send_fence` sends the
    /// `echo`.
    pub(super) fn sent(
        &mut self,
        request: RequestId,
        is_last: bool,
        send_fence: impl FnOnce() -> Option<RequestId>,
    ) {
        self.unfenced += 1;
        if !self.is_careful && !is_last {
            return;
        }
        self.suspect = (self.unfenced == 1).then_some(request);
        self.unfenced = 0;
        self.fence = send_fence();
    }

    /// Whether this is the answer to the fence. `is_all`: nothing is left to be sent again.
    pub(super) fn passed(&mut self, request: RequestId, is_all: bool) -> bool {
        if self.fence != Some(request) {
            return false;
        }
        self.fence = None;
        self.suspect = None;
        self.is_careful &= !is_all;
        true
    }

    /// The connection is over.
    pub(super) fn connection_ends(&mut self, is_by_source: bool) {
        let was_under_way = self.fence.take().is_some();
        let suspect = self.suspect.take();
        self.unfenced = 0;
        self.accused = None;
        if is_by_source {
            self.accused = suspect.filter(|_| was_under_way);
            // Beyond the first loss in a row, requests are told apart.
            self.is_careful = was_under_way;
        }
    }

    /// Whether the last connection was closed upon this request.
    pub(super) fn accuses(&self, request: RequestId) -> bool {
        self.accused == Some(request)
    }
}
