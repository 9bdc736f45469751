//! The addresses of pages: tables of those that are made alike, with the few others.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use corvid::data::{TableId, Uuid};
use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION, SET_COOKIE};
use tokio::time::timeout;

use super::guard::{self, Judgement};
use super::visitors::Visit;
use super::{App, FORM_TIMEOUT, TURN_TIMEOUT, events, reply};
use crate::database::{self, Database, Open};
use crate::pages::params::Params;
use crate::pages::{
    changes, complete, frame, network, overview, query, row, servers, table, tables, values,
};

/// The longest form.
const FORM_BYTES_MAX: usize = 256 * 1024;

const STYLE: &str = include_str!("../../assets/console.css");
const SCRIPT: &str = include_str!("../../assets/console.js");

type Shared = State<Arc<App>>;

/// A page or a stream of a database.
type OfDatabase = fn(&App, &Database, &Arc<Open>, &Params) -> Response;

/// A page, a file or a stream of a table; the map has the parts of the address.
type OfTable = fn(&App, &Database, &Arc<Open>, TableId, &Parts, &Params) -> Response;

type Parts = BTreeMap<String, String>;

/// The pages of a database, by their place after `/db/{database}`.
const OF_DATABASE: [(&str, OfDatabase); 10] = [
    ("", home),
    ("/changes", |app, database, open, params| {
        changes::page(app, database, open, params)
    }),
    ("/events", all_events),
    ("/network", |app, database, open, params| {
        network::page(app, database, open, params)
    }),
    ("/network/events", network_events),
    ("/servers", |app, database, open, params| {
        servers::page(app, database, open, params)
    }),
    ("/servers/act", |app, database, open, params| {
        servers::actions::ask(app, database, open, params)
    }),
    ("/query", |app, database, open, params| {
        query::page(app, database, open, params)
    }),
    ("/query/complete", |_, _, open, params| {
        let text = params.get("text");
        candidates(&complete::operations(&open.schema, text), text)
    }),
    ("/tables", |app, database, open, params| {
        tables::page(app, database, open, params)
    }),
];

/// The forms of a database, by the place that they are sent to.
const FORMS: [(&str, OfDatabase); 2] = [
    ("/servers/act", |app, database, open, form| {
        servers::actions::act(app, database, open, form)
    }),
    ("/query", |app, database, open, form| {
        query::execute(app, database, open, form)
    }),
];

/// The pages of a table, by their place after `/db/{database}/table/{table}`.
const OF_TABLE: [(&str, OfTable); 6] = [
    ("", table_page),
    ("/events", table_events),
    ("/complete", |_, _, open, id, _, params| {
        let text = params.get("text");
        candidates(&complete::filter(open, id, text), text)
    }),
    ("/row/{uuid}", |app, database, open, id, parts, _| {
        of_row(app, parts, |uuid| row::page(app, database, open, id, uuid))
    }),
    ("/row/{uuid}/{column}", |app, _, open, id, parts, _| {
        let column = part(parts, "column");
        of_row(app, parts, |uuid| row::value(app, open, id, uuid, column))
    }),
    ("/values/{column}", |app, database, open, id, parts, _| {
        values::page(app, database, open, id, part(parts, "column"))
    }),
];

/// The files that pages need.
const FILES: [(&str, &str, &str); 3] = [
    ("/static/console.css", "text/css; charset=utf-8", STYLE),
    (
        "/static/picture.css",
        "text/css; charset=utf-8",
        corvid_picture::STYLE,
    ),
    (
        "/static/console.js",
        "text/javascript; charset=utf-8",
        SCRIPT,
    ),
];

pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/", get(overview_page))
        .route("/login", get(login_page).post(login))
        .route("/places.json", get(places));
    for (path, kind, text) in FILES {
        let file = async move || reply::of(StatusCode::OK, kind, text);
        router = router.route(path, get(file));
    }
    for (path, page) in OF_DATABASE {
        let handler = async move |State(app): Shared, Path(name), RawQuery(query)| {
            let params = params(query);
            of_database(app, name, move |app, database, open| {
                page(app, database, open, &params)
            })
            .await
        };
        router = router.route(&format!("/db/{{database}}{path}"), get(handler));
    }
    for (path, page) in FORMS {
        let handler = async move |State(app): Shared, Path(name), body: Body| {
            let form = match read_form(body).await {
                Ok(form) => form,
                Err(refusal) => return refusal,
            };
            of_database(app, name, move |app, database, open| {
                page(app, database, open, &form)
            })
            .await
        };
        router = router.route(&format!("/db/{{database}}{path}"), post(handler));
    }
    for (path, page) in OF_TABLE {
        let handler = async move |State(app): Shared, Path(parts), RawQuery(query)| {
            of_table(app, parts, params(query), page).await
        };
        let path = format!("/db/{{database}}/table/{{table}}{path}");
        router = router.route(&path, get(handler));
    }
    router.fallback(unknown).with_state(app)
}

/// Makes a page on a thread for blocking work, when it is its turn.
async fn made(app: Arc<App>, page: impl FnOnce(&App) -> Response + Send + 'static) -> Response {
    let Ok(Ok(turn)) = timeout(TURN_TIMEOUT, app.turns.acquire()).await else {
        return reply::text(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many pages are being made\n",
        );
    };
    let making = app.clone();
    let made = tokio::task::spawn_blocking(move || page(&making)).await;
    drop(turn);
    made.unwrap_or_else(|_| reply::text(StatusCode::INTERNAL_SERVER_ERROR, "the page failed\n"))
}

