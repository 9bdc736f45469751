//! A client's class: its schema, and how the client treats each column (docs/spec/idl.md 1.3).
//!
//! A column is not replicated unless it is added. Everything here is decided before the first connection; a [`Class`] is consumed by
//! [`crate::Idl::new`], so it cannot change after, but for indexes, which may be added at any time ([`crate::Idl::add_index`]).
//!
//! Invariant: only columns that may hold a value in the replica have a place in its rows; the others cost no memory.

use corvid_data::{Arc, BaseType, ColumnId, Schema, TableId};
use corvid_session::{Interest, TableInterest};
use thiserror::Error;

use crate::index::{IndexColumn, IndexId, IndexSpec};
use crate::mistake::Mistake;

/// A column of the client's schema. Only good for the class that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column {
    /// Its table.
    pub table: TableId,
    /// Its position in the table.
    pub id: ColumnId,
}

/// How the client treats a column. By default the column is not replicated: it reads as its default value, and may only be written in rows
/// that the same transaction inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode {
    /// The replica holds it.
    pub is_monitored: bool,
    /// A change of it moves the change number ([`crate::Idl::change_seqno`]). Writes of the present value are sent too if anything
    /// else is; without it they are dropped.
    pub alerts: bool,
    /// A change of it lists the row among the tracked changes.
    pub is_tracked: bool,
    /// Writes of the present value are dropped, though it alerts.
    pub writes_changed_only: bool,
    /// The replica holds the last fetched value.
    pub is_on_demand: bool,
}

impl Mode {
    const MONITOR: Mode = Mode {
        is_monitored: true,
        alerts: true,
        is_tracked: false,
        writes_changed_only: false,
        is_on_demand: false,
    };

    /// Whether rows have a place for it.
    pub(crate) fn is_stored(self) -> bool {
        self.is_monitored || self.is_on_demand
    }

    /// Whether a write of the present value is dropped.
    pub(crate) fn drops_equal_writes(self) -> bool {
        self.writes_changed_only || (self.is_monitored && !self.alerts)
    }
}

/// An error in the definition of a class.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClassError {
    /// No such table.
    #[error("no table named {0}")]
    TableUnknown(String),
    /// No such column.
    #[error("no column named {column} in table {table}")]
    ColumnUnknown {
        /// The table.
        table: String,
        /// The missing column.
        column: String,
    },
    /// An index needs columns, of one table, that the replica holds.
    #[error(
        "an index of table {0} needs at least one column, and only columns that the replica holds"
    )]
    NotIndexable(String),
    /// Names of indexes are unique within a table.
    #[error("an index named {0} already exists")]
    IndexExists(String),
}

/// The client's schema, with a mode for each column.
///
/// ```
/// use corvid_data::{Arc, Schema};
/// use corvid_idl::{Class, IndexColumn};
/// use corvid_json::Value;
///
/// let schema = br#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{
///     "name":{"type":"string"},"age":{"type":"integer"},"photo":{"type":"string"},
///     "tags":{"type":{"key":"string","min":0,"max":"unlimited"}}}}}}"#;
/// let schema = Arc::new(Schema::from_json(&Value::parse(schema).unwrap()).unwrap());
/// let mut class = Class::new(schema);
/// let column = |class: &Class, name: &str| class.column("Keeper", name);
/// let (name, age) = (column(&class, "name")?, column(&class, "age")?);
/// class.add_column(name);                         // held, and its changes move the change number
/// class.track(age);                               // and its changes are listed
/// let tags = column(&class, "tags")?;
/// class.add_column(tags);
/// class.omit_alert(tags);                         // held for writing; its changes wake nobody
/// class.on_demand(column(&class, "photo")?);      // not held until it is fetched
/// class.add_index(age.table, "by age", vec![IndexColumn::descending(age)])?;
/// assert!(class.mode(age).is_tracked && !class.mode(tags).alerts);
/// assert!(class.column("Keeper", "nmae").is_err(), "no column named nmae in table Keeper");
/// # Ok::<(), corvid_idl::ClassError>(())
/// ```
#[derive(Debug)]
pub struct Class {
    pub(crate) schema: Arc<Schema>,
    pub(crate) tables: Vec<TableClass>,
    pub(crate) is_strict: bool,
    /// Those that a class that is not strict let pass.
    pub(crate) mistakes: Vec<Mistake>,
}

