//! `select` (protocol.md 5.3).

use corvid_data::members::Kinds;
use corvid_data::{Arc, ColumnId, Row, TableId, WireError};

use super::Source;
use crate::column_list::ColumnList;
use crate::distinct::Distinct;
use crate::execution::{Execution, Failure};

/// The members of a `select`.
pub(crate) struct Select<'a> {
    pub(super) table: TableId,
    condition: &'a [u8],
    columns: Option<&'a [u8]>,
    sort: Option<&'a [u8]>,
}

impl<'a> Select<'a> {
    pub(super) fn parse(source: &mut Source<'a, '_>) -> Result<Select<'a>, WireError> {
        Ok(Select {
            table: source.table()?,
            condition: source.condition()?,
            columns: source.optional("columns", Kinds::ARRAY)?,
            sort: source.optional("sort", Kinds::ARRAY)?,
        })
    }

    pub(super) fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        let condition = execution.read_condition(self.table, self.condition)?;
        let schema = Arc::clone(execution.txn.schema());
        let schema = schema.table(self.table);
        let columns = match self.columns {
            Some(raw) => ColumnList::parse(schema, raw)?,
            None => ColumnList::all(schema),
        };
        let sort = match self.sort {
            Some(raw) => Some(ColumnList::parse(schema, raw)?),
            None => None,
        };
        let slots = execution.matching(self.table, &condition)?;
        execution.spend_on(self.table, &slots, 0)?;
        let mut out = std::mem::take(&mut execution.out);
        let mut rows: Vec<&Row> = execution.rows(self.table, &slots).collect();
        if let Some(sort) = sort {
            rows.sort_by(|a, b| sort.compare(a, b));
        }
        // Rows of one table differ in `_uuid`, so only without it can two look the same.
        if !columns.contains(ColumnId::UUID) {
            rows = distinct(&columns, rows);
        }
        out.extend_from_slice(b"{\"rows\":[");
        for (position, row) in rows.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            columns.write(schema, row, &mut out);
        }
        out.extend_from_slice(b"]}");
        execution.out = out;
        Ok(())
    }
}

/// The first of each rows that look the same.
fn distinct<'r>(columns: &'r ColumnList, mut rows: Vec<&'r Row>) -> Vec<&'r Row> {
    if columns.is_empty() {
        rows.truncate(1);
        return rows;
    }
    let mut distinct = Distinct::new(columns);
    for row in rows {
        distinct.insert(row);
    }
    distinct.into_rows()
}
