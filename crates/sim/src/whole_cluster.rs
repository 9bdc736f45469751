//! Whole servers of a cluster in virtual time, from one seed: one to seven servers as they ship, each with shards, `_Server`, a clustered
//! database, a member, its connections, its file on a disk that fails and a clock of its own; and clients that move between them.
//!
//! docs/internals/simulation.md describes the faults, the checks, and how to replay a failed seed. [`crate::cluster`] simulates members alone, in
//! more detail.
//!
//! ```text
//!  clients <-> shards <-> database <--events, requests--> member <-> connections <-- bytes --> other hosts
//!     |                      |                               |
//!     |                      |                            file --> disk
//!     +----- witness: commits, contents after each of them, outcomes of transactions
//! ```

mod doubts;
mod host;
mod location;
mod opening;
mod process;
mod relay;
pub mod run;
mod server;
mod sockets;
mod tenures;
mod turn;
mod witness;

pub use run::{RelaySummary, Summary, run};
