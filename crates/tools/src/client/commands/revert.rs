//! `revert`: undoes one commit, or everything since a time.

use std::collections::BTreeMap;

use bstr::BString;
use corvid_data::{Arc, Datum, Schema, Uuid, wire};
use corvid_history::{Moment, RowChange, json};
use corvid_json::shown::Shown;
use corvid_json::{Reader, Value};
use corvid_session::history::Question;
use corvid_shell::output::{self, Output};
use corvid_shell::program;

use super::Invocation;
use super::transact::once;
use crate::client::past::{Past, moment};
use crate::client::revert::{Columns, Conflict, Done, is_row, operations};
use crate::client::session::Session;
use crate::failure::Failure;
use crate::history::Printer;

/// Attempts until the rows stay as they were read.
const ATTEMPTS: usize = 5;

/// What is undone.
#[derive(Debug)]
struct Undone {
    /// What the comment of the commit calls it.
    shown: String,
    changes: Vec<Done>,
}

/// Undoes one commit, or everything since a time, in one transaction.
pub(crate) fn revert(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let text = &invocation.args[0];
    let schema = Arc::new(session.schema(&invocation.database)?);
    let undone = read(session, invocation, text, &schema)?;
    for _ in 0..ATTEMPTS {
        let rows = rows(session, invocation, &schema, &undone.changes)?;
        let changes = plan(&schema, &undone, &rows)?;
        if changes.is_empty() {
            output::error_line(format_args!(
                "{}: {}: nothing is left to revert",
                program::name(),
                Shown(text)
            ));
            return Ok(());
        }
        if !invocation.settings.dry_run {
            let results = execute(session, invocation, &undone, &changes)?;
            if is_overtaken(&results) {
                continue;
            }
            if let Some(failure) = Failure::refused(&results) {
                return Err(failure);
            }
        }
        let mut printer = Printer::new(Output, invocation.settings.history.json);
        for change in &changes {
            let mut line = Vec::new();
            json::write_change(&mut line, change);
            printer.line(&line)?;
        }
        return Ok(());
    }
    Err(Failure::new(format!(
        "other clients changed the rows {ATTEMPTS} times while they were reverted; nothing was changed, try again"
    )))
}

/// Reads the changes that `text` means: those of a commit, or those since a time.
fn read(
    session: &mut Session,
    invocation: &Invocation<'_>,
    text: &str,
    schema: &Schema,
) -> Result<Undone, Failure> {
    // Only the kind of the moment matters here.
    let kind = Moment::parse(text, i64::MAX, &crate::history::local);
    let is_time = matches!(kind, Ok(Moment::Time(_)));
    let at = moment(text)?;
    let question = match is_time {
        true => Question::diff(&at, "HEAD"),
        false => Question::log().until(&at).newest(1),
    };
    let filter = &invocation.settings.history;
    let mut undone = Undone {
        shown: format!("everything since {text}"),
        changes: Vec::new(),
    };
    let mut add = |change: &Value| {
        let is = |name: &str, wanted: Option<&str>, is_like: fn(&str, &str) -> bool| {
            let value = change.get(name).and_then(Value::as_str).unwrap_or_default();
            wanted.is_none_or(|wanted| is_like(value, wanted))
        };
        let is_wanted = is("table", filter.filter.table.as_deref(), |a, b| a == b)
            && is("row", filter.row.as_deref(), |uuid, prefix| {
                uuid.starts_with(&prefix.to_ascii_lowercase())
            });
        if is_wanted {
            let done = Done::parse(change, schema).map_err(|problem| {
                Failure::new(format!("{problem}: the schema has been converted since"))
            })?;
            undone.changes.push(done);
        }
        Ok(())
    };
    let instead = "ovsdb-tool log FILE";
    let mut past = Past::of(session, &invocation.database, instead)?;
    let mut commit = None;
    past.read(question, &mut |line| {
        let line = Value::parse(line).unwrap_or(Value::Null);
        if is_time {
            return add(&line);
        }
        if line.get("event").and_then(Value::as_str) == Some("commit") {
            commit = line.get("id").and_then(Value::as_str).map(str::to_owned);
        }
        let changes = line.get("changes").and_then(Value::as_array);
        changes.unwrap_or_default().iter().try_for_each(&mut add)
    })?;
    if !is_time {
        let commit = commit.ok_or_else(|| {
            Failure::new(format!("{text}: the history has no commit there to revert"))
        })?;
        undone.shown = format!("commit {commit}");
    }
    Ok(undone)
}

