//! The databases: one client of the public library for each.
//!
//! A thread of each database finds its schema, runs the client and distributes changes ([`hub`]).
//! Pages read the replica. A table has rows in the replica only while somebody looks at it
//! ([`looks`]).

pub(crate) mod cell;
pub(crate) mod changes;
pub(crate) mod contents;
mod hub;
pub(crate) mod looks;
pub(crate) mod naming;
mod natural;
pub(crate) mod orders;
pub(crate) mod pictures;
mod renamed;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use corvid::SessionState;
use corvid::data::{Schema, TableId};
use corvid::json::Value;
use corvid::session::Outcome;
use corvid::shared::Client;
use corvid_net::tls::Credentials;
use tokio::sync::{broadcast, watch};

use crate::failure::Failure;
use crate::refusal;
use crate::settings::sources::Source;
use crate::status::StatusSource;
use crate::status::samples::{self, Samples};
use crate::web::EVENTS_MAX;

use changes::Recent;
use looks::Looks;
use naming::Naming;
use orders::{OrderBook, Orders};
use pictures::Pictures;

/// How long a page waits for the server.
pub(crate) const PAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a page waits for a connection that has failed: it may be moving to another server.
const REACH_TIMEOUT: Duration = Duration::from_secs(1);

/// A database of the command line.
pub(crate) struct Database {
    /// The words of the command line.
    pub(crate) source: Source,
    pub(crate) credentials: Arc<Credentials>,
    /// How long the rows of a table stay after the last look.
    idle: Duration,
    /// The status that its server publishes.
    pub(crate) status: StatusSource,
    /// The last hour of that status.
    pub(crate) samples: Mutex<Samples>,
    /// The last answer of a relay's sources.
    pub(crate) sources: Mutex<Option<SourceAnswer>>,
    /// The servers of this machine above a relay, by their addresses.
    pub(crate) above: Mutex<BTreeMap<String, Arc<StatusSource>>>,
    state: RwLock<State>,
}

/// The answer of a relay's sources, as every client gets it.
pub(crate) struct SourceAnswer {
    /// When they were asked.
    pub(crate) at: Instant,
    /// Their addresses.
    pub(crate) addresses: String,
    pub(crate) model: String,
    pub(crate) state: &'static str,
}

/// Whether the schema is known.
#[derive(Clone)]
pub(crate) enum State {
    /// No server has told the schema yet; why.
    Unreached(String),
    /// The client runs.
    Open(Arc<Open>),
}

/// A database whose schema is known.
pub(crate) struct Open {
    /// The name of the database in addresses.
    name: String,
    /// The client.
    pub(crate) client: Client,
    /// The schema that the client was made for.
    pub(crate) schema: corvid::data::Arc<Schema>,
    /// How rows are named.
    pub(crate) naming: Naming,
    /// The tables that somebody looks at.
    pub(crate) looks: Looks,
    /// Events of each table, encoded.
    events: Vec<Events>,
    /// Events of all tables.
    all_events: broadcast::Sender<Event>,
    /// The state of the connection, as streams of events tell it.
    standing: watch::Sender<Standing>,
    /// Held while changes are distributed, so that events leave in the order of changes.
    distributing: Mutex<()>,
    /// The latest changes.
    recent: Mutex<Recent>,
    /// Orders of tables.
    order_book: OrderBook,
    /// Pictures of the network.
    pub(crate) pictures: Pictures,
}

/// Whether what viewers see is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Why the contents may be old; empty if they are current.
    pub(crate) trouble: String,
    /// The client has been given up, for the schema is another one.
    pub(crate) is_ended: bool,
}

/// The events of a table.
struct Events {
    sender: broadcast::Sender<Event>,
    /// The number of the last event. Each encoding of a change has the next one, so a page notices
    /// when it has missed one.
    last: AtomicU64,
}

/// An event of a stream, encoded once for all viewers.
pub(crate) type Event = bytes::Bytes;

impl Database {
    /// Starts the database's thread.
    ///
    /// # Errors
    /// No thread is available.
    pub(crate) fn start(
        source: Source,
        credentials: Arc<Credentials>,
        idle: Duration,
    ) -> std::io::Result<Arc<Database>> {
        let status = StatusSource::new(&source);
        let database = Arc::new(Database {
            source,
            credentials,
            idle,
            status,
            samples: Mutex::default(),
            sources: Mutex::default(),
            above: Mutex::default(),
            state: RwLock::new(State::Unreached("connecting".to_owned())),
        });
        hub::start(database.clone())?;
        samples::start(database.clone())?;
        Ok(database)
    }

