//! Monitors of one database: subscription groups, pending changes and their coalescing, encoders, transaction history.
//!
//! Input: committed deltas and requests. Output: reply results and notification frames as bytes. This crate knows no sockets
//! and no log; a session is a number here.
//!
//! ```text
//! request -> subscription -> group <- dispatch <- commit (delta)
//!                              |
//!                          segments -> change set -> encoders -> body, shared
//!                              |
//!                           monitors: head per client + body = frame
//! ```

mod body;
mod change_request;
mod change_set;
mod condition;
mod contents;
mod dispatch;
mod effect;
mod encode_v1;
mod encode_v2;
mod foretold;
pub mod frame;
mod group;
mod groups;
mod history;
mod late;
pub mod monitors;
mod params;
mod request;
mod segments;
mod session;
mod speculation;
mod subscription;
mod view;

pub use contents::{Contents, ContentsId, Written};
pub use frame::{Frame, Guard, MonitorResult, ResultHead, SharedText};
pub use group::NOTHING;
pub use late::LateText;
pub use monitors::{
    Awaited, Begun, ConditionChange, ConditionChanged, Monitors, SessionId, Started, Version,
};
