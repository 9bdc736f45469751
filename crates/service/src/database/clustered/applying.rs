//! Committed entries.
//!
//! An entry of this leadership makes the oldest speculative commit true. Any other entry is applied like a record of a file, and released at
//! once; the session that asked for it gets its reply behind its updates. Invariant: whatever applies an entry has the same contents as
//! every other member at that entry. A database that cannot apply an entry stops there, and says so.

use bytes::Bytes;
use corvid_consensus::database::{Committed, ForwardOutcome, MemberEvent};
use corvid_data::{Arc, Delta, Recorded, Schema, Tag, WireError};
use corvid_engine::{Database, Outcome, WorkBudget};
use corvid_log::cluster::{Eid, Index, Parts as EntryParts, Term};

use super::super::replies::Answer;
use super::replacing::Source;
use super::steps::{Action, Task};
use super::{Clustered, Entry, Parts, Stage};
use crate::job::Derived;
use crate::message::ToDatabase;
use crate::relay::TERM;
use crate::upstream::{SourceChange, SourceNews, identity_of};

/// More entries are not applied inline.
const SHORT_ENTRIES: usize = 256;
/// Nor are entries with more bytes of data together.
const SHORT_BYTES: usize = 32 * 1024;

/// The data of an entry that changes rows only.
const ROWS_ONLY: &[u8] = b"[null,";

/// Whether an event costs so little that the member's thread may have its database handle it inline: commits of a few small changes, and the
/// outcome of a transaction.
pub(in super::super) fn is_short(event: &MemberEvent) -> bool {
    let entries = match event {
        MemberEvent::Committed { entries, .. } => entries,
        MemberEvent::Outcome { outcome, .. } => {
            return !matches!(outcome, ForwardOutcome::Blocked(_));
        }
        _ => return false,
    };
    let mut bytes = 0;
    entries.len() <= SHORT_ENTRIES
        && entries.iter().all(|entry| match entry {
            Committed::Own { .. } => true,
            Committed::Data { data, .. } => {
                bytes += data.len();
                bytes <= SHORT_BYTES && data.starts_with(ROWS_ONLY)
            }
        })
}

/// The same of news that a relay has of its source.
pub(in super::super) fn is_short_news(news: &SourceNews) -> bool {
    match news {
        SourceNews::Changes { changes, .. } => {
            let bytes: usize = changes.iter().map(|change| change.bytes).sum();
            changes.len() <= SHORT_ENTRIES && bytes <= SHORT_BYTES
        }
        SourceNews::Outcome { outcome, .. } => !matches!(outcome, ForwardOutcome::Blocked(_)),
        SourceNews::Reachable(_) | SourceNews::Lock { .. } => false,
    }
}

/// Committed entries that are being applied.
pub(super) struct Batch {
    through: Index,
    term: Term,
    /// The last entry that was applied before them.
    before: Index,
    entries: std::vec::IntoIter<Committed>,
}

/// The change of an entry.
enum Change {
    /// Nothing.
    None,
    /// Rows, and the request that asked for them with its reply.
    Rows(Delta, Option<(Entry, Answer)>),
    /// Contents of another schema.
    Contents(Database),
    /// The present contents under this schema.
    Schema(Arc<Schema>),
}

impl Clustered {
    /// These entries are committed.
    pub(super) fn apply_committed(&mut self, through: Index, term: Term, entries: Vec<Committed>) {
        if self.is_broken {
            return;
        }
        self.steps.plan(Task::ApplyNext(Box::new(Batch {
            through,
            term,
            before: self.applied,
            entries: entries.into_iter(),
        })));
    }

    /// Applies the next entry, then the rest.
    pub(super) fn apply_next(&mut self, mut batch: Box<Batch>, parts: &Parts<'_>) {
        match batch.entries.next() {
            None => {
                self.mark_reached(batch.through);
                self.steps.plan(Task::EndEvent(batch.through, batch.term));
            }
            Some(Committed::Own { index, eid }) => {
                if parts.conversions.is_entry(eid) {
                    self.mark_applied(index, eid);
                    self.steps.push(Action::FinishConversion);
                } else {
                    self.steps.push(Action::ReleaseOwn(index, eid));
                }
                self.steps.plan(Task::ApplyNext(batch));
            }
            Some(Committed::Data {
                index,
                eid,
                data,
                result,
            }) => {
                // Outcomes based on the entries before, some of which may have had no data.
                self.mark_reached(index.previous());
                self.steps.plan(Task::AnswerBeforeEntry(eid));
                let (entry, rest) = ((index, eid, data, result), batch);
                self.steps.plan(Task::ApplyData { entry, rest });
            }
        }
    }

