//! The actions on a server that a writable console offers: close a session, compact the file,
//! transfer the leadership, make a backup.
//!
//! Each is a page that asks, then a POST with the token of its form, and works without scripts. The
//! first three go to the control socket of the server; the backup is a request that every client
//! may send. A read-only console refuses all of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::response::Response;
use corvid::json::Value;
use corvid_net::errno;
use corvid_tools::status::document;
use corvid_tools::status::source::{Control, Source};
use hyper::StatusCode;

use super::list::text;
use super::members::{Cluster, short};
use super::sessions::program;
use crate::database::{Database, Open};
use crate::failure::Failure;
use crate::pages::frame::Frame;
use crate::pages::params::Params;
use crate::status::Status;
use crate::web::{App, backup, reply};

/// How long a server may take to do what it was told; it goes on afterwards.
const LIMIT: Duration = Duration::from_secs(5);

/// A button that leads to a page that asks.
pub(super) struct Button {
    pub(super) title: &'static str,
    pub(super) action: &'static str,
    pub(super) address: String,
    /// Why it cannot be pressed; empty: it can.
    pub(super) reason: String,
}

/// A page that asks, or that tells what has happened.
#[derive(Template)]
#[template(path = "server_act.html")]
struct Action {
    frame: Frame,
    form_token: String,
    /// The page about the server.
    back: String,
    /// The title.
    title: &'static str,
    /// The effect, or the outcome.
    words: String,
    is_failure: bool,
    /// The names and values that the form sends; empty: nothing is asked.
    fields: Vec<(&'static str, String)>,
    /// The members from which one is chosen: id and address.
    members: Vec<(String, String)>,
}

/// The control socket of a server.
pub(super) fn control(status: &Status) -> Option<&Path> {
    match &status.source {
        Source::Control(path) => Some(path),
        Source::Pages(_) => None,
    }
}

const WITHOUT_CONTROL: &str =
    "needs the control socket of the server: name it with NAME.status=PATH";

/// The buttons for a server; none if the console is read-only.
pub(super) fn buttons(
    app: &App,
    database: &Database,
    open: &Open,
    all: &[Arc<Status>],
    main: Option<&Arc<Status>>,
) -> Vec<Button> {
    if !app.is_writable {
        return Vec::new();
    }
    let button = |title, action, reason: Result<(), String>| Button {
        title,
        action,
        address: address(database),
        reason: reason.err().unwrap_or_default(),
    };
    let name = open.schema.name.as_str();
    let served = main.and_then(|status| status.of_database(name));
    let mut buttons = vec![
        button("Backup…", "backup", Ok(())),
        button(
            "Compact…",
            "compact",
            own_control(main).map(|_| ()).and_then(|()| {
                let model = served.and_then(|served| text(served, "model"));
                match model {
                    Some("relay") => Err("a relay has no file".to_owned()),
                    _ => Ok(()),
                }
            }),
        ),
    ];
    if let Some(cluster) = served.and_then(|served| Cluster::of(served, all, name)) {
        let reason = leader_control(&cluster, name, all).map(|_| ());
        buttons.push(button("Transfer leadership…", "transfer", reason));
    }
    buttons
}

fn address(database: &Database) -> String {
    format!("/db/{}/servers/act", database.source.name)
}

/// The control socket of the server that the page is about.
fn own_control(main: Option<&Arc<Status>>) -> Result<&Path, String> {
    main.and_then(|status| control(status))
        .ok_or_else(|| WITHOUT_CONTROL.to_owned())
}

/// The control socket of the leader.
fn leader_control<'s>(
    cluster: &Cluster<'_>,
    name: &str,
    all: &'s [Arc<Status>],
) -> Result<&'s Path, String> {
    let leader = cluster.leader_id().ok_or("no member leads")?;
    let is_leader = |status: &&Arc<Status>| {
        let id = status
            .of_database(name)
            .and_then(|it| text(it, "cluster.server_id"));
        id == Some(leader)
    };
    let found = all.iter().find(is_leader);
    if found.is_some_and(|status| !status.is_own()) {
        return Err("the leader is not a server of Corvid".to_owned());
    }
    let found = found.and_then(|status| control(status));
    found.ok_or_else(|| format!("needs the control socket of the leader, {}", short(leader)))
}

