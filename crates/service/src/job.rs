//! Long work of a database, done by another thread or as a step of the simulator. The database orders a job in its outputs and gets the
//! result as an input.

pub mod body_scheduler;
pub mod garbage;
mod snapshot_difference;

use std::sync::Arc as StdArc;

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, Recorded, Schema, Uuid, WireError};
use corvid_engine::{Converted, Misfit, Snapshot};
use corvid_json::splitmix;
use corvid_log::write_transaction;
use corvid_monitor::{Contents, DeferredBody, SessionId, Written};

use self::body_scheduler::BodyScheduler;
use self::garbage::Garbage;
use crate::client_memory::Charge;
use crate::message::ToDatabase;
use crate::replication::difference::{self, Contents as SourceContents};

/// Distinguishes the result of the present job from results that are not needed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobNumber(pub u64);

/// A released commit.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its changes.
    pub delta: Arc<Delta>,
    /// `_date` of its record, ms since the Unix epoch.
    pub date_ms: i64,
}

/// A job. Conversions and comparisons of one database are done in order; bodies are written slice by slice ([`BodyScheduler`]).
#[derive(Debug)]
pub enum Job {
    /// Convert a snapshot. Answered by [`JobResult::Converted`].
    Convert {
        /// Its number.
        number: JobNumber,
        /// The content.
        snapshot: Snapshot,
        /// The new schema.
        schema: Arc<Schema>,
        /// Versions of rows are derived from it.
        seed: Uuid,
    },
    /// Apply later commits to a conversion. Answered by [`JobResult::CarriedOver`].
    CarryOver {
        /// Its number.
        number: JobNumber,
        /// The conversion so far.
        converted: Box<Converted>,
        /// The commits.
        commits: Vec<Commit>,
        /// Modified rows are recorded as column differences.
        is_diff: bool,
        /// Versions of rows are derived from it.
        seed: Uuid,
    },
    /// Write the initial contents of a monitor. Answered by [`JobResult::InitialContents`].
    InitialContents(SessionId, Box<(Contents, Charge)>),
    /// Write a body that a session waits for: a long result, or an update of many rows. Answered by [`JobResult::DeferredBody`].
    DeferredBody(SessionId, StdArc<dyn DeferredBody>),
    /// Write an update that no session waits for yet, unless it is not needed any more. Not answered.
    PrecomputedUpdate(StdArc<dyn DeferredBody>),
    /// Find the difference between a snapshot and the contents of a source. Answered by [`JobResult::Compared`].
    Compare {
        /// Its number.
        number: JobNumber,
        /// The contents of the source.
        contents: SourceContents,
        /// Our rows.
        snapshot: Snapshot,
    },
    /// Find the difference between two snapshots of one schema. Answered by [`JobResult::SnapshotsCompared`].
    CompareSnapshots {
        /// Its number.
        number: JobNumber,
        /// Our rows.
        present: Snapshot,
        /// The rows to come.
        installed: Snapshot,
    },
    /// Free this: freeing many rows takes long. Not answered, and not ordered with other jobs.
    Free(Garbage),
}

/// The result of a job.
#[derive(Debug)]
pub enum JobResult {
    /// Of [`Job::Convert`].
    Converted(Result<Box<Converted>, WireError>),
    /// Of [`Job::CarryOver`].
    CarriedOver(Result<Carried, Misfit>),
    /// Of [`Job::InitialContents`], which is numbered on its own.
    InitialContents(Written),
    /// Of [`Job::DeferredBody`].
    DeferredBody(SessionId),
    /// Of [`Job::CompareSnapshots`].
    SnapshotsCompared(Recorded),
    /// Of [`Job::Compare`].
    Compared(Result<Recorded, WireError>),
}

/// A conversion with further commits of its source.
#[derive(Debug)]
pub struct Carried {
    /// The conversion.
    pub converted: Box<Converted>,
    /// Records of the commits under the new schema, in order. A commit that changes nothing there has none.
    pub records: Vec<Vec<u8>>,
}

impl Job {
    /// Answers a job for contents without doing it, because there is no memory.
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

    /// Does the whole job. The result depends on the job alone, so a replay of a recording can do it again.
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
                let mut scheduler = BodyScheduler::default();
                // They are taken.
                let _ = scheduler.push(self);
                let mut answers = Vec::new();
                while !scheduler.is_empty() {
                    scheduler.run_slice(&mut answers);
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
            Job::CompareSnapshots {
                number,
                present,
                installed,
            } => {
                let found = snapshot_difference::difference(&present, &installed);
                Some(ToDatabase::JobDone(
                    number,
                    JobResult::SnapshotsCompared(found),
                ))
            }
            Job::Free(_) => None,
        }
    }
}

/// Identifies the job of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKey {
    /// The kind of job.
    pub kind: u8,
    /// Its number among jobs of its kind; of a body the number of its session.
    pub number: u64,
}

impl JobKey {
    /// Of a job with a result.
    #[must_use]
    pub fn of_job(job: &Job) -> Option<JobKey> {
        let (kind, number) = match job {
            Job::Convert { number, .. } => (0, number.0),
            Job::CarryOver { number, .. } => (1, number.0),
            Job::InitialContents(_, order) => (2, order.0.id().0),
            Job::DeferredBody(session, _) => (3, session.0),
            Job::Compare { number, .. } => (4, number.0),
            Job::CompareSnapshots { number, .. } => (5, number.0),
            Job::PrecomputedUpdate(_) | Job::Free(_) => return None,
        };
        Some(JobKey { kind, number })
    }

    /// Of the job with this result.
    #[must_use]
    pub fn of_done(number: JobNumber, done: &JobResult) -> JobKey {
        let (kind, number) = match done {
            JobResult::Converted(_) => (0, number.0),
            JobResult::CarriedOver(_) => (1, number.0),
            JobResult::InitialContents(written) => (2, written.id.0),
            JobResult::DeferredBody(session) => (3, session.0),
            JobResult::Compared(_) => (4, number.0),
            JobResult::SnapshotsCompared(_) => (5, number.0),
        };
        JobKey { kind, number }
    }
}

/// UUIDs derived from a seed: a sequence of its own for every seed, without repetition.
pub(crate) struct Derived {
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
        self.high = self.high.wrapping_add(splitmix::STEP);
        self.low = self.low.wrapping_add(0xd1b5_4a32_d192_ed03);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&splitmix::mix(self.high).to_be_bytes());
        bytes[8..].copy_from_slice(&splitmix::mix(self.low).to_be_bytes());
        // Version 4, variant 1 (RFC 4122).
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid(bytes)
    }
}

/// Applies commits to a conversion and returns their records under the new schema.
///
/// # Errors
/// The first commit that does not fit; `converted` must be dropped then.
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
