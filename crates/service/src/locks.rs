//! The lock table of a server (docs/spec/protocol.md 4.11): owners, and waiting sessions in their order.
//!
//! Shards change it on `lock`, `steal`, `unlock` and disconnection; engines read it for `assert`. It sends nothing itself: a change of
//! ownership leaves a [`LockNotification`] here for its session, and the caller learns which session to wake. So a session gets
//! notifications in the order in which the changes happened, on any shards.
//!
//! At a relay the first session in line owns a lock only while the relay itself owns it at its source: see [`at_source`].

mod at_source;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use corvid_data::TrustedKeys;
use corvid_monitor::SessionId;

use crate::client_memory::{ClientMemory, Retained};
use crate::message::DatabaseId;
use crate::session_limits::LOCKS_MAX;
use at_source::{Claim, DueClaim};

/// How a session requests a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Wait for it.
    Lock,
    /// Take it at once.
    Steal,
}

/// The answer to a request for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The session owns it.
    Owned,
    /// The session waits in line.
    Waiting,
    /// The relay's source decides: a [`LockNotification::Answer`] follows.
    AtSource,
}

/// News about a lock, for the session that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockNotification {
    /// The owner has changed.
    Changed {
        /// `locked` or `stolen`.
        method: &'static str,
        /// The lock.
        lock: String,
    },
    /// The answer to the session's request, of which the source had to decide: whether it owns the lock, or an error as JSON.
    Answer(Result<bool, Bytes>),
}

/// The reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The session has requested this lock and did not unlock it.
    AlreadyRequested,
    /// `unlock` without a request.
    NotRequested,
    /// The session has requested as many locks as it may.
    TooMany,
}

/// The locks that one session has asked for, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedLocks {
    /// It owns these.
    pub owned: Vec<String>,
    /// It waits in line for these.
    pub waiting: Vec<String>,
    /// It had stolen these, and they were stolen from it.
    pub lost: Vec<String>,
}

#[derive(Debug)]
struct LockRequest {
    session: SessionId,
    mode: Mode,
}

/// The sessions that have requested a lock, in order.
#[derive(Debug, Default)]
struct Queue {
    requests: VecDeque<LockRequest>,
    /// The first one owns the lock if there is no claim, or the source has granted it.
    claim: Option<Claim>,
}

impl Queue {
    fn owner(&self) -> Option<SessionId> {
        let is_granted = self.claim.as_ref().is_none_or(Claim::is_granted);
        let first = self.requests.front().filter(|_| is_granted)?;
        Some(first.session)
    }
}

/// A lock that a session has requested.
#[derive(Debug)]
struct Requested {
    lock: String,
    /// Counts its memory.
    _retained: Retained,
}

/// Bytes of a requested lock besides two copies of its name.
const REQUEST_BYTES: usize = 256;

/// Locks of a session that are never refused for lack of memory.
const FEW_LOCKS: usize = 16;

/// For each lock, the sessions that have requested it, in order; the first owns it. A session that had stolen a lock and lost it to another
/// one leaves the queue, and `requested` keeps the lock until the session unlocks it.
#[derive(Debug, Default)]
pub struct Locks {
    /// Ordered, as clients choose the names.
    queues: BTreeMap<String, Queue>,
    requested: HashMap<SessionId, Vec<Requested>, TrustedKeys>,
    memory: Arc<ClientMemory>,
    /// Notifications that sessions have yet to get, in order.
    notifications: HashMap<SessionId, Vec<LockNotification>, TrustedKeys>,
    /// The locks are those of this relay's source.
    relay: Option<DatabaseId>,
    /// In order.
    due_claims: Vec<DueClaim>,
    /// The number of the last claim.
    last_claim: u64,
}

impl Locks {
    /// An empty table.
    #[must_use]
    pub fn new() -> Locks {
        Locks::default()
    }