    /// Applies an entry that this database has not executed, then the rest.
    pub(super) fn apply_data(
        &mut self,
        (index, eid, data, result): (Index, Eid, Bytes, Option<Bytes>),
        rest: Box<Batch>,
        parts: &mut Parts<'_>,
    ) {
        if let Some(result) = result {
            parts.once.know_result(eid.0, &result);
        }
        parts.once.committed(eid.0);
        match self.apply_entry(eid, &data, parts) {
            Ok(Change::None) => self.mark_applied(index, eid),
            Ok(Change::Rows(delta, reply)) => {
                self.mark_applied(index, eid);
                let delta = Arc::new(delta);
                self.steps.push(Action::Publish { eid, delta, reply });
            }
            Ok(Change::Contents(database)) => self.plan_contents(database, index, eid),
            Ok(Change::Schema(schema)) => {
                self.begin_replacement(Source::Conversion(schema), index, eid, parts);
                let done = index.previous();
                if done > rest.before {
                    self.report_applied(done);
                }
                let rest = ToDatabase::Member(MemberEvent::Committed {
                    through: rest.through,
                    term: rest.term,
                    entries: rest.entries.collect(),
                });
                let left = self.hold(rest, parts);
                debug_assert!(left.is_none(), "the contents are being replaced");
                return;
            }
            // Nothing after it is applied.
            Err(error) => return self.refuse_entry(index, &error, parts),
        }
        self.steps.plan(Task::ApplyNext(rest));
    }

    /// An entry cannot be applied: nothing behind it is.
    pub(super) fn refuse_entry(&mut self, index: Index, error: &WireError, parts: &Parts<'_>) {
        let database = &parts.database.schema().name;
        self.break_off(format!(
            "{database}: committed entry {index} cannot be applied: {error}"
        ));
    }

    /// The database cannot continue, for this reason.
    pub(super) fn break_off(&mut self, details: String) {
        self.is_broken = true;
        self.steps.push(Action::BreakOff(details));
    }

    /// Entries through this one are applied: outcomes that are based on them are certain.
    pub(super) fn mark_reached(&mut self, index: Index) {
        self.applied = self.applied.max(index);
        self.steps.plan(Task::FinishDecided);
    }

    /// Applies an entry to the rows, or says what contents it makes.
    fn apply_entry(
        &mut self,
        eid: Eid,
        data: &Bytes,
        parts: &mut Parts<'_>,
    ) -> Result<Change, WireError> {
        let entry = EntryParts::of(data)
            .ok_or_else(|| WireError::syntax(data, "not the data of an entry"))?;
        let schema = entry.schema()?.map(Arc::new);
        match (schema, entry.transaction) {
            (None, None) => Ok(Change::None),
            (None, Some(transaction)) => {
                let schema = parts.database.schema().clone();
                let recorded = self.reader.read(transaction, &schema)?;
                let reply = self.reply_of_entry(eid, parts);
                let uuids = parts.environment.uuids();
                let delta = parts.database.apply_recorded(recorded, uuids)?;
                Ok(Change::Rows(delta, reply))
            }
            (Some(schema), None) => Ok(Change::Schema(schema)),
            (Some(schema), Some(rows)) => {
                let mut database = Database::new(schema.clone(), parts.database.hash_seed());
                let recorded = self.reader.read(rows, &schema)?;
                database.apply_recorded(recorded, parts.environment.uuids())?;
                Ok(Change::Contents(database))
            }
        }
    }

    /// The source of a relay has made these changes.
    pub(super) fn apply_changes(&mut self, through: Index, changes: Vec<SourceChange>) {
        if !self.is_broken {
            self.steps
                .plan(Task::ApplyChanges(through, changes.into_iter()));
        }
    }

    /// Applies the next change, then the rest.
    pub(super) fn apply_next_change(
        &mut self,
        through: Index,
        mut changes: std::vec::IntoIter<SourceChange>,
    ) {
        match changes.next() {
            None => {
                self.mark_reached(through);
                self.steps.plan(Task::EndEvent(through, TERM));
            }
            Some(change) => {
                // Outcomes based on the changes before, which a client sees before this one.
                self.mark_reached(change.index.previous());
                self.steps
                    .plan(Task::ApplyChange(through, Box::new(change), changes));
            }
        }
    }

