//! The whole server and its storage in virtual time, from one seed: the state machines of the
//! service, the three threads on which the server runs them, a simulated disk and simulated
//! clients. A scheduler draws which part acts next, which operations fail, and when the machine
//! goes down.
//!
//! docs/internals/simulation.md describes the faults, the checks, and how to replay a failed seed.
//!
//! ```text
//!  clients <-> shards <-> database --stores--> storage (disk thread, rewrite threads) --> disk
//!     |                       |                                                            |
//!     +------- history: transactions sent, acknowledged, refused, lost ----- after each restart
//! ```

pub(crate) mod client;
mod history;
pub(crate) mod machine;
pub(crate) mod opening;
pub mod run;
mod seeded_uuids;
pub(crate) mod workload;

pub use run::{Summary, run};
