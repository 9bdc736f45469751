//! Transactions that their clients may send again ([`crate::once`]): which of them are executed.
//!
//! The database that executes decides: a standalone one, or that of a cluster's leader, which knows
//! every commit in its log. It remembers a commit when it is executed, and forgets it when it is
//! undone; the reply to a copy waits for the same record. A follower passes the id on with the
//! transaction, and remembers the results that come with the entries, for the time when it leads. A
//! relay passes the id on to its source, and remembers the outcome that the source has told. A copy
//! that comes while the first is on its way waits for that outcome. Invariant: no id is executed
//! twice. That holds for a transaction that came to nothing, too: its client has been told so, and
//! a late copy must change nothing.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use corvid_consensus::database::ForwardOutcome;
use corvid_data::{Arc, Delta, Tag, Uuid, WireError};
use corvid_engine::Outcome;
use corvid_log::commit_ids::END_COMMENT;
use corvid_monitor::SessionId;

use crate::message::Request;
use crate::once::recorded::END_LINE;
use crate::once::{Key, Once, OnceOutcome, OnceTable, RESULT_BYTES_MAX, RecordedCommits, Verdict};
use crate::replies::{Answer, Pending};

/// The transactions with ids.
pub(crate) struct OnceState {
    table: OnceTable,
    /// Those that a relay has for its source, and the requests with the same ids that came later.
    /// Bounded by the requests under way.
    forwarded: BTreeMap<Uuid, Vec<Request>>,
    /// Those without a commit whose first reply waits for the records of earlier ones. Bounded by
    /// the pending replies.
    tentative: BTreeSet<Uuid>,
    /// The file may name commits of this database from before it became a backup.
    has_foreign_lines: bool,
    /// The database is a backup: its source executes.
    is_backup: bool,
}

impl OnceState {
    /// Of a database whose last commit is this one.
    pub(crate) fn new(last: Uuid) -> OnceState {
        OnceState {
            table: OnceTable::new(last),
            forwarded: BTreeMap::new(),
            tentative: BTreeSet::new(),
            has_foreign_lines: false,
            is_backup: false,
        }
    }

    /// Of a database whose last commit is this one, after those that its file names.
    pub(crate) fn restored(last: Uuid, recorded: &RecordedCommits) -> OnceState {
        OnceState {
            table: OnceTable::restored(last, recorded),
            ..OnceState::new(last)
        }
    }

    /// The database becomes a backup. Its source's commits have no ids here, so what is known of
    /// earlier ones proves nothing any more: a transaction that the source executes, and that its
    /// client sends again after a fail-over, would be executed a second time. Sessions outlive the
    /// change of roles, and with them first copies that have not arrived yet: so outcomes stay.
    pub(crate) fn begin_backup(&mut self) {
        self.has_foreign_lines |= self.table.has_ids();
        self.is_backup = true;
        self.forget_earlier();
    }

    /// The database is not a backup any more. Its last state proves that nothing was executed after
    /// it. Earlier ones do not: the source may have executed a transaction after them, and we have
    /// its rows under another id. The one at which it became a backup is often known to the source,
    /// too, because operators copy files.
    pub(crate) fn end_backup(&mut self) {
        self.is_backup = false;
        self.forget_earlier();
    }

    /// Only the last commit proves anything from here on. Nothing is pending.
    fn forget_earlier(&mut self) {
        if let Some(last) = self.table.last() {
            self.table.begin_anew(last);
            self.tentative.clear();
        }
    }

    /// The comment for the record of a commit of the source: a restarted server must not rely on
    /// the lines before it either.
    pub(crate) fn replicated_comment(&self) -> Option<String> {
        self.has_foreign_lines.then(|| END_LINE.to_owned())
    }

    /// The last commits, for a new file. Those of a backup prove nothing when the source has
    /// executed others, whose records would follow.
    pub(crate) fn recorded(&self) -> RecordedCommits {
        if self.is_backup {
            return RecordedCommits::default();
        }
        self.table.recorded()
    }

