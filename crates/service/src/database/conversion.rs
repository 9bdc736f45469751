//! A conversion under way (docs/spec/protocol.md 4.15): its steps, and the inputs that wait for its end.
//!
//! ```text
//! old schema:  commits ---------------------------------------------->|  held  |
//!                 | snapshot          | released commits   |          |        |
//! worker:         convert             carry over ... carry over       |        |
//!                    | snapshot                | records              |        |
//! new file:          schema and rows, synced   extended, synced       |extended| swap |
//! new schema:                                                                         commits ->
//! ```
//!
//! Invariants: the content of [`Work::Ready`] is the source's as of the last commit that is not in `commits`; the new file and `records`
//! together hold that content. Inputs are held only when next to nothing is missing, until the swap. If a commit cannot be carried over,
//! the conversion starts again from the present state; after [`FREE_ATTEMPTS`] it does so with all inputs held. So the outcome is always
//! that of a conversion at the moment of the swap.
//!
//! Requests of the session that asked for the conversion wait for its end from the start: they may be meant for the new schema.

use std::collections::{HashSet, VecDeque};

use corvid_data::TrustedKeys;
use corvid_data::{Arc, Schema, Uuid, UuidSource, WireError};
use corvid_engine::{Converted, Database};
use corvid_log::cluster::Eid;
use corvid_monitor::SessionId;

use super::clustered::has_conversion;
use super::{DatabaseService, Now};
use crate::job::garbage::Garbage;
use crate::job::{self, Carried, Commit, Job, JobNumber, JobResult};
use crate::message::{DatabaseMethod, Request, ToDatabase};
use crate::recording::Setting;
use crate::storage::Content;

/// Changed rows that the database carries over itself while inputs are held; more are left to a job.
const SMALL_CHANGES: usize = 64;

/// Changed rows that are worth a job while the new file is being written and inputs are not held.
const MANY_CHANGES: usize = 1024;

/// Jobs after which inputs are held, should commits keep coming faster than they are carried over.
const CATCH_UP_JOBS_MAX: u32 = 8;

/// Bytes of records of commits that wait to be carried over; beyond that, inputs are held.
pub(super) const BYTES_MAX: usize = 256 << 20;

/// Attempts while commits continue; the next one holds all inputs.
const FREE_ATTEMPTS: u32 = 2;

/// A conversion under way.
pub(super) struct Conversion {
    pub(super) request: Box<Request>,
    pub(super) schema: Arc<Schema>,
    /// Its entry in the log of a cluster, once it is proposed: from then on it cannot be given up, as during a swap.
    pub(super) entry: Option<Eid>,
    /// The number of the job under way.
    number: JobNumber,
    pub(super) work: Work,
    pub(super) file: NewFile,
    /// Commits released since the snapshot and not carried over, and the number of rows that they change.
    commits: Vec<Commit>,
    changes: usize,
    /// The length of the records of commits since the snapshot.
    bytes: usize,
    /// Records that the new file lacks.
    records: Vec<Vec<u8>>,
    attempts: u32,
    catch_up_jobs: u32,
    /// Every input waits at the barrier.
    is_held: bool,
    /// Sessions whose inputs wait for the end, and those inputs.
    sessions: HashSet<SessionId, TrustedKeys>,
    queued: VecDeque<ToDatabase>,
}

/// The place of the converted content.
pub(super) enum Work {
    /// It does not exist yet. Its job starts as soon as nothing is pending.
    NotStarted,
    /// A job has it.
    InJob,
    /// The database has it.
    Ready(Box<Converted>),
}

/// The stage of the new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewFile {
    /// There is none.
    None,
    /// It is being written.
    Writing,
    /// Everything that was asked for so far is in it.
    Written,
    /// It is being put in place: the conversion cannot be given up any more.
    Swapping,
}

impl Conversion {
    pub(super) fn new(request: Box<Request>, schema: Arc<Schema>) -> Conversion {
        let mut sessions = HashSet::default();
        sessions.insert(request.session);
        Conversion {
            request,
            schema,
            entry: None,
            number: JobNumber(0),
            work: Work::NotStarted,
            file: NewFile::None,
            commits: Vec::new(),
            changes: 0,
            bytes: 0,
            records: Vec::new(),
            attempts: 0,
            catch_up_jobs: 0,
            is_held: false,
            sessions,
            queued: VecDeque::new(),
        }
    }

