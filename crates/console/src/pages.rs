//! The pages: what each shows, as values for its template in `templates`.
//!
//! Templates escape every value. A page is a function of the replica, of the status of the server
//! and of the address; it never waits longer than [`crate::database::PAGE_TIMEOUT`].

pub(crate) mod changes;
mod command;
pub(crate) mod complete;
mod form;
pub(crate) mod frame;
mod grid;
pub(crate) mod model;
pub(crate) mod network;
pub(crate) mod overview;
pub(crate) mod params;
pub(crate) mod query;
pub(crate) mod row;
pub(crate) mod servers;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod values;

/// A row page does not ask the server for the rows of a table with more rows than this.
pub(crate) const REFERRERS_ROWS_MAX: u64 = 100_000;
