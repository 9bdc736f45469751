//! Long work of a database, done by another thread or as a step of the simulator. The database
//! orders a job in its outputs and gets the result as an input.

pub mod body_scheduler;
pub mod garbage;
mod snapshot_difference;

use std::sync::Arc as StdArc;

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, Recorded, Schema, Uuid, WireError};
use corvid_engine::{Converted, Misfit, Snapshot};
use corvid_json::splitmix;
use corvid_log::commit_client;
use corvid_log::write_transaction;
use corvid_monitor::{Contents, DeferredBody, SessionId, Written};

use self::body_scheduler::BodyScheduler;
use self::garbage::Garbage;
use crate::client_memory::Charge;
use crate::read_history::{PastOrder, PastRead};
use crate::replication::difference::{self, Contents as SourceContents};

/// Distinguishes the result of the current job from results that are no longer needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobNumber(pub u64);

/// A commit that has been released.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The changes.
    pub delta: Arc<Delta>,
    /// `_date` of its record, ms since the Unix epoch.
    pub date_ms: i64,
}

/// A job. Conversions and comparisons of one database are executed in order; bodies are written in
/// slices ([`BodyScheduler`]).
#[derive(Debug)]
pub enum Job {
    /// Convert a snapshot to a new schema. Answered by [`JobResult::Converted`].
    Convert {
        /// The job's number.
        number: JobNumber,
        /// The rows to convert.
        snapshot: Snapshot,
        /// The new schema.
        schema: Arc<Schema>,
        /// Seed of the versions of rows.
        seed: Uuid,
    },
    /// Apply later commits to a conversion. Answered by [`JobResult::CarriedOver`].
    CarryOver {
        /// The job's number.
        number: JobNumber,
        /// The conversion so far.
        converted: Box<Converted>,
        /// The commits to apply, in order.
        commits: Vec<Commit>,
        /// Whether modified rows are recorded as column differences.
        is_diff: bool,
        /// Seed of the versions of rows.
        seed: Uuid,
    },
    /// Write the initial contents of a monitor. Answered by [`JobResult::InitialContents`].
    InitialContents(SessionId, Box<(Contents, Charge)>),
    /// Write a body that a session waits for: a long result, or an update with many rows. Answered
    /// by [`JobResult::DeferredBody`].
    DeferredBody(SessionId, StdArc<dyn DeferredBody>),
    /// Write an update that no session waits for yet, unless it is no longer needed. Not answered.
    PrecomputedUpdate(StdArc<dyn DeferredBody>),
    /// Find the difference between a snapshot and the contents of a source. Answered by
    /// [`JobResult::Compared`].
    Compare {
        /// The job's number.
        number: JobNumber,
        /// The source's rows.
        contents: SourceContents,
        /// This server's rows.
        snapshot: Snapshot,
    },
    /// Find the difference between two snapshots of one schema. Answered by
    /// [`JobResult::SnapshotsCompared`].
    CompareSnapshots {
        /// The job's number.
        number: JobNumber,
        /// The rows now.
        present: Snapshot,
        /// The rows to install.
        installed: Snapshot,
    },
    /// Read from the files which rows have changed since a transaction. Answered by
    /// [`JobResult::PastRead`]. A holder without files carries it out as it is: nothing is found.
    ReadPast(JobNumber, Box<PastOrder>),
    /// Free this memory: freeing many rows takes long. Not answered, and not ordered with other
    /// jobs.
    Free(Garbage),
}

/// The result of the job with this number.
#[derive(Debug)]
pub struct JobDone(pub JobNumber, pub JobResult);

/// The result of a job.
#[derive(Debug)]
pub enum JobResult {
    /// The result of [`Job::Convert`].
    Converted(Result<Box<Converted>, WireError>),
    /// The result of [`Job::CarryOver`].
    CarriedOver(Result<Carried, Misfit>),
    /// The result of [`Job::InitialContents`], which has numbers of its own.
    InitialContents(Written),
    /// The result of [`Job::DeferredBody`]: this session's body is written.
    DeferredBody(SessionId),
    /// The result of [`Job::CompareSnapshots`].
    SnapshotsCompared(Recorded),
    /// The result of [`Job::ReadPast`]; `None`: there is no answer.
    PastRead(Option<Box<PastRead>>),
    /// The result of [`Job::Compare`].
    Compared(Result<Recorded, WireError>),
}

/// A conversion after later commits have been applied to it.
#[derive(Debug)]
pub struct Carried {
    /// The conversion.
    pub converted: Box<Converted>,
    /// Records of the commits under the new schema, in order. A commit that changes nothing under
    /// that schema has no record.
    pub records: Vec<Vec<u8>>,
}

impl Job {
    /// Refuses a job for initial contents because memory is exhausted; executes any other job.
    #[must_use]
    pub fn refuse(self) -> Option<JobDone> {
        match self {
            Job::InitialContents(_, order) => {
                let (contents, _) = *order;
                let number = JobNumber(contents.id().0);
                Some(JobDone(
                    number,
                    JobResult::InitialContents(contents.refuse()),
                ))
            }
            other => other.carry_out(),
        }
    }

