//! The result of a transaction with deferred selections, written slice by slice.
//!
//! For each selection the matching rows are found, sorted if the request says so, deduplicated
//! unless they differ anyway, and written. The text is cut into pieces between rows. The work can
//! pause after any row. A row's number is its index among the rows found, or its slot.
//!
//! Invariant: the text equals that of [`crate::selection::Form::write`], whatever the slices and
//! threads.

use std::sync::Arc as StdArc;

use corvid_data::{ColumnId, Row};
use hashbrown::HashTable;

use crate::merge_sort::MergeSort;
use crate::page::{PAGE_SLOTS, Slot};
use crate::selection::{DeferredSelection, Rows, Selection};
use crate::slice::{Resumable, Slice};

/// Length of a piece of a long result in bytes: large enough to be worth a system call, small
/// enough for the cache.
const PIECE_BYTES: usize = 256 << 10;

/// Number of clauses that are evaluated in one step.
const CLAUSES: usize = 4;

/// Steps to find out whether a row equals another in the selected columns.
const DEDUPLICATION_STEPS: u64 = 8;

/// Decides whether this many more bytes may be written. The flag is true for bytes that repeat an
/// earlier selection of the same table.
pub type Meter<'m> = &'m dyn Fn(usize, bool) -> bool;

/// The whole text in pieces; `None` if it is too long.
type Pieces = Option<Vec<StdArc<[u8]>>>;

/// A result with deferred selections. It is written once.
#[derive(Debug)]
pub struct LongResult {
    around: Vec<u8>,
    deferred_selections: Vec<DeferredSelection>,
    text: Resumable<Writer, Pieces>,
}

impl LongResult {
    /// A result made of the parts that an execution yields.
    #[must_use]
    pub fn new(around: Vec<u8>, deferred_selections: Vec<DeferredSelection>) -> LongResult {
        assert!(
            deferred_selections.is_sorted_by_key(|deferred| deferred.at),
            "results are in the order of their operations"
        );
        LongResult {
            around,
            deferred_selections,
            text: Resumable::new(Writer::default()),
        }
    }

    /// The text around the selections. The caller may append to it before the text is written.
    pub fn around_mut(&mut self) -> &mut Vec<u8> {
        &mut self.around
    }

    /// The whole text in pieces. The time is proportional to the size of the selected tables,
    /// except for slices written earlier.
    pub fn text(&self) -> &[StdArc<[u8]>] {
        self.text_within(&|_, _| true)
    }

    /// The whole text, unless `meter`, which is called as the text grows, forbids it: then there
    /// are no pieces.
    pub fn text_within(&self, meter: Meter<'_>) -> &[StdArc<[u8]>] {
        let text = self
            .text
            .finish(|writer| writer.advance(self, meter, &mut Slice::unlimited()));
        text.as_deref().unwrap_or_default()
    }

    /// Writes another slice. Returns the approximate number of rows left; 0 means that
    /// [`LongResult::text_within`] returns at once.
    pub fn advance(&self, meter: Meter<'_>, slice: &mut Slice) -> usize {
        let mut rows_left = 0;
        let is_written = self.text.advance(|writer| {
            let text = writer.advance(self, meter, slice);
            rows_left = writer.rows_left(self);
            text
        });
        if is_written { 0 } else { rows_left.max(1) }
    }

    /// Whether [`LongResult::text`] returns at once.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.text.get().is_some()
    }

    /// Upper bound on the rows to visit to write the text. O(selections).
    #[must_use]
    pub fn rows(&self) -> usize {
        let selections = self
            .deferred_selections
            .iter()
            .map(|deferred_selections| &deferred_selections.selection);
        selections.map(Selection::row_count).sum()
    }
}

/// A text that is being written.
#[derive(Debug, Default)]
struct Writer {
    pieces: Vec<StdArc<[u8]>>,
    out: Vec<u8>,
    /// The index of the selection that is being written, or is next.
    number: usize,
    stage: Stage,
}

