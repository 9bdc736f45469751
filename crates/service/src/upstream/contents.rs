//! The contents of a database that follows: the last entry that is applied, and contents that take
//! the place of the present ones.
//!
//! New contents come from a conversion that this database has not executed, or from an installed
//! snapshot. Converting all rows, or comparing them with a snapshot, takes as long as there are
//! rows. A job does it, on snapshots. Meanwhile requests are answered from the present contents,
//! and later events are held, in order. When the held events have too many bytes, the database does
//! the job's work itself.
//!
//! Invariants: `applied` only grows. While a replacement is under way the database follows, so its
//! contents do not change. A database that cannot apply an entry is broken: it applies nothing more
//! until a snapshot is installed. Contents know no request of a client.

use std::collections::VecDeque;

use corvid_consensus::database::{Committed, MemberEvent};
use corvid_data::{Arc, Schema, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index, Term};

use super::Parts;
use super::steps::{Action, Steps, Task};
use crate::barrier::{Activity, UnderWay};
use crate::job::garbage::Garbage;
use crate::job::{Job, JobDone, JobNumber, JobResult};
use crate::message::{InstalledSnapshot, SourceNews, ToDatabase};
use crate::once::RecordedCommits;

/// The contents, by the entries that they contain.
pub(crate) struct Contents {
    /// The last entry that is applied.
    applied: Index,
    /// The id of the last entry with data that is applied.
    applied_eid: Eid,
    /// All copies tell the history of commits alike: the members of a cluster do. A relay has a
    /// history of its own.
    shares_history: bool,
    /// An entry could not be applied: nothing more is applied.
    is_broken: bool,
    /// The contents are being replaced.
    replacement: Option<Replacement>,
}

/// A replacement under way.
struct Replacement {
    number: JobNumber,
    source: Source,
    /// The entry after which the new contents are those of the cluster.
    index: Index,
    eid: Eid,
    /// Later events, and the bytes of their entries.
    held: VecDeque<ToDatabase>,
    held_bytes: usize,
}

/// The source of new contents.
pub(crate) enum Source {
    /// The present contents under this schema.
    Conversion(Arc<Schema>),
    /// A snapshot of the same schema, whose last entry has this term, and the commits that it
    /// names.
    Snapshot(Box<Database>, Term, Box<RecordedCommits>),
}

impl Contents {
    /// Contents after the entry `applied`; the last one with data is `eid`.
    pub(super) fn new(applied: Index, applied_eid: Eid, shares_history: bool) -> Contents {
        Contents {
            applied,
            applied_eid,
            shares_history,
            is_broken: false,
            replacement: None,
        }
    }

    /// The last entry that is applied.
    pub(crate) fn applied(&self) -> Index {
        self.applied
    }

    /// The id of the last entry with data that is applied.
    pub(crate) fn applied_eid(&self) -> Eid {
        self.applied_eid
    }

    /// Whether an entry could not be applied.
    pub(crate) fn are_broken(&self) -> bool {
        self.is_broken
    }

