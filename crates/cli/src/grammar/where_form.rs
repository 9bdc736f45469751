//! The expressions of `--where`: `up == false and (name ~ "^web" or tag in (1, 2))`.
//!
//! A comparison is about a column, or about one key of a map as `COLUMN:KEY`. For a column with
//! several elements it holds if it holds for one of them; `!=` and `!~` are the opposites of `==`
//! and `~`. A column alone holds if it is not empty, not false and not zero. Rows that a column
//! refers to are named as records are.
//!
//! The expression is judged here. Comparisons that every row must satisfy, and that the server
//! judges in the same way, are also sent to it.

mod compare;
mod parse;
mod token;

pub(crate) use compare::Comparison;
pub(crate) use parse::parse;

use corvid_data::{ColumnId, Datum};

use crate::contents::Clause;
use crate::failure::Failure;

/// An expression about a row.
#[derive(Clone, Debug)]
pub(crate) enum Where {
    /// All hold.
    And(Vec<Where>),
    /// One holds.
    Or(Vec<Where>),
    /// The other does not hold.
    Not(Box<Where>),
    /// A comparison.
    Compare(Comparison),
}

impl Where {
    /// Whether the expression holds for a row, whose columns `read` returns.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn holds(
        &self,
        read: &mut dyn FnMut(ColumnId) -> Result<Datum, Failure>,
    ) -> Result<bool, Failure> {
        Ok(match self {
            Where::And(all) => {
                for one in all {
                    if !one.holds(read)? {
                        return Ok(false);
                    }
                }
                true
            }
            Where::Or(any) => {
                for one in any {
                    if one.holds(read)? {
                        return Ok(true);
                    }
                }
                false
            }
            Where::Not(other) => !other.holds(read)?,
            Where::Compare(comparison) => comparison.holds(&read(comparison.column)?),
        })
    }

    /// The columns that are compared.
    pub(crate) fn columns(&self) -> Vec<ColumnId> {
        match self {
            Where::And(parts) | Where::Or(parts) => parts.iter().flat_map(Where::columns).collect(),
            Where::Not(other) => other.columns(),
            Where::Compare(comparison) => vec![comparison.column],
        }
    }

    /// Clauses that every row satisfies for which the expression holds.
    pub(crate) fn clauses(&self) -> Vec<Clause> {
        match self {
            Where::And(parts) => parts.iter().flat_map(Where::clauses).collect(),
            Where::Compare(comparison) => comparison.clause().into_iter().collect(),
            Where::Or(_) | Where::Not(_) => Vec::new(),
        }
    }
}
