//! Reads the replica: rows, values, indexes. While a transaction is open, reads see its changes.

use std::ops::Range;

use corvid_data::{Arc, ColumnId, ColumnSchema, Datum, Schema, TableId, Uuid};

use super::Idl;
use crate::class::{ClassError, Column};
use crate::index::{Cursor, Index, IndexColumn, IndexId, Key};
use crate::mistake::Mistake;
use crate::row::{Row, RowId, RowVersion};
use crate::txn::RowState;
use crate::view::RowView;

/// Rows and values.
impl Idl {
    /// The rows of a table, in no particular order.
    pub fn rows(&self, table: TableId) -> impl Iterator<Item = RowId> + '_ {
        let rows = self.replica.table(table).iter();
        rows.map(move |row| RowId {
            table,
            uuid: row.uuid,
        })
    }

    /// Views of the rows of a table, in no particular order.
    pub fn views(&self, table: TableId) -> impl Iterator<Item = RowView<'_>> + '_ {
        let rows = self.replica.table(table).iter();
        rows.map(move |row| self.view_of(table, row))
    }

    /// Views of the rows in these slots ([`Idl::slot`]), for callers that read a large table in
    /// pieces. A row keeps its slot until it
    /// is deleted.
    pub fn views_in(
        &self,
        table: TableId,
        slots: Range<usize>,
    ) -> impl Iterator<Item = RowView<'_>> + '_ {
        let all = self.replica.table(table).slots();
        let end = slots.end.min(all.len());
        let rows = all.get(slots.start..end).unwrap_or_default();
        let rows = rows.iter().flatten();
        rows.map(move |row| self.view_of(table, row))
    }

    /// The number of slots of a table: every row's slot is below it.
    #[must_use]
    pub fn slot_count(&self, table: TableId) -> usize {
        self.replica.table(table).slots().len()
    }

    /// A view of a row, to read several columns with one look-up.
    #[must_use]
    pub fn view(&self, row: RowId) -> Option<RowView<'_>> {
        let held = self.replica.table(row.table).get(row.uuid)?;
        Some(self.view_of(row.table, held))
    }

    fn view_of<'a>(&'a self, table: TableId, row: &'a Row) -> RowView<'a> {
        let uuid = row.uuid;
        RowView {
            id: RowId { table, uuid },
            row,
            layout: self.replica.layout(table),
        }
    }

    /// The number of rows of a table.
    #[must_use]
    pub fn row_count(&self, table: TableId) -> usize {
        self.replica.table(table).len()
    }

    /// Looks up a row by UUID, and so resolves references. A reference to a row that the replica
    /// lacks (not monitored, outside the condition, deleted) gives `None`.
    #[must_use]
    pub fn row(&self, table: TableId, uuid: Uuid) -> Option<RowId> {
        let is_there = self.replica.table(table).contains(uuid);
        is_there.then_some(RowId { table, uuid })
    }

    /// The slot of a row: a number below the most rows that its table has had at one time, which no
    /// other present row of the table has. A deleted row gives its slot up, and may get another one
    /// if its deletion is undone. Callers that keep something by slot compare the row's UUID.
    #[must_use]
    pub fn slot(&self, row: RowId) -> Option<usize> {
        let slot = self.replica.table(row.table).slot(row.uuid)?;
        Some(slot as usize)
    }

    /// The version of a row. It is current ([`Idl::is_current`]) until the row changes, by the
    /// server, the open transaction or the end of one, or is deleted.
    #[must_use]
    pub fn version(&self, row: RowId) -> Option<RowVersion> {
        let table = self.replica.table(row.table);
        let slot = table.slot(row.uuid)?;
        Some(RowVersion {
            table: row.table,
            slot,
            number: table.version(slot),
        })
    }

    /// Whether a row is there and as it was when it had a version, so that what was computed from
    /// its columns still holds. Costs no look-up.
    #[must_use]
    pub fn is_current(&self, version: RowVersion) -> bool {
        self.replica.table(version.table).version(version.slot) == version.number
    }

    /// The value of a column, or its default if the replica does not hold it. `None` if the row
    /// does not exist or the column belongs to another table. A row that was deleted since
    /// [`Idl::clear_changes`] reads as it was last, if its table is tracked.
    ///
    /// Cloning a datum of any size costs one reference count.
    ///
    /// # Panics
    /// In a strict class ([`crate::Class::set_strict`], the default in builds with debug
    /// assertions), if the column is not replicated: the server's value is unknown then. Without
    /// strict checks the call returns the default and logs a warning.
    #[must_use]
    pub fn read(&self, row: RowId, column: Column) -> Option<Datum> {
        if row.table != column.table {
            return None;
        }
        let held = self.held(row)?;
        if let Some(place) = self.replica.layout(row.table).place(column.id) {
            return Some(held.columns[place].clone());
        }
        let open = self.open.as_ref();
        let unstored = open.and_then(|open| open.rows.get(&row)?.unstored.get(&column.id));
        if let Some(value) = unstored {
            return Some(value.clone());
        }
        // All columns of a row that is being inserted are known.
        if !open.is_some_and(|open| open.is_new(row)) {
            self.read_unreplicated(column);
        }
        Some(Datum::default_for(&self.column(column).column_type))
    }

    /// Whether [`Idl::read`] returns what the database holds, as opposed to the default of a column
    /// that is not replicated. True for every column of a row that the open transaction inserted.
    #[must_use]
    pub fn is_known(&self, row: RowId, column: Column) -> bool {
        let is_held = self.replica.layout(row.table).place(column.id).is_some();
        is_held || self.open.as_ref().is_some_and(|open| open.is_new(row))
    }

    #[cold]
    fn read_unreplicated(&self, column: Column) {
        let class = &self.replica.class;
        assert!(
            !class.is_strict,
            "{}",
            Mistake::not_replicated(&class.schema, column)
        );
        self.unreplicated_reads.record(column);
    }

    /// The value of a column without the open transaction's changes. `None` for a row that the
    /// transaction inserted and for a column that the replica does not hold.
    #[must_use]
    pub fn read_committed(&self, row: RowId, column: Column) -> Option<&Datum> {
        if row.table != column.table {
            return None;
        }
        match &self.open {
            Some(open) => open.committed(&self.replica, row, column.id),
            None => {
                let place = self.replica.layout(row.table).place(column.id)?;
                Some(&self.replica.table(row.table).get(row.uuid)?.columns[place])
            }
        }
    }

    /// The row, or the last contents of a tracked row that was deleted.
    fn held(&self, row: RowId) -> Option<&Row> {
        let table = self.replica.table(row.table);
        table.get(row.uuid).or_else(|| {
            let watch = &self.replica.watches[usize::from(row.table.0)];
            let tracked = watch.track.get(row.uuid);
            let latest = || watch.latest.as_ref()?.get(row.uuid);
            tracked.or_else(latest)?.last.as_ref()
        })
    }

    /// The schema of a column.
    #[must_use]
    pub fn column(&self, column: Column) -> &ColumnSchema {
        let table = self.replica.class.schema.table(column.table);
        table.column(column.id)
    }

    /// Whether a column of a row can be written: it is mutable, or the open transaction inserted
    /// the row.
    #[must_use]
    pub fn is_mutable(&self, row: RowId, column: Column) -> bool {
        self.column(column).mutable || self.open.as_ref().is_some_and(|open| open.is_new(row))
    }

    /// Whether the open transaction deleted a row.
    #[must_use]
    pub fn is_deleted_here(&self, row: RowId) -> bool {
        let touched = self.open.as_ref().and_then(|open| open.rows.get(&row));
        touched.is_some_and(|touched| {
            matches!(touched.state, RowState::Deleted(_) | RowState::Vanished)
        })
    }

    /// The columns of a table that the replica holds.
    pub fn held_columns(&self, table: TableId) -> impl Iterator<Item = ColumnId> + '_ {
        let columns = self.replica.class.schema.table(table).iter();
        let ids = columns.map(|(id, _)| id);
        ids.filter(move |id| self.replica.layout(table).place(*id).is_some())
    }

    /// The schema of the last server; `None` until the first server has sent it. It includes tables
    /// that the client does not monitor.
    #[must_use]
    pub fn server_schema(&self) -> Option<&Arc<Schema>> {
        Some(self.replica.plan()?.schema())
    }

    /// Whether the last server has a table.
    #[must_use]
    pub fn server_has_table(&self, table: TableId) -> bool {
        let name = &self.replica.class.schema.table(table).name;
        self.replica
            .plan()
            .is_some_and(|plan| plan.schema().table_id(name).is_some())
    }

    /// A column in the last server's schema; `None` if the server lacks it.
    #[must_use]
    pub fn server_column(&self, column: Column) -> Option<ColumnSchema> {
        let own = self.replica.class.schema.table(column.table);
        let schema: &Arc<_> = self.replica.plan()?.schema();
        let table = schema.table(schema.table_id(&own.name)?);
        let id = table.column_id(&own.column(column.id).name)?;
        Some(table.column(id).clone())
    }
}

