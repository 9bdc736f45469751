//! The server as one process, on damaged files.

mod damaged_files;
