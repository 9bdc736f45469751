//! Indexes of typed replicas, their keys, and cursors.
//!
//! A key is a struct of a row that is in no table. A cursor is a plain value of the program,
//! without an end of its own; the positions of the last [`POSITIONS_MAX`] of an index are kept, and
//! an older one finds its place by its row again.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid::{Cursor, Datum, Direction, IndexColumn, IndexId, Key, Uuid};

use super::cell::{Cell, IndexPlan, Map, State, idl as core};
use super::class::{corvid_idl_column, corvid_idl_row};
use super::idl::{Replica, corvid_idl};
use super::record::Record;
use super::rows::{row_or_null, with_row};
use crate::error::{Failure, guard};
use crate::handle::{self, Kind};
use crate::pointer;
use crate::value::{corvid_atom, unique_datum_of};

/// Positions of cursors that an index keeps.
const POSITIONS_MAX: usize = 64;

/// An index of a typed replica. It lasts as long as the replica and needs no free.
pub struct corvid_idl_index {
    _private: [u8; 0],
}

/// A column of an index, and its direction: 0 ascending, 1 descending.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_idl_index_column {
    /// The column.
    pub column: *const corvid_idl_column,
    /// Null: comparison functions are not supported.
    pub comparer: *const u8,
    /// The direction.
    pub order: c_int,
}

/// A position in an index: a plain value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct corvid_idl_cursor {
    /// The index.
    pub index: *mut corvid_idl_index,
    /// The row that it is at; null at the end.
    pub row: *mut corvid_idl_row,
    /// The number of the position.
    pub position: u64,
}

/// The object behind the handle.
pub(crate) struct Index {
    cell: Arc<Cell>,
    /// Among those of the replica.
    number: usize,
    table: usize,
    positions: Mutex<(u64, VecDeque<(u64, Cursor)>)>,
}

impl Kind for Index {
    type Opaque = corvid_idl_index;
    const NAME: &'static str = "index";
    const IS_CACHED: bool = true;
}

/// A key: its struct, and the columns that were set. The lock of the replica comes before that of
/// the columns.
struct KeyRow {
    /// The memory that the program points to. `None` once the key is freed: threads may still have
    /// the key at hand then, and a freed key must be small.
    record: Mutex<Option<Record>>,
    cell: Arc<Cell>,
    table: usize,
    values: Mutex<KeyValues>,
}

/// The values of a key.
#[derive(Default)]
struct KeyValues {
    /// The columns that were set, by their numbers; nothing for a value that could not be taken.
    set: Vec<(usize, Option<Datum>)>,
    /// The key of the core, by the number of the index that it was last used with. A write keeps it
    /// up to date, so that a look-up makes none.
    made: Option<(usize, Key)>,
}

impl KeyValues {
    /// Sets the column of a number.
    fn write(&mut self, number: usize, column: corvid::Column, value: Option<Datum>) {
        match (&value, &mut self.made) {
            // An index without the column takes no notice.
            (Some(value), Some((_, key))) => {
                key.set(column, value.clone());
            }
            // There is no key with a value that was refused.
            (None, made) => *made = None,
            (Some(_), None) => {}
        }
        match self.set.iter_mut().find(|(other, _)| *other == number) {
            Some((_, present)) => *present = value,
            None => self.set.push((number, value)),
        }
    }

    /// The key of the core for an index of the key's own replica.
    fn key(&mut self, state: &State, index: &Index) -> Result<&Key, Failure> {
        let made = match self.made.take() {
            Some((of, key)) if of == index.number => key,
            _ => self.make(state, index)?,
        };
        Ok(&self.made.insert((index.number, made)).1)
    }

    /// Makes a key of the core for an index.
    fn make(&self, state: &State, index: &Index) -> Result<Key, Failure> {
        let mut key = core(state)?.key(id_of(state, index)?);
        let layout = &state.layout.tables[index.table];
        let columns = &state.indexes[index.number].columns;
        for (number, value) in &self.set {
            let column = layout.columns[*number].column;
            if columns.iter().any(|other| other.column == column) {
                key.set(column, taken(value.as_ref())?.clone());
            }
        }
        Ok(key)
    }
}

