//! Undo of commits whose records could not be stored, and of every entry behind them.
//!
//! The clients of those commits get `I/O error`. Later entries may have seen those commits, so their requests are executed again, in the
//! same order. They get new positions; replies of the storage about the old positions find no entry and are ignored.

use corvid_log::storage::{LogPosition, StoreError};
use std::collections::BTreeSet;

use corvid_data::WireError;

use super::replies::{Answer, Origin, Pending, Reason};
use super::{DatabaseService, Now};
use crate::message::{Request, ToDatabase};

impl DatabaseService {
    /// The records up to `last`, which were written together, could not be stored.
    pub(super) fn undo_unstored(&mut self, now: Now, last: LogPosition, error: &StoreError) {
        let undone = self.pending.take_failed(last);
        if undone.is_empty() {
            return;
        }
        let affected = self.undo_commits(&undone);
        // Entries before the failed ones wait for no record any more.
        self.release();
        // Replies that are made from here on see the tables without the failed commits.
        assert!(self.pending.is_empty(), "nothing is pending across an undo");
        self.subscriptions.undo();
        for entry in &undone {
            self.undo_monitor_change(entry);
        }
        let commits = undone.iter().filter_map(|entry| entry.commit.as_ref());
        self.file
            .undo(commits.map(|commit| commit.record_bytes), error);
        self.observers
            .observe_undo(&self.database, &mut self.outputs);
        let sessions = changed_sessions(&undone);
        let mut requeued = Vec::new();
        for entry in undone {
            if entry.is_recorded_by(last) {
                self.observers.counts.store_failures += 1;
                let schema = self.database.schema();
                let audited = self.observers.audit.of_unstored(schema, &entry, error);
                self.outputs.audit.extend(audited);
                self.answer_unstored(entry, error);
            } else {
                requeued.extend(self.execute_again(now, entry));
            }
        }
        // Before the later requests of their sessions.
        for request in requeued.into_iter().rev() {
            self.outputs.outboxes.put_back(request);
        }
        self.release();
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.resume_if_unblocked(session);
        }
    }

    /// Undoes the changes of these entries. Returns the blocked transactions that this may affect.
    pub(super) fn undo_commits(&mut self, undone: &[Pending]) -> BTreeSet<u64> {
        self.executor.once.forget_undone(undone);
        let mut affected = BTreeSet::new();
        let commits = undone
            .iter()
            .rev()
            .filter_map(|entry| entry.commit.as_ref());
        for commit in commits {
            self.database.undo(&commit.delta);
            affected.append(&mut self.executor.triggers.affected(&commit.delta));
        }
        affected
    }

    /// Undoes a request about monitors, which has not taken effect and is executed again.
    pub(super) fn undo_monitor_change(&mut self, entry: &Pending) {
        if let Origin::Client(request) = &entry.origin
            && entry.answer.changes_monitors()
        {
            if let Answer::Joined(joining) = &entry.answer {
                self.subscriptions
                    .undo_joined(request.session, joining, &mut self.outputs);
            }
            self.outputs.outboxes.end_monitor_change(request.session);
        }
    }

    /// The commit of this entry could not be stored.
    fn answer_unstored(&mut self, entry: Pending, error: &StoreError) {
        // It is queued behind the requests that are executed again, because replies keep their order.
        let (origin, answer) = match (entry.origin, entry.answer) {
            (origin @ Origin::Client(_), Answer::Result(mut result)) => {
                add_error(&mut result, &error.to_wire());
                (origin, Answer::Result(result))
            }
            (origin @ Origin::Client(_), Answer::Long(mut result, charge)) => {
                add_error(result.around_mut(), &error.to_wire());
                (origin, Answer::Long(result, charge))
            }
            (Origin::Source, _) => {
                self.undo_at_backup();
                return;
            }
            // Transactions of the server itself are dropped when they cannot be stored.
            _ => return,
        };
        self.pending.push(Pending::answer(answer, origin));
    }

    /// A commit from a backup's source could not be stored and is undone.
    fn undo_at_backup(&mut self) {
        if let Some(backup) = self.model.source_mut() {
            backup.undo();
        }
    }

    /// Executes an input again. Returns it if it must wait in the outbox of its session, before the later requests of that session.
    pub(super) fn execute_again_unless_blocked(
        &mut self,
        now: Now,
        input: ToDatabase,
    ) -> Option<ToDatabase> {
        if let Some(session) = self.awaited_session(&input) {
            self.outputs.outboxes.block(session, Reason::Cluster);
        }
        let is_retry = matches!(&input, ToDatabase::Request(request) if request.blocked);
        if !is_retry && self.outputs.outboxes.must_queue(&input) {
            return Some(input);
        }
        match input {
            ToDatabase::Request(request) => self.execute_request(now, request),
            ToDatabase::Cancel(session, id) => self.cancel(now, session, id),
            ToDatabase::Control(control) => self.take_snapshot(control),
            _ => unreachable!("only these are pending"),
        }
        None
    }

    /// Executes the request of an undone entry again. Returns the request if it must wait for an earlier one of its session, whose reply
    /// may be deferred this time.
    fn execute_again(&mut self, now: Now, entry: Pending) -> Option<ToDatabase> {
        match (entry.origin, entry.answer) {
            // This reply does not depend on the state.
            (origin, Answer::Canceled) => {
                self.pending.push(Pending::answer(Answer::Canceled, origin));
            }
            // A closed session has no monitors any more, and must not get any. Its refused requests count too: a duplicate of a monitor
            // would be admitted now that the monitor is gone.
            (Origin::Client(request), _)
                if request.method.is_about_monitors()
                    && self.environment.is_closed(&request.info) => {}
            (Origin::Client(request), _) if !request.blocked => {
                let input = ToDatabase::Request(request);
                if self.outputs.outboxes.must_queue(&input) {
                    return Some(input);
                }
                if let ToDatabase::Request(request) = input {
                    self.execute_request(now, request);
                }
            }
            (Origin::Client(request), _) => self.execute_request(now, request),
            (Origin::Cancel(session, id), _) => self.cancel(now, session, id),
            (Origin::Server(params), _) => self.transact_as_server(now, &params),
            (Origin::Control(control), _) => self.take_snapshot(control),
            (Origin::Source, _) => self.undo_at_backup(),
            (Origin::Forwarded(_) | Origin::Member(_), _) => {
                unreachable!("no record of a clustered database fails here")
            }
        }
        None
    }
}

/// The sessions whose requests about monitors are undone, each once, in order.
pub(super) fn changed_sessions(undone: &[Pending]) -> BTreeSet<corvid_monitor::SessionId> {
    let session = |request: &Request| request.session;
    undone
        .iter()
        .filter(|entry| entry.answer.changes_monitors())
        .filter_map(|entry| match &entry.origin {
            Origin::Client(request) => Some(session(request)),
            _ => None,
        })
        .collect()
}

/// Appends a commit-time error to a result array (docs/spec/protocol.md 5.1).
fn add_error(result: &mut Vec<u8>, error: &WireError) {
    debug_assert_eq!(result.last(), Some(&b']'));
    result.pop();
    if result.len() > 1 {
        result.push(b',');
    }
    error.write_json(result);
    result.push(b']');
}
