//! The condition of one table of a subscription, in canonical form: a disjunction
//! (docs/spec/protocol.md 4.7).
//!
//! Invariant: clauses are sorted and distinct, and none is constant. So equal conditions compare
//! equal in any order of clauses. This file only knows clauses; the engine finds rows and evaluates
//! clauses.

use std::borrow::Cow;

use corvid_data::{HashSeed, Row, TableSchema};
use corvid_engine::Condition;
use corvid_engine::condition::{Clause, Function};

/// Checking this many clauses counts as one step, because a hash finds most of them together.
const CLAUSES: usize = 16;

/// Bytes that a clause in use takes in addition to itself: its slots in the set that checks rows,
/// and in the table that finds the groups for a change.
const INDEXED_BYTES: usize = 176;

/// The rows of a table that are in view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TableCondition {
    /// Every row: no `where`, an empty one, or one with a true clause.
    Always,
    /// No row: all clauses are false.
    Never,
    /// Rows that match at least one of the clauses. There is at least one clause.
    Any(Condition),
}

impl TableCondition {
    /// The condition of the requests for one table: the union of their clauses. An absent `where`
    /// (`None`) means true. Without any request the condition is true as well; such a table has
    /// nothing selected.
    pub(crate) fn of_requests(requests: Vec<Option<Condition>>) -> TableCondition {
        let mut clauses = Vec::new();
        let mut seed = HashSeed::FIXED;
        if requests.is_empty() {
            return TableCondition::Always;
        }
        for request in requests {
            match request {
                Some(condition) if !condition.clauses.is_empty() => {
                    seed = condition.hash_seed();
                    clauses.extend(condition.clauses);
                }
                _ => return TableCondition::Always,
            }
        }
        TableCondition::of_clauses(clauses, seed)
    }

    fn of_clauses(mut clauses: Vec<Clause>, seed: HashSeed) -> TableCondition {
        if clauses.iter().any(is_true) {
            return TableCondition::Always;
        }
        clauses.retain(|clause| !matches!(clause, Clause::Constant(_)));
        if clauses.is_empty() {
            return TableCondition::Never;
        }
        clauses.sort_unstable();
        clauses.dedup();
        // A condition may be kept for days.
        clauses.shrink_to_fit();
        TableCondition::Any(Condition::new(clauses, seed))
    }

    /// Whether `row` is in view.
    pub(crate) fn matches(&self, table: &TableSchema, row: &Row) -> bool {
        match self {
            TableCondition::Always => true,
            TableCondition::Never => false,
            TableCondition::Any(condition) => condition.matches_any(table, row),
        }
    }

    /// The memory that the condition takes in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            TableCondition::Always | TableCondition::Never => 0,
            TableCondition::Any(condition) => {
                let clauses = condition.clauses.iter();
                clauses.map(|clause| clause.bytes() + INDEXED_BYTES).sum()
            }
        }
    }

    /// Upper bound on the steps of checking a row.
    pub(crate) fn steps(&self) -> u64 {
        match self {
            TableCondition::Always | TableCondition::Never => 1,
            TableCondition::Any(condition) => 1 + (condition.clauses.len() / CLAUSES) as u64,
        }
    }

    /// The engine's query for all rows in view; `None` if there are none.
    pub(crate) fn query(&self) -> Option<Cow<'_, Condition>> {
        match self {
            TableCondition::Always => Some(Cow::Owned(Condition::always())),
            TableCondition::Never => None,
            TableCondition::Any(condition) => Some(Cow::Borrowed(condition)),
        }
    }

    /// The engine's query for every row that is in view here and not in `other`; `None` if there
    /// are none. The query may also find rows in view of both, which the caller skips. Clauses of
    /// both conditions are left out, so the cost is proportional to the change.
    pub(crate) fn query_beyond(&self, other: &TableCondition) -> Option<Cow<'_, Condition>> {
        match (self, other) {
            (TableCondition::Never, _) | (_, TableCondition::Always) => None,
            (TableCondition::Any(own), TableCondition::Any(others)) => {
                let added: Vec<Clause> = own
                    .clauses
                    .iter()
                    .filter(|clause| others.clauses.binary_search(clause).is_err())
                    .cloned()
                    .collect();
                let added = Condition::new(added, own.hash_seed());
                (!added.clauses.is_empty()).then_some(Cow::Owned(added))
            }
            (own, _) => own.query(),
        }
    }
}

