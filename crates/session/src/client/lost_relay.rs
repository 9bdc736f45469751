//! Staying at a relay that has lost its source.
//!
//! A relay shows in `_Server` that it is not connected half a minute after losing its source. A
//! client leaves the relay then, because another server may be better. A relay of that relay stays
//! if no other remote is better ([`Options::stays_at_lost_relays`](super::Options)). So a tree of
//! relays passes on at once that its root is gone, and at once that it is back; no level waits for
//! its own backoff.
//!
//! ```text
//! at home --lost, others untried--> trying the others --found one--> at home
//!    |                                     | none
//!    |                                     v
//!    +--lost, all tried--------------> at a lost relay --STAY_MS, others--> the next one
//!    ^                                     |
//!    |                 connected, and a fence has been passed
//!    +-------------------------------------+
//! ```
//!
//! Invariant: the session counts as being at a lost relay until it has everything that the relay
//! had when it reported being connected again. A fence detects that: a request that the relay
//! answers after its updates.

use super::{Client, Purpose, State};
use crate::failure::Failure;

/// How long the session stays at a lost relay before it looks at the other remotes again, ms.
/// Staying costs nothing; looking costs a connection.
const STAY_MS: u64 = 2000;

/// Whether the session is at a relay without a source, and which other remotes it has tried.
#[derive(Debug, Default)]
pub(super) struct LostRelay {
    /// Connections and attempts that have ended since the session was at home.
    tried: usize,
    /// When the session began to stay at the current server, monotonic ms; `None` if the server has
    /// its source.
    since_ms: Option<u64>,
    /// The relay has its source again; the session has everything once this request is answered.
    fence: Option<u64>,
}

impl LostRelay {
    /// The server has its source, and everything it had is on the way.
    pub(super) fn come_home(&mut self) {
        (self.since_ms, self.fence) = (None, None);
    }

    /// The connection or the attempt has ended.
    pub(super) fn disconnected(&mut self) {
        self.tried = self.tried.saturating_add(1);
        self.come_home();
    }
}

impl Client {
    /// Whether the server is a relay that has lost its source, and the session stays there because
    /// no other remote is better.
    #[must_use]
    pub fn is_at_lost_relay(&self) -> bool {
        self.lost_relay.since_ms.is_some()
    }

    /// The server is unsuitable. Returns true if the session stays there nevertheless.
    pub(super) fn stays(&mut self, failure: &Failure) -> bool {
        let is_lost_relay = self.options.stays_at_lost_relays
            && matches!(failure, Failure::Disconnected)
            && self
                .server_status()
                .is_some_and(|status| status.model.as_str() == "relay");
        // Every other remote has been tried since the session was at home.
        let are_others_tried = self.lost_relay.tried + 1 >= self.link.remotes().len();
        if !is_lost_relay || !are_others_tried {
            return false;
        }
        // A fence sent before the relay lost its source again proves nothing.
        self.lost_relay.fence = None;
        let now_ms = self.now_ms;
        self.lost_relay.since_ms.get_or_insert(now_ms);
        true
    }

    /// The server is suitable. Returns true if the session has waited for that and may request
    /// contents now.
    pub(super) fn has_source_again(&mut self) -> bool {
        if !self.is_at_lost_relay() {
            return false;
        }
        // No contents are requested yet, so none can be missing: no fence is needed.
        if self.state == State::ServerMonitor {
            return true;
        }
        if self.lost_relay.fence.is_none() {
            let fence = self.request("echo", b"[]", Purpose::SourceFence);
            self.lost_relay.fence = Some(fence);
        }
        false
    }

    /// The relay has answered a fence.
    pub(super) fn source_fence_passed(&mut self, id: u64) {
        if self.lost_relay.fence == Some(id) {
            self.lost_relay.come_home();
        }
    }

    /// Leaves a lost relay when it is time to look at the other remotes; otherwise records that the
    /// session is at home.
    pub(super) fn look_for_source(&mut self) {
        if self
            .stay_until_ms()
            .is_some_and(|at_ms| at_ms <= self.now_ms)
        {
            self.retry(Failure::Disconnected);
        } else if self.is_monitoring() && !self.is_at_lost_relay() {
            self.lost_relay.tried = 0;
        }
    }

    /// When the session looks at the other remotes, monotonic ms; `None` if it does not.
    pub(super) fn stay_until_ms(&self) -> Option<u64> {
        let has_others = self.link.remotes().len() > 1;
        let since_ms = self.lost_relay.since_ms.filter(|_| has_others)?;
        Some(since_ms + STAY_MS)
    }
}
