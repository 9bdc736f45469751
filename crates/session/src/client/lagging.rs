//! Contents of a server that may be older than those the user has seen.
//!
//! Members of a cluster, and relays, apply a commit at different times. A client that leaves one of
//! them just after seeing a commit asks the next one for the changes since. If that server has not
//! applied the commit yet, it does not know the commit's id and sends all its contents, which are
//! older. `index` in `_Server` helps only a client that has seen the index of that commit: relays
//! show no index, and an update may arrive before its index. So such contents are held back,
//! together with the updates that follow. They are released when the update of that commit arrives,
//! or when a server in contact with its cluster must have caught up.
//!
//! The same holds for contents of another schema: the next server may not have applied a conversion
//! yet. A conversion at the current server does not cause a wait.
//!
//! Invariant: contents that are held back are not handed to the user, so if the connection ends
//! meanwhile nothing changes.
//!
//! Example: the user has seen commits 1 to 5 at server A and moves to B, which has applied 1 to 4.
//! B sends full contents (1 to 4), which are held back. B applies 5 and sends its update: contents
//! and update are handed over together, and the user never goes back to 4.

use corvid_data::Uuid;

use super::{Client, State};
use crate::event::Update;

/// A server that hears its leader and can store commits has applied everything committed this long
/// ago, ms.
const BEHIND_MAX_MS: u64 = 2000;

/// Contents that are held back.
#[derive(Debug)]
pub(super) struct Lagging {
    /// The last transaction that the user has seen.
    awaited: Uuid,
    until_ms: u64,
    /// The contents and the updates that followed them.
    updates: Vec<Update>,
}

impl Client {
    /// Holds back contents that do not continue the present ones, if they may be older. Otherwise
    /// returns them.
    pub(super) fn hold_back(&mut self, version: u8, update: Update) -> Result<(), Update> {
        let until_ms = self.seen_ms.saturating_add(BEHIND_MAX_MS);
        let is_copy = |model: &str| matches!(model, "clustered" | "relay");
        let (seen, over) = self.seen;
        // This server did not find the transaction that was to be continued, or the user saw it
        // over another connection.
        let is_other = self.last_id != Uuid::ZERO || over != self.link.seqno();
        let may_be_behind = update.clear
            && seen != Uuid::ZERO
            && is_other
            && self.now_ms < until_ms
            && self
                .server_status()
                .is_some_and(|status| is_copy(status.model.as_str()));
        if !may_be_behind {
            return Err(update);
        }
        assert!(self.lagging.is_none(), "contents are held back once");
        self.version = version;
        self.lagging = Some(Lagging {
            awaited: seen,
            until_ms,
            updates: vec![update],
        });
        Ok(())
    }

    /// Adds an update to the contents held back, if any; otherwise returns it.
    pub(super) fn hold_update(&mut self, update: Update) -> Result<(), Update> {
        let Some(lagging) = &mut self.lagging else {
            return Err(update);
        };
        let is_awaited = update.last_id == lagging.awaited;
        lagging.updates.push(update);
        if is_awaited {
            self.release_lagging();
        }
        Ok(())
    }

    /// Whether contents are held back and wait for updates.
    pub(super) fn is_holding(&self) -> bool {
        self.lagging.is_some() && self.state == State::DataMonitor
    }

    /// When contents held back are released at the latest, monotonic ms.
    pub(super) fn lagging_until_ms(&self) -> Option<u64> {
        self.lagging.as_ref().map(|lagging| lagging.until_ms)
    }

    /// Releases contents that have been held back long enough.
    pub(super) fn release_lagging_in_time(&mut self) {
        if self
            .lagging_until_ms()
            .is_some_and(|until_ms| until_ms <= self.now_ms)
        {
            self.release_lagging();
        }
    }

    /// Releases everything held back at once: a user that handles all events before it shows
    /// anything never shows older contents.
    fn release_lagging(&mut self) {
        let Some(lagging) = self.lagging.take() else {
            return;
        };
        // The session is leaving the server: its contents are dropped as if they had never arrived.
        if self.state != State::DataMonitor {
            return;
        }
        let version = self.version;
        for update in lagging.updates {
            self.hand_over(update);
        }
        self.contents_came(version, false);
    }
}