    /// Records a released commit under the old schema, and the length of its record. When more than `bytes_max` have come, all later inputs
    /// wait for the end.
    pub(super) fn released(&mut self, commit: Commit, record_bytes: usize, bytes_max: usize) {
        self.changes += commit.delta.changes.len();
        self.bytes += record_bytes;
        self.is_held |= self.bytes > bytes_max;
        self.commits.push(commit);
    }

    /// Whether an input must wait for the end of the conversion although other sessions' inputs need not. All later inputs of its session
    /// do the same. `is_blocked` says that the session is blocked: its inputs do not wait here then, because earlier ones wait in its
    /// outbox and come first.
    pub(super) fn must_wait_for_end(&mut self, input: &ToDatabase, is_blocked: bool) -> bool {
        match input {
            // One conversion at a time.
            ToDatabase::Member(event) => has_conversion(event),
            ToDatabase::Request(request)
                if request.method == DatabaseMethod::Convert && !is_blocked =>
            {
                self.sessions.insert(request.session);
                true
            }
            ToDatabase::Request(request) => self.sessions.contains(&request.session),
            ToDatabase::Fence(session, _) => self.sessions.contains(session),
            ToDatabase::Cancel(session, id) => {
                self.sessions.contains(session) && !self.is_asked_by(*session, id)
            }
            _ => false,
        }
    }

    pub(super) fn queue(&mut self, input: ToDatabase) {
        self.queued.push_back(input);
    }

    /// The inputs that wait for the end.
    pub(super) fn queued_mut(&mut self) -> &mut VecDeque<ToDatabase> {
        &mut self.queued
    }

    pub(super) fn is_asked_by(&self, session: SessionId, id: &[u8]) -> bool {
        self.request.session == session && *self.request.id == *id
    }

    /// Whether the conversion can still be given up.
    pub(super) fn is_cancelable(&self) -> bool {
        self.file != NewFile::Swapping
    }

    /// Takes the converted content, if the database has it.
    pub(super) fn take_database(&mut self) -> Option<Database> {
        match std::mem::replace(&mut self.work, Work::InJob) {
            Work::Ready(converted) => Some(converted.into_database()),
            Work::InJob | Work::NotStarted => None,
        }
    }

    /// Whether commits are to be carried over by a job now.
    fn has_work(&self) -> bool {
        let enough = match self.file {
            NewFile::Writing => MANY_CHANGES,
            _ if self.is_held || self.catch_up_jobs < CATCH_UP_JOBS_MAX => SMALL_CHANGES,
            _ => return false,
        };
        self.changes > enough
    }
}

impl DatabaseService {
    /// Sets the number of bytes of records during a conversion after which all inputs wait.
    pub fn set_conversion_bytes_max(&mut self, bytes: usize) {
        self.tape.setting(Setting::ConversionBytesMax, bytes as u64);
        self.conversion_bytes_max = bytes;
    }

    /// Whether all inputs must wait: for the swap, or until nothing is pending.
    pub(super) fn is_conversion_waiting(&self) -> bool {
        self.conversion.as_ref().is_some_and(|conversion| {
            let wants_file = conversion.file == NewFile::None
                && self.growth.is_some()
                && matches!(conversion.work, Work::Ready(_))
                && !self.rewrites.is_swapping();
            conversion.is_held || wants_file || matches!(conversion.work, Work::NotStarted)
        })
    }

    /// Takes all steps of the conversion that can be taken. Called when a step may have become possible.
    pub(super) fn advance_conversion(&mut self, now: Now) {
        while self.step_conversion(now) {}
    }

