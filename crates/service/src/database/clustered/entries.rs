//! Committed entries.
//!
//! An entry of this leadership makes the oldest speculative commit true. Any other entry is applied
//! like a record of a file, and released at once; the session that asked for it gets its reply
//! after its updates. Invariant: a database that has applied an entry has the same contents as
//! every other member at that entry. A database that cannot apply an entry stops there, and reports
//! the error.

use bytes::Bytes;
use corvid_consensus::database::{Committed, ForwardOutcome, MemberEvent};
use corvid_data::{Arc, Delta, Schema, Tag, WireError};
use corvid_engine::{Database, Outcome, WorkBudget};
use corvid_log::cluster::{Eid, Index, Parts as EntryParts, Term, TransactionReader};

use crate::job::Derived;
use crate::message::ToDatabase;
use crate::replies::Answer;
use crate::upstream::{
    Action, Entry, EntryBatch, MemberTask, Parts, Source, Stage, Task, Upstream, execute_for,
    identity_of, plan_contents,
};

/// More entries are not applied inline.
const SHORT_ENTRIES: usize = 256;
/// Nor are entries with more bytes of data together.
const SHORT_BYTES: usize = 32 * 1024;

/// The data of an entry that changes rows only.
const ROWS_ONLY: &[u8] = b"[null,";

/// Whether an event costs so little that the member's thread may have its database handle it
/// inline: commits of a few small changes, and the outcome of a transaction.
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

/// Applies entries, and reuses memory from one to the next.
#[derive(Default)]
pub(super) struct Entries {
    reader: TransactionReader,
}

/// These entries are committed: plans to apply them.
pub(super) fn begin(upstream: &mut Upstream, through: Index, term: Term, entries: Vec<Committed>) {
    if upstream.contents.are_broken() {
        return;
    }
    let batch = EntryBatch {
        through,
        term,
        before: upstream.contents.applied(),
        entries: entries.into_iter(),
    };
    let task = MemberTask::ApplyNext(Box::new(batch));
    upstream.steps.plan_for_member(task);
}

/// Applies the next entry, then the rest.
pub(super) fn apply_next(upstream: &mut Upstream, mut batch: Box<EntryBatch>) {
    let Upstream {
        contents, steps, ..
    } = upstream;
    match batch.entries.next() {
        None => {
            contents.mark_reached(batch.through, steps);
            steps.plan(Task::EndEvent(batch.through, batch.term));
        }
        Some(Committed::Own { index, eid }) => {
            steps.push(Action::ReleaseOwn(index, eid));
            steps.plan_for_member(MemberTask::ApplyNext(batch));
        }
        Some(Committed::Data {
            index,
            eid,
            data,
            result,
        }) => {
            // Outcomes based on the entries before, some of which may have had no data. Then the
            // earlier requests of its session, which must not see this entry.
            contents.mark_reached(index.previous(), steps);
            steps.plan(Task::AnswerBeforeEntry(eid));
            let (entry, rest) = ((index, eid, data, result), batch);
            steps.plan_for_member(MemberTask::ApplyData { entry, rest });
        }
    }
}

impl Entries {
    /// Applies an entry that this database has not executed, then the rest.
    pub(super) fn apply(
        &mut self,
        (index, eid, data, result): (Index, Eid, Bytes, Option<Bytes>),
        rest: Box<EntryBatch>,
        upstream: &mut Upstream,
        parts: &mut Parts<'_>,
    ) {
        // Known before the rows change: if its client sends it again, to this member as the next
        // leader, it is answered and not executed.
        if let Some(result) = result {
            parts.once.know_result(eid.0, &result);
        }
        parts.once.committed(eid.0);
        let change = self.apply_data(eid, &data, upstream, parts);
        let Upstream {
            forwarding,
            contents,
            steps,
        } = upstream;
        match change {
            Ok(Change::None) => contents.mark_applied(index, eid),
            Ok(Change::Rows(delta, reply)) => {
                contents.mark_applied(index, eid);
                let delta = Arc::new(delta);
                steps.push(Action::Publish { eid, delta, reply });
            }
            Ok(Change::Contents(database)) => plan_contents(database, index, eid, steps),
            Ok(Change::Schema(schema)) => {
                contents.begin_replacement(Source::Conversion(schema), index, eid, parts);
                // The job may take long, and the leader counts on what is applied.
                let done = index.previous();
                if done > rest.before {
                    forwarding.report_applied(done);
                }
                let rest = ToDatabase::Member(MemberEvent::Committed {
                    through: rest.through,
                    term: rest.term,
                    entries: rest.entries.collect(),
                });
                let left = contents.hold(rest, steps, parts);
                assert!(left.is_none(), "the contents are being replaced");
                return;
            }
            // Nothing after it is applied.
            Err(error) => return contents.refuse_entry(index, &error, steps, parts),
        }
        steps.plan_for_member(MemberTask::ApplyNext(rest));
    }

    /// Applies the data of an entry to the rows, or returns the contents that it makes.
    fn apply_data(
        &mut self,
        eid: Eid,
        data: &Bytes,
        upstream: &mut Upstream,
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
                // A lost reply is computed on the rows before the entry, as the leader did.
                let reply = reply_of_entry(eid, upstream, parts);
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
}

/// The request whose entry this is, before the entry is applied.
fn reply_of_entry(
    eid: Eid,
    upstream: &mut Upstream,
    parts: &mut Parts<'_>,
) -> Option<(Entry, Answer)> {
    let in_flight = upstream.forwarding.in_flight_mut();
    let (entry, stage) = in_flight.take_committed(eid)?;
    let answer = match stage {
        Stage::Proposed { reply, .. } => reply,
        Stage::Forwarded {
            result: Some(result),
            ..
        } => Answer::Result(result.into()),
        Stage::Forwarded { id, locks, .. } => compute_reply(&entry, id, locks, parts),
        _ => unreachable!("it has no entry"),
    };
    Some((entry, answer))
}

/// The leader's message is lost: executes the transaction on the state before its entry, which is
/// the state that the leader had, with the same UUIDs. Then undoes it: the entry itself is applied.
fn compute_reply(entry: &Entry, id: Eid, locks: Vec<String>, parts: &mut Parts<'_>) -> Answer {
    let client = identity_of(&entry.request, locks);
    let mut uuids = Derived::from(id.0);
    let mut budget = WorkBudget::unlimited();
    let text = (entry.request.params(), &client, 0);
    match execute_for(text, &mut uuids, &mut budget, parts) {
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