    /// The state now.
    pub(crate) fn state(&self) -> State {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }

    fn set_state(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Open {
    fn new(database: &Database, client: Client, schema: corvid::data::Arc<Schema>) -> Open {
        let channel = || broadcast::channel(EVENTS_MAX).0;
        let tables = schema.tables().len();
        // Numbers of an earlier process or schema, which a page may still show, are smaller.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let first = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        Open {
            name: database.source.name.clone(),
            client,
            naming: Naming::new(&schema),
            looks: Looks::new(tables, database.idle),
            events: (0..tables)
                .map(|_| Events {
                    sender: channel(),
                    last: AtomicU64::new(first),
                })
                .collect(),
            all_events: channel(),
            standing: watch::Sender::new(Standing {
                trouble: "connecting".to_owned(),
                is_ended: false,
            }),
            distributing: Mutex::default(),
            recent: Mutex::default(),
            order_book: OrderBook::default(),
            pictures: Pictures::new(first),
            schema,
        }
    }

    /// The events of a table, or of all tables.
    pub(crate) fn subscribe(&self, table: Option<TableId>) -> broadcast::Receiver<Event> {
        match table {
            Some(table) => self.events[usize::from(table.0)].sender.subscribe(),
            None => self.all_events.subscribe(),
        }
    }

    /// Why the contents may be old; empty if they are current.
    pub(crate) fn trouble(&self) -> String {
        let session = self.client.session();
        if session.is_synced {
            return String::new();
        }
        let failure = session.last_failure;
        failure.map_or_else(|| "connecting".to_owned(), |failure| failure.to_string())
    }

    /// Waits for the connection, but not as long as for an answer once it has failed: a server that
    /// is down would hold up each page.
    ///
    /// # Errors
    /// The contents are not current.
    pub(crate) fn reach(&self) -> Result<(), Failure> {
        let wait = |timeout, is_wanted: fn(&SessionState) -> bool| {
            self.client.wait_for_session(Some(timeout), is_wanted)
        };
        let is_known = |session: &SessionState| session.is_synced || session.last_failure.is_some();
        let reached = wait(PAGE_TIMEOUT, is_known)
            .and_then(|()| wait(REACH_TIMEOUT, |session| session.is_synced));
        reached.map_err(|error| match self.trouble() {
            // It has gone since.
            trouble if trouble.is_empty() => Failure::not_current(&error.to_string()),
            trouble => Failure::not_current(&trouble),
        })
    }

    /// The state of the connection, now and as it changes.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.tell_standing();
        self.standing.subscribe()
    }

    /// Tells streams of events the state of the connection, if it has changed.
    fn tell_standing(&self) {
        self.standing.send_if_modified(|standing| {
            let trouble = self.trouble();
            let is_changed = standing.trouble != trouble;
            standing.trouble = trouble;
            is_changed
        });
    }

    /// Ends the streams of events.
    fn end(&self) {
        self.standing
            .send_modify(|standing| standing.is_ended = true);
    }

    /// The number of a table's last event. Read with the replica, it belongs to its contents.
    pub(crate) fn last_event(&self, table: TableId) -> u64 {
        let events = &self.events[usize::from(table.0)];
        events.last.load(Ordering::Relaxed)
    }

    /// The name of the database in addresses.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The latest changes.
    pub(crate) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The orders of tables that are kept.
    pub(crate) fn orders(&self) -> MutexGuard<'_, Orders> {
        self.order_book.lock()
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// The database is not connected, or the server refuses.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        let params = params.to_bytes();
        let Some(request) = self.client.with(|idl| idl.ask(method, &params)) else {
            let text = "the server is not connected".to_owned();
            return Err(Failure::Unreached(text));
        };
        let waited = self
            .client
            .wait_until(Some(PAGE_TIMEOUT), |idl| idl.is_answered(request));
        match self.client.with(|idl| idl.take_answer(request)) {
            Outcome::Result(result) => Value::parse(&result)
                .map_err(|error| Failure::Refused(format!("the reply is malformed: {error}"))),
            Outcome::Error(error) => Err(Failure::Refused(refusal::of_reply(&error))),
            Outcome::Lost => Err(Failure::Unreached(match waited {
                Err(error) => error.to_string(),
                Ok(()) => "the connection was lost".to_owned(),
            })),
        }
    }
}
