//! Measurements on a member's thread.
//!
//! Invariant: while metrics are off, each measuring point costs one branch, and an idle thread is
//! not woken. The state is published all the same, at most once per [`PUBLISH_MS`] and only after
//! the thread has worked, so what is read right after metrics are switched on is not older than
//! that. Proposals are timed in commit order: the proposals of one leadership are committed in
//! the order in which they were made.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use corvid_consensus::database::Committed;
use corvid_consensus::{Member, MemberEvent, MemberRequest, PeerMessage, Peers};
use corvid_net::clock;

use crate::metrics::member::{MemberFigures, PUBLISH_MS};
use crate::metrics::switch::Switched;

/// The measurements of one member.
pub(super) struct Meter {
    figures: Switched<MemberFigures>,
    /// The proposals that are not committed yet: when each batch was made, ns, and how many of its
    /// proposals are left.
    proposed: VecDeque<(u64, usize)>,
    /// When the state was last published, monotonic ms.
    published_ms: u64,
    /// Whether the thread has worked since then.
    is_stale: bool,
}

impl Meter {
    /// Measures into these figures.
    pub(super) fn new(figures: Switched<MemberFigures>) -> Meter {
        Meter {
            figures,
            proposed: VecDeque::new(),
            published_ms: 0,
            is_stale: false,
        }
    }

    /// Observes a request of the database.
    pub(super) fn requested(&mut self, request: &MemberRequest) {
        if let MemberRequest::Propose { proposals, .. } = request
            && self.figures.is_on()
        {
            let at = (clock::mono_ns(), proposals.len());
            self.proposed.push_back(at);
        }
    }

    /// Observes an event for the database.
    pub(super) fn occurred(&mut self, event: &MemberEvent) {
        if !self.figures.is_on() {
            self.proposed.clear();
            return;
        }
        match event {
            MemberEvent::Committed { entries, .. } => {
                let own = entries.iter();
                let own = own
                    .filter(|entry| matches!(entry, Committed::Own { .. }))
                    .count();
                self.committed(own);
            }
            MemberEvent::Leads { .. } | MemberEvent::Follows { .. } => self.proposed.clear(),
            _ => {}
        }
    }

    /// Observes a message to a peer.
    pub(super) fn sent(&mut self, message: &PeerMessage) {
        if let (Some(figures), PeerMessage::Append { entries, .. }) =
            (self.figures.counted(), message)
            && !entries.is_empty()
        {
            figures.appends.fetch_add(1, Ordering::Relaxed);
            let count = entries.len() as u64;
            figures.entries.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Publishes the state after a turn of the thread, if it is due. This also happens while
    /// metrics are off, so that the first `/readyz` after they are switched on shows the present
    /// state.
    pub(super) fn publish(&mut self, now_ms: u64, member: &Member, peers: &Peers) {
        self.is_stale = self.due_ms() > now_ms;
        if !self.is_stale {
            self.published_ms = now_ms;
            let status = member.status(now_ms);
            let backlog_bytes = peers.backlog_bytes();
            self.figures
                .state()
                .publish(status, peers.connection_count(), backlog_bytes);
        }
    }

    /// When the thread must wake to publish the state, monotonic ms. While metrics are off this is
    /// `None` unless the thread has worked since the last publication.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        (self.figures.is_on() || self.is_stale).then_some(self.due_ms())
    }

    fn due_ms(&self) -> u64 {
        self.published_ms + PUBLISH_MS
    }

    fn committed(&mut self, mut count: usize) {
        let now_ns = clock::mono_ns();
        while count > 0
            && let Some((since_ns, left)) = self.proposed.front_mut()
        {
            let done = count.min(*left);
            for _ in 0..done {
                self.figures
                    .state()
                    .quorum
                    .add(now_ns.saturating_sub(*since_ns));
            }
            count -= done;
            *left -= done;
            if *left == 0 {
                self.proposed.pop_front();
            }
        }
    }
}