/// A test aid.
impl Idl {
    /// Rebuilds everything that is derived from the rows and compares it. Costs as much as loading
    /// all contents.
    ///
    /// # Errors
    /// A description of a difference, which is a bug in this library.
    pub fn check_consistency(&self) -> Result<(), String> {
        crate::invariants::check(&self.replica, self.open.is_some())
    }
}

/// Indexes.
impl Idl {
    /// Creates an index over the existing rows; otherwise like [`crate::Class::add_index`]. Costs
    /// one search per row.
    ///
    /// # Errors
    /// Those of [`crate::Class::add_index`].
    pub fn add_index(
        &mut self,
        table: TableId,
        name: &str,
        columns: Vec<IndexColumn>,
    ) -> Result<IndexId, ClassError> {
        let id = self.replica.class.add_index(table, name, columns)?;
        self.replica.add_index(id);
        Ok(id)
    }

    /// Looks up an index of a table by name.
    #[must_use]
    pub fn index(&self, table: TableId, name: &str) -> Option<IndexId> {
        let indexes = &self.replica.table(table).indexes;
        let at = indexes.iter().position(|index| index.name() == name)?;
        let number = u16::try_from(at).ok()?;
        Some(IndexId { table, number })
    }

    fn index_of(&self, id: IndexId) -> &Index {
        &self.replica.table(id.table).indexes[usize::from(id.number)]
    }

