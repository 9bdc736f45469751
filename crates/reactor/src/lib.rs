//! Many connections on a few threads: poll loops, timers, output limits, and mailboxes between
//! threads.
//!
//! A [`shard`] is a thread with a poll loop that carries framed JSON texts for its connections; a
//! [`mailbox`] brings work to a thread. A [`channel`] is one stream of a poll loop; a [`listening`]
//! socket accepts. Shards are built from both, and so is the poll loop of a cluster member, which
//! has its own rules. The crate knows nothing of OVSDB: it names no database, schema, monitor or
//! transaction. Servers use it; a client has one connection and uses `net` alone.

pub mod channel;
pub mod events;
#[cfg(all(test, interleavings))]
mod interleavings;
pub mod listening;
pub mod mailbox;
pub mod output;
pub mod pipeline;
pub mod poll_interval;
pub mod priority;
pub mod segment;
pub mod shard;
mod sync;
pub mod wake_queue;