/// Whether a clause holds for every row.
fn is_true(clause: &Clause) -> bool {
    match clause {
        Clause::Constant(constant) => *constant,
        Clause::Compare {
            function: Function::Includes | Function::Excludes,
            argument,
            ..
        } => argument.is_empty(),
        Clause::Compare { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::{Atom, ColumnId, Datum};

    fn equal(value: i64) -> Clause {
        Clause::Compare {
            column: ColumnId(0),
            function: Function::Equal,
            argument: Datum::one(Atom::Integer(value)),
        }
    }

    fn of(clauses: Vec<Clause>) -> TableCondition {
        TableCondition::of_requests(vec![Some(Condition::new(clauses, HashSeed::FIXED))])
    }

    #[test]
    fn order_and_repetition_of_clauses_do_not_matter() {
        assert_eq!(
            of(vec![equal(2), equal(1), equal(2)]),
            of(vec![equal(1), equal(2)])
        );
    }

    #[test]
    fn a_true_clause_anywhere_makes_everything_match() {
        let last = vec![
            Clause::Constant(false),
            Clause::Constant(false),
            Clause::Constant(true),
        ];
        assert_eq!(of(last), TableCondition::Always);
        assert_eq!(
            of(vec![equal(1), Clause::Constant(true)]),
            TableCondition::Always
        );
    }

    #[test]
    fn only_false_clauses_match_nothing_and_vanish_beside_others() {
        assert_eq!(of(vec![Clause::Constant(false)]), TableCondition::Never);
        assert_eq!(
            of(vec![Clause::Constant(false), equal(1)]),
            of(vec![equal(1)])
        );
    }

    #[test]
    fn several_requests_are_a_disjunction_and_an_absent_where_is_true() {
        let some = |value| Some(Condition::new(vec![equal(value)], HashSeed::FIXED));
        let both = TableCondition::of_requests(vec![some(1), some(2)]);
        assert_eq!(both, of(vec![equal(1), equal(2)]));
        assert_eq!(
            TableCondition::of_requests(vec![some(1), None]),
            TableCondition::Always
        );
        let empty = Some(Condition::always());
        assert_eq!(
            TableCondition::of_requests(vec![some(1), empty]),
            TableCondition::Always
        );
    }

    #[test]
    fn including_nothing_is_true() {
        let includes_nothing = Clause::Compare {
            column: ColumnId(0),
            function: Function::Includes,
            argument: Datum::empty(),
        };
        assert_eq!(of(vec![includes_nothing]), TableCondition::Always);
    }

    #[test]
    fn query_beyond_has_only_new_clauses() {
        let old = of(vec![equal(1), equal(2)]);
        let new = of(vec![equal(2), equal(3)]);
        let asked = |own: &TableCondition, other: &TableCondition| {
            own.query_beyond(other).map(Cow::into_owned)
        };
        let some = |value| Some(Condition::new(vec![equal(value)], HashSeed::FIXED));
        assert_eq!(asked(&new, &old), some(3));
        assert_eq!(asked(&old, &new), some(1));
        assert_eq!(asked(&new, &new), None);
        assert_eq!(asked(&new, &TableCondition::Always), None);
        let all = Some(Condition::always());
        assert_eq!(asked(&TableCondition::Always, &new), all);
        assert_eq!(new.query_beyond(&TableCondition::Never), new.query());
    }
}
