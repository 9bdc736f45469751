//! Remotes that a database configures: the current contents of the column in `db:DB,TABLE,COLUMN`
//! (docs/spec/protocol.md 7.4, docs/spec/cli.md 1.5).

use std::collections::BTreeMap;

use corvid_data::{AtomRef, AtomType, ColumnId, Datum, Row, TableId, TableSchema};
use corvid_engine::Database;

/// A column of targets, or of references to rows that describe remotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteColumn {
    table: TableId,
    column: ColumnId,
    holds: Holds,
}

/// The contents of a column, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// Strings, each of them a target.
    Targets,
    /// References to rows of this table, each with one target.
    Rows(TableId),
    /// Anything else, including maps: no remotes.
    Nothing,
}

/// A remote as its row describes it; a value that the row omits is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteRow {
    /// `inactivity_probe`, ms.
    pub probe_interval: Option<i64>,
    /// `max_backoff`, ms.
    pub max_backoff: Option<i64>,
    /// `read_only`.
    pub read_only: bool,
    /// `role`; empty if none.
    pub role: String,
    /// `other_config:dscp`.
    pub dscp: Option<u8>,
}

/// Remotes by target. If two rows have the same target, the later row wins.
pub type RemoteRows = BTreeMap<String, RemoteRow>;

impl RemoteColumn {
    /// Finds the column. `name` is the remote as configured, for error messages.
    ///
    /// # Errors
    /// The texts of docs/spec/cli.md 1.5.
    pub fn find(
        database: &Database,
        name: &str,
        table: &str,
        column: &str,
    ) -> Result<RemoteColumn, String> {
        let schema = database.schema();
        let table_id = schema
            .table_id(table)
            .ok_or_else(|| format!("\"{name}\": no table named {table}"))?;
        let table_schema = schema.table(table_id);
        let column_id = table_schema
            .column_id(column)
            .ok_or_else(|| format!("\"{name}\": table \"{table}\" has no column \"{column}\""))?;
        let holds = Holds::of(table_schema, column_id);
        Ok(RemoteColumn {
            table: table_id,
            column: column_id,
            holds,
        })
    }

    /// Whether the column holds strings, one or a set.
    #[must_use]
    pub fn holds_texts(&self) -> bool {
        self.holds == Holds::Targets
    }

    /// The table whose rows describe remotes; `None` if the column does not refer to rows.
    #[must_use]
    pub fn described_in(&self) -> Option<TableId> {
        match self.holds {
            Holds::Rows(table) => Some(table),
            Holds::Targets | Holds::Nothing => None,
        }
    }

    /// The rows that describe remotes, with their targets.
    pub fn described<'a>(
        &'a self,
        database: &'a Database,
    ) -> impl Iterator<Item = (&'a str, &'a Row)> {
        let rows = self.referenced(database);
        rows.filter_map(|(schema, row)| Some((target(schema, row)?, row)))
    }

    /// Whether a row that describes a remote has no target.
    #[must_use]
    pub fn lacks_a_target(&self, database: &Database) -> bool {
        let mut rows = self.referenced(database);
        rows.any(|(schema, row)| target(schema, row).is_none())
    }

    /// The rows that the column refers to.
    fn referenced<'a>(
        &'a self,
        database: &'a Database,
    ) -> impl Iterator<Item = (&'a TableSchema, &'a Row)> {
        self.described_in().into_iter().flat_map(move |table| {
            let schema = database.schema().table(table);
            let atoms = database
                .rows(self.table)
                .flat_map(|row| row.columns[usize::from(self.column.0)].keys());
            atoms.filter_map(move |atom| match atom {
                AtomRef::Uuid(uuid) => Some((schema, &**database.get(table, uuid)?)),
                _ => None,
            })
        })
    }

    /// Whether a change of `table` can change the remotes.
    #[must_use]
    pub fn depends_on(&self, table: TableId) -> bool {
        self.table == table || self.described_in() == Some(table)
    }

    /// The remotes that the column names now.
    #[must_use]
    pub fn read(&self, database: &Database) -> RemoteRows {
        match self.holds {
            Holds::Nothing => RemoteRows::new(),
            Holds::Targets => {
                let rows = database.rows(self.table);
                let atoms = rows.flat_map(|row| row.columns[usize::from(self.column.0)].keys());
                let targets = atoms.filter_map(|atom| atom.as_string().map(str::to_owned));
                targets.map(|text| (text, RemoteRow::default())).collect()
            }
            Holds::Rows(_) => {
                let rows = self.referenced(database);
                rows.filter_map(|(schema, row)| describe(schema, row))
                    .collect()
            }
        }
    }
}

impl Holds {
    fn of(schema: &TableSchema, column: ColumnId) -> Holds {
        if column.is_standard() {
            return Holds::Nothing;
        }
        let column_type = &schema.column(column).column_type;
        let key = &column_type.key;
        match &key.reference {
            _ if column_type.is_map() => Holds::Nothing,
            Some(reference) => Holds::Rows(reference.table),
            None if key.atom == AtomType::String => Holds::Targets,
            None => Holds::Nothing,
        }
    }
}

fn target<'a>(schema: &TableSchema, row: &'a Row) -> Option<&'a str> {
    match scalar(schema, row, "target", AtomType::String)? {
        AtomRef::String(target) => Some(target.as_str()),
        _ => None,
    }
}

/// Target and options of one row; `None` if it has no usable target.
fn describe(schema: &TableSchema, row: &Row) -> Option<(String, RemoteRow)> {
    let cell = |name: &str, atom: AtomType| scalar(schema, row, name, atom);
    let target = target(schema, row)?.to_owned();
    let dscp = map_value(schema, row, "other_config", "dscp")
        .and_then(|text| text.parse::<u8>().ok())
        .filter(|dscp| *dscp < 64);
    let integer = |name: &str| cell(name, AtomType::Integer).and_then(AtomRef::as_integer);
    let described = RemoteRow {
        probe_interval: integer("inactivity_probe"),
        max_backoff: integer("max_backoff"),
        read_only: cell("read_only", AtomType::Boolean)
            .and_then(AtomRef::as_boolean)
            .unwrap_or(false),
        role: cell("role", AtomType::String)
            .and_then(|role| role.as_string().map(str::to_owned))
            .unwrap_or_default(),
        dscp,
    };
    Some((target, described))
}

/// The only element of a scalar or optional scalar, if its type is `atom`.
fn scalar<'a>(
    schema: &TableSchema,
    row: &'a Row,
    name: &str,
    atom: AtomType,
) -> Option<AtomRef<'a>> {
    let id = schema.column_id(name).filter(|id| !id.is_standard())?;
    let column_type = &schema.column(id).column_type;
    let fits = column_type.key.atom == atom && column_type.max == 1 && !column_type.is_map();
    let datum: &Datum = &row.columns[usize::from(id.0)];
    datum.first().filter(|_| fits)
}

/// The value at a key in a map of strings.
fn map_value<'a>(schema: &TableSchema, row: &'a Row, name: &str, key: &str) -> Option<&'a str> {
    let id = schema.column_id(name).filter(|id| !id.is_standard())?;
    row.columns[usize::from(id.0)]
        .iter()
        .find_map(|(found, value)| match (found, value) {
            (AtomRef::String(found), Some(AtomRef::String(value))) if found.as_str() == key => {
                Some(value.as_str())
            }
            _ => None,
        })
}