    /// Compares the ids of commits with those in the file.
    ///
    /// # Errors
    /// How they differ.
    pub(crate) fn check_recorded(&self, file: &RecordedCommits) -> Result<(), String> {
        self.table.check_recorded(file)
    }

    /// Whether the record of the next commit must name a seed for the ids of later ones.
    pub(crate) fn needs_seed(&self, has_id: bool, are_sent: bool) -> bool {
        self.table.needs_seed(has_id, are_sent)
    }

    /// Whether the next record must end the lines before it, if it names no seed.
    pub(crate) fn must_end_lines(&self) -> bool {
        self.table.must_end_lines()
    }

    /// A record that ends the lines before it goes to the file.
    pub(crate) fn end_lines(&mut self) {
        self.table.end_lines();
    }

    /// A record of a commit goes to the file, with this seed if it names one. Returns the commit's
    /// id, unless the record names it.
    pub(crate) fn number_record(&mut self, seed: Option<Uuid>) -> Option<Uuid> {
        self.table.number_record(seed)
    }

    /// Ends the numbering, because the file was replaced or lost records.
    pub(crate) fn end_numbering(&mut self) {
        self.table.end_numbering();
    }

    /// The contents are replaced by a snapshot whose last commit is this one, and which names these
    /// commits.
    pub(crate) fn install(&mut self, last: Uuid, recorded: &RecordedCommits) {
        self.table.install(last, recorded);
        self.tentative.clear();
    }

    /// The ids of the last commits up to this one, for a member's snapshot.
    pub(crate) fn ids_through(&self, last: Uuid) -> Vec<Uuid> {
        self.table.ids_through(last)
    }

    /// There is a commit, and nothing is to be remembered but its id.
    pub(crate) fn committed(&mut self, id: Uuid) {
        self.table.committed(id);
    }

    /// The result of a commit has come from another member: its transaction has an id. It is
    /// copied, because it is part of a long message that must not be kept.
    pub(crate) fn know_result(&mut self, id: Uuid, result: &[u8]) {
        self.table.note_ids();
        let result = Bytes::copy_from_slice(result);
        self.table
            .remember(Key::of_commit(id), OnceOutcome::Result(Some(result)), true);
    }

    /// The id of the commit of a transaction that its client may send again; it is executed now,
    /// by the leader of this term or by a database without one.
    pub(crate) fn commit_id(&self, id: Uuid, term: Option<u64>) -> Uuid {
        self.table.commit_id(id, term)
    }

    /// A transaction that its client may send again is executed; `result`: its result, if that is
    /// whole.
    pub(crate) fn executed(&mut self, id: Uuid, result: Option<Bytes>) {
        self.table.committed(id);
        self.table
            .remember(Key::of_commit(id), OnceOutcome::Result(result), true);
    }

    /// A transaction that its client may send again has been executed without a commit. One that
    /// cannot change anything is not remembered: it may be executed as often as its client likes,
    /// and must not push out outcomes that others need. Of repeated ones only those come here whose
    /// end is not recorded ([`record_end`]), because their sessions may not write: this server has
    /// told their clients the outcome, so it stays with it.
    pub(crate) fn came_to_nothing(&mut self, once: Once, may_write: bool, result: &Answer) {
        if !may_write {
            return;
        }
        let Answer::Result(result) = result else {
            // A selection of many rows changes nothing whenever it is executed.
            return;
        };
        let is_short = result.len() <= RESULT_BYTES_MAX;
        let result = is_short.then(|| Bytes::copy_from_slice(result));
        self.table.remember(
            Key::of(once.id),
            OnceOutcome::Result(result),
            once.is_repeated,
        );
        self.tentative.insert(once.id);
    }

    /// An outcome that is remembered is that of this text.
    pub(crate) fn bind(&mut self, id: Uuid, text: &[u8]) {
        self.table.bind(id, text);
    }

    /// The reply of a transaction leaves.
    pub(crate) fn released(&mut self, id: Option<Uuid>) {
        if let Some(id) = id {
            self.tentative.remove(&id);
        }
    }
}