    /// Executes the whole job. The result depends only on the job, so the replay of a recording can
    /// execute it again.
    pub fn carry_out(self) -> Option<JobDone> {
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
                Some(JobDone(number, JobResult::Converted(converted)))
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
                Some(JobDone(number, JobResult::CarriedOver(carried)))
            }
            Job::InitialContents(..) | Job::DeferredBody(..) | Job::PrecomputedUpdate(_) => {
                let mut scheduler = BodyScheduler::default();
                // The scheduler accepts all of these.
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
                Some(JobDone(number, JobResult::Compared(found)))
            }
            Job::CompareSnapshots {
                number,
                present,
                installed,
            } => {
                let found = snapshot_difference::difference(&present, &installed);
                Some(JobDone(number, JobResult::SnapshotsCompared(found)))
            }
            Job::ReadPast(number, _) => Some(JobDone(number, JobResult::PastRead(None))),
            Job::Free(_) => None,
        }
    }
}

/// Identifies the job that a result belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKey {
    /// The kind of job.
    pub kind: u8,
    /// The job's number among jobs of its kind; for a body, the number of its session.
    pub number: u64,
}

impl JobKey {
    /// The key of a job; `None` if it is not answered.
    #[must_use]
    pub fn of_job(job: &Job) -> Option<JobKey> {
        let (kind, number) = match job {
            Job::Convert { number, .. } => (0, number.0),
            Job::CarryOver { number, .. } => (1, number.0),
            Job::InitialContents(_, order) => (2, order.0.id().0),
            Job::DeferredBody(session, _) => (3, session.0),
            Job::Compare { number, .. } => (4, number.0),
            Job::CompareSnapshots { number, .. } => (5, number.0),
            Job::ReadPast(number, _) => (6, number.0),
            Job::PrecomputedUpdate(_) | Job::Free(_) => return None,
        };
        Some(JobKey { kind, number })
    }

    /// The key of the job with this result.
    #[must_use]
    pub fn of_done(number: JobNumber, done: &JobResult) -> JobKey {
        let (kind, number) = match done {
            JobResult::Converted(_) => (0, number.0),
            JobResult::CarriedOver(_) => (1, number.0),
            JobResult::InitialContents(written) => (2, written.id.0),
            JobResult::DeferredBody(session) => (3, session.0),
            JobResult::Compared(_) => (4, number.0),
            JobResult::SnapshotsCompared(_) => (5, number.0),
            JobResult::PastRead(_) => (6, number.0),
        };
        JobKey { kind, number }
    }
}

/// UUIDs derived from a seed: every seed has its own sequence, without repetitions.
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

/// Applies commits to a conversion and returns their records under the new schema. The records do
/// not name the commits: one without rows in the new schema has no record, and those around it
/// would prove that it never happened.
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
        let mut carried = converted.carry_over(delta, uuids)?;
        let named = carried.comment.len();
        let kept = commit_client::without_transaction(&carried.comment).len();
        if kept < named {
            carried.comment.truncate(kept);
        }
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

#[cfg(test)]
mod tests {
    use corvid_data::HashSeed;
    use corvid_engine::{Context, Database, LockOwner, Outcome};
    use corvid_json::Value;

    use super::*;

    struct NoLocks;

    impl LockOwner for NoLocks {
        fn owns(&self, _: &str) -> bool {
            false
        }
    }

    fn schema(version: &str) -> Arc<Schema> {
        let text = format!(
            r#"{{"name":"D","version":"{version}","tables":{{"T":{{"isRoot":true,"columns":{{"n":{{"type":"integer"}}}}}}}}}}"#
        );
        let json = Value::parse(text.as_bytes()).expect("JSON");
        Arc::new(Schema::from_json(&json).expect("a schema"))
    }

    #[test]
    fn a_record_that_a_conversion_carries_over_names_no_commit() {
        let mut uuids = Derived::from(Uuid([7; 16]));
        let mut database = Database::new(schema("1.0.0"), HashSeed::FIXED);
        let frozen = database.snapshot();
        let mut converted = frozen
            .convert(schema("2.0.0"), &mut uuids)
            .expect("converted");
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: false,
            uuids: &mut uuids,
            locks: &NoLocks,
        };
        let insert =
            br#"["D",{"op":"insert","table":"T","row":{"n":1}},{"op":"comment","comment":"why"}]"#;
        let outcome = database.execute(insert, &mut context);
        let Outcome::Done {
            delta: Some(mut delta),
            ..
        } = outcome
        else {
            panic!("{outcome:?}");
        };
        let named = "why\ncorvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 results=1";
        Arc::make_mut(&mut delta).comment = named.to_owned();
        let commits = [Commit { delta, date_ms: 1 }];
        let records = carry_over(&mut converted, &commits, true, &mut uuids).expect("it fits");
        let text = String::from_utf8_lossy(&records[0]);
        assert!(text.contains(r#""_comment":"why","#), "{text}");
    }
}
