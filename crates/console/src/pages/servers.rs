//! The server of a database: its model and role, its cluster, sessions, locks, slow transactions
//! and jobs. A server of Corvid tells them by its status; of others only `_Server` is shown.

use askama::Template;
use axum::response::Response;
use corvid::json::{Object, Value};

use crate::database::{Database, Open};
use crate::pages::frame::Frame;
use crate::pages::grid::Grid;
use crate::pages::model;
use crate::pages::params::Params;
use crate::status;
use crate::web::{App, reply};

#[derive(Template)]
#[template(path = "servers.html")]
struct Servers {
    frame: Frame,
    parts: String,
    address: String,
}

#[derive(Template)]
#[template(path = "server_parts.html")]
struct Parts {
    remote: String,
    model: String,
    has_status: bool,
    /// Title and table of each part.
    parts: Vec<(&'static str, String)>,
}

/// The lists of a database in the status that are tables of their own.
const LISTS: [(&str, &str); 2] = [
    ("locks", "Locks"),
    ("slow_transactions", "Slow transactions"),
];

/// Members that have a table of their own, or a page.
fn is_elsewhere(name: &str) -> bool {
    let own = [
        "tables",
        "locks",
        "slow_transactions",
        "cluster.servers",
        "name",
    ];
    own.contains(&name)
}

pub(crate) fn page(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    let parts = parts(database, open);
    if !params.get("part").is_empty() {
        return reply::page(&parts);
    }
    reply::page(&Servers {
        frame: Frame::of(app, database, "servers", "Servers"),
        parts: parts.render().unwrap_or_default(),
        address: format!("/db/{}/servers?part=1", database.source.name),
    })
}

fn parts(database: &Database, open: &Open) -> Parts {
    let session = open.client.session();
    let mut parts = Vec::new();
    let mut add_list = |title, value: Option<&Value>| {
        let list = value.and_then(Value::as_array).unwrap_or_default();
        if let Some(grid) = Grid::of_list(list) {
            parts.push((title, grid.html()));
        }
    };
    let status = database.status.read();
    if let Some(status) = status.as_deref() {
        let served = status::of_database(status, &open.schema.name);
        let cluster = served.and_then(|served| served.get("cluster"));
        add_list(
            "Members of the cluster",
            cluster.and_then(|cluster| cluster.get("servers")),
        );
        add_list("Sessions", status.get("sessions"));
        for (name, title) in LISTS {
            add_list(title, served.and_then(|served| served.get(name)));
        }
        add_list("Jobs", status.get("jobs"));
        if let Some(served) = served {
            parts.push(("Database", Grid::of_object(served, is_elsewhere).html()));
        }
        if let Some(server) = status.get("server") {
            parts.push(("Process", Grid::of_object(server, |_| false).html()));
        }
        if let Some(settings) = status.get("settings") {
            parts.push(("Settings", Grid::of_object(settings, |_| false).html()));
        }
    } else if let Ok(rows) = of_server_database(open) {
        add_list("Databases of the server", Some(&rows));
    }
    Parts {
        remote: session.remote.clone().unwrap_or_default(),
        model: model::words(&session),
        has_status: status.is_some(),
        parts,
    }
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
    let reply = open.call("transact", &Value::Array(params))?;
    let rows = reply
        .as_array()
        .and_then(|results| results.first()?.get("rows"));
    rows.cloned()
        .ok_or_else(|| "the server has no database _Server".to_owned())
}
