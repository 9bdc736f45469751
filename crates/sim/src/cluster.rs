//! Clusters in virtual time, from one seed: one to seven members, each with a file on a disk that fails, a clock of its own and a database,
//! a network between them that loses, doubles, delays and is cut, and sessions that request transactions at any of them.
//!
//! docs/design/simulation.md describes the faults, the checks, and how to replay a failed seed.
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
mod network;
mod oracle;
mod registers;
pub mod run;

pub use run::{Summary, run};
