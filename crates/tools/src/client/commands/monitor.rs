//! `monitor`, `monitor-cond` and `monitor-cond-since`: print the contents and then the changes as
//! tables (docs/spec/cli.md 3.7).
//!
//! The words of the command line become one request ([`request`]); replies and notifications become
//! tables ([`updates`]). The three versions differ in method, notification and the form of row
//! updates.

mod request;
mod updates;

use std::io::{self, Write};

use corvid_data::{Schema, TableSchema, Uuid};
use corvid_json::{Object, Value};
use corvid_shell::output::{self, Output};
use corvid_shell::unixctl::Command;

use super::{Invocation, column_names, table_names};
use crate::client::watch::{Progress, Watch};
use crate::failure::Failure;
use crate::session::{Incoming, RequestId, Session};
use crate::table::Printer;

use request::{MonitoredTable, Problem};
use updates::Phase;

/// The version of the monitor protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// `monitor`, `update`
    Plain,
    /// `monitor_cond`, `update2`
    Cond,
    /// `monitor_cond_since`, `update3`
    CondSince,
}

impl Version {
    fn method(self) -> &'static str {
        match self {
            Version::Plain => "monitor",
            Version::Cond => "monitor_cond",
            Version::CondSince => "monitor_cond_since",
        }
    }

    fn notification(self) -> &'static str {
        match self {
            Version::Plain => "update",
            Version::Cond => "update2",
            Version::CondSince => "update3",
        }
    }
}

pub(crate) fn monitor(session: &mut Session, invocation: &Invocation<'_>) -> Result<(), Failure> {
    let (watch, schema) = begin(session, invocation)?;
    let (name, groups) = (&invocation.args[0], &invocation.args[1..]);
    let tables = if name == "ALL" {
        schema.tables().iter().collect()
    } else {
        let missing = || {
            let text = missing_table(&schema, name);
            let failure = Failure::new(format!("{}: {text}", session.name()));
            failure.suggesting(name, table_names(&schema))
        };
        vec![find(&schema, name).ok_or_else(missing)?]
    };
    let tables = tables
        .into_iter()
        .map(|table| MonitoredTable::new(table, groups, None))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|problem| bad_columns(&problem, session, &schema))?;
    run(Version::Plain, session, invocation, watch, tables, None)
}

pub(crate) fn monitor_cond(
    session: &mut Session,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    let (watch, schema) = begin(session, invocation)?;
    let tables = conditional(session, &schema, invocation.args)?;
    run(Version::Cond, session, invocation, watch, tables, None)
}

pub(crate) fn monitor_cond_since(
    session: &mut Session,
    invocation: &Invocation<'_>,
) -> Result<(), Failure> {
    let (watch, schema) = begin(session, invocation)?;
    let (last_id, words) = match invocation.args.split_first() {
        Some((first, rest)) if Uuid::parse(first.as_bytes()).is_some() => (first.clone(), rest),
        _ => (Uuid::ZERO.to_string(), invocation.args),
    };
    let tables = conditional(session, &schema, words)?;
    run(
        Version::CondSince,
        session,
        invocation,
        watch,
        tables,
        Some(&last_id),
    )
}

fn begin(session: &mut Session, invocation: &Invocation<'_>) -> Result<(Watch, Schema), Failure> {
    let mut watch = Watch::begin(invocation.settings, &[1, 2])?;
    watch.add_commands([
        Command::new(
            "ovsdb-client/block",
            "",
            0..=0,
            "stop receiving from the server",
            |control, _| {
                let was_blocked = std::mem::replace(&mut control.is_blocked, true);
                Ok(if was_blocked { "already blocking" } else { "" }.to_owned())
            },
        ),
        Command::new(
            "ovsdb-client/unblock",
            "",
            0..=0,
            "receive from the server again",
            |control, _| {
                let was_blocked = std::mem::replace(&mut control.is_blocked, false);
                Ok(if was_blocked { "" } else { "already unblocked" }.to_owned())
            },
        ),
        Command::new(
            "ovsdb-client/cond_change",
            "TABLE COND",
            2..=2,
            "change the condition of a table",
            |control, args| {
                let change = condition_change(&args[0], &args[1])?;
                control.requests.push(("monitor_cond_change", change));
                Ok("condition changed".to_owned())
            },
        ),
    ]);
    let schema = session.schema(&invocation.database)?;
    Ok((watch, schema))
}

fn find<'a>(schema: &'a Schema, name: &str) -> Option<&'a TableSchema> {
    schema.table_id(name).map(|id| schema.table(id))
}

fn missing_table(schema: &Schema, name: &str) -> String {
    format!("{} does not have a table named \"{name}\"", schema.name)
}

fn bad_columns(problem: &Problem, session: &Session, schema: &Schema) -> Failure {
    let text = problem.text(&schema.name);
    let failure = Failure::new(format!("{}: {text}", session.name()));
    match problem {
        Problem::Unknown { table, column } => {
            let columns = find(schema, table).into_iter().flat_map(column_names);
            failure.suggesting(column, columns)
        }
        Problem::Repeated(_) => failure,
    }
}

