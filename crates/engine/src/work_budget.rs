//! The work that an execution may do before it gives up. A thread with little time can try a
//! transaction with a small budget, and leave the transaction to another thread if it proves too
//! long.
//!
//! Work is counted in *steps*. One step is about the time to visit one row during a walk of a table
//! (about 20 ns). Work is charged before it is done if its length is known (for example a walk), so
//! that little work is wasted.

/// The execution needs more than its budget; it has been rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Steps, and bytes of results, that an execution may still use.
#[derive(Clone, Copy, Debug)]
pub struct WorkBudget {
    left: u64,
    /// Steps that `select` operations may use. A selection that needs more is deferred
    /// ([`crate::Selection`]).
    for_selects: u64,
    /// Bytes of the result that may repeat a selection from the same table.
    repeated_bytes: usize,
    /// Bytes that a result may have by the end of a selection.
    result_bytes: usize,
}

/// The cost of an operation that touches no rows.
pub(crate) const OPERATION: u64 = 16;
/// The cost of a changed row, from the operation to the delta.
pub(crate) const CHANGE: u64 = 32;
/// Bytes that are read in one step.
const BYTES: usize = 8;

impl WorkBudget {
    /// A budget without a limit.
    #[must_use]
    pub const fn unlimited() -> WorkBudget {
        WorkBudget::new(u64::MAX)
    }

    /// A limit of this many steps.
    #[must_use]
    pub const fn new(steps: u64) -> WorkBudget {
        WorkBudget {
            left: steps,
            for_selects: u64::MAX,
            repeated_bytes: usize::MAX,
            result_bytes: usize::MAX,
        }
    }

    /// Steps that are left.
    #[must_use]
    pub const fn steps_left(&self) -> u64 {
        self.left
    }

    /// This budget, limited to this many steps.
    #[must_use]
    pub const fn at_most(self, steps: u64) -> WorkBudget {
        WorkBudget {
            left: if self.left < steps { self.left } else { steps },
            ..self
        }
    }

    /// This budget, with this many steps for all `select` operations together. Selections that need
    /// more are deferred ([`crate::Selection`]).
    #[must_use]
    pub const fn with_select_steps(self, steps: u64) -> WorkBudget {
        WorkBudget {
            for_selects: steps,
            ..self
        }
    }

    /// This budget, with a limit on the bytes of selections from tables from which the transaction
    /// has already selected.
    #[must_use]
    pub const fn with_repeated_bytes(self, bytes: usize) -> WorkBudget {
        WorkBudget {
            repeated_bytes: bytes,
            ..self
        }
    }

    /// Bytes of the result that may repeat a selection from the same table.
    pub(crate) fn repeated_bytes(&self) -> usize {
        self.repeated_bytes
    }

    /// This budget, with a limit on the bytes of a result by the end of any selection that is not
    /// deferred.
    #[must_use]
    pub const fn with_result_bytes(self, bytes: usize) -> WorkBudget {
        WorkBudget {
            result_bytes: bytes,
            ..self
        }
    }

    /// Bytes that a result may have by the end of a selection.
    pub(crate) fn result_bytes(&self) -> usize {
        self.result_bytes
    }

    /// Spends `steps` of the share of `select` operations. Returns false if too few are left, and
    /// spends none then.
    pub(crate) fn spend_on_select(&mut self, steps: u64) -> bool {
        if self.for_selects == u64::MAX {
            return true;
        }
        let left = self.for_selects.checked_sub(steps);
        self.for_selects = left.unwrap_or(self.for_selects);
        left.is_some()
    }

    /// Spends `steps`.
    ///
    /// # Errors
    /// Fewer steps are left; all of them are spent then.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), TooLong> {
        if self.left == u64::MAX {
            return Ok(());
        }
        let enough = steps <= self.left;
        self.left = self.left.saturating_sub(steps);
        enough.then_some(()).ok_or(TooLong)
    }

    /// Checks whether the budget covers the least cost of a transaction of this many operations and
    /// bytes. Spends nothing.
    ///
    /// # Errors
    /// The budget is too small.
    pub(crate) fn check_least_cost(&self, operations: usize, bytes: usize) -> Result<(), TooLong> {
        let steps = OPERATION * operations as u64 + (bytes / BYTES) as u64;
        (steps <= self.left).then_some(()).ok_or(TooLong)
    }

    /// Spends the cost of reading a text of this many bytes.
    ///
    /// # Errors
    /// Those of [`WorkBudget::spend`].
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), TooLong> {
        self.spend((bytes / BYTES) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending_too_much_spends_the_rest() {
        let mut budget = WorkBudget::new(10);
        assert_eq!(budget.spend(10), Ok(()));
        assert_eq!(budget.spend(0), Ok(()));
        assert_eq!(budget.spend(1), Err(TooLong));
        let mut budget = WorkBudget::new(10);
        assert_eq!(budget.spend(11), Err(TooLong));
        assert_eq!(budget.spend(1), Err(TooLong));
        assert_eq!(WorkBudget::unlimited().spend(u64::MAX), Ok(()));
    }

    #[test]
    fn transactions_that_cannot_fit_are_refused_at_once() {
        let budget = WorkBudget::new(100);
        assert_eq!(budget.check_least_cost(5, 20 * BYTES), Ok(()));
        assert_eq!(budget.check_least_cost(5, 21 * BYTES), Err(TooLong));
        assert_eq!(budget.check_least_cost(7, 0), Err(TooLong));
        assert_eq!(budget.left, 100);
    }

    #[test]
    fn selects_have_a_share_of_their_own() {
        let mut budget = WorkBudget::unlimited().with_select_steps(10);
        assert_eq!(budget.spend(1000), Ok(()));
        assert!(!budget.spend_on_select(11));
        assert!(budget.spend_on_select(6) && !budget.spend_on_select(6));
        assert!(WorkBudget::unlimited().spend_on_select(u64::MAX));
    }
}
