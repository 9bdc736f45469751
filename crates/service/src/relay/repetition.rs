//! Requests that are sent again over another connection, and detection of a request that makes the
//! source close it.
//!
//! ```text
//! loss ---> all at once, then `echo` ---> its reply: done
//!                 |
//!                 +- loss before that reply ---> one at a time, each with an `echo`
//!                                                    |      +---> its reply: the next one
//!                                                    +- loss before that reply: request accused
//! ```
//!
//! A source that rejects a request, for instance because it is longer than `--max-message-size`,
//! closes the connection when it reads the request. So it never answers the `echo` sent after it.
//! Our own sources answer such a request with an error ([`crate::frontend::is_passed_on`]); this
//! file is for sources that do not.
//!
//! Invariant: a request is not sent again after it was the only one before the `echo` in
//! [`ACCUSATIONS_MAX`] connections that the source closed. Once is not enough, since networks fail
//! and processes exit. A connection that the relay closes accuses no request.

use corvid_session::RequestId;

/// Accusations after which a request is refused.
pub(super) const ACCUSATIONS_MAX: u32 = 3;

/// The error of a refused request.
pub(super) const REFUSED: &[u8] = br#"{"details":"the relay's source closes the connection upon this request, which is not sent again; whether it was executed is not known","error":"canceled"}"#;

/// The state of sending requests again.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    /// The unanswered `echo` that follows the requests sent again.
    fence: Option<RequestId>,
    /// The request before that `echo`, if it is the only one.
    suspect: Option<RequestId>,
    /// Requests that were sent again since the last `echo`.
    unfenced: usize,
    /// Requests are sent one at a time.
    is_careful: bool,
    /// The only request that was in flight before the `echo` when the source closed the last
    /// connection.
    accused: Option<RequestId>,
}

impl Repetition {
    /// Whether the next request may be sent.
    pub(super) fn may_send(&self) -> bool {
        !self.is_careful || self.fence.is_none()
    }

    /// A request was sent again; `is_last`: no other follows at once. `send_fence` sends the
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

    /// Whether this is the reply to the `echo`. `is_all`: nothing is left to send again.
    pub(super) fn passed(&mut self, request: RequestId, is_all: bool) -> bool {
        if self.fence != Some(request) {
            return false;
        }
        self.fence = None;
        self.suspect = None;
        self.is_careful &= !is_all;
        true
    }

    /// The connection has ended; `is_by_source`: the source closed it.
    pub(super) fn connection_ends(&mut self, is_by_source: bool) {
        let was_under_way = self.fence.take().is_some();
        let suspect = self.suspect.take();
        self.unfenced = 0;
        self.accused = None;
        if is_by_source {
            self.accused = suspect.filter(|_| was_under_way);
            // The first loss sends everything again at once. From the second loss in a row on,
            // requests are sent one at a time to find the culprit.
            self.is_careful = was_under_way;
        }
    }

    /// Whether the source closed the last connection because of this request.
    pub(super) fn accuses(&self, request: RequestId) -> bool {
        self.accused == Some(request)
    }
}
