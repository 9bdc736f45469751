//! `ovsdb-tool` run as a program on files: what it prints, how it exits, what it leaves behind; and, where the reference tool
//! is installed, that both do the same.

mod clustered;
mod commands;
mod conversion;
mod damage;
mod live;
mod log;
mod own_references;
mod reference;
mod reference_clusters;
mod sandbox;
