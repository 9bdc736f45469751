//! `ovsdb-tool` on files: its output, its exit status and the resulting files; and, if the reference is installed, that both
//! tools do the same.

mod clustered;
mod commands;
mod conversion;
mod damage;
mod live;
mod log;
mod names;
mod own_references;
mod reference;
mod reference_clusters;
mod salvage;
mod sandbox;