    /// A key for an index, with every column at its default.
    #[must_use]
    pub fn key(&self, index: IndexId) -> Key {
        let columns = self.index_of(index).columns().iter();
        let columns: Vec<Column> = columns.map(|column| column.column).collect();
        let default = |column: &Column| Datum::default_for(&self.column(*column).column_type);
        Key {
            index,
            values: columns.iter().map(default).collect(),
            columns,
        }
    }

    /// The number of rows in an index, which is that of its table.
    #[must_use]
    pub fn index_len(&self, index: IndexId) -> usize {
        self.index_of(index).len()
    }

    /// The first row whose columns equal a key.
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<RowId> {
        let (row, _) = self.find_values(key.index, &key.values)?;
        Some(row)
    }

    /// As [`Idl::find`], by one value for each column of the index and without a key. Also returns
    /// the row's slot ([`Idl::slot`]). `None` for another number of values.
    #[must_use]
    pub fn find_values(&self, index: IndexId, values: &[Datum]) -> Option<(RowId, usize)> {
        let (table, sorted) = (self.replica.table(index.table), self.index_of(index));
        if values.len() != sorted.columns().len() {
            return None;
        }
        let slot = sorted.find(table.slots(), values)?;
        let uuid = table.at(slot)?.uuid;
        let row = RowId {
            table: index.table,
            uuid,
        };
        Some((row, slot as usize))
    }

    /// The rows whose columns equal a key, ordered by UUID.
    pub fn equal<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = RowId> + 'a {
        self.range_of(key.index, Some(key), Some(key))
    }

    /// The rows from one key to another, both included, in the order of the index; `None` means no
    /// bound. If the first column descends, `from` has the greater value. Keys compare column by
    /// column, so a bound applies to the columns as one sequence, not to each column separately.
    pub fn range_of<'a>(
        &'a self,
        index: IndexId,
        from: Option<&'a Key>,
        to: Option<&'a Key>,
    ) -> impl Iterator<Item = RowId> + 'a {
        self.views_of(index, from, to).map(|row| row.id())
    }

    /// The rows of [`Idl::range_of`] as views, whose columns cost no look-up by UUID.
    pub fn views_of<'a>(
        &'a self,
        index: IndexId,
        from: Option<&'a Key>,
        to: Option<&'a Key>,
    ) -> impl Iterator<Item = RowView<'a>> + 'a {
        let (table, sorted) = (self.replica.table(index.table), self.index_of(index));
        let place = match from {
            Some(key) => sorted.lower_bound(table.slots(), &key.values),
            None => sorted.start(),
        };
        // The end is located once, so that each row costs no comparison.
        let end = to.map(|key| sorted.upper_bound(table.slots(), &key.values));
        let rows = sorted.iter(place, end).filter_map(|slot| table.at(slot));
        rows.map(move |row| self.view_of(index.table, row))
    }

    /// Compares two rows in the order of an index, ignoring UUIDs. A missing row sorts after every
    /// existing one.
    #[must_use]
    pub fn compare(
        &self,
        index: IndexId,
        left: Option<RowId>,
        right: Option<RowId>,
    ) -> std::cmp::Ordering {
        let held = |row: Option<RowId>| self.replica.table(index.table).get(row?.uuid);
        match (held(left), held(right)) {
            (Some(left), Some(right)) => self.index_of(index).compare(left, right),
            (left, right) => right.is_some().cmp(&left.is_some()),
        }
    }

    /// Compares a row with a key in the order of the key's index. `None` if the row does not exist
    /// or is of another table.
    #[must_use]
    pub fn compare_key(&self, row: RowId, key: &Key) -> Option<std::cmp::Ordering> {
        let held = self.replica.table(row.table).get(row.uuid)?;
        (row.table == key.index.table)
            .then(|| self.index_of(key.index).compare_key(held, &key.values))
    }
}

