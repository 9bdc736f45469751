//! Whether `_Server` shows a relay as connected: while it can send to its source, and for a limited
//! time after that (docs/spec/distribution.md 2.4).
//!
//! Clients of a relay leave it when it is not connected. The delay keeps them there while the relay
//! looks for another source.
//!
//! A source that is itself a relay and reports that it is not connected has waited that long
//! already. Its relays have tried all other sources by then, and pass the report on at once
//! ([`Client::is_at_lost_relay`](corvid_session::Client::is_at_lost_relay)). So the delay does not
//! grow with the depth of a tree.
//!
//! Invariant: a relay that was not connected becomes connected only when its database has applied
//! everything it lacked. A client that came earlier would read stale rows, and a new schema among
//! the missing changes would close its session.

/// How long a relay counts as connected after losing its source, ms.
pub(super) const LINGER_MS: u64 = 30_000;

/// The state of a relay's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The relay has the source's contents and can send requests to it.
    Reachable,
    /// There is no source at present.
    Lost,
    /// The source is a relay that is not connected itself, and there is no better source.
    Orphaned,
}

/// Decides what `_Server` shows, from the state of the source over time.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    /// Requests can be sent to the source.
    is_reachable: bool,
    /// When the source was lost, monotonic ms, while the relay still counts as connected.
    lost_ms: Option<u64>,
    /// The value last shown.
    is_shown: bool,
}

impl Reachability {
    /// Sets the state of the source. `has_caught_up`: the database has applied what the source had
    /// when that state began. Returns the value to show from now on, if it changes.
    pub(super) fn set(&mut self, now_ms: u64, source: Source, has_caught_up: bool) -> Option<bool> {
        let was_reachable = std::mem::replace(&mut self.is_reachable, source == Source::Reachable);
        // Only a source that was reachable starts the delay: a relay that fails to reconnect does
        // not start it again.
        match source {
            Source::Reachable | Source::Orphaned => self.lost_ms = None,
            Source::Lost if was_reachable => self.lost_ms = Some(now_ms),
            Source::Lost => {}
        }
        self.lost_ms
            .take_if(|lost_ms| now_ms >= *lost_ms + LINGER_MS);
        let is_connected = match self.is_reachable {
            true => self.is_shown || has_caught_up,
            false => self.is_shown && self.lost_ms.is_some(),
        };
        let is_news = std::mem::replace(&mut self.is_shown, is_connected) != is_connected;
        is_news.then_some(is_connected)
    }

    /// The value shown.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// When [`Reachability::set`] must be called again, monotonic ms; `None` if no time matters.
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
        let mut set = |now_ms, is_reachable| {
            let source = if is_reachable {
                Source::Reachable
            } else {
                Source::Lost
            };
            let news = it.set(now_ms, source, true);
            (news, it.deadline_ms())
        };
        assert_eq!(set(0, false), (None, None), "there never were contents");
        assert_eq!(set(10, true), (Some(true), None));
        assert_eq!(set(20, true), (None, None));
        assert_eq!(set(100, false), (None, Some(30_100)));
        assert_eq!(set(20_000, false), (None, Some(30_100)));
        assert_eq!(set(25_000, true), (None, None));
        assert_eq!(set(26_000, false), (None, Some(56_000)));
        assert_eq!(set(55_999, false), (None, Some(56_000)));
        assert_eq!(set(56_000, false), (Some(false), None));
        assert_eq!(set(90_000, false), (None, None));
        assert_eq!(set(90_001, true), (Some(true), None));
    }

    #[test]
    fn a_relay_is_connected_when_it_has_applied_what_it_lacked() {
        let mut it = Reachability::default();
        assert_eq!(it.set(0, Source::Reachable, false), None);
        assert_eq!(
            it.set(10, Source::Lost, false),
            None,
            "it never was connected"
        );
        assert_eq!(it.set(20, Source::Reachable, false), None);
        assert_eq!(it.set(30, Source::Reachable, true), Some(true));
        assert_eq!(it.set(40, Source::Lost, false), None);
        assert_eq!(
            it.set(50, Source::Reachable, false),
            None,
            "it has not been away for long"
        );
        assert_eq!(it.set(60, Source::Lost, false), None);
        assert_eq!(it.set(30_060, Source::Lost, false), Some(false));
        assert_eq!(it.set(40_000, Source::Reachable, false), None);
        assert_eq!(it.set(40_001, Source::Reachable, true), Some(true));
    }

    #[test]
    fn a_relay_whose_source_has_lost_its_own_passes_that_on_at_once() {
        let mut it = Reachability::default();
        assert_eq!(it.set(0, Source::Reachable, true), Some(true));
        assert_eq!(it.set(10, Source::Lost, true), None, "it tries others");
        assert_eq!(it.set(20, Source::Orphaned, true), Some(false));
        assert_eq!(it.set(30, Source::Lost, true), None);
        assert_eq!(it.deadline_ms(), None);
        assert_eq!(it.set(40, Source::Reachable, true), Some(true));
    }
}
