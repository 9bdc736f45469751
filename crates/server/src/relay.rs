//! One relay: its thread, and the connection to its source. [`corvid_service::relay`] decides what
//! happens; this module carries it out.
//!
//! ```text
//! database --SourceRequest--> handle.rs --> thread.rs <--> transport <--> source
//!     ^                                       |
//!     +----- MemberEvent, new contents -------+
//! ```
//!
//! Invariant: only the thread `relay:NAME` uses the state machine and its connection.

pub(crate) mod handle;
mod log_lines;
pub(crate) mod served;
pub(crate) mod sources;
mod thread;
