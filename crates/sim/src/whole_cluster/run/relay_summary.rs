//! Statistics of a run with relays, added up over many.

use super::{Summary, run_relays};
use crate::world::seeds::{Simulation, Tracing};

/// Statistics about relays: they show whether runs reach the interesting situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayTally {
    /// Relays.
    pub relays: u64,
    /// Ends of their processes.
    pub kills: u64,
    /// Pauses of them.
    pub pauses: u64,
    /// Transactions of their clients that were acknowledged.
    pub acknowledged: u64,
    /// Transactions of their clients that were canceled.
    pub canceled: u64,
    /// Transactions that asserted a lock and whose tenure was judged.
    pub asserted: u64,
    /// Relays that became older, because their source did.
    pub went_back: u64,
    /// Whole contents that their sources have sent them.
    pub downloads: u64,
    /// Connections between them and their sources that broke.
    pub broken_connections: u64,
}

/// Statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelaySummary {
    /// About the cluster and the clients.
    pub servers: Summary,
    /// About the relays.
    pub relays: RelayTally,
}

impl Simulation for RelaySummary {
    const OPTION: &'static str = "--relays ";

    fn run(seed: u64, tracing: Tracing) -> Result<RelaySummary, String> {
        run_relays(seed, tracing)
    }

    fn add(&mut self, other: &RelaySummary) {
        self.servers.add(&other.servers);
        let (sum, other) = (&mut self.relays, &other.relays);
        sum.relays += other.relays;
        sum.kills += other.kills;
        sum.pauses += other.pauses;
        sum.acknowledged += other.acknowledged;
        sum.canceled += other.canceled;
        sum.asserted += other.asserted;
        sum.went_back += other.went_back;
        sum.downloads += other.downloads;
        sum.broken_connections += other.broken_connections;
    }
}
