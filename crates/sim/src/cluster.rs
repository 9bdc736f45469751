//! Clusters in virtual time, from one seed: one to seven members, each with a file on a failing
//! disk, its own clock and a database; a network between them that loses, doubles, delays and
//! partitions; and sessions that request transactions at any of them.
//!
//! docs/internals/simulation.md describes the faults, the checks, and how to replay a failed seed.
//!
//! ```text
//!  sessions --> registers <--events, requests--> member <--messages--> network <--> other hosts
//!      |                                           | records
//!      |                                        storage --> disk
//!      +------ oracle: leaders, logs, commits, outcomes; linearizability at the end
//! ```

mod ballot;
mod file;
mod host;
pub mod linearizability;
mod oracle;
mod registers;
pub mod run;

use corvid_consensus::KeptEntries;

use crate::world::dice::Dice;

pub use run::{Summary, run};

/// Entries that a member keeps after a snapshot: none, few or all, so that lagging peers get both
/// entries and snapshots.
pub(crate) fn kept_entries(dice: &mut Dice) -> KeptEntries {
    let few = KeptEntries {
        count_max: 1 + dice.below(8),
        bytes_max: 1 << (7 + dice.below(6)),
    };
    *dice.pick(&[KeptEntries::NONE, few, KeptEntries::DEFAULT])
}
