//! A conversion under way (docs/spec/protocol.md 4.15): its steps, and the inputs that wait for its
//! end.
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
//! Invariants: the content of [`Work::Ready`] is the source's as of the last commit that is not in
//! `commits`; the new file and `records` together hold that content. Inputs are held only when next
//! to nothing is missing, until the swap. If a commit cannot be carried over, the conversion starts
//! again from the present state; after [`FREE_ATTEMPTS`] it does so with all inputs held. So the
//! outcome is always that of a conversion at the moment of the swap.
//!
//! Requests of the session that asked for the conversion wait for its end from the start: they may
//! be meant for the new schema.

mod schema_check;

use std::collections::{HashSet, VecDeque};

use corvid_data::TrustedKeys;
use corvid_data::{Arc, Delta, Schema, Uuid, UuidSource, WireError};
use corvid_engine::{Converted, Database};
use corvid_log::cluster::Eid;
use corvid_monitor::SessionId;

use super::Now;
use super::file::DatabaseFile;
use crate::barrier::{Activity, BarrierQueue, UnderWay, has_conversion};
use crate::environment::Environment;
use crate::job::garbage::Garbage;
use crate::job::{self, Carried, Commit, Job, JobNumber, JobResult};
use crate::message::{DatabaseMethod, Request, ToDatabase};
use crate::replies::Outputs;
use crate::schema_epoch::SchemaEpoch;

pub(super) use schema_check::{canceled_because, conversion_not_allowed, schema_of};

/// Changed rows that the database carries over itself while inputs are held; more are left to a
/// job.
const SMALL_CHANGES: usize = 64;

/// Changed rows that are worth a job while the new file is being written and inputs are not held.
const MANY_CHANGES: usize = 1024;

/// Jobs after which inputs are held, should commits keep coming faster than they are carried over.
const CATCH_UP_JOBS_MAX: u32 = 8;

/// Bytes of records of commits that wait to be carried over; beyond that, inputs are held.
const BYTES_MAX: usize = 256 << 20;

/// Attempts while commits continue; the next one holds all inputs.
const FREE_ATTEMPTS: u32 = 2;

/// The conversions of one database, one at a time.
pub(super) struct Conversions {
    /// The one under way.
    pub(super) current: Option<Conversion>,
    /// Bytes of records during a conversion after which all inputs wait.
    pub(super) bytes_max: usize,
    /// The epoch that the last one began.
    pub(super) epoch: SchemaEpoch,
}

/// The parts of the database that a step of a conversion uses.
pub(super) struct Parts<'a> {
    pub(super) database: &'a Database,
    pub(super) file: &'a mut DatabaseFile,
    pub(super) outputs: &'a mut Outputs,
    pub(super) environment: &'a mut Environment,
    pub(super) barrier_queue: &'a mut BarrierQueue,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It was taken, and another one may be taken at once.
    Taken,
    /// The next one waits for a job, the file or pending replies.
    Waits,
    /// Nothing is missing, and no file has to be put in place first: the contents are to be
    /// swapped.
    Complete,
}

impl Default for Conversions {
    fn default() -> Conversions {
        Conversions {
            current: None,
            bytes_max: BYTES_MAX,
            epoch: SchemaEpoch::default(),
        }
    }
}

impl Conversions {
    /// Begins a conversion.
    ///
    /// # Panics
    /// Another one is under way: its request would never be answered.
    pub(super) fn begin(&mut self, request: Box<Request>, schema: Arc<Schema>) {
        assert!(self.current.is_none(), "one conversion at a time");
        self.current = Some(Conversion::new(request, schema));
    }

    /// Takes the next step of the conversion under way, if it is possible.
    pub(super) fn step(&mut self, now: Now, is_all_stored: bool, parts: &mut Parts<'_>) -> Step {
        match &mut self.current {
            Some(conversion) => conversion.step(now, is_all_stored, parts),
            None => Step::Waits,
        }
    }

