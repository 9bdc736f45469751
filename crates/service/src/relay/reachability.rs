//! Whether `_Server` shows a relay as connected: while it can send to its source, and for a while after that (docs/spec/distribution.md 2.4).
//!
//! Clients of a relay leave it when it is not connected. The delay keeps them there while the relay finds another source.

/// So long after the source was lost a relay counts as connected, ms.
pub(super) const LINGER_MS: u64 = 30_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    /// Requests can be sent.
    is_reachable: bool,
    /// When that ended, while the relay still counts as connected.
    lost_ms: Option<u64>,
    /// The value that was shown last.
    is_shown: bool,
}

impl Reachability {
    /// Requests can be sent now, or cannot. Returns what is to be shown from now on, if that is news.
    pub(super) fn set(&mut self, now_ms: u64, is_reachable: bool) -> Option<bool> {
        if is_reachable {
            self.lost_ms = None;
        } else if self.is_reachable {
            self.lost_ms = Some(now_ms);
        }
        self.is_reachable = is_reachable;
        self.lost_ms
            .take_if(|lost_ms| now_ms >= *lost_ms + LINGER_MS);
        let is_connected = is_reachable || self.lost_ms.is_some();
        let is_news = std::mem::replace(&mut self.is_shown, is_connected) != is_connected;
        is_news.then_some(is_connected)
    }

    /// The value that is shown.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// When [`Reachability::set`] must be called again.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.lost_ms.map(|lost_ms| lost_ms + LINGER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_source_counts_for_thirty_seconds() {
        let mut it = Reachability::default();
        assert_eq!(it.set(0, false), None, "there never were contents");
        assert_eq!((it.set(10, true), it.set(20, true)), (Some(true), None));
        assert_eq!((it.set(100, false), it.deadline_ms()), (None, Some(30_100)));
        assert_eq!(it.set(20_000, false), None);
        assert_eq!((it.set(25_000, true), it.deadline_ms()), (None, None));
        assert_eq!(it.set(26_000, false), None);
        assert_eq!(it.set(55_999, false), None);
        assert_eq!(
            (it.set(56_000, false), it.deadline_ms()),
            (Some(false), None)
        );
        assert_eq!(it.set(90_000, false), None);
        assert_eq!(it.set(90_001, true), Some(true));
    }
}