/// Makes a commit without rows of the outcome of a repeated transaction that has changed nothing.
/// Other copies may reach a server that leads later, or this one after a restart. They would be
/// executed, although the client has been told this outcome; the commit lets every server that
/// executes know it. A first copy needs none: when it is answered, no other one exists. Costs an
/// entry or a record for each lost reply of such a transaction.
pub(crate) fn record_end(
    outcome: &mut Outcome,
    once: Option<Once>,
    may_change: impl FnOnce() -> bool,
) {
    let is_repeated = once.is_some_and(|once| once.is_repeated);
    if let Outcome::Done {
        deferred_selections,
        delta: delta @ None,
        tally,
        ..
    } = outcome
        && is_repeated
        && deferred_selections.is_empty()
        // A session that may not write would fill the log.
        && tally.error != Some(Tag::PermissionError)
        && may_change()
    {
        *delta = Some(Arc::new(Delta {
            comment: END_COMMENT.to_owned(),
            ..Delta::default()
        }));
    }
}

/// A transaction with an id, compared with those before it.
pub(crate) enum Resolved {
    /// It is to be executed, or passed on.
    New(Box<Request>),
    /// It was executed before, or may have been: this is its answer.
    Answered(Box<Request>, Answer),
    /// It waits for the outcome of the first one. It must not hold up the later replies of its
    /// session: the caller completes it for this session, unless it was complete before.
    Waits(Option<SessionId>),
}

/// The reply to a transaction that has been executed before.
fn answer_of(outcome: &OnceOutcome) -> Answer {
    match outcome {
        OnceOutcome::Result(Some(result)) => Answer::Result(result.to_vec()),
        // It happened, and its result is lost.
        OnceOutcome::Result(None) => Answer::Canceled,
        OnceOutcome::Error(error) => Answer::Refused(error.clone()),
    }
}

impl OnceState {
    /// The last commit that is known.
    pub(crate) fn last(&self) -> Option<Uuid> {
        self.table.last()
    }

    /// Compares a transaction with those before it. A follower leaves the judgement to the database
    /// that executes.
    pub(crate) fn resolve(
        &mut self,
        mut request: Box<Request>,
        once: Once,
        is_follower: bool,
    ) -> Resolved {
        let answer = if self.table.is_of_another(once.id, request.params()) {
            let details = "transact_once: another transaction has this id";
            Some(Answer::Error(Box::new(WireError::new(
                Tag::NotAllowed,
                details,
            ))))
        } else if let Some(outcome) = self.table.get(once) {
            Some(answer_of(outcome))
        } else if let Some(waiting) = self.forwarded.get_mut(&once.id) {
            let was_blocked = std::mem::replace(&mut request.blocked, true);
            let completed = (!was_blocked).then_some(request.session);
            waiting.push(*request);
            return Resolved::Waits(completed);
        } else if is_follower {
            None
        } else {
            self.judge(once)
        };
        match answer {
            Some(answer) => Resolved::Answered(request, answer),
            None => Resolved::New(request),
        }
    }

    /// The answer to a transaction, if it is not to be executed by this database, which executes.
    pub(crate) fn judge(&mut self, once: Once) -> Option<Answer> {
        match self.table.judge(once) {
            Verdict::Executed(outcome) => Some(answer_of(outcome)),
            Verdict::Unknown => Some(Answer::Canceled),
            // The source may have executed another copy, whatever commit the client names.
            Verdict::New if self.is_backup && once.is_repeated => Some(Answer::Canceled),
            Verdict::New => None,
        }
    }

    /// The answer to a copy of a transaction whose commit this follower has applied.
    pub(crate) fn answer_of_applied(&mut self, once: Once) -> Option<Answer> {
        self.table.executed(once).map(answer_of)
    }

