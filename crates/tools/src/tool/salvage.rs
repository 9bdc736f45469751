//! Extracts rows from a damaged file for `ovsdb-tool salvage`, and lists the losses.
//!
//! `reading` goes through the file, `contents` applies the pieces found, `repair` removes
//! everything that no database may hold: references to lost rows, duplicate keys, rows that nothing
//! refers to. The result loads without an error.

mod contents;
mod reading;
mod repair;

use contents::Contents;
pub(crate) use reading::read;
