//! The server as one process: damaged files, and many shards on one database.

mod damaged_files;
mod many_shards;
