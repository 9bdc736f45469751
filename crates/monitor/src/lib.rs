//! Monitors of one database: subscription groups, pending changes and their coalescing, encoders,
//! and the transaction history.
//!
//! Invariant: committed deltas and requests come in; results and notification frames go out as
//! bytes. This crate knows neither sockets nor the log. A session is a number here.
//!
//! The files, in the order in which data flows:
//!
//! ```text
//! requests   params --> request, change_request --> subscription, condition
//!                monitors/start     joins a group; initial contents (contents)
//!                                   or the changes since a transaction (history, past)
//!                monitors/change    moves to another group; rows that enter or leave (effect)
//! commits    monitors --> speculation     executed, not stored yet
//!            monitors --> history         stored, for clients that reconnect
//!                     --> groups --> dispatch --> group        groups that can see a changed row
//!                         view --> segments --> change_set     pending changes of their members
//! updates    monitors (session)              which sessions have pending changes
//!            group --> encode --> body       encoded once for a group
//!                  precomputed, deferred_body    long updates, written by another thread
//!                  --> frame                 a head for each client, the body shared
//! ```

mod body;
mod change_request;
mod change_set;
mod condition;
mod contents;
mod deferred_body;
mod dispatch;
mod effect;
mod encode;
pub mod frame;
mod group;
mod groups;
mod history;
pub mod monitors;
mod params;
mod past;
mod precomputed;
mod request;
mod segments;
mod session;
mod speculation;
mod subscription;
mod view;

pub use contents::{Contents, ContentsId, Written};
pub use deferred_body::DeferredBody;
pub use frame::{Frame, Guard, MonitorResult, ResultHead, SharedBody};
pub use group::NOTHING;
pub use monitors::{
    Admit, ConditionChange, ConditionChanged, Monitors, PendingStart, RequestContext, SessionId,
    StartOutcome, Started, Version,
};
pub use past::{PastAnswer, PastRows, no_past};
