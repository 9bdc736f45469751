//! `backup`: writes a database as a standalone file to standard output (docs/spec/storage.md 14).

use std::io::{IsTerminal, Write};

use bstr::BString;
use corvid_data::{Arc, ColumnSchema, Datum, Row, Schema, TableId, TableSchema, Uuid, wire};
use corvid_json::{Object, Reader, Value};
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_net::clock;
use corvid_shell::output::Output;
use corvid_shell::progress::{Progress, Spinner};

use super::Invocation;
use crate::failure::Failure;
use crate::past::Contents;
use crate::session::Session;

pub(crate) fn backup(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        return Err(Failure::new(
            "not writing backup to a terminal; please redirect stdout to a file",
        ));
    }
    let database = &invocation.database;
    let at = invocation.settings.history.at.as_deref();
    let mut contents = Contents::at(
        session,
        database,
        at,
        "ovsdb-tool --at=MOMENT restore FILE NEW",
    )?;
    let schema = contents.schema()?;
    let result = contents.select(schema.tables().iter().map(select).collect())?;
    let progress = Spinner::new("Reading the rows");
    let tables = rows(&schema, &result)?;
    drop(progress);

    let mut out = Output;
    let mut record = Vec::new();
    write_schema(&mut record, &schema);
    out.write_all(&record)?;
    let at = at.map(|at| format!(" --at={at}")).unwrap_or_default();
    let comment = format!("produced by \"ovsdb-client backup{at}\"");
    let stamp = Stamp {
        date_ms: clock::wall_ms(),
        comment: &comment,
        is_diff: true,
        with_defaults: true,
    };
    // Each row is visited twice: to measure its record, and to write it.
    let count: usize = tables.iter().map(Vec::len).sum();
    let progress = Progress::new("Writing rows", 2 * count as u64);
    let of_table = |table: TableId| {
        let rows = tables[usize::from(table.0)].iter();
        rows.inspect(|_| progress.advance(1))
    };
    write_snapshot(&schema, &stamp, of_table, &mut |piece| out.write_all(piece))?;
    Ok(out.flush()?)
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
