//! Compound indexes: the rows of a table in the order of some of its columns (docs/spec/idl.md 6).
//!
//! Rows compare column by column, each in its direction. Rows that are equal in all columns are
//! ordered by UUID, so the order is total; searches treat such rows as equal. During a transaction
//! an index shows the transaction's view.
//!
//! Locating a position takes about twenty comparisons in a million rows; moving to the next row
//! takes none. A look-up of equal rows takes one comparison if the columns hold at most one element
//! each and use the default order (`first_by_key.rs`). A comparator is called that often, so it
//! must be fast. It must also be pure and total.
//!
//! ```
//! use corvid_data::{Arc, Atom, Datum, Schema};
//! use corvid_idl::{Class, Idl, IndexColumn};
//! use corvid_json::Value;
//!
//! let schema = br#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{
//!     "name":{"type":"string"},"age":{"type":"integer"},"photo":{"type":"string"},
//!     "tags":{"type":{"key":"string","min":0,"max":"unlimited"}}}}}}"#;
//! let schema = Arc::new(Schema::from_json(&Value::parse(schema).unwrap()).unwrap());
//! let mut class = Class::everything(schema);
//! let (name, age) = (class.column("Keeper", "name")?, class.column("Keeper", "age")?);
//! let columns = vec![IndexColumn::ascending(age), IndexColumn::ascending(name)];
//! let by_age = class.add_index(age.table, "by age and name", columns)?;
//!
//! let mut idl = Idl::new(class, 1);
//! idl.begin()?;
//! for (text, years) in [("cid", 40), ("ann", 40), ("bob", 30)] {
//!     let keeper = idl.insert_new(name.table)?;
//!     idl.write(keeper, name, Datum::one(Atom::String(text.into())))?;
//!     idl.write(keeper, age, Datum::one(Atom::Integer(years)))?;
//! }
//! // One row by both columns.
//! let mut key = idl.key(by_age);
//! key.set(age, Datum::one(Atom::Integer(40)));
//! key.set(name, Datum::one(Atom::String("cid".into())));
//! let cid = idl.find(&key).expect("it was inserted");
//! // All rows from 40 years on. A column that is not set has its default: here the empty string,
//! // which sorts first.
//! key.set(name, Datum::one(Atom::String("".into())));
//! assert_eq!(idl.range_of(by_age, Some(&key), None).count(), 2);
//! // The transaction moves rows at once.
//! idl.write(cid, age, Datum::one(Atom::Integer(20)))?;
//! assert_eq!(idl.range_of(by_age, None, None).next(), Some(cid));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use corvid_data::runs::Position;
use corvid_data::{Atom, Datum, Runs, TableId, Uuid};

use crate::class::Column;
use crate::first_by_key::{self, FirstByKey};
use crate::row::Row;

/// Slots of rows in order, in runs of a kilobyte: four to eight bytes a row.
type Order = Runs<u32, 256>;

/// The direction in which a column is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Least value first.
    #[default]
    Ascending,
    /// Greatest value first.
    Descending,
}

/// Compares two values of a column. Must be pure and total.
pub type Comparator = Arc<dyn Fn(&Datum, &Datum) -> Ordering + Send + Sync>;

/// A column of an index.
#[derive(Clone)]
pub struct IndexColumn {
    /// The column.
    pub column: Column,
    /// The direction of the order.
    pub direction: Direction,
    /// How values compare; `None` for the default order: fewer elements first, then element by
    /// element.
    pub comparator: Option<Comparator>,
}

impl IndexColumn {
    /// A column in ascending default order.
    #[must_use]
    pub fn ascending(column: Column) -> IndexColumn {
        IndexColumn {
            column,
            direction: Direction::Ascending,
            comparator: None,
        }
    }

    /// A column in descending default order.
    #[must_use]
    pub fn descending(column: Column) -> IndexColumn {
        IndexColumn {
            direction: Direction::Descending,
            ..IndexColumn::ascending(column)
        }
    }

    /// A map column, in ascending order of the values at one key. Rows without the key come first.
    /// In a [`Key`] the column's value is a map of that one pair.
    #[must_use]
    pub fn at_key(column: Column, key: Atom) -> IndexColumn {
        let compare =
            move |left: &Datum, right: &Datum| left.get(key.as_ref()).cmp(&right.get(key.as_ref()));
        IndexColumn {
            comparator: Some(Arc::new(compare)),
            ..IndexColumn::ascending(column)
        }
    }

