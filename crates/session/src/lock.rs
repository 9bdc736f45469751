//! A client's lock: the request, and what the server last reported about it (docs/spec/idl.md
//! 1.14).
//!
//! This state is stale by the latency of a message, so it only saves transactions that would fail.
//! For safety, each transaction must `assert` the lock.

/// The lock of one client, if it requests one.
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

    /// Replaces the requested lock; returns the previous one.
    pub(crate) fn replace(&mut self, name: Option<String>) -> Option<String> {
        (self.is_held, self.is_contended) = (false, false);
        self.refusal = None;
        std::mem::replace(&mut self.name, name)
    }

    /// A request is in flight or the connection has ended: the lock is not owned until the server
    /// says so.
    pub(crate) fn unknown(&mut self) {
        self.is_held = false;
        self.refusal = None;
    }

    /// The server refuses the lock request. Another client does not necessarily own the lock.
    pub(crate) fn refused(&mut self, error: String) {
        self.is_held = false;
        self.refusal = Some(error);
    }

    /// Handles the reply to the request.
    pub(crate) fn answered(&mut self, is_locked: bool) {
        (self.is_held, self.is_contended) = (is_locked, !is_locked);
        self.refusal = None;
    }

    /// Handles a notification about `name`; returns true if the lock has been owned since.
    pub(crate) fn notified(&mut self, name: &str, is_locked: bool) -> bool {
        if self.name() != Some(name) {
            return false;
        }
        let is_news = is_locked && !self.is_held;
        self.answered(is_locked);
        is_news
    }
}
