//! The measurements of a member's thread, with `--metrics-listen`.
//!
//! Invariant: without figures each measuring point is one branch. Proposals are timed by the order of their commits: those of one leadership
//! are committed in the order in which they were made.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use corvid_consensus::database::Committed;
use corvid_consensus::{Member, MemberEvent, MemberRequest, PeerMessage, Peers};
use corvid_net::clock;

use crate::metrics::member::{MemberFigures, PUBLISH_MS};

/// See the module.
pub(super) struct Meter(Option<Measured>);

struct Measured {
    figures: Arc<MemberFigures>,
    /// When proposals were made that are not committed yet, ns, and how many at a time.
    proposed: VecDeque<(u64, usize)>,
    /// When the state was published last, monotonic ms.
    published_ms: u64,
}

impl Meter {
    /// Measures into these figures, if there are any.
    pub(super) fn new(figures: Option<Arc<MemberFigures>>) -> Meter {
        Meter(figures.map(|figures| Measured {
            figures,
            proposed: VecDeque::new(),
            published_ms: 0,
        }))
    }

    /// The database has made a request.
    pub(super) fn requested(&mut self, request: &MemberRequest) {
        if let (Some(measured), MemberRequest::Propose { proposals, .. }) = (&mut self.0, request) {
            let at = (clock::mono_ns(), proposals.len());
            measured.proposed.push_back(at);
        }
    }

    /// The database gets an event.
    pub(super) fn occurred(&mut self, event: &MemberEvent) {
        let Some(measured) = &mut self.0 else {
            return;
        };
        match event {
            MemberEvent::Committed { entries, .. } => {
                let own = entries.iter();
                let own = own
                    .filter(|entry| matches!(entry, Committed::Own { .. }))
                    .count();
                measured.committed(own);
            }
            MemberEvent::Leads { .. } | MemberEvent::Follows { .. } => measured.proposed.clear(),
            _ => {}
        }
    }

    /// A message is sent to a peer.
    pub(super) fn sent(&mut self, message: &PeerMessage) {
        if let (Some(measured), PeerMessage::Append { entries, .. }) = (&mut self.0, message)
            && !entries.is_empty()
        {
            measured.figures.appends.fetch_add(1, Ordering::Relaxed);
            let count = entries.len() as u64;
            measured.figures.entries.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Publishes the state, if it is time.
    pub(super) fn publish(&mut self, now_ms: u64, member: &Member, peers: &Peers) {
        if let Some(measured) = &mut self.0
            && now_ms >= measured.published_ms + PUBLISH_MS
        {
            measured.published_ms = now_ms;
            let status = member.status(now_ms);
            let backlog_bytes = peers.backlog_bytes();
            measured
                .figures
                .publish(status, peers.connection_count(), backlog_bytes);
        }
    }

    /// When the state is to be published, monotonic ms.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let measured = self.0.as_ref()?;
        Some(measured.published_ms + PUBLISH_MS)
    }
}

impl Measured {
    fn committed(&mut self, mut count: usize) {
        let now_ns = clock::mono_ns();
        while count > 0
            && let Some((since_ns, left)) = self.proposed.front_mut()
        {
            let done = count.min(*left);
            for _ in 0..done {
                self.figures.quorum.add(now_ns.saturating_sub(*since_ns));
            }
            count -= done;
            *left -= done;
            if *left == 0 {
                self.proposed.pop_front();
            }
        }
    }
}