    /// Takes the result of a job. False if no conversion awaits it: it is freed.
    ///
    /// # Errors
    /// The present state cannot be converted.
    pub(super) fn take_result(
        &mut self,
        number: JobNumber,
        done: JobResult,
        parts: &mut Parts<'_>,
    ) -> Result<bool, WireError> {
        let current = self.current.as_mut();
        if let Some(conversion) = current.filter(|conversion| conversion.awaits(number)) {
            conversion.take_result(done, parts)?;
            return Ok(true);
        }
        if let JobResult::Converted(Ok(converted))
        | JobResult::CarriedOver(Ok(Carried { converted, .. })) = done
        {
            let database = converted.into_database();
            parts.outputs.free(Garbage::database(database));
        }
        Ok(false)
    }

    /// Drops the conversion under way with its file, and returns its request.
    ///
    /// # Panics
    /// Its file is being put in place, and may be the database's already.
    pub(super) fn drop_current(&mut self, parts: &mut Parts<'_>) -> Option<Box<Request>> {
        let conversion = self.current.take()?;
        assert!(conversion.is_cancelable(), "a swap is waited for");
        parts.file.abandon_conversion();
        let (_, request) = conversion.end(parts);
        Some(request)
    }

    /// Takes the conversion under way, which is given up here: the entry that it was proposed as,
    /// and its request.
    pub(super) fn take_current(
        &mut self,
        parts: &mut Parts<'_>,
    ) -> Option<(Option<Eid>, Box<Request>)> {
        Some(self.current.take()?.end(parts))
    }

    /// Whether all inputs must wait: for the swap, or until nothing is pending.
    pub(super) fn is_waiting(&self, file: &DatabaseFile) -> bool {
        self.current.as_ref().is_some_and(|conversion| {
            let wants_file = conversion.file == NewFile::None
                && file.exists()
                && matches!(conversion.work, Work::Ready(_))
                && !file.is_swapping();
            conversion.is_held || wants_file || matches!(conversion.work, Work::NotStarted)
        })
    }

    /// Reports whether a conversion is under way.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        let Conversions {
            current,
            bytes_max: _,
            epoch: _,
        } = self;
        activity.report(UnderWay::Conversion, current.is_some());
    }

    /// A commit under the old schema is released: a conversion under way must carry it over.
    pub(super) fn observe_commit(&mut self, delta: &Arc<Delta>, date_ms: i64, record_bytes: usize) {
        if let Some(conversion) = &mut self.current {
            let delta = delta.clone();
            let commit = Commit { delta, date_ms };
            conversion.add_released(commit, record_bytes, self.bytes_max);
        }
    }

    /// Checks the conversion under way, between two inputs. O(commits to be carried over): for
    /// simulations.
    ///
    /// # Panics
    /// It contradicts itself.
    pub(super) fn check(&self) {
        let Some(conversion) = &self.current else {
            return;
        };
        let changes = conversion.commits.iter();
        let changes: usize = changes.map(|commit| commit.delta.changes.len()).sum();
        assert_eq!(
            conversion.changes, changes,
            "the rows to be carried over are those of the commits"
        );
        assert!(
            !matches!(conversion.work, Work::NotStarted) || conversion.commits.is_empty(),
            "a conversion begins with the present state"
        );
    }

    /// Whether the conversion under way has been proposed as this entry.
    pub(super) fn is_entry(&self, eid: Eid) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|conversion| conversion.entry == Some(eid))
    }

    /// Whether the conversion under way was asked for by this request and can be given up.
    pub(super) fn is_asked_by(&self, session: SessionId, id: &[u8]) -> bool {
        self.current.as_ref().is_some_and(|conversion| {
            conversion.is_cancelable() && conversion.is_asked_by(session, id)
        })
    }
}

/// A conversion under way.
pub(super) struct Conversion {
    pub(super) request: Box<Request>,
    pub(super) schema: Arc<Schema>,
    /// Its entry in the log of a cluster, once it is proposed: from then on it cannot be given up,
    /// as during a swap.
    pub(super) entry: Option<Eid>,
    /// The number of the job under way.
    number: JobNumber,
    pub(super) work: Work,
    pub(super) file: NewFile,
    /// Commits released since the snapshot and not carried over, and the number of rows that they
    /// change.
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
    /// It is being put in place: the conversion can no longer be given up.
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

