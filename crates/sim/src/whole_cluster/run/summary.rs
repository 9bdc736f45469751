//! Statistics of a run, added up over many.

use super::run;
use crate::world::seeds::{Simulation, Tracing};

/// Statistics of a run, which show whether runs reach the interesting situations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Hash of the trace.
    pub hash: u64,
    /// Servers at the beginning.
    pub servers: u64,
    /// Transactions sent.
    pub transactions: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Committed transactions whose clients know it.
    pub acknowledged: u64,
    /// Transactions that were answered with an error.
    pub refused: u64,
    /// Transactions that were committed twice after their sessions had ended.
    pub repeated: u64,
    /// Leaderships.
    pub leaderships: u64,
    /// Restarts.
    pub restarts: u64,
    /// Restarts after a power loss.
    pub power_losses: u64,
    /// Connections between servers that broke.
    pub broken_connections: u64,
    /// Partitions.
    pub partitions: u64,
    /// Pauses.
    pub pauses: u64,
    /// Servers that tried to join.
    pub joins: u64,
    /// Servers that tried to leave.
    pub removals: u64,
    /// Servers that have left.
    pub left: u64,
    /// Files, or snapshots in them, that have rotted.
    pub damages: u64,
    /// Members whose file had less than they had promised, and whose loss was detected.
    pub found_out: u64,
    /// Members with such a file that got everything again from the leader that had counted it,
    /// before they were told of the loss.
    pub refilled: u64,
    /// Compactions because of growth.
    pub growths: u64,
    /// Snapshots received from leaders and installed.
    pub snapshots: u64,
    /// Transactions in doubt for which a server learned whether an installed snapshot contains
    /// them.
    pub found: u64,
    /// Sessions that ended because no member knows the outcome of a transaction.
    pub unknown: u64,
    /// Conversions that succeeded.
    pub conversions: u64,
    /// Clients that moved to another server, or returned.
    pub moves: u64,
    /// Monitors that continued with the changes since the last transaction.
    pub continued: u64,
    /// Virtual time, ms.
    pub virtual_ms: u64,
    /// Steps.
    pub steps: u64,
}

impl Simulation for Summary {
    const OPTION: &'static str = "--whole-clusters ";

    fn run(seed: u64, tracing: Tracing) -> Result<Summary, String> {
        run(seed, tracing)
    }

    fn add(&mut self, other: &Summary) {
        self.hash ^= other.hash;
        self.servers += other.servers;
        self.transactions += other.transactions;
        self.commits += other.commits;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.repeated += other.repeated;
        self.leaderships += other.leaderships;
        self.restarts += other.restarts;
        self.power_losses += other.power_losses;
        self.broken_connections += other.broken_connections;
        self.partitions += other.partitions;
        self.pauses += other.pauses;
        self.joins += other.joins;
        self.removals += other.removals;
        self.left += other.left;
        self.damages += other.damages;
        self.found_out += other.found_out;
        self.refilled += other.refilled;
        self.growths += other.growths;
        self.snapshots += other.snapshots;
        self.found += other.found;
        self.unknown += other.unknown;
        self.conversions += other.conversions;
        self.moves += other.moves;
        self.continued += other.continued;
        self.virtual_ms += other.virtual_ms;
        self.steps += other.steps;
    }
}