impl KeyRow {
    fn values(&self) -> MutexGuard<'_, KeyValues> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of a column that was set. One that could not be taken would match rows with the
/// default, so a key with such a column matches nothing.
fn taken(value: Option<&Datum>) -> Result<&Datum, Failure> {
    let refused = || Failure::argument("the key has an invalid value, so it matches nothing");
    value.ok_or_else(refused)
}

static KEYS: Mutex<Option<Map<usize, Arc<KeyRow>>>> = Mutex::new(None);

/// Grows whenever a key is freed, so that threads look up again which key is at an address.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// The key that a thread used last, by its address, in an epoch.
type Recent = Option<(usize, u64, Arc<KeyRow>)>;

thread_local! {
    static RECENT: RefCell<Recent> = const { RefCell::new(None) };
}

fn keys() -> MutexGuard<'static, Option<Map<usize, Arc<KeyRow>>>> {
    KEYS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with the key whose struct is at an address; `None` without such a key.
fn with_key_at<R>(row: *const corvid_idl_row, work: impl FnOnce(&KeyRow) -> R) -> Option<R> {
    let address = row.addr();
    let epoch = EPOCH.load(Acquire);
    let mut work = Some(work);
    let at_hand = RECENT.try_with(|recent| {
        let recent = recent.try_borrow().ok()?;
        let (of, since, key) = recent.as_ref()?;
        let is_same = (*of, *since) == (address, epoch);
        is_same.then(|| work.take().map(|work| work(key))).flatten()
    });
    if let Ok(Some(outcome)) = at_hand {
        return Some(outcome);
    }
    let key = keys().as_ref()?.get(&address)?.clone();
    let outcome = work.take().map(|work| work(&key));
    // The previous key may be the last count of its replica, so it goes after the borrow.
    let former = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        recent.replace((address, epoch, key))
    });
    drop(former);
    outcome
}

/// Whether a row is a key.
pub(crate) fn is_key(row: *const corvid_idl_row) -> bool {
    with_key_at(row, |_| ()).is_some()
}

/// Makes an index over `n` columns of one table, which must be replicated. Null after a failure. It
/// is freed with the replica.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_index_create(
    replica: *mut corvid_idl,
    columns: *const corvid_idl_index_column,
    n: usize,
) -> *mut corvid_idl_index {
    let mut made = ptr::null_mut();
    guard("corvid_idl_index_create", || {
        let cell = handle::get::<Replica>(replica)?.0.clone();
        let columns = pointer::array(columns, n, "columns")?;
        let (number, table) = cell.with(|state| {
            let mut of_index = Vec::new();
            let mut tables = Vec::new();
            for column in columns {
                if !column.comparer.is_null() {
                    return Err(Failure::argument("comparison functions are not supported"));
                }
                let place = state.layout.column(column.column)?;
                let descends = column.order != 0;
                tables.push(place.0);
                let column = state.column(place);
                of_index.push(if descends {
                    IndexColumn::descending(column)
                } else {
                    IndexColumn::ascending(column)
                });
            }
            let table = *tables
                .first()
                .ok_or_else(|| Failure::argument("there is no column"))?;
            if tables.iter().any(|other| *other != table) {
                return Err(corvid::Misuse::WrongTable.into());
            }
            let id = state.layout.tables[table].table;
            let id = match &mut state.client {
                None => None,
                Some(client) => {
                    let added = client.idl_mut().add_index(id, "", of_index.clone());
                    Some(added.map_err(|e| Failure::argument(e.to_string()))?)
                }
            };
            state.indexes.push(IndexPlan {
                table,
                columns: of_index,
                id,
            });
            Ok((state.indexes.len() - 1, table))
        })?;
        made = handle::store(Index {
            cell,
            number,
            table,
            positions: Mutex::default(),
        })?;
        Ok(())
    });
    made
}

