//! Contents of a server that may be behind what the user has seen.
//!
//! Members of a cluster, and relays, apply a commit at different times. A client that leaves one of them just after it has seen a commit asks
//! the next one for what came after. If that has not applied the commit yet, it does not know its id and sends everything that it
//! has, which is older. `index` in `_Server` tells only a client that has seen the index of that
//! commit: relays show none, and an update may come before the index does. So such contents are
//! held back with the updates that follow them, until the update of that commit comes, or until a
//! server that is in contact with its cluster is no longer behind.
//!
//! The same holds for contents of another schema: the next server may be behind a conversion. A conversion at the present server is no reason to
//! wait.
//!
//! Invariant: what is held back is not handed to the user, so a connection that ends meanwhile changes nothing.

use corvid_data::Uuid;

use super::{Client, State};
use crate::event::Update;

/// A server that hears its leader and can store has applied what was committed this long ago, ms.
const BEHIND_MAX_MS: u64 = 2000;

/// Contents that are held back.
#[derive(Debug)]
pub(super) struct Lagging {
    /// The last transaction that the user has seen.
    awaited: Uuid,
    until_ms: u64,
    /// The contents and what followed them.
    updates: Vec<Update>,
}

impl Client {
    /// Holds back contents that do not continue the present ones, if they may be behind those.
    pub(super) fn hold_back(&mut self, version: u8, update: Update) -> Result<(), Update> {
        let until_ms = self.seen_ms.saturating_add(BEHIND_MAX_MS);
        let is_copy = |model: &str| matches!(model, "clustered" | "relay");
        let (seen, over) = self.seen;
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

    /// Adds an update to those that are held back, if any are.
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

    /// Whether contents are held back, and wait for updates.
    pub(super) fn is_holding(&self) -> bool {
        self.lagging.is_some() && self.state == State::DataMonitor
    }

    /// When contents that are held back are handed over at the latest.
    pub(super) fn lagging_until_ms(&self) -> Option<u64> {
        self.lagging.as_ref().map(|lagging| lagging.until_ms)
    }

    /// Hands over contents that have been held back long enough.
    pub(super) fn release_lagging_in_time(&mut self) {
        if self
            .lagging_until_ms()
            .is_some_and(|until_ms| until_ms <= self.now_ms)
        {
            self.release_lagging();
        }
    }

    /// Hands over what is held back, in one go: a user that handles all events before it shows anything shows nothing older.
    fn release_lagging(&mut self) {
        let Some(lagging) = self.lagging.take() else {
            return;
        };
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
