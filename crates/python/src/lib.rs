//! The Python module `corvid._native`: the client core as Python classes, for the package `corvid`
//! in `python/`.
//!
//! Only what costs something is here: the client, rows, transactions, indexes and changes. Waiting
//! is not: the fronts (blocking, asyncio, poll-style) are written in Python over
//! [`client::Client::wait`]. Docstrings and signatures for users are in
//! `python/corvid/_native.pyi`.
//!
//! Invariant: no Python object is made or destroyed while the lock of a client is held, because
//! either may run any Python code, and that may use the client. The lock is awaited without the
//! GIL.

mod change;
mod client;
mod condition;
mod error;
mod history;
mod index;
mod logging;
mod ovs;
mod process;
mod row;
mod row_class;
mod row_objects;
mod schema;
mod session;
mod transaction;
mod value;

use pyo3::prelude::*;

// The invariant above leans on the GIL, and nothing here was tested without it.
#[cfg(Py_GIL_DISABLED)]
compile_error!("corvid does not run on a free-threaded Python: use a build of Python with the GIL");

// A panic must reach Python as an exception.
#[cfg(panic = "abort")]
compile_error!("corvid needs panic = \"unwind\": build it with the profile `bindings`");

/// The module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::change::{Change, Watch};
    #[pymodule_export]
    use super::client::Client;
    #[pymodule_export]
    use super::history::History;
    #[pymodule_export]
    use super::index::Index;
    #[pymodule_export]
    use super::logging::take_log_messages;
    #[pymodule_export]
    use super::ovs::events::Events;
    #[pymodule_export]
    use super::ovs::row::LiveRow;
    #[pymodule_export]
    use super::process::inherit_connections;
    #[pymodule_export]
    use super::row::{Row, exists, table_of};
    #[pymodule_export]
    use super::schema::{Column, Schema};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::transaction::Transaction;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::logging::install();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    use pyo3::prelude::*;
}
