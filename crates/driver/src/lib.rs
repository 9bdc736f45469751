//! Clients of an OVSDB database over real connections: [`corvid_idl`] plus sockets, a clock and
//! random numbers.
//!
//! The core is a state machine. Each driver here runs it for one kind of program:
//!
//! | Program | Driver |
//! |---|---|
//! | does one thing at a time | [`blocking::Client`] |
//! | has several threads that use one client | [`shared::Client`]: a handle to clone |
//! | has an event loop of its own | [`polled::Client`]: a descriptor and a time to wait for |
//! | is asynchronous | `tokio::Client`, with the feature `tokio` |
//!
//! All drivers connect to `tcp:`, `ssl:` and `unix:` remotes and listen on `ptcp:`, `pssl:` and
//! `punix:`. By default they reconnect forever. Each driver holds an [`Idl`], which documents
//! reading, transactions and indexes.
//!
//! ```no_run
//! use corvid_data::{Arc, Schema};
//! use corvid_driver::blocking::Client;
//! use corvid_idl::Class;
//! use std::time::Duration;
//! # fn schema() -> Schema { unimplemented() }
//! # fn unimplemented() -> ! { std::process::exit(0) }
//!
//! let class = Class::everything(Arc::new(schema()));
//! let name = class.column("Bridge", "name")?;
//! let mut client = Client::connect(class, "unix:/var/run/openvswitch/db.sock")?;
//! client.wait_for_contents(Some(Duration::from_secs(10)))?;
//! for row in client.idl().rows(name.table) {
//!     println!("{:?}", client.idl().read(row, name));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Clients log through the `log` facade with the target [`LOG_TARGET`]. Their counters are in
//! [`Idl::metrics`].
//!
//! [`transport`] is the connection itself, for programs that run a session without a replica.
//!
//! This crate owns sockets, time and one thread per shared client. It does not know what rows mean.

mod abort;
pub mod blocking;
mod calls;
mod committed;
mod error;
mod failure;
mod history;
mod log_queue;
mod logging;
mod outage;
pub mod polled;
mod remotes;
mod session;
mod setup;
pub mod shared;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod transport;

pub use abort::Abort;
pub use committed::Committed;
pub use corvid_idl::{Idl, Refused};
pub use corvid_net::fork;
pub use corvid_net::tls::Credentials;
#[cfg(feature = "tls")]
pub use corvid_net::tls::{Authority, Settings};
pub use corvid_session::history::{Question as HistoryQuestion, WrongQuestion};
pub use corvid_session::{Failure as ServerFailure, Missing, ServerStatus};
pub use error::Error;
pub use failure::{Failure, Reason};
pub use history::{HistoryPage, HistoryReading};
pub use log_queue::{LogQueue, QueuedMessage};
pub use logging::{OUTAGE_TARGET, TARGET as LOG_TARGET};
pub use remotes::RemoteError;
pub use session::{LockState, SessionState};
pub use setup::Setup;
