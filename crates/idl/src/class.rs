//! A client's class: its schema, and how the client treats each column (docs/spec/idl.md 1.3).
//!
//! A column is replicated only if it is added. Everything here is decided before the first
//! connection: [`crate::Idl::new`] consumes the [`Class`]. Only indexes may be added later
//! ([`crate::Idl::add_index`]).
//!
//! Invariant: the replica's rows have a position only for columns that can hold a value. Other
//! columns cost no memory.

use corvid_data::{Arc, BaseType, ColumnId, Schema, TableId};
use corvid_session::{Interest, TableInterest};
use thiserror::Error;

use crate::index::{IndexColumn, IndexId, IndexSpec};
use crate::mistake::Mistake;

/// A column of the client's schema. Valid only for the class that it was looked up in, and for
/// classes of the same schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column {
    /// The table that the column belongs to.
    pub table: TableId,
    /// The column's position in the table.
    pub id: ColumnId,
}

/// How the client treats a column. By default a column is not replicated. It then reads as its
/// default value, and can be written only in rows that the same transaction inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode {
    /// The replica holds the column.
    pub is_monitored: bool,
    /// A change of the column increments the change number ([`crate::Idl::change_seqno`]). A write
    /// of the current value is sent if the transaction changes anything else; without alerts such
    /// writes are dropped.
    pub alerts: bool,
    /// A change of the column lists its row among the tracked changes.
    pub is_tracked: bool,
    /// Writes of the current value are dropped even though the column alerts.
    pub writes_changed_only: bool,
    /// The replica holds the column's last fetched value.
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

    /// Whether rows have a position for the column.
    pub(crate) fn is_stored(self) -> bool {
        self.is_monitored || self.is_on_demand
    }

    /// Whether a write of the current value is dropped.
    pub(crate) fn drops_equal_writes(self) -> bool {
        self.writes_changed_only || (self.is_monitored && !self.alerts)
    }
}

/// An error in the definition of a class.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClassError {
    /// The schema has no table of this name.
    #[error("no table named {0}")]
    TableUnknown(String),
    /// The table has no column of this name.
    #[error("no column named {column} in table {table}")]
    ColumnUnknown {
        /// The table's name.
        table: String,
        /// The missing column's name.
        column: String,
    },
    /// An index needs at least one column, and only columns of its table that the replica holds.
    /// Carries the table's name.
    #[error(
        "an index of table {0} needs at least one column, and only columns that the replica holds"
    )]
    NotIndexable(String),
    /// Another index of the table has this name.
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
/// class.omit_alert(tags);                         // held for writing; its changes are silent
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
    /// Mistakes that a class without strict checks tolerates and logs.
    pub(crate) mistakes: Vec<Mistake>,
}

/// How the client treats a table.
#[derive(Debug, Default)]
pub(crate) struct TableClass {
    /// Whether the table's rows are replicated even if none of its columns is.
    pub(crate) is_needed: bool,
    /// One mode per column, in schema order.
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
    /// A class that monitors nothing yet; add tables and columns.
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

    /// Sets whether mistakes panic that would otherwise show only as missing values or changes:
    /// reading a column that is not replicated, tracking before adding. By default they panic in
    /// builds with debug assertions, and are logged as warnings in other builds.
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

    /// Looks up a table by name.
    ///
    /// # Errors
    /// The schema has no such table.
    pub fn table(&self, name: &str) -> Result<TableId, ClassError> {
        let id = self.schema.table_id(name);
        id.ok_or_else(|| ClassError::TableUnknown(name.to_owned()))
    }

    /// Looks up a column by name.
    ///
    /// # Errors
    /// The schema has no such table, or the table no such column.
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

    /// Monitors the rows of a table, even if none of its columns is monitored.
    pub fn add_table(&mut self, table: TableId) {
        self.tables[usize::from(table.0)].is_needed = true;
    }

    /// Monitors a column. Also monitors the rows that the column may refer to, so that dangling
    /// references are recognized. Replaces any other mode of the column.
    ///
    /// # Panics
    /// In a strict class ([`Class::set_strict`]), if the column is already tracked: the call would
    /// end the tracking.
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

    /// Replicates a column without alerts on its changes: for columns that only this client writes.
    pub fn omit_alert(&mut self, column: impl Into<Column>) {
        let mode = self.mode_mut(column.into());
        (mode.alerts, mode.is_tracked) = (false, false);
    }

    /// Tracks changes of a column. Also monitors the column, with alerts, if it was not monitored
    /// that way.
    pub fn track(&mut self, column: impl Into<Column>) {
        let column = column.into();
        if !self.mode(column).alerts {
            self.add_column(column);
        }
        self.mode_mut(column).is_tracked = true;
    }

    /// Tracks changes of every column that is monitored with alerts so far.
    ///
    /// # Panics
    /// In a strict class ([`Class::set_strict`]), if there is no such column.
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

    /// Sets whether writes of the current value to a column are dropped.
    pub fn set_write_changed_only(&mut self, column: impl Into<Column>, is_set: bool) {
        self.mode_mut(column.into()).writes_changed_only = is_set;
    }

    /// Replicates only the values of a column that the program fetches ([`crate::Idl::fetch_row`],
    /// [`crate::Idl::fetch_column`], [`crate::Idl::fetch_table`]). Replaces any other mode of the
    /// column.
    pub fn on_demand(&mut self, column: impl Into<Column>) {
        let column = column.into();
        *self.mode_mut(column) = Mode {
            is_on_demand: true,
            ..Mode::default()
        };
        self.add_table(column.table);
        self.need_targets(column);
    }

    /// Keeps the rows of a table in the order of some of its columns. See [`crate::index`]. An
    /// empty `name` leaves the index unnamed.
    ///
    /// # Errors
    /// There are no columns, a column belongs to another table or is not replicated, or another
    /// index of the table has this name.
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