    /// Applies a change of a relay's source, then the rest. If it does not fit, nothing has changed.
    pub(super) fn apply_change(
        &mut self,
        through: Index,
        change: SourceChange,
        rest: std::vec::IntoIter<SourceChange>,
        parts: &mut Parts<'_>,
    ) {
        let SourceChange {
            index,
            eid,
            recorded,
            exists,
            ..
        } = change;
        match apply_fitting(recorded, &exists, parts) {
            Ok(delta) => {
                self.mark_applied(index, eid);
                self.steps.push(Action::Publish {
                    eid,
                    delta: Arc::new(delta),
                    reply: None,
                });
                self.steps.plan(Task::ApplyChanges(through, rest));
            }
            Err(error) => self.report_misfit(&error),
        }
    }

    /// An applied change is shown to the sessions: those whose replies depend on it are answered.
    /// `reply`: that of the request that asked for it, and whether it has changed something.
    pub(in super::super) fn answer_published(
        &mut self,
        eid: Eid,
        reply: Option<(Entry, Answer, bool)>,
        delta: Arc<Delta>,
        parts: &mut Parts<'_>,
    ) {
        if let Some((entry, answer, has_changed)) = reply {
            self.finish(entry, answer, has_changed, parts);
        }
        self.steps.plan(Task::FinishSeen(eid));
        self.steps.plan(Task::Advance);
        // Requests of sessions come first: they may change what blocked transactions wait for.
        self.steps.push(Action::RetryAffected(delta));
    }

    /// Answers the requests that have seen this entry, which is committed.
    pub(super) fn finish_seen(&mut self, eid: Eid, parts: &mut Parts<'_>) {
        if let Some((entry, reply)) = self.in_flight.take_seen(eid) {
            self.finish(entry, reply, false, parts);
            self.steps.plan(Task::FinishSeen(eid));
        }
    }

    /// The request whose entry this is, before the entry is applied.
    fn reply_of_entry(&mut self, eid: Eid, parts: &mut Parts<'_>) -> Option<(Entry, Answer)> {
        let (entry, stage) = self.in_flight.take_committed(eid)?;
        let answer = match stage {
            Stage::Proposed { reply, .. } => reply,
            Stage::Forwarded {
                result: Some(result),
                ..
            } => Answer::Result(result.into()),
            Stage::Forwarded { id, locks, .. } => self.compute_reply(&entry, id, locks, parts),
            _ => unreachable!("it has no entry"),
        };
        Some((entry, answer))
    }

    /// The leader's message is lost: executes the transaction on the state before its entry, which is the state that the leader had, with
    /// the same UUIDs. Then undoes it: the entry itself is applied.
    fn compute_reply(
        &self,
        entry: &Entry,
        id: Eid,
        locks: Vec<String>,
        parts: &mut Parts<'_>,
    ) -> Answer {
        let client = identity_of(&entry.request, locks);
        let mut uuids = Derived::from(id.0);
        let mut budget = WorkBudget::unlimited();
        let params = entry.request.params();
        match self.run_forward((params, &client, 0), &mut uuids, &mut budget, parts) {
            Ok(Outcome::Done {
                result,
                delta: Some(delta),
                ..
            }) => {
                parts.database.undo(&delta);
                Answer::Result(result)
            }
            _ => {
                debug_assert!(false, "the leader committed it on the same state");
                let details = "committed, but its result is lost";
                Answer::Error(Box::new(WireError::new(Tag::InternalError, details)))
            }
        }
    }
}

/// Applies a change of a relay's source.
///
/// # Errors
/// A row exists, or does not, against the source's word. Nothing has changed.
fn apply_fitting(
    recorded: Recorded,
    exists: &[bool],
    parts: &mut Parts<'_>,
) -> Result<Delta, WireError> {
    let database = &mut *parts.database;
    for (row, exists) in recorded.rows.iter().zip(exists) {
        if database.get(row.table, row.uuid).is_some() != *exists {
            let table = &database.schema().table(row.table).name;
            let what = match exists {
                true => "changed and does not exist",
                false => "inserted and exists",
            };
            let details = format!("row {} of table {table} is {what}", row.uuid);
            return Err(WireError::new(Tag::ConsistencyViolation, details));
        }
    }
    database.apply_recorded(recorded, parts.environment.uuids())
}
