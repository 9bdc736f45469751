//! The OVSDB data model: atoms, data, rows, deltas, types, schemas, and their two notations (JSON
//! on the wire, text in tools).
//!
//! This crate knows no table contents, transactions, sessions or files. Its files, in the order in
//! which data flow through them:
//!
//! ```text
//! atoms    uuid, real, str, atom      single values; `atoms` are runs of one type
//! data     datum                      sorted sets and maps: inline, short, leaf or tree;
//!                                     `hash_seed` for their hashes
//! types    types, constraint          types of columns, and the values that they allow
//! schema   type_json, schema_json     from JSON; `schema` numbers tables and columns;
//!                                     `function`s of clauses
//! in       members, wire, text        objects by their members; data in JSON; data in the
//!                                     notation of tools
//! rows     row, diff, convert         a version of a row; differences of data; data under
//!                                     another type
//! sorted   runs                       rows in an order that their owner defines
//! out      delta, wire, text, error   the changes of a commit; both notations; errors that
//!                                     clients see
//! ```

pub mod atom;
mod atoms;
pub mod constraint;
pub mod convert;
pub mod datum;
pub mod delta;
pub mod diff;
pub mod error;
pub mod function;
pub mod hash_seed;
pub mod members;
pub mod real;
pub mod row;
pub mod runs;
pub mod schema;
pub mod schema_json;
pub mod str;
pub mod text;
mod type_json;
pub mod types;
pub mod uuid;
pub mod wire;

pub use atom::{Atom, AtomRef};
pub use datum::{Datum, DatumBuilder};
pub use delta::{ColumnDiff, Delta, Recorded, RecordedRow, RowChange};
pub use diff::{Change, Changes};
pub use error::{Tag, WireError};
pub use function::Function;
pub use hash_seed::{HashSeed, TrustedKeys};
pub use members::{Kinds, Members, Subject};
pub use real::Real;
pub use row::Row;
pub use runs::Runs;
pub use schema::{ColumnId, ColumnSchema, Schema, TableId, TableSchema};
pub use str::Str;
pub use triomphe::Arc;
pub use types::{AtomType, BaseType, ColumnType, RefType, Reference};
pub use uuid::{Uuid, UuidSource};
pub use wire::Symbols;
