//! Work of a database that takes as long as the database is large, carried out away from it: on a thread of its own, or as a step of
//! a simulator. The database orders it in its outputs and is sent what came of it.

pub mod garbage;
pub mod turns;

use std::sync::Arc as StdArc;

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, Recorded, Schema, WireError};
use corvid_engine::{Converted, Misfit, Snapshot};
use corvid_log::write_transaction;
use corvid_monitor::{Contents, LateText, SessionId, Written};

use self::garbage::Garbage;
use self::turns::Turns;
use crate::message::ToDatabase;
use crate::replication::difference::{self, Contents as SourceContents};
use crate::reply_memory::Charge;

/// Tells the answer to the present job from those to jobs that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobNumber(pub u64);

/// A commit that has been stored and told of.
#[derive(Clone, Debug)]
pub struct Commit {
    /// What it changed.
    pub delta: Arc<Delta>,
    /// `_date` of its record, ms since the Unix epoch.
    pub date_ms: i64,
}

/// An order. Conversions and comparisons of one database are carried out in order; texts take turns ([`Turns`]).
#[derive(Debug)]
pub enum Job {
    /// Convert a snapshot. Answered by [`Done::Converted`].
    Convert {
        /// Its number.
        number: JobNumber,
        /// The content.
        snapshot: Snapshot,
        /// What to convert it to.
        schema: Arc<Schema>,
    },
    /// Bring later commits over. Answered by [`Done::CarriedOver`].
    CarryOver {
        /// Its number.
        number: JobNumber,
        /// The conversion so far.
        converted: Box<Converted>,
        /// What comes next.
        commits: Vec<Commit>,
        /// Modified rows are recorded as column differences.
        is_diff: bool,
    },
    /// Write the first contents of a monitor, which its client waits for. Answered by [`Done::Contents`].
    Contents(SessionId, Box<(Contents, Charge)>),
    /// Write a text that a client waits for: the result of a transaction that selects much, an update that tells of many rows. Answered
    /// by [`Done::Text`].
    Text(SessionId, StdArc<dyn LateText>),
    /// Write an update that nobody waits for yet, unless nobody will. Not answered.
    Foretold(StdArc<dyn LateText>),
    /// Find what must change for a snapshot to hold the contents of a source. Answered by [`Done::Compared`].
    Compare {
        /// Its number.
        number: JobNumber,
        /// What the source holds.
        contents: SourceContents,
        /// What we hold.
        snapshot: Snapshot,
    },
    /// Free this: freeing many rows takes long. Not answered, and in no order with the others.
    Free(Garbage),
}

/// What came of a job.
#[derive(Debug)]
pub enum Done {
    /// Of [`Job::Convert`].
    Converted(Result<Box<Converted>, WireError>),
    /// Of [`Job::CarryOver`].
    CarriedOver(Result<Carried, Misfit>),
    /// Of [`Job::Contents`], which has its own way of numbering.
    Contents(Written),
    /// Of [`Job::Text`].
    Text(SessionId),
    /// Of [`Job::Compare`].
    Compared(Result<Recorded, WireError>),
}

/// A conversion that has followed its source for a while.
#[derive(Debug)]
pub struct Carried {
    /// The conversion.
    pub converted: Box<Converted>,
    /// Records of the commits under the new schema, in order; those that touch nothing of it have none.
    pub records: Vec<Vec<u8>>,
}

impl Job {
    /// Does it as a whole. `uuids` gives versions to rows.
    pub fn carry_out(self, uuids: &mut dyn UuidSource) -> Option<ToDatabase> {
        match self {
            Job::Convert {
                number,
                snapshot,
                schema,
            } => {
                let converted = snapshot.convert(schema, uuids).map(Box::new);
                Some(ToDatabase::Done(number, Done::Converted(converted)))
            }
            Job::CarryOver {
                number,
                mut converted,
                commits,
                is_diff,
            } => {
                let records = carry_over(&mut converted, &commits, is_diff, uuids);
                let carried = records.map(|records| Carried { converted, records });
                Some(ToDatabase::Done(number, Done::CarriedOver(carried)))
            }
            Job::Contents(..) | Job::Text(..) | Job::Foretold(_) => {
                let mut turns = Turns::default();
                // They are taken.
                let _ = turns.push(self);
                let mut answers = Vec::new();
                while !turns.is_empty() {
                    turns.turn(&mut answers);
                }
                answers.pop()
            }
            Job::Compare {
                number,
                contents,
                snapshot,
            } => {
                let found = difference::difference(&contents, &snapshot);
                Some(ToDatabase::Done(number, Done::Compared(found)))
            }
            Job::Free(_) => None,
        }
    }
}

/// Brings commits over and returns their records under the new schema.
///
/// # Errors
/// The first that does not fit; `converted` is of no use then.
pub(crate) fn carry_over(
    converted: &mut Converted,
    commits: &[Commit],
    is_diff: bool,
    uuids: &mut dyn UuidSource,
) -> Result<Vec<Vec<u8>>, Misfit> {
    let mut records = Vec::new();
    for Commit { delta, date_ms } in commits {
        let carried = converted.carry_over(delta, uuids)?;
        let schema = converted.database().schema();
        let mut record = Vec::new();
        if !carried.is_empty()
            && write_transaction(&mut record, schema, &carried, *date_ms, is_diff).is_some()
        {
            records.push(record);
        }
    }
    Ok(records)
}
