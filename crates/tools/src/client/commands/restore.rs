//! `restore`: replaces the contents of a database with those of a database file
//! (docs/spec/storage.md 14). One transaction deletes every row and inserts the rows of the file
//! with new UUIDs; references between them are named UUIDs. `--keep-uuids` keeps the UUIDs of the
//! file ([`kept_uuids`]).

mod kept_uuids;

use std::collections::HashSet;
use std::io::{IsTerminal, Read};
use std::os::fd::AsRawFd;

use bstr::BString;
use corvid_data::{Arc, AtomRef, BaseType, ColumnSchema, Datum, Row, Schema, TableId, Uuid, wire};
use corvid_engine::Database;
use corvid_json::{Object, Value};
use corvid_log::header::LINE_BYTES_MAX;
use corvid_log::{Damage, Load, Magic};
use corvid_net::errno;
use corvid_shell::progress::Spinner;
use corvid_shell::vlog::{self, Module};
use corvid_shell::{output, program};

use super::Invocation;
use crate::failure::Failure;
use crate::session::Session;
use crate::uuids::RandomUuids;

/// The file's name in messages.
const FILE: &str = "/dev/stdin";

pub(crate) fn restore(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let database = &invocation.database;
    let schema = session.schema(database)?;
    let progress = Spinner::new("Reading the backup");
    let backup = replay(&read_input()?)?;
    drop(progress);
    compare(&schema, backup.schema(), invocation.settings.force)?;
    if !invocation.settings.keep_uuids {
        warn_of_new_uuids();
        let progress = Spinner::new("Preparing the transaction");
        let operations = operations(&backup);
        drop(progress);
        return execute(session, database, operations)?.map_err(|bad| refused(&bad));
    }
    let mut attempts = 0;
    loop {
        let present = kept_uuids::read(session, &schema, backup.schema())?;
        let progress = Spinner::new("Preparing the transaction");
        let operations = kept_uuids::operations(&schema, &backup, &present)?;
        drop(progress);
        attempts += 1;
        match execute(session, database, operations)? {
            Err(bad) if kept_uuids::has_changed(&bad) && attempts < ATTEMPTS_MAX => {}
            Err(bad) if kept_uuids::is_unsupported(&bad) => {
                let server = session.name();
                return Err(Failure::new(format!(
                    "{server} does not accept UUIDs for new rows, which --keep-uuids needs: {bad}"
                )));
            }
            outcome => return outcome.map_err(|bad| refused(&bad)),
        }
    }
}

/// The maximum number of attempts for a transaction that fails because other clients insert or
/// delete rows.
const ATTEMPTS_MAX: usize = 5;

/// Warns on a terminal only: scripts may compare standard error.
fn warn_of_new_uuids() {
    if std::io::stderr().is_terminal() {
        output::error_line(format_args!(
            "{}: warning: all rows get new UUIDs; --keep-uuids keeps those of the backup",
            program::prefix()
        ));
    }
}

fn refused(bad: &Value) -> Failure {
    Failure::new(format!("server returned error reply: {bad}"))
}

/// Executes the operations as one transaction. The inner error is the first error among their
/// results.
fn execute(
    session: &mut Session,
    database: &str,
    operations: Vec<Value>,
) -> Result<Result<(), Value>, Failure> {
    let expected = operations.len();
    let mut params = vec![Value::string(database)];
    params.extend(operations);
    let result = session.call("transact", &Value::Array(params))?;
    let results = result.as_array().unwrap_or_default();
    if let Some(bad) = results
        .iter()
        .find(|result| result.as_object().is_none() || result.get("error").is_some())
    {
        return Ok(Err(bad.clone()));
    }
    if results.len() != expected {
        let found = results.len();
        return Err(Failure::new(format!(
            "transact reply has {found} results but {expected} were expected"
        )));
    }
    Ok(Ok(()))
}

/// Reads all of standard input. Waits with `poll`, so that a signal ends the wait.
fn read_input() -> Result<Vec<u8>, Failure> {
    let mut input = std::io::stdin().lock();
    let mut bytes = Vec::new();
    let mut room = vec![0; 256 * 1024];
    loop {
        corvid_net::poll::wait(Some((input.as_raw_fd(), libc::POLLIN)), None)?;
        match input.read(&mut room) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&room[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Failure::new(format!(
                    "I/O error: {FILE}: read failed ({})",
                    errno::text(&error)
                )));
            }
        }
    }
}