/// The page that asks, or the refusal.
pub(crate) fn ask(app: &App, database: &Database, open: &Open, params: &Params) -> Response {
    if let Some(refusal) = refusal(app) {
        return refusal;
    }
    match asked(app, database, open, params) {
        Ok(page) => reply::page(&page),
        Err(error) => told(app, database, "Not possible", &Err(failure(open, error))),
    }
}

/// An error of an action. Without the server, an answer that there is nothing to act on means
/// nothing.
fn failure(open: &Open, error: String) -> Failure {
    match open.trouble().is_empty() {
        true => Failure::Refused(error),
        false => Failure::Unreached(error),
    }
}

/// The refusal of a read-only console.
fn refusal(app: &App) -> Option<Response> {
    let words = "this console only reads: it does nothing to servers unless it is started with --writable\n";
    (!app.is_writable).then(|| reply::text(StatusCode::FORBIDDEN, words))
}

fn asked(app: &App, database: &Database, open: &Open, params: &Params) -> Result<Action, String> {
    let name = open.schema.name.as_str();
    let all = database.status.all();
    let main = database.status.main();
    let mut page = Action {
        frame: Frame::of(app, database, "servers", "Servers"),
        form_token: app.guard.form_token(),
        back: format!("/db/{}/servers", database.source.name),
        title: "",
        words: String::new(),
        is_failure: false,
        fields: vec![("do", params.get("do").to_owned())],
        members: Vec::new(),
    };
    match params.get("do") {
        "close" => {
            own_control(main.as_ref())?;
            let session = session(main.as_ref(), params.get("id"))?;
            let peer = text(session, "peer").unwrap_or_default();
            let program = program(session).filter(|program| !program.is_empty());
            let program = program.map(|program| format!(" of {program}"));
            page.title = "Close the session";
            page.words = format!(
                "The connection {peer}{} is closed at once. Most clients connect again.",
                program.unwrap_or_default()
            );
            page.fields.push(("id", params.get("id").to_owned()));
            page.fields.push(("peer", peer.to_owned()));
        }
        "compact" => {
            own_control(main.as_ref())?;
            page.title = "Compact";
            page.words = format!(
                "The file of {name} is written anew, with the present contents alone. Clients are served meanwhile."
            );
        }
        "transfer" => {
            let served = main.as_ref().and_then(|status| status.of_database(name));
            let cluster = served.and_then(|served| Cluster::of(served, &all, name));
            let cluster = cluster.ok_or("the database is in no cluster")?;
            leader_control(&cluster, name, &all)?;
            let leader = cluster.leader_id();
            let others = cluster.members().filter(|(id, _)| Some(*id) != leader);
            page.title = "Transfer the leadership";
            page.words = format!(
                "{} hands the leadership of {name} to another member. Clients of the leader look for the new one.",
                leader.map(short).unwrap_or_default()
            );
            page.members = others
                .map(|(id, at)| (id.to_owned(), at.to_owned()))
                .collect();
        }
        "backup" => {
            page.title = "Backup";
            page.words = format!(
                "The contents of {name} are sent as a file, as ovsdb-client backup writes it. ovsdb-server can serve it, and \
                 ovsdb-client restore puts it back."
            );
        }
        other => return Err(format!("\"{other}\" is not known")),
    }
    Ok(page)
}

/// The session with this id.
fn session<'s>(main: Option<&'s Arc<Status>>, id: &str) -> Result<&'s Value, String> {
    let sessions = main.and_then(|status| document::list(&status.document, "sessions"));
    let mut sessions = sessions.unwrap_or_default().iter();
    let found = sessions.find(|session| text(session, "id") == Some(id));
    found.ok_or_else(|| "the session has ended".to_owned())
}

