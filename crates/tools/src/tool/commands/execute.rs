//! `query` and `transact`: execute one transaction on a file that no server has open.

use corvid_data::{Delta, Tag, WireError};
use corvid_disk::log_file::{LogFile, OpenMode};
use corvid_engine::{Context, Database, Identity, LockOwner};
use corvid_json::Value;
use corvid_log::DiskError;
use corvid_log::write_transaction;
use corvid_net::{clock, os_name};
use corvid_shell::output::Output;

use super::{Invocation, Outcome, default_database};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::database::DatabaseFile;
use crate::tool::history;
use crate::typed_json;
use crate::uuids::RandomUuids;

/// Executes the transaction in memory and prints its results. Nothing is written.
pub(super) fn query(invocation: &Invocation<'_>) -> Outcome {
    run(invocation, OpenMode::ReadOnly)
}

/// Executes the transaction and appends its changes to the file.
pub(super) fn transact(invocation: &Invocation<'_>) -> Outcome {
    run(invocation, OpenMode::ReadWrite)
}

/// The lock table without a server: no lock has an owner.
struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _: &str) -> bool {
        false
    }
}

fn run(invocation: &Invocation<'_>, mode: OpenMode) -> Outcome {
    // A single argument is the transaction.
    let (path, text) = match invocation.args {
        [text] => (default_database(), text),
        [path, text] => (os_name::path(path), text),
        _ => return Err(Failure::new("a transaction is required")),
    };
    let mut uuids = RandomUuids::new()?;
    let parse = || {
        let request = Value::parse_text(text.as_bytes());
        request.map_err(|error| Failure::new(format!("\"{text}\": {error}")))
    };
    if let (Some(moment), OpenMode::ReadOnly) = (&invocation.options.history.at, mode) {
        let request = parse()?;
        let database = history::state_at(&path, moment, &mut uuids)?;
        return answer(invocation, database, None, &request, &mut uuids);
    }
    let file = DatabaseFile::open_as(&path, mode)?;
    let request = parse()?;
    let (database, file) = file.load()?.finish(&mut uuids)?;
    let file = (mode == OpenMode::ReadWrite).then_some(file);
    answer(invocation, database, file, &request, &mut uuids)
}

/// Executes the request, appends its changes to the file if there is one, and prints the results.
fn answer(
    invocation: &Invocation<'_>,
    mut database: Database,
    file: Option<LogFile>,
    request: &Value,
    uuids: &mut RandomUuids,
) -> Outcome {
    if let Err(error) = check_request(request, database.schema().name.as_str()) {
        let error = error_object(&error);
        print_json(&error)?;
        return judge(&Value::Array(vec![error]), invocation);
    }
    let (mut results, delta) = execute(
        &mut database,
        request,
        invocation.options.role.as_deref(),
        uuids,
    )?;
    if let Some(mut file) = file
        && let Some(delta) = delta
        && let Err(error) = store(&mut file, &database, &delta)
        && let Value::Array(results) = &mut results
    {
        results.push(error_object(&disk_error(&error)));
    }
    print_json(&results)?;
    judge(&results, invocation)
}

/// With `--fail`, a rejected transaction is a failure.
fn judge(results: &Value, invocation: &Invocation<'_>) -> Outcome {
    match Failure::refused(results) {
        Some(failure) if invocation.options.fail => Err(failure),
        _ => Ok(Answer::Yes),
    }
}

/// Checks the request as a whole: it must be an array that begins with the database's name.
fn check_request(request: &Value, name: &str) -> Result<(), WireError> {
    let error = |details: &str| WireError::syntax(&request.to_bytes(), details);
    let elements = request.as_array().ok_or_else(|| error("array expected"))?;
    if elements.first().and_then(Value::as_str) == Some(name) {
        Ok(())
    } else {
        Err(error("database name expected as first parameter"))
    }
}

type Executed = (Value, Option<corvid_data::Arc<Delta>>);

fn execute(
    database: &mut Database,
    request: &Value,
    role: Option<&str>,
    uuids: &mut RandomUuids,
) -> Result<Executed, Failure> {
    let identity = role.map(|role| Identity {
        role,
        client_id: None,
    });
    let mut context = Context {
        elapsed_ms: 0,
        read_only: false,
        identities: identity.as_slice(),
        can_wait: false,
        uuids,
        locks: &NoLocks,
    };
    match database.execute(&request.to_bytes(), &mut context) {
        corvid_engine::Outcome::Done { result, delta, .. } => {
            let results = typed_json::parse(&result)
                .map_err(|error| Failure::new(format!("results: {error}")))?;
            Ok((results, delta))
        }
        // With `can_wait: false` the engine does not block. If it did, nothing would have changed.
        corvid_engine::Outcome::Blocked { .. } => {
            let error = WireError::new(Tag::NotSupported, "triggers not supported");
            Ok((Value::Array(vec![error_object(&error)]), None))
        }
    }
}

fn store(file: &mut LogFile, database: &Database, delta: &Delta) -> Result<(), DiskError> {
    let mut record = Vec::new();
    if write_transaction(
        &mut record,
        database.schema(),
        delta,
        clock::wall_ms(),
        true,
    )
    .is_none()
    {
        return Ok(());
    }
    let end = file.end();
    file.append(&[&record])?;
    if delta.durable {
        // A failure removes the record from the file, and the printed results say that nothing was
        // written.
        file.sync(end)
    } else {
        Ok(())
    }
}

fn disk_error(error: &DiskError) -> WireError {
    let mut wire = WireError::new(Tag::IoError, error.to_string());
    wire.io_error = Some(error.fault.text.clone().into());
    wire
}

fn error_object(error: &WireError) -> Value {
    let mut text = Vec::new();
    error.write_json(&mut text);
    Value::parse(&text).unwrap_or(Value::Null)
}

/// Prints one line as bytes: strings need not be UTF-8.
fn print_json(value: &Value) -> Result<(), Failure> {
    let mut line = value.to_bytes();
    line.push(b'\n');
    std::io::Write::write_all(&mut Output, &line).map_err(Failure::output)
}
