//! A client's lock: the request and the server's last word on it (docs/spec/idl.md 1.14).
//!
//! This state lags behind the server's by the latency of a message, so it only saves transactions that would fail. The `assert` operation in
//! each transaction makes transactions safe.

/// The lock of one client, at most one.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    name: Option<String>,
    is_held: bool,
    is_contended: bool,
    /// The server's error, if the last answer was one.
    refusal: Option<String>,
}

impl Lock {
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    pub(crate) fn is_contended(&self) -> bool {
        self.is_contended
    }

    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Replaces the lock that is asked for; returns the former one.
    pub(crate) fn replace(&mut self, name: Option<String>) -> Option<String> {
        (self.is_held, self.is_contended) = (false, false);
        self.refusal = None;
        std::mem::replace(&mut self.name, name)
    }

    /// A request is out, or the connection is gone: nothing is held until the server says so.
    pub(crate) fn unknown(&mut self) {
        self.is_held = false;
        self.refusal = None;
    }

    /// The server does not grant the lock, to anybody. Another client need not have it.
    pub(crate) fn refused(&mut self, error: String) {
        self.is_held = false;
        self.refusal = Some(error);
    }

    /// The answer to the request.
    pub(crate) fn answered(&mut self, is_locked: bool) {
        (self.is_held, self.is_contended) = (is_locked, !is_locked);
        self.refusal = None;
    }

    /// A notification about `name`; true when the lock is held since.
    pub(crate) fn notified(&mut self, name: &str, is_locked: bool) -> bool {
        if self.name() != Some(name) {
            return false;
        }
        let is_news = is_locked && !self.is_held;
        self.answered(is_locked);
        is_news
    }
}
