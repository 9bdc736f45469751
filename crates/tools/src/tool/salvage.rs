//! Taking rows out of a damaged file for `ovsdb-tool salvage`, with a list of the losses.
//!
//! `reading` goes through the file, `contents` applies what it finds, `repair` removes what no
//! database may hold: references to rows that were lost, second rows with one key, rows that nothing
//! refers to. The result loads without an error.

mod contents;
mod reading;
mod repair;

use contents::Contents;
pub(crate) use reading::read;