    fn compare(&self, left: &Datum, right: &Datum) -> Ordering {
        let order = match &self.comparator {
            None => left.cmp(right),
            Some(compare) => compare(left, right),
        };
        match self.direction {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }
}

impl fmt::Debug for IndexColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexColumn")
            .field("column", &self.column)
            .field("direction", &self.direction)
            .field("has_comparator", &self.comparator.is_some())
            .finish()
    }
}

/// The definition of an index.
#[derive(Debug, Clone)]
pub(crate) struct IndexSpec {
    pub(crate) name: String,
    pub(crate) columns: Vec<IndexColumn>,
    /// All columns hold at most one element each, so hashing a key is cheap.
    pub(crate) is_small: bool,
}

/// An index of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId {
    /// The index's table.
    pub table: TableId,
    /// The index's number within the table, from 0.
    pub number: u16,
}

/// A value for each column of an index, to search with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub(crate) index: IndexId,
    pub(crate) columns: Vec<Column>,
    pub(crate) values: Vec<Datum>,
}

impl Key {
    /// Sets the value for a column; other columns have their defaults. Returns false if the index
    /// does not have the column.
    pub fn set(&mut self, column: Column, value: Datum) -> bool {
        match self.columns.iter().position(|known| *known == column) {
            Some(at) => {
                self.values[at] = value;
                true
            }
            None => false,
        }
    }

    /// The values, in the order of the index's columns.
    #[must_use]
    pub fn values(&self) -> &[Datum] {
        &self.values
    }
}

/// A position in an index that survives changes: at a row, or at the end.
#[derive(Debug, Clone)]
pub struct Cursor {
    pub(crate) index: IndexId,
    /// The row, and the key that it had when the cursor reached it.
    pub(crate) row: Option<(Uuid, Vec<Datum>)>,
    pub(crate) place: Position,
    pub(crate) version: u64,
}

/// An index over the rows of one table. The rows are in slots.
#[derive(Debug)]
pub(crate) struct Index {
    spec: IndexSpec,
    /// Positions of the index's columns within a row.
    places: Vec<usize>,
    order: Order,
    /// `None` if values compare through a comparator, or are large.
    firsts: Option<FirstByKey>,
    /// Increments with each change.
    version: u64,
}

/// The rows by slot. Every slot in an index holds a row.
pub(crate) type Slots = [Option<Row>];