    /// Reports whether the contents are being replaced.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
        activity.report(UnderWay::Replacement, self.replacement.is_some());
    }

    /// The entry `index` is applied; the last one with data is `eid`.
    ///
    /// # Panics
    /// A later entry is applied: clients would see an older state.
    pub(crate) fn mark_applied(&mut self, index: Index, eid: Eid) {
        assert!(index >= self.applied, "entries are applied in order");
        self.applied = index;
        self.applied_eid = eid;
    }

    /// Entries through this one are applied: outcomes that are based on them are certain.
    pub(crate) fn mark_reached(&mut self, index: Index, steps: &mut Steps) {
        self.applied = self.applied.max(index);
        steps.plan(Task::FinishDecided);
    }

    /// A change of a relay's source cannot be applied: nothing is applied until contents are
    /// installed, which the relay asks for.
    pub(super) fn break_silently(&mut self) {
        self.is_broken = true;
    }

    /// An entry cannot be applied: nothing after it is.
    pub(crate) fn refuse_entry(
        &mut self,
        index: Index,
        error: &WireError,
        steps: &mut Steps,
        parts: &Parts<'_>,
    ) {
        let database = &parts.database.schema().name;
        let details = format!("{database}: committed entry {index} cannot be applied: {error}");
        self.break_off(details, steps);
    }

    /// The database cannot continue, for this reason.
    fn break_off(&mut self, details: String, steps: &mut Steps) {
        self.is_broken = true;
        steps.push(Action::BreakOff(details));
    }

    /// Begins to find the contents after this entry.
    ///
    /// # Panics
    /// Others are being found: the events that are held after them would be lost.
    pub(crate) fn begin_replacement(
        &mut self,
        source: Source,
        index: Index,
        eid: Eid,
        parts: &mut Parts<'_>,
    ) {
        assert!(self.replacement.is_none(), "replacements are made in order");
        let replacement = Replacement {
            number: parts.outputs.number_job(),
            source,
            index,
            eid,
            held: VecDeque::new(),
            held_bytes: 0,
        };
        let job = replacement.job(parts);
        parts.outputs.jobs.push(job);
        self.replacement = Some(replacement);
    }

    /// Holds an event while a replacement is under way; otherwise returns it.
    pub(crate) fn hold(
        &mut self,
        input: ToDatabase,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) -> Option<ToDatabase> {
        let Some(replacement) = &mut self.replacement else {
            return Some(input);
        };
        replacement.held_bytes += bytes_of(&input);
        replacement.held.push_back(input);
        if replacement.held_bytes > parts.held_bytes_max {
            self.replace_now(steps, parts);
        }
        None
    }

    /// Does the work of the job here.
    fn replace_now(&mut self, steps: &mut Steps, parts: &mut Parts<'_>) {
        let Some(replacement) = self.replacement.take() else {
            return;
        };
        if let Some(JobDone(_, done)) = replacement.job(parts).carry_out() {
            self.replace(replacement, done, steps, parts);
        }
    }

    /// The result of a job has come. Returns it if it is not a step of a replacement.
    pub(super) fn finish_replacement(
        &mut self,
        number: JobNumber,
        done: JobResult,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) -> Option<JobResult> {
        match self.replacement.take_if(|it| it.number == number) {
            Some(replacement) => {
                self.replace(replacement, done, steps, parts);
                None
            }
            None => Some(done),
        }
    }

    fn replace(
        &mut self,
        replacement: Replacement,
        done: JobResult,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        let Replacement {
            source,
            index,
            eid,
            held,
            ..
        } = replacement;
        match (source, done) {
            (Source::Conversion(_), JobResult::Converted(Ok(converted))) => {
                plan_contents(converted.into_database(), index, eid, steps);
            }
            (Source::Conversion(_), JobResult::Converted(Err(error))) => {
                self.refuse_entry(index, &error, steps, parts);
            }
            (Source::Snapshot(database, term, recorded), JobResult::SnapshotsCompared(found)) => {
                let uuids = parts.environment.uuids();
                match parts.database.apply_recorded(found, uuids) {
                    Ok(delta) => {
                        let delta = Arc::new(delta);
                        let reply = None;
                        steps.push(Action::Publish { eid, delta, reply });
                        // A relay's own history goes on: its ids lead to the new contents.
                        if self.shares_history {
                            steps.push(Action::RestartHistory(eid));
                        }
                        steps.plan(Task::FinishInstallation(index, term, eid, recorded));
                    }
                    Err(error) => {
                        let details = format!("a snapshot cannot be applied: {error}");
                        self.break_off(details, steps);
                    }
                }
                parts.outputs.free(Garbage::database(*database));
            }
            _ => unreachable!("each source has a job"),
        }
        // Each of them came after the entry of the new contents.
        for input in held {
            steps.push(Action::Handle(input));
        }
    }

    /// The database is removed: nothing replaces its contents from now on.
    pub(super) fn give_up_replacement(&mut self, parts: &mut Parts<'_>) {
        let replacement = self.replacement.take();
        if let Some(Source::Snapshot(database, ..)) = replacement.map(|it| it.source) {
            parts.outputs.free(Garbage::database(*database));
        }
    }

    /// Whether an installed snapshot has entries that these contents lack.
    pub(super) fn lack(&self, installed: &InstalledSnapshot) -> bool {
        self.applied < installed.index
    }

    /// A snapshot is installed, which has entries that these contents lack. Of the same schema: one
    /// change from the present contents. Of another schema: like a conversion.
    pub(super) fn install(
        &mut self,
        installed: InstalledSnapshot,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        let InstalledSnapshot {
            database,
            index,
            term,
            eid,
            recorded,
        } = installed;
        let recorded = Box::new(recorded);
        if database.schema().to_json() == parts.database.schema().to_json() {
            let source = Source::Snapshot(Box::new(database), term, recorded);
            self.begin_replacement(source, index, eid, parts);
        } else {
            steps.plan(Task::FinishConverted(index));
            steps.push(Action::Swap(Box::new(database), eid));
            steps.push(Action::EndSwap);
            steps.plan(Task::FinishInstallation(index, term, eid, recorded));
        }
    }

    /// The contents are those of the snapshot through this entry.
    pub(super) fn finish_installation(
        &mut self,
        (index, eid): (Index, Eid),
        term: Term,
        recorded: &RecordedCommits,
        steps: &mut Steps,
        parts: &mut Parts<'_>,
    ) {
        self.mark_applied(index, eid);
        if self.shares_history {
            parts.once.install(eid.0, recorded);
        }
        self.mark_reached(index, steps);
        steps.plan(Task::EndInstallation(index, term));
    }

    /// A snapshot is installed whole: entries can be applied again.
    pub(super) fn end_installation(&mut self) {
        self.is_broken = false;
    }
}

/// Plans to replace the contents by those after this entry. Requests of its session that came
/// before it are answered first, from the present contents.
pub(crate) fn plan_contents(database: Database, index: Index, eid: Eid, steps: &mut Steps) {
    steps.plan(Task::AnswerBeforeEntry(eid));
    steps.plan(Task::TakeContents(Box::new(database), index, eid));
}

impl Replacement {
    /// The work that finds the new contents.
    fn job(&self, parts: &mut Parts<'_>) -> Job {
        let number = self.number;
        let snapshot = parts.database.snapshot();
        match &self.source {
            Source::Conversion(schema) => Job::Convert {
                number,
                snapshot,
                schema: schema.clone(),
                seed: parts.environment.fresh(),
            },
            Source::Snapshot(installed, ..) => Job::CompareSnapshots {
                number,
                present: snapshot,
                installed: installed.snapshot(),
            },
        }
    }
}

/// Bytes of entries that an event keeps in memory.
fn bytes_of(input: &ToDatabase) -> usize {
    let length = |entry: &Committed| match entry {
        Committed::Own { .. } => 0,
        Committed::Data { data, .. } => data.len(),
    };
    match input {
        ToDatabase::Member(MemberEvent::Committed { entries, .. }) => {
            entries.iter().map(length).sum()
        }
        ToDatabase::Relay(SourceNews::Changes { changes, .. }) => {
            changes.iter().map(|change| change.bytes).sum()
        }
        _ => 0,
    }
}
