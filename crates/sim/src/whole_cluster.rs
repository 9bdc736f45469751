//! Whole servers of a cluster in virtual time, from one seed: one to seven servers as they ship,
//! and clients that move between them. Each server has shards, `_Server`, a clustered database, a
//! member, its connections, its file on a failing disk and its own clock.
//!
//! docs/internals/simulation.md describes the faults, the checks, and how to replay a failed seed.
//! [`crate::cluster`] simulates members alone, in more detail.
//!
//! ```text
//!  clients <-> shards <-> database <--events, requests--> member <-> connections <--bytes--> hosts
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
mod standalone;
mod tenures;
mod turn;
mod witness;

pub(crate) use run::Stage;
pub use run::{RelaySummary, Summary, run};
