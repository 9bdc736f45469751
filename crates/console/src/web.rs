//! HTTP: connections and their limits, the rules for requests ([`guard`]), the addresses of pages
//! ([`routes`]) and streams of events ([`events`]); TLS ([`stream`]) and the share that one address
//! may have ([`visitors`]).
//!
//! One thread serves all connections. Pages are made on threads for blocking work, at most
//! [`PAGES_MAX`] at a time, so a page of a large table delays no event.

pub(crate) mod backup;
pub(crate) mod events;
pub(crate) mod guard;
pub(crate) mod reply;
mod routes;
mod stream;
mod visitors;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_service::Service;

use corvid_net::errno;
use corvid_net::tls::Credentials;
use corvid_shell::output;

use crate::database::Database;
use crate::settings::Settings;

use guard::Guard;
use stream::Stream;
use visitors::{Visit, Visitors};

/// The number of events that a viewer may fall behind.
pub(crate) const EVENTS_MAX: usize = 64;

/// The number of connections.
const CONNECTIONS_MAX: usize = 1024;

/// The number of pages that are made at a time.
const PAGES_MAX: usize = 8;

/// The number of backups that are made at a time.
const BACKUPS_MAX: usize = 1;

/// How long a request waits for its turn.
pub(crate) const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to send the head of a request, or wait between requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may take to send a form.
pub(crate) const FORM_TIMEOUT: Duration = Duration::from_secs(30);

/// The buffer of a connection.
const BUFFER_BYTES: usize = 16 * 1024;

/// The number of header lines.
const HEADERS_MAX: usize = 64;

/// The pause after a failed accept, which usually means that no descriptor was free.
const RETRY: Duration = Duration::from_millis(200);

/// The state that all requests share.
pub(crate) struct App {
    /// The databases, in the order of the command line.
    pub(crate) databases: Vec<Arc<Database>>,
    /// The rules for requests.
    pub(crate) guard: Guard,
    /// Whether pages may change databases.
    pub(crate) is_writable: bool,
    /// Turns to make a page.
    pub(crate) turns: Semaphore,
    /// Turns to make a backup.
    pub(crate) backups: Arc<Semaphore>,
    /// For connections by TLS.
    credentials: Option<Arc<Credentials>>,
}

impl App {
    /// The database with this name.
    pub(crate) fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases
            .iter()
            .find(|database| database.source.name == name)
    }
}

/// Serves pages until the process ends.
///
/// # Errors
/// The address cannot be listened at, or no thread is available.
pub(crate) fn run(settings: &Settings) -> Result<Infallible, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(PAGES_MAX + 4)
        .thread_name("page")
        .build()
        .map_err(|error| errno::text(&error))?;
    let listen = settings.listen;
    let listener = runtime.block_on(TcpListener::bind(listen));
    let listener =
        listener.map_err(|error| format!("cannot listen at {listen}: {}", errno::text(&error)))?;
    let local = listener.local_addr().map_err(|error| errno::text(&error))?;
    // Threads of databases use the runtime to learn which process listens at a socket.
    let within = runtime.enter();
    let databases = settings
        .sources
        .iter()
        .map(|source| Database::start(source.clone(), settings.credentials.clone(), settings.idle));
    let databases: io::Result<Vec<_>> = databases.collect();
    drop(within);
    let is_secure = settings.viewers.is_some();
    let guard = Guard::new(settings.hosts.clone(), settings.token.as_deref(), is_secure)?;
    let app = Arc::new(App {
        databases: databases.map_err(|error| errno::text(&error))?,
        guard,
        is_writable: settings.is_writable,
        turns: Semaphore::new(PAGES_MAX),
        backups: Arc::new(Semaphore::new(BACKUPS_MAX)),
        credentials: settings.viewers.clone(),
    });
    let scheme = if is_secure { "https" } else { "http" };
    output::line(format_args!("{scheme}://{local}/"));
    // A reader of the first line that is gone is not an error.
    let _ = output::flush();
    runtime.block_on(accept(listener, &app))
}

async fn accept(listener: TcpListener, app: &Arc<App>) -> ! {
    let router = routes::router(app.clone());
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let visitors = Arc::<Visitors>::default();
    loop {
        let Ok((socket, peer)) = listener.accept().await else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        // Without a place the connection is closed at once.
        let Ok(place) = places.clone().try_acquire_owned() else {
            continue;
        };
        let Some(visit) = visitors.enter(peer.ip()) else {
            continue;
        };
        let (app, router) = (app.clone(), router.clone());
        tokio::spawn(async move {
            let _ = socket.set_nodelay(true);
            if let Ok(stream) = Stream::accept(socket, app.credentials.as_deref()).await {
                serve(stream, Arc::new(visit), &app, &router).await;
            }
            drop(place);
        });
    }
}

async fn serve(stream: Stream, visit: Arc<Visit>, app: &Arc<App>, router: &axum::Router) {
    let visit = &visit;
    let service = service_fn(
        |mut request: hyper::Request<hyper::body::Incoming>| async move {
            let is_named = app.guard.is_named(&request);
            let response = match app.guard.refusal(&request, visit) {
                Some(response) => response,
                None => {
                    request.extensions_mut().insert(visit.clone());
                    answer(request, visit, router.clone()).await
                }
            };
            Ok::<_, Infallible>(app.guard.with_headers(response, is_named))
        },
    );
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_BYTES)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks off, or sends no valid request, is dropped silently.
    let _ = served.await;
}

/// Answers a request when it is its address's turn. The turn ends when the response begins.
async fn answer(
    request: hyper::Request<hyper::body::Incoming>,
    visit: &Visit,
    mut router: axum::Router,
) -> axum::response::Response {
    let Some(_turn) = visit.turn().await else {
        return reply::text(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests of this address at a time\n",
        );
    };
    match router.call(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