/// Does what the form asks for, and tells what has happened.
pub(crate) fn act(app: &App, database: &Database, open: &Open, form: &Params) -> Response {
    if let Some(refusal) = refusal(app) {
        return refusal;
    }
    if !app.guard.is_form_token(form.get("form_token")) {
        return reply::text(
            StatusCode::FORBIDDEN,
            "the form is not from this console, or the console was started anew: read the page again\n",
        );
    }
    let name = open.schema.name.as_str();
    let (title, outcome) = match form.get("do") {
        "close" => ("Close the session", close(database, form)),
        "compact" => ("Compact", compact(database, name)),
        "transfer" => {
            let outcome = transfer(database, name, form.get("to"));
            ("Transfer the leadership", outcome)
        }
        "backup" => {
            return backup::stream(app, database, open)
                .unwrap_or_else(|failure| told(app, database, "Backup", &Err(failure)));
        }
        other => ("Not possible", Err(format!("\"{other}\" is not known"))),
    };
    let outcome = outcome.map_err(|error| failure(open, error));
    told(app, database, title, &outcome)
}

fn told(
    app: &App,
    database: &Database,
    title: &'static str,
    outcome: &Result<String, Failure>,
) -> Response {
    let (words, status) = match outcome {
        Ok(words) => (words.as_str(), StatusCode::OK),
        Err(failure) => (failure.text(), failure.status(StatusCode::CONFLICT)),
    };
    let page = Action {
        frame: Frame::of(app, database, "servers", "Servers"),
        form_token: String::new(),
        back: format!("/db/{}/servers", database.source.name),
        title,
        words: words.to_owned(),
        is_failure: outcome.is_err(),
        fields: Vec::new(),
        members: Vec::new(),
    };
    reply::page_with(status, &page)
}

fn close(database: &Database, form: &Params) -> Result<String, String> {
    let main = database.status.main();
    let control = own_control(main.as_ref())?;
    let (id, peer) = (form.get("id"), form.get("peer"));
    // A server that was started anew numbers its sessions from the beginning.
    if text(session(main.as_ref(), id)?, "peer") != Some(peer) {
        return Err("the session has ended".to_owned());
    }
    command(control, "ovsdb-server/close-session", &[id])?;
    Ok(format!("The session of {peer} was closed."))
}

fn compact(database: &Database, name: &str) -> Result<String, String> {
    let main = database.status.main();
    let control = own_control(main.as_ref())?;
    match command(control, "ovsdb-server/compact", &[name]) {
        Ok(_) => Ok(format!("The file of {name} was compacted.")),
        Err(error) => Err(error),
    }
}

fn transfer(database: &Database, name: &str, to: &str) -> Result<String, String> {
    let all = database.status.all();
    let main = database.status.main();
    let served = main.as_ref().and_then(|status| status.of_database(name));
    let cluster = served.and_then(|served| Cluster::of(served, &all, name));
    let cluster = cluster.ok_or("the database is in no cluster")?;
    let control = leader_control(&cluster, name, &all)?;
    let is_member = cluster.members().any(|(id, _)| id == to);
    let arguments = match to {
        "" => vec![name],
        to if is_member => vec![name, to],
        _ => return Err("the cluster has no such member".to_owned()),
    };
    let answer = command(control, "cluster/transfer-leadership", &arguments)?;
    let answer = answer.trim();
    Ok(match answer {
        "" => "The leadership is being transferred.".to_owned(),
        answer => answer.to_owned(),
    })
}

/// Sends a command to a control socket, and returns the text that it answers.
fn command(control: &Path, command: &str, arguments: &[&str]) -> Result<String, String> {
    let reply =
        Control::open_for(control, LIMIT).and_then(|mut control| control.call(command, arguments));
    match reply {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(format!("the server refused: {}", error.trim())),
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Err(format!(
            "the server has not finished within {} s; it goes on, and its jobs show how far it is",
            LIMIT.as_secs()
        )),
        Err(error) => Err(format!("{}: {}", control.display(), errno::text(&error))),
    }
}