/// Reads the rows of now, all at one moment.
fn rows(
    session: &mut Session,
    invocation: &Invocation<'_>,
    schema: &Schema,
    changes: &[Done],
) -> Result<BTreeMap<(usize, Uuid), Columns>, Failure> {
    let mut params = vec![Value::string(&*invocation.database)];
    params.extend(changes.iter().map(|change| {
        let members = [
            ("op", Value::string("select")),
            ("table", Value::string(&*schema.table(change.table).name)),
            ("where", is_row(change.uuid)),
        ];
        let members = members.into_iter();
        Value::Object(
            members
                .map(|(name, value)| (BString::from(name), value))
                .collect(),
        )
    }));
    let results = session.call("transact", &Value::Array(params))?;
    if let Some(failure) = Failure::refused(&results) {
        return Err(failure);
    }
    let malformed = || Failure::new("the reply to transact is malformed");
    let mut rows = BTreeMap::new();
    let results = results.as_array().ok_or_else(malformed)?;
    for (change, result) in changes.iter().zip(results) {
        let found = result.get("rows").and_then(Value::as_array);
        if let Some(row) = found.ok_or_else(malformed)?.first() {
            let columns = columns(schema, change, row).ok_or_else(malformed)?;
            rows.insert((change.table.0.into(), change.uuid), columns);
        }
    }
    Ok(rows)
}

fn columns(schema: &Schema, change: &Done, row: &Value) -> Option<Columns> {
    let described = schema.table(change.table).columns().iter();
    let columns = described.map(|column| {
        let text = row.get(&column.name)?.to_bytes();
        wire::read_datum(&mut Reader::new(&text), &column.column_type, None).ok()
    });
    Some(Arc::from(columns.collect::<Option<Vec<Datum>>>()?))
}

/// The changes that undo the others; fails with all conflicts.
fn plan(
    schema: &Arc<Schema>,
    undone: &Undone,
    rows: &BTreeMap<(usize, Uuid), Columns>,
) -> Result<Vec<RowChange>, Failure> {
    let mut changes = Vec::new();
    let mut conflicts: Vec<Conflict> = Vec::new();
    for done in &undone.changes {
        match done.undo(schema, rows.get(&(done.table.0.into(), done.uuid))) {
            Ok(change) => changes.extend(change),
            Err(problems) => conflicts.extend(problems),
        }
    }
    if conflicts.is_empty() {
        return Ok(changes);
    }
    for conflict in &conflicts {
        output::error_line(format_args!(
            "{}: {}",
            program::name(),
            Shown(&conflict.to_string())
        ));
    }
    Err(Failure::new(format!(
        "{} conflicts with what has changed since {}; nothing was changed",
        conflicts.len(),
        undone.shown
    )))
}

fn execute(
    session: &mut Session,
    invocation: &Invocation<'_>,
    undone: &Undone,
    changes: &[RowChange],
) -> Result<Value, Failure> {
    let mut params = vec![Value::string(&*invocation.database)];
    params.extend(operations(changes));
    let comment = format!("{}: revert {}", program::name(), undone.shown);
    let comment = [
        (BString::from("op"), Value::string("comment")),
        (BString::from("comment"), Value::string(comment)),
    ];
    params.push(Value::Object(comment.into_iter().collect()));
    once::execute(session, &Value::Array(params), invocation)
}

/// Whether a row has changed since it was read.
fn is_overtaken(results: &Value) -> bool {
    let mut results = results.as_array().unwrap_or_default().iter();
    results.any(|result| result.get("error").and_then(Value::as_str) == Some("timed out"))
}
