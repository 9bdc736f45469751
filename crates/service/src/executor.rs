//! The state of execution that outlives a transaction: blocked transactions, transactions that
//! clients may send again, the order of first execution.
//!
//! | File | Has |
//! |---|---|
//! | `triggers.rs` | blocked transactions, by session, deadline and the tables that they have read |
//! | `undo.rs` | undo of entries that were not stored |
//! | `once_transactions.rs` | transactions that are executed once, however often they are sent |
//!
//! Invariant: sequence numbers only grow, so a blocked transaction is retried in the order in which
//! it was first executed. The executor knows no file and sends nothing: it is told what was
//! committed and undone, and says what to retry and what to answer.

mod once_transactions;
mod triggers;
mod undo;

use corvid_data::{Uuid, WireError};
use corvid_engine::{ReadSet, WorkBudget};

use crate::barrier::{Activity, UnderWay};
use crate::client_memory::{self, Retained};
use crate::environment::Environment;
use crate::message::Request;
use crate::once::RecordedCommits;
use crate::replies::SELECT_STEPS_MAX;
use crate::session_limits;
pub(crate) use triggers::Trigger;
use triggers::{Triggers, trigger_bytes};

pub(crate) use once_transactions::{OnceState, Resolved, record_end};
pub(crate) use undo::{changed_sessions, unstored_reply};

/// The executor of one database.
pub(crate) struct Executor {
    pub(crate) triggers: Triggers,
    pub(crate) once: OnceState,
    /// The sequence number of the next request that is executed for the first time.
    next_seqno: u64,
    /// Steps that the database spends on the selections of one transaction.
    select_steps_max: u64,
}

impl Executor {
    /// Of a database whose last commit is this one, after those that its file names.
    pub(crate) fn new(last: Uuid, recorded: &RecordedCommits) -> Executor {
        Executor {
            triggers: Triggers::default(),
            once: OnceState::restored(last, recorded),
            next_seqno: 0,
            select_steps_max: SELECT_STEPS_MAX,
        }
    }

    /// Reports whether transactions wait.
    pub(crate) fn report_activity(&self, activity: &mut Activity) {
        let Executor {
            triggers,
            // Those that wait for an outcome are of a relay, whose requests in flight report
            // themselves.
            once: _,
            next_seqno: _,
            select_steps_max: _,
        } = self;
        activity.report(UnderWay::BlockedTransactions, !triggers.is_clean());
    }

    /// Numbers a request that is executed for the first time.
    pub(crate) fn take_seqno(&mut self) -> u64 {
        let seqno = self.next_seqno;
        self.next_seqno += 1;
        seqno
    }

    /// Has a transaction wait for rows that `reads` covers, `after_ms` at most. True if it waits
    /// for the first time, so that its session's later requests need not wait for it.
    ///
    /// # Errors
    /// It may not wait: its session, or all of them together, have too many that do. The request is
    /// returned. One that has waited before may wait again.
    pub(crate) fn block(
        &mut self,
        mut request: Box<Request>,
        after_ms: Option<u64>,
        reads: ReadSet,
        environment: &Environment,
    ) -> Result<bool, (Box<Request>, WireError)> {
        let bytes = trigger_bytes(&request, &reads);
        if let Some(error) = self.refuse_to_block(&request, bytes, environment) {
            return Err((request, error));
        }
        let is_first = !std::mem::replace(&mut request.blocked, true);
        // Without one it would be dropped, and never answered.
        let Some(seqno) = request.seqno else {
            unreachable!("a transaction is numbered before it is executed");
        };
        if !environment.is_closed(&request.info) {
            let trigger = Trigger {
                deadline_ms: after_ms.map(|after_ms| request.arrived_ms.saturating_add(after_ms)),
                request,
                reads,
                _retained: Retained::new(environment.memory(), bytes),
            };
            self.triggers.insert(seqno, trigger);
        }
        Ok(is_first)
    }

    /// Why a transaction may not wait, if it may not.
    fn refuse_to_block(
        &self,
        request: &Request,
        bytes: usize,
        environment: &Environment,
    ) -> Option<WireError> {
        if request.blocked {
            return None;
        }
        let (session, text_bytes) = (request.session, request.frame.len());
        if !self.triggers.admits(session, text_bytes) {
            return Some(session_limits::exhausted("waiting transactions"));
        }
        let is_small = self.triggers.is_small(session, text_bytes);
        let has_room = environment.has_room_to_keep(is_small, bytes);
        (!has_room).then(client_memory::exhausted_kept)
    }

    /// Checks what belongs together. O(blocked transactions): for simulations.
    ///
    /// # Panics
    /// It contradicts itself.
    pub(crate) fn check(&self) {
        self.triggers.check();
        self.once.check();
    }

    /// Sets how many steps the database spends on the selections of one transaction.
    pub(crate) fn set_select_steps_max(&mut self, steps: u64) {
        self.select_steps_max = steps;
    }

    /// The budget of a transaction that the database thread executes: unlimited, except for long
    /// selections.
    pub(crate) fn work_budget(&self) -> WorkBudget {
        WorkBudget::unlimited().with_select_steps(self.select_steps_max)
    }
}
