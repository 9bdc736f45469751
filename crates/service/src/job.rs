//! Work of a database that takes as long as the database is large, carried out away from it: on a thread of its own, or as a step of
//! a simulator. The database orders it in its outputs and is sent what came of it.

pub mod body_scheduler;
pub mod garbage;

use std::sync::Arc as StdArc;

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, Recorded, Schema, Uuid, WireError};
use corvid_engine::{Converted, Misfit, Snapshot};
use corvid_log::write_transaction;
use corvid_monitor::{Contents, DeferredBody, SessionId, Written};

use self::body_scheduler::BodyScheduler;
use self::garbage::Garbage;
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

/// An order. Conversions and comparisons of one database are carried out in order; texts take turns ([`BodyScheduler`]).
#[derive(Debug)]
pub enum Job {
    /// Convert a snapshot. Answered by [`JobResult::Converted`].
    Convert {
        /// Its number.
        number: JobNumber,
        /// The content.
        snapshot: Snapshot,
        /// What to convert it to.
        schema: Arc<Schema>,
        /// What versions of rows are derived from.
        seed: Uuid,
    },
    /// Bring later commits over. Answered by [`JobResult::CarriedOver`].
    CarryOver {
        /// Its number.
        number: JobNumber,
        /// The conversion so far.
        converted: Box<Converted>,
        /// What comes next.
        commits: Vec<Commit>,
        /// Modified rows are recorded as column differences.
        is_diff: bool,
        /// What versions of rows are derived from.
        seed: Uuid,
    },
    /// Write the first contents of a monitor, which its client waits for. Answered by [`JobResult::InitialContents`].
    InitialContents(SessionId, Box<(Contents, Charge)>),
    /// Write a text that a client waits for: the result of a transaction that selects much, an update that tells of many rows. Answered
    /// by [`JobResult::DeferredBody`].
    DeferredBody(SessionId, StdArc<dyn DeferredBody>),
    /// Write an update that nobody waits for yet, unless nobody will. Not answered.
    PrecomputedUpdate(StdArc<dyn DeferredBody>),
    /// Find what must change for a snapshot to hold the contents of a source. Answered by [`JobResult::Compared`].
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
pub enum JobResult {
    /// Of [`Job::Convert`].
    Converted(Result<Box<Converted>, WireError>),
    /// Of [`Job::CarryOver`].
    CarriedOver(Result<Carried, Misfit>),
    /// Of [`Job::InitialContents`], which has its own way of numbering.
    InitialContents(Written),
    /// Of [`Job::DeferredBody`].
    DeferredBody(SessionId),
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
    /// Answers an order for contents without doing it, for want of memory.
    #[must_use]
    pub fn refuse(self) -> Option<ToDatabase> {
        match self {
            Job::InitialContents(_, order) => {
                let (contents, _) = *order;
                let number = JobNumber(contents.id().0);
                Some(ToDatabase::JobDone(
                    number,
                    JobResult::InitialContents(contents.refuse()),
                ))
            }
            other => other.carry_out(),
        }
    }

    /// Does it as a whole. What comes of it depends on the order alone, so whoever replays a recording can do it again.
    pub fn carry_out(self) -> Option<ToDatabase> {
        match self {
            Job::Convert {
                number,
                snapshot,
                schema,
                seed,
            } => {
                let converted = snapshot
                    .convert(schema, &mut Derived::from(seed))
                    .map(Box::new);
                Some(ToDatabase::JobDone(number, JobResult::Converted(converted)))
            }
            Job::CarryOver {
                number,
                mut converted,
                commits,
                is_diff,
                seed,
            } => {
                let uuids = &mut Derived::from(seed);
                let records = carry_over(&mut converted, &commits, is_diff, uuids);
                let carried = records.map(|records| Carried { converted, records });
                Some(ToDatabase::JobDone(number, JobResult::CarriedOver(carried)))
            }
            Job::InitialContents(..) | Job::DeferredBody(..) | Job::PrecomputedUpdate(_) => {
                let mut turns = BodyScheduler::default();
                // They are taken.
                let _ = turns.push(self);
                let mut answers = Vec::new();
                while !turns.is_empty() {
                    turns.run_slice(&mut answers);
                }
                answers.pop()
            }
            Job::Compare {
                number,
                contents,
                snapshot,
            } => {
                let found = difference::difference(&contents, &snapshot);
                Some(ToDatabase::JobDone(number, JobResult::Compared(found)))
            }
            Job::Free(_) => None,
        }
    }
}

/// Which job an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKey {
    /// What kind of job.
    pub kind: u8,
    /// Its number among those of its kind; of a text the number of its session.
    pub number: u64,
}

impl JobKey {
    /// Of a job that is answered.
    #[must_use]
    pub fn of_job(job: &Job) -> Option<JobKey> {
        let (kind, number) = match job {
            Job::Convert { number, .. } => (0, number.0),
            Job::CarryOver { number, .. } => (1, number.0),
            Job::InitialContents(_, order) => (2, order.0.id().0),
            Job::DeferredBody(session, _) => (3, session.0),
            Job::Compare { number, .. } => (4, number.0),
            Job::PrecomputedUpdate(_) | Job::Free(_) => return None,
        };
        Some(JobKey { kind, number })
    }

    /// Of the job that this is an answer to.
    #[must_use]
    pub fn of_done(number: JobNumber, done: &JobResult) -> JobKey {
        let (kind, number) = match done {
            JobResult::Converted(_) => (0, number.0),
            JobResult::CarriedOver(_) => (1, number.0),
            JobResult::InitialContents(written) => (2, written.id.0),
            JobResult::DeferredBody(session) => (3, session.0),
            JobResult::Compared(_) => (4, number.0),
        };
        JobKey { kind, number }
    }
}

/// Identities derived from one: a sequence of its own for every seed, without repetition.
struct Derived {
    high: u64,
    low: u64,
}

impl From<Uuid> for Derived {
    fn from(seed: Uuid) -> Derived {
        let seed = u128::from_be_bytes(seed.0);
        Derived {
            high: (seed >> 64) as u64,
            low: seed as u64,
        }
    }
}

impl UuidSource for Derived {
    fn fresh(&mut self) -> Uuid {
        self.high = self.high.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.low = self.low.wrapping_add(0xd1b5_4a32_d192_ed03);
        let mix = |number: u64| {
            let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            number ^ number >> 31
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&mix(self.high).to_be_bytes());
        bytes[8..].copy_from_slice(&mix(self.low).to_be_bytes());
        // Version 4, variant 1 (RFC 4122).
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid(bytes)
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