/// Makes a key for an index: a struct without a place in the database, all columns at their
/// defaults. Free it with corvid_idl_index_destroy_row.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_index_init_row(index: *const corvid_idl_index) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_index_init_row", || {
        let index = handle::get::<Index>(index)?;
        let record = index.cell.with(|state| {
            let table = &raw const *state.tables[index.table].handle;
            let layout = &state.layout.tables[index.table];
            let uuid = Uuid(
                [0xde, 0xad, 0xbe, 0xef]
                    .repeat(4)
                    .try_into()
                    .unwrap_or_default(),
            );
            let mut record = Record::new(layout, uuid, table);
            for (number, column) in layout.columns.iter().enumerate() {
                let column_id = column.column;
                let schema = state.layout.schema.table(column_id.table);
                let datum = Datum::default_for(&schema.column(column_id.id).column_type);
                // A new row has no former values.
                let _ = record.fill(number, column, &datum, &|_, _| None);
            }
            Ok(record)
        })?;
        let row = record.row();
        let key = KeyRow {
            record: Mutex::new(Some(record)),
            cell: index.cell.clone(),
            table: index.table,
            values: Mutex::default(),
        };
        let mut keys = keys();
        let keys = keys.get_or_insert_default();
        keys.insert(row.addr(), Arc::new(key));
        Ok(Some(row))
    })
}

/// Frees a key. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_index_destroy_row(row: *const corvid_idl_row) {
    guard("corvid_idl_index_destroy_row", || {
        if row.is_null() {
            return Ok(());
        }
        let key = keys().as_mut().and_then(|keys| keys.remove(&row.addr()));
        // Another key may get the address from now on.
        EPOCH.fetch_add(1, Release);
        let key = key.ok_or_else(no_key)?;
        // Now, and not when the last thread lets the key go: the program's code frees the maps, and
        // it may be unloaded by then.
        let record = key
            .record
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(record);
        *key.values() = KeyValues::default();
        Ok(())
    });
}

/// Sets a column of a key. The members of its struct do not show it. A key with a value that cannot
/// be that of the column matches nothing.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_index_write(
    row: *const corvid_idl_row,
    column: *const corvid_idl_column,
    atoms: *const corvid_atom,
    values: *const corvid_atom,
    count: usize,
) {
    guard("corvid_idl_index_write", || {
        let write = |key: &KeyRow| {
            key.cell.with(|state| {
                let place = state.layout.column(column)?;
                if place.0 != key.table {
                    return Err(corvid::Misuse::WrongTable.into());
                }
                let column = state.column(place);
                let schema = state.layout.schema.table(column.table);
                let column_type = &schema.column(column.id).column_type;
                let (datum, outcome) = match unique_datum_of(atoms, values, count, column_type) {
                    Ok(datum) => (Some(datum), Ok(())),
                    Err(failure) => (None, Err(failure)),
                };
                key.values().write(place.1, column, datum);
                outcome
            })
        };
        with_key_at(row, write).unwrap_or_else(|| Err(no_key()))
    });
}

/// The values of a row or of a key in the columns of an index.
fn values_of(index: &Index, row: *const corvid_idl_row) -> Result<Vec<Datum>, Failure> {
    let columns = |state: &State| {
        let plan = &state.indexes[index.number];
        plan.columns
            .iter()
            .map(|column| column.column)
            .collect::<Vec<_>>()
    };
    let of_key = with_key_of_index(index, row, |key| {
        index.cell.with(|state| {
            let values = key.values();
            let layout = &state.layout.tables[index.table];
            // Without the core, which a replica that has not run yet does not have.
            let value = |column: corvid::Column| {
                let mut columns = layout.columns.iter();
                let number = columns.position(|other| other.column == column);
                let mut set = values.set.iter();
                let set = set.find(|(other, _)| Some(*other) == number);
                let schema = state.layout.schema.table(column.table);
                match set {
                    Some((_, value)) => taken(value.as_ref()).cloned(),
                    None => Ok(Datum::default_for(&schema.column(column.id).column_type)),
                }
            };
            columns(state).into_iter().map(value).collect()
        })
    });
    if let Some(values) = of_key {
        return values;
    }
    with_row(row, |_, state, known| {
        if known.table != index.table {
            return Err(corvid::Misuse::WrongTable.into());
        }
        let id = known.id(state);
        let read = |column| {
            core(state)?
                .read(id, column)
                .ok_or_else(crate::reading::row_gone)
        };
        columns(state).into_iter().map(read).collect()
    })
}

