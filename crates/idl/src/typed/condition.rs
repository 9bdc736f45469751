//! Conditions that accept only clauses of their own table.

use std::marker::PhantomData;

use corvid_session::{Clause, Condition};

use super::Row;
use crate::idl::Idl;
use crate::txn::Misuse;

/// A clause of a condition on rows of `R`: see [`super::TypedColumn::clause`].
#[derive(Debug, Clone)]
pub struct TypedClause<R> {
    clause: Clause,
    marker: PhantomData<fn() -> R>,
}

impl<R> TypedClause<R> {
    pub(crate) fn new(clause: Clause) -> TypedClause<R> {
        TypedClause {
            clause,
            marker: PhantomData,
        }
    }
}

impl<R: Row> TypedClause<R> {
    /// Selects the rows for which this clause or `other` holds.
    #[must_use]
    pub fn or(self, other: TypedClause<R>) -> TypedCondition<R> {
        TypedCondition::from(self).or(other)
    }
}

impl<R: Row> From<TypedClause<R>> for TypedCondition<R> {
    /// Selects the rows for which the clause holds.
    fn from(clause: TypedClause<R>) -> TypedCondition<R> {
        TypedCondition::none().or(clause)
    }
}

/// Selects the rows of `R` to replicate.
#[derive(Debug, Clone)]
pub struct TypedCondition<R> {
    condition: Condition,
    marker: PhantomData<fn() -> R>,
}

impl<R: Row> TypedCondition<R> {
    fn new(condition: Condition) -> TypedCondition<R> {
        TypedCondition {
            condition,
            marker: PhantomData,
        }
    }

    /// Selects all rows.
    #[must_use]
    pub fn all() -> TypedCondition<R> {
        TypedCondition::new(Condition::all())
    }

    /// Selects no rows.
    #[must_use]
    pub fn none() -> TypedCondition<R> {
        TypedCondition::new(Condition::none())
    }

    /// Also selects the rows for which `clause` holds.
    #[must_use]
    pub fn or(mut self, clause: TypedClause<R>) -> TypedCondition<R> {
        self.condition.add(clause.clause);
        self
    }

    /// The untyped condition.
    #[must_use]
    pub fn into_condition(self) -> Condition {
        self.condition
    }

    /// Sets the condition: see [`Idl::set_condition`].
    ///
    /// # Errors
    /// Those of [`Idl::set_condition`].
    pub fn set(self, idl: &mut Idl, now_ms: u64) -> Result<u64, Misuse> {
        idl.set_condition(now_ms, R::TABLE, self.condition)
    }
}
