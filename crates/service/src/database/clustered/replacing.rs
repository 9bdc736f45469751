//! Contents that replace the present ones: a conversion that this database has not executed, and a snapshot that its member has installed.
//!
//! Converting all rows, or comparing them with a snapshot, takes as long as there are rows. A job does it, on snapshots. Meanwhile requests are
//! answered from the present contents, and the events of the member are held, in order. Invariant: this database follows while a replacement
//! is under way, so its contents do not change. When the events that are held have too many bytes, the database does the work itself.

use std::collections::VecDeque;

use corvid_consensus::database::{Committed, MemberEvent};
use corvid_data::{Arc, Schema};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index, Term};

use super::super::replies::Answer;
use super::steps::{Action, Task};
use super::{Clustered, Parts};
use crate::job::garbage::Garbage;
use crate::job::{Job, JobNumber, JobResult};
use crate::message::{InstalledSnapshot, ToDatabase};
use crate::upstream::SourceNews;

/// A replacement under way.
pub(super) struct Replacement {
    number: JobNumber,
    source: Source,
    /// The entry after which the new contents are those of the cluster.
    index: Index,
    eid: Eid,
    /// Later events of the member, and the bytes of their entries.
    held: VecDeque<ToDatabase>,
    held_bytes: usize,
}

/// The source of new contents.
pub(super) enum Source {
    /// The present contents under this schema.
    Conversion(Arc<Schema>),
    /// A snapshot of the same schema, whose last entry has this term.
    Snapshot(Box<Database>, Term),
}

impl Clustered {
    /// Begins to find the contents after this entry.
    pub(super) fn begin_replacement(
        &mut self,
        source: Source,
        index: Index,
        eid: Eid,
        parts: &mut Parts<'_>,
    ) {
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

    /// Holds an event of the member while a replacement is under way; otherwise returns it.
    pub(super) fn hold(&mut self, input: ToDatabase, parts: &mut Parts<'_>) -> Option<ToDatabase> {
        let Some(replacement) = &mut self.replacement else {
            return Some(input);
        };
        replacement.held_bytes += bytes_of(&input);
        replacement.held.push_back(input);
        if replacement.held_bytes > parts.conversions.bytes_max {
            self.replace_now(parts);
        }
        None
    }

    /// Does the work of the job here.
    fn replace_now(&mut self, parts: &mut Parts<'_>) {
        let Some(replacement) = self.replacement.take() else {
            return;
        };
        if let Some(ToDatabase::JobDone(_, done)) = replacement.job(parts).carry_out() {
            self.replace(replacement, done, parts);
        }
    }

    /// The result of a job has come. Returns it if it is not a step of a replacement.
    pub(in super::super) fn finish_replacement(
        &mut self,
        number: JobNumber,
        done: JobResult,
        parts: &mut Parts<'_>,
    ) -> Option<JobResult> {
        match self.replacement.take_if(|it| it.number == number) {
            Some(replacement) => {
                self.replace(replacement, done, parts);
                None
            }
            None => Some(done),
        }
    }

    fn replace(&mut self, replacement: Replacement, done: JobResult, parts: &mut Parts<'_>) {
        let Replacement {
            source,
            index,
            eid,
            held,
            ..
        } = replacement;
        match (source, done) {
            (Source::Conversion(_), JobResult::Converted(Ok(converted))) => {
                self.plan_contents(converted.into_database(), index, eid);
            }
            (Source::Conversion(_), JobResult::Converted(Err(error))) => {
                self.refuse_entry(index, &error, parts);
            }
            (Source::Snapshot(database, term), JobResult::SnapshotsCompared(found)) => {
                let uuids = parts.environment.uuids();
                match parts.database.apply_recorded(found, uuids) {
                    Ok(delta) => {
                        self.steps.push(Action::Publish {
                            eid,
                            delta: Arc::new(delta),
                            reply: None,
                        });
                        // The members of a cluster tell one history. That of a relay is its own, and its ids lead to the new contents.
                        if !self.is_relay() {
                            self.steps.push(Action::RestartHistory(eid));
                        }
                        self.steps.plan(Task::FinishInstallation(index, term, eid));
                    }
                    Err(error) => self.break_off(format!("a snapshot cannot be applied: {error}")),
                }
                parts.outputs.free(Garbage::database(*database));
            }
            _ => unreachable!("each source has a job"),
        }
        for input in held {
            self.steps.push(Action::Handle(input));
        }
    }

    /// The database is removed: nothing replaces its contents any more.
    pub(in super::super) fn give_up_replacement(&mut self, parts: &mut Parts<'_>) {
        let replacement = self.replacement.take();
        if let Some(Source::Snapshot(database, _)) = replacement.map(|it| it.source) {
            parts.outputs.free(Garbage::database(*database));
        }
    }

    /// Plans to replace the contents by those after this entry.
    pub(super) fn plan_contents(&mut self, database: Database, index: Index, eid: Eid) {
        self.steps.plan(Task::AnswerBeforeEntry(eid));
        self.steps
            .plan(Task::TakeContents(Box::new(database), index, eid));
    }

    /// An entry replaces the contents. Its request, if it is one of this member's sessions, is
    /// answered before those are closed that do not know the new schema.
    pub(super) fn take_contents(&mut self, database: Box<Database>, index: Index, eid: Eid) {
        self.mark_applied(index, eid);
        self.steps.push(Action::Swap(database, eid));
        if let Some((entry, _)) = self.in_flight.take_committed(eid) {
            let answer = Answer::Result(b"{}".to_vec());
            self.steps.plan(Task::Finish(entry, answer));
        }
        self.steps.push(Action::EndSwap);
    }

    /// The member has installed a snapshot. The same schema: one change from the present contents. Another schema: as a conversion.
    pub(super) fn install(&mut self, installed: InstalledSnapshot, parts: &mut Parts<'_>) {
        let InstalledSnapshot {
            database,
            index,
            term,
            eid,
        } = installed;
        if !self.follows() || self.applied >= index {
            parts.outputs.free(Garbage::database(database));
            return;
        }
        if !self.is_relay() {
            self.seek(term);
        }
        if database.schema().to_json() == parts.database.schema().to_json() {
            let source = Source::Snapshot(Box::new(database), term);
            self.begin_replacement(source, index, eid, parts);
        } else {
            self.steps.plan(Task::FinishConverted(index));
            self.steps.push(Action::Swap(Box::new(database), eid));
            self.steps.push(Action::EndSwap);
            self.steps.plan(Task::FinishInstallation(index, term, eid));
        }
    }

    /// The contents are those of the snapshot through this entry.
    pub(super) fn finish_installation(
        &mut self,
        (index, eid): (Index, Eid),
        term: Term,
        parts: &mut Parts<'_>,
    ) {
        self.mark_applied(index, eid);
        if !self.is_relay() {
            // The snapshot does not tell which commits it includes.
            parts.once.restart(eid.0);
        }
        self.mark_reached(index);
        self.steps.plan(Task::EndInstallation(index, term));
    }

    /// The outcomes based on the snapshot are told.
    pub(super) fn end_installation(&mut self, index: Index, term: Term, parts: &mut Parts<'_>) {
        self.is_broken = false;
        self.report_applied(index);
        self.ask_for_sought(index);
        self.end_doubt(term, parts);
    }
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
            Source::Snapshot(installed, _) => Job::CompareSnapshots {
                number,
                present: snapshot,
                installed: installed.snapshot(),
            },
        }
    }
}

/// Bytes of entries that an event of the member keeps in memory.
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
