//! The rows that a chain of commands has read and changed.
//!
//! A chain sees its own changes: a row that an earlier command creates, changes or deletes is
//! created, changed or deleted for the later ones. Rows are read from a [`Source`] when they are
//! needed. Invariant: the old value of a column is read once, so all commands agree about it.

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::{ColumnId, ColumnType, Datum, Function, Schema, TableId, TableSchema, Uuid};

use crate::failure::{Failure, Kind};

pub(crate) use corvid_filter::Clause;

/// A row with the values of the columns that were asked for, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// The row.
    pub uuid: Uuid,
    /// The values.
    pub values: Vec<Datum>,
}

/// Reads rows of the database.
pub(crate) trait Source {
    /// The rows of a table that satisfy all clauses.
    ///
    /// # Errors
    /// The server cannot be asked, or refuses.
    fn select(
        &mut self,
        table: &TableSchema,
        clauses: &[Clause],
        columns: &[ColumnId],
    ) -> Result<Vec<Found>, Failure>;
}

/// A change of elements of a set or map that the server makes itself, so that it neither needs the
/// other elements nor disturbs them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Adds elements. A key that the map has already keeps its value.
    Insert(Datum),
    /// Removes elements; pairs of a map only if they have this value.
    Remove(Datum),
    /// Removes the pairs of a map with these keys.
    RemoveKeys(Datum),
}

impl Step {
    /// Changes a value as the server does.
    pub(crate) fn apply(&self, value: &mut Datum) {
        match self {
            Step::Insert(elements) => value.insert_all(elements),
            Step::Remove(elements) => value.remove_all(elements),
            Step::RemoveKeys(keys) => value.remove_keys(keys),
        };
    }
}

/// A row in a chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowState {
    /// Values read from the server.
    pub old: BTreeMap<ColumnId, Datum>,
    /// Values that the chain has written.
    pub new: BTreeMap<ColumnId, Datum>,
    /// Changes of elements, in order, of columns that have no new value as a whole.
    pub steps: BTreeMap<ColumnId, Vec<Step>>,
    /// Columns whose old value the transaction relies on.
    pub relied_on: BTreeSet<ColumnId>,
    /// The chain creates the row.
    pub origin: Origin,
    /// The chain deletes the row.
    pub is_deleted: bool,
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The server.
    #[default]
    Read,
    /// The chain creates it, as the command of this number; the server chooses its UUID.
    Created(usize),
    /// The chain creates it with this UUID.
    CreatedAs(usize),
}

impl RowState {
    /// The value of a column after the chain's changes, if it is known.
    pub(crate) fn value(&self, column: ColumnId) -> Option<Datum> {
        if let Some(written) = self.new.get(&column) {
            return Some(written.clone());
        }
        let mut value = self.old.get(&column)?.clone();
        for step in self.steps.get(&column).into_iter().flatten() {
            step.apply(&mut value);
        }
        Some(value)
    }

    /// The number of the command that creates the row.
    #[must_use]
    pub(crate) fn creator(&self) -> Option<usize> {
        match self.origin {
            Origin::Read => None,
            Origin::Created(command) | Origin::CreatedAs(command) => Some(command),
        }
    }
}

/// Rows as a chain sees them.
pub(crate) struct Contents<'s> {
    schema: &'s Schema,
    source: &'s mut dyn Source,
    rows: BTreeMap<(TableId, Uuid), RowState>,
    /// The columns of which every row of a table has been read.
    complete: BTreeMap<TableId, BTreeSet<ColumnId>>,
    tables_read: BTreeSet<TableId>,
    /// The columns that the chain reads of rows that it names.
    wanted: BTreeMap<TableId, BTreeSet<ColumnId>>,
}