    /// These entries are undone, newest last.
    pub(crate) fn forget_undone(&mut self, undone: &[Pending]) {
        for entry in undone.iter().rev() {
            match (&entry.commit, entry.origin.once_id()) {
                (Some(commit), _) => self.table.undone(commit.txn),
                (None, Some(id)) if self.tentative.remove(&id) => {
                    self.table.forget(Key::of(id));
                }
                _ => {}
            }
        }
    }

    /// A relay is about to have a transaction for its source.
    pub(crate) fn begin(&mut self, once: Once) {
        self.forwarded.entry(once.id).or_default();
    }

    /// The source of a relay has decided about a transaction. Returns the answers to those with the
    /// same id that are still asked for. One of the others takes its place
    /// ([`OnceState::take_waiting_for`]): all of them if it was not sent, and otherwise those that
    /// need a lasting outcome and have none.
    pub(crate) fn decide(
        &mut self,
        request: &Request,
        once: Once,
        outcome: &ForwardOutcome,
    ) -> Vec<(Box<Request>, Answer)> {
        let outcome = match outcome {
            ForwardOutcome::Unchanged(_, result) => OnceOutcome::Result(Some(result.clone())),
            ForwardOutcome::Refused(_, error) => OnceOutcome::Error(error.clone()),
            ForwardOutcome::Blocked(_) | ForwardOutcome::Proposed(_) => return Vec::new(),
        };
        // The source has recorded the end of a repeated one. That of a first copy may be known to
        // one of its servers only.
        let is_lasting = once.is_repeated && matches!(outcome, OnceOutcome::Result(_));
        self.table
            .remember(Key::of(once.id), outcome.clone(), is_lasting);
        self.bind(once.id, request.params());
        let waiting = self.forwarded.remove(&once.id).into_iter().flatten();
        let asked_for = waiting.filter(|request| !request.info.is_closed());
        let is_answered =
            |copy: &Request| is_lasting || copy.once.is_none_or(|copy| !copy.is_repeated);
        let (answered, left): (Vec<_>, Vec<_>) = asked_for.partition(is_answered);
        if !left.is_empty() {
            self.forwarded.insert(once.id, left);
        }
        let answers = answered.into_iter();
        let answers = answers.map(|copy| (Box::new(copy), answer_of(&outcome)));
        answers.collect()
    }

    /// Takes the transactions that wait for the outcome of the one with this id, which is not on
    /// its way any more.
    pub(crate) fn take_waiting_for(&mut self, once: Once) -> Vec<Request> {
        self.forwarded.remove(&once.id).unwrap_or_default()
    }

    /// Checks what belongs together. O(remembered commits): for simulations.
    ///
    /// # Panics
    /// It contradicts itself.
    pub(crate) fn check(&self) {
        self.table.check();
    }

