//! Which transactions of a relay's clients may be answered with `canceled`: those of which nobody can tell what became of them
//! (docs/internals/relay.md, "Exactly once").
//!
//! Invariant: a transaction is in doubt only if its relay has another process as its source since it was sent, or if a member of the cluster
//! may have forgotten it: its process has ended, or it has installed a snapshot, after the last commit that the relay had seen. Connections that
//! break put nothing in doubt.

use std::collections::BTreeMap;

use corvid_data::Uuid;

/// A relay may have seen a commit so much later than a member that ended behind it, ms.
const BEHIND_MS: u64 = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// When a member last ended, started again, or installed a snapshot.
    cluster_ms: Option<u64>,
    /// The last source of each relay that has another relay as its source, and since when.
    sources: BTreeMap<usize, (Uuid, u64)>,
    /// Transactions by their numbers: when they were sent, and since when their relay had its last commit by then.
    sent: BTreeMap<i64, (u64, u64)>,
}

impl Doubts {
    /// The process of a member has ended, or has installed a snapshot.
    pub(super) fn member_ended(&mut self, now_ms: u64) {
        self.cluster_ms = Some(now_ms);
    }

    /// A member starts; the first start is no doubt.
    pub(super) fn member_started(&mut self, now_ms: u64) {
        if self.cluster_ms.is_some() {
            self.cluster_ms = Some(now_ms);
        }
    }

    /// A relay has this process as its source.
    pub(super) fn source(&mut self, relay: usize, server_id: Uuid, now_ms: u64) {
        let known = self.sources.entry(relay).or_insert((server_id, now_ms));
        if known.0 != server_id {
            *known = (server_id, now_ms);
        }
    }

    /// A client of a relay sends a transaction; the relay has had its last commit since `since_ms`.
    pub(super) fn sent(&mut self, number: i64, now_ms: u64, since_ms: u64) {
        self.sent.insert(number, (now_ms, since_ms));
    }

    /// A transaction of a relay's client was canceled.
    ///
    /// # Errors
    /// Its outcome was there to be found.
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
