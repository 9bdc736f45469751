//! Builds rows from records of a log, on threads without access to the database.
//!
//! Only the thread that applies a record knows whether it inserts a row or changes one. The builder
//! guesses: it turns a record with most columns of its table into a row with the hashes of its
//! keys, which then only has to be inserted. A wrong guess costs turning the row back into a record
//! ([`NewRow::into_recorded`]), and has no other effect.
//!
//! Invariant: the data of a [`NewRow`] have sizes that their columns allow. The loader of a log
//! calls this file, which knows no table's contents.

use corvid_data::{
    Arc, ColumnId, Datum, HashSeed, Recorded, RecordedRow, Row, Schema, TableId, Uuid, UuidSource,
};
use smallvec::SmallVec;

use crate::database::Database;
use crate::index::{Keys, hash_key, indexed};
use crate::layout::Layout;

/// Builds rows, on any thread.
#[derive(Clone, Debug)]
pub struct RowBuilder {
    schema: Arc<Schema>,
    seed: HashSeed,
    layouts: std::sync::Arc<[Layout]>,
}

/// A recorded transaction, ready to be loaded.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) is_diff: bool,
    pub(crate) rows: SmallVec<[PreparedRow; 1]>,
}

#[derive(Debug)]
pub(crate) enum PreparedRow {
    /// A row as recorded.
    Recorded(RecordedRow),
    /// A row that is probably inserted.
    New(NewRow),
}

/// A row to insert, unless a row with its UUID exists.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) table: TableId,
    pub(crate) row: Arc<Row>,
    pub(crate) keys: Keys,
    given: Given,
}

/// The columns that a record gave, in its order.
type Given = SmallVec<[u8; 16]>;

impl RowBuilder {
    /// A builder for the tables of `database`.
    #[must_use]
    pub fn new(database: &Database) -> RowBuilder {
        RowBuilder {
            schema: Arc::clone(&database.schema),
            seed: database.seed,
            layouts: std::sync::Arc::from(&*database.layouts),
        }
    }

    /// The row that `recorded` inserts, with a fresh version; `None` if the record deletes a row.
    /// The data must have allowed sizes, and no column may occur twice.
    pub fn row(&self, recorded: RecordedRow, uuids: &mut dyn UuidSource) -> Option<Arc<Row>> {
        let defaults = &self.layouts[usize::from(recorded.table.0)].defaults;
        let given = recorded.columns?;
        let own = given.iter().filter(|(column, _)| !column.is_standard());
        // A record that gives every column would replace every default, so none is cloned.
        let mut columns = if own.count() == defaults.len() {
            defaults.iter().map(|_| Datum::empty()).collect()
        } else {
            defaults.clone()
        };
        for (column, datum) in given {
            if !column.is_standard() {
                columns[usize::from(column.0)] = datum;
            }
        }
        Some(Arc::new(Row {
            uuid: recorded.uuid,
            version: uuids.fresh(),
            columns,
        }))
    }

    /// Prepares a transaction. `guesses` tells whether to guess that rows are new.
    pub fn prepare(
        &self,
        recorded: Recorded,
        guesses: bool,
        uuids: &mut dyn UuidSource,
    ) -> Prepared {
        let Recorded {
            is_diff, mut rows, ..
        } = recorded;
        let mut row = |row: RecordedRow| match guesses.then(|| self.given(&row)).flatten() {
            Some(given) => self.new_row(row, given, uuids),
            None => PreparedRow::Recorded(row),
        };
        // Most transactions have one row, which needs no iterator.
        let rows = match (rows.len(), rows.pop()) {
            (1, Some(only)) => SmallVec::from_buf([row(only)]),
            (_, last) => rows.into_iter().chain(last).map(row).collect(),
        };
        Prepared { is_diff, rows }
    }

    fn new_row(
        &self,
        recorded: RecordedRow,
        given: Given,
        uuids: &mut dyn UuidSource,
    ) -> PreparedRow {
        let table = recorded.table;
        let Some(row) = self.row(recorded, uuids) else {
            unreachable!("it gives columns");
        };
        let keys = indexed(self.schema.table(table));
        PreparedRow::New(NewRow {
            table,
            keys: keys
                .map(|columns| hash_key(self.seed, columns, &row))
                .collect(),
            row,
            given,
        })
    }

    /// The columns that a record gives, if they are most columns of the table and have sizes that a
    /// new row may have.
    fn given(&self, recorded: &RecordedRow) -> Option<Given> {
        let columns = recorded.columns.as_ref()?;
        let described = self.schema.table(recorded.table).columns();
        // A record of a change names only the changed columns, usually few.
        if 2 * columns.len() <= described.len() {
            return None;
        }
        let mut given = Given::new();
        for (column, datum) in columns {
            let column_type = &described.get(usize::from(column.0))?.column_type;
            // Such a datum is a difference of an existing row.
            if !column_type.admits(datum.len()) {
                return None;
            }
            given.push(u8::try_from(column.0).ok()?);
        }
        Some(given)
    }
}

impl PreparedRow {
    pub(crate) fn table(&self) -> TableId {
        match self {
            PreparedRow::Recorded(row) => row.table,
            PreparedRow::New(new) => new.table,
        }
    }

    pub(crate) fn uuid(&self) -> Uuid {
        match self {
            PreparedRow::Recorded(row) => row.uuid,
            PreparedRow::New(new) => new.row.uuid,
        }
    }

    /// The row as a record.
    pub(crate) fn into_recorded(self) -> RecordedRow {
        match self {
            PreparedRow::Recorded(row) => row,
            PreparedRow::New(new) => new.into_recorded(),
        }
    }
}

impl NewRow {
    /// The record that the row was built from.
    pub(crate) fn into_recorded(self) -> RecordedRow {
        let given = self.given.iter().map(|column| {
            let datum = self.row.columns[usize::from(*column)].clone();
            (ColumnId(u16::from(*column)), datum)
        });
        RecordedRow {
            table: self.table,
            uuid: self.row.uuid,
            columns: Some(given.collect()),
        }
    }
}

impl From<Recorded> for Prepared {
    fn from(recorded: Recorded) -> Prepared {
        let rows = recorded.rows.into_iter();
        Prepared {
            is_diff: recorded.is_diff,
            rows: rows.map(PreparedRow::Recorded).collect(),
        }
    }
}
