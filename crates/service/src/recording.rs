//! The flight recorder: records all inputs of a database's pump, so that a replay yields the same
//! bytes.
//!
//! ```text
//! recording := magic frame(head) frame(batch)*
//! frame     := length checksum payload       little endian; length: 4 bytes, checksum: 8 bytes
//! head      := options, limits, time, schema, rows with their versions and slots
//! batch     := thread | shard with its work budget; then, in the order of occurrence:
//!              reading of the clock | input | storage replies | side value;
//!              then the checksum of the deliveries
//! ```
//!
//! Inputs are written whole (`crates/service/src/tape/input.rs`). Side values are the values that
//! the database reads apart from its inputs, through its tape (`crates/service/src/tape.rs`): fresh
//! UUIDs, the lock table, flags of sessions that shards change, the memory of replies, and whether
//! another thread has written a body yet. Results of jobs are not written: a result depends only on
//! its job, so [`Replay`] executes the job when the result is due.
//!
//! Invariant: recording neither changes nor delays what the pump does. Frames are collected in
//! memory, and the database's holder hands them over for writing ([`crate::Pump::drain_tape`]).
//!
//! A deferred reply that was refused halfway, because memory was exhausted, is made in full by the
//! replay, which reports the difference.

mod replay;

pub use crate::codec::Damage;
pub use replay::{Outcome, Replay, ReplayEvent};

/// The first bytes of a recording; the last digit is the version of the format.
pub const MAGIC: &[u8] = b"corvid-recording-2\n";
