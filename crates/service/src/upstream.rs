//! The common part of all followers of another server: a cluster member that follows its leader,
//! and a relay that follows its source. Also the messages that only relays use.
//!
//! | File | Contents |
//! |---|---|
//! | `messages.rs` | messages between a relay's database and its conversation with the source |
//! | `in_flight.rs` | requests that depend on the other server: waiting, forwarded or in doubt |
//! | `request_stage.rs` | one such request, and what is known of it |
//! | `identity.rs` | the client of a forwarded request, as access control sees it |
//! | `transaction_kind.rs` | whether a transaction may write, judged by its text |
//!
//! `crates/service/src/database/clustered.rs` is the part of a database that follows;
//! `crates/service/src/relay.rs` talks to a relay's source; crate `corvid-consensus` is the member,
//! and knows nothing of relays. Nothing here knows rows, the outputs of sessions, or a file.

mod identity;
mod in_flight;
mod messages;
mod request_stage;
mod transaction_kind;

pub use messages::{LockClaim, LockNews, SourceChange, SourceNews, SourceRequest};

pub(crate) use identity::{for_source, identities_in, identity_of};
pub(crate) use in_flight::{InFlight, Number};
pub(crate) use request_stage::{Entry, Stage, Turn};
pub(crate) use transaction_kind::{TransactionKind, asserted_locks};