/// Makes a page of a database whose schema is known.
async fn of_database(
    app: Arc<App>,
    name: String,
    page: impl FnOnce(&App, &Database, &Arc<Open>) -> Response + Send + 'static,
) -> Response {
    made(app, move |app| {
        let Some(database) = app.database(&name) else {
            return frame::missing(app, &format!("There is no database \"{name}\" here."));
        };
        match database.state() {
            database::State::Unreached(why) => frame::unreached(app, database, &why),
            database::State::Open(open) => page(app, database, &open),
        }
    })
    .await
}

/// Makes a page of a table.
async fn of_table(app: Arc<App>, parts: Parts, params: Params, page: OfTable) -> Response {
    let database = part(&parts, "database").to_owned();
    of_database(app, database, move |app, database, open| {
        let (name, _) = table_and_form(&parts);
        match open.schema.table_id(name) {
            Some(id) => page(app, database, open, id, &parts, &params),
            None => {
                let text = format!("{} has no table \"{name}\".", open.schema.name);
                frame::missing(app, &text)
            }
        }
    })
    .await
}

/// The name of the table, and the form of the file if it is asked for as one.
fn table_and_form(parts: &Parts) -> (&str, Option<table::Form>) {
    let name = part(parts, "table");
    // No name of a table has a dot.
    match name.rsplit_once('.') {
        Some((name, "csv")) => (name, Some(table::Form::Csv)),
        Some((name, "json")) => (name, Some(table::Form::Json)),
        _ => (name, None),
    }
}

/// Makes a page of the row that the address names.
fn of_row(app: &App, parts: &Parts, page: impl FnOnce(Uuid) -> Response) -> Response {
    let uuid = part(parts, "uuid");
    match Uuid::parse(uuid.as_bytes()) {
        Some(uuid) => page(uuid),
        None => frame::missing(app, &format!("\"{uuid}\" is not a UUID.")),
    }
}

/// A part of an address, by its name in the pattern.
fn part<'p>(parts: &'p Parts, name: &str) -> &'p str {
    parts.get(name).map_or("", String::as_str)
}

fn params(query: Option<String>) -> Params {
    Params::parse(query.unwrap_or_default().as_bytes())
}

async fn overview_page(State(app): Shared) -> Response {
    made(app, overview::page).await
}

/// The places of the palette: every page of every database.
async fn places(State(app): Shared) -> Response {
    made(app, overview::places).await
}

/// The first page of a database: its network, if there is a picture of it.
fn home(app: &App, database: &Database, open: &Arc<Open>, params: &Params) -> Response {
    match network::is_known(open) {
        true => network::page(app, database, open, params),
        false => tables::page(app, database, open, params),
    }
}

fn all_events(_: &App, database: &Database, open: &Arc<Open>, _: &Params) -> Response {
    let leases = open.leases(&changes::watched(database, open));
    events::stream(open, open.subscribe(None), None, leases)
}

fn network_events(_: &App, database: &Database, open: &Arc<Open>, params: &Params) -> Response {
    let (receiver, last, leases) = network::subscribe(database, open, params);
    events::stream(open, receiver, Some(last), leases)
}

/// A table as a page, or as a file.
fn table_page(
    app: &App,
    database: &Database,
    open: &Arc<Open>,
    id: TableId,
    parts: &Parts,
    params: &Params,
) -> Response {
    match table_and_form(parts).1 {
        Some(form) => table::file(database, open, id, params, form),
        None => table::page(app, database, open, id, params),
    }
}

fn table_events(
    _: &App,
    database: &Database,
    open: &Arc<Open>,
    id: TableId,
    _: &Parts,
    _: &Params,
) -> Response {
    // The names that cells show stay current as long as the rows.
    let status = database.status.read();
    let named = open.named_tables(id, &tables::counts(open, status.as_deref()));
    let mut leases = open.leases(&named);
    leases.push(open.lease(id));
    open.look(id);
    let receiver = open.subscribe(Some(id));
    // Read after the subscription: an event between the two is one that a page shows already.
    let last = open.client.read(|_| open.last_event(id));
    events::stream(open, receiver, Some(last), leases)
}

fn candidates(found: &complete::Completion, text: &str) -> Response {
    reply::of(StatusCode::OK, "application/json", found.to_json(text))
}

async fn unknown(State(app): Shared) -> Response {
    made(app, |app| frame::missing(app, "There is no such page.")).await
}

async fn login_page(State(app): Shared, RawQuery(query): RawQuery) -> Response {
    frame::login(&app, "", params(query).get("to"))
}

async fn login(
    State(app): Shared,
    Extension(visit): Extension<Arc<Visit>>,
    body: Body,
) -> Response {
    let form = match read_form(body).await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    match app.guard.guess(form.get("token").trim(), &visit) {
        Judgement::Authorized => {}
        Judgement::TooManyGuesses => return guard::too_many_guesses(),
        Judgement::Unknown => {
            // A wrong guess costs its connection a second.
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            return frame::login(&app, "This is not the token.", form.get("to"));
        }
    }
    let mut response = reply::text(StatusCode::SEE_OTHER, "");
    let to = guard::own_address(form.get("to")).unwrap_or("/");
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    if let Ok(cookie) = HeaderValue::from_str(&app.guard.cookie()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Reads a form, which must arrive in time.
async fn read_form(body: Body) -> Result<Params, Response> {
    let read = axum::body::to_bytes(body, FORM_BYTES_MAX);
    match timeout(FORM_TIMEOUT, read).await {
        Ok(Ok(form)) => Ok(Params::parse(&form)),
        Ok(Err(_)) => Err(reply::text(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the form is too long\n",
        )),
        Err(_) => Err(reply::text(
            StatusCode::REQUEST_TIMEOUT,
            "the form takes too long\n",
        )),
    }
}
