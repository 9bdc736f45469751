//! Finds the rows that match a condition: by `_uuid`, by a schema index, by an index that
//! conditions requested ([`crate::column_index`]), or by walking the table.
//!
//! The choice affects only the cost: the whole condition is evaluated on every candidate.

use corvid_data::{ColumnId, Datum, Uuid};
use smallvec::SmallVec;

use crate::column_index::ColumnIndex;
use crate::condition::{Condition, Disjunction};
use crate::index::Index;
use crate::page::Slot;
use crate::table::Table;
use crate::work_budget::{TooLong, WorkBudget};

/// Slots of rows, usually one.
pub(crate) type Slots = SmallVec<[Slot; 4]>;

/// An index is used if at most one row in this many has the value. If more rows have it, a walk is
/// faster, because it reads memory in order.
const WALK_SHARE: usize = 8;

/// The rows for which every clause holds, in slot order, if `_uuid` or an index of the schema finds
/// them.
pub(crate) fn matching_by_key(table: &Table, condition: &Condition) -> Option<Slots> {
    let holds = |slot: &Slot| condition.holds_for(table.at(*slot));
    let mut found = Slots::new();
    if let Some(uuid) = condition.named_row() {
        if let Some(slot) = table.find(uuid).filter(holds) {
            found.push(slot);
        }
        return Some(found);
    }
    let index = key_demanded(table, condition)?;
    let columns = index.columns().iter();
    let key = columns.filter_map(|column| condition.equal_to(*column));
    found.extend(index.candidates(key).filter(holds));
    // Several rows may have the same key until the commit.
    found.sort_unstable();
    Some(found)
}

/// The rows for which every clause holds, in slot order.
///
/// # Errors
/// More rows must be visited than `budget` has steps.
pub(crate) fn matching_all(
    table: &Table,
    condition: &Condition,
    budget: &mut WorkBudget,
) -> Result<Slots, TooLong> {
    if let Some(found) = matching_by_key(table, condition) {
        return Ok(found);
    }
    if let Some(found) = matching_by_column(table, condition) {
        budget.spend(found.len() as u64)?;
        return Ok(found);
    }
    budget.spend(table.len() as u64)?;
    let mut found = Slots::new();
    table.for_each(|slot, row| {
        if condition.holds_for(row) {
            found.push(slot);
        }
    });
    Ok(found)
}

/// The matching rows, in slot order, found by the index of a column that an `==` clause names.
/// `None` if there is no such index, or if many rows have the value.
fn matching_by_column(table: &Table, condition: &Condition) -> Option<Slots> {
    let (index, value) = condition
        .equalities()
        .find_map(|(column, value)| Some((table.column_index(column)?, value)))?;
    // One candidate above the limit decides for a walk, so no more are looked at.
    let max = table.len() / WALK_SHARE;
    let candidates: Slots = index.candidates(value).take(max + 1).collect();
    if candidates.len() > max {
        return None;
    }
    let mut found = candidates;
    found.retain(|slot| condition.holds_for(table.at(*slot)));
    found.sort_unstable();
    Some(found)
}

/// Whether [`matching_all`] may walk the whole table.
pub(crate) fn is_walk(table: &Table, condition: &Condition) -> bool {
    !has_key(table, condition)
        && !condition
            .equalities()
            .any(|(column, _)| table.column_index(column).is_some())
}

/// Whether the condition names a row, or the key of an index of the schema.
fn has_key(table: &Table, condition: &Condition) -> bool {
    condition.named_row().is_some() || key_demanded(table, condition).is_some()
}

/// The column that would find the rows that match all clauses if it had an index; `None` if a key
/// finds them.
pub(crate) fn column_walked(table: &Table, condition: &Condition) -> Option<ColumnId> {
    if has_key(table, condition) {
        return None;
    }
    let (column, _) = condition.equalities().next()?;
    Some(column)
}

/// The first index of the schema with an `==` clause for each of its columns.
fn key_demanded<'t>(table: &'t Table, condition: &Condition) -> Option<&'t Index> {
    let is_demanded = |column: &ColumnId| condition.equal_to(*column).is_some();
    let mut indexes = table.indexes().iter();
    indexes.find(|index| index.columns().iter().all(is_demanded))
}