    /// Takes the next step. True if another may be taken at once.
    fn step_conversion(&mut self, now: Now) -> bool {
        let is_all_stored = self.pending.is_empty();
        let is_swapping = self.rewrites.is_swapping();
        let Some(conversion) = &mut self.conversion else {
            return false;
        };
        let converted = match &mut conversion.work {
            Work::InJob => return false,
            Work::NotStarted => {
                if is_all_stored {
                    self.start_convert_job();
                }
                return false;
            }
            Work::Ready(converted) => converted,
        };
        if conversion.file == NewFile::None && self.growth.is_some() {
            if !is_all_stored || is_swapping {
                return false;
            }
            let content = Content {
                snapshot: converted.database().snapshot(),
                comment: "converted by ovsdb-server",
                date_ms: now.wall_ms,
                is_diff: self.column_diff,
                with_tail: false,
            };
            conversion.file = NewFile::Writing;
            self.rewrite_for_conversion(content);
            return true;
        }
        if conversion.has_work() && (is_all_stored || !conversion.is_held) {
            self.start_carry_over_job();
            return false;
        }
        if matches!(conversion.file, NewFile::Writing | NewFile::Swapping) {
            return false;
        }
        if !conversion.records.is_empty() && self.growth.is_some() {
            conversion.file = NewFile::Writing;
            let records = std::mem::take(&mut conversion.records);
            self.extend_rewrite(records);
            return false;
        }
        if !conversion.is_held {
            conversion.is_held = true;
            return true;
        }
        if !is_all_stored {
            return false;
        }
        if !conversion.commits.is_empty() {
            return self.carry_over_rest();
        }
        if self.growth.is_none() {
            if !self.propose_conversion(now) {
                self.finish_conversion(now, Ok(()));
            }
            return false;
        }
        conversion.file = NewFile::Swapping;
        self.swap_rewrite();
        false
    }

    /// Starts the conversion of the present state, which is stored.
    fn start_convert_job(&mut self) {
        self.last_job += 1;
        let Some(conversion) = &mut self.conversion else {
            return;
        };
        conversion.number = JobNumber(self.last_job);
        conversion.work = Work::InJob;
        conversion.attempts += 1;
        conversion.is_held = conversion.attempts > FREE_ATTEMPTS;
        conversion.catch_up_jobs = 0;
        conversion.bytes = 0;
        self.outputs.jobs.push(Job::Convert {
            number: conversion.number,
            snapshot: self.database.snapshot(),
            schema: conversion.schema.clone(),
            seed: self.uuids.fresh(),
        });
    }

    fn start_carry_over_job(&mut self) {
        self.last_job += 1;
        let Some(conversion) = &mut self.conversion else {
            return;
        };
        let Work::Ready(converted) = std::mem::replace(&mut conversion.work, Work::InJob) else {
            return;
        };
        conversion.number = JobNumber(self.last_job);
        conversion.catch_up_jobs += u32::from(conversion.file != NewFile::Writing);
        conversion.changes = 0;
        self.outputs.jobs.push(Job::CarryOver {
            number: conversion.number,
            converted,
            commits: std::mem::take(&mut conversion.commits),
            is_diff: self.column_diff,
            seed: self.uuids.fresh(),
        });
    }

    /// Carries the last few commits over without a job.
    fn carry_over_rest(&mut self) -> bool {
        let is_diff = self.column_diff;
        let Some(conversion) = &mut self.conversion else {
            return false;
        };
        let Work::Ready(converted) = &mut conversion.work else {
            return false;
        };
        let commits = std::mem::take(&mut conversion.commits);
        conversion.changes = 0;
        match job::carry_over(converted, &commits, is_diff, &mut *self.uuids) {
            Ok(records) => conversion.records = records,
            Err(_) => self.start_conversion_again(),
        }
        true
    }

