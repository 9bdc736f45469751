//! The locks of a relay, which are those of its source (docs/internals/relay.md, "Locks").
//!
//! ```text
//! sessions in line:  A B C      relay ---- lock ----> source, in the name of A
//!                    |                <--- granted --   A owns the lock
//! A unlocks:           B C      relay - unlock, lock -> in the name of B
//! ```
//!
//! The relay keeps the line of its own sessions, and claims the lock at the source in the name of
//! the first. When another session becomes first there is a new claim: the relay releases the lock
//! and requests it again. So other clients of the source get their turn. Claims travel with the
//! relay's transactions, after those already checked. So the source has executed everything from
//! the previous owner before another session owns the lock.
//!
//! Invariant: a session owns a lock here only while the source has granted it to the relay under
//! the session's own claim.

use std::collections::BTreeSet;

use bytes::Bytes;
use corvid_monitor::SessionId;

use super::{LockNotification, Locks, Mode};
use crate::message::{DatabaseId, LockClaim, LockNews};

/// The error of a `steal` when the source cannot be reached.
const NOT_CONNECTED: &[u8] =
    br#"{"details":"the relay is not connected to its source","error":"not connected"}"#;

/// A claim that a relay has yet to make.
#[derive(Debug)]
pub(super) struct DueClaim {
    relay: DatabaseId,
    lock: String,
    /// `None`: release the lock.
    claim: Option<LockClaim>,
}

/// The claim to a lock in the name of the first session in line.
#[derive(Debug)]
pub(super) struct Claim {
    number: u64,
    is_granted: bool,
    /// The session's request is not answered yet.
    is_answer_due: bool,
}

impl Claim {
    pub(super) fn is_granted(&self) -> bool {
        self.is_granted
    }

    pub(super) fn is_answer_due(&self) -> bool {
        self.is_answer_due
    }
}

impl Locks {
    /// Hands the locks to this relay's source, or to this server (`None`). The source of the
    /// previous relay gets its locks back, if that relay is still served. Returns the sessions that
    /// have new notifications.
    pub fn set_relay(
        &mut self,
        relay: Option<DatabaseId>,
        is_served: impl Fn(DatabaseId) -> bool,
    ) -> Vec<SessionId> {
        if relay == self.relay {
            return Vec::new();
        }
        let former = std::mem::replace(&mut self.relay, relay);
        // A relay that is no longer served makes no claims: its source releases the locks when the
        // connection ends.
        self.due_claims.retain(|due| is_served(due.relay));
        if let Some(former) = former.filter(|former| is_served(*former)) {
            let given_back = self.queues.keys().map(|lock| DueClaim {
                relay: former,
                lock: lock.clone(),
                claim: None,
            });
            self.due_claims.extend(given_back);
        }
        // Owners lose their locks before the new claims are made: until the new source has granted
        // a lock, no session owns it.
        let locks: Vec<String> = self.queues.keys().cloned().collect();
        let notified = locks.iter().filter_map(|lock| {
            if relay.is_none() {
                return self.keep_here(lock);
            }
            let loser = self.lose(lock);
            self.claim(lock, false);
            loser
        });
        notified.collect()
    }

    /// The relays that have claims to make and must be told
    /// ([`ToDatabase::LockClaims`](crate::message::ToDatabase::LockClaims)).
    #[must_use]
    pub fn relays_with_claims(&self) -> BTreeSet<DatabaseId> {
        self.due_claims.iter().map(|due| due.relay).collect()
    }

    /// Takes the claims that this relay has to make, in order.
    pub(crate) fn take_claims(&mut self, relay: DatabaseId) -> Vec<(String, Option<LockClaim>)> {
        let due = self.due_claims.extract_if(.., |due| due.relay == relay);
        due.map(|due| (due.lock, due.claim)).collect()
    }

    /// The source has reported about a claim. Returns the session that has a new notification, if
    /// any.
    pub(crate) fn hear(&mut self, lock: &str, number: u64, news: LockNews) -> Option<SessionId> {
        let queue = self.queues.get_mut(lock)?;
        let first = queue.requests.front()?;
        let (session, is_thief) = (first.session, first.mode == Mode::Steal);
        // News of an earlier claim is stale: another session is first in line now.
        let claim = queue.claim.as_mut().filter(|it| it.number == number)?;
        match news {
            LockNews::Granted => {
                claim.is_granted = true;
                if std::mem::take(&mut claim.is_answer_due) {
                    self.notify(session, LockNotification::Answer(Ok(true)));
                } else {
                    self.notify_change(session, "locked", lock);
                }
                Some(session)
            }
            LockNews::Waiting => {
                if !std::mem::take(&mut claim.is_answer_due) {
                    return None;
                }
                self.notify(session, LockNotification::Answer(Ok(false)));
                Some(session)
            }
            LockNews::Lost => {
                let loser = self.lose(lock);
                if is_thief {
                    self.claim(lock, false);
                }
                loser
            }
            LockNews::Refused(error) => {
                // Only a session that still waits for its answer is refused. Others keep waiting:
                // the relay repeats the claim over its next connection.
                if !claim.is_answer_due {
                    return None;
                }
                queue.requests.pop_front();
                self.notify(session, LockNotification::Answer(Err(error)));
                self.forget(session, lock);
                self.claim(lock, false);
                Some(session)
            }
        }
    }

