//! `ovsdb-client` against servers that play a test's script: outputs, messages and exit statuses,
//! without the reference.

mod history;
mod peer;
mod ping;
mod printing;
mod selection;
mod session;
