//! The programs `ovsdb-client`, `ovsdb-tool` and `ovs-appctl`, run as processes: their output, messages and exit statuses; and, where the
//! reference is installed, that its programs do the same.

mod appctl;
mod client;
mod support;
mod tool;