    /// Sets the account of what sessions keep.
    pub fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.memory = memory;
    }

    /// Handles `lock` or `steal`. Returns whether the session owns the lock now, and the session that has a new notification.
    ///
    /// # Errors
    /// [`Refused::AlreadyRequested`], [`Refused::TooMany`].
    pub fn lock(
        &mut self,
        session: SessionId,
        lock: &str,
        mode: Mode,
    ) -> Result<(Decision, Option<SessionId>), Refused> {
        let requested = self.requested.entry(session).or_default();
        if requested.iter().any(|requested| requested.lock == lock) {
            return Err(Refused::AlreadyRequested);
        }
        let bytes = REQUEST_BYTES + 2 * lock.len();
        let has_room = requested.len() < FEW_LOCKS || self.memory.has_room_to_keep(bytes);
        if requested.len() >= LOCKS_MAX || !has_room {
            return Err(Refused::TooMany);
        }
        requested.push(Requested {
            lock: lock.to_owned(),
            _retained: Retained::new(&self.memory, bytes),
        });
        assert!(
            requested.len() <= LOCKS_MAX,
            "the locks of a session are bounded"
        );
        let mut notified = None;
        if mode == Mode::Steal {
            notified = self.displace(lock);
        }
        let queue = self.queues.entry(lock.to_owned()).or_default();
        match mode {
            Mode::Lock => queue.requests.push_back(LockRequest { session, mode }),
            Mode::Steal => queue.requests.push_front(LockRequest { session, mode }),
        }
        let first = queue.requests.front();
        if first.is_none_or(|first| first.session != session) {
            return Ok((Decision::Waiting, None));
        }
        let is_at_source = self.claim(lock, true);
        let decision = if is_at_source {
            Decision::AtSource
        } else {
            assert!(
                self.owns(session, lock),
                "the first session in line owns the lock"
            );
            Decision::Owned
        };
        Ok((decision, notified))
    }

    /// Handles `unlock`. Returns the session that has a new notification.
    ///
    /// # Errors
    /// [`Refused::NotRequested`].
    pub fn unlock(&mut self, session: SessionId, lock: &str) -> Result<Option<SessionId>, Refused> {
        if !self.forget(session, lock) {
            return Err(Refused::NotRequested);
        }
        Ok(self.withdraw(session, lock))
    }

    /// Removes and returns the notifications of a session, in order.
    pub fn take_notifications(&mut self, session: SessionId) -> Vec<LockNotification> {
        self.notifications.remove(&session).unwrap_or_default()
    }

    /// Drops every request of a session that has disconnected. Returns the sessions that have a new notification.
    pub fn remove_session(&mut self, session: SessionId) -> Vec<SessionId> {
        self.notifications.remove(&session);
        let requested = self.requested.remove(&session).unwrap_or_default();
        requested
            .iter()
            .filter_map(|requested| self.withdraw(session, &requested.lock))
            .collect()
    }

    /// Whether the session owns the lock now.
    #[must_use]
    pub fn owns(&self, session: SessionId, lock: &str) -> bool {
        self.queues.get(lock).and_then(Queue::owner) == Some(session)
    }

    /// The locks that a session has requested.
    #[must_use]
    pub fn requested_by(&self, session: SessionId) -> RequestedLocks {
        let mut requests = RequestedLocks::default();
        let requested = self.requested.get(&session).into_iter().flatten();
        let mut names: Vec<&String> = requested.map(|requested| &requested.lock).collect();
        names.sort_unstable();
        for name in names {
            let is_in_line = |queue: &Queue| {
                let mut requests = queue.requests.iter();
                requests.any(|request| request.session == session)
            };
            let list = if self.owns(session, name) {
                &mut requests.owned
            } else if self.queues.get(name).is_some_and(is_in_line) {
                &mut requests.waiting
            } else {
                &mut requests.lost
            };
            list.push(name.clone());
        }
        requests
    }

    /// Checks that each session in line has requested the lock. O(requests): for simulations.
    ///
    /// # Panics
    /// One has not.
    pub fn check(&self) {
        for (lock, queue) in &self.queues {
            assert!(!queue.requests.is_empty(), "{lock}: somebody is in line");
            let mut sessions = Vec::new();
            for request in &queue.requests {
                let requested = self.requested.get(&request.session).into_iter().flatten();
                let times = requested.filter(|requested| requested.lock == *lock);
                assert_eq!(times.count(), 1, "{lock}: a session requests a lock once");
                sessions.push(request.session);
            }
            sessions.sort_unstable();
            sessions.dedup();
            assert_eq!(
                sessions.len(),
                queue.requests.len(),
                "{lock}: a session is in line once"
            );
        }
    }

    /// Whether no lock is requested and no notification waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.requested.is_empty() && self.notifications.is_empty()
    }

    /// Locks that are owned, and requests that wait for one.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let owned = self.queues.values().filter_map(Queue::owner).count();
        let requests: usize = self.queues.values().map(|queue| queue.requests.len()).sum();
        (owned as u64, (requests - owned) as u64)
    }

    /// A thief comes before the first session in line, which has lost the lock if it owned it. Returns that session if it has a notification.
    fn displace(&mut self, lock: &str) -> Option<SessionId> {
        let queue = self.queues.get_mut(lock)?;
        let first = queue.requests.front()?;
        let (session, mode) = (first.session, first.mode);
        let is_owner = queue.owner() == Some(session);
        let is_answer_due = queue.claim.as_ref().is_some_and(Claim::is_answer_due);
        if mode == Mode::Steal {
            queue.requests.pop_front();
        }
        if is_answer_due {
            // Had the source been as quick as this thief, the other one would have owned the lock for a moment.
            let answer = LockNotification::Answer(Ok(mode == Mode::Steal));
            self.notify(session, answer);
        }
        if is_owner || (is_answer_due && mode == Mode::Steal) {
            self.notify_change(session, "stolen", lock);
        } else if !is_answer_due {
            return None;
        }
        Some(session)
    }

    /// Forgets that a session has requested a lock. False if it has not.
    fn forget(&mut self, session: SessionId, lock: &str) -> bool {
        let Some(requested) = self.requested.get_mut(&session) else {
            return false;
        };
        let Some(position) = requested.iter().position(|it| it.lock == lock) else {
            return false;
        };
        requested.swap_remove(position);
        if requested.is_empty() {
            self.requested.remove(&session);
        }
        true
    }

    /// Removes a request from its queue. When it was the first, the next session comes first: returns it if it owns the lock by that.
    fn withdraw(&mut self, session: SessionId, lock: &str) -> Option<SessionId> {
        let queue = self.queues.get_mut(lock)?;
        let mut requests = queue.requests.iter();
        let position = requests.position(|request| request.session == session)?;
        queue.requests.remove(position);
        if position > 0 {
            return None;
        }
        let next = queue.requests.front().map(|request| request.session);
        if self.claim(lock, false) {
            return None;
        }
        if next.is_none() {
            self.queues.remove(lock);
        }
        let owner = next?;
        assert!(self.owns(owner, lock), "the next in line owns the lock");
        self.notify_change(owner, "locked", lock);
        Some(owner)
    }

    fn notify_change(&mut self, session: SessionId, method: &'static str, lock: &str) {
        let lock = lock.to_owned();
        self.notify(session, LockNotification::Changed { method, lock });
    }

    fn notify(&mut self, session: SessionId, notification: LockNotification) {
        let notifications = self.notifications.entry(session).or_default();
        notifications.push(notification);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SessionId = SessionId(1);
    const B: SessionId = SessionId(2);
    const C: SessionId = SessionId(3);

    /// The notifications of a session: `locked` or `stolen`, of the lock `L`.
    fn notified(locks: &mut Locks, session: SessionId) -> Vec<&'static str> {
        let notifications = locks.take_notifications(session).into_iter();
        let methods = notifications.map(|notification| match notification {
            LockNotification::Changed { method, lock } if lock == "L" => method,
            other => panic!("{other:?}"),
        });
        methods.collect()
    }

    #[test]
    fn waiters_are_served_in_order() {
        let mut locks = Locks::new();
        assert_eq!(locks.lock(A, "L", Mode::Lock), Ok((Decision::Owned, None)));
        assert_eq!(
            locks.lock(B, "L", Mode::Lock),
            Ok((Decision::Waiting, None))
        );
        assert_eq!(
            locks.lock(C, "L", Mode::Lock),
            Ok((Decision::Waiting, None))
        );
        assert_eq!(locks.unlock(A, "L"), Ok(Some(B)));
        assert_eq!(notified(&mut locks, B), ["locked"]);
        assert_eq!(locks.remove_session(B), [C]);
        assert_eq!(notified(&mut locks, C), ["locked"]);
        assert!(locks.owns(C, "L"));
    }

    #[test]
    fn names_of_locks_are_counted_until_they_are_unlocked() {
        let memory = Arc::new(ClientMemory::default());
        memory.set_kept_bytes_max(0);
        let mut locks = Locks::new();
        locks.set_client_memory(memory.clone());
        let name = |number: usize| format!("{number:04}");
        for number in 0..FEW_LOCKS {
            assert!(locks.lock(A, &name(number), Mode::Lock).is_ok());
        }
        let refused = locks.lock(A, &name(FEW_LOCKS), Mode::Lock);
        assert_eq!(refused, Err(Refused::TooMany));
        assert_eq!(memory.kept(), FEW_LOCKS * (REQUEST_BYTES + 8));
        assert!(locks.lock(B, &name(0), Mode::Steal).is_ok());
        assert_eq!(locks.unlock(A, &name(1)), Ok(None));
        assert_eq!(memory.kept(), FEW_LOCKS * (REQUEST_BYTES + 8));
        locks.remove_session(A);
        locks.remove_session(B);
        assert_eq!(memory.kept(), 0);
    }

    #[test]
    fn requested_locks_are_owned_awaited_or_lost() {
        let mut locks = Locks::new();
        let _ = locks.lock(A, "b", Mode::Lock);
        let _ = locks.lock(A, "a", Mode::Lock);
        let _ = locks.lock(A, "stolen", Mode::Steal);
        let _ = locks.lock(B, "stolen", Mode::Steal);
        let _ = locks.lock(B, "a", Mode::Lock);
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let of_a = RequestedLocks {
            owned: names(&["a", "b"]),
            waiting: vec![],
            lost: names(&["stolen"]),
        };
        let of_b = RequestedLocks {
            owned: names(&["stolen"]),
            waiting: names(&["a"]),
            lost: vec![],
        };
        assert_eq!((locks.requested_by(A), locks.requested_by(B)), (of_a, of_b));
        assert_eq!(locks.requested_by(C), RequestedLocks::default());
    }

    #[test]
    fn a_waiter_that_leaves_changes_no_owner() {
        let mut locks = Locks::new();
        let _ = locks.lock(A, "L", Mode::Lock);
        let _ = locks.lock(B, "L", Mode::Lock);
        assert_eq!(locks.unlock(B, "L"), Ok(None));
        assert!(locks.owns(A, "L"));
        assert_eq!(locks.remove_session(A), []);
        assert!(locks.is_empty());
    }

    #[test]
    fn a_victim_that_locked_regains_the_lock() {
        let mut locks = Locks::new();
        let _ = locks.lock(A, "L", Mode::Lock);
        assert_eq!(
            locks.lock(B, "L", Mode::Steal),
            Ok((Decision::Owned, Some(A)))
        );
        assert!(!locks.owns(A, "L"));
        assert_eq!(locks.unlock(B, "L"), Ok(Some(A)));
        assert_eq!(notified(&mut locks, A), ["stolen", "locked"]);
        assert!(locks.owns(A, "L"));
    }

    #[test]
    fn a_victim_that_stole_leaves_the_queue_but_must_unlock() {
        let mut locks = Locks::new();
        let _ = locks.lock(A, "L", Mode::Steal);
        let _ = locks.lock(B, "L", Mode::Steal);
        assert_eq!(
            locks.lock(A, "L", Mode::Lock),
            Err(Refused::AlreadyRequested)
        );
        assert_eq!(locks.unlock(B, "L"), Ok(None));
        assert!(!locks.owns(A, "L"));
        assert_eq!(locks.unlock(A, "L"), Ok(None));
        assert_eq!(locks.lock(A, "L", Mode::Lock), Ok((Decision::Owned, None)));
    }

    #[test]
    fn unlock_needs_an_earlier_request() {
        let mut locks = Locks::new();
        assert_eq!(locks.unlock(A, "L"), Err(Refused::NotRequested));
    }
}
