//! Committed entries.
//!
//! An entry of this leadership makes the oldest speculative commit true. Any other entry is applied like a record of a file, and released at
//! once; the session that asked for it gets its reply behind its updates. Invariant: whatever applies an entry has the same contents as
//! every other member at that entry. A database that cannot apply an entry stops there, and says so.

use bytes::Bytes;
use corvid_consensus::database::{Committed, ForwardOutcome, MemberEvent};
use corvid_data::{Arc, Delta, Recorded, Tag, WireError};
use corvid_engine::{Database, Outcome, WorkBudget};
use corvid_log::cluster::{Eid, Index, Parts, Term};

use super::super::replies::{Answer, Commit, Origin};
use super::super::{DatabaseService, Now};
use super::identity::identity_of;
use super::replacing::Source;
use super::request_stage::{Entry, Stage};
use crate::job::Derived;
use crate::message::ToDatabase;
use crate::relay::TERM;
use crate::upstream::{SourceChange, SourceNews};

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

/// How far an entry is applied.
enum Step {
    Applied,
    /// Its contents are being made. Later events of the member are held.
    UnderWay,
}

/// The request behind an entry, and its reply.
type Reply = Option<(Entry, Answer)>;

impl DatabaseService {
    /// These entries are committed.
    pub(super) fn apply_committed(
        &mut self,
        now: Now,
        through: Index,
        term: Term,
        entries: Vec<Committed>,
    ) {
        let cluster = self.model.cluster().filter(|cluster| !cluster.is_broken);
        let Some(before) = cluster.map(|cluster| cluster.applied) else {
            return;
        };
        let mut entries = entries.into_iter();
        while let Some(entry) = entries.next() {
            match entry {
                Committed::Own { index, eid } if self.conversions.is_entry(eid) => {
                    self.model.mark_applied(index, eid);
                    self.finish_conversion(now, Ok(()));
                }
                Committed::Own { index, eid } => self.release_own(index, eid),
                Committed::Data {
                    index,
                    eid,
                    data,
                    result,
                } => {
                    // Outcomes based on the entries before, some of which may have had no data.
                    self.mark_reached(now, index.previous());
                    self.answer_before(now, eid);
                    if let Some(result) = result {
                        self.executor.once.know_result(eid.0, &result);
                    }
                    self.executor.once.committed(eid.0);
                    match self.apply_entry(now, index, eid, &data) {
                        Ok(Step::Applied) => self.model.mark_applied(index, eid),
                        Ok(Step::UnderWay) => {
                            let done = index.previous();
                            if done > before {
                                self.model.report_applied(done);
                            }
                            let entries = entries.collect();
                            let rest = MemberEvent::Committed {
                                through,
                                term,
                                entries,
                            };
                            self.handle_upstream(now, ToDatabase::Member(rest));
                            return;
                        }
                        Err(error) => {
                            self.refuse_entry(index, &error);
                            return;
                        }
                    }
                }
            }
        }
        self.mark_reached(now, through);
        self.model.report_applied(through);
        self.end_doubt(now, term);
    }

    /// The source of a relay has made these changes.
    pub(super) fn apply_changes(&mut self, now: Now, through: Index, changes: Vec<SourceChange>) {
        if self.model.cluster().is_none_or(|relay| relay.is_broken) {
            return;
        }
        for change in changes {
            // Outcomes based on the changes before, which a client sees before this one.
            self.mark_reached(now, change.index.previous());
            if !self.apply_change(now, change) {
                return;
            }
        }
        self.mark_reached(now, through);
        self.model.report_applied(through);
        self.end_doubt(now, TERM);
    }

    /// An entry cannot be applied: nothing behind it is.
    pub(super) fn refuse_entry(&mut self, index: Index, error: &WireError) {
        let database = &self.database.schema().name;
        self.break_off(format!(
            "{database}: committed entry {index} cannot be applied: {error}"
        ));
    }

    /// An entry of this term is committed: requests that depend on earlier ones never happened.
    pub(super) fn end_doubt(&mut self, now: Now, term: Term) {
        let in_flight = self.model.in_flight_mut();
        let blocked = in_flight.map(|in_flight| in_flight.end_doubt(term));
        for number in blocked.into_iter().flatten() {
            self.send_forward(now, number);
        }
        self.advance_due(now);
    }

    /// The oldest commit of this leadership is committed.
    fn release_own(&mut self, index: Index, eid: Eid) {
        let oldest = self.pending.commits().next();
        let Some(oldest) = oldest else {
            unreachable!("a leader's entries are its pending commits");
        };
        assert_eq!(oldest.txn, eid.0, "entries are committed in their order");
        let Some(position) = oldest.position else {
            unreachable!("every proposal has a position");
        };
        self.model.mark_applied(index, eid);
        self.release_through(position);
    }

    /// Entries through this one are applied.
    pub(super) fn mark_reached(&mut self, now: Now, index: Index) {
        if let Some(cluster) = self.model.cluster_mut() {
            cluster.applied = cluster.applied.max(index);
        }
        self.finish_decided(now);
    }