    /// Records a released commit under the old schema, and the length of its record. When more than
    /// `bytes_max` have come, all later inputs wait for the end.
    fn add_released(&mut self, commit: Commit, record_bytes: usize, bytes_max: usize) {
        self.changes += commit.delta.changes.len();
        self.bytes += record_bytes;
        self.is_held |= self.bytes > bytes_max;
        self.commits.push(commit);
    }

    /// Whether an input must wait for the end of the conversion although other sessions' inputs
    /// need not. All later inputs of its session do the same. `is_blocked` says that the session is
    /// blocked: its inputs do not wait here then, because earlier ones wait in its outbox and come
    /// first.
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

    /// Takes the next step, if it is possible.
    pub(super) fn step(&mut self, now: Now, is_all_stored: bool, parts: &mut Parts<'_>) -> Step {
        let converted = match &self.work {
            Work::InJob => return Step::Waits,
            Work::NotStarted => {
                // The job converts what is stored: a commit that is undone later must not be in the
                // new contents.
                if is_all_stored {
                    self.start_convert_job(parts);
                }
                return Step::Waits;
            }
            Work::Ready(converted) => converted,
        };
        if self.file == NewFile::None && parts.file.exists() {
            if !is_all_stored || parts.file.is_swapping() {
                return Step::Waits;
            }
            let snapshot = converted.database().snapshot();
            self.file = NewFile::Writing;
            parts.file.begin_conversion(now, snapshot);
            return Step::Taken;
        }
        if self.has_work() && (is_all_stored || !self.is_held) {
            self.start_carry_over_job(parts);
            return Step::Waits;
        }
        if matches!(self.file, NewFile::Writing | NewFile::Swapping) {
            return Step::Waits;
        }
        if !self.records.is_empty() && parts.file.exists() {
            self.file = NewFile::Writing;
            parts.file.extend(std::mem::take(&mut self.records));
            return Step::Waits;
        }
        // Next to nothing is missing: no further commit may come between the last record and the
        // swap.
        if !self.is_held {
            self.is_held = true;
            return Step::Taken;
        }
        if !is_all_stored {
            return Step::Waits;
        }
        if !self.commits.is_empty() {
            self.carry_over_rest(parts);
            return Step::Taken;
        }
        // Inputs are held and nothing is pending: the new contents are those of this moment.
        assert!(
            self.is_held && self.commits.is_empty() && self.changes == 0,
            "what is swapped lacks no commit"
        );
        if !parts.file.exists() {
            return Step::Complete;
        }
        assert!(
            self.records.is_empty(),
            "the new file has every commit since its snapshot"
        );
        self.file = NewFile::Swapping;
        parts.file.swap();
        Step::Waits
    }

    /// Starts the conversion of the present state, which is stored.
    fn start_convert_job(&mut self, parts: &mut Parts<'_>) {
        self.number = parts.outputs.number_job();
        self.work = Work::InJob;
        self.attempts += 1;
        self.is_held = self.attempts > FREE_ATTEMPTS;
        self.catch_up_jobs = 0;
        self.bytes = 0;
        parts.outputs.jobs.push(Job::Convert {
            number: self.number,
            snapshot: parts.database.snapshot(),
            schema: self.schema.clone(),
            seed: parts.environment.fresh(),
        });
    }

    fn start_carry_over_job(&mut self, parts: &mut Parts<'_>) {
        let number = parts.outputs.number_job();
        let Work::Ready(converted) = std::mem::replace(&mut self.work, Work::InJob) else {
            return;
        };
        self.number = number;
        self.catch_up_jobs += u32::from(self.file != NewFile::Writing);
        self.changes = 0;
        parts.outputs.jobs.push(Job::CarryOver {
            number,
            converted,
            commits: std::mem::take(&mut self.commits),
            is_diff: parts.file.is_diff(),
            seed: parts.environment.fresh(),
        });
    }

