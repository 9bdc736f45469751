//! Expressions about a row: `up == false and (name ~ "^web" or tag in (1, 2))`, as in `--where` of
//! the program `corvid` and in the filters of the console.
//!
//! A comparison is about a column, or about one key of a map as `COLUMN:KEY`. For a column with
//! several elements it holds if it holds for one of them; `!=` and `!~` are the opposites of `==`
//! and `~`. A column alone holds if it is not empty, not false and not zero. Rows that a column
//! refers to are named as the program names rows ([`Names`]).
//!
//! The expression is judged here. Comparisons that every row must satisfy, and that a server judges
//! in the same way, are also available as clauses. Nothing here knows where rows come from.

mod compare;
mod parse;
mod pattern;
mod token;

pub use compare::Comparison;
pub use parse::parse;

use corvid_data::{ColumnId, Datum, Function, Schema, TableId, Uuid};

/// A condition that a server judges.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The column.
    pub column: ColumnId,
    /// The comparison.
    pub function: Function,
    /// The value to compare with.
    pub argument: Datum,
}

/// A fault of the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The text is not an expression.
    Form(String),
    /// A value or a pattern is malformed.
    Value(String),
}

/// The names in an expression: columns, and rows that columns refer to.
pub trait Names {
    /// The program's errors.
    type Error;

    /// The schema of the database.
    fn schema(&self) -> &Schema;

    /// The column that a word names. `_uuid` is not among them.
    ///
    /// # Errors
    /// No column fits, or several do.
    fn column(&mut self, table: TableId, word: &str) -> Result<ColumnId, Self::Error>;

    /// The row that a word names.
    ///
    /// # Errors
    /// There is no such row.
    fn row(&mut self, table: TableId, word: &str) -> Result<Uuid, Self::Error>;

    /// Turns a fault of the text into an error of the program.
    fn fault(&self, fault: Fault) -> Self::Error;
}

/// An expression about a row.
#[derive(Clone, Debug)]
pub enum Where {
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
    pub fn holds<E>(&self, read: &mut dyn FnMut(ColumnId) -> Result<Datum, E>) -> Result<bool, E> {
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

    /// Whether the expression holds for a row whose columns are there to be borrowed.
    #[must_use]
    pub fn holds_for<'d>(&self, read: &dyn Fn(ColumnId) -> &'d Datum) -> bool {
        match self {
            Where::And(all) => all.iter().all(|one| one.holds_for(read)),
            Where::Or(any) => any.iter().any(|one| one.holds_for(read)),
            Where::Not(other) => !other.holds_for(read),
            Where::Compare(comparison) => comparison.holds(read(comparison.column)),
        }
    }

    /// The columns that are compared.
    #[must_use]
    pub fn columns(&self) -> Vec<ColumnId> {
        match self {
            Where::And(parts) | Where::Or(parts) => parts.iter().flat_map(Where::columns).collect(),
            Where::Not(other) => other.columns(),
            Where::Compare(comparison) => vec![comparison.column],
        }
    }

    /// Clauses that every row satisfies for which the expression holds.
    #[must_use]
    pub fn clauses(&self) -> Vec<Clause> {
        match self {
            Where::And(parts) => parts.iter().flat_map(Where::clauses).collect(),
            Where::Compare(comparison) => comparison.clause().into_iter().collect(),
            Where::Or(_) | Where::Not(_) => Vec::new(),
        }
    }
}
