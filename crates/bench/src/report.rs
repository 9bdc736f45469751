//! Results for people, with ratios, and as JSON.

use std::fmt::Write as _;

use corvid_json::Value;
use corvid_json::value::Object;

use crate::figures::{COLUMNS, Figures};
use crate::options::Load;
use crate::rounds::{Outcome, ServerOutcome};

/// Widths of the columns of the table.
const NAME_WIDTH: usize = 10;
const SERVER_WIDTH: usize = 28;
const FIGURE_WIDTH: usize = 11;

/// The table: a line per server and workload; with two servers, the first divided by the second.
pub(crate) fn table(outcomes: &[Outcome], load: &Load) -> String {
    let mut text = format!(
        "medians of {} rounds; {} connections x {} transactions\n\n{:NAME_WIDTH$} {:SERVER_WIDTH$}",
        load.rounds, load.connections, load.transactions, "workload", "server"
    );
    for column in &COLUMNS {
        let _ = write!(text, "{:>FIGURE_WIDTH$}", column.title);
    }
    text.push('\n');
    for outcome in outcomes {
        for server in &outcome.servers {
            let _ = write!(
                text,
                "{:NAME_WIDTH$} {:SERVER_WIDTH$}",
                outcome.kind,
                end_of(&server.program)
            );
            for column in &COLUMNS {
                let figure = (column.get)(&server.median);
                let _ = write!(text, "{figure:>FIGURE_WIDTH$.*}", column.digits);
            }
            text.push('\n');
        }
        if let [ours, reference] = outcome.servers.as_slice() {
            let _ = write!(text, "{:NAME_WIDTH$} {:SERVER_WIDTH$}", "", "ratio");
            for column in &COLUMNS {
                let ratio = (column.get)(&ours.median) / (column.get)(&reference.median);
                let _ = write!(text, "{ratio:>FIGURE_WIDTH$.2}");
            }
            text.push('\n');
        }
    }
    text
}

/// The end of a path, which tells servers apart better than its beginning.
fn end_of(program: &std::path::Path) -> String {
    let name = program.display().to_string();
    let skip = name.chars().count().saturating_sub(SERVER_WIDTH);
    name.chars().skip(skip).collect()
}

/// Everything measured, each run included: an array with one object per workload and server.
pub(crate) fn json(outcomes: &[Outcome], load: &Load) -> String {
    let mut results = Vec::new();
    for outcome in outcomes {
        for server in &outcome.servers {
            results.push(server_json(outcome, server));
        }
    }
    let report = object([
        ("connections", Value::Integer(load.connections.into())),
        ("transactions", Value::Integer(load.transactions.into())),
        ("rounds", Value::Integer(load.rounds.into())),
        ("results", Value::Array(results)),
    ]);
    String::from_utf8_lossy(&report.to_bytes()).into_owned()
}

fn server_json(outcome: &Outcome, server: &ServerOutcome) -> Value {
    object([
        ("workload", Value::string(outcome.kind.to_string())),
        (
            "server",
            Value::string(server.program.display().to_string()),
        ),
        ("median", figures_json(&server.median)),
        (
            "runs",
            Value::Array(server.runs.iter().map(figures_json).collect()),
        ),
    ])
}

fn figures_json(figures: &Figures) -> Value {
    object(
        COLUMNS
            .iter()
            .map(|column| (column.member, Value::Real((column.get)(figures)))),
    )
}

/// An object of these members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect::<Object>(),
    )
}
