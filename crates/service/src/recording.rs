//! The flight recorder: everything that a database's pump is given, written down, so that the same pump yields the same bytes again.
//!
//! ```text
//! recording := magic frame(head) frame(batch)*
//! frame     := length checksum payload       length: 4 bytes, checksum: 8 bytes, both little endian
//! head      := options, limits, time, schema, rows with their versions and places
//! batch     := thread | shard with its work budget; then, in the order in which they happened:
//!              reading of the clock | input | answers of the disk | what was read beside; then the checksum of the deliveries
//! ```
//!
//! Inputs are written whole ([`input`]). What the database reads beside them goes through its [`Tape`]: fresh UUIDs, the lock table, flags of
//! sessions that shards change, the memory of replies, whether another thread has written a text yet. Results of jobs are not written: a job's
//! result depends on its order alone, so [`Replay`] carries the job out itself at the place of its answer.
//!
//! Invariant: recording changes nothing that the pump does, and takes no time of others: frames are collected in memory, and whoever holds
//! the database hands them over to be written ([`crate::Pump::drain_recording`]).
//!
//! A reply that was refused for want of memory while it was written late is made in full by the replay, which reports the difference.

mod codec;
mod head;
mod input;
mod replay;
mod tape;

pub use codec::Damage;
pub use replay::{Outcome, Replay, ReplayEvent};
pub(crate) use tape::{Setting, Tape};

/// The first bytes of a recording; the last digit is the version of the format.
pub const MAGIC: &[u8] = b"corvid-recording-1\n";

use corvid_data::uuid::UuidSource;
use corvid_engine::Database;

use crate::pump::Limits;
use crate::{Now, Options};

/// Begins to record a database that is about to be made; what it draws meanwhile is a batch of its own.
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
