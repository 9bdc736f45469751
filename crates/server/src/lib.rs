//! The `ovsdb-server` program: drives the state machines of `corvid-service` with threads, sockets,
//! files and clocks.
//!
//! This crate decides which thread does what. It does not know what operations mean or how updates
//! are encoded.
//!
//! # Threads, and the files that run on them
//!
//! | Thread | Files |
//! |---|---|
//! | main | `main_loop` (start, loop, exit); `server/` (its state, a file for each concern); `status.rs`; `remotes.rs`; `config/`; `control/` (commands of `ovs-appctl`); `watchdog.rs` |
//! | shard, several | `shard.rs`, `shard/`; on shard 0 `remotes/outgoing.rs` and `remotes/source.rs` too |
//! | `texts`, one for each shard | `shard/frame_parser.rs` |
//! | `db:NAME`, one for each database | `database/thread.rs` |
//! | the holder of a database's mailbox: `db:NAME`, or a shard that executes inline | `database/driver.rs`; appends of `database/storage.rs` |
//! | `raft:NAME`, one for each clustered database | `member/` |
//! | `relay:NAME`, one for each relay | `relay/` |
//! | `disk`, `rewrite`, for each database | `database/storage.rs` |
//! | `close`, for all databases | `open_file.rs` of crate `disk` |
//! | `jobs`, `contents`, `reaper`, for each database | `database/jobs.rs`, `database/reaper.rs` |
//! | `open`, `load0` ..., for each file that is opened | `server/opening.rs` (its `Work`), `database/open.rs`, `database/open/` |
//! | `backup`, `record`, `audit` | `database/backup.rs`, `database/recorder.rs`, `audit.rs` |
//! | `history`, for each database that keeps or has one; `history-read`, one for each reading | `database/history.rs`; `read_history/` |
//! | `http` | `http/`, `metrics/` |
//!
//! Shared by all threads: `coverage.rs` and the figures of `metrics/` (atomics), `liveness.rs`,
//! `session_cost.rs`, the table of locks. Threads send each other messages: `ShardMessage` to a
//! shard, `ToDatabase` to a database's mailbox, `MainMessage` to the main thread
//! (`main_handle.rs`).
//!
//! # The way of a request
//!
//! 1. The reactor reads a frame and calls `ShardSessions::frame` (`shard.rs`), which passes the
//!    frame to the frontend of `corvid-service`.
//! 2. The shard queues the frontend's message for the database (`shard/queues.rs`). At the end of
//!    the shard's batch the message goes through the database's handle (`database/handle.rs`): if
//!    the mailbox is free, the shard executes the message inline; otherwise the holder or the
//!    database's thread does.
//! 3. `Driver::work` or `Driver::work_inline` (`database/driver.rs`) gives the inputs to the pump
//!    of `corvid-service` and carries out the pump's outputs in order: records to
//!    `database/storage.rs`, deliveries to shards, jobs to `database/jobs.rs`, events to the main
//!    thread.
//! 4. A delivery reaches the session's shard as `ShardMessage::Deliver`. The frontend completes the
//!    request and queues the bytes; `ShardSessions::carry_out` sends them.
//!
//! # The way of a control command
//!
//! `control/commands.rs` parses the command and calls a method of `server::Server`. If a database
//! or a shard must act, the method sends a request with a token (`server/pending_replies.rs`); the
//! event that carries the token back (`server/events.rs`) answers the command.

pub mod check_config;
pub mod main_loop;
pub mod manual;
pub mod options;

mod allocator;
mod audit;
mod config;
mod control;
mod coverage;
mod database;
mod http;
mod jobs;
mod limits;
mod liveness;
mod main_handle;
mod member;
mod metrics;
mod process_figures;
mod read_history;
mod relay;
mod remotes;
mod server;
mod session_cost;
mod shard;
mod status;
mod tls_settings;
mod trusted_relays;
mod watchdog;

pub use database::recorder::replay_all;