    /// Takes all transactions that wait for outcomes: the database is removed, and forwards nothing
    /// from now on.
    pub(crate) fn take_waiting(&mut self) -> Vec<Request> {
        let forwarded = std::mem::take(&mut self.forwarded);
        forwarded.into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use corvid_log::cluster::Index;

    use super::*;
    use crate::message::{DatabaseMethod, SessionInfo};

    const ONCE: Once = Once {
        id: Uuid([7; 16]),
        after: None,
        is_repeated: false,
        came: None,
    };

    fn request(session: u64, params: &[u8]) -> Box<Request> {
        Box::new(Request {
            session: SessionId(session),
            info: Arc::new(SessionInfo::new(false, String::new(), None)),
            arrived_ms: 0,
            stamp: 0,
            id: Box::default(),
            method: DatabaseMethod::Transact,
            frame: params.to_vec(),
            params: 0..params.len(),
            seqno: None,
            blocked: false,
            foreign_monitors: Vec::new(),
            once: Some(ONCE),
            client: None,
        })
    }

    #[test]
    fn copies_wait_for_the_outcome_of_the_one_that_a_relay_has_forwarded() {
        let mut once = OnceState::new(Uuid::ZERO);
        let first = request(1, b"[]");
        once.begin(ONCE);
        let copy = once.resolve(request(2, b"[]"), ONCE, true);
        assert!(matches!(copy, Resolved::Waits(Some(SessionId(2)))));
        let mut complete = request(3, b"[]");
        complete.blocked = true;
        let copy = once.resolve(complete, ONCE, true);
        assert!(matches!(copy, Resolved::Waits(None)), "completed before");

        let outcome = ForwardOutcome::Unchanged(Index(1), Bytes::from_static(b"[{}]"));
        let answers = once.decide(&first, ONCE, &outcome);
        let sessions: Vec<u64> = answers.iter().map(|(copy, _)| copy.session.0).collect();
        assert_eq!(sessions, [2, 3]);
        assert!(matches!(&answers[0].1, Answer::Result(result) if result == b"[{}]"));

        let late = once.resolve(request(4, b"[]"), ONCE, true);
        assert!(matches!(late, Resolved::Answered(_, Answer::Result(_))));
        let other = once.resolve(request(5, b"[1]"), ONCE, true);
        assert!(matches!(other, Resolved::Answered(_, Answer::Error(_))));
    }

    /// The first copy may arrive last, at a session that has lived through two fail-overs.
    #[test]
    fn a_refused_transaction_stays_refused_after_the_database_was_a_backup() {
        let mut once = OnceState::new(Uuid([1; 16]));
        let refused = br#"[{"error":"not owner"}]"#;
        once.came_to_nothing(ONCE, true, &Answer::Result(refused.to_vec()));
        once.begin_backup();
        once.check();
        let late = once.resolve(request(1, b"[]"), ONCE, false);
        assert!(matches!(late, Resolved::Answered(_, Answer::Result(text)) if text == refused));
    }

    /// Of a backup, which records nothing of its own, and may be active when a late copy comes.
    #[test]
    fn what_a_repeated_copy_was_told_holds_for_the_next_one() {
        let again = Once::sent(ONCE.id, Some(Uuid([1; 16])));
        let refused = Answer::Result(br#"[{"error":"not allowed"}]"#.to_vec());
        for (told, is_told_again) in [(ONCE, false), (again, true)] {
            let mut once = OnceState::new(Uuid([1; 16]));
            once.came_to_nothing(told, true, &refused);
            let copy = once.resolve(request(1, b"[]"), again, false);
            assert_eq!(matches!(copy, Resolved::Answered(..)), is_told_again);
        }
    }

    /// The operator has copied the file, so both servers know the commit at which one of them
    /// becomes a backup.
    #[test]
    fn a_backup_does_not_know_what_its_source_has_executed() {
        let shared = Uuid([1; 16]);
        let again = Once::sent(ONCE.id, Some(shared));
        let is_executed = |once: &mut OnceState| {
            let copy = once.resolve(request(1, b"[]"), again, false);
            matches!(copy, Resolved::New(_))
        };
        for is_replicated in [false, true] {
            let mut once = OnceState::new(shared);
            assert!(is_executed(&mut once));
            once.begin_backup();
            assert!(!is_executed(&mut once), "the source executes");
            if is_replicated {
                once.committed(Uuid([2; 16]));
            }
            assert_eq!(once.recorded().last(), None);
            once.end_backup();
            once.check();
            assert_ne!(is_executed(&mut once), is_replicated);
        }
    }

    #[test]
    fn a_copy_takes_the_place_of_one_that_was_not_sent() {
        let mut once = OnceState::new(Uuid::ZERO);
        let first = request(1, b"[]");
        once.begin(ONCE);
        once.resolve(request(2, b"[]"), ONCE, true);
        let withdrawn = ForwardOutcome::Blocked(Index(1));
        assert!(once.decide(&first, ONCE, &withdrawn).is_empty());
        let waiting = once.take_waiting_for(ONCE);
        assert_eq!(waiting.len(), 1);
        assert!(once.take_waiting().is_empty());
        let next = once.resolve(request(3, b"[]"), ONCE, true);
        assert!(matches!(next, Resolved::New(_)), "the source judges it");
    }
}
