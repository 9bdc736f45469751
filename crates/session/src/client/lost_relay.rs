//! Staying at a relay that has lost its source.
//!
//! A relay says in `_Server` that it is not connected half a minute after it has lost its source. A
//! client leaves it, because another server may be better. A relay of that relay stays where no
//! other remote is better ([`Options::stays_at_lost_relays`](super::Options)): so a tree of relays
//! passes on at once that its root is gone, and at once that it is back, and no level waits for a
//! backoff of its own.
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
//! had when it said that it was connected again. A fence tells: a request that the relay answers
//! after its updates.

use super::{Client, Purpose, State};
use crate::failure::Failure;

/// How long the session stays at a lost relay before it looks at the other remotes again, ms. Being
/// there costs nothing, and looking costs a connection.
const STAY_MS: u64 = 2000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct LostRelay {
    /// Connections and attempts that have ended since the session was at home.
    tried: usize,
    /// When the session began to stay at the present server; `None`: the server has its source.
    since_ms: Option<u64>,
    /// The relay has its source again, and the answer to this request tells when the session has
    /// everything.
    fence: Option<u64>,
}

impl LostRelay {
    /// The server has its source, and everything that it had comes.
    pub(super) fn come_home(&mut self) {
        (self.since_ms, self.fence) = (None, None);
    }

    /// The connection or the attempt is over.
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

    /// The server is not suitable. True if the session stays there all the same.
    pub(super) fn stays(&mut self, failure: &Failure) -> bool {
        let is_lost_relay = self.options.stays_at_lost_relays
            && matches!(failure, Failure::Disconnected)
            && self
                .server_status()
                .is_some_and(|status| status.model.as_str() == "relay");
        // Every other one has been tried since.
        let are_others_tried = self.lost_relay.tried + 1 >= self.link.remotes().len();
        if !is_lost_relay || !are_others_tried {
            return false;
        }
        self.lost_relay.fence = None;
        let now_ms = self.now_ms;
        self.lost_relay.since_ms.get_or_insert(now_ms);
        true
    }

    /// The server is suitable. True if the session has waited for that and asks for contents now.
    pub(super) fn has_source_again(&mut self) -> bool {
        if !self.is_at_lost_relay() {
            return false;
        }
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

    /// Leaves a lost relay when it is time to look at the others, and notes that the session is at
    /// home.
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

    /// When the session looks at the other remotes.
    pub(super) fn stay_until_ms(&self) -> Option<u64> {
        let has_others = self.link.remotes().len() > 1;
        let since_ms = self.lost_relay.since_ms.filter(|_| has_others)?;
        Some(since_ms + STAY_MS)
    }
}
