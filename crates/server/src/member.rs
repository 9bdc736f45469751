//! The member of one clustered database: its thread, its connections to the other members, and its
//! file. [`corvid_service::member`] decides what happens; this module carries it out.
//!
//! ```text
//! database --MemberRequest--> handle.rs --> effects.rs <--> links.rs <--> other members
//!     ^                                       |  |
//!     +------------ MemberEvent --------------+  +--> database/storage.rs (disk thread, the member's file)
//! ```
//!
//! Invariant: only the thread `raft:NAME` uses the member, its connections and its file's requests.

mod acceptor;
mod effects;
pub(crate) mod failure;
pub(crate) mod file;
pub(crate) mod handle;
mod link;
mod links;
mod log_lines;
mod meter;
pub(crate) mod prepared;
pub(crate) mod row;
pub(crate) mod status_text;
mod thread;
