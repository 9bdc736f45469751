//! A client of an OVSDB database. It holds a replica of chosen tables and columns, which the server
//! keeps up to date, and offers transactions, indexes and change tracking on it. Costs are
//! proportional to the change, not to the contents (docs/spec/idl.md). IDL is Open vSwitch's name
//! for a client-side replica.
//!
//! An OVSDB client does not query. It names the tables and columns that it needs ([`Class`]). The
//! server sends their rows once, and then every change to them. Reads are local. To change
//! something, the client opens a transaction, changes rows of the replica, and commits. The client
//! sends the difference to the server. The replica then returns to its former contents until the
//! server's update brings the change.
//!
//! ```
//! use corvid_data::{Arc, Atom, Datum, Schema};
//! use corvid_idl::{Class, Idl, Status};
//! use corvid_json::Value;
//!
//! let schema = br#"{"name":"Zoo","version":"1.0.0","tables":{"Keeper":{"isRoot":true,"columns":{"name":{"type":"string"}}}}}"#;
//! let schema = Schema::from_json(&Value::parse(schema).unwrap()).unwrap();
//! let mut class = Class::new(Arc::new(schema));
//! let name = class.column("Keeper", "name")?;
//! class.add_column(name);
//!
//! let mut idl = Idl::new(class, 1);
//! let txn = idl.begin()?;
//! let ann = idl.insert_new(name.table)?;
//! idl.write(ann, name, Datum::from(Atom::String("ann".into())))?;
//! assert_eq!(idl.row_count(name.table), 1, "the transaction sees its own row");
//! assert_eq!(idl.commit()?, Status::TryAgain, "no server is connected");
//! assert_eq!(idl.row_count(name.table), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | To | see |
//! |---|---|
//! | choose what is replicated, and how | [`Class`], [`Mode`] |
//! | read rows and follow references | [`Idl::rows`], [`Idl::read`], [`Idl::row`], [`RowView`] |
//! | change something, and see the outcome | [`Idl::begin`], [`Idl::commit`], [`Status`], [`txn`] |
//! | change one element of a large set or map | [`Idl::add_value`], [`Idl::set_key`] |
//! | list what changed | [`Idl::changes`], [`Tracked`] |
//! | register callbacks for inserted, changed and deleted rows | [`handlers`] |
//! | find rows by their columns, or in order | [`index`] |
//! | replicate only some rows | [`Idl::set_condition`] |
//! | fetch columns that are not replicated | [`fetch`] |
//! | run a daemon that writes in every iteration of its main loop | [`IdlLoop`] |
//! | use types instead of names and data | [`typed`] |
//! | export metrics | [`Metrics`] |
//! | add sockets and a clock | the crate `corvid-driver` |
//!
//! This crate is the core without effects: no sockets, clock, threads or random source.
//! `docs/internals/client.md` describes its drivers and the bindings to other languages.

pub mod class;
mod condition;
pub mod fetch;
mod first_by_key;
pub mod handlers;
pub mod idl;
pub mod idl_loop;
pub mod index;
mod invariants;
pub mod log_queue;
mod mapping;
pub mod metrics;
pub mod mistake;
mod provisional_uuids;
mod references;
mod replica;
pub mod row;
mod table;
pub mod track;
pub mod txn;
pub mod typed;
pub mod view;

pub use class::{Class, ClassError, Column, Mode};
pub use condition::TableCondition;
pub use fetch::{FetchError, FetchId, FetchOutcome};
pub use handlers::HandlerId;
pub use idl::Idl;
pub use idl_loop::{IdlLoop, LoopOutcome};
pub use index::{Comparator, Cursor, Direction, IndexColumn, IndexId, Key};
pub use log_queue::IdlLogMessage;
pub use metrics::Metrics;
pub use mistake::Mistake;
pub use replica::Resync;
pub use row::{RowId, RowVersion};
pub use track::{Kind, Tracked};
pub use txn::{Element, Finished, Misuse, Refused, Status, TxnId};
pub use view::RowView;