/// The table that `COND TABLE [COLUMNS]...` selects.
fn conditional(
    session: &Session,
    schema: &Schema,
    words: &[String],
) -> Result<Vec<MonitoredTable>, Failure> {
    let [condition, name, groups @ ..] = words else {
        return Err(Failure::new("a condition and a table are needed"));
    };
    let Some(table) = find(schema, name) else {
        let failure = Failure::new(missing_table(schema, name));
        return Err(failure.suggesting(name, table_names(schema)));
    };
    let condition = parse(condition).map_err(Failure::new)?;
    let monitored = MonitoredTable::new(table, groups, Some(&condition))
        .map_err(|problem| bad_columns(&problem, session, schema))?;
    Ok(vec![monitored])
}

fn parse(text: &str) -> Result<Value, String> {
    Value::parse_text(text.as_bytes()).map_err(|error| format!("\"{text}\": {error}"))
}

/// The parameters of `monitor_cond_change` for one table; the monitor keeps its id.
fn condition_change(table: &str, condition: &str) -> Result<Value, String> {
    let object = |name: &str, value: Value| Value::Object(Object::from([(name.into(), value)]));
    let request = object("where", parse(condition)?);
    Ok(Value::Array(vec![
        Value::Null,
        Value::Null,
        object(table, Value::Array(vec![request])),
    ]))
}

/// Sends the request, and prints its reply and all notifications.
fn run(
    version: Version,
    session: &mut Session,
    invocation: &Invocation<'_>,
    watch: Watch,
    tables: Vec<MonitoredTable>,
    last_id: Option<&str>,
) -> Result<(), Failure> {
    session.set_aware(invocation.settings.aware)?;
    let requests = tables
        .iter()
        .map(|table| (table.name.as_str().into(), table.requests.clone()))
        .collect();
    let mut params = vec![
        Value::string(&invocation.database),
        Value::Null,
        Value::Object(requests),
    ];
    params.extend(last_id.map(Value::string));
    let request = session.send(version.method(), &Value::Array(params))?;
    let printer = Printer::new(invocation.settings.style);
    let name = session.name().to_owned();
    let mut monitor = Monitor {
        version,
        invocation,
        tables,
        request,
        printer,
        server: name,
    };
    watch.run(session, |incoming| monitor.handle(incoming))
}

struct Monitor<'a> {
    version: Version,
    invocation: &'a Invocation<'a>,
    tables: Vec<MonitoredTable>,
    request: RequestId,
    printer: Printer,
    server: String,
}

impl Monitor<'_> {
    fn handle(&mut self, incoming: Incoming) -> Result<Progress, Failure> {
        match incoming {
            Incoming::Reply(id, Ok(result)) if id == self.request => {
                self.print_initial(&result)?;
                return Ok(Progress::Ready);
            }
            Incoming::Reply(id, Err(error)) if id == self.request => {
                return Err(Failure::wire(&error));
            }
            // The reply to a change of the condition.
            Incoming::Reply(..) => {}
            Incoming::Notification(method, params) if params.first() == Some(&Value::Null) => {
                if method == "monitor_canceled" {
                    let (server, database) = (&self.server, &self.invocation.database);
                    return Err(Failure::new(format!(
                        "{server}: {database} database was removed"
                    )));
                }
                if method == self.version.notification() {
                    self.print_update(&params)?;
                }
            }
            Incoming::Notification(..) => {}
        }
        Ok(Progress::Waiting)
    }

    fn print_initial(&mut self, result: &Value) -> Result<(), Failure> {
        let mut out = Output;
        let mut updates = result;
        if self.version == Version::CondSince {
            let [found, last_id, since] = result.as_array().unwrap_or_default() else {
                return Err(Failure::new(format!(
                    "monitor_cond_since reply is not as expected: {result}"
                )));
            };
            let last_id = output::part(last_id.as_str().unwrap_or_default());
            writeln!(out, "found: {found}, last_id: {last_id}")?;
            updates = since;
        }
        self.print(updates, Phase::Initial, &mut out)
    }

    fn print_update(&mut self, params: &[Value]) -> Result<(), Failure> {
        let mut out = Output;
        match (self.version, params) {
            (Version::CondSince, [_, last_id, updates]) => {
                // The empty line before the tables ends this line.
                let last_id = output::part(last_id.as_str().unwrap_or_default());
                write!(out, "\nlast_id: {last_id}")?;
                self.print(updates, Phase::Update, &mut out)
            }
            (Version::Plain | Version::Cond, [_, updates]) => {
                self.print(updates, Phase::Update, &mut out)
            }
            _ => Ok(()),
        }
    }

    fn print(
        &mut self,
        updates: &Value,
        phase: Phase,
        out: &mut dyn io::Write,
    ) -> Result<(), Failure> {
        let has_captions = self.tables.len() > 1;
        for monitored in &self.tables {
            let Some(rows) = updates.get(&monitored.name) else {
                continue;
            };
            let mut table = match self.version {
                Version::Plain => updates::plain(monitored, rows, phase)?,
                Version::Cond | Version::CondSince => updates::conditional(monitored, rows)?,
            };
            table.caption = has_captions.then(|| monitored.name.clone());
            table.timestamp = self.invocation.settings.timestamp();
            self.printer.print(&table, out)?;
        }
        Ok(out.flush()?)
    }
}
