//! Mistakes of a program that would otherwise show only as missing values or changes.
//!
//! A class is strict or not ([`crate::Class::set_strict`]). A strict class panics at the mistake,
//! which helps developers. Any other class lets the program continue and logs each mistake once.
//! Reading needs only a shared reference, so the columns that were read are recorded in atomics.

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use corvid_data::{ColumnId, Schema, TableId};

use crate::class::Column;

/// A mistake of the program, with the names of what it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// The program reads a column that the replica does not hold, so it gets the column's default.
    NotReplicated {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
    },
    /// The program tracked a column and then added it, which ends the tracking.
    TrackingReplaced {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
    },
    /// The program asked to track all replicated columns while there were none.
    NothingToTrack,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::NotReplicated { table, column } => write!(
                f,
                "column {column} of table {table} is read but not replicated, so it shows its default: \
                 add it to the class with `add_column`, `track` or `on_demand`"
            ),
            Mistake::TrackingReplaced { table, column } => write!(
                f,
                "column {column} of table {table} was tracked before it was added, which ends the tracking: \
                 call `track` last, or alone, as it adds the column too"
            ),
            Mistake::NothingToTrack => f.write_str(
                "`track_all` was called before any column was added, so nothing is tracked: call it last",
            ),
        }
    }
}

impl Mistake {
    pub(crate) fn not_replicated(schema: &Schema, column: Column) -> Mistake {
        let (table, column) = names(schema, column);
        Mistake::NotReplicated { table, column }
    }

    pub(crate) fn tracking_replaced(schema: &Schema, column: Column) -> Mistake {
        let (table, column) = names(schema, column);
        Mistake::TrackingReplaced { table, column }
    }
}

fn names(schema: &Schema, column: Column) -> (String, String) {
    let table = schema.table(column.table);
    let name = table.column(column.id).name.to_string();
    (table.name.to_string(), name)
}

const NEVER: u8 = 0;
const READ: u8 = 1;
const REPORTED: u8 = 2;

/// Columns that were read although they are not replicated.
#[derive(Debug)]
pub(crate) struct UnreplicatedReads {
    has_unreported: AtomicBool,
    /// State by table and column: one of the three constants above.
    columns: Vec<Box<[AtomicU8]>>,
}

impl UnreplicatedReads {
    pub(crate) fn new(schema: &Schema) -> UnreplicatedReads {
        let tables = schema.tables().iter();
        let columns = tables
            .map(|table| {
                table
                    .columns()
                    .iter()
                    .map(|_| AtomicU8::new(NEVER))
                    .collect()
            })
            .collect();
        UnreplicatedReads {
            has_unreported: AtomicBool::new(false),
            columns,
        }
    }

    pub(crate) fn record(&self, column: Column) {
        let state = &self.columns[usize::from(column.table.0)][usize::from(column.id.0)];
        let seen = state.compare_exchange(NEVER, READ, Ordering::Relaxed, Ordering::Relaxed);
        if seen.is_ok() {
            self.has_unreported.store(true, Ordering::Release);
        }
    }

    /// The columns that were read for the first time since the last call.
    pub(crate) fn take(&mut self) -> Vec<Column> {
        if !std::mem::take(self.has_unreported.get_mut()) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (table, columns) in (0u16..).map(TableId).zip(&mut self.columns) {
            for (id, state) in (0u16..).map(ColumnId).zip(columns) {
                if *state.get_mut() == READ {
                    *state.get_mut() = REPORTED;
                    found.push(Column { table, id });
                }
            }
        }
        found
    }
}
