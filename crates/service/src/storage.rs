//! The parts of storage that know databases: which rows a new file holds ([`content`]), and when a database's file is compacted without
//! a request ([`growth`]). How files are written, synced and replaced is `corvid_log::storage`, which knows no rows and no clock.

pub mod content;
pub mod growth;

pub use content::Content;
pub use growth::{FileState, Growth};
