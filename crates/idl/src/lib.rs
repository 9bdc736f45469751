//! A client of an OVSDB database: a replica of as much of it as is wanted, kept up by the server, with transactions, indexes and
//! change tracking at costs that follow what changes (docs/spec/idl.md).
//!
//! In OVSDB a client does not query: it names the tables and columns that matter to it ([`Class`]), gets their rows once, and is told of
//! every change after. Reading is then local. To change something it opens a transaction, changes rows of the replica as if they were its
//! own, and commits: the server gets the difference, and the replica goes back to what it was until the server tells of the change.
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
//! assert_eq!(idl.row_count(name.table), 1, "within the transaction it is there");
//! assert_eq!(idl.commit()?, Status::TryAgain, "nobody is connected");
//! assert_eq!(idl.row_count(name.table), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | To | see |
//! |---|---|
//! | say what is replicated, and how | [`Class`], [`Mode`] |
//! | read rows and follow references | [`Idl::rows`], [`Idl::read`], [`Idl::row`], [`RowView`] |
//! | change something, and learn what became of it | [`Idl::begin`], [`Idl::commit`], [`Status`], [`txn`] |
//! | change one element of a set or map, whatever its size | [`Idl::add_value`], [`Idl::set_key`] |
//! | hear what changed | [`Idl::changes`], [`Tracked`] |
//! | have functions called for rows that come, change and go | [`handlers`] |
//! | find rows by their columns, or have them in order | [`index`] |
//! | see only some rows | [`Idl::set_condition`] |
//! | get what is not replicated | [`fetch`] |
//! | run a daemon that writes at every turn | [`IdlLoop`] |
//! | have types instead of names and data | [`typed`] |
//! | know what was counted | [`Metrics`] |
//! | have sockets and a clock | the crate `corvid-driver` |
//!
//! This crate is the core without effects: no socket, clock, thread or random source. Who drives it, and how it is meant to be bound to
//! other languages, is in `docs/design/client.md`.

mod audit;
pub mod class;
mod condition;
pub mod fetch;
mod first_by_key;
pub mod handlers;
pub mod idl;
pub mod idl_loop;
pub mod index;
pub mod log_queue;
mod mapping;
pub mod metrics;
pub mod mistake;
mod order;
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
pub use row::RowId;
pub use track::{Kind, Tracked};
pub use txn::{Element, Finished, Misuse, Refused, Status, TxnId};
pub use view::RowView;
