//! Clients of the library and their servers in virtual time, from one seed: replicas of
//! `corvid-idl`, two servers of one database with their files, one of which replicates the other,
//! and a network between them that delays, stalls, cuts and drops. In every second run, relays of a
//! cluster take the place of the two servers (`tree.rs`).
//!
//! docs/internals/simulation.md describes a run, the checks, and how to replay a failed seed.
//!
//! ```text
//!  clients (Idl) <-> network <-> hosts (Machine, disk) <-> network <-> the other host's source
//!        |                          |
//!        +------ ledger: transactions, their outcomes, and those that a fail-over may have lost
//! ```

mod content;
mod failed_waits;
mod host;
mod ledger;
mod quiescence;
pub mod run;
mod sessions;
mod sim_client;
mod tree;
mod workload;

pub use run::{Summary, run};
