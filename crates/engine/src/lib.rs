//! The transaction engine: tables in copy-on-write pages, operations, references, commit. A commit yields a
//! [`corvid_data::Delta`], the only thing that leaves.
//!
//! This crate knows no sessions, monitors, files, sockets, clocks or random sources: those arrive through [`Context`].

pub mod condition;
pub mod context;
pub mod database;
pub mod snapshot;

pub use condition::Condition;
pub use context::{Context, LockOwner, Outcome};
pub use database::Database;
pub use snapshot::Snapshot;
