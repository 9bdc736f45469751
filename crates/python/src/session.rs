//! The state of a session.

use corvid::{LockState, SessionState};
use pyo3::prelude::*;

/// The state of a client's session at one moment.
#[pyclass(frozen, get_all, module = "corvid")]
pub(crate) struct Session {
    is_connected: bool,
    remote: Option<String>,
    is_leader: Option<bool>,
    is_synced: bool,
    has_contents: bool,
    is_alive: bool,
    last_failure: Option<String>,
    lock: &'static str,
    /// The server's error, as JSON, if it refused the request for the lock.
    lock_refusal: Option<String>,
}

impl Session {
    pub(crate) fn of(state: &SessionState) -> Session {
        Session {
            is_connected: state.is_connected,
            remote: state.remote.clone(),
            is_leader: state.is_leader(),
            is_synced: state.is_synced,
            has_contents: state.has_contents,
            is_alive: state.is_alive,
            last_failure: state.last_failure.as_ref().map(ToString::to_string),
            lock: match &state.lock {
                LockState::Unset => "unset",
                LockState::Requested => "requested",
                LockState::Contended => "contended",
                LockState::Held => "held",
                LockState::Refused(_) => "refused",
            },
            lock_refusal: match &state.lock {
                LockState::Refused(error) => Some(error.clone()),
                _ => None,
            },
        }
    }
}

#[pymethods]
impl Session {
    fn __repr__(&self) -> String {
        let remote = self.remote.as_deref().unwrap_or("no remote");
        match (self.is_synced, self.is_connected) {
            (true, _) => format!("<session with {remote}, synced>"),
            (false, true) => format!("<session with {remote}, downloading contents>"),
            (false, false) => match &self.last_failure {
                Some(failure) => format!("<no session: {failure}>"),
                None => format!("<no session with {remote} yet>"),
            },
        }
    }
}
