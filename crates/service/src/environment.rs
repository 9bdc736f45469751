//! The values that a database reads and that no input contains: chance, locks, schema epochs, the
//! memory that databases share, sessions that their shards have closed meanwhile.
//!
//! Invariant: each of them is read here, through the tape of a recording, exactly where a decision
//! depends on it. So a replay, which gets the recorded values in the same order, decides the same.
//! The environment knows no table, no request and no reply.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_data::{Uuid, UuidSource};
use corvid_engine::{LockOwner, WorkBudget};
use corvid_monitor::SessionId;

use crate::client_memory::{self, ClientMemory, SHORT_BYTES};
use crate::locks::Locks;
use crate::message::SessionInfo;
use crate::schema_epoch::{SchemaEpoch, SchemaEpochs};
use crate::tape::{Setting, Tape};

/// The environment of one database.
pub(crate) struct Environment {
    tape: Tape,
    uuids: Box<dyn UuidSource + Send>,
    locks: Arc<Mutex<Locks>>,
    epochs: SchemaEpochs,
    /// Charged with replies, and with the requests that are kept.
    memory: Arc<ClientMemory>,
}

/// Checks the lock table for a session.
pub(crate) struct SessionLocks<'a> {
    locks: &'a Mutex<Locks>,
    session: SessionId,
    tape: &'a Tape,
}

impl LockOwner for SessionLocks<'_> {
    fn owns(&self, lock: &str) -> bool {
        let locks = || self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        self.tape.flag(|| locks().owns(self.session, lock))
    }
}

impl Environment {
    pub(crate) fn new(
        locks: Arc<Mutex<Locks>>,
        epochs: SchemaEpochs,
        uuids: Box<dyn UuidSource + Send>,
    ) -> Environment {
        Environment {
            tape: Tape::default(),
            uuids,
            locks,
            epochs,
            memory: Arc::default(),
        }
    }

    /// Has all values recorded, or replayed, from now on.
    pub(crate) fn set_tape(&mut self, tape: Tape) {
        self.tape = tape;
    }

    /// Records that a setting changes between two batches.
    pub(crate) fn record_setting(&self, setting: Setting, value: u64) {
        self.tape.setting(setting, value);
    }

    /// A value that is read here and now.
    pub(crate) fn number(&self, real: impl FnOnce() -> u64) -> u64 {
        self.tape.number(real)
    }

    /// The same, for a flag.
    pub(crate) fn flag(&self, real: impl FnOnce() -> bool) -> bool {
        self.tape.flag(real)
    }

    /// Whether the shard of a session has closed it. Its `Closed` may still be on its way.
    pub(crate) fn is_closed(&self, session: &SessionInfo) -> bool {
        self.tape.flag(|| session.is_closed())
    }

    /// Whether a session is aware of changes of databases.
    pub(crate) fn is_aware(&self, session: &SessionInfo) -> bool {
        self.tape.flag(|| session.is_aware())
    }

    /// Whether a session is about to be closed because the database has been removed, or converted
    /// since the session began. `epoch`: that of the last conversion. Nothing of such a session is
    /// executed.
    pub(crate) fn is_dismissed(
        &self,
        session: &SessionInfo,
        is_removed: bool,
        epoch: SchemaEpoch,
    ) -> bool {
        if is_removed {
            return !self.is_aware(session);
        }
        // Sessions that began later are not looked at, so nothing of them is recorded.
        session.epoch < epoch && !self.tape.flag(|| !session.is_concerned_by(epoch))
    }

    /// The source of UUIDs.
    pub(crate) fn uuids(&mut self) -> &mut (dyn UuidSource + Send) {
        &mut *self.uuids
    }

    /// A new UUID.
    pub(crate) fn fresh(&mut self) -> Uuid {
        self.uuids.fresh()
    }

    /// A new id of a commit, or of the state that a history begins with; all zeros where no history
    /// is kept.
    pub(crate) fn txn_id(&mut self, is_kept: bool) -> Uuid {
        if is_kept {
            self.uuids.fresh()
        } else {
            Uuid::ZERO
        }
    }

    /// A random number.
    pub(crate) fn chance(&mut self) -> u64 {
        let bytes = self.uuids.fresh().0;
        let mut half = [0; 8];
        half.copy_from_slice(&bytes[..8]);
        u64::from_le_bytes(half)
    }

