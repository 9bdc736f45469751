//! `revert`: undoes one commit, or everything since a time.

use std::collections::BTreeMap;

use bstr::BString;
use corvid_data::{Arc, Datum, Schema, wire};
use corvid_history::{Moment, RowChange, json};
use corvid_json::shown::Shown;
use corvid_json::{Reader, Value};
use corvid_session::history::Question;
use corvid_shell::output::{self, Output};
use corvid_shell::program;

use super::transact::once;
use super::{Invocation, table_names};
use crate::client::revert::{
    Columns, Conflict, Done, RowId, is_row, keys, object, operations, others,
};
use crate::failure::Failure;
use crate::history::Printer;
use crate::past::{Past, moment};
use crate::session::Session;

/// Attempts until the rows stay as they were read.
const ATTEMPTS: usize = 5;

/// The changes to undo.
#[derive(Debug)]
struct Undone {
    /// Their name in the comment of the commit that undoes them.
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
        let guards = check_others(session, invocation, &schema, &changes, &undone)?;
        check_keys(session, invocation, &changes, &undone)?;
        if changes.is_empty() {
            output::error_line(format_args!(
                "{}: {}: nothing is left to revert",
                program::name(),
                Shown(text)
            ));
            return Ok(());
        }
        if !invocation.settings.dry_run {
            let results = execute(session, invocation, &undone, (guards, &changes))?;
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
    // `now` is a time for a user, and nothing has happened since.
    let is_time = text == "now" || matches!(kind, Ok(Moment::Time(_)));
    let at = moment(text)?;
    let question = match is_time {
        true => Question::diff(&at, "HEAD"),
        false => Question::log().until(&at).newest(1),
    };
    let filter = &invocation.settings.history;
    if let Some(table) = &filter.filter.table
        && schema.table_id(table).is_none()
    {
        let failure = Failure::new(format!("there is no table \"{table}\""));
        return Err(failure.suggesting(table, table_names(schema)));
    }
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
    if is_time && !past.schema_at(&at)?.same_as(schema) {
        return Err(Failure::new(format!(
            "{text}: the database has been converted to another schema since, so rows of then do not fit"
        )));
    }
    let (mut commit, mut is_conversion) = (None, false);
    past.read(question, &mut |line| {
        let line = Value::parse(line)
            .map_err(|error| Failure::new(format!("a line of the history: {error}")))?;
        if is_time {
            return add(&line);
        }
        match line.get("event").and_then(Value::as_str) {
            Some("commit") => commit = line.get("id").and_then(Value::as_str).map(str::to_owned),
            Some("schema") => is_conversion = true,
            _ => {}
        }
        let changes = line.get("changes").and_then(Value::as_array);
        changes.unwrap_or_default().iter().try_for_each(&mut add)
    })?;
    if !is_time {
        let commit = commit.ok_or_else(|| {
            Failure::new(match is_conversion {
                true => format!(
                    "{text}: there the database was converted to another schema, which cannot be reverted; to revert \
                     a commit before it, give its id (`log` shows it)"
                ),
                false => format!("{text}: the history has no commit there to revert"),
            })
        })?;
        // The history shows only commits that changed rows; it answers with the one before.
        if let Ok(Moment::Commit(begin)) = &kind
            && !commit.starts_with(begin)
        {
            return Err(Failure::new(format!(
                "{text}: the commit changed nothing that is kept in files, so there is nothing to revert"
            )));
        }
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
) -> Result<BTreeMap<RowId, Columns>, Failure> {
    let selections = changes.iter().map(|change| {
        let members = [
            ("op", Value::string("select")),
            ("table", Value::string(&*schema.table(change.table).name)),
            ("where", is_row(change.uuid)),
        ];
        object(members)
    });
    let results = select(session, invocation, selections)?;
    let mut rows = BTreeMap::new();
    for (change, found) in changes.iter().zip(results) {
        if let Some(row) = found.first() {
            let columns = columns(schema, change, row).ok_or_else(malformed)?;
            rows.insert((change.table, change.uuid), columns);
        }
    }
    Ok(rows)
}

/// The rows that each selection finds, all at one moment.
fn select(
    session: &mut Session,
    invocation: &Invocation<'_>,
    selections: impl Iterator<Item = Value>,
) -> Result<Vec<Vec<Value>>, Failure> {
    let mut params = vec![Value::string(&*invocation.database)];
    params.extend(selections);
    let count = params.len() - 1;
    let results = session.call("transact", &Value::Array(params))?;
    if let Some(failure) = Failure::refused(&results) {
        return Err(failure);
    }
    let results = results.as_array().unwrap_or_default().iter();
    let rows = results.map(|result| Some(result.get("rows")?.as_array()?.to_vec()));
    let rows: Option<Vec<Vec<Value>>> = rows.collect();
    // Each selection must be answered: a row that is not there would pass for a deleted one.
    rows.filter(|rows| rows.len() == count)
        .ok_or_else(malformed)
}

fn malformed() -> Failure {
    Failure::new("the reply to transact is malformed")
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
    rows: &BTreeMap<RowId, Columns>,
) -> Result<Vec<RowChange>, Failure> {
    let mut changes = Vec::new();
    let mut conflicts: Vec<Conflict> = Vec::new();
    for done in &undone.changes {
        match done.undo(schema, rows.get(&(done.table, done.uuid))) {
            Ok(change) => changes.extend(change),
            Err(problems) => conflicts.extend(problems),
        }
    }
    match conflicts.is_empty() {
        true => Ok(changes),
        false => Err(conflicting(&conflicts, undone)),
    }
}

/// Prints the conflicts.
fn conflicting(conflicts: &[Conflict], undone: &Undone) -> Failure {
    for conflict in conflicts {
        let conflict = conflict.to_string();
        output::error_line(format_args!("{}: {}", program::name(), Shown(&conflict)));
    }
    let count = match conflicts.len() {
        1 => "a conflict".to_owned(),
        count => format!("{count} conflicts"),
    };
    let shown = &undone.shown;
    Failure::new(format!(
        "{count} with later changes: {shown} is not reverted, nothing was changed"
    ))
}

/// Fails if other rows than those of the changes would be deleted, or lose references. Returns the
/// operations that make sure of it when the changes are made.
fn check_others(
    session: &mut Session,
    invocation: &Invocation<'_>,
    schema: &Schema,
    changes: &[RowChange],
    undone: &Undone,
) -> Result<Vec<Value>, Failure> {
    let targets = others::targets(schema, changes);
    let targets = targets.map_err(|conflicts| conflicting(&conflicts, undone))?;
    // All in one request: a revert of many rows has many targets.
    let asked: Vec<_> = targets
        .iter()
        .map(|target| others::searches(schema, *target))
        .collect();
    let selections = asked.iter().flatten().map(others::Search::select);
    let results = select(session, invocation, selections)?;
    let mut results = results.iter();
    let (mut conflicts, mut guards) = (Vec::new(), Vec::new());
    for (target, searches) in targets.into_iter().zip(&asked) {
        let mut referrers = Vec::new();
        for (search, rows) in searches.iter().zip(results.by_ref()) {
            referrers.extend(search.referrers(rows));
            guards.push(search.guard(rows));
        }
        conflicts.extend(others::judge(schema, target, &referrers, changes));
    }
    match conflicts.is_empty() {
        true => Ok(guards),
        false => Err(conflicting(&conflicts, undone)),
    }
}

/// Fails if other rows have taken values of indexes that rows of the changes would get back. The
/// server makes sure of it when the changes are made.
fn check_keys(
    session: &mut Session,
    invocation: &Invocation<'_>,
    changes: &[RowChange],
    undone: &Undone,
) -> Result<(), Failure> {
    let keys = keys::keys(changes);
    if keys.is_empty() {
        return Ok(());
    }
    let results = select(session, invocation, keys.iter().map(keys::Key::select))?;
    let pairs = keys.iter().zip(&results);
    let conflicts: Vec<Conflict> = pairs
        .filter_map(|(key, rows)| key.judge(rows, changes))
        .collect();
    match conflicts.is_empty() {
        true => Ok(()),
        false => Err(conflicting(&conflicts, undone)),
    }
}

fn execute(
    session: &mut Session,
    invocation: &Invocation<'_>,
    undone: &Undone,
    (guards, changes): (Vec<Value>, &[RowChange]),
) -> Result<Value, Failure> {
    let mut params = vec![Value::string(&*invocation.database)];
    params.extend(guards);
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
