//! What a `select` returns, as text: written at once, or left out of the result and written later by whoever has the time.
//!
//! What is left out holds the rows as they were when the operation was executed, changes of its own transaction included: it shares them
//! with the database, as a snapshot does. So when it is written, and where, makes no difference to the text.

use std::sync::{Arc as StdArc, OnceLock};

use corvid_data::{Arc, ColumnId, HashSeed, Row, Schema, TableId, TableSchema};

use crate::column_list::ColumnList;
use crate::condition::Condition;
use crate::distinct::Distinct;
use crate::page::{PAGE_SLOTS, Page};

/// Where a long result is cut, bytes: large enough that a piece is worth a system call, small enough for the cache.
const PIECE_BYTES: usize = 256 << 10;

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

    /// How many rows are looked at for it, at most.
    fn row_count(&self) -> usize {
        match &self.rows {
            Rows::Found(rows) => rows.len(),
            Rows::Matching(pages, _) => pages.len() * PAGE_SLOTS,
        }
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
pub struct LeftOut {
    /// Where it belongs in the text, bytes from the start.
    pub(crate) at: usize,
    /// An earlier operation of the transaction selects from the same table.
    pub(crate) is_repeated: bool,
    pub(crate) selection: Selection,
}

/// Length of what repeats earlier selections, bytes; somewhat more than `max` if it is longer than that.
pub(crate) fn repeated_bytes(left_out: &[LeftOut], max: usize) -> usize {
    let mut sum = 0;
    let repeated = left_out.iter().filter(|left_out| left_out.is_repeated);
    for LeftOut { selection, .. } in repeated {
        if sum <= max {
            selection.measure(&mut sum, max);
        }
    }
    sum
}

/// Decides whether so many bytes more may be written; true for those that repeat an earlier selection of the same table.
pub type Meter<'m> = &'m dyn Fn(usize, bool) -> bool;

/// A result of which something was left out. Written once, by whoever asks for its text first.
#[derive(Debug)]
pub struct LongResult {
    around: Vec<u8>,
    left_out: Vec<LeftOut>,
    /// `None`: it is too long.
    text: OnceLock<Option<Vec<StdArc<[u8]>>>>,
}

impl LongResult {
    /// Of the parts that an execution yields.
    #[must_use]
    pub fn new(around: Vec<u8>, left_out: Vec<LeftOut>) -> LongResult {
        LongResult {
            around,
            left_out,
            text: OnceLock::new(),
        }
    }

    /// What stands around that, for something to be added at the end before the text is asked for.
    pub fn around_mut(&mut self) -> &mut Vec<u8> {
        &mut self.around
    }

    /// The whole text in pieces. The first call takes as long as the selected tables are large; others wait for it meanwhile.
    pub fn text(&self) -> &[StdArc<[u8]>] {
        self.text_within(&|_, _| true)
    }

    /// The same, unless `meter` forbids it, which is asked as the text grows. There are no pieces then.
    pub fn text_within(&self, meter: Meter<'_>) -> &[StdArc<[u8]>] {
        let text = self.text.get_or_init(|| self.write(meter));
        text.as_deref().unwrap_or_default()
    }

    /// Whether [`LongResult::text`] returns at once.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.text.get().is_some()
    }

    /// How many rows are looked at to write it, at most. O(selections).
    #[must_use]
    pub fn rows(&self) -> usize {
        let selections = self.left_out.iter().map(|left_out| &left_out.selection);
        selections.map(Selection::row_count).sum()
    }

    fn write(&self, meter: Meter<'_>) -> Option<Vec<StdArc<[u8]>>> {
        let (mut pieces, mut out) = (Vec::new(), Vec::new());
        let mut written = 0;
        for left_out in &self.left_out {
            out.extend_from_slice(&self.around[written..left_out.at]);
            written = left_out.at;
            let is_whole = left_out.selection.write(&mut out, |out| {
                if out.len() < PIECE_BYTES {
                    return true;
                }
                let bytes = out.len();
                pieces.push(StdArc::from(&**out));
                out.clear();
                meter(bytes, left_out.is_repeated)
            });
            if !is_whole {
                return None;
            }
        }
        out.extend_from_slice(&self.around[written..]);
        let is_allowed = meter(out.len(), false);
        pieces.push(out.into());
        is_allowed.then_some(pieces)
    }
}
