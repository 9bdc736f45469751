//! The whole server and its storage in virtual time, from one seed: state machines of the service, the three threads that the server runs
//! them on, a simulated disk and simulated clients, under a scheduler that draws who acts next, what fails and when the machine goes down.
//!
//! docs/design/simulation.md tells which faults there are, what is checked, and how a failed seed is replayed.
//!
//! ```text
//!  clients <-> shards <-> database --stores--> storage (disk thread, rewrite threads) --> disk
//!     |                       |                                                            |
//!     +------- history: what was asked, acknowledged, refused, lost -------- after each restart
//! ```

mod client;
pub mod disk;
mod history;
mod inode;
pub(crate) mod machine;
pub(crate) mod opening;
pub mod run;
mod storage;
pub mod trace;
mod workload;

pub use run::{Summary, run};
