//! Conditions: `where` of operations (all clauses) and of monitors (any clause), protocol.md 5.4 and 4.7.

use corvid_data::{ColumnId, Datum, Row, Symbols, TableSchema, WireError};

/// The functions of clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
    /// `includes`
    Includes,
    /// `excludes`
    Excludes,
}

/// One clause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clause {
    /// `true` or `false`
    Constant(bool),
    /// `[column, function, argument]`
    Compare {
        /// The column, standard ones included.
        column: ColumnId,
        /// How it is compared.
        function: Function,
        /// With what.
        argument: Datum,
    },
}

/// A list of clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Condition {
    /// As given.
    pub clauses: Vec<Clause>,
}

impl Condition {
    /// Reads the raw text of a `where` array (valid JSON; anything but an array is the caller's type mismatch).
    /// `symbols: None` in monitors, where named UUIDs are not allowed.
    ///
    /// # Errors
    /// The table of protocol.md 5.4.
    pub fn parse(
        table: &TableSchema,
        raw: &[u8],
        symbols: Option<&mut dyn Symbols>,
    ) -> Result<Condition, WireError> {
        let _ = (table, raw, symbols);
        todo!()
    }

    /// Every clause holds (operations); true when empty.
    #[must_use]
    pub fn matches_all(&self, table: &TableSchema, row: &Row) -> bool {
        let _ = (table, row);
        todo!()
    }

    /// Some clause holds (monitors); true when empty.
    #[must_use]
    pub fn matches_any(&self, table: &TableSchema, row: &Row) -> bool {
        let _ = (table, row);
        todo!()
    }
}
