//! The thread of a database: finds the schema, runs the client, distributes changes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use askama::Template;
use corvid::data::{Schema, TableId};
use corvid::json::write;
use corvid::rpc::remote::RemoteList;
use corvid::shared::Client;
use corvid::{Class, Condition, Setup, polled};
use corvid_net::{clock, errno};
use corvid_tools::session::Session;

use super::cell::Context;
use super::renamed::Renamed;
use super::{Database, Open, State, changes, orders, pictures};
use crate::pages::changes::Lines;

/// The pause between attempts to find the schema.
const RETRY: Duration = Duration::from_secs(2);

/// How long one server may take to tell the schema.
const SCHEMA_TIMEOUT_MS: u64 = 5000;

/// How often tables that nobody looks at are dropped, and a change of the schema is noticed.
const TICK: Duration = Duration::from_secs(2);

/// The shortest time between two events of a table.
const PACE: Duration = Duration::from_millis(30);

/// The pause between two readings of a busy server, which then wakes the client less often.
const READING_PAUSE: Duration = Duration::from_millis(10);

/// Starts the thread.
///
/// # Errors
/// No thread is available.
pub(super) fn start(database: Arc<Database>) -> std::io::Result<()> {
    let name = format!("db:{}", database.source.name);
    thread::Builder::new()
        .name(name)
        .spawn(move || run(&database))?;
    Ok(())
}

fn run(database: &Database) {
    loop {
        let begin = Instant::now();
        match open(database) {
            Ok(open) => {
                let open = Arc::new(open);
                database.set_state(State::Open(open.clone()));
                thread::scope(|scope| {
                    let name = format!("picture:{}", open.name);
                    let thread = thread::Builder::new().name(name);
                    let drawing = match thread.spawn_scoped(scope, || pictures::run(&open)) {
                        Ok(drawing) => drawing,
                        Err(error) => {
                            let error = errno::text(&error);
                            let error = format!("no thread is available: {error}");
                            database.set_state(State::Unreached(error));
                            return;
                        }
                    };
                    let name = format!("orders:{}", open.name);
                    let thread = thread::Builder::new().name(name);
                    let sorting = thread.spawn_scoped(scope, || orders::run(&open));
                    match &sorting {
                        Ok(_) => {
                            serve(&open);
                            let why = "the schema has changed: connecting".to_owned();
                            database.set_state(State::Unreached(why));
                        }
                        Err(error) => {
                            let error = errno::text(error);
                            let error = format!("no thread is available: {error}");
                            database.set_state(State::Unreached(error));
                        }
                    }
                    open.end();
                    open.pictures.end();
                    open.order_book.end();
                    // A picture or an order that cannot be made does not end this thread.
                    let _ = drawing.join();
                    let _ = sorting.map(thread::ScopedJoinHandle::join);
                });
            }
            Err(error) => database.set_state(State::Unreached(error)),
        }
        thread::sleep(RETRY.saturating_sub(begin.elapsed()));
    }
}

/// Finds the schema and makes the client. No table has rows yet.
fn open(database: &Database) -> Result<Open, String> {
    let schema = corvid::data::Arc::new(schema(database)?);
    let mut class = Class::everything(schema.clone());
    class.set_strict(false);
    class.track_all();
    let setup = Setup {
        credentials: Some(database.credentials.clone()),
        // Pages only read, so a follower will do.
        is_leader_only: false,
        ..Setup::default()
    };
    let remotes = &database.source.remotes;
    let client = polled::Client::connect_with(class, remotes, &setup);
    let mut client = client.map_err(|error| error.to_string())?;
    for (table, _) in schema.iter() {
        client
            .set_condition((table, Condition::none()))
            .map_err(|error| error.to_string())?;
        client.idl_mut().set_tracking(table, false);
    }
    let client = Client::over(client).map_err(|error| errno::text(&error))?;
    client.set_reading_pause(READING_PAUSE);
    Ok(Open::new(database, client, schema))
}