/// The progress of a selection. Rows are represented by their numbers.
#[derive(Debug)]
enum Stage {
    /// The rows before `from` have been searched.
    Finding {
        from: usize,
        found: Vec<u32>,
    },
    Sorting(MergeSort),
    /// The rows before `from` have been compared. `seen` has the indexes in `found`, each with the
    /// hash of the row's selected columns.
    Deduplicating {
        rows: Vec<u32>,
        from: usize,
        found: Vec<u32>,
        seen: HashTable<(u64, u32)>,
    },
    /// The rows before `from` are written.
    Writing {
        rows: Vec<u32>,
        from: usize,
    },
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::Finding {
            from: 0,
            found: Vec::new(),
        }
    }
}

impl Writer {
    /// Continues for a slice. Returns the text once it is complete, or found to be too long.
    fn advance(
        &mut self,
        result: &LongResult,
        meter: Meter<'_>,
        slice: &mut Slice,
    ) -> Option<Pieces> {
        while let Some(deferred_selections) = result.deferred_selections.get(self.number) {
            if !self.select(result, deferred_selections, meter, slice)? {
                return Some(None);
            }
            self.number += 1;
            self.stage = Stage::default();
        }
        let written = result
            .deferred_selections
            .last()
            .map_or(0, |deferred_selections| deferred_selections.at);
        self.out.extend_from_slice(&result.around[written..]);
        let is_allowed = meter(self.out.len(), false);
        self.pieces.push(std::mem::take(&mut self.out).into());
        Some(is_allowed.then(|| std::mem::take(&mut self.pieces)))
    }

    /// The approximate number of rows left.
    fn rows_left(&self, result: &LongResult) -> usize {
        let mut selections = result.deferred_selections.iter().skip(self.number);
        let present = selections.next().map_or(0, |deferred_selections| {
            self.stage.rows_left(&deferred_selections.selection)
        });
        let later = selections.map(|deferred_selections| deferred_selections.selection.row_count());
        present + later.sum::<usize>()
    }

    /// Continues the current selection. Returns true once it is written, false if it is too long,
    /// and `None` if it pauses.
    fn select(
        &mut self,
        result: &LongResult,
        deferred_selections: &DeferredSelection,
        meter: Meter<'_>,
        slice: &mut Slice,
    ) -> Option<bool> {
        let selection = &deferred_selections.selection;
        while !matches!(self.stage, Stage::Writing { .. }) {
            self.stage = self.stage.prepare(selection, slice)?;
        }
        let Stage::Writing { rows, from } = &mut self.stage else {
            return None;
        };
        // A pause comes after a row at the earliest, so this text is written once.
        if *from == 0 {
            let before = self.number.checked_sub(1);
            let written = before.map_or(0, |before| result.deferred_selections[before].at);
            self.out
                .extend_from_slice(&result.around[written..deferred_selections.at]);
            self.out.extend_from_slice(b"{\"rows\":[");
        }
        let table = selection.schema.table(selection.table);
        while let Some(row) = rows.get(*from) {
            let length = self.out.len();
            if *from > 0 {
                self.out.push(b',');
            }
            *from += 1;
            let row = selection.row(*row);
            selection.form.columns.write(table, row, &mut self.out);
            slice.spend(1, self.out.len() - length);
            // A full piece leaves the buffer before the meter is asked, so the buffer never holds
            // more than a piece and a row.
            if self.out.len() >= PIECE_BYTES {
                let bytes = self.out.len();
                self.pieces.push(StdArc::from(&*self.out));
                self.out.clear();
                if !meter(bytes, deferred_selections.is_repeated) {
                    return Some(false);
                }
            }
            if slice.is_over() {
                return None;
            }
        }
        self.out.extend_from_slice(b"]}");
        Some(true)
    }
}

impl Stage {
    /// The approximate number of rows left.
    fn rows_left(&self, selection: &Selection) -> usize {
        match self {
            Stage::Finding { .. } => selection.row_count(),
            Stage::Sorting(sorting) => sorting.len(),
            Stage::Deduplicating { rows, .. } => rows.len(),
            Stage::Writing { rows, from } => rows.len() - from,
        }
    }

