//! The client's side of OVSDB below the replica: which server of a list to talk to, what to ask it for, and the stream of changes that
//! comes of it, across reconnections, fail-overs and changes of schema (docs/spec/idl.md 1.5 to 1.14).
//!
//! [`Client`] is a pure state machine: time and bytes go in, demands for the driver ([`Output`]) and news for the user ([`Event`]) come
//! out. A replica and a relay are users of it. It keeps no rows and knows no transaction's meaning; it names no socket, file, clock
//! or random source.
//!
//! ```
//! use corvid_session::{Client, Event, Input, Options, Output};
//!
//! let mut client = Client::new(Options::new("Zoo", 1));
//! client.set_remote(0, "tcp:127.0.0.1:6640", true);
//! assert_eq!(client.poll_output(), Some(Output::Connect { remote: "tcp:127.0.0.1:6640".into() }));
//! client.handle(2, Input::Connected);
//! let request = br#"{"id":1,"method":"get_schema","params":["_Server"]}"#;
//! assert_eq!(client.poll_output(), Some(Output::Send(request.to_vec())));
//! assert!(matches!(client.poll_event(), Some(Event::Log(_))), "connecting...");
//! ```

pub mod client;
pub mod condition;
mod conditions;
mod decoder;
pub mod event;
pub mod failure;
mod link;
mod lock;
pub mod log_message;
pub mod metrics;
pub mod plan;
pub mod prng;
mod remotes;
mod server_db;
pub mod update;

pub use client::{Client, Options, State};
pub use corvid_rpc::Level;
pub use prng::Prng;

pub use condition::{Clause, Condition, Function};
pub use event::{Event, Input, Outcome, Output, RequestId, Update};
pub use failure::{Cause, Failure, LastError};
pub use log_message::LogMessage;
pub use metrics::SessionMetrics;
pub use plan::{Interest, Missing, Plan, TableInterest};
pub use server_db::ServerStatus;
pub use update::{Columns, RowChange, RowUpdate, TableUpdate, TableUpdates, UpdateError};
