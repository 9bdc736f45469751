//! Undo of entries that were executed and not stored: the newest first, so each is undone on the
//! rows that it has made.
//!
//! Invariant: after an undo the tables, and the transactions that are known to have been executed,
//! are those before the first undone entry. The caller executes the requests of the entries again.

use std::collections::BTreeSet;

use corvid_data::WireError;
use corvid_engine::Database;
use corvid_log::storage::StoreError;
use corvid_monitor::SessionId;

use super::Executor;
use crate::replies::{Answer, Origin, Pending};

impl Executor {
    /// Undoes the changes of these entries. Returns the blocked transactions that this may affect.
    pub(crate) fn undo(&mut self, undone: &[Pending], database: &mut Database) -> BTreeSet<u64> {
        // Their requests are executed again, and must not be answered as executed.
        self.once.forget_undone(undone);
        let mut affected = BTreeSet::new();
        // The newest first: a delta is undone on the rows that it has made.
        let commits = undone
            .iter()
            .rev()
            .filter_map(|entry| entry.commit.as_ref());
        for commit in commits {
            database.undo(&commit.delta);
            affected.append(&mut self.triggers.affected(&commit.delta));
        }
        affected
    }
}

/// The reply to an entry whose commit could not be stored, if anybody is told. It is queued in the
/// entry's turn, because replies keep their order.
pub(crate) fn unstored_reply(entry: Pending, error: &StoreError) -> Option<Pending> {
    let answer = match entry.answer {
        Answer::Result(mut result) => {
            add_error(&mut result, &error.to_wire());
            Answer::Result(result)
        }
        Answer::Long(mut result, charge) => {
            add_error(result.around_mut(), &error.to_wire());
            Answer::Long(result, charge)
        }
        _ => return None,
    };
    // Transactions of the server itself are dropped when they cannot be stored.
    matches!(entry.origin, Origin::Client(_)).then(|| Pending::answer(answer, entry.origin))
}

/// The sessions whose requests about monitors are undone, each once, in order.
pub(crate) fn changed_sessions(undone: &[Pending]) -> BTreeSet<SessionId> {
    undone
        .iter()
        .filter(|entry| entry.answer.changes_monitors())
        .filter_map(|entry| match &entry.origin {
            Origin::Client(request) => Some(request.session),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_commit_follows_the_results_of_the_operations() {
        let error = StoreError {
            details: "disk full".to_owned(),
            io_error: String::new(),
        };
        let origin = || Origin::Server(Vec::new());
        for (before, separator) in [("[]", ""), ("[{}]", "{},")] {
            let mut result = before.as_bytes().to_vec();
            add_error(&mut result, &error.to_wire());
            let after = String::from_utf8(result).expect("UTF-8");
            let begin = format!("[{separator}{{");
            assert!(
                after.starts_with(&begin) && after.ends_with("}]"),
                "{after}"
            );
        }
        let entry = Pending::answer(Answer::Result(b"[]".to_vec()), origin());
        assert!(unstored_reply(entry, &error).is_none(), "nobody is told");
    }
}
