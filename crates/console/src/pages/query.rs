//! Operations that a viewer writes: their results as tables, and how long they took.
//!
//! Without `--writable`, operations that change something are executed only as a dry run: an
//! `abort` after them makes the server undo them.

use std::time::Instant;

use askama::Template;
use axum::response::Response;
use corvid::json::{Object, Value};
use hyper::StatusCode;

use crate::database::{Database, Open};
use crate::failure::Failure;
use crate::pages::form::{self, Form};
use crate::pages::frame::Frame;
use crate::pages::grid::{Grid, counted, duration};
use crate::pages::params::Params;
use crate::web::{App, reply};

/// The number of operations of one transaction.
const OPERATIONS_MAX: usize = 1000;

/// Operations that change nothing.
const READING: [&str; 4] = ["select", "comment", "abort", "assert"];

/// Operations that change contents.
const WRITING: [&str; 4] = ["insert", "update", "mutate", "delete"];

#[derive(Template)]
#[template(path = "query.html")]
struct Query {
    frame: Frame,
    form_token: String,
    operations: String,
    is_dry: bool,
    is_writable: bool,
    trouble: String,
    took: String,
    results: Vec<Shown>,
    form: Form,
    is_form_open: bool,
    completions: String,
}

/// The result of an operation.
struct Shown {
    title: String,
    is_error: bool,
    html: String,
}

/// The page before anything is executed.
pub(crate) fn page(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    let (written, trouble) = match form::operation(&open.schema, params) {
        Ok(written) => (written, String::new()),
        Err(error) => (None, error),
    };
    let operations = match (written, params.get("operations")) {
        (Some(written), _) => written,
        (None, "") => example(open),
        (None, given) => given.to_owned(),
    };
    let status = match trouble.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::BAD_REQUEST,
    };
    let page = Query {
        operations,
        trouble,
        ..Query::new(app, database, open, params)
    };
    reply::page_with(status, &page)
}

/// An operation that any database can execute.
fn example(open: &Open) -> String {
    let table = open
        .schema
        .iter()
        .next()
        .map(|(_, table)| table.name.to_string());
    let table = table.unwrap_or_default();
    format!("[\n  {{\"op\": \"select\", \"table\": \"{table}\", \"where\": []}}\n]")
}

impl Query {
    fn new(app: &App, database: &Database, open: &Open, params: &Params) -> Query {
        Query {
            frame: Frame::of(app, database, "query", "Query"),
            form_token: app.guard.form_token(),
            operations: String::new(),
            is_dry: !app.is_writable,
            is_writable: app.is_writable,
            trouble: String::new(),
            took: String::new(),
            results: Vec::new(),
            form: Form::new(&open.schema, params),
            is_form_open: !params.get("op").is_empty(),
            completions: format!("/db/{}/query/complete", database.source.name),
        }
    }
}

/// Executes the operations of a form.
pub(crate) fn execute(app: &App, database: &Database, open: &Open, form: &Params) -> Response {
    if !app.guard.is_form_token(form.get("form_token")) {
        return reply::text(
            StatusCode::FORBIDDEN,
            "the form is not from this console, or the console was started anew: read the page again\n",
        );
    }
    let is_dry = !form.get("dry").is_empty();
    let mut page = Query {
        operations: form.get("operations").to_owned(),
        is_dry,
        ..Query::new(app, database, open, &Params::default())
    };
    let begin = Instant::now();
    let outcome = params(open, &page.operations, is_dry, app.is_writable)
        .map_err(Failure::from)
        .and_then(|params| Ok((open.call("transact", &params)?, params)));
    let micros = i64::try_from(begin.elapsed().as_micros()).unwrap_or(i64::MAX);
    let status = match outcome {
        Ok((results, params)) => {
            page.took = duration(micros);
            page.results = shown(&results, &params, is_dry);
            StatusCode::OK
        }
        Err(failure) => {
            page.trouble = failure.text().to_owned();
            failure.status(StatusCode::BAD_REQUEST)
        }
    };
    reply::page_with(status, &page)
}

/// The parameters of `transact`, if the viewer may execute the operations.
fn params(open: &Open, text: &str, is_dry: bool, is_writable: bool) -> Result<Value, String> {
    let parsed = Value::parse(text.trim().as_bytes());
    let operations = match parsed.map_err(|error| format!("not JSON: {error}"))? {
        Value::Array(operations) => operations,
        operation @ Value::Object(_) => vec![operation],
        _ => return Err("operations are a JSON array of objects".to_owned()),
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(format!("more than {OPERATIONS_MAX} operations"));
    }
    for operation in &operations {
        let name = operation.get("op").and_then(Value::as_str);
        let name = name.ok_or("each operation is an object with \"op\"")?;
        let is_instant = operation.get("timeout").and_then(Value::as_integer) == Some(0);
        if name == "wait" && !is_instant {
            return Err("\"wait\" needs \"timeout\": 0 here".to_owned());
        }
        let is_reading = READING.contains(&name) || name == "wait";
        if !is_reading && !is_dry && !is_writable {
            let why = match WRITING.contains(&name) {
                true => "changes the database",
                false => "is not executed by a read-only console",
            };
            return Err(format!(
                "\"{name}\" {why}: run it dry, or start the console with --writable"
            ));
        }
    }
    let mut params = vec![Value::string(open.schema.name.as_str())];
    params.extend(operations);
    if is_dry {
        let mut abort = Object::new();
        abort.insert("op".into(), Value::string("abort"));
        params.push(Value::Object(abort));
    }
    Ok(Value::Array(params))
}

fn shown(results: &Value, params: &Value, is_dry: bool) -> Vec<Shown> {
    let operations = params.as_array().unwrap_or_default();
    let results = results.as_array().unwrap_or_default().iter();
    let described = results.enumerate().filter_map(|(index, result)| {
        let operation = operations.get(index + 1);
        let member = |name| operation.and_then(|operation| operation.get(name)?.as_str());
        let error = result.get("error").and_then(Value::as_str);
        // The server confirms a dry run by this error of the operation that was added.
        if is_dry && error == Some("aborted") && index + 2 == operations.len() {
            return None;
        }
        let op = member("op").unwrap_or("commit");
        let mut title = match member("table") {
            Some(table) => format!("{op} {table}"),
            None => op.to_owned(),
        };
        let html = match result.get("rows").and_then(Value::as_array) {
            Some(rows) => {
                title.push_str(&format!(": {}", counted(rows.len(), "row")));
                Grid::of_rows(rows)
                    .map(|grid| grid.html())
                    .unwrap_or_default()
            }
            None => Grid::of_object(result, |_| false).html(),
        };
        Some(Shown {
            title,
            is_error: error.is_some(),
            html,
        })
    });
    described.collect()
}