fn id_of(state: &State, index: &Index) -> Result<IndexId, Failure> {
    let id = state.indexes[index.number].id;
    id.ok_or_else(|| Failure::none("the replica has not run yet"))
}

fn key_of(state: &State, index: &Index, values: &[Datum]) -> Result<Key, Failure> {
    let mut key = core(state)?.key(id_of(state, index)?);
    for (column, value) in state.indexes[index.number].columns.iter().zip(values) {
        key.set(column.column, value.clone());
    }
    Ok(key)
}

/// Does something with a key for the table of an index.
fn with_key_of_index<R>(
    index: &Index,
    row: *const corvid_idl_row,
    work: impl FnOnce(&KeyRow) -> R,
) -> Option<R> {
    let is_of_index = |key: &KeyRow| key.table == index.table;
    with_key_at(row, |key| is_of_index(key).then(|| work(key))).flatten()
}

/// Does something with a key, or with a row that stands for its values, as the core has them.
fn with_key<R>(
    index: &Index,
    row: *const corvid_idl_row,
    work: impl FnOnce(&State, &Key) -> Result<R, Failure>,
) -> Result<R, Failure> {
    if with_key_of_index(index, row, |_| ()).is_none() {
        let values = values_of(index, row)?;
        return index.cell.with(|state| {
            let key = key_of(state, index, &values)?;
            work(state, &key)
        });
    }
    let of_key = with_key_of_index(index, row, |key| {
        index.cell.with(|state| {
            let mut values = key.values();
            // Numbers of indexes tell only those of one replica apart, so a key that is used with
            // another replica is made anew each time.
            if !Arc::ptr_eq(&key.cell, &index.cell) {
                return work(state, &values.make(state, index)?);
            }
            work(state, values.key(state, index)?)
        })
    });
    of_key.unwrap_or_else(|| Err(no_key()))
}

fn no_key() -> Failure {
    Failure::argument("the row is not an index key")
}

/// The first row whose columns equal a key, or null.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_index_find(
    index: *const corvid_idl_index,
    key: *const corvid_idl_row,
) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_index_find", || {
        handle::with::<Index, _>(index, |index| {
            with_key(index, key, |state, key| {
                let found = core(state)?.find_values(id_of(state, index)?, key.values());
                Ok(found.and_then(|found| state.shown(index.table, found)))
            })
        })
    })
}

/// Compares two rows or keys as an index does: less than, equal to or greater than 0. Null comes
/// after everything.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_index_compare(
    index: *const corvid_idl_index,
    left: *const corvid_idl_row,
    right: *const corvid_idl_row,
) -> c_int {
    let mut order = Ordering::Equal;
    guard("corvid_idl_index_compare", || {
        let index = handle::get::<Index>(index)?;
        if left.is_null() || right.is_null() {
            order = left.is_null().cmp(&right.is_null());
            return Ok(());
        }
        let (left, right) = (values_of(&index, left)?, values_of(&index, right)?);
        order = index.cell.with(|state| {
            let columns = state.indexes[index.number].columns.iter();
            let orders = columns
                .zip(left.iter().zip(&right))
                .map(|(column, (left, right))| {
                    let order = left.cmp(right);
                    match column.direction {
                        Direction::Ascending => order,
                        Direction::Descending => order.reverse(),
                    }
                });
            Ok(orders.fold(Ordering::Equal, Ordering::then))
        })?;
        Ok(())
    });
    order as c_int
}

/// Stores a position, and returns the cursor that names it.
fn store_position(
    state: &State,
    handle: *mut corvid_idl_index,
    index: &Index,
    cursor: Cursor,
) -> Result<corvid_idl_cursor, Failure> {
    let found = core(state)?.cursor_slot(&cursor);
    let row = found.and_then(|found| state.shown(index.table, found));
    let mut positions = index
        .positions
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    positions.0 += 1;
    let position = positions.0;
    positions.1.push_back((position, cursor));
    if positions.1.len() > POSITIONS_MAX {
        positions.1.pop_front();
    }
    Ok(corvid_idl_cursor {
        index: handle,
        row: row.unwrap_or(ptr::null_mut()),
        position,
    })
}

