//! A database as a standalone file (docs/spec/storage.md 14): read from a server by one
//! transaction, and written piece by piece.
//!
//! `ovsdb-client backup` and `corvid-console` make backups of it. It does not know where the bytes
//! go.

use std::io;

use bstr::BString;
use corvid_data::{Arc, ColumnSchema, Datum, Row, Schema, TableId, TableSchema, Uuid, wire};
use corvid_json::{Object, Reader, Value};
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_net::clock;
use corvid_shell::progress::Spinner;

use crate::failure::Failure;
use crate::past::Contents;
use crate::session::Session;

/// The contents of a database, in memory.
#[derive(Debug)]
pub struct Backup {
    schema: Schema,
    /// The rows of each table.
    tables: Vec<Vec<Arc<Row>>>,
}

impl Backup {
    /// Reads the contents, or those of the moment `at`.
    ///
    /// # Errors
    /// The server refuses, its reply has another shape, or the connection broke.
    pub fn read(
        session: &mut Session,
        database: &str,
        at: Option<&str>,
    ) -> Result<Backup, Failure> {
        let instead = "ovsdb-tool --at=MOMENT restore FILE NEW";
        let mut contents = Contents::at(session, database, at, instead)?;
        let schema = contents.schema()?;
        let result = contents.select(schema.tables().iter().map(select).collect())?;
        let _progress = Spinner::new("Reading the rows");
        let tables = rows(&schema, &result)?;
        Ok(Backup { schema, tables })
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.tables.iter().map(Vec::len).sum()
    }

    /// Writes the file; `program` is named in its comment. `visited` is called twice for each row:
    /// when its record is measured, and when it is written.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write(
        &self,
        program: &str,
        visited: &dyn Fn(),
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut record = Vec::new();
        write_schema(&mut record, &self.schema);
        write(&record)?;
        let comment = format!("produced by \"{program}\"");
        let stamp = Stamp {
            date_ms: clock::wall_ms(),
            comment: &comment,
            is_diff: true,
            with_defaults: true,
        };
        let of_table = |table: TableId| {
            let rows = self.tables[usize::from(table.0)].iter();
            rows.inspect(|_| visited())
        };
        write_snapshot(&self.schema, &stamp, of_table, &mut |piece| write(piece))?;
        Ok(())
    }
}

fn select(table: &TableSchema) -> Value {
    let columns = table
        .columns()
        .iter()
        .filter(|column| column.persistent)
        .map(|column| Value::string(&*column.name));
    let members = [
        ("op", Value::string("select")),
        ("table", Value::string(&*table.name)),
        ("where", Value::Array(Vec::new())),
        (
            "columns",
            Value::Array(
                std::iter::once(Value::string("_uuid"))
                    .chain(columns)
                    .collect(),
            ),
        ),
    ];
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (BString::from(name), value))
            .collect::<Object>(),
    )
}

/// The rows of each table, from one `select` result each.
fn rows(schema: &Schema, result: &Value) -> Result<Vec<Vec<Arc<Row>>>, Failure> {
    let results = result.as_array().unwrap_or_default();
    let count = schema.tables().len();
    if results.len() != count {
        let found = results.len();
        return Err(Failure::new(format!(
            "transact reply has {found} results but {count} were expected"
        )));
    }
    let table_rows = |(table, result): (&TableSchema, &Value)| {
        let rows = result
            .get("rows")
            .and_then(Value::as_array)
            .ok_or_else(|| {
                Failure::new(format!(
                    "{} table reply is not an object with a \"rows\" member array: {result}",
                    table.name
                ))
            })?;
        rows.iter()
            .map(|json| Ok(Arc::new(row(table, json)?)))
            .collect()
    };
    schema
        .tables()
        .iter()
        .zip(results)
        .map(table_rows)
        .collect()
}

fn row(table: &TableSchema, json: &Value) -> Result<Row, Failure> {
    let uuid = json
        .get("_uuid")
        .and_then(Value::as_array)
        .and_then(|uuid| uuid.get(1))
        .and_then(Value::as_str)
        .and_then(|uuid| Uuid::parse(uuid.as_bytes()))
        .ok_or_else(|| {
            Failure::new(format!(
                "{} table reply has a row without _uuid: {json}",
                table.name
            ))
        })?;
    let datum = |column: &ColumnSchema| match json.get(column.name.as_str()) {
        None => Ok(Datum::default_for(&column.column_type)),
        // A stored value is kept even if a constraint of a later schema would reject it.
        Some(value) => wire::read_datum_unconstrained(
            &mut Reader::new(&value.to_bytes()),
            &column.column_type,
            None,
        ),
    };
    let columns = table
        .columns()
        .iter()
        .map(datum)
        .collect::<Result<_, _>>()?;
    Ok(Row {
        uuid,
        version: Uuid::ZERO,
        columns,
    })
}
