//! A relay's conversation with its source (docs/spec/distribution.md 2, docs/internals/relay.md).
//!
//! A relay is a follower whose commits come from another server. Its database is the same as that
//! of a cluster's follower ([`Model::relay`](crate::Model::relay)), with [`RelaySource`] in the
//! role of the member. The relay is a client of the source: it reads contents and updates, forwards
//! transactions, and decides the outcome of requests whose connection is lost.
//!
//! | File | Owns |
//! |---|---|
//! | `source.rs` | the machine: the session with the source, and what the database learns of it |
//! | `changes.rs` | an update of the source as a change of rows, or as new contents |
//! | `outcomes.rs` | the forwarded requests, and their outcomes |
//! | `repetition.rs` | which requests are sent again, and which make the source disconnect |
//! | `source_locks.rs` | the locks that the relay claims at the source |
//! | `reachability.rs` | whether `_Server` shows the relay as connected |
//! | `unapplied.rs` | the updates that the database has not applied, and their limit |
//!
//! # How a thread drives it
//!
//! Time, bytes and [`SourceRequest`](crate::message::SourceRequest)s go in;
//! [`Output`](corvid_session::Output)s for the connection and [`RelayEvent`]s come out. A turn of
//! the thread:
//!
//! 1. Pass what the connection reports to [`RelaySource::handle`]. Read no bytes while
//!    [`RelaySource::wants_input`] is false.
//! 2. Pass the requests that the database has queued for the thread to [`RelaySource::request`].
//! 3. Call [`RelaySource::handle`] with [`Input::Tick`](corvid_session::Input::Tick) if
//!    [`RelaySource::poll_timeout`] has passed.
//! 4. Carry out all outputs and all events, in order. Then wait for the connection, the queue or
//!    the deadline.
//!
//! An output may abandon the connection. Inputs from that connection which arrive before the output
//! is carried out are dropped here.
//!
//! [`RelayEvent::Contents`] make the database, which is then served. Events of
//! [`RelayEvent::Database`] that follow them before the database is served are queued by the thread
//! and passed on then. None come before the contents.
//!
//! Invariant: pure, like the whole crate. Contents are built here, on the relay's thread. So the
//! database keeps answering its clients while the source is slow, a download is large or an update
//! is long.

mod changes;
mod outcomes;
mod reachability;
mod repetition;
mod source;
mod source_locks;
mod unapplied;

pub use source::{RelayCounts, RelayOptions, RelaySource};

use corvid_session::LogMessage;

use crate::member::Contents;
use crate::message::ToDatabase;
use crate::server_db::ServerRow;

/// An event of a relay's conversation with its source. Events are in order.
#[derive(Debug)]
pub enum RelayEvent {
    /// The initial contents: make the database from them and serve it. Comes once.
    Contents(Box<Contents>),
    /// Post this to the served database.
    Database(ToDatabase),
    /// Show this row in `_Server` ([`crate::server_db::update_row`]).
    Row(ServerRow),
    /// A message for the log.
    Log(LogMessage),
}

/// The columns of a relay's row in `_Server`.
pub(crate) fn server_row(is_connected: bool) -> ServerRow {
    ServerRow {
        model: "relay",
        is_connected,
        // Clients that require the leader must not read here.
        is_leader: false,
    }
}