    /// The stage after this one; `None` if it pauses.
    fn prepare(&mut self, selection: &Selection, slice: &mut Slice) -> Option<Stage> {
        let form = &selection.form;
        let row = |number: u32| selection.row(number);
        let is_same = |a: u32, b: u32| form.columns.same(row(a), row(b));
        let rows = match self {
            Stage::Finding { from, found } => {
                selection.find(from, found, slice)?;
                let found = std::mem::take(found);
                if form.sort.is_some() {
                    return Some(Stage::Sorting(MergeSort::new(found)));
                }
                found
            }
            Stage::Sorting(sorting) => {
                let compare = |a: u32, b: u32| {
                    let sort = form.sort.as_ref();
                    sort.map_or(std::cmp::Ordering::Equal, |sort| {
                        sort.compare(row(a), row(b))
                    })
                };
                sorting.advance(slice, compare)?
            }
            Stage::Deduplicating {
                rows,
                from,
                found,
                seen,
            } => {
                while let Some(next) = rows.get(*from).copied() {
                    if slice.is_over() {
                        return None;
                    }
                    slice.spend(DEDUPLICATION_STEPS, 0);
                    *from += 1;
                    let hash = form.columns.hash(form.seed, row(next));
                    let is_equal = |(_, index): &(u64, u32)| is_same(found[*index as usize], next);
                    if seen.find(hash, is_equal).is_none() {
                        // A table has fewer than 2^32 rows.
                        let index = found.len() as u32;
                        seen.insert_unique(hash, (hash, index), |(hash, _)| *hash);
                        found.push(next);
                    }
                }
                let rows = std::mem::take(found);
                return Some(Stage::Writing { rows, from: 0 });
            }
            Stage::Writing { rows, from } => {
                let rows = std::mem::take(rows);
                return Some(Stage::Writing { rows, from: *from });
            }
        };
        Some(Stage::deduplicate(selection, rows))
    }

    /// The next stage for these rows, which are in order. Rows of one table differ in `_uuid`, so
    /// two can be equal only without that column.
    fn deduplicate(selection: &Selection, mut rows: Vec<u32>) -> Stage {
        let columns = &selection.form.columns;
        if columns.contains(ColumnId::UUID) {
            return Stage::Writing { rows, from: 0 };
        }
        if columns.is_empty() {
            rows.truncate(1);
            return Stage::Writing { rows, from: 0 };
        }
        Stage::Deduplicating {
            rows,
            from: 0,
            found: Vec::new(),
            seen: HashTable::new(),
        }
    }
}

impl Selection {
    /// Upper bound on the rows to visit for the selection.
    fn row_count(&self) -> usize {
        match &self.rows {
            Rows::Found(rows) => rows.len(),
            Rows::Matching(pages, _) => pages.len() * PAGE_SLOTS,
        }
    }

    /// The row with this number.
    fn row(&self, number: u32) -> &Row {
        match &self.rows {
            Rows::Found(rows) => &rows[number as usize],
            Rows::Matching(pages, _) => {
                let slot = Slot::new(number as usize);
                let row = pages[slot.page()].get(slot.offset());
                row.expect("a row was found there, and the page stays as it was")
            }
        }
    }

    /// Appends the numbers of matching rows, from the slot `from` on; `None` if it pauses.
    fn find(&self, from: &mut usize, found: &mut Vec<u32>, slice: &mut Slice) -> Option<()> {
        let (pages, condition) = match &self.rows {
            Rows::Found(rows) => {
                // A table has fewer than 2^32 rows.
                found.extend(0..rows.len() as u32);
                return Some(());
            }
            Rows::Matching(pages, condition) => (pages, condition),
        };
        let steps = 1 + (condition.clauses.len() / CLAUSES) as u64;
        while *from < pages.len() * PAGE_SLOTS {
            if slice.is_over() {
                return None;
            }
            let slot = Slot::new(*from);
            let row = pages[slot.page()].get(slot.offset());
            if row.is_some_and(|row| condition.holds_for(row)) {
                found.push(*from as u32);
            }
            *from += 1;
            slice.spend(steps, 0);
        }
        Some(())
    }
}