    /// Applies an entry that this database has not executed.
    fn apply_entry(
        &mut self,
        now: Now,
        index: Index,
        eid: Eid,
        data: &Bytes,
    ) -> Result<Step, WireError> {
        assert!(
            self.pending.commits().next().is_none(),
            "nothing is speculative while others' entries are applied"
        );
        let parts =
            Parts::of(data).ok_or_else(|| WireError::syntax(data, "not the data of an entry"))?;
        let schema = parts.schema()?.map(Arc::new);
        match (schema, parts.transaction) {
            (None, None) => {}
            (None, Some(transaction)) => self.apply_transaction(now, eid, transaction)?,
            (Some(schema), None) => {
                self.begin_replacement(Source::Conversion(schema), index, eid);
                return Ok(Step::UnderWay);
            }
            (Some(schema), Some(rows)) => {
                let mut database = Database::new(schema, self.database.hash_seed());
                let recorded = self
                    .model
                    .read_transaction(rows, &database.schema().clone())?;
                database.apply_recorded(recorded, self.environment.uuids())?;
                self.apply_contents(now, database, eid);
            }
        }
        Ok(Step::Applied)
    }

    /// Applies a change of a relay's source. False if it does not fit, and nothing has changed.
    fn apply_change(&mut self, now: Now, change: SourceChange) -> bool {
        let SourceChange {
            index,
            eid,
            recorded,
            exists,
            ..
        } = change;
        match self.apply_fitting(recorded, &exists) {
            Ok(delta) => {
                self.publish_applied(now, eid, &Arc::new(delta), None);
                self.model.mark_applied(index, eid);
                true
            }
            Err(error) => {
                if let Some(cluster) = self.model.cluster_mut() {
                    cluster.report_misfit(&error);
                }
                false
            }
        }
    }

    fn apply_fitting(&mut self, recorded: Recorded, exists: &[bool]) -> Result<Delta, WireError> {
        for (row, exists) in recorded.rows.iter().zip(exists) {
            if self.database.get(row.table, row.uuid).is_some() != *exists {
                let table = &self.database.schema().table(row.table).name;
                let what = match exists {
                    true => "changed and does not exist",
                    false => "inserted and exists",
                };
                let details = format!("row {} of table {table} is {what}", row.uuid);
                return Err(WireError::new(Tag::ConsistencyViolation, details));
            }
        }
        self.database
            .apply_recorded(recorded, self.environment.uuids())
    }

    fn apply_transaction(&mut self, now: Now, eid: Eid, text: &[u8]) -> Result<(), WireError> {
        let schema = self.database.schema().clone();
        let recorded = self.model.read_transaction(text, &schema)?;
        let reply = self.reply_of_entry(eid);
        let delta = self
            .database
            .apply_recorded(recorded, self.environment.uuids())?;
        self.publish_applied(now, eid, &Arc::new(delta), reply);
        Ok(())
    }

    /// Publishes an applied change, then its reply.
    pub(super) fn publish_applied(&mut self, now: Now, eid: Eid, delta: &Arc<Delta>, reply: Reply) {
        debug_assert!(
            self.pending.is_empty(),
            "a follower releases everything at once"
        );
        let commit = (!delta.is_empty()).then(|| Commit {
            position: None,
            record_bytes: 0,
            txn: eid.0,
            delta: delta.clone(),
        });
        let has_changed = commit.is_some();
        if has_changed {
            self.subscriptions.execute(delta, eid.0);
        }
        let (origin, slot, answer) = match reply {
            Some((entry, answer)) => {
                let (slot, request) = entry.split();
                (Origin::Client(request), Some(slot), answer)
            }
            None if self.model.is_relay() => (Origin::Source, None, Answer::Nothing),
            None => (Origin::Member(self.model.leader()), None, Answer::Nothing),
        };
        if let Some(commit) = commit {
            self.release_commit(&commit, now.wall_ms, &origin);
        }
        if let (Origin::Client(request), Some(slot)) = (origin, slot) {
            self.finish(slot.with(request), answer, has_changed);
        }
        while let Some((entry, reply)) = self
            .model
            .in_flight_mut()
            .and_then(|in_flight| in_flight.take_seen(eid))
        {
            self.finish(entry, reply, false);
        }
        self.advance_due(now);
        self.retry_affected(now, Some(delta));
        self.release();
    }

    /// The request whose entry this is, before the entry is applied.
    fn reply_of_entry(&mut self, eid: Eid) -> Reply {
        let (entry, stage) = self.model.in_flight_mut()?.take_committed(eid)?;
        let answer = match stage {
            Stage::Proposed { reply, .. } => reply,
            Stage::Forwarded {
                result: Some(result),
                ..
            } => Answer::Result(result.into()),
            Stage::Forwarded { id, locks, .. } => self.compute_reply(&entry, id, locks),
            _ => unreachable!("it has no entry"),
        };
        Some((entry, answer))
    }

    /// The leader's message is lost: executes the transaction on the state before its entry, which is the state that the leader had, with
    /// the same UUIDs. Then undoes it: the entry itself is applied.
    fn compute_reply(&mut self, entry: &Entry, id: Eid, locks: Vec<String>) -> Answer {
        let client = identity_of(&entry.request, locks);
        let mut uuids = Derived::from(id.0);
        let mut budget = WorkBudget::unlimited();
        let params = entry.request.params();
        match self.run_forward(params, &client, 0, &mut uuids, &mut budget) {
            Ok(Outcome::Done {
                result,
                delta: Some(delta),
                ..
            }) => {
                self.database.undo(&delta);
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