impl<'s> Contents<'s> {
    /// No rows have been read yet.
    pub(crate) fn new(schema: &'s Schema, source: &'s mut dyn Source) -> Contents<'s> {
        Contents {
            schema,
            source,
            rows: BTreeMap::new(),
            complete: BTreeMap::new(),
            tables_read: BTreeSet::new(),
            wanted: BTreeMap::new(),
        }
    }

    /// Reads these columns of a row together with its name.
    pub(crate) fn want(&mut self, table: TableId, columns: &[ColumnId]) {
        self.wanted.entry(table).or_default().extend(columns);
    }

    /// The schema.
    #[must_use]
    pub(crate) fn schema(&self) -> &'s Schema {
        self.schema
    }

    /// The tables of which anything was read.
    #[must_use]
    pub(crate) fn tables_read(&self) -> Vec<TableId> {
        self.tables_read.iter().copied().collect()
    }

    /// All rows that were read or created.
    #[must_use]
    pub(crate) fn states(&self) -> &BTreeMap<(TableId, Uuid), RowState> {
        &self.rows
    }

    /// Rows of a table, among them all that satisfy the clauses, with these columns read. The
    /// caller judges them again, because the chain may have changed them.
    ///
    /// # Errors
    /// The source fails.
    pub(crate) fn rows(
        &mut self,
        table: TableId,
        clauses: &[Clause],
        columns: &[ColumnId],
    ) -> Result<Vec<Uuid>, Failure> {
        self.load(table, clauses, columns)?;
        let range = (table, Uuid([0; 16]))..=(table, Uuid([0xff; 16]));
        let rows = self
            .rows
            .range(range)
            .filter(|(_, state)| !state.is_deleted);
        Ok(rows.map(|((_, uuid), _)| *uuid).collect())
    }

    /// Whether a row exists.
    ///
    /// # Errors
    /// The source fails.
    pub(crate) fn exists(&mut self, table: TableId, uuid: Uuid) -> Result<bool, Failure> {
        if !self.rows.contains_key(&(table, uuid)) {
            self.load(table, &[is_row(uuid)], &[])?;
        }
        Ok(self
            .rows
            .get(&(table, uuid))
            .is_some_and(|state| !state.is_deleted))
    }

    fn load(
        &mut self,
        table: TableId,
        clauses: &[Clause],
        columns: &[ColumnId],
    ) -> Result<(), Failure> {
        let mut own: BTreeSet<ColumnId> = columns.iter().copied().collect();
        if !clauses.is_empty() {
            own.extend(self.wanted.get(&table).into_iter().flatten());
        }
        let own: Vec<ColumnId> = own
            .into_iter()
            .filter(|column| !column.is_standard())
            .collect();
        if let Some(complete) = self.complete.get(&table)
            && own.iter().all(|column| complete.contains(column))
        {
            return Ok(());
        }
        let schema = self.schema.table(table);
        self.tables_read.insert(table);
        for found in self.source.select(schema, clauses, &own)? {
            let state = self.rows.entry((table, found.uuid)).or_default();
            for (column, value) in own.iter().zip(found.values) {
                state.old.entry(*column).or_insert(value);
            }
        }
        if clauses.is_empty() {
            self.complete.entry(table).or_default().extend(own);
        }
        Ok(())
    }

    /// The value of a column.
    ///
    /// # Errors
    /// The source fails, or the row has gone ([`Kind::Conflict`]).
    pub(crate) fn read(
        &mut self,
        table: TableId,
        uuid: Uuid,
        column: ColumnId,
    ) -> Result<Datum, Failure> {
        if column == ColumnId::UUID {
            return Ok(Datum::one(corvid_data::Atom::Uuid(uuid)));
        }
        if let Some(value) = self.known(table, uuid, column) {
            return Ok(value);
        }
        self.load(table, &[is_row(uuid)], &[column])?;
        self.known(table, uuid, column)
            .ok_or_else(|| Failure::new(Kind::Conflict, "the contents keep changing"))
    }

    fn known(&self, table: TableId, uuid: Uuid, column: ColumnId) -> Option<Datum> {
        let state = self.rows.get(&(table, uuid))?;
        state.value(column).or_else(|| {
            let column_type = &self.schema.table(table).column(column).column_type;
            (state.origin != Origin::Read).then(|| Datum::default_for(column_type))
        })
    }

    /// As [`Contents::read`], for a change that is right only if the value is still the same at
    /// the commit.
    ///
    /// # Errors
    /// As for [`Contents::read`].
    pub(crate) fn rely_on(
        &mut self,
        table: TableId,
        uuid: Uuid,
        column: ColumnId,
    ) -> Result<Datum, Failure> {
        let value = self.read(table, uuid, column)?;
        self.rely_on_read(table, uuid, column);
        Ok(value)
    }

    /// Makes the transaction rely on a value that was read before.
    pub(crate) fn rely_on_read(&mut self, table: TableId, uuid: Uuid, column: ColumnId) {
        if let Some(state) = self.rows.get_mut(&(table, uuid))
            && state.old.contains_key(&column)
        {
            state.relied_on.insert(column);
        }
    }

    /// Whether the chain creates the row, so that its columns may all be set.
    #[must_use]
    pub(crate) fn is_created(&self, table: TableId, uuid: Uuid) -> bool {
        let state = self.rows.get(&(table, uuid));
        state.is_some_and(|state| state.origin != Origin::Read)
    }

    /// Whether the database has the row, and the chain deletes it.
    #[must_use]
    pub(crate) fn will_delete(&self, table: TableId, uuid: Uuid) -> bool {
        let state = self.rows.get(&(table, uuid));
        state.is_some_and(|state| state.is_deleted && state.origin == Origin::Read)
    }

    /// Whether the chain gives the column a value, or creates the row.
    #[must_use]
    pub(crate) fn is_written(&self, table: TableId, uuid: Uuid, column: ColumnId) -> bool {
        let state = self.rows.get(&(table, uuid));
        state.is_some_and(|it| it.origin != Origin::Read || it.new.contains_key(&column))
    }

    /// Writes a column.
    pub(crate) fn write(&mut self, table: TableId, uuid: Uuid, column: ColumnId, value: Datum) {
        let state = self.rows.entry((table, uuid)).or_default();
        state.steps.remove(&column);
        state.new.insert(column, value);
    }

    /// Whether changes of single elements of a column can be left to the server: any number of
    /// elements is right, and the column has no new value as a whole.
    #[must_use]
    pub(crate) fn takes_steps(&self, table: TableId, uuid: Uuid, column: ColumnId) -> bool {
        let column_type = &self.schema.table(table).column(column).column_type;
        let is_unlimited = column_type.min == 0 && column_type.max == ColumnType::UNLIMITED;
        is_unlimited && !self.is_written(table, uuid, column)
    }

    /// Changes elements of a column that [takes steps](Contents::takes_steps).
    pub(crate) fn step(&mut self, table: TableId, uuid: Uuid, column: ColumnId, step: Step) {
        let state = self.rows.entry((table, uuid)).or_default();
        state.steps.entry(column).or_default().push(step);
    }

    /// Creates a row.
    pub(crate) fn create(&mut self, table: TableId, uuid: Uuid, origin: Origin) {
        let state = self.rows.entry((table, uuid)).or_default();
        *state = RowState {
            origin,
            ..RowState::default()
        };
    }

    /// Deletes a row.
    pub(crate) fn delete(&mut self, table: TableId, uuid: Uuid) {
        let state = self.rows.entry((table, uuid)).or_default();
        state.is_deleted = true;
    }
}

/// The clause that selects one row.
#[must_use]
pub(crate) fn is_row(uuid: Uuid) -> Clause {
    Clause {
        column: ColumnId::UUID,
        function: Function::Equal,
        argument: Datum::one(corvid_data::Atom::Uuid(uuid)),
    }
}
