//! Statistics of a run, added up over many.

use super::run;
use crate::world::seeds::{Simulation, Tracing};

/// Statistics of a run: they show whether runs reach the interesting situations.
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
    /// Those of them whose session learned it.
    pub acknowledged: u64,
    /// Leaderships.
    pub leaderships: u64,
    /// Transactions that were judged never to have happened, and tried again.
    pub judged: u64,
    /// Transactions that a leader executed for another member.
    pub forwarded: u64,
    /// Restarts.
    pub restarts: u64,
    /// Restarts after a power loss.
    pub power_losses: u64,
    /// Messages lost.
    pub lost: u64,
    /// Messages doubled.
    pub doubled: u64,
    /// Partitions.
    pub partitions: u64,
    /// Pauses.
    pub pauses: u64,
    /// Servers that were to join.
    pub joins: u64,
    /// Servers that were to leave.
    pub removals: u64,
    /// Changes of the list of members.
    pub changes: u64,
    /// New files of members, beside the present ones.
    pub rewrites: u64,
    /// Files that have rotted.
    pub damages: u64,
    /// Snapshots of leaders, installed.
    pub snapshots: u64,
    /// Transactions in doubt that were found in an installed snapshot.
    pub found: u64,
    /// Transactions in doubt whose outcome no member knows any more.
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