    /// Carries the last few commits over without a job.
    fn carry_over_rest(&mut self, parts: &mut Parts<'_>) {
        let Work::Ready(converted) = &mut self.work else {
            return;
        };
        let (commits, is_diff) = (std::mem::take(&mut self.commits), parts.file.is_diff());
        self.changes = 0;
        match job::carry_over(converted, &commits, is_diff, parts.environment.uuids()) {
            Ok(records) => self.records = records,
            Err(_) => self.start_again(parts),
        }
    }

    /// Whether a job with this number is awaited.
    pub(super) fn awaits(&self, number: JobNumber) -> bool {
        self.number == number && matches!(self.work, Work::InJob)
    }

    /// Takes the result of the job that is awaited.
    ///
    /// # Errors
    /// The present state cannot be converted.
    pub(super) fn take_result(
        &mut self,
        done: JobResult,
        parts: &mut Parts<'_>,
    ) -> Result<(), WireError> {
        match done {
            JobResult::Converted(converted) => self.work = Work::Ready(converted?),
            JobResult::CarriedOver(Ok(Carried { converted, records })) => {
                self.work = Work::Ready(converted);
                self.records.extend(records);
            }
            JobResult::CarriedOver(Err(_)) => self.start_again(parts),
            // These are not steps of a conversion.
            JobResult::InitialContents(_)
            | JobResult::DeferredBody(_)
            | JobResult::Compared(_)
            | JobResult::PastRead(_)
            | JobResult::SnapshotsCompared(_) => {}
        }
        Ok(())
    }

    /// Starts again from the present state as soon as nothing is pending, because a commit could
    /// not be carried over. The state as a whole may still be convertible.
    fn start_again(&mut self, parts: &mut Parts<'_>) {
        assert!(
            self.is_cancelable(),
            "a file that is being put in place is not given up"
        );
        self.records.clear();
        self.commits.clear();
        self.changes = 0;
        self.file = NewFile::None;
        if let Some(database) = self.take_database() {
            parts.outputs.free(Garbage::database(database));
        }
        self.work = Work::NotStarted;
        parts.file.abandon_conversion();
    }

    /// The new file holds everything that it was given.
    pub(super) fn mark_written(&mut self) {
        assert_eq!(
            self.file,
            NewFile::Writing,
            "the new file was being written"
        );
        self.file = NewFile::Written;
    }

