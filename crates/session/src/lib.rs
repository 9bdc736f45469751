//! A client's session: it chooses a server, sends requests to it and reads its stream of updates,
//! across reconnections, fail-overs and changes of schema (docs/spec/idl.md 1.5 to 1.14).
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
//!
//! [`Client`] is a pure state machine: time and [`Input`]s go in; [`Output`]s for the driver and
//! [`Event`]s for the user come out. The user is a replica (`corvid-idl`) or a relay. The session
//! keeps no rows, does not interpret transactions, and names no socket, file, clock or random
//! source.
//!
//! | To | see |
//! |---|---|
//! | choose what is monitored | [`Interest`], [`Condition`] |
//! | apply updates | [`Update`], [`RowChange`] |
//! | read updates by other rules | [`update::read_updates`] |
//! | have transactions executed once | [`Client::set_transaction_ids`], [`once`] |
//! | see why there is no server | [`LastError`], [`Failure`] |

pub mod client;
pub mod condition;
mod conditions;
mod decoder;
pub mod event;
pub mod failure;
pub mod history;
mod link;
mod lock;
pub mod log_message;
pub mod metrics;
pub mod once;
pub mod plan;
pub mod prng;
mod refused_clause;
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
pub use refused_clause::RefusedClause;
pub use server_db::ServerStatus;
pub use update::{Columns, RowChange, RowUpdate, TableUpdate, TableUpdates, UpdateError};
