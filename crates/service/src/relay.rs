//! A relay's conversation with its source (docs/spec/distribution.md 2, docs/internals/relay.md).
//!
//! A relay is a follower whose commits come from another server. Its database is that of a cluster's follower
//! ([`Model::relay`](crate::Model::relay)); [`RelaySource`] stands where the member stands there. It is a client of the source: it reads
//! contents and updates, forwards transactions, and decides what becomes of a request whose connection is lost.
//!
//! | File | Owns |
//! |---|---|
//! | `source.rs` | the machine: the session with the source, and what the database learns of it |
//! | `changes.rs` | an update of the source as a change of rows, or as new contents |
//! | `outcomes.rs` | the forwarded requests, and their outcomes |
//! | `repetition.rs` | which of them are sent again, and which of them the source refuses by closing the connection |
//! | `source_locks.rs` | the locks that the relay claims at the source |
//! | `reachability.rs` | whether `_Server` shows the relay as connected |
//! | `unapplied.rs` | the updates that the database has not applied, and their limit |
//!
//! # How a thread drives it
//!
//! Time, bytes and [`SourceRequest`](crate::upstream::SourceRequest)s go in; [`Output`](corvid_session::Output)s for the connection and
//! [`RelayEvent`]s come out. A turn of the thread:
//!
//! 1. Pass on what the connection reports, with [`RelaySource::handle`]. Read no bytes while [`RelaySource::wants_input`] is false.
//! 2. Pass on the requests that the database has put into the thread's queue, with [`RelaySource::request`].
//! 3. Call [`RelaySource::handle`] with [`Input::Tick`](corvid_session::Input::Tick) if [`RelaySource::poll_timeout`] has come.
//! 4. Carry out all outputs and all events, in their order. Then wait for the connection, the queue or the deadline.
//!
//! An output may give the connection up. Inputs of that connection which come before the output is carried out are dropped here.
//!
//! [`RelayEvent::Contents`] are what the database is made of and served with. Events of [`RelayEvent::Database`] that come behind
//! them, before the database is served, are kept by the thread in their order and passed on then. Before the contents there are none.
//!
//! Invariant: pure, as the whole crate. Contents are built here, on the thread of the relay, so a database with a slow source, a large
//! download or a long update goes on answering its clients.

mod changes;
mod outcomes;
mod reachability;
mod repetition;
mod source;
mod source_locks;
mod unapplied;

pub use source::{RelayCounts, RelayOptions, RelaySource};

use corvid_log::cluster::Term;
use corvid_session::LogMessage;

use crate::member::Contents;
use crate::message::ToDatabase;
use crate::server_db::ServerRow;

/// The term of a relay's database, which never changes.
pub(crate) const TERM: Term = Term(1);

/// An event of a relay's conversation with its source. Events come in order.
#[derive(Debug)]
pub enum RelayEvent {
    /// The earliest contents: serve the database with them. Comes once.
    Contents(Box<Contents>),
    /// Have the served database handle this.
    Database(ToDatabase),
    /// The row in `_Server` shows this from now on ([`crate::server_db::update_row`]).
    Row(ServerRow),
    /// A message for the log.
    Log(LogMessage),
}

/// The columns of a relay's row in `_Server`.
pub(crate) fn server_row(is_connected: bool) -> ServerRow {
    ServerRow {
        model: "relay",
        is_connected,
        // Clients that want the leader must not read here.
        is_leader: false,
    }
}
