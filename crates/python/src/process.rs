//! Forks.

use corvid::fork;
use pyo3::prelude::*;

/// Gives the clients that the parent has connected to this process, a child that was just forked.
#[pyfunction]
pub(crate) fn inherit_connections() {
    fork::inherit();
}
