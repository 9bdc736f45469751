//! Records that could not be stored: their commits and everything behind them are undone.
//!
//! The clients of those commits are told `I/O error`. Everything else that was executed behind them may have seen them, so it is executed
//! again, in the same order. Positions of what is executed again are new; answers to the old ones find nothing and are ignored.

use corvid_log::storage::{LogPosition, StorageRequest, StoreError};
use std::collections::BTreeSet;

use corvid_data::WireError;

use super::pending::{Answer, Origin, Pending};
use super::{DatabaseService, Now};
use crate::message::{Request, ToDatabase};

impl DatabaseService {
    /// The records up to `last` could not be stored, which were written together.
    pub(super) fn undo_unstored(&mut self, now: Now, last: LogPosition, error: &StoreError) {
        let undone = self.pending.take_failed(last);
        if undone.is_empty() {
            return;
        }
        let affected = self.undo_commits(&undone);
        // What stands before them waits for nothing.
        self.release();
        self.monitors.undo();
        for entry in &undone {
            self.undo_monitor_change(entry);
        }
        self.storage_error = Some(error.clone());
        // Records that were not handed over yet are of commits that are undone.
        self.outputs
            .stores
            .retain(|store| !matches!(store, StorageRequest::Append { .. }));
        self.records.forget();
        self.outputs.stores.push(StorageRequest::Recover);
        self.report_remotes_again();
        let sessions = changed_sessions(&undone);
        let mut blocked = Vec::new();
        for entry in undone {
            if entry.is_recorded_by(last) {
                self.counts.store_failures += 1;
                self.audit_unstored(&entry, error);
                self.answer_unstored(now, entry, error);
            } else {
                blocked.extend(self.execute_again(now, entry));
            }
        }
        // In front of what its session has sent since.
        for request in blocked.into_iter().rev() {
            self.outputs.outboxes.put_back(request);
        }
        self.release();
        self.retry(now, affected);
        self.release();
        for session in sessions {
            self.resume_if_unblocked(session);
        }
    }

    /// Takes the changes of these entries back. Returns the places of waiting transactions that may be affected by that.
    fn undo_commits(&mut self, undone: &[Pending]) -> BTreeSet<u64> {
        let mut affected = BTreeSet::new();
        let commits = undone
            .iter()
            .rev()
            .filter_map(|entry| entry.commit.as_ref());
        for commit in commits {
            self.database.undo(&commit.delta);
            affected.append(&mut self.triggers.affected(&commit.delta));
        }
        affected
    }

    /// A request about monitors has not taken effect, and will be executed again.
    fn undo_monitor_change(&mut self, entry: &Pending) {
        if let Origin::Client(request) = &entry.origin
            && entry.answer.changes_monitors()
        {
            if let Answer::Joined(joining) = &entry.answer {
                self.undo_joined(request, joining);
            }
            self.outputs.outboxes.end_monitor_change(request.session);
        }
    }

    /// The commit of this entry could not be stored.
    fn answer_unstored(&mut self, now: Now, entry: Pending, error: &StoreError) {
        // Behind those that are executed again, for answers keep their order.
        let (origin, answer) = match (entry.origin, entry.answer) {
            (origin @ Origin::Client(_), Answer::Result(mut result)) => {
                add_error(&mut result, &error.to_wire());
                (origin, Answer::Result(result))
            }
            (origin @ Origin::Client(_), Answer::Long(mut result, charge)) => {
                add_error(result.around_mut(), &error.to_wire());
                (origin, Answer::Long(result, charge))
            }
            (Origin::Source, _) => return self.source_not_stored(now),
            // What the server itself wrote is of no use to anybody when it cannot be stored.
            _ => return,
        };
        self.pending.push(Pending::answer(answer, origin));
    }

    /// Returns a request that has to wait now for an earlier one of its session: a reply that was there at once may have to be written now.
    fn execute_again(&mut self, now: Now, entry: Pending) -> Option<ToDatabase> {
        let is_about_monitors = entry.answer.changes_monitors();
        match (entry.origin, entry.answer) {
            // It says nothing of the state.
            (origin, Answer::Canceled) => {
                self.pending.push(Pending::answer(Answer::Canceled, origin));
            }
            // A session that is closed has no monitors any more, and must not get any.
            (Origin::Client(request), _)
                if is_about_monitors && self.tape.flag(|| request.info.is_closed()) => {}
            (Origin::Client(request), _) if !request.blocked => {
                let input = ToDatabase::Request(request);
                if self.outputs.outboxes.must_queue(&input) {
                    return Some(input);
                }
                if let ToDatabase::Request(request) = input {
                    self.request(now, request);
                }
            }
            (Origin::Client(request), _) => self.request(now, request),
            (Origin::Cancel(session, id), _) => self.cancel(now, session, id),
            (Origin::Server(params), _) => self.transact_internally(now, &params),
            (Origin::Control(control), _) => self.control(now, control),
            (Origin::Source, _) => self.source_not_stored(now),
        }
        None
    }
}

/// The sessions whose requests about monitors are undone, each once, in order.
fn changed_sessions(undone: &[Pending]) -> BTreeSet<corvid_monitor::SessionId> {
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
