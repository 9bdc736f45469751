//! Finding the rows that match a condition: by `_uuid`, by a schema index, or by a walk over the table.
//!
//! The choice changes cost only: every candidate is judged by the whole condition.

use corvid_data::{Datum, Uuid};
use smallvec::SmallVec;

use crate::allowance::{Allowance, TooLong};
use crate::condition::{Condition, Disjunction};
use crate::hash::Set;
use crate::index::Index;
use crate::page::Slot;
use crate::table::Table;

/// Places of rows; one is the usual number.
pub(crate) type Slots = SmallVec<[Slot; 4]>;

/// The rows for which every clause holds, in slot order unless an index found them.
///
/// # Errors
/// There are more rows to be looked at than `allowance` has steps.
pub(crate) fn matching_all(
    table: &Table,
    condition: &Condition,
    allowance: &mut Allowance,
) -> Result<Slots, TooLong> {
    if let Some(uuid) = condition.named_row() {
        let found = table.find(uuid);
        return Ok(found
            .filter(|slot| condition.holds_for(table.at(*slot)))
            .into_iter()
            .collect());
    }
    for index in table.indexes() {
        if let Some(key) = equality_key(index, condition) {
            return Ok(index
                .candidates(key.iter().copied())
                .filter(|slot| condition.holds_for(table.at(*slot)))
                .collect());
        }
    }
    allowance.spend(table.len() as u64)?;
    let mut found = Slots::new();
    table.for_each(|slot, row| {
        if condition.holds_for(row) {
            found.push(slot);
        }
    });
    Ok(found)
}

/// Whether [`matching_all`] walks the whole table.
pub(crate) fn is_walk(table: &Table, condition: &Condition) -> bool {
    condition.named_row().is_none()
        && !table
            .indexes()
            .iter()
            .any(|index| equality_key(index, condition).is_some())
}

/// The key that the condition demands, when it has an `==` clause for every column of the index.
fn equality_key<'c>(index: &Index, condition: &'c Condition) -> Option<SmallVec<[&'c Datum; 4]>> {
    index
        .columns()
        .iter()
        .map(|column| condition.equal_to(*column))
        .collect()
}

/// Calls `visit` with the place of every row for which some clause holds, each once.
pub(crate) fn for_each_matching_any(
    table: &Table,
    condition: &Condition,
    visit: &mut dyn FnMut(Slot),
) {
    let disjunction = condition.as_disjunction();
    match disjunction.lookups() {
        // A walk over a table smaller than the list of wanted values is cheaper than the lookups.
        Some(lookups) if lookups < table.len() => {
            if let Some(indexes) = single_indexes(table, disjunction) {
                return look_up(table, disjunction, &indexes, visit);
            }
        }
        _ => {}
    }
    table.for_each(|slot, row| {
        if disjunction.is_true || disjunction.matches(row) {
            visit(slot);
        }
    });
}

/// For each column with `==` clauses the index over it alone; `None` unless all have one.
fn single_indexes<'t>(table: &'t Table, disjunction: &Disjunction) -> Option<Vec<&'t Index>> {
    let index_of = |wanted| {
        let mut indexes = table.indexes().iter();
        indexes.find(|index| index.columns() == [wanted])
    };
    disjunction
        .equal
        .iter()
        .map(|(column, _)| index_of(*column))
        .collect()
}

fn look_up(
    table: &Table,
    disjunction: &Disjunction,
    indexes: &[&Index],
    visit: &mut dyn FnMut(Slot),
) {
    let by_uuid = disjunction
        .uuids
        .iter()
        .filter_map(|uuid: &Uuid| table.find(*uuid));
    let by_value = disjunction
        .equal
        .iter()
        .zip(indexes)
        .flat_map(|((_, values), index)| values.iter().map(move |value| (*index, value)))
        .flat_map(|(index, value)| {
            let candidates = index.candidates(std::iter::once(value));
            candidates.filter(move |slot| index.key(table.at(*slot)).eq([value]))
        });
    let mut seen = Set::default();
    for slot in by_uuid.chain(by_value) {
        if seen.insert(slot) {
            visit(slot);
        }
    }
}
