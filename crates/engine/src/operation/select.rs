//! `select` (docs/spec/protocol.md 5.3).

use corvid_data::members::Kinds;
use corvid_data::{Arc, TableId, WireError};

use super::{Executable, Source};
use crate::column_list::ColumnList;
use crate::execution::{Execution, Failure};
use crate::lookup;
use crate::selection::{DeferredSelection, Form, Rows, Selection};
use crate::table::row_atoms;

/// The members of a `select`.
pub(crate) struct Select<'a> {
    table: TableId,
    condition: &'a [u8],
    columns: Option<&'a [u8]>,
    sort: Option<&'a [u8]>,
}

impl<'a> Executable<'a> for Select<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Select<'a>, WireError> {
        Ok(Select {
            table: source.table()?,
            condition: source.condition()?,
            columns: source.optional("columns", Kinds::ARRAY)?,
            sort: source.optional("sort", Kinds::ARRAY)?,
        })
    }

    /// Writes the rows, or defers them if that takes long.
    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
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
        let form = Form {
            columns,
            sort,
            seed: execution.txn.database.seed,
        };
        let is_repeated = execution.record_selection(self.table);
        let table = execution.txn.table(self.table);
        let steps = table.len() as u64;
        // The search itself is too long: defer it with the pages, which any thread can search
        // later. The walk counts all the same, so that the column may get an index.
        if lookup::is_walk(table, &condition) && !execution.txn.budget.spend_on_select(steps) {
            execution.txn.database.count_walk(self.table, &condition);
            let pages = execution.txn.table(self.table).pages().to_vec();
            self.defer(
                execution,
                is_repeated,
                Rows::Matching(pages, condition),
                form,
            );
            return Ok(());
        }
        let slots = execution.matching(self.table, &condition)?;
        execution.spend_on(self.table, &slots, 0)?;
        let steps = execution.rows(self.table, &slots).map(row_atoms).sum();
        // The rows are found, and only writing them is too long.
        if !execution.txn.budget.spend_on_select(steps) {
            let table = execution.txn.table(self.table);
            let rows = slots.iter().map(|slot| Arc::clone(table.at(*slot)));
            let rows = Rows::Found(rows.collect());
            self.defer(execution, is_repeated, rows, form);
            return Ok(());
        }
        let mut out = std::mem::take(&mut execution.out);
        let rows = execution.rows(self.table, &slots).collect();
        let start = out.len();
        form.write(schema, rows, &mut out, |_| true);
        execution.out = out;
        execution.count_selected(start, is_repeated)?;
        Ok(())
    }
}

impl Select<'_> {
    fn defer(&self, execution: &mut Execution<'_, '_>, is_repeated: bool, rows: Rows, form: Form) {
        let selection = Selection {
            schema: Arc::clone(execution.txn.schema()),
            table: self.table,
            rows,
            form,
        };
        execution.deferred_selections.push(DeferredSelection {
            at: execution.out.len(),
            is_repeated,
            selection,
        });
    }
}
