//! Why a server would refuse a clause of a condition, in the reference's words
//! (docs/spec/protocol.md 5.4).
//!
//! The client judges a clause when the program sets it: a server's refusal would come too late to
//! be an error of that call.

use corvid_data::{ColumnSchema, Str, WireError};
use thiserror::Error;

/// A clause that a server would refuse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RefusedClause {
    /// The clause does not consist of a column, a function and an argument.
    #[error("Parse error in condition.")]
    Malformed,
    /// Neither the server nor the client knows the column.
    #[error("No column {column} in table {table}.")]
    UnknownColumn {
        /// Name of the table.
        table: Str,
        /// Name of the column.
        column: Str,
    },
    /// The function does not exist.
    #[error("No function named {function}.")]
    UnknownFunction {
        /// Name of the column.
        column: Str,
        /// The name as given.
        function: String,
    },
    /// The function compares by order, but the column is not a single number.
    #[error(
        "Type mismatch: \"{function}\" operator may not be applied to column {column} of type {column_type}."
    )]
    Unordered {
        /// Name of the column.
        column: Str,
        /// The column's type in English.
        column_type: String,
        /// Name of the function.
        function: &'static str,
    },
    /// The argument has the wrong type or breaks a constraint of the column.
    #[error("{error}")]
    Argument {
        /// Name of the column.
        column: Str,
        /// The error of the argument.
        error: WireError,
    },
}

impl RefusedClause {
    pub(crate) fn unordered(column: &ColumnSchema, function: &'static str) -> RefusedClause {
        RefusedClause::Unordered {
            column: column.name.clone(),
            column_type: column.column_type.english(),
            function,
        }
    }

    /// The column that the clause names, if any.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        match self {
            RefusedClause::Malformed => None,
            RefusedClause::UnknownColumn { column, .. }
            | RefusedClause::UnknownFunction { column, .. }
            | RefusedClause::Unordered { column, .. }
            | RefusedClause::Argument { column, .. } => Some(column.as_str()),
        }
    }
}
