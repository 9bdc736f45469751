//! The quota of each session's monitors: how many there are, and how long the requests are that the
//! database keeps for them, above all their conditions.
//!
//! Invariant: each monitor has an entry from its request until it is canceled, its database is
//! removed or its session ends. The size of an entry is that of the longest request about the
//! monitor: a condition that replaces another one of the same tables takes no more than that.
//! Called by `monitor_requests`. The contents that monitors get do not count here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use corvid_data::TrustedKeys;
use corvid_monitor::SessionId;

use crate::client_memory::SMALL_KEPT_BYTES;
use crate::session_limits::{MONITORS_MAX, is_exhausted};

/// Sizes of requests, by session and monitor.
#[derive(Debug, Default)]
pub(super) struct MonitorQuota(HashMap<SessionId, OfSession, TrustedKeys>);

#[derive(Debug, Default)]
struct OfSession {
    /// By canonical id; ordered, as clients choose the ids.
    sizes: BTreeMap<Arc<[u8]>, usize>,
    bytes: usize,
}

impl MonitorQuota {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a session keeps so little, with one more request of this length, that memory for it
    /// is never refused.
    pub(super) fn is_small(&self, session: SessionId, bytes: usize) -> bool {
        let kept = self.0.get(&session).map_or(0, |of| of.bytes);
        kept + bytes <= SMALL_KEPT_BYTES
    }

    /// Whether a session may have one more monitor, with a request of this length.
    pub(super) fn admits(&self, session: SessionId, bytes: usize) -> bool {
        let found = self.0.get(&session);
        found.is_none_or(|of| !is_exhausted(of.sizes.len(), MONITORS_MAX, of.bytes, bytes))
    }

    /// Counts a new monitor.
    pub(super) fn add(&mut self, session: SessionId, id: Arc<[u8]>, bytes: usize) {
        let of = self.0.entry(session).or_default();
        of.bytes += bytes;
        of.bytes -= of.sizes.insert(id, bytes).unwrap_or(0);
    }

    /// Whether a request of this length may change a monitor of a session.
    pub(super) fn admits_change(&self, session: SessionId, id: &[u8], bytes: usize) -> bool {
        let Some(of) = self.0.get(&session) else {
            return true;
        };
        let present = of.sizes.get(id).copied().unwrap_or(0);
        bytes <= present
            || !is_exhausted(of.sizes.len() - 1, MONITORS_MAX, of.bytes - present, bytes)
    }

    /// A monitor has been changed, and perhaps renamed.
    pub(super) fn change(&mut self, session: SessionId, old: &[u8], new: Arc<[u8]>, bytes: usize) {
        let present = self.remove(session, old);
        self.add(session, new, bytes.max(present));
    }

    /// Removes a monitor. Returns the size of its entry.
    pub(super) fn remove(&mut self, session: SessionId, id: &[u8]) -> usize {
        let Some(of) = self.0.get_mut(&session) else {
            return 0;
        };
        let bytes = of.sizes.remove(id).unwrap_or(0);
        of.bytes -= bytes;
        if of.sizes.is_empty() {
            assert_eq!(
                of.bytes, 0,
                "the bytes of a session are those of its monitors"
            );
            self.0.remove(&session);
        }
        bytes
    }

    pub(super) fn remove_session(&mut self, session: SessionId) {
        self.0.remove(&session);
    }

    /// How many monitors are counted. O(sessions).
    pub(super) fn len(&self) -> usize {
        self.0.values().map(|of| of.sizes.len()).sum()
    }

    /// Checks the account of bytes. O(monitors): for simulations.
    ///
    /// # Panics
    /// It is wrong.
    pub(super) fn check(&self) {
        for (session, of) in &self.0 {
            let bytes: usize = of.sizes.values().sum();
            assert_eq!(of.bytes, bytes, "{session:?}: the bytes are their sum");
            assert!(!of.sizes.is_empty(), "{session:?}: it has a monitor");
            assert!(
                of.sizes.len() <= MONITORS_MAX,
                "{session:?}: its monitors are bounded"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_limits::REQUEST_BYTES_MAX;

    const SESSION: SessionId = SessionId(1);

    fn id(number: usize) -> Arc<[u8]> {
        number.to_string().into_bytes().into()
    }

    #[test]
    fn number_and_length_are_limited_for_each_session() {
        let mut quota = MonitorQuota::default();
        for number in 0..MONITORS_MAX {
            assert!(quota.admits(SESSION, 10));
            quota.add(SESSION, id(number), 10);
        }
        assert!(!quota.admits(SESSION, 10));
        assert!(
            quota.admits(SessionId(2), REQUEST_BYTES_MAX + 1),
            "the only one"
        );
        assert_eq!(quota.remove(SESSION, &id(0)), 10);
        assert!(quota.admits(SESSION, 10) && !quota.admits(SESSION, REQUEST_BYTES_MAX));

        // A change counts by its length, and not again when the next one replaces it.
        assert!(!quota.admits_change(SESSION, &id(1), REQUEST_BYTES_MAX));
        for _ in 0..3 {
            assert!(quota.admits_change(SESSION, &id(1), REQUEST_BYTES_MAX / 2));
            quota.change(SESSION, &id(1), id(1), REQUEST_BYTES_MAX / 2);
        }
        quota.change(SESSION, &id(1), id(2000), 5);
        assert!(!quota.admits_change(SESSION, &id(2), REQUEST_BYTES_MAX / 2));
        assert_eq!(quota.remove(SESSION, &id(2000)), REQUEST_BYTES_MAX / 2);
        assert!(
            !quota.is_small(SESSION, SMALL_KEPT_BYTES)
                && quota.is_small(SessionId(2), SMALL_KEPT_BYTES)
        );
        quota.remove_session(SESSION);
        assert!(quota.is_empty());
    }
}
