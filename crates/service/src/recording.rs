//! The flight recorder: all inputs of a database's pump, written down, so that the same pump yields the same bytes again.
//!
//! ```text
//! recording := magic frame(head) frame(batch)*
//! frame     := length checksum payload       length: 4 bytes, checksum: 8 bytes, both little endian
//! head      := options, limits, time, schema, rows with their versions and slots
//! batch     := thread | shard with its work budget; then, in the order in which they happened:
//!              reading of the clock | input | replies of the storage | value read beside inputs; then the checksum of the deliveries
//! ```
//!
//! Inputs are written whole (`input.rs`). Values that the database reads beside inputs go through its `Tape`: fresh UUIDs, the lock table,
//! flags of sessions that shards change, the memory of replies, whether another thread has written a body yet. Results of jobs are not
//! written: a result depends on its job alone, so [`Replay`] does the job itself when its result is due.
//!
//! Invariant: recording changes nothing that the pump does, and delays nothing: frames are collected in memory, and the holder of the
//! database hands them over to be written ([`crate::Pump::drain_tape`]).
//!
//! A deferred reply that was refused while it was written, because memory was short, is made in full by the replay, which reports the
//! difference.

mod head;
mod input;
mod replay;
mod tape;

pub use crate::codec::Damage;
pub use replay::{Outcome, Replay, ReplayEvent};
pub(crate) use tape::{Setting, Tape};

/// The first bytes of a recording; the last digit is the version of the format.
pub const MAGIC: &[u8] = b"corvid-recording-2\n";

use corvid_data::uuid::UuidSource;
use corvid_engine::Database;

use crate::pump::Limits;
use crate::{Now, Options};

/// Begins to record a database that is about to be made; the values that it reads meanwhile are a batch of their own.
pub(crate) fn begin(
    now: Now,
    options: &Options,
    limits: &Limits,
    database: &Database,
    uuids: Box<dyn UuidSource + Send>,
) -> (Tape, Box<dyn UuidSource + Send>) {
    let tape = Tape::recording();
    tape.begin_frame(|out| head::write(out, now, options, limits, database));
    tape.end_frame();
    let uuids = tape.uuids(uuids);
    tape.begin(None);
    (tape, uuids)
}
