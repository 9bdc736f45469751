//! Sessions with a request whose answer is being written away from the database. What such a session sends meanwhile waits for the
//! answer, in order; nothing else does.
//!
//! Invariant: a session is held for one answer at a time. Used by first contents of monitors and by long results; knows neither.

use std::collections::{HashMap, VecDeque};

use corvid_monitor::SessionId;
use foldhash::fast::FixedState;

use crate::message::ToDatabase;

/// What each of these sessions has sent since.
#[derive(Debug, Default)]
pub(super) struct Held(HashMap<SessionId, VecDeque<ToDatabase>, FixedState>);

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a session is held.
    pub(super) fn contains(&self, session: SessionId) -> bool {
        self.0.contains_key(&session)
    }

    /// Holds a session.
    pub(super) fn hold(&mut self, session: SessionId) {
        self.0.entry(session).or_default();
    }

    /// Lets a session go, and returns what it sent; `None` when it was not held, or is closed.
    pub(super) fn let_go(&mut self, session: SessionId) -> Option<VecDeque<ToDatabase>> {
        self.0.remove(&session)
    }

    /// Whether an input must wait because its session is held.
    pub(super) fn must_follow(&self, input: &ToDatabase) -> bool {
        !self.is_empty() && sender(input).is_some_and(|session| self.contains(session))
    }

    /// Keeps an input for which that is so.
    pub(super) fn follow(&mut self, input: ToDatabase) {
        if let Some(session) = sender(&input) {
            self.0.entry(session).or_default().push_back(input);
        }
    }
}

/// The session whose requests an input must not overtake.
fn sender(input: &ToDatabase) -> Option<SessionId> {
    match input {
        ToDatabase::Request(request) => Some(request.session),
        ToDatabase::Fence(session, _) | ToDatabase::Cancel(session, _) => Some(*session),
        _ => None,
    }
}
