//! The programs `ovsdb-client`, `ovsdb-tool` and `ovs-appctl`, run as processes: their output,
//! messages and exit statuses. Where the reference is installed, its programs must do the same.

mod appctl;
mod client;
mod support;
mod tool;
