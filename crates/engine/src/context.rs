//! The external inputs of an execution, and its outcome.

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, RowChange, TableId};
use smallvec::SmallVec;

use crate::condition::Condition;
use crate::selection::DeferredSelection;
use crate::tally::Tally;

/// The locks of the requesting session (`assert`).
pub trait LockOwner {
    /// Whether the session owns `lock` now.
    fn owns(&self, lock: &str) -> bool;
}

/// A role, and the client that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The role. An empty role allows everything.
    pub role: &'a str,
    /// Common name of the client's certificate.
    pub client_id: Option<&'a str>,
}

/// Inputs of one execution attempt.
pub struct Context<'a> {
    /// Milliseconds since the request arrived, for `wait` time-outs.
    pub elapsed_ms: u64,
    /// Operations that write are refused (docs/spec/protocol.md 7.3).
    pub read_only: bool,
    /// The identities that must all allow the transaction. Empty: no RBAC.
    pub identities: &'a [Identity<'a>],
    /// False for offline tools: an unsatisfied `wait` is `not supported`.
    pub can_wait: bool,
    /// Source of row UUIDs and versions.
    pub uuids: &'a mut dyn UuidSource,
    /// Lock ownership of the session.
    pub locks: &'a dyn LockOwner,
}

/// The outcome of one execution attempt.
#[derive(Debug)]
pub enum Outcome {
    /// The transaction finished, successfully or not.
    Done {
        /// The `result` array as JSON text (docs/spec/protocol.md 5.1).
        result: Vec<u8>,
        /// The selections that the result lacks because they are long
        /// ([`WorkBudget::with_select_steps`](crate::WorkBudget::with_select_steps)).
        deferred_selections: Vec<DeferredSelection>,
        /// For a transaction with changes: the length in bytes of the deferred selections that
        /// repeat earlier ones.
        deferred_bytes: usize,
        /// The changes, already applied to the database; `None` if there are none (failure, reads
        /// only, no net change).
        delta: Option<Arc<Delta>>,
        /// A successful transaction included a `commit` with `durable: true`.
        durable: bool,
        /// The counts of its operations, and its error.
        tally: Tally,
    },
    /// A `wait` is unsatisfied. Nothing changed; try again after the next commit or at the
    /// deadline.
    Blocked {
        /// Milliseconds since the request's arrival after which to try again; `None` without a
        /// deadline.
        deadline_ms: Option<u64>,
        /// The state that the attempt read. Before the deadline, another attempt cannot succeed
        /// until part of this state changes.
        reads: ReadSet,
    },
}

/// The state on which the outcome of a blocked attempt depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadSet {
    /// Rows of tables. A table may occur several times.
    Rows(SmallVec<[RowsRead; 4]>),
    /// More than rows: locks, or the permissions of a role.
    Anything,
}

/// Rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsRead {
    /// The table.
    pub table: TableId,
    /// The condition that the rows match; `None` for all rows.
    condition: Option<Box<Condition>>,
}

/// Limit on the changes of a commit that are compared with a condition. A commit with more changes
/// of the table counts as relevant.
const COMPARED_MAX: usize = 64;

impl ReadSet {
    /// Adds rows of a table.
    pub(crate) fn add(&mut self, table: TableId, condition: Option<Condition>) {
        let ReadSet::Rows(read) = self else { return };
        let mut present = read.iter().filter(|present| present.table == table);
        // All rows of the table include those of any condition.
        if !present.any(|present| present.condition.is_none()) {
            let condition = condition.map(Box::new);
            read.push(RowsRead { table, condition });
        }
    }

    /// The memory that the set takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let ReadSet::Rows(read) = self else {
            return 0;
        };
        let of_read = |read: &RowsRead| {
            let condition = read.condition.as_ref();
            let clauses = condition.iter().flat_map(|condition| &condition.clauses);
            size_of::<RowsRead>() + clauses.map(crate::condition::Clause::bytes).sum::<usize>()
        };
        read.iter().map(of_read).sum()
    }

    /// Whether another attempt may have another outcome after these changes of one commit, all of
    /// `table`.
    #[must_use]
    pub fn are_affected_by(&self, table: TableId, changes: &[RowChange]) -> bool {
        match self {
            ReadSet::Anything => true,
            ReadSet::Rows(read) => {
                let mut read = read.iter().filter(|read| read.table == table);
                read.any(|read| read.is_affected_by(changes))
            }
        }
    }
}

impl RowsRead {
    fn is_affected_by(&self, changes: &[RowChange]) -> bool {
        let Some(condition) = &self.condition else {
            return true;
        };
        // A change that moves a row out of the condition shows in the old version, one that moves
        // it in shows in the new one.
        let mut versions = changes
            .iter()
            .flat_map(|change| change.old.iter().chain(&change.new));
        changes.len() > COMPARED_MAX || versions.any(|row| condition.holds_for(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::{Clause, Function};
    use corvid_data::{Atom, ColumnId, Datum, HashSeed, Row, Uuid};

    fn number(n: i64) -> Datum {
        Datum::one(Atom::Integer(n))
    }

    /// The row changes its only column.
    fn change(old: Option<i64>, new: Option<i64>) -> RowChange {
        let row = |n| {
            Arc::new(Row {
                uuid: Uuid([1; 16]),
                version: Uuid::ZERO,
                columns: [number(n)].into(),
            })
        };
        RowChange {
            table: TableId(1),
            uuid: Uuid([1; 16]),
            old: old.map(row),
            new: new.map(row),
            diffs: Box::default(),
        }
    }

    #[test]
    fn changes_of_rows_that_a_wait_did_not_read_do_not_affect_it() {
        let is_five = Clause::Compare {
            column: ColumnId(0),
            function: Function::Equal,
            argument: number(5),
        };
        let condition = Condition::new(vec![is_five], HashSeed::FIXED);
        let mut reads = ReadSet::Rows(SmallVec::new());
        reads.add(TableId(1), Some(condition));
        let is_affected = |reads: &ReadSet, changes: &[RowChange]| {
            assert!(!reads.are_affected_by(TableId(2), changes));
            reads.are_affected_by(TableId(1), changes)
        };
        let other = change(Some(3), Some(4));
        assert!(!is_affected(&reads, std::slice::from_ref(&other)));
        assert!(is_affected(&reads, &[other.clone(), change(Some(5), None)]));
        assert!(is_affected(&reads, &[change(Some(4), Some(5))]));
        let many = vec![other.clone(); COMPARED_MAX + 1];
        assert!(is_affected(&reads, &many), "too many to compare");
        reads.add(TableId(1), None);
        assert!(is_affected(&reads, &[other]));
        assert!(ReadSet::Anything.are_affected_by(TableId(2), &[]));
    }
}