    /// The first session in line has changed: claims the lock in its name, or releases it if the
    /// line is empty. Returns false if the locks are this server's.
    pub(super) fn claim(&mut self, lock: &str, is_answer_due: bool) -> bool {
        let Some(relay) = self.relay else {
            return false;
        };
        let Some(queue) = self.queues.get_mut(lock) else {
            return true;
        };
        let claim = queue.requests.front().map(|first| {
            self.last_claim += 1;
            LockClaim {
                number: self.last_claim,
                steals: first.mode == Mode::Steal,
            }
        });
        self.due_claims.push(DueClaim {
            relay,
            lock: lock.to_owned(),
            claim,
        });
        queue.claim = claim.map(|claim| Claim {
            number: claim.number,
            is_granted: false,
            is_answer_due,
        });
        if claim.is_none() {
            self.queues.remove(lock);
        }
        true
    }

    /// The first session in line does not own the lock (any more). It stays in line unless it is a
    /// thief. Returns it if it has a new notification.
    fn lose(&mut self, lock: &str) -> Option<SessionId> {
        let queue = self.queues.get_mut(lock)?;
        let was_owner = queue.owner().is_some();
        let is_answer_due = queue.claim.as_mut().is_some_and(|claim| {
            claim.is_granted = false;
            std::mem::take(&mut claim.is_answer_due)
        });
        let first = queue.requests.front()?;
        let (session, is_thief) = (first.session, first.mode == Mode::Steal);
        if is_thief {
            queue.requests.pop_front();
        }
        if was_owner {
            self.notify_change(session, "stolen", lock);
        // A thief does not wait in line, so its `steal` has failed.
        } else if is_answer_due && is_thief {
            self.forget(session, lock);
            let error = Bytes::from_static(NOT_CONNECTED);
            self.notify(session, LockNotification::Answer(Err(error)));
        } else if is_answer_due {
            self.notify(session, LockNotification::Answer(Ok(false)));
        } else {
            return None;
        }
        Some(session)
    }

