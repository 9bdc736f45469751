//! `ovsdb-tool` on files: its output, its exit status and the resulting files. If the reference is
//! installed, both tools must do the same.

mod clustered;
mod commands;
mod conversion;
mod damage;
mod history;
mod live;
mod log;
mod names;
mod own_references;
mod reference;
mod reference_clusters;
mod salvage;
mod sandbox;
