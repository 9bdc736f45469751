//! The first page: the databases with their servers and sizes.

use askama::Template;
use axum::response::Response;
use corvid::json::Value;
use hyper::StatusCode;

use crate::database::{Database, State};
use crate::pages::frame::{Frame, SECTIONS};
use crate::pages::{model, tables};
use crate::web::{App, reply};

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    databases: Vec<Line>,
}

/// A database.
struct Line {
    name: String,
    remotes: String,
    /// Why it is not shown; empty if it is.
    trouble: String,
    database: String,
    version: String,
    remote: String,
    model: String,
    tables: usize,
    /// The number of rows of all tables, if it is known.
    rows: Option<u64>,
    /// Sessions of the server, if its status tells.
    sessions: Option<usize>,
}

pub(crate) fn page(app: &App) -> Response {
    reply::page(&Overview {
        frame: Frame::new(app, "Databases"),
        databases: app.databases.iter().map(|one| line(one)).collect(),
    })
}

fn line(database: &Database) -> Line {
    let source = &database.source;
    let mut line = Line {
        name: source.name.clone(),
        remotes: source.remotes.clone(),
        trouble: String::new(),
        database: source.database.clone().unwrap_or_default(),
        version: String::new(),
        remote: String::new(),
        model: String::new(),
        tables: 0,
        rows: None,
        sessions: None,
    };
    let open = match database.state() {
        State::Unreached(why) => {
            return Line {
                trouble: why,
                ..line
            };
        }
        State::Open(open) => open,
    };
    let session = open.client.session();
    line.trouble = open.trouble();
    line.database = open.schema.name.to_string();
    line.version = open.schema.version.clone();
    line.model = model::words(&session);
    line.remote = session.remote.unwrap_or_default();
    line.tables = open.schema.tables().len();
    let status = database.status.read();
    let counts = tables::counts(&open, status.as_deref());
    line.rows = counts.iter().copied().sum();
    let sessions = status.as_ref().and_then(|status| status.get("sessions"));
    line.sessions = sessions
        .and_then(|sessions| sessions.as_array())
        .map(<[_]>::len);
    line
}

/// The pages of all databases as JSON, `[[TITLE, ADDRESS], ...]`, for the palette.
pub(crate) fn places(app: &App) -> Response {
    let mut places = Vec::new();
    let mut add = |title: String, address: String| {
        places.push(Value::Array(vec![
            Value::string(title),
            Value::string(address),
        ]));
    };
    for database in &app.databases {
        let name = &database.source.name;
        for (address, title) in SECTIONS {
            add(format!("{name} {title}"), format!("/db/{name}/{address}"));
        }
        if let State::Open(open) = database.state() {
            for (_, table) in open.schema.iter() {
                let table = &table.name;
                add(
                    format!("{name} {table}"),
                    format!("/db/{name}/table/{table}"),
                );
            }
        }
    }
    let json = Value::Array(places).to_bytes();
    reply::of(StatusCode::OK, "application/json", json)
}