    /// The source of UUIDs, and the locks of a session.
    pub(crate) fn of_session(
        &mut self,
        session: SessionId,
    ) -> (&mut (dyn UuidSource + Send), SessionLocks<'_>) {
        let locks = SessionLocks {
            locks: &self.locks,
            session,
            tape: &self.tape,
        };
        (&mut *self.uuids, locks)
    }

    /// The lock table, without the tape: for relays, which are not recorded.
    pub(crate) fn lock_table(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session owns all these locks, without the tape.
    pub(crate) fn owns_all(&self, session: SessionId, locks: &[String]) -> bool {
        let table = self.lock_table();
        locks.iter().all(|lock| table.owns(session, lock))
    }

    /// The locks that a session owns now, without the tape.
    pub(crate) fn owned_locks(&self, session: SessionId) -> Vec<String> {
        self.lock_table().requested_by(session).owned
    }

    /// Begins a schema epoch.
    pub(crate) fn begin_epoch(&self) -> SchemaEpoch {
        SchemaEpoch(self.tape.number(|| self.epochs.advance().0))
    }

    /// The memory that replies and kept requests are charged to.
    pub(crate) fn memory(&self) -> &Arc<ClientMemory> {
        &self.memory
    }

    pub(crate) fn set_memory(&mut self, memory: Arc<ClientMemory>) {
        self.memory = memory;
    }

    /// Whether there is room for a reply of this length that repeats its request, bytes. Counts a
    /// refusal.
    pub(crate) fn has_room_to_repeat(&self, bytes: usize) -> bool {
        let memory = &self.memory;
        self.admit(|| bytes <= SHORT_BYTES || self.tape.flag(|| memory.has_room_to_repeat(bytes)))
    }

    /// Whether a reply or an update of this length may begin, bytes. Counts a refusal.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        let memory = &self.memory;
        self.admit(|| bytes <= SHORT_BYTES || self.tape.flag(|| memory.has_room_for(bytes)))
    }

    /// Whether a schema of this length may be sent, bytes. Counts a refusal.
    pub(crate) fn has_room_for_schema(&self, bytes: usize) -> bool {
        self.admit(|| self.tape.flag(|| self.memory.has_room_for(bytes)))
    }

    /// Whether there is room to keep this many bytes for a session. It always has room for the
    /// first few: `is_small`. Counts a refusal.
    pub(crate) fn has_room_to_keep(&self, is_small: bool, bytes: usize) -> bool {
        let memory = &self.memory;
        self.admit(|| is_small || self.tape.flag(|| memory.has_room_to_keep(bytes)))
    }

    fn admit(&self, has_room: impl FnOnce() -> bool) -> bool {
        let has_room = has_room();
        if !has_room {
            self.memory.refuse();
        }
        has_room
    }

    /// Limits the selections of a transaction by the memory that replies hold now.
    pub(crate) fn limit_selections(&self, budget: WorkBudget) -> WorkBudget {
        let bytes_max = self.tape.number(|| self.memory.bytes_max() as u64);
        let held = self.tape.number(|| self.memory.held() as u64);
        client_memory::limit_selections(budget, bytes_max, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ones;

    impl UuidSource for Ones {
        fn fresh(&mut self) -> Uuid {
            Uuid([1; 16])
        }
    }

    fn environment() -> Environment {
        Environment::new(Arc::default(), SchemaEpochs::default(), Box::new(Ones))
    }

    #[test]
    fn a_database_without_a_history_spends_no_uuid_on_commits() {
        let mut environment = environment();
        assert_eq!(environment.txn_id(false), Uuid::ZERO);
        assert_eq!(environment.txn_id(true), Uuid([1; 16]));
        assert_eq!(environment.chance(), 0x0101_0101_0101_0101);
    }

    #[test]
    fn a_refusal_for_lack_of_memory_is_counted_once() {
        let mut environment = environment();
        let memory = Arc::new(ClientMemory::new(1 << 20));
        memory.set_kept_bytes_max(1 << 20);
        environment.set_memory(memory.clone());
        assert!(environment.has_room_to_repeat(1 << 20) && environment.has_room_to_keep(false, 1));
        assert_eq!(memory.refused(), 0);
        assert!(!environment.has_room_to_repeat((1 << 20) + 1));
        assert!(!environment.has_room_to_keep(false, 2 << 20));
        assert!(
            environment.has_room_to_keep(true, 2 << 20),
            "the first few bytes"
        );
        assert_eq!(memory.refused(), 2);
    }
}
