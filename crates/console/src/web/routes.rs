//! The addresses of pages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::get;
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

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(overview_page))
        .route("/login", get(login_page).post(login))
        .route("/static/console.css", get(style))
        .route("/static/console.js", get(script))
        .route("/places.json", get(places))
        .route("/db/{database}", get(home_page))
        .route("/db/{database}/changes", get(changes_page))
        .route("/db/{database}/events", get(all_events))
        .route("/static/picture.css", get(picture_style))
        .route("/db/{database}/network", get(network_page))
        .route("/db/{database}/network/events", get(network_events))
        .route("/db/{database}/servers", get(servers_page))
        .route("/db/{database}/servers/act", get(ask_page).post(act))
        .route("/db/{database}/query", get(query_page).post(execute))
        .route("/db/{database}/tables", get(tables_page))
        .route("/db/{database}/table/{table}", get(table_page))
        .route("/db/{database}/table/{table}/events", get(table_events))
        .route("/db/{database}/table/{table}/row/{uuid}", get(row_page))
        .route(
            "/db/{database}/table/{table}/row/{uuid}/{column}",
            get(value_file),
        )
        .route(
            "/db/{database}/table/{table}/values/{column}",
            get(values_page),
        )
        .route(
            "/db/{database}/table/{table}/complete",
            get(complete_filter),
        )
        .route("/db/{database}/query/complete", get(complete_operations))
        .fallback(unknown)
        .with_state(app)
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
async fn of_table(
    app: Arc<App>,
    (database, table): (String, String),
    page: impl FnOnce(&App, &Database, &Arc<Open>, TableId) -> Response + Send + 'static,
) -> Response {
    of_database(app, database, move |app, database, open| {
        match open.schema.table_id(&table) {
            Some(id) => page(app, database, open, id),
            None => {
                let text = format!("{} has no table \"{table}\".", open.schema.name);
                frame::missing(app, &text)
            }
        }
    })
    .await
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

async fn changes_page(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |app, database, open| {
        changes::page(app, database, open, &params(query))
    })
    .await
}

async fn all_events(State(app): Shared, Path(name): Path<String>) -> Response {
    of_database(app, name, |_, database, open| {
        let leases = open.leases(&changes::watched(database, open));
        events::stream(open.subscribe(None), None, leases)
    })
    .await
}

async fn network_page(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |app, database, open| {
        network::page(app, database, open, &params(query))
    })
    .await
}

async fn network_events(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |_, database, open| {
        let (receiver, last, leases) = network::subscribe(database, open, &params(query));
        events::stream(receiver, Some(last), leases)
    })
    .await
}

async fn picture_style() -> Response {
    reply::of(
        StatusCode::OK,
        "text/css; charset=utf-8",
        corvid_picture::STYLE,
    )
}

async fn servers_page(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |app, database, open| {
        servers::page(app, database, open, &params(query))
    })
    .await
}

async fn ask_page(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |app, database, open| {
        servers::actions::ask(app, database, open, &params(query))
    })
    .await
}

async fn act(State(app): Shared, Path(name): Path<String>, body: Body) -> Response {
    let Ok(form) = axum::body::to_bytes(body, FORM_BYTES_MAX).await else {
        return reply::text(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long\n");
    };
    of_database(app, name, move |app, database, open| {
        servers::actions::act(app, database, open, &Params::parse(&form))
    })
    .await
}

async fn query_page(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |app, database, open| {
        query::page(app, database, open, &params(query))
    })
    .await
}

async fn execute(State(app): Shared, Path(name): Path<String>, body: Body) -> Response {
    let form = match read_form(body).await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    of_database(app, name, move |app, database, open| {
        query::execute(app, database, open, &form)
    })
    .await
}

/// The first page of a database: its network, if there is a picture of it.
async fn home_page(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(
        app,
        name,
        move |app, database, open| match network::is_known(open) {
            true => network::page(app, database, open, &params(query)),
            false => tables::page(app, database, open, &params(query)),
        },
    )
    .await
}

async fn tables_page(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |app, database, open| {
        tables::page(app, database, open, &params(query))
    })
    .await
}

async fn table_page(
    State(app): Shared,
    Path((database, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    // No name of a table has a dot.
    let (name, form) = match name.rsplit_once('.') {
        Some((name, "csv")) => (name.to_owned(), Some(table::Form::Csv)),
        Some((name, "json")) => (name.to_owned(), Some(table::Form::Json)),
        _ => (name, None),
    };
    of_table(app, (database, name), move |app, database, open, id| {
        let params = params(query);
        match form {
            Some(form) => table::file(database, open, id, &params, form),
            None => table::page(app, database, open, id, &params),
        }
    })
    .await
}

async fn table_events(State(app): Shared, Path(place): Path<(String, String)>) -> Response {
    of_table(app, place, |_, _, open, id| {
        let lease = open.lease(id);
        open.look(id);
        let receiver = open.subscribe(Some(id));
        // Read after the subscription: an event between the two is one that a page shows already.
        let last = open.client.read(|_| open.last_event(id));
        events::stream(receiver, Some(last), vec![lease])
    })
    .await
}

async fn row_page(
    State(app): Shared,
    Path((database, name, uuid)): Path<(String, String, String)>,
) -> Response {
    of_table(
        app,
        (database, name),
        move |app, database, open, id| match Uuid::parse(uuid.as_bytes()) {
            Some(uuid) => row::page(app, database, open, id, uuid),
            None => frame::missing(app, &format!("\"{uuid}\" is not a UUID.")),
        },
    )
    .await
}

async fn value_file(
    State(app): Shared,
    Path((database, name, uuid, column)): Path<(String, String, String, String)>,
) -> Response {
    of_table(
        app,
        (database, name),
        move |app, _, open, id| match Uuid::parse(uuid.as_bytes()) {
            Some(uuid) => row::value(app, open, id, uuid, &column),
            None => frame::missing(app, &format!("\"{uuid}\" is not a UUID.")),
        },
    )
    .await
}

async fn values_page(
    State(app): Shared,
    Path((database, name, column)): Path<(String, String, String)>,
) -> Response {
    of_table(app, (database, name), move |app, database, open, id| {
        values::page(app, database, open, id, &column)
    })
    .await
}

/// The candidates after the text before the cursor of a filter.
async fn complete_filter(
    State(app): Shared,
    Path(place): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    of_table(app, place, move |_, _, open, id| {
        let params = params(query);
        let text = params.get("text");
        candidates(&complete::filter(open, id, text), text)
    })
    .await
}

async fn complete_operations(
    State(app): Shared,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    of_database(app, name, move |_, _, open| {
        let params = params(query);
        let text = params.get("text");
        candidates(&complete::operations(&open.schema, text), text)
    })
    .await
}

fn candidates(found: &complete::Completion, text: &str) -> Response {
    reply::of(StatusCode::OK, "application/json", found.to_json(text))
}

async fn unknown(State(app): Shared) -> Response {
    made(app, |app| frame::missing(app, "There is no such page.")).await
}

async fn style() -> Response {
    reply::of(StatusCode::OK, "text/css; charset=utf-8", STYLE)
}

async fn script() -> Response {
    reply::of(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT)
}

async fn login_page(State(app): Shared) -> Response {
    frame::login(&app, "")
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
            return frame::login(&app, "This is not the token.");
        }
    }
    let mut response = reply::text(StatusCode::SEE_OTHER, "");
    response
        .headers_mut()
        .insert(LOCATION, HeaderValue::from_static("/"));
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
