//! Clients of the library beside servers in virtual time, from one seed: the replicas of `corvid-idl`, two servers of one database with
//! their files, one of them following the other, and a network between them that delays, stalls, cuts and swallows.
//!
//! docs/design/simulation.md tells what happens in a run, what is checked, and how a failed seed is replayed.
//!
//! ```text
//!  members (Idl) <-> network <-> hosts (Machine, disk) <-> network <-> the other host's source
//!        |                          |
//!        +------ ledger: what was sent, how it ended, what a fail-over may have lost
//! ```

mod content;
mod host;
mod ledger;
mod member;
mod network;
mod rest;
pub mod run;
mod workload;

pub use run::{Summary, run};
