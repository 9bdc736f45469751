//! The lock table of a server (docs/spec/protocol.md 4.11): owners, and sessions waiting in line.
//!
//! Shards change it on `lock`, `steal`, `unlock` and disconnection; engines read it for `assert`.
//! It sends nothing: a change of ownership leaves a [`LockNotification`] in the table, and the
//! caller learns which session to wake. So a session gets notifications in the order of the
//! changes, on whichever shards they happened.
//!
//! At a relay, the first session in line owns a lock only while the relay owns it at its source:
//! see [`at_source`].

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
    /// Wait in line for the lock.
    Lock,
    /// Take the lock from its owner.
    Steal,
}

/// The answer to a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The session owns the lock.
    Owned,
    /// The session waits in line.
    Waiting,
    /// The relay's source decides: a [`LockNotification::Answer`] follows.
    AtSource,
}

/// A change of a lock, for the session that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockNotification {
    /// The owner has changed.
    Changed {
        /// `locked` or `stolen`.
        method: &'static str,
        /// The lock.
        lock: String,
    },
    /// The source has decided the session's request: whether the session owns the lock, or an error
    /// as JSON.
    Answer(Result<bool, Bytes>),
}

/// A lock and the sessions that have requested it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLock {
    /// The lock's name.
    pub name: String,
    /// The session that owns it; `None`: a relay's source has not granted it yet.
    pub owner: Option<SessionId>,
    /// The sessions that wait for it, in line.
    pub waiting: Vec<SessionId>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The session has requested this lock already and has not unlocked it.
    AlreadyRequested,
    /// The session unlocks a lock that it has not requested.
    NotRequested,
    /// The session may not request more locks.
    TooMany,
}

/// The locks that one session has asked for, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedLocks {
    /// Locks that the session owns.
    pub owned: Vec<String>,
    /// Locks that the session waits for.
    pub waiting: Vec<String>,
    /// Locks that the session had stolen and lost to another thief.
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
    /// The relay's claim at its source. The first session owns the lock if there is no claim or the
    /// source has granted it.
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
    /// Charges the request to the client memory.
    _retained: Retained,
}

/// Bytes charged for a requested lock, in addition to two copies of its name.
const REQUEST_BYTES: usize = 256;

/// Locks per session that are granted even when client memory is exhausted.
const FEW_LOCKS: usize = 16;

/// For each lock, the sessions that have requested it, in line; the first one owns it. A thief that
/// loses the lock to another thief leaves the line, but `requested` keeps the lock until the
/// session unlocks it.
#[derive(Debug, Default)]
pub struct Locks {
    /// Ordered, since clients choose the names.
    queues: BTreeMap<String, Queue>,
    requested: HashMap<SessionId, Vec<Requested>, TrustedKeys>,
    memory: Arc<ClientMemory>,
    /// Notifications that sessions have not taken yet, in order.
    notifications: HashMap<SessionId, Vec<LockNotification>, TrustedKeys>,
    /// The relay whose source has the locks; `None` if this server has them.
    relay: Option<DatabaseId>,
    /// Claims that relays have to make, in order.
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

    /// Sets the account that requested locks are charged to.
    pub fn set_client_memory(&mut self, memory: Arc<ClientMemory>) {
        self.memory = memory;
    }

    /// Handles `lock` or `steal`. Returns the decision, and the session that has a new
    /// notification, if any.
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
        // Before the thief joins: the previous owner must still be first in line to be found.
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
        // Only `lock` can wait: a thief is first in line.
        if first.is_none_or(|first| first.session != session) {
            return Ok((Decision::Waiting, None));
        }
        // After the queue has its new first session, in whose name the relay claims the lock.
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

    /// Handles `unlock`. Returns the session that has a new notification, if any.
    ///
    /// # Errors
    /// [`Refused::NotRequested`].
    pub fn unlock(&mut self, session: SessionId, lock: &str) -> Result<Option<SessionId>, Refused> {
        if !self.forget(session, lock) {
            return Err(Refused::NotRequested);
        }
        Ok(self.withdraw(session, lock))
    }

    /// Takes a session's notifications, in order.
    pub fn take_notifications(&mut self, session: SessionId) -> Vec<LockNotification> {
        self.notifications.remove(&session).unwrap_or_default()
    }

    /// Drops every request of a session that has disconnected. Returns the sessions that have new
    /// notifications.
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

    /// The locks that a session has requested, by state.
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

    /// All locks, by name.
    #[must_use]
    pub fn list(&self) -> Vec<ListedLock> {
        let list = |(name, queue): (&String, &Queue)| {
            let owner = queue.owner();
            let requests = queue.requests.iter().map(|request| request.session);
            ListedLock {
                name: name.clone(),
                owner,
                waiting: requests.skip(usize::from(owner.is_some())).collect(),
            }
        };
        self.queues.iter().map(list).collect()
    }

    /// Checks that each session in line has requested the lock. O(requests): for simulations.
    ///
    /// # Panics
    /// A session in line has not requested the lock, or is in line twice.
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

    /// Whether no lock is requested and no notification is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.requested.is_empty() && self.notifications.is_empty()
    }

    /// The number of locks that are owned, and of requests that wait.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let owned = self.queues.values().filter_map(Queue::owner).count();
        let requests: usize = self.queues.values().map(|queue| queue.requests.len()).sum();
        (owned as u64, (requests - owned) as u64)
    }

    /// Prepares the line for a thief, which will come first. The first session so far loses the
    /// lock if it owned it, and leaves the line if it is a thief itself. Returns that session if it
    /// has a notification.
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
            // The source has not answered this session's request yet. Had it answered before this
            // theft, a thief would have owned the lock for a moment, and a waiter would be in line:
            // answer accordingly.
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

    /// Forgets that a session has requested a lock. Returns false if it had not.
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

    /// Removes a request from its line. If it was first, the next session becomes first; returns
    /// that session if it owns the lock now.
    fn withdraw(&mut self, session: SessionId, lock: &str) -> Option<SessionId> {
        let queue = self.queues.get_mut(lock)?;
        let mut requests = queue.requests.iter();
        let position = requests.position(|request| request.session == session)?;
        queue.requests.remove(position);
        // A session that was not first owned nothing, so the owner stays.
        if position > 0 {
            return None;
        }
        let next = queue.requests.front().map(|request| request.session);
        // At a relay, the next session owns the lock only when the source has granted its own
        // claim.
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
        let listed = ListedLock {
            name: "L".to_owned(),
            owner: Some(A),
            waiting: vec![B, C],
        };
        assert_eq!(locks.list(), [listed]);
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
