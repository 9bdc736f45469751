//! Files of databases on a real disk: the disk for the crate `log`, and other operations on such a
//! file as a whole.
//!
//! [`log_file`] opens files of records and is their [`Disk`](corvid_log::disk::Disk), [`history`]
//! keeps the files that it replaces, [`history_files`] reads them, [`lockfile`] keeps two programs
//! from opening one file, and [`replacement`] replaces a file by a complete new one. The crate
//! interprets no record and names no table; `log` and `service` decide which bytes are written and
//! when they are synced. Programs that open no database do not link it.

pub mod history;
pub mod history_files;
pub mod lockfile;
pub mod log_file;
mod open_file;
pub mod replacement;
mod write_back;
