//! Typed rows: structs with a member for each column, for code that `ovsdb-idlc c` makes of a
//! schema.
//!
//! The generated code describes its structs ([`class`]). The library allocates them, one for each
//! row, and fills the columns that changed at each run ([`record`]). A struct keeps its address as
//! long as its row is there, and after that until the next run or, while anything is tracked, until
//! the changes are cleared.
//!
//! Invariant: a pointer to a row that comes from the program is looked up by its address ([`rows`])
//! before anything is read through it. Descriptions of classes are constants of the generated code
//! and are read once, when a replica is made.

pub mod blocking;
mod cell;
pub mod class;
pub mod column_type;
pub mod condition;
pub mod idl;
pub mod idl_loop;
pub mod index;
pub mod map;
mod record;
pub mod rows;
pub mod session;
mod shown;
mod synthetic;
pub mod text;
pub mod tls;
pub mod track;
pub mod transaction;
