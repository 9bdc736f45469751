//! What an execution needs from outside, and what it yields.

use corvid_data::uuid::UuidSource;
use corvid_data::{Arc, Delta, TableId};
use smallvec::SmallVec;

use crate::selection::LeftOut;

/// Whether the requesting session owns a lock now (`assert`).
pub trait LockOwner {
    /// True when it does.
    fn owns(&self, lock: &str) -> bool;
}

/// Inputs of one execution attempt.
pub struct Context<'a> {
    /// Milliseconds since the request arrived, for `wait` time-outs.
    pub elapsed_ms: u64,
    /// Operations of writing kind are refused (protocol.md 7.3).
    pub read_only: bool,
    /// Role of the session; `None` or empty: no RBAC.
    pub role: Option<&'a str>,
    /// Common name of the client's certificate.
    pub client_id: Option<&'a str>,
    /// False for offline tools: an unsatisfied `wait` is `not supported`.
    pub can_wait: bool,
    /// Source of row identities and versions.
    pub uuids: &'a mut dyn UuidSource,
    /// Lock ownership of the session.
    pub locks: &'a dyn LockOwner,
}

/// What one execution attempt came to.
#[derive(Debug)]
pub enum Outcome {
    /// Finished, in success or failure.
    Done {
        /// The `result` array as JSON text (protocol.md 5.1).
        result: Vec<u8>,
        /// What of it was left out because it is long ([`Allowance::but_for_selects`](crate::Allowance::but_for_selects)).
        left_out: Vec<LeftOut>,
        /// What changed; `None` when nothing did (failure, reads only, no net change). Already applied to the database.
        delta: Option<Arc<Delta>>,
        /// A `commit` with `durable: true` was among the operations of a successful transaction.
        durable: bool,
    },
    /// An unsatisfied `wait`: nothing changed; try again after the next commit or at the deadline.
    Blocked {
        /// Milliseconds since the request's arrival after which to try again; `None`: no deadline.
        deadline_ms: Option<u64>,
        /// What the attempt depended on; as long as none of that changes, another attempt before the deadline is in vain.
        reads: Reads,
    },
}

/// What the outcome of a blocked attempt depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The rows of these tables, each named once.
    Tables(SmallVec<[TableId; 8]>),
    /// More than that: locks, or what a role may do.
    Anything,
}

impl Reads {
    /// Adds a table.
    pub(crate) fn add(&mut self, table: TableId) {
        if let Reads::Tables(tables) = self
            && !tables.contains(&table)
        {
            tables.push(table);
        }
    }
}