/// Calls `visit` with the slot of every row for which some clause holds, each once.
pub(crate) fn for_each_matching_any(
    table: &Table,
    condition: &Condition,
    visit: &mut dyn FnMut(Slot),
) {
    let disjunction = condition.as_disjunction();
    if let Some(finders) = finders(table, disjunction) {
        return look_up(table, disjunction, &finders, visit);
    }
    table.for_each(|slot, row| {
        if disjunction.is_true || disjunction.matches(row) {
            visit(slot);
        }
    });
}

/// The number of rows that [`for_each_matching_any`] visits, counted up to `max`.
pub(crate) fn rows_visited(table: &Table, condition: &Condition, max: usize) -> usize {
    let disjunction = condition.as_disjunction();
    let Some(finders) = finders(table, disjunction) else {
        return table.len();
    };
    let values = disjunction.equal.iter().zip(&finders);
    let found = values
        .flat_map(|((_, values), finder)| values.iter().map(move |value| (finder, value)))
        .flat_map(|(finder, value)| finder.candidates(value));
    disjunction.uuids.len() + found.take(max).count()
}

/// The columns for which indexes would find the rows that match any clause, except those that an
/// index of the schema covers.
pub(crate) fn columns_wanted(table: &Table, condition: &Condition) -> Vec<ColumnId> {
    let disjunction = condition.as_disjunction();
    let are_few = |lookups: usize| lookups < table.len();
    if !disjunction.lookups().is_some_and(are_few) {
        return Vec::new();
    }
    let columns = disjunction.equal.iter().map(|(column, _)| *column);
    columns
        .filter(|column| declared_index(table, *column).is_none())
        .collect()
}

/// An index that finds rows by the value of one column.
enum Finder<'t> {
    Declared(&'t Index),
    Column(&'t ColumnIndex),
}

impl<'t> Finder<'t> {
    fn of(table: &'t Table, column: ColumnId) -> Option<Finder<'t>> {
        let declared = declared_index(table, column).map(Finder::Declared);
        declared.or_else(|| table.column_index(column).map(Finder::Column))
    }

    /// The slots of rows that probably hold `value`: the caller compares.
    fn candidates(&self, value: &'t Datum) -> impl Iterator<Item = Slot> + 't {
        let (declared, column) = match self {
            Finder::Declared(index) => (Some(index.candidates(std::iter::once(value))), None),
            Finder::Column(index) => (None, Some(index.candidates(value))),
        };
        let declared = declared.into_iter().flatten();
        declared.chain(column.into_iter().flatten())
    }
}

/// The schema's index over this column alone.
fn declared_index(table: &Table, column: ColumnId) -> Option<&Index> {
    let mut indexes = table.indexes().iter();
    indexes.find(|index| index.columns() == [column])
}

/// The index of each column with `==` clauses. `None` if a column has none, or if a walk is cheaper
/// because the table has fewer rows than the condition has values.
fn finders<'t>(table: &'t Table, disjunction: &Disjunction) -> Option<Vec<Finder<'t>>> {
    disjunction
        .lookups()
        .filter(|lookups| *lookups < table.len())?;
    let columns = disjunction.equal.iter().map(|(column, _)| *column);
    columns.map(|column| Finder::of(table, column)).collect()
}

fn look_up(
    table: &Table,
    disjunction: &Disjunction,
    finders: &[Finder<'_>],
    visit: &mut dyn FnMut(Slot),
) {
    let by_uuid = disjunction
        .uuids
        .iter()
        .filter_map(|uuid: &Uuid| table.find(*uuid));
    let by_value = disjunction
        .equal
        .iter()
        .zip(finders)
        .flat_map(|((column, values), finder)| {
            values.iter().map(move |value| (*column, finder, value))
        })
        .flat_map(|(column, finder, value)| {
            let holds = move |slot: &Slot| table.at(*slot).columns[usize::from(column.0)] == *value;
            finder.candidates(value).filter(holds)
        });
    // In slot order, so that no result depends on hashes. A row may be found in two ways.
    let mut found: Slots = by_uuid.chain(by_value).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().for_each(visit);
}
