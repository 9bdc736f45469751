//! Statistics of a run with relays, added up over many.

use super::{Summary, run_relays};
use crate::world::seeds::{Simulation, Tracing};

/// Statistics about relays, which show whether runs reach the interesting situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayTally {
    /// Relays.
    pub relays: u64,
    /// Ends of relays' processes.
    pub kills: u64,
    /// Pauses of relays.
    pub pauses: u64,
    /// Acknowledged transactions of relays' clients.
    pub acknowledged: u64,
    /// Canceled transactions of relays' clients.
    pub canceled: u64,
    /// Transactions that asserted a lock and whose tenure was judged.
    pub asserted: u64,
    /// Relays whose contents became older because the source's did.
    pub went_back: u64,
    /// Complete contents that sources have sent to relays.
    pub downloads: u64,
    /// Broken connections between relays and their sources.
    pub broken_connections: u64,
}

/// Statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelaySummary {
    /// Statistics about the cluster and the clients.
    pub servers: Summary,
    /// Statistics about the relays.
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
