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

use corvid_data::Uuid;
use corvid_engine::WorkBudget;

use super::barrier::{Activity, UnderWay};
use super::replies::SELECT_STEPS_MAX;
use triggers::Triggers;

pub(super) use once_transactions::{OnceState, Resolved};
pub(super) use triggers::{Trigger, trigger_bytes};
pub(super) use undo::{changed_sessions, unstored_reply};

/// The executor of one database.
pub(super) struct Executor {
    pub(super) triggers: Triggers,
    pub(super) once: OnceState,
    /// The sequence number of the next request that is executed for the first time.
    next_seqno: u64,
    /// Steps that the database spends on the selections of one transaction.
    select_steps_max: u64,
}

impl Executor {
    /// Of a database whose last commit is this one.
    pub(super) fn new(last: Uuid) -> Executor {
        Executor {
            triggers: Triggers::default(),
            once: OnceState::new(last),
            next_seqno: 0,
            select_steps_max: SELECT_STEPS_MAX,
        }
    }

    /// Reports whether transactions wait.
    pub(super) fn report_activity(&self, activity: &mut Activity) {
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
    pub(super) fn take_seqno(&mut self) -> u64 {
        let seqno = self.next_seqno;
        self.next_seqno += 1;
        seqno
    }

    /// Checks what belongs together. O(blocked transactions): for simulations.
    ///
    /// # Panics
    /// It contradicts itself.
    pub(super) fn check(&self) {
        self.triggers.check();
        self.once.check();
    }

    /// Sets how many steps the database spends on the selections of one transaction.
    pub(super) fn set_select_steps_max(&mut self, steps: u64) {
        self.select_steps_max = steps;
    }

    /// The budget of a transaction that the database thread executes: unlimited, except for long selections.
    pub(super) fn work_budget(&self) -> WorkBudget {
        WorkBudget::unlimited().with_select_steps(self.select_steps_max)
    }
}
