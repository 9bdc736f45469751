//! How much work an execution may do before it is given up: so that whoever has little time can try a transaction and leave it
//! to somebody else when it turns out to be long.
//!
//! Work is counted in *steps*, each about as long as looking at one row during a walk over a table (some 20 ns). The count is a
//! prediction wherever one can be made (a walk is paid for before it begins), so that little is done in vain.

/// The execution needs more than it was allowed; it has been taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Steps that may still be done.
#[derive(Clone, Copy, Debug)]
pub struct WorkBudget {
    left: u64,
    /// Those that `select` operations may do; one that needs more is left unwritten ([`crate::Selection`]).
    for_selects: u64,
    /// Bytes of the result that may come of selecting from a table again.
    repeated_bytes: usize,
    /// Bytes that a result may have by the end of a selection.
    result_bytes: usize,
}

/// What an operation costs that touches nothing.
pub(crate) const OPERATION: u64 = 16;
/// What a changed row costs, from the operation to the delta.
pub(crate) const CHANGE: u64 = 32;
/// Bytes that are read in one step.
const BYTES: usize = 8;

impl WorkBudget {
    /// As much as it takes.
    #[must_use]
    pub const fn unlimited() -> WorkBudget {
        WorkBudget::new(u64::MAX)
    }

    /// So many steps.
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

    /// The same, but no more than so many steps.
    #[must_use]
    pub const fn at_most(self, steps: u64) -> WorkBudget {
        WorkBudget {
            left: if self.left < steps { self.left } else { steps },
            ..self
        }
    }

    /// The same, of that so many steps for the `select` operations together; the rows of those that need more are left to be written
    /// later ([`crate::Selection`]).
    #[must_use]
    pub const fn with_select_steps(self, steps: u64) -> WorkBudget {
        WorkBudget {
            for_selects: steps,
            ..self
        }
    }

    /// The same, but results may have so many bytes of selections from tables that the transaction has selected from before.
    #[must_use]
    pub const fn with_repeated_bytes(self, bytes: usize) -> WorkBudget {
        WorkBudget {
            repeated_bytes: bytes,
            ..self
        }
    }

    /// Bytes of the result that may come of selecting from a table again.
    pub(crate) fn repeated_bytes(&self) -> usize {
        self.repeated_bytes
    }

    /// The same, but results may have no more than so many bytes by the end of any selection that is written at once.
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

    /// Takes `steps` off what `select` operations may do. False when they are too many; then nothing is taken off.
    pub(crate) fn allows_select(&mut self, steps: u64) -> bool {
        if self.for_selects == u64::MAX {
            return true;
        }
        let left = self.for_selects.checked_sub(steps);
        self.for_selects = left.unwrap_or(self.for_selects);
        left.is_some()
    }

    /// Takes `steps` off.
    ///
    /// # Errors
    /// They are more than what is left; then nothing is left.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), TooLong> {
        if self.left == u64::MAX {
            return Ok(());
        }
        let enough = steps <= self.left;
        self.left = self.left.saturating_sub(steps);
        enough.then_some(()).ok_or(TooLong)
    }

    /// Whether it can be enough for a transaction of so many operations and so many bytes: what these cost in any case. Nothing is taken off.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn foresee(&self, operations: usize, bytes: usize) -> Result<(), TooLong> {
        let steps = OPERATION * operations as u64 + (bytes / BYTES) as u64;
        (steps <= self.left).then_some(()).ok_or(TooLong)
    }

    /// Takes off what it costs to read a text of so many bytes.
    ///
    /// # Errors
    /// As [`WorkBudget::spend`].
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), TooLong> {
        self.spend((bytes / BYTES) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone_and_too_much_takes_the_rest() {
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
    fn what_cannot_be_enough_is_foreseen() {
        let budget = WorkBudget::new(100);
        assert_eq!(budget.foresee(5, 20 * BYTES), Ok(()));
        assert_eq!(budget.foresee(5, 21 * BYTES), Err(TooLong));
        assert_eq!(budget.foresee(7, 0), Err(TooLong));
        assert_eq!(budget.left, 100);
    }

    #[test]
    fn selects_have_an_allowance_of_their_own() {
        let mut budget = WorkBudget::unlimited().with_select_steps(10);
        assert_eq!(budget.spend(1000), Ok(()));
        assert!(!budget.allows_select(11));
        assert!(budget.allows_select(6) && !budget.allows_select(6));
        assert!(WorkBudget::unlimited().allows_select(u64::MAX));
    }
}
