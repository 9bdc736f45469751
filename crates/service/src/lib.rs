//! The server as state machines. Time, bytes and identities come in; bytes, log writes and events
//! go out. The `server` crate and the simulator drive them: this crate names no socket, file,
//! clock, thread or random source.
//!
//! # Map
//!
//! The parts, in the order in which a `transact` request meets them:
//!
//! 1. [`frontend`]: the sessions of one shard. Parses a message, answers it there ([`locks`],
//!    `echo`, `list_dbs`) or sends it to the database that it names ([`served_databases`]), and
//!    keeps each session's requests in order.
//! 2. [`pump`]: one database's batches. Decides which inputs are executed together, by the database
//!    thread or inline by a shard, and yields all outputs as one ordered list.
//! 3. [`database`]: executes the transaction on speculative state (`execution.rs`). The
//!    transaction may block (`crate::executor`), or commit: that writes a record (`file.rs`) and
//!    queues the reply (`crate::replies`). The reply is released once the record is stored
//!    (`requests.rs`), and sessions get updates (`subscriptions.rs`). If the record cannot be
//!    stored, the commit is undone (`executor/undo.rs`).
//! 4. [`storage`]: the rows of a new file, and when a file is compacted; `corvid_log::storage`
//!    writes the records.
//! 5. [`job`]: long work on other threads: initial contents, long results, conversions,
//!    comparisons, freeing.
//! 6. [`frontend`] again: delivers the reply to the session, and sends its next request.
//!
//! [`message`] defines everything that shards, databases and the main thread send each other. The
//! other parts:
//!
//! - [`Model`]: how databases differ in who may write, where commits come from and when they are
//!   stored. New service models go there.
//! - [`locks`]: the lock table of the server, shared by shards and databases.
//! - [`server_db`], [`member_row`]: the `_Server` database.
//! - [`applied_index`]: the index of a clustered database on its way to `_Server`.
//! - [`schema_epoch`]: which sessions predate a change of the served databases or of their schemas.
//! - [`member`]: the turns of a cluster member's thread, between the member, its connections, its
//!   file and its database.
//! - [`replication`]: a backup's conversation with its source.
//! - [`relay`]: a relay's conversation with its source.
//! - `upstream`: the part of a database that follows another server; members of clusters and relays
//!   share it.
//! - `barrier`, `environment`, `executor`, `observers`, `replies`: the parts of a database that
//!   know nothing of the others.
//! - `tape`: values that no input contains, recorded and played back.
//! - [`relayed_client`]: the client of a relay, as the relay describes it to its source.
//! - [`remote_rows`], [`remote_status`]: remotes that rows configure, and the status written back
//!   to those rows.
//! - [`once`]: transactions that are sent again and executed once.
//! - [`read_history`]: the past of a database, for clients.
//! - [`session_limits`], [`client_memory`]: limits on what clients make the server keep.
//! - [`counters`], [`audit`], [`recording`]: for operators: counts, the audit trail, the flight
//!   recorder and its replay.

pub mod applied_index;
pub mod audit;
mod barrier;
pub mod client_memory;
mod codec;
pub mod counters;
pub mod database;
mod environment;
mod executor;
pub mod frontend;
pub mod job;
pub mod locks;
pub mod member;
pub mod member_row;
pub mod message;
mod observers;
pub mod once;
pub mod pump;
pub mod read_history;
mod recorded_client;
pub mod recording;
pub mod relay;
pub mod relayed_client;
pub mod remote_rows;
pub mod remote_status;
pub mod replication;
mod replies;
pub mod schema_epoch;
pub mod served_databases;
pub mod server_db;
pub mod session_limits;
pub mod storage;
mod tape;
mod upstream;

pub use database::{DatabaseService, Model, Options};
pub use frontend::Frontend;
pub use message::Now;
pub use pump::Pump;
pub use served_databases::ServedDatabases;
pub use tape::Setting;
