//! The tables of a database, with their numbers of rows.

use askama::Template;
use axum::response::Response;
use corvid::data::TableId;
use corvid::json::{Object, Value};
use hyper::StatusCode;

use crate::database::{Database, Open};
use crate::failure::Failure;
use crate::pages::frame::Frame;
use crate::pages::params::Params;
use crate::refusal;
use crate::status;
use crate::web::{App, reply};

#[derive(Template)]
#[template(path = "tables.html")]
struct Tables {
    frame: Frame,
    schema: String,
    version: String,
    tables: Vec<Line>,
    /// The number of tables without rows, which are listed apart.
    empty: Vec<Line>,
    /// A count is unknown.
    is_uncounted: bool,
    /// Why rows were not counted.
    trouble: String,
}

struct Line {
    name: String,
    rows: Option<u64>,
    columns: usize,
    /// Tables that the rows refer to.
    refers_to: Vec<String>,
    is_root: bool,
    /// The rows are in the console's memory.
    is_watched: bool,
}

/// The numbers of rows that are known: those of the replica, else those of the server's status.
pub(crate) fn counts(open: &Open, status: Option<&Value>) -> Vec<Option<u64>> {
    let of_database = status.and_then(|status| status::of_database(status, &open.schema.name));
    open.client.read(|idl| {
        let tables = open.schema.iter();
        tables
            .map(|(id, table)| match open.looks.is_watched(idl, id) {
                true => Some(idl.row_count(id) as u64),
                false => status::rows(of_database?, &table.name),
            })
            .collect()
    })
}

/// Counts the rows of the tables whose number is unknown, by one transaction.
fn count(open: &Open, counts: &mut [Option<u64>]) -> Result<(), Failure> {
    let unknown: Vec<usize> = (0..counts.len())
        .filter(|at| counts[*at].is_none())
        .collect();
    let mut params = vec![Value::string(open.schema.name.as_str())];
    params.extend(unknown.iter().map(|at| {
        let mut select = Object::new();
        let table = &open.schema.tables()[*at];
        select.insert("op".into(), Value::string("select"));
        select.insert("table".into(), Value::string(table.name.as_str()));
        select.insert("where".into(), Value::Array(Vec::new()));
        select.insert("columns".into(), Value::Array(vec![Value::string("_uuid")]));
        Value::Object(select)
    }));
    let reply = open.call("transact", &Value::Array(params))?;
    let results = reply.as_array().unwrap_or_default();
    for (at, result) in unknown.iter().zip(results) {
        let rows = result.get("rows").and_then(Value::as_array);
        counts[*at] = rows.map(|rows| rows.len() as u64);
    }
    refusal::of_results(&reply).map_or(Ok(()), |error| Err(Failure::Refused(error)))
}

pub(crate) fn page(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    let status = database.status.read();
    let mut counts = counts(open, status.as_deref());
    let counted = match params.get("count") {
        "" => Ok(()),
        _ => count(open, &mut counts),
    };
    let (tables, empty) = lines(open, &counts)
        .into_iter()
        .partition(|line: &Line| line.rows != Some(0));
    let status = match &counted {
        Ok(()) => StatusCode::OK,
        Err(failure) => failure.status(StatusCode::OK),
    };
    let page = Tables {
        frame: Frame::of(app, database, "tables", &open.schema.name),
        schema: open.schema.name.to_string(),
        version: open.schema.version.clone(),
        tables,
        empty,
        is_uncounted: counts.contains(&None),
        trouble: counted
            .err()
            .map(|failure| failure.text().to_owned())
            .unwrap_or_default(),
    };
    reply::page_with(status, &page)
}

fn lines(open: &Open, counts: &[Option<u64>]) -> Vec<Line> {
    let watched: Vec<bool> = open.client.read(|idl| {
        let tables = (0..).map(TableId).take(counts.len());
        tables
            .map(|table| open.looks.is_watched(idl, table))
            .collect()
    });
    let tables = open.schema.iter().zip(counts).zip(watched);
    tables
        .map(|(((_, table), rows), is_watched)| {
            let mut refers_to: Vec<String> = table
                .iter()
                .flat_map(|(_, column)| {
                    let column_type = &column.column_type;
                    let bases = [Some(&column_type.key), column_type.value.as_ref()];
                    bases.into_iter().flatten().filter_map(|base| {
                        let reference = base.reference.as_ref()?;
                        Some(open.schema.table(reference.table).name.to_string())
                    })
                })
                .collect();
            refers_to.sort();
            refers_to.dedup();
            Line {
                name: table.name.to_string(),
                rows: *rows,
                columns: table.columns().len(),
                refers_to,
                is_root: table.is_root,
                is_watched,
            }
        })
        .collect()
}