    /// Ends the conversion: its contents are freed unless they were taken, and the inputs that
    /// waited for the end come before all others at the barrier. Returns its entry and its request.
    pub(super) fn end(mut self, parts: &mut Parts<'_>) -> (Option<Eid>, Box<Request>) {
        if let Some(database) = self.take_database() {
            parts.outputs.free(Garbage::database(database));
        }
        parts.barrier_queue.push_first(self.queued);
        (self.entry, self.request)
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

/// Whether a conversion of the present `source` has the content of `database`. Debug builds check
/// it at every swap.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc as StdArc;

    use corvid_data::HashSeed;
    use corvid_json::Value;
    use corvid_log::storage::FileSize;

    use super::*;
    use crate::job::JobDone;
    use crate::message::{DatabaseId, SessionInfo};
    use crate::schema_epoch::SchemaEpochs;
    use crate::storage::{FileState, Growth};

    struct Ones;

    impl UuidSource for Ones {
        fn fresh(&mut self) -> Uuid {
            Uuid([1; 16])
        }
    }

    fn schema(version: &str) -> Arc<Schema> {
        let text = format!(r#"{{"name":"D","version":"{version}","tables":{{}}}}"#);
        let json = Value::parse(text.as_bytes()).expect("JSON");
        Arc::new(Schema::from_json(&json).expect("a schema"))
    }

    /// A conversion, and the parts that it uses.
    struct Run {
        conversion: Conversion,
        database: Database,
        file: DatabaseFile,
        outputs: Outputs,
        environment: Environment,
        barrier_queue: BarrierQueue,
    }

    impl Run {
        fn new(has_file: bool) -> Run {
            let request = Box::new(Request {
                session: SessionId(1),
                info: StdArc::new(SessionInfo::new(false, String::new(), None)),
                arrived_ms: 0,
                stamp: 0,
                id: Box::default(),
                method: DatabaseMethod::Convert,
                frame: Vec::new(),
                params: 0..0,
                seqno: None,
                blocked: false,
                foreign_monitors: Vec::new(),
                once: None,
                client: None,
            });
            let size = FileSize { base: 1, end: 1 };
            let growth = || Growth::new(FileState { records: 2, size }, 0, 0);
            Run {
                conversion: Conversion::new(request, schema("2.0.0")),
                database: Database::new(schema("1.0.0"), HashSeed::FIXED),
                file: DatabaseFile::new(has_file.then(growth), true),
                outputs: Outputs::new(DatabaseId(0)),
                environment: Environment::new(
                    StdArc::default(),
                    SchemaEpochs::default(),
                    Box::new(Ones),
                ),
                barrier_queue: BarrierQueue::default(),
            }
        }

        fn step(&mut self, is_all_stored: bool) -> Step {
            let mut parts = Parts {
                database: &self.database,
                file: &mut self.file,
                outputs: &mut self.outputs,
                environment: &mut self.environment,
                barrier_queue: &mut self.barrier_queue,
            };
            let now = Now::default();
            self.conversion.step(now, is_all_stored, &mut parts)
        }

        /// Carries out the job under way.
        fn work(&mut self) {
            let job = self.outputs.jobs.pop().expect("a job");
            let Some(JobDone(number, done)) = job.carry_out() else {
                panic!("it has a result");
            };
            assert!(self.conversion.awaits(number));
            let mut parts = Parts {
                database: &self.database,
                file: &mut self.file,
                outputs: &mut self.outputs,
                environment: &mut self.environment,
                barrier_queue: &mut self.barrier_queue,
            };
            let taken = self.conversion.take_result(done, &mut parts);
            assert!(taken.is_ok() && !self.conversion.awaits(number));
        }
    }

    #[test]
    fn what_is_converted_is_stored_and_what_is_swapped_lacks_nothing() {
        let mut run = Run::new(false);
        assert_eq!(run.step(false), Step::Waits);
        assert!(
            run.outputs.jobs.is_empty(),
            "a pending commit may be undone"
        );
        assert_eq!(run.step(true), Step::Waits);
        run.work();
        assert_eq!(run.step(false), Step::Taken);
        assert!(
            run.conversion.is_held,
            "no commit comes between now and the swap"
        );
        assert_eq!(run.step(false), Step::Waits);
        assert_eq!(run.step(true), Step::Complete);
        assert!(run.conversion.take_database().is_some());
    }

    #[test]
    fn a_conversion_can_be_given_up_until_its_file_is_put_in_place() {
        let mut run = Run::new(true);
        assert_eq!(run.step(true), Step::Waits);
        run.work();
        assert_eq!(run.step(true), Step::Taken);
        assert_eq!(run.conversion.file, NewFile::Writing);
        assert_eq!(run.step(true), Step::Waits);
        run.conversion.mark_written();
        assert_eq!(run.step(true), Step::Taken);
        assert!(run.conversion.is_cancelable());
        assert_eq!(run.step(true), Step::Waits);
        assert!(!run.conversion.is_cancelable() && run.file.is_swapping());
    }

    #[test]
    fn too_many_bytes_of_commits_hold_all_inputs() {
        let run = Run::new(false);
        let mut conversions = Conversions {
            current: Some(run.conversion),
            bytes_max: 10,
            epoch: SchemaEpoch::default(),
        };
        conversions.current.as_mut().expect("one").work = Work::InJob;
        let delta = Arc::new(Delta::default());
        conversions.observe_commit(&delta, 0, 10);
        assert!(!conversions.is_waiting(&run.file));
        conversions.observe_commit(&delta, 0, 1);
        assert!(conversions.is_waiting(&run.file));
    }
}
