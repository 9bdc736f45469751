//! Files of databases on a real disk: the disk of crate `log`, and what else a program does to such a file as a whole.
//!
//! [`log_file`] opens files of records and is their [`Disk`](corvid_log::disk::Disk), [`lockfile`] keeps two programs from one file, and
//! [`replacement`] puts a complete new file in place of another. The crate interprets no record and names no table; which bytes are written
//! and when they are synced is decided in `log` and `service`. Programs that open no database do not link it.

pub mod lockfile;
pub mod log_file;
mod open_file;
pub mod replacement;
mod write_back;