/// A new cursor.
fn cursor(
    name: &'static str,
    handle: *mut corvid_idl_index,
    key: *const corvid_idl_row,
    place: impl FnOnce(&corvid::Idl, IndexId, Option<&Key>) -> Cursor,
) -> corvid_idl_cursor {
    let mut made = corvid_idl_cursor {
        index: handle,
        row: ptr::null_mut(),
        position: 0,
    };
    guard(name, || {
        let index = handle::get::<Index>(handle)?;
        let open = |state: &State, key: Option<&Key>| {
            let cursor = place(core(state)?, id_of(state, &index)?, key);
            store_position(state, handle, &index, cursor)
        };
        made = if key.is_null() {
            index.cell.with(|state| open(state, None))?
        } else {
            with_key(&index, key, |state, key| open(state, Some(key)))?
        };
        Ok(())
    });
    made
}

/// A cursor at the first row of an index.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_cursor_first(index: *mut corvid_idl_index) -> corvid_idl_cursor {
    cursor(
        "corvid_idl_cursor_first",
        index,
        ptr::null(),
        |idl, index, _| idl.cursor_first(index),
    )
}

/// A cursor at the first row that equals a key, or at the end.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_cursor_first_eq(
    index: *mut corvid_idl_index,
    key: *const corvid_idl_row,
) -> corvid_idl_cursor {
    cursor(
        "corvid_idl_cursor_first_eq",
        index,
        key,
        |idl, index, key| match key {
            Some(key) => idl.cursor_equal(key),
            None => idl.cursor_first(index),
        },
    )
}

/// A cursor at the first row that is not before a key; a null key is before all.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_cursor_first_ge(
    index: *mut corvid_idl_index,
    key: *const corvid_idl_row,
) -> corvid_idl_cursor {
    cursor(
        "corvid_idl_cursor_first_ge",
        index,
        key,
        |idl, index, key| match key {
            Some(key) => idl.cursor_at_least(key),
            None => idl.cursor_first(index),
        },
    )
}

/// Advances a cursor.
fn advance(name: &'static str, cursor: *mut corvid_idl_cursor, is_equal: bool) {
    guard(name, || {
        let held = pointer::array(cursor.cast_const(), 1, "cursor")?[0];
        let index = handle::get::<Index>(held.index)?;
        let mut positions = index
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let place = positions
            .1
            .iter()
            .position(|(number, _)| *number == held.position);
        let kept = place.and_then(|place| positions.1.remove(place));
        drop(positions);
        let mut position = match kept {
            Some((_, position)) => position,
            None => again(&index, held.row)?,
        };
        let next = index.cell.with(|state| {
            let idl = core(state)?;
            if is_equal {
                idl.cursor_next_equal(&mut position);
            } else {
                idl.cursor_next(&mut position);
            }
            store_position(state, held.index, &index, position)
        })?;
        pointer::Out::new(cursor, "cursor")?.set(next);
        Ok(())
    });
}

/// The position of a row.
fn again(index: &Index, row: *mut corvid_idl_row) -> Result<Cursor, Failure> {
    let values = values_of(index, row)?;
    let uuid = with_row(row, |_, _, known| Ok(known.uuid))?;
    index.cell.with(|state| {
        let idl = core(state)?;
        let mut cursor = idl.cursor_at_least(&key_of(state, index, &values)?);
        while idl.cursor_row(&cursor).is_some_and(|row| row.uuid != uuid) {
            idl.cursor_next_equal(&mut cursor);
        }
        Ok(cursor)
    })
}

/// Goes to the next row.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_cursor_next(cursor: *mut corvid_idl_cursor) {
    advance("corvid_idl_cursor_next", cursor, false);
}

/// Goes to the next row if its key is the same, else to the end.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_cursor_next_eq(cursor: *mut corvid_idl_cursor) {
    advance("corvid_idl_cursor_next_eq", cursor, true);
}

/// The row that a cursor is at, or null at the end.
#[unsafe(no_mangle)]
pub extern "C" fn corvid_idl_cursor_data(cursor: *const corvid_idl_cursor) -> *mut corvid_idl_row {
    row_or_null("corvid_idl_cursor_data", || {
        let held = pointer::array(cursor, 1, "cursor")?[0];
        Ok(Some(held.row))
    })
}