/// Asks the servers in turn for the schema.
fn schema(database: &Database) -> Result<Schema, String> {
    let list = RemoteList::parse(&database.source.remotes);
    let mut failure = "there are no servers".to_owned();
    for remote in &list.remotes {
        let deadline_ms = clock::mono_ms() + SCHEMA_TIMEOUT_MS;
        let session = Session::open_until(remote, &database.credentials, Some(deadline_ms));
        let schema = session
            .map_err(|error| error.to_string())
            .and_then(|session| of_server(session, database));
        match schema {
            Ok(schema) => return Ok(schema),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn of_server(mut session: Session, database: &Database) -> Result<Schema, String> {
    let name = match &database.source.database {
        Some(name) => name.clone(),
        None => {
            let mut names = session.list_dbs().map_err(|error| error.to_string())?;
            names.retain(|name| !name.starts_with('_'));
            match names.as_slice() {
                [only] => only.clone(),
                [] => return Err("the server serves no database".to_owned()),
                several => {
                    let name = &database.source.name;
                    return Err(format!(
                        "the server serves several databases: {}; choose one with {name}.database=DATABASE",
                        several.join(", ")
                    ));
                }
            }
        }
    };
    session.schema(&name).map_err(|error| error.to_string())
}

/// Distributes changes until the schema changes.
fn serve(open: &Open) {
    let mut seqno = open.client.read(corvid::Idl::change_seqno);
    let mut seen = None;
    loop {
        if let Ok(now) = open.client.wait_for_change(seqno, Some(TICK)) {
            seqno = now;
            // Changes of a busy database share an event.
            thread::sleep(PACE);
        }
        distribute(open);
        open.tell_standing();
        open.drop_idle();
        let schema = open.client.read(|idl| idl.server_schema().cloned());
        let is_new = |schema: &corvid::data::Arc<Schema>| {
            let last = seen.as_ref();
            last.is_none_or(|last| !corvid::data::Arc::ptr_eq(last, schema))
        };
        if let Some(schema) = schema.filter(is_new) {
            if !schema.same_as(&open.schema) {
                return;
            }
            seen = Some(schema);
        }
    }
}

/// Tells viewers what has changed since the last call.
pub(super) fn distribute(open: &Open) {
    let _turn = open
        .distributing
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let reported = open.client.with(|idl| {
        let mut reported = Vec::new();
        open.orders().catch_up(idl);
        open.pictures.catch_up(idl);
        let renamed = Renamed::of(idl, &open.naming);
        for table in (0..).map(TableId).take(open.schema.tables().len()) {
            if !open.looks.reports(idl, table) || idl.changes(table).is_empty() {
                continue;
            }
            let idl = &*idl;
            let told = changes::told(idl.changes(table));
            let context = Context {
                database: &open.name,
                idl,
                naming: &open.naming,
            };
            let events = &open.events[usize::from(table.0)];
            let number = events.last.fetch_add(1, Ordering::Relaxed) + 1;
            let event = (events.sender.receiver_count() > 0).then(|| {
                let shown = changes::shown(idl, table, &renamed);
                changes::encoded(context, table, &shown, number)
            });
            reported.push((event, changes::described(context, table, &told)));
        }
        idl.clear_changes();
        reported
    });
    for (event, change) in reported {
        if let Some(event) = event {
            // The last viewer may have left.
            let _ = open.events[usize::from(change.table.0)]
                .sender
                .send(event.into());
        }
        if change.rows.is_empty() {
            continue;
        }
        if open.all_events.receiver_count() > 0 {
            let _ = open.all_events.send(lines(open, &change).into());
        }
        open.recent().add(change);
    }
}

/// A change as an event for pages of changes: `{"html":"LINES"}`.
fn lines(open: &Open, change: &changes::TableChange) -> Vec<u8> {
    let lines = Lines::of(&open.name, open, std::iter::once(change));
    let mut out = b"data: {\"html\":".to_vec();
    write::string(&mut out, lines.render().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"}\n\n");
    out
}