/// Cursors: for callers that cannot hold an iterator while they change the rows that they visit.
impl Idl {
    /// A cursor at the first row of an index.
    #[must_use]
    pub fn cursor_first(&self, index: IndexId) -> Cursor {
        self.cursor_at(index, self.index_of(index).start())
    }

    /// A cursor at the first row that is not before a key in the order of the index.
    #[must_use]
    pub fn cursor_at_least(&self, key: &Key) -> Cursor {
        let slots = self.replica.table(key.index.table).slots();
        let place = self.index_of(key.index).lower_bound(slots, &key.values);
        self.cursor_at(key.index, place)
    }

    /// A cursor at the first row that equals a key, or at the end.
    #[must_use]
    pub fn cursor_equal(&self, key: &Key) -> Cursor {
        let mut cursor = self.cursor_at_least(key);
        let row = self.cursor_row(&cursor);
        let is_equal = row.is_some_and(|row| {
            self.compare_key(row, key)
                .is_some_and(std::cmp::Ordering::is_eq)
        });
        if !is_equal {
            cursor.row = None;
        }
        cursor
    }

    fn cursor_at(&self, index: IndexId, place: corvid_data::runs::Position) -> Cursor {
        let sorted = self.index_of(index);
        let slot = sorted.get(place);
        let row = slot.and_then(|slot| self.replica.table(index.table).at(slot));
        Cursor {
            index,
            row: row.map(|row| (row.uuid, sorted.key_of(row))),
            place,
            version: sorted.version(),
        }
    }

    /// The row at a cursor, if it still exists.
    #[must_use]
    pub fn cursor_row(&self, cursor: &Cursor) -> Option<RowId> {
        let (row, _) = self.cursor_slot(cursor)?;
        Some(row)
    }

    /// As [`Idl::cursor_row`], with the row's slot ([`Idl::slot`]).
    #[must_use]
    pub fn cursor_slot(&self, cursor: &Cursor) -> Option<(RowId, usize)> {
        let (table, uuid) = (cursor.index.table, cursor.row.as_ref()?.0);
        let row = RowId { table, uuid };
        let sorted = self.index_of(cursor.index);
        // While the index is unchanged, the place still has the row: no look-up by UUID.
        let slot = if sorted.version() == cursor.version {
            sorted.get(cursor.place)? as usize
        } else {
            self.slot(row)?
        };
        Some((row, slot))
    }

    /// Moves to the row after the position that the cursor's row had when the cursor reached it,
    /// even if that row has moved or was deleted since.
    pub fn cursor_next(&self, cursor: &mut Cursor) {
        let Some((uuid, key)) = &cursor.row else {
            return;
        };
        let sorted = self.index_of(cursor.index);
        let place = if sorted.version() == cursor.version {
            sorted.next(cursor.place)
        } else {
            let slots = self.replica.table(cursor.index.table).slots();
            sorted.place_after(slots, key, *uuid)
        };
        *cursor = self.cursor_at(cursor.index, place);
    }

    /// Moves like [`Idl::cursor_next`], but to the end if the next row has a different key.
    pub fn cursor_next_equal(&self, cursor: &mut Cursor) {
        let Some((_, key)) = cursor.row.clone() else {
            return;
        };
        self.cursor_next(cursor);
        let sorted = self.index_of(cursor.index);
        let held = cursor
            .row
            .as_ref()
            .and_then(|(uuid, _)| self.replica.table(cursor.index.table).get(*uuid));
        if !held.is_some_and(|held| sorted.compare_key(held, &key).is_eq()) {
            cursor.row = None;
        }
    }
}
