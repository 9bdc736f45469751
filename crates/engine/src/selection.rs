//! The result of a `select` as text: written at once, or deferred and written later
//! ([`crate::LongResult`]).
//!
//! A deferred selection holds the rows as they were when the operation was executed, including the
//! changes of its own transaction. It shares them with the database, as a snapshot does. So the
//! time and thread of writing make no difference to the text.

use corvid_data::{Arc, ColumnId, HashSeed, Row, Schema, TableId, TableSchema};

use crate::column_list::ColumnList;
use crate::condition::Condition;
use crate::distinct::Distinct;
use crate::page::Page;

/// The columns and the order in which rows are returned.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The columns of each row.
    pub(crate) columns: ColumnList,
    /// The columns by which rows are sorted.
    pub(crate) sort: Option<ColumnList>,
    /// The seed of the database's hashes.
    pub(crate) seed: HashSeed,
}

impl Form {
    /// Appends `{"rows":[...]}`. Calls `after_row` with the text after each row, and stops if it
    /// returns false. Returns false if it stopped.
    pub(crate) fn write<'r>(
        &'r self,
        table: &TableSchema,
        mut rows: Vec<&'r Row>,
        out: &mut Vec<u8>,
        mut after_row: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> bool {
        if let Some(sort) = &self.sort {
            rows.sort_by(|a, b| sort.compare(a, b));
        }
        // Rows of one table differ in `_uuid`, so two can be equal only without that column.
        if !self.columns.contains(ColumnId::UUID) {
            rows = distinct(&self.columns, self.seed, rows);
        }
        out.extend_from_slice(b"{\"rows\":[");
        for (position, row) in rows.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            self.columns.write(table, row, out);
            if !after_row(out) {
                return false;
            }
        }
        out.extend_from_slice(b"]}");
        true
    }
}

/// The first row of each group of rows that are equal in `columns`.
fn distinct<'r>(columns: &'r ColumnList, seed: HashSeed, mut rows: Vec<&'r Row>) -> Vec<&'r Row> {
    if columns.is_empty() {
        rows.truncate(1);
        return rows;
    }
    let mut distinct = Distinct::new(columns, seed);
    for row in rows {
        distinct.insert(row);
    }
    distinct.into_rows()
}

/// The result of a `select` that is not written yet.
#[derive(Debug)]
pub struct Selection {
    pub(crate) schema: Arc<Schema>,
    pub(crate) table: TableId,
    pub(crate) rows: Rows,
    pub(crate) form: Form,
}

/// The rows of a selection.
#[derive(Debug)]
pub(crate) enum Rows {
    /// These rows.
    Found(Vec<Arc<Row>>),
    /// The rows of these pages that match the condition.
    Matching(Vec<Arc<Page>>, Condition),
}

impl Selection {
    fn write(&self, out: &mut Vec<u8>, after_row: impl FnMut(&mut Vec<u8>) -> bool) -> bool {
        let rows: Vec<&Row> = match &self.rows {
            Rows::Found(rows) => rows.iter().map(|row| &**row).collect(),
            Rows::Matching(pages, condition) => {
                let rows = pages.iter().flat_map(|page| page.rows());
                rows.map(|row| &**row)
                    .filter(|row| condition.holds_for(row))
                    .collect()
            }
        };
        let table = self.schema.table(self.table);
        self.form.write(table, rows, out, after_row)
    }

    /// Adds the selection's length in bytes to `sum`. Stops once that exceeds `max`. Takes as long
    /// as writing it.
    fn measure(&self, sum: &mut usize, max: usize) {
        let mut out = Vec::new();
        self.write(&mut out, |out| {
            *sum += out.len();
            out.clear();
            *sum <= max
        });
        *sum += out.len();
    }
}

/// A selection that is not written in the result yet.
#[derive(Debug)]
pub struct DeferredSelection {
    /// The selection's offset in the text of the result, in bytes.
    pub(crate) at: usize,
    /// An earlier operation of the transaction selects from the same table.
    pub(crate) is_repeated: bool,
    pub(crate) selection: Selection,
}

/// The length in bytes of the selections that repeat earlier ones. If they are longer than `max`,
/// the result is somewhat more than `max`.
pub(crate) fn repeated_bytes(deferred_selections: &[DeferredSelection], max: usize) -> usize {
    let mut sum = 0;
    let repeated = deferred_selections
        .iter()
        .filter(|deferred_selections| deferred_selections.is_repeated);
    for DeferredSelection { selection, .. } in repeated {
        if sum <= max {
            selection.measure(&mut sum, max);
        }
    }
    sum
}
