//! All monitors of one database and what each session has yet to be told.

use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, Schema, Uuid, WireError};
use corvid_engine::Database;

use crate::Frame;

/// A session, numbered by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Which notifications a monitor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `monitor`, `update`
    V1,
    /// `monitor_cond`, `update2`
    V2,
    /// `monitor_cond_since`, `update3`
    V3,
}

/// The monitors of one database, with its transaction history.
#[derive(Debug)]
pub struct Monitors {}

/// Outcome of a successful `monitor_cond_change`: send `frames` (in order), then the reply `{}`.
#[derive(Debug)]
pub struct ConditionChanged {
    /// Pending changes under the old id, then the condition's effect under the new id.
    pub frames: Vec<Frame>,
    /// Canonical JSON of the monitor's id from now on.
    pub new_id: StdArc<[u8]>,
}

impl Monitors {
    /// No monitors; the history is empty and its newest id is `last_txn` (all zeros: this database keeps no history).
    #[must_use]
    pub fn new(schema: Arc<Schema>, last_txn: Uuid) -> Monitors {
        let _ = (schema, last_txn);
        Monitors {}
    }

    /// Handles `monitor`, `monitor_cond`, `monitor_cond_since`. `params` is the raw text of the params array (valid JSON, first
    /// element already checked to be this database's name). `id_in_use(canonical id)` tells of this session's monitors on
    /// other databases. On success returns the canonical id and the `result` as JSON text.
    ///
    /// # Errors
    /// protocol.md 4.5.2, 4.5.3, 4.9; no monitor is left behind.
    pub fn monitor(
        &mut self,
        database: &Database,
        session: SessionId,
        version: Version,
        params: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(StdArc<[u8]>, Vec<u8>), WireError> {
        let _ = (database, session, version, params, id_in_use);
        todo!()
    }

    /// Handles `monitor_cond_change`, atomically.
    ///
    /// # Errors
    /// protocol.md 4.8.
    pub fn change_condition(
        &mut self,
        database: &Database,
        session: SessionId,
        params: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<ConditionChanged, WireError> {
        let _ = (database, session, params, id_in_use);
        todo!()
    }

    /// Removes a monitor by canonical id; false when unknown.
    pub fn cancel(&mut self, session: SessionId, id: &[u8]) -> bool {
        let _ = (session, id);
        todo!()
    }

    /// Forgets a session.
    pub fn remove_session(&mut self, session: SessionId) {
        let _ = session;
        todo!()
    }

    /// Removes every monitor (database removed or converted) and returns them as (session, raw id as the client wrote it).
    pub fn remove_all(&mut self) -> Vec<(SessionId, StdArc<[u8]>)> {
        todo!()
    }

    /// Takes note of a stored commit. Visits only groups that it can concern.
    /// `atoms` is the number of atoms in the database now (bounds the history, protocol.md 4.9).
    pub fn commit(&mut self, delta: &Arc<Delta>, txn: Uuid, atoms: u64) {
        let _ = (delta, txn, atoms);
        todo!()
    }

    /// Sessions that have something pending since they were last asked for, each once. Sessions that are not ready (see
    /// [`Monitors::set_ready`]) are withheld until they are.
    pub fn take_pending(&mut self, sessions: &mut Vec<SessionId>) {
        let _ = sessions;
        todo!()
    }

    /// Whether a session's output is drained, so that updates may be composed for it; while it is not, changes merge.
    pub fn set_ready(&mut self, session: SessionId, ready: bool) {
        let _ = (session, ready);
        todo!()
    }

    /// Composes everything pending for a session, ready or not (a reply must be preceded by it).
    pub fn flush(&mut self, session: SessionId, frames: &mut Vec<Frame>) {
        let _ = (session, frames);
        todo!()
    }

    /// Id of the newest transaction.
    #[must_use]
    pub fn last_txn(&self) -> Uuid {
        todo!()
    }

    /// Number of monitors, for `memory/show`.
    #[must_use]
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
