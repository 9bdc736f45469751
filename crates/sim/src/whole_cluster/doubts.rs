//! Determines which transactions of a relay's clients may be answered with `canceled`: those whose
//! outcome cannot be found (docs/internals/relay.md, "Exactly once").
//!
//! Invariant: a transaction is in doubt in two cases only. Its relay has changed to another process
//! as its source since the transaction was sent. Or a member of the cluster may have forgotten it:
//! after the last commit that the relay had seen, the member's process ended, or the member
//! installed a snapshot. Broken connections put nothing in doubt.

use std::collections::BTreeMap;

use corvid_data::Uuid;

/// A relay may have seen a commit this much later than a member that ended before it saw the
/// commit, ms.
const BEHIND_MS: u64 = 10_000;

/// The events that put transactions of relays in doubt.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// When a member last ended, restarted, or installed a snapshot, ms.
    cluster_ms: Option<u64>,
    /// The last source of each relay whose source is another relay, and the time since when, ms.
    sources: BTreeMap<usize, (Uuid, u64)>,
    /// Transactions by number: when each was sent, and since when its relay had the last commit
    /// that it had at that time, ms.
    sent: BTreeMap<i64, (u64, u64)>,
}

impl Doubts {
    /// Notes that the process of a member has ended, or that a member has installed a snapshot.
    pub(super) fn member_ended(&mut self, now_ms: u64) {
        self.cluster_ms = Some(now_ms);
    }

    /// Notes that a member starts. The first start puts nothing in doubt.
    pub(super) fn member_started(&mut self, now_ms: u64) {
        if self.cluster_ms.is_some() {
            self.cluster_ms = Some(now_ms);
        }
    }

    /// Notes that a relay has this process as its source.
    pub(super) fn source(&mut self, relay: usize, server_id: Uuid, now_ms: u64) {
        let known = self.sources.entry(relay).or_insert((server_id, now_ms));
        if known.0 != server_id {
            *known = (server_id, now_ms);
        }
    }

    /// Notes that a client of a relay sends a transaction. The relay has had its last commit since
    /// `since_ms`.
    pub(super) fn sent(&mut self, number: i64, now_ms: u64, since_ms: u64) {
        self.sent.insert(number, (now_ms, since_ms));
    }

    /// Checks that a canceled transaction of a relay's client was in doubt.
    ///
    /// # Errors
    /// The outcome could have been found.
    pub(super) fn canceled(&self, number: i64, relay: usize) -> Result<(), String> {
        let Some((sent_ms, since_ms)) = self.sent.get(&number) else {
            return Err(format!("transaction {number} of no relay is canceled"));
        };
        let is_of_cluster = self
            .cluster_ms
            .is_some_and(|at_ms| at_ms + BEHIND_MS >= *since_ms);
        let source = self.sources.get(&relay);
        let is_of_source = source.is_some_and(|(_, at_ms)| at_ms >= sent_ms);
        if is_of_cluster || is_of_source {
            return Ok(());
        }
        Err(format!(
            "transaction {number} is canceled, and its outcome can be found out"
        ))
    }
}