    /// Handles the result of a job.
    pub(super) fn job_done(&mut self, now: Now, number: JobNumber, done: JobResult) {
        let Some(done) = self.replacement_done(now, number, done) else {
            return;
        };
        let is_awaited = |conversion: &&mut Conversion| {
            conversion.number == number && matches!(conversion.work, Work::InJob)
        };
        let Some(conversion) = self.conversion.as_mut().filter(is_awaited) else {
            self.free(done);
            return;
        };
        match done {
            JobResult::Converted(Ok(converted)) => conversion.work = Work::Ready(converted),
            JobResult::Converted(Err(error)) => {
                self.give_up_conversion(now, Some(&error));
                return;
            }
            JobResult::CarriedOver(Ok(Carried { converted, records })) => {
                conversion.work = Work::Ready(converted);
                conversion.records.extend(records);
            }
            JobResult::CarriedOver(Err(_)) => self.start_conversion_again(),
            // These are not steps of a conversion.
            JobResult::InitialContents(_)
            | JobResult::DeferredBody(_)
            | JobResult::Compared(_)
            | JobResult::SnapshotsCompared(_) => {}
        }
        self.advance_conversion(now);
        self.resume(now);
    }

    /// Starts again from the present state as soon as nothing is pending, because a commit could not be carried over. The state as a whole
    /// may still be convertible.
    fn start_conversion_again(&mut self) {
        let Some(conversion) = &mut self.conversion else {
            return;
        };
        conversion.records.clear();
        conversion.commits.clear();
        conversion.changes = 0;
        conversion.file = NewFile::None;
        let database = conversion.take_database();
        conversion.work = Work::NotStarted;
        self.free_database(database);
        self.abandon_rewrite();
    }

    /// Ends the conversion with nothing changed. Replies with the error, if the session is still there.
    pub(super) fn give_up_conversion(&mut self, now: Now, error: Option<&WireError>) {
        if let (Some(request), Some(error)) = (self.drop_conversion(), error) {
            self.fail_conversion(&request, error);
        }
        self.resume_after_conversion(now);
    }

    /// Drops the conversion, which must not be swapping, and returns its request.
    pub(super) fn drop_conversion(&mut self) -> Option<Box<Request>> {
        let mut conversion = self.conversion.take()?;
        assert!(conversion.is_cancelable(), "a swap is waited for");
        let database = conversion.take_database();
        self.free_database(database);
        self.abandon_rewrite();
        Some(self.end_conversion(conversion))
    }

    /// Resumes the inputs and compactions that waited for the conversion.
    pub(super) fn resume_after_conversion(&mut self, now: Now) {
        self.compact_wanted(now);
        self.resume(now);
    }

    /// Puts the inputs that waited for the end before all others at the barrier.
    pub(super) fn end_conversion(&mut self, conversion: Conversion) -> Box<Request> {
        self.queue_first(conversion.queued);
        conversion.request
    }

    /// Has a database freed by the reaper.
    pub(super) fn free_database(&mut self, database: Option<Database>) {
        if let Some(database) = database {
            self.outputs.free(Garbage::database(database));
        }
    }

    /// Frees a result that is not needed any more.
    fn free(&mut self, done: JobResult) {
        if let JobResult::Converted(Ok(converted))
        | JobResult::CarriedOver(Ok(Carried { converted, .. })) = done
        {
            self.free_database(Some(converted.into_database()));
        }
    }

    /// Whether the conversion was asked for by this request and can be given up.
    pub(super) fn is_conversion_asked_by(&self, session: SessionId, id: &[u8]) -> bool {
        self.conversion.as_ref().is_some_and(|conversion| {
            conversion.is_cancelable() && conversion.is_asked_by(session, id)
        })
    }

    /// The new file holds everything that it was given.
    pub(super) fn conversion_written(&mut self, now: Now) {
        if let Some(conversion) = &mut self.conversion {
            conversion.file = NewFile::Written;
        }
        self.advance_conversion(now);
        self.resume(now);
    }
}

/// Whether a conversion of the present `source` has the content of `database`. Debug builds check it at every swap.
pub(super) fn is_conversion_of(source: &Database, database: &Database) -> bool {
    struct NoVersions;
    impl UuidSource for NoVersions {
        fn fresh(&mut self) -> Uuid {
            Uuid::ZERO
        }
    }
    let Ok(expected) = source.convert(database.schema().clone(), &mut NoVersions) else {
        return false;
    };
    database.schema().iter().all(|(table, _)| {
        expected.row_count(table) == database.row_count(table)
            && database.rows(table).all(|row| {
                let twin = expected.get(table, row.uuid);
                twin.is_some_and(|twin| twin.columns == row.columns)
            })
    })
}
