//! What a `select` returns, as text: written at once, or left out of the result and written later ([`crate::LongResult`]).
//!
//! What is left out holds the rows as they were when the operation was executed, changes of its own transaction included: it shares them
//! with the database, as a snapshot does. So when it is written, and where, makes no difference to the text.

use corvid_data::{Arc, ColumnId, HashSeed, Row, Schema, TableId, TableSchema};

use crate::column_list::ColumnList;
use crate::condition::Condition;
use crate::distinct::Distinct;
use crate::page::Page;

/// How rows are shown.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// What is seen of each.
    pub(crate) columns: ColumnList,
    /// By what they are sorted.
    pub(crate) sort: Option<ColumnList>,
    /// Of the database.
    pub(crate) seed: HashSeed,
}

impl Form {
    /// Appends `{"rows":[...]}`. `after_row` is called with the text after each of them and says whether to go on; returns false if it
    /// did not.
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
        // Rows of one table differ in `_uuid`, so only without it can two look the same.
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

/// The first of each rows that look the same.
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

/// Which rows.
#[derive(Debug)]
pub(crate) enum Rows {
    /// These.
    Found(Vec<Arc<Row>>),
    /// Those of a table that match.
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

    /// Adds its length in bytes to `sum`, as far as that stays at or below `max`. Takes as long as writing it.
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

/// Something that was left out of a result.
#[derive(Debug)]
pub struct DeferredSelection {
    /// Where it belongs in the text, bytes from the start.
    pub(crate) at: usize,
    /// An earlier operation of the transaction selects from the same table.
    pub(crate) is_repeated: bool,
    pub(crate) selection: Selection,
}

/// Length of what repeats earlier selections, bytes; somewhat more than `max` if it is longer than that.
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
