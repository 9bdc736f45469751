//! Replies of a database: the one queue in which they wait for their commits, and the outputs in
//! which they leave.
//!
//! | File | Has |
//! |---|---|
//! | `pending.rs` | entries between execution and release: each reply waits for the commits that it could have seen |
//! | `outputs.rs` | what leaves with the batch: deliveries for shards, jobs, events |
//! | `outbox.rs` | the sessions that are blocked, each with its requests and deliveries that wait |
//! | `deferred_replies.rs` | bodies so long that jobs write them |
//! | `reply_backpressure.rs` | sessions that do not read their replies |
//! | `joining.rs` | the reply to a new monitor |
//!
//! Invariant: the replies of a session leave in the order of its requests, none before its commits
//! are stored, and every request is completed once. Replies know no table and no file. Of monitors
//! they change one thing: whether a session is ready for updates.

mod deferred_replies;
mod joining;
mod outbox;
mod outputs;
mod pending;
mod reply_backpressure;

pub(crate) use deferred_replies::{SELECT_STEPS_MAX, WrittenBodies};
pub(crate) use joining::{Contents, Joining};
pub(crate) use outbox::{Reason, inputs_as_garbage};
pub use outputs::Outputs;
pub(crate) use pending::{Answer, Commit, Forwarded, Origin, Pending, PendingQueue};