impl Index {
    pub(crate) fn new(spec: IndexSpec, places: Vec<usize>) -> Index {
        let mut columns = spec.columns.iter();
        let has_hash = spec.is_small && columns.all(|column| column.comparator.is_none());
        Index {
            spec,
            places,
            order: Order::default(),
            firsts: has_hash.then(FirstByKey::default),
            version: 0,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn columns(&self) -> &[IndexColumn] {
        &self.spec.columns
    }

    /// Whether the index depends on the column at a position of a row.
    pub(crate) fn uses(&self, place: usize) -> bool {
        self.places.contains(&place)
    }

    pub(crate) fn insert(&mut self, slots: &Slots, slot: u32) {
        if let Some(place) = self.place_of(slots, slot) {
            self.order.insert(place, slot);
            self.version += 1;
            self.insert_first(slots, slot);
        }
    }

    fn insert_first(&mut self, slots: &Slots, slot: u32) {
        let Some(mut firsts) = self.firsts.take() else {
            return;
        };
        let row = |slot: u32| slots[slot as usize].as_ref();
        if let Some(new) = row(slot) {
            firsts.insert(
                slot,
                |other| row(other).map_or(0, |other| self.hash_of(other)),
                |other| row(other).is_some_and(|other| self.compare(other, new).is_eq()),
                |other| row(other).is_some_and(|other| new.uuid < other.uuid),
            );
        }
        self.firsts = Some(firsts);
    }

    fn hash_of(&self, row: &Row) -> u64 {
        first_by_key::hash(self.places.iter().map(|&at| &row.columns[at]))
    }

    /// Removes a row, which must not have changed since it was inserted.
    pub(crate) fn remove(&mut self, slots: &Slots, slot: u32) {
        if let Some(place) = self.place_of(slots, slot) {
            debug_assert_eq!(self.order.get(place), Some(slot), "not where it was put");
            if let Some((hash, next)) = self.first_to_be(slots, slot, place)
                && let Some(firsts) = &mut self.firsts
            {
                firsts.remove(hash, slot, next);
            }
            self.order.remove(place);
            self.version += 1;
        }
    }

    /// The hash of a row's key, and the row after it if that has the same key.
    fn first_to_be(&self, slots: &Slots, slot: u32, place: Position) -> Option<(u64, Option<u32>)> {
        let row = |slot: u32| slots[slot as usize].as_ref();
        let gone = row(slot)?;
        let next = self.order.get(self.order.next(place));
        let has_key = |next: &u32| row(*next).is_some_and(|next| self.compare(next, gone).is_eq());
        Some((self.hash_of(gone), next.filter(has_key)))
    }

    fn place_of(&self, slots: &Slots, slot: u32) -> Option<Position> {
        let row = slots.get(slot as usize)?.as_ref()?;
        Some(self.order.position(|other| {
            slots[other as usize]
                .as_ref()
                .is_some_and(|other| self.compare_rows(other, row).is_lt())
        }))
    }

    /// The total order: by columns, then by UUID.
    fn compare_rows(&self, left: &Row, right: &Row) -> Ordering {
        self.compare(left, right).then(left.uuid.cmp(&right.uuid))
    }

    /// The order by columns alone.
    pub(crate) fn compare(&self, left: &Row, right: &Row) -> Ordering {
        let columns = self.spec.columns.iter().zip(&self.places);
        columns
            .map(|(column, &at)| column.compare(&left.columns[at], &right.columns[at]))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    pub(crate) fn compare_key(&self, row: &Row, key: &[Datum]) -> Ordering {
        let columns = self.spec.columns.iter().zip(&self.places).zip(key);
        columns
            .map(|((column, &at), value)| column.compare(&row.columns[at], value))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The key of a row.
    pub(crate) fn key_of(&self, row: &Row) -> Vec<Datum> {
        self.places
            .iter()
            .map(|&at| row.columns[at].clone())
            .collect()
    }

    /// The first row whose columns equal `key`.
    pub(crate) fn find(&self, slots: &Slots, key: &[Datum]) -> Option<u32> {
        let has_key = |slot: u32| {
            let row = slots.get(slot as usize).and_then(Option::as_ref);
            row.is_some_and(|row| self.compare_key(row, key).is_eq())
        };
        match &self.firsts {
            Some(firsts) => firsts.find(first_by_key::hash(key.iter()), has_key),
            None => {
                let slot = self.order.get(self.lower_bound(slots, key))?;
                has_key(slot).then_some(slot)
            }
        }
    }

    /// The number of distinct keys, if known.
    pub(crate) fn key_count(&self) -> Option<usize> {
        self.firsts.as_ref().map(FirstByKey::len)
    }

    /// The position of the first row that is not less than `key`.
    pub(crate) fn lower_bound(&self, slots: &Slots, key: &[Datum]) -> Position {
        self.order.position(|slot| {
            let row = slots[slot as usize].as_ref();
            row.is_some_and(|row| self.compare_key(row, key).is_lt())
        })
    }

    /// The position after the last row that is not greater than `key`.
    pub(crate) fn upper_bound(&self, slots: &Slots, key: &[Datum]) -> Position {
        self.order.position(|slot| {
            let row = slots[slot as usize].as_ref();
            row.is_some_and(|row| self.compare_key(row, key).is_le())
        })
    }

    /// The position after the row with this key and UUID, whether or not it still exists.
    pub(crate) fn place_after(&self, slots: &Slots, key: &[Datum], uuid: Uuid) -> Position {
        self.order.position(|slot| {
            let row = slots[slot as usize].as_ref();
            row.is_some_and(|row| (self.compare_key(row, key).then(row.uuid.cmp(&uuid))).is_le())
        })
    }

    pub(crate) fn start(&self) -> Position {
        Position::default()
    }

    pub(crate) fn get(&self, place: Position) -> Option<u32> {
        self.order.get(place)
    }

    pub(crate) fn next(&self, place: Position) -> Position {
        self.order.next(place)
    }

    /// Slots from one position to another, or to the end; empty if `to` is before `from`.
    pub(crate) fn iter(
        &self,
        from: Position,
        to: Option<Position>,
    ) -> impl Iterator<Item = u32> + '_ {
        self.order.iter(from, to)
    }
}