/// The database in a file. Any damage is an error: a damaged file must not replace a database.
fn replay(file: &[u8]) -> Result<Database, Failure> {
    let damaged = |damage: &Damage| Failure::from(damage.to_wire(FILE));
    let head = &file[..file.len().min(LINE_BYTES_MAX)];
    if Magic::identify(head).map_err(|error| Failure::from(error.to_wire(FILE)))?
        == Magic::Clustered
    {
        return Err(Failure::new(format!(
            "ovsdb error: {FILE}: cannot apply this operation to clustered database file"
        )));
    }
    let mut load = Load::open(file).map_err(|damage| damaged(&damage))?;
    // Generates row versions. The server gives the restored rows others.
    let mut versions = RandomUuids::new()?;
    let mut database = Database::new(load.schema().clone(), versions.hash_seed());
    while let Some(recorded) = load.next_transaction().map_err(|damage| damaged(&damage))? {
        database
            .apply_recorded(recorded, &mut versions)
            .map_err(|error| damaged(&load.reject(error)))?;
    }
    Ok(database)
}

/// Rejects a backup with a different schema, unless forced.
fn compare(schema: &Schema, backup: &Schema, force: bool) -> Result<(), Failure> {
    if schema.same_as(backup) {
        return Ok(());
    }
    let (current, other) = (&schema.version, &backup.version);
    let difference = if current == other {
        format!("backup schema and database schema are both version {current} but still differ")
    } else {
        format!(
            "backup schema has version \"{other}\" but database schema has version \"{current}\""
        )
    };
    if force {
        vlog::info(Module::OvsdbClient, format_args!("{difference}"));
        return Ok(());
    }
    let hint =
        "(use --force to override differences, or \"ovsdb-client convert\" to change the schema)";
    Err(Failure::new(format!("{difference} {hint}")))
}

/// For each table, the operation that deletes all rows and the operations that insert the backup's
/// rows.
fn operations(backup: &Database) -> Vec<Value> {
    let schema = backup.schema();
    let names: HashSet<(TableId, Uuid)> = schema
        .iter()
        .flat_map(|(id, _)| backup.rows(id).map(move |row| (id, row.uuid)))
        .collect();
    let mut operations = Vec::new();
    for (id, table) in schema.iter() {
        operations.push(object([
            ("op", Value::string("delete")),
            ("table", Value::string(&*table.name)),
            ("where", Value::Array(Vec::new())),
        ]));
        // The order is deterministic, so that equal files yield equal requests.
        let mut rows: Vec<&Arc<Row>> = backup.rows(id).collect();
        rows.sort_by_key(|row| row.uuid);
        for row in rows {
            let columns = table
                .columns()
                .iter()
                .zip(&row.columns)
                .filter(|(column, datum)| {
                    column.persistent && !datum.is_default(&column.column_type)
                });
            let columns = columns
                .map(|(column, datum)| {
                    (column.name.as_str().into(), content(column, datum, &names))
                })
                .collect();
            operations.push(object([
                ("op", Value::string("insert")),
                ("table", Value::string(&*table.name)),
                ("uuid-name", Value::string(row_name(row.uuid))),
                ("row", Value::Object(columns)),
            ]));
        }
    }
    operations
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (BString::from(name), value))
            .collect::<Object>(),
    )
}

fn row_name(uuid: Uuid) -> String {
    format!("row{}", uuid.to_string().replace('-', "_"))
}

/// A column's value, in which references to rows of the backup are names.
fn content(column: &ColumnSchema, datum: &Datum, names: &HashSet<(TableId, Uuid)>) -> Value {
    let key_type = &column.column_type.key;
    let tagged = |tag: &str, elements: Vec<Value>| {
        Value::Array(vec![Value::string(tag), Value::Array(elements)])
    };
    if let Some(value_type) = &column.column_type.value {
        let pair = |(key, value): (AtomRef<'_>, Option<AtomRef<'_>>)| {
            let mut pair = vec![atom(key, key_type, names)];
            pair.extend(value.map(|value| atom(value, value_type, names)));
            Value::Array(pair)
        };
        return tagged("map", datum.iter().map(pair).collect());
    }
    let mut elements: Vec<Value> = datum.keys().map(|key| atom(key, key_type, names)).collect();
    match elements.pop() {
        Some(only) if elements.is_empty() => only,
        last => {
            elements.extend(last);
            tagged("set", elements)
        }
    }
}

fn atom(atom: AtomRef<'_>, base: &BaseType, names: &HashSet<(TableId, Uuid)>) -> Value {
    if let (Some(uuid), Some(reference)) = (atom.as_uuid(), &base.reference)
        && names.contains(&(reference.table, uuid))
    {
        return Value::Array(vec![
            Value::string("named-uuid"),
            Value::string(row_name(uuid)),
        ]);
    }
    let mut text = Vec::new();
    wire::write_atom(&mut text, atom);
    Value::parse(&text).unwrap_or(Value::Null)
}
