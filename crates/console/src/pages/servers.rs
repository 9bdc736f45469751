//! The server of a database: what it is and how it is, the last hour, its cluster, relays,
//! sessions, slow transactions, locks and jobs. A server of Corvid tells them by its status; of
//! others only `_Server` is shown, and what their control socket tells of a cluster.

pub(crate) mod actions;
mod facts;
mod lines;
mod list;
mod members;
mod metric;
mod sessions;
mod tree;

use std::sync::{Arc, PoisonError};

use askama::Template;
use axum::response::Response;
use corvid::json::{Object, Value};

use crate::database::{Database, Open};
use crate::pages::frame::Frame;
use crate::pages::grid::Grid;
use crate::pages::params::Params;
use crate::status::Status;
use crate::web::{App, reply};

use actions::Button;
use facts::Fact;
use lines::Line;
use list::List;
use members::Cluster;
use tree::Node;

#[derive(Template)]
#[template(path = "servers.html")]
struct Servers {
    frame: Frame,
    parts: String,
    address: String,
    /// The database with the version of its schema.
    schema: String,
    /// The whole status: title and table of each part.
    whole: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "server_parts.html")]
struct Parts {
    /// Why the contents may be old; empty if they are current.
    trouble: String,
    facts: Vec<Fact>,
    buttons: Vec<Button>,
    /// Why the status is not shown, or is that of another server.
    note: &'static str,
    lines: Vec<Line>,
    span: String,
    members: Option<List>,
    tree: Option<Node>,
    lists: Vec<List>,
    /// The databases of a server without a status.
    databases: String,
}

pub(crate) fn page(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    let mut parts = parts(app, database, open);
    if !params.get("part").is_empty() {
        // The frame of a whole page says it.
        parts.trouble = Frame::of(app, database, "servers", "Servers").trouble;
        return reply::page(&parts);
    }
    let status = database.status.main();
    reply::page(&Servers {
        frame: Frame::of(app, database, "servers", "Servers"),
        parts: parts.render().unwrap_or_default(),
        address: format!("/db/{}/servers?part=1", database.source.name),
        schema: format!("{} {}", open.schema.name, open.schema.version),
        whole: status
            .map(|status| whole(&status, open))
            .unwrap_or_default(),
    })
}

fn parts(app: &App, database: &Database, open: &Open) -> Parts {
    let session = open.client.session();
    if let Some(remote) = &session.remote {
        database.status.prefer(remote);
    }
    let all = database.status.all();
    let main = database.status.main();
    let name = open.schema.name.as_str();
    let Some(status) = main else {
        return Parts {
            trouble: String::new(),
            facts: facts::facts(&session, None, None, None),
            buttons: actions::buttons(app, database, open, &all, None),
            note: match session.is_connected {
                true => WITHOUT_STATUS,
                false => "The server is not connected",
            },
            lines: Vec::new(),
            span: String::new(),
            members: None,
            tree: None,
            lists: Vec::new(),
            databases: databases(open),
        };
    };
    let served = status.of_database(name);
    let cluster = served.and_then(|served| Cluster::of(served, &all, name));
    let metrics = status.metrics();
    let metrics = metrics.as_deref();
    let is_own = status.is_own();
    let closing = app.is_writable && is_own && actions::control(&status).is_some();
    let closing = closing.then(|| format!("/db/{}/servers/act?do=close", database.source.name));
    let mut lists = Vec::new();
    let document = &status.document;
    lists.push(sessions::sessions(document, metrics, closing.as_deref()));
    lists.extend(served.and_then(|served| sessions::slow(served, metrics)));
    lists.extend(sessions::locks(document, metrics));
    lists.extend(sessions::jobs(document, metrics));
    let (lines, span) = match is_own {
        true => {
            let mut samples = database
                .samples
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            samples.look();
            let ring = samples.ring();
            (lines::lines(ring, metrics), lines::span(ring.len()))
        }
        false => (Vec::new(), String::new()),
    };
    Parts {
        trouble: String::new(),
        facts: facts::facts(&session, Some(&status), served, cluster.as_ref()),
        buttons: actions::buttons(app, database, open, &all, Some(&status)),
        note: match is_own {
            true => "",
            false => WITHOUT_STATUS,
        },
        lines,
        span,
        members: cluster.as_ref().map(|cluster| cluster.list(metrics)),
        tree: tree::tree(app, database, name, &status, &all),
        lists,
        databases: match is_own {
            true => String::new(),
            false => databases(open),
        },
    }
}

const WITHOUT_STATUS: &str = "This server publishes no status: sessions, locks and costs are shown for a server of Corvid, whose \
                              status page or control socket the console can reach";

/// The members of the status that have a table of their own, or a page.
fn is_elsewhere(name: &str) -> bool {
    let own = ["tables", "slow_transactions", "cluster.servers", "name"];
    own.contains(&name)
}

/// The whole status as tables.
fn whole(status: &Arc<Status>, open: &Open) -> Vec<(&'static str, String)> {
    let mut parts = Vec::new();
    let document = &status.document;
    let served = status.of_database(&open.schema.name);
    if let Some(served) = served {
        parts.push(("Database", Grid::of_object(served, is_elsewhere).html()));
    }
    for (name, title) in [("server", "Process"), ("settings", "Settings")] {
        if let Some(part) = document.get(name) {
            parts.push((title, Grid::of_object(part, |_| false).html()));
        }
    }
    let servers = served.and_then(|served| served.get("cluster")?.get("servers"));
    for (title, list) in [
        ("Members", servers),
        ("All sessions", document.get("sessions")),
        ("All locks", document.get("locks")),
        ("All jobs", document.get("jobs")),
    ] {
        let list = list.and_then(Value::as_array).unwrap_or_default();
        parts.extend(Grid::of_list(list).map(|grid| (title, grid.html())));
    }
    parts
}

/// The databases of the server as a table; empty if the server has no `_Server`.
fn databases(open: &Open) -> String {
    let rows = of_server_database(open).unwrap_or(Value::Null);
    let grid = Grid::of_list(rows.as_array().unwrap_or_default());
    grid.map(|grid| grid.html()).unwrap_or_default()
}

/// The rows of the database `_Server`, without schemas.
fn of_server_database(open: &Open) -> Result<Value, String> {
    let mut select = Object::new();
    select.insert("op".into(), Value::string("select"));
    select.insert("table".into(), Value::string("Database"));
    select.insert("where".into(), Value::Array(Vec::new()));
    let columns = [
        "name",
        "model",
        "connected",
        "leader",
        "index",
        "cid",
        "sid",
    ];
    let columns = columns.into_iter().map(Value::string).collect();
    select.insert("columns".into(), Value::Array(columns));
    let params = vec![Value::string("_Server"), Value::Object(select)];
    let reply = open.call("transact", &Value::Array(params));
    let reply = reply.map_err(|failure| failure.text().to_owned())?;
    let rows = reply
        .as_array()
        .and_then(|results| results.first()?.get("rows"));
    rows.cloned()
        .ok_or_else(|| "the server has no database _Server".to_owned())
}
