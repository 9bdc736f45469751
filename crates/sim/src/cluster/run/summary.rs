//! Statistics of a run, added up over many.

use super::run;
use crate::world::seeds::{Simulation, Tracing};

/// Statistics of a run, which show whether runs reach the interesting situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Hash of the trace.
    pub hash: u64,
    /// Members.
    pub members: u64,
    /// Transactions sent.
    pub transactions: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Committed transactions whose session learned the outcome.
    pub acknowledged: u64,
    /// Leaderships.
    pub leaderships: u64,
    /// Transactions that were judged never to have happened, and were retried.
    pub judged: u64,
    /// Transactions that a leader executed for another member.
    pub forwarded: u64,
    /// Restarts.
    pub restarts: u64,
    /// Restarts after a power loss.
    pub power_losses: u64,
    /// Messages lost.
    pub lost: u64,
    /// Messages duplicated.
    pub doubled: u64,
    /// Partitions.
    pub partitions: u64,
    /// Pauses.
    pub pauses: u64,
    /// Servers that tried to join.
    pub joins: u64,
    /// Servers that tried to leave.
    pub removals: u64,
    /// Changes of the member list.
    pub changes: u64,
    /// New files that members wrote to replace their present files.
    pub rewrites: u64,
    /// Files that have rotted.
    pub damages: u64,
    /// Snapshots received from leaders and installed.
    pub snapshots: u64,
    /// Transactions in doubt that were found in an installed snapshot.
    pub found: u64,
    /// Transactions in doubt whose outcome no member knows.
    pub unknown: u64,
    /// Virtual time, ms.
    pub virtual_ms: u64,
    /// Steps.
    pub steps: u64,
}

impl Simulation for Summary {
    const OPTION: &'static str = "--cluster ";

    fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
        run(seed, tracing)
    }

    fn add(&mut self, other: &Summary) {
        self.hash ^= other.hash;
        self.members += other.members;
        self.transactions += other.transactions;
        self.commits += other.commits;
        self.acknowledged += other.acknowledged;
        self.leaderships += other.leaderships;
        self.judged += other.judged;
        self.forwarded += other.forwarded;
        self.restarts += other.restarts;
        self.power_losses += other.power_losses;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.partitions += other.partitions;
        self.pauses += other.pauses;
        self.joins += other.joins;
        self.removals += other.removals;
        self.changes += other.changes;
        self.rewrites += other.rewrites;
        self.damages += other.damages;
        self.snapshots += other.snapshots;
        self.found += other.found;
        self.unknown += other.unknown;
        self.virtual_ms += other.virtual_ms;
        self.steps += other.steps;
    }
}
