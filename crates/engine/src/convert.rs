//! A database's content under another schema (protocol.md 4.15).

use corvid_data::{
    Arc, BaseType, ColumnId, ColumnType, Row, Schema, TableSchema, UuidSource, WireError,
};

use crate::commit::commit;
use crate::database::Database;
use crate::transaction::Transaction;

/// Builds a new database of `schema` with every table and column that both have; all commit checks see every row as inserted.
///
/// # Errors
/// The first datum that does not fit its new type, or what the commit answers.
pub(crate) fn convert(
    source: &Database,
    schema: &Arc<Schema>,
    uuids: &mut dyn UuidSource,
) -> Result<Database, WireError> {
    let mut database = Database::new(Arc::clone(schema));
    let mut txn = Transaction::begin(&mut database);
    for (table, new) in schema.iter() {
        let Some(old_table) = source.schema.table_id(&new.name) else {
            continue;
        };
        let old = source.schema.table(old_table);
        let sources = column_sources(old, new);
        for row in source.tables[usize::from(old_table.0)].rows() {
            let mut columns = txn.layout(table).defaults.clone();
            for (column, from) in columns.iter_mut().zip(&sources) {
                if let Some(from) = from {
                    *column = from.read(row)?;
                }
            }
            let row = Row {
                uuid: row.uuid,
                version: uuids.fresh(),
                columns,
            };
            txn.insert(table, row);
        }
    }
    commit(txn, uuids)?;
    Ok(database)
}

/// Where a column of the new schema takes its values from.
struct ColumnSource<'s> {
    column: ColumnId,
    /// The types before and after, when values must be read anew.
    types: Option<(&'s ColumnType, &'s ColumnType)>,
}

impl ColumnSource<'_> {
    fn read(&self, row: &Row) -> Result<corvid_data::Datum, WireError> {
        let datum = &row.columns[usize::from(self.column.0)];
        match self.types {
            None => Ok(datum.clone()),
            Some((from, to)) => datum.convert(from, to),
        }
    }
}

/// For each column of the new table its source; `None` when it is new.
fn column_sources<'s>(old: &'s TableSchema, new: &'s TableSchema) -> Vec<Option<ColumnSource<'s>>> {
    new.columns()
        .iter()
        .map(|new_column| {
            let column = old.column_id(&new_column.name)?;
            let (from, to) = (&old.column(column).column_type, &new_column.column_type);
            Some(ColumnSource {
                column,
                types: (!holds_same_values(from, to)).then_some((from, to)),
            })
        })
        .collect()
}

/// Whether every value of one type is one of the other. What uuids refer to is left out: only the commit looks at it, and tables may
/// have other numbers in the new schema.
fn holds_same_values(from: &ColumnType, to: &ColumnType) -> bool {
    let same_base = |a: &BaseType, b: &BaseType| {
        a.atom == b.atom && a.enumeration == b.enumeration && a.bounds == b.bounds
    };
    let same_value = match (&from.value, &to.value) {
        (None, None) => true,
        (Some(a), Some(b)) => same_base(a, b),
        _ => false,
    };
    same_value && same_base(&from.key, &to.key) && from.min == to.min && from.max == to.max
}
