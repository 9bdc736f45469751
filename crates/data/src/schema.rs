//! Schemas as the engine uses them: tables and columns by small numbers, with names looked up once
//! (docs/spec/protocol.md 3).
//!
//! Invariant: tables and columns are sorted by name and their ids are their indexes, so a sorted
//! message names them in order. A schema never changes; a conversion makes another. Its JSON form
//! is in [`crate::schema_json`].

use std::sync::LazyLock;

use crate::{AtomType, ColumnType, Str, TrustedKeys};

/// Ids by name. Names come from schemas, which administrators write. The keys are bytes, because a
/// name in a message need not be valid UTF-8.
type Names<T> = hashbrown::HashMap<Box<[u8]>, T, TrustedKeys>;

/// A table's index in its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u16);

/// A column's index in its table, or one of the two standard columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u16);

impl ColumnId {
    /// `_uuid`
    pub const UUID: ColumnId = ColumnId(u16::MAX);
    /// `_version`
    pub const VERSION: ColumnId = ColumnId(u16::MAX - 1);

    /// Whether the column is `_uuid` or `_version`.
    #[must_use]
    pub fn is_standard(self) -> bool {
        self >= ColumnId::VERSION
    }
}

/// A database schema. Tables are sorted by name.
#[derive(Clone, Debug)]
pub struct Schema {
    /// `name`
    pub name: Str,
    /// `version`, or empty
    pub version: String,
    /// `cksum`, or empty
    pub cksum: String,
    tables: Vec<TableSchema>,
    by_name: Names<TableId>,
}

/// A table schema. Columns are sorted by name.
#[derive(Clone, Debug)]
pub struct TableSchema {
    /// The table's name.
    pub name: Str,
    /// `mutable`: stored and returned, but not enforced.
    pub mutable: bool,
    /// Whether the table is in the root set, after the rule of docs/spec/protocol.md 3.2.
    pub is_root: bool,
    /// `maxRows`; [`u32::MAX`] if unlimited.
    pub max_rows: u32,
    /// Column lists whose values must be unique. They may name [`ColumnId::UUID`].
    pub indexes: Vec<Vec<ColumnId>>,
    columns: Vec<ColumnSchema>,
    by_name: Names<ColumnId>,
}

/// A column schema, after the silent adjustments of docs/spec/protocol.md 3.3.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSchema {
    /// The column's name.
    pub name: Str,
    /// The column's type.
    pub column_type: ColumnType,
    /// The column may change after insertion.
    pub mutable: bool,
    /// The column is written to the log (it is not `ephemeral`).
    pub persistent: bool,
}

impl Schema {
    /// All tables, in the order of [`TableId`].
    #[must_use]
    pub fn tables(&self) -> &[TableSchema] {
        &self.tables
    }

    /// All tables with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (TableId, &TableSchema)> {
        (0u16..).map(TableId).zip(&self.tables)
    }

    /// A table by id. Ids must come from this schema.
    #[must_use]
    pub fn table(&self, id: TableId) -> &TableSchema {
        &self.tables[usize::from(id.0)]
    }

    /// A table by name.
    #[must_use]
    pub fn table_id(&self, name: &str) -> Option<TableId> {
        self.table_named(name.as_bytes())
    }

    /// Looks up a table, as [`Schema::table_id`] does, by a name in bytes, as messages have it.
    #[must_use]
    pub fn table_named(&self, name: &[u8]) -> Option<TableId> {
        self.by_name.get(name).copied()
    }

    /// The parts, for the parser, which resolves references once all tables are known.
    pub(crate) fn parts_mut(&mut self) -> (&mut [TableSchema], &Names<TableId>) {
        (&mut self.tables, &self.by_name)
    }

    /// Assembles a schema from parsed parts. `tables` must be sorted by name.
    #[must_use]
    pub fn from_parts(
        name: Str,
        version: String,
        cksum: String,
        tables: Vec<TableSchema>,
    ) -> Schema {
        let by_name = (0u16..)
            .zip(&tables)
            .map(|(id, table)| (table.name.as_bytes().into(), TableId(id)))
            .collect();
        Schema {
            name,
            version,
            cksum,
            tables,
            by_name,
        }
    }
}

impl TableSchema {
    /// Assembles a table schema. `columns` must be sorted by name.
    #[must_use]
    pub fn new(name: Str, columns: Vec<ColumnSchema>) -> TableSchema {
        let by_name = (0u16..)
            .zip(&columns)
            .map(|(id, column)| (column.name.as_bytes().into(), ColumnId(id)))
            .collect();
        TableSchema {
            name,
            mutable: true,
            is_root: true,
            max_rows: u32::MAX,
            indexes: Vec::new(),
            columns,
            by_name,
        }
    }

    /// The table's own columns (not `_uuid`, `_version`), in the order of [`ColumnId`].
    #[must_use]
    pub fn columns(&self) -> &[ColumnSchema] {
        &self.columns
    }

    pub(crate) fn columns_mut(&mut self) -> &mut [ColumnSchema] {
        &mut self.columns
    }

    /// The table's own columns with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (ColumnId, &ColumnSchema)> {
        (0u16..).map(ColumnId).zip(&self.columns)
    }

    /// A column by id. For `_uuid` and `_version` a shared description: immutable scalar uuid, not
    /// persistent.
    #[must_use]
    #[inline]
    pub fn column(&self, id: ColumnId) -> &ColumnSchema {
        match id {
            standard if standard.is_standard() => standard_column(standard),
            own => &self.columns[usize::from(own.0)],
        }
    }

    /// A column by name, which may be `_uuid` or `_version`.
    #[must_use]
    pub fn column_id(&self, name: &str) -> Option<ColumnId> {
        self.column_named(name.as_bytes())
    }

    /// Looks up a column, as [`TableSchema::column_id`] does, by a name in bytes, as messages have
    /// it.
    #[must_use]
    pub fn column_named(&self, name: &[u8]) -> Option<ColumnId> {
        match name {
            b"_uuid" => Some(ColumnId::UUID),
            b"_version" => Some(ColumnId::VERSION),
            own => self.by_name.get(own).copied(),
        }
    }
}

/// The description of `_uuid` and `_version`, which no schema lists (docs/spec/protocol.md 2.5).
fn standard_column(id: ColumnId) -> &'static ColumnSchema {
    static STANDARD: LazyLock<[ColumnSchema; 2]> = LazyLock::new(|| {
        ["_uuid", "_version"].map(|name| ColumnSchema {
            name: Str::new(name),
            column_type: ColumnType::scalar(AtomType::Uuid),
            mutable: false,
            persistent: false,
        })
    });
    &STANDARD[usize::from(id == ColumnId::VERSION)]
}