    /// The lock is this server's from now on, so the first session in line owns it. Returns that
    /// session if it has a new notification.
    fn keep_here(&mut self, lock: &str) -> Option<SessionId> {
        let queue = self.queues.get_mut(lock)?;
        let session = queue.requests.front()?.session;
        let claim = queue.claim.take()?;
        if claim.is_answer_due {
            self.notify(session, LockNotification::Answer(Ok(true)));
        } else if !claim.is_granted {
            self.notify_change(session, "locked", lock);
        } else {
            return None;
        }
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::Decision;

    const A: SessionId = SessionId(1);
    const B: SessionId = SessionId(2);
    const RELAY: DatabaseId = DatabaseId(3);

    fn table() -> Locks {
        let mut locks = Locks::new();
        assert_eq!(locks.set_relay(Some(RELAY), |_| true), []);
        locks
    }

    /// The claims to the lock `L` since the last call: `+1` locks, `!2` steals, `-` releases.
    fn claims(locks: &mut Locks) -> Vec<String> {
        let claims = locks.take_claims(RELAY).into_iter();
        let claims = claims.map(|(lock, claim)| {
            assert_eq!(lock, "L");
            match claim {
                Some(LockClaim { number, steals }) => {
                    format!("{}{number}", if steals { "!" } else { "+" })
                }
                None => "-".to_owned(),
            }
        });
        claims.collect()
    }

    /// The notifications of a session: a method or an answer.
    fn told(locks: &mut Locks, session: SessionId) -> Vec<String> {
        let notifications = locks.take_notifications(session).into_iter();
        let texts = notifications.map(|notification| match notification {
            LockNotification::Changed { method, .. } => method.to_owned(),
            LockNotification::Answer(Ok(is_owner)) => is_owner.to_string(),
            LockNotification::Answer(Err(_)) => "error".to_owned(),
        });
        texts.collect()
    }

    #[test]
    fn each_first_session_has_a_claim_of_its_own() {
        let mut locks = table();
        let asked = Ok((Decision::AtSource, None));
        assert_eq!(locks.lock(A, "L", Mode::Lock), asked);
        let waits = Ok((Decision::Waiting, None));
        assert_eq!(locks.lock(B, "L", Mode::Lock), waits);
        assert_eq!(claims(&mut locks), ["+1"]);
        assert!(!locks.owns(A, "L"));
        assert_eq!(locks.hear("L", 1, LockNews::Granted), Some(A));
        assert_eq!(told(&mut locks, A), ["true"]);
        assert!(locks.owns(A, "L"));
        assert_eq!(locks.unlock(A, "L"), Ok(None));
        assert_eq!(claims(&mut locks), ["+2"]);
        assert!(!locks.owns(B, "L"));
        assert_eq!(locks.hear("L", 1, LockNews::Granted), None);
        assert!(!locks.owns(B, "L"), "that was of the claim before");
        assert_eq!(locks.hear("L", 2, LockNews::Granted), Some(B));
        assert_eq!(told(&mut locks, B), ["locked"]);
        assert_eq!(locks.remove_session(B), []);
        assert_eq!(claims(&mut locks), ["-"]);
        assert!(locks.is_empty());
    }

    #[test]
    fn an_owner_loses_the_lock_with_the_source_and_stays_in_line() {
        let mut locks = table();
        let _ = locks.lock(A, "L", Mode::Lock);
        locks.hear("L", 1, LockNews::Waiting);
        locks.hear("L", 1, LockNews::Granted);
        locks.hear("L", 1, LockNews::Lost);
        assert!(!locks.owns(A, "L"));
        locks.hear("L", 1, LockNews::Granted);
        assert_eq!(told(&mut locks, A), ["false", "locked", "stolen", "locked"]);
        assert_eq!(claims(&mut locks), ["+1"]);
    }

    #[test]
    fn a_thief_that_loses_the_lock_leaves_the_line() {
        let mut locks = table();
        let _ = locks.lock(A, "L", Mode::Lock);
        locks.hear("L", 1, LockNews::Granted);
        let stolen = Ok((Decision::AtSource, Some(A)));
        assert_eq!(locks.lock(B, "L", Mode::Steal), stolen);
        assert!(!locks.owns(A, "L"));
        locks.hear("L", 2, LockNews::Granted);
        assert_eq!(locks.hear("L", 2, LockNews::Lost), Some(B));
        assert_eq!(told(&mut locks, A), ["true", "stolen"]);
        assert_eq!(told(&mut locks, B), ["true", "stolen"]);
        assert_eq!(claims(&mut locks), ["+1", "!2", "+3"]);
        assert_eq!(locks.unlock(B, "L"), Ok(None));
        locks.hear("L", 3, LockNews::Granted);
        assert!(locks.owns(A, "L"));
    }

    #[test]
    fn requests_under_way_are_answered_when_another_session_steals() {
        for (mode, expected) in [
            (Mode::Lock, &["false"][..]),
            (Mode::Steal, &["true", "stolen"]),
        ] {
            let mut locks = table();
            let _ = locks.lock(A, "L", mode);
            let _ = locks.lock(B, "L", Mode::Steal);
            assert_eq!(told(&mut locks, A), expected);
        }
    }

    #[test]
    fn without_a_source_a_lock_waits_and_a_steal_fails() {
        let mut locks = table();
        let _ = locks.lock(A, "L", Mode::Lock);
        assert_eq!(locks.hear("L", 1, LockNews::Lost), Some(A));
        assert_eq!(told(&mut locks, A), ["false"]);
        let _ = locks.lock(B, "L", Mode::Steal);
        assert_eq!(locks.hear("L", 2, LockNews::Lost), Some(B));
        assert_eq!(told(&mut locks, B), ["error"]);
        assert_eq!(claims(&mut locks), ["+1", "!2", "+3"]);
        assert_eq!(
            locks.unlock(B, "L"),
            Err(crate::locks::Refused::NotRequested)
        );
    }

    #[test]
    fn a_refused_request_is_as_if_it_had_not_been() {
        let mut locks = table();
        let _ = locks.lock(A, "L", Mode::Lock);
        let error = || LockNews::Refused(Bytes::from_static(b"\"no\""));
        assert_eq!(locks.hear("L", 1, error()), Some(A));
        assert_eq!(told(&mut locks, A), ["error"]);
        assert_eq!(claims(&mut locks), ["+1", "-"]);
        assert!(locks.is_empty());
    }

    #[test]
    fn locks_move_to_a_source_and_back() {
        let mut locks = Locks::new();
        let _ = locks.lock(A, "L", Mode::Lock);
        let _ = locks.lock(B, "L", Mode::Lock);
        assert_eq!(locks.set_relay(Some(RELAY), |_| true), [A]);
        assert!(!locks.owns(A, "L"));
        assert_eq!(locks.set_relay(None, |_| false), [A]);
        assert!(locks.relays_with_claims().is_empty());
        assert!(locks.owns(A, "L"));
        assert_eq!(told(&mut locks, A), ["stolen", "locked"]);
        assert_eq!(locks.unlock(A, "L"), Ok(Some(B)));
    }

    #[test]
    fn the_source_of_a_former_relay_gets_its_locks_back() {
        const OTHER: DatabaseId = DatabaseId(4);
        let mut locks = table();
        let _ = locks.lock(A, "L", Mode::Lock);
        locks.hear("L", 1, LockNews::Granted);
        assert_eq!(claims(&mut locks), ["+1"]);
        assert_eq!(locks.set_relay(Some(OTHER), |_| true), [A]);
        assert_eq!(told(&mut locks, A), ["true", "stolen"]);
        assert_eq!(locks.relays_with_claims(), [RELAY, OTHER].into());
        assert_eq!(claims(&mut locks), ["-"]);
        assert_eq!(locks.take_claims(OTHER).len(), 1);
        locks.hear("L", 2, LockNews::Granted);
        assert!(locks.owns(A, "L"));
    }
}