/// How the client treats a table.
#[derive(Debug, Default)]
pub(crate) struct TableClass {
    /// Its rows are wanted even without columns.
    pub(crate) is_needed: bool,
    /// By column.
    pub(crate) modes: Vec<Mode>,
    pub(crate) indexes: Vec<IndexSpec>,
}

impl TableClass {
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_needed || self.modes.iter().any(|mode| mode.is_monitored)
    }

    pub(crate) fn tracks(&self) -> bool {
        self.modes.iter().any(|mode| mode.is_tracked)
    }
}

impl Class {
    /// A class that monitors nothing; add tables and columns.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Class {
        let tables = schema.tables().iter();
        let tables = tables
            .map(|table| TableClass {
                modes: vec![Mode::default(); table.columns().len()],
                ..TableClass::default()
            })
            .collect();
        Class {
            schema,
            tables,
            is_strict: cfg!(debug_assertions),
            mistakes: Vec::new(),
        }
    }

    /// A class that monitors every column of every table.
    #[must_use]
    pub fn everything(schema: Arc<Schema>) -> Class {
        let mut class = Class::new(schema);
        for table in &mut class.tables {
            table.is_needed = true;
            table.modes.fill(Mode::MONITOR);
        }
        class
    }

    /// Whether mistakes that would show only as missing values or changes are panics: reading a column that is not replicated, tracking before
    /// adding. The default is panics in builds with debug assertions, warnings in the log in other builds.
    pub fn set_strict(&mut self, is_strict: bool) {
        self.is_strict = is_strict;
    }

    fn mistake(&mut self, mistake: Mistake) {
        assert!(!self.is_strict, "{mistake}");
        self.mistakes.push(mistake);
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// A table by name.
    ///
    /// # Errors
    /// There is none.
    pub fn table(&self, name: &str) -> Result<TableId, ClassError> {
        let id = self.schema.table_id(name);
        id.ok_or_else(|| ClassError::TableUnknown(name.to_owned()))
    }

    /// A column by name.
    ///
    /// # Errors
    /// There is none.
    pub fn column(&self, table: &str, column: &str) -> Result<Column, ClassError> {
        let id = self.table(table)?;
        match self.schema.table(id).column_id(column) {
            Some(found) if !found.is_standard() => Ok(Column {
                table: id,
                id: found,
            }),
            _ => Err(ClassError::ColumnUnknown {
                table: table.to_owned(),
                column: column.to_owned(),
            }),
        }
    }

    /// The mode of a column.
    #[must_use]
    pub fn mode(&self, column: impl Into<Column>) -> Mode {
        let column = column.into();
        self.tables[usize::from(column.table.0)].modes[usize::from(column.id.0)]
    }

    fn mode_mut(&mut self, column: Column) -> &mut Mode {
        &mut self.tables[usize::from(column.table.0)].modes[usize::from(column.id.0)]
    }

    /// Monitors the rows of a table, with or without columns.
    pub fn add_table(&mut self, table: TableId) {
        self.tables[usize::from(table.0)].is_needed = true;
    }

    /// Monitors a column, and the rows that it may refer to, so that dangling references can be recognized. Replaces other modes of it.
    ///
    /// # Panics
    /// Of a strict class ([`Class::set_strict`]): when the column is tracked already, which would end.
    pub fn add_column(&mut self, column: impl Into<Column>) {
        let column = column.into();
        if self.mode(column).is_tracked {
            self.mistake(Mistake::tracking_replaced(&self.schema, column));
        }
        *self.mode_mut(column) = Mode::MONITOR;
        self.need_targets(column);
    }

    fn need_targets(&mut self, column: Column) {
        let column_type = &self
            .schema
            .table(column.table)
            .column(column.id)
            .column_type;
        let target = |base: &BaseType| base.reference.as_ref().map(|reference| reference.table);
        let targets = [
            target(&column_type.key),
            column_type.value.as_ref().and_then(target),
        ];
        for table in targets.into_iter().flatten() {
            self.add_table(table);
        }
    }

    /// Removes a column from the replica.
    pub fn omit(&mut self, column: impl Into<Column>) {
        *self.mode_mut(column.into()) = Mode::default();
    }

    /// Holds a column without alerts on its changes: for columns that only this client writes.
    pub fn omit_alert(&mut self, column: impl Into<Column>) {
        let mode = self.mode_mut(column.into());
        (mode.alerts, mode.is_tracked) = (false, false);
    }

    /// Tracks changes of a column; monitors it if it was not.
    pub fn track(&mut self, column: impl Into<Column>) {
        let column = column.into();
        if !self.mode(column).alerts {
            self.add_column(column);
        }
        self.mode_mut(column).is_tracked = true;
    }

    /// Tracks changes of every column that is monitored with alerts by now.
    ///
    /// # Panics
    /// Of a strict class ([`Class::set_strict`]): when none is.
    pub fn track_all(&mut self) {
        let mut is_any = false;
        for mode in self.tables.iter_mut().flat_map(|table| &mut table.modes) {
            mode.is_tracked |= mode.is_monitored && mode.alerts;
            is_any |= mode.is_tracked;
        }
        if !is_any {
            self.mistake(Mistake::NothingToTrack);
        }
    }

    /// Drops writes of the present value to a column, or not.
    pub fn set_write_changed_only(&mut self, column: impl Into<Column>, is_set: bool) {
        self.mode_mut(column.into()).writes_changed_only = is_set;
    }

    /// Holds the fetched values of a column ([`crate::Idl::fetch_row`] and the like). Replaces other modes of it.
    pub fn on_demand(&mut self, column: impl Into<Column>) {
        let column = column.into();
        *self.mode_mut(column) = Mode {
            is_on_demand: true,
            ..Mode::default()
        };
        self.add_table(column.table);
        self.need_targets(column);
    }

    /// Keeps the rows of a table in the order of some of its columns. See [`crate::index`].
    ///
    /// # Errors
    /// There are no columns, one of them is of another table or not held, or the name is taken. An empty name is no name.
    pub fn add_index(
        &mut self,
        table: TableId,
        name: &str,
        columns: Vec<IndexColumn>,
    ) -> Result<IndexId, ClassError> {
        let class = &mut self.tables[usize::from(table.0)];
        let is_held = |column: &IndexColumn| {
            let mode = class.modes.get(usize::from(column.column.id.0));
            column.column.table == table && mode.is_some_and(|mode| mode.is_stored())
        };
        if columns.is_empty() || !columns.iter().all(is_held) {
            let table = self.schema.table(table).name.to_string();
            return Err(ClassError::NotIndexable(table));
        }
        if !name.is_empty() && class.indexes.iter().any(|index| index.name == name) {
            return Err(ClassError::IndexExists(name.to_owned()));
        }
        let is_small = columns.iter().all(|column| {
            let id = column.column.id;
            self.schema.table(table).column(id).column_type.max == 1
        });
        let number = u16::try_from(class.indexes.len()).unwrap_or(u16::MAX);
        class.indexes.push(IndexSpec {
            name: name.to_owned(),
            columns,
            is_small,
        });
        Ok(IndexId { table, number })
    }

    /// The tables and columns that the session monitors.
    pub(crate) fn interest(&self) -> Interest {
        let tables = self.schema.iter().zip(&self.tables);
        Interest::Tables(
            tables
                .filter(|(_, class)| class.is_wanted())
                .map(|((_, table), class)| TableInterest {
                    name: table.name.clone(),
                    columns: (table.columns().iter().zip(&class.modes))
                        .filter(|(_, mode)| mode.is_monitored)
                        .map(|(column, _)| column.name.clone())
                        .collect(),
                })
                .collect(),
        )
    }
}
