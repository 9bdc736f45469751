//! Contents that replace the present ones: a conversion that this database has not executed, and a snapshot that its member has installed.
//!
//! Converting all rows, or comparing them with a snapshot, takes as long as there are rows. A job does it, on snapshots. Meanwhile requests are
//! answered from the present contents, and the events of the member are held, in order. Invariant: this database follows while a replacement
//! is under way, so its contents do not change. When the events that are held have too many bytes, the database does the work itself.

use std::collections::VecDeque;

use corvid_consensus::database::{Committed, MemberEvent};
use corvid_data::{Arc, Recorded, Schema};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index, Term};

use super::super::replies::Answer;
use super::super::{DatabaseService, Now};
use super::request_stage::Entry;
use crate::job::{Job, JobNumber, JobResult};
use crate::message::{Event, InstalledSnapshot, ToDatabase};
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

impl DatabaseService {
    /// Begins to find the contents after this entry.
    pub(super) fn begin_replacement(&mut self, source: Source, index: Index, eid: Eid) {
        let replacement = Replacement {
            number: self.outputs.number_job(),
            source,
            index,
            eid,
            held: VecDeque::new(),
            held_bytes: 0,
        };
        let job = self.job_of(&replacement);
        self.outputs.jobs.push(job);
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.replacement = Some(replacement);
        }
    }

    fn job_of(&mut self, replacement: &Replacement) -> Job {
        let number = replacement.number;
        let snapshot = self.database.snapshot();
        match &replacement.source {
            Source::Conversion(schema) => Job::Convert {
                number,
                snapshot,
                schema: schema.clone(),
                seed: self.environment.fresh(),
            },
            Source::Snapshot(installed, _) => Job::CompareSnapshots {
                number,
                present: snapshot,
                installed: installed.snapshot(),
            },
        }
    }

    /// Holds an event of the member while a replacement is under way; otherwise returns it.
    pub(super) fn hold(&mut self, now: Now, input: ToDatabase) -> Option<ToDatabase> {
        let bytes_max = self.conversions.bytes_max;
        let cluster = self.model.cluster_mut();
        let Some(replacement) = cluster.and_then(|cluster| cluster.replacement.as_mut()) else {
            return Some(input);
        };
        replacement.held_bytes += bytes_of(&input);
        replacement.held.push_back(input);
        if replacement.held_bytes > bytes_max {
            self.replace_now(now);
        }
        None
    }

    /// Does the work of the job here.
    fn replace_now(&mut self, now: Now) {
        let cluster = self.model.cluster_mut();
        let Some(replacement) = cluster.and_then(|cluster| cluster.replacement.take()) else {
            return;
        };
        if let Some(ToDatabase::JobDone(_, done)) = self.job_of(&replacement).carry_out() {
            self.replace(now, replacement, done);
        }
    }

    /// The result of a job has come. Returns it if it is no step of a replacement.
    pub(in super::super) fn finish_replacement(
        &mut self,
        now: Now,
        number: JobNumber,
        done: JobResult,
    ) -> Option<JobResult> {
        let Some(cluster) = self.model.cluster_mut() else {
            return Some(done);
        };
        match cluster.replacement.take_if(|it| it.number == number) {
            Some(replacement) => {
                self.observers.slow.set_now(now);
                self.replace(now, replacement, done);
                self.release();
                self.resume(now);
                None
            }
            None => Some(done),
        }
    }

    fn replace(&mut self, now: Now, replacement: Replacement, done: JobResult) {
        let Replacement {
            source,
            index,
            eid,
            held,
            ..
        } = replacement;
        match (source, done) {
            (Source::Conversion(_), JobResult::Converted(Ok(converted))) => {
                self.apply_contents(now, converted.into_database(), eid);
                self.model.mark_applied(index, eid);
            }
            (Source::Conversion(_), JobResult::Converted(Err(error))) => {
                self.refuse_entry(index, &error);
            }
            (Source::Snapshot(database, term), JobResult::SnapshotsCompared(found)) => {
                self.apply_difference(now, found, index, term, eid);
                self.free_database(Some(*database));
            }
            _ => unreachable!("each source has a job"),
        }
        let mut held = held;
        while let Some(input) = held.pop_front() {
            self.handle(now, input);
        }
    }

    /// The database is removed: nothing replaces its contents any more.
    pub(in super::super) fn give_up_replacement(&mut self) {
        let cluster = self.model.cluster_mut();
        let replacement = cluster.and_then(|cluster| cluster.replacement.take());
        if let Some(Source::Snapshot(database, _)) = replacement.map(|it| it.source) {
            self.free_database(Some(*database));
        }
    }

    /// An entry replaces the contents.
    pub(super) fn apply_contents(&mut self, now: Now, database: Database, eid: Eid) {
        self.answer_before(now, eid);
        let in_flight = self.model.in_flight_mut();
        let taken = in_flight.and_then(|in_flight| in_flight.take_committed(eid));
        let request = taken.map(|(entry, _)| entry);
        self.replace_contents(database, eid, request);
    }

    /// Contents of another schema replace the present ones. `request` asked for that.
    fn replace_contents(&mut self, database: Database, eid: Eid, request: Option<Entry>) {
        let schema = self.swap_contents(database, eid.0);
        if let Some(entry) = request {
            self.finish(entry, Answer::Result(b"{}".to_vec()), false);
        }
        self.cancel_triggers();
        let converted = self.conversions.epoch;
        self.outputs
            .events
            .push(Event::Converted(self.id, schema, converted));
    }

    /// The member has installed a snapshot. The same schema: one change from the present contents. Another schema: as a conversion.
    pub(in super::super) fn install(&mut self, now: Now, installed: InstalledSnapshot) {
        let installed = match self.hold(now, ToDatabase::Installed(Box::new(installed))) {
            Some(ToDatabase::Installed(installed)) => *installed,
            _ => return,
        };
        let InstalledSnapshot {
            database,
            index,
            term,
            eid,
        } = installed;
        let is_expected = |cluster: &super::Clustered| cluster.follows() && cluster.applied < index;
        if !self.model.cluster().is_some_and(is_expected) || self.is_removed {
            self.free_database(Some(database));
            return;
        }
        self.observers.slow.set_now(now);
        let is_relay = self.model.is_relay();
        if let Some(cluster) = self.model.cluster_mut().filter(|_| !is_relay) {
            cluster.seek(term);
        }
        if database.schema().to_json() == self.database.schema().to_json() {
            self.begin_replacement(Source::Snapshot(Box::new(database), term), index, eid);
        } else {
            self.answer_conversions(now, index);
            self.replace_contents(database, eid, None);
            self.finish_installation(now, index, term, eid);
        }
        self.resume(now);
    }

    fn apply_difference(&mut self, now: Now, found: Recorded, index: Index, term: Term, eid: Eid) {
        match self
            .database
            .apply_recorded(found, self.environment.uuids())
        {
            Ok(delta) => {
                self.publish_applied(now, eid, &Arc::new(delta), None);
                // The members of a cluster tell one history. That of a relay is its own, and its ids lead to the new contents.
                if !self.model.is_relay() {
                    self.subscriptions.restart_history(true, eid.0);
                }
                self.finish_installation(now, index, term, eid);
            }
            Err(error) => self.break_off(format!("a snapshot cannot be applied: {error}")),
        }
    }

    fn finish_installation(&mut self, now: Now, index: Index, term: Term, eid: Eid) {
        self.model.mark_applied(index, eid);
        if !self.model.is_relay() {
            // The snapshot does not tell which commits it includes.
            self.executor.once.restart(eid.0);
        }
        self.mark_reached(now, index);
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.is_broken = false;
            cluster.report_applied(index);
            cluster.ask_for_sought(index);
        }
        self.end_doubt(now, term);
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
