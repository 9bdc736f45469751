//! Checks whether a history of concurrent operations on registers could have happened one by one
//! (Wing and Gong's search, which remembers the situations that it has visited).
//!
//! Histories are checked key by key: a history of independent registers is linearizable if the
//! history of each register is. An operation with an unknown outcome may have happened at any time
//! after its call, or never. This module knows nothing of clusters; it is called at the end of a
//! run.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of situations visited for one register. A search that reaches this number ends
/// without a finding.
const VISITED_MAX: usize = 100_000;

/// An operation on a register whose first value is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Returned this value.
    Read(u64),
    /// Replaced the value. Also has the value before, if it is known.
    Swap {
        /// The new value.
        new: u64,
        /// The value before.
        old: Option<u64>,
    },
}

/// An operation with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The register.
    pub key: u8,
    /// The operation.
    pub action: Action,
    /// When it was called.
    pub called: u64,
    /// When the operation returned; `None`: its outcome is unknown.
    pub returned: Option<u64>,
}

/// Checks a history.
///
/// # Errors
/// The operations of a register cannot be ordered; the text names the register.
pub fn check(history: &[Operation]) -> Result<(), String> {
    let mut keys: BTreeMap<u8, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        // A read with an unknown outcome proves nothing.
        let is_read = matches!(operation.action, Action::Read(_));
        if !(is_read && operation.returned.is_none()) {
            keys.entry(operation.key).or_default().push(*operation);
        }
    }
    for (key, mut operations) in keys {
        operations.sort_by_key(|operation| operation.called);
        if !Search::new(&operations).run() {
            return Err(format!(
                "register {key} is not linearizable: {operations:?}"
            ));
        }
    }
    Ok(())
}

/// A depth-first search for an order.
struct Search<'h> {
    operations: &'h [Operation],
    /// Visited situations: the operations that have taken effect, as bits, and the value at that
    /// point. The rest of the search depends on nothing else.
    visited: BTreeSet<(Vec<u64>, u64)>,
}

impl<'h> Search<'h> {
    fn new(operations: &'h [Operation]) -> Search<'h> {
        Search {
            operations,
            visited: BTreeSet::new(),
        }
    }

    fn run(&mut self) -> bool {
        let words = self.operations.len().div_ceil(64);
        let mut stack = vec![(vec![0; words], 0)];
        while let Some((done, value)) = stack.pop() {
            if self.visited.len() > VISITED_MAX {
                return true;
            }
            if !self.visited.insert((done.clone(), value)) {
                continue;
            }
            let open = |at: usize| done[at / 64] >> (at % 64) & 1 == 0;
            let remaining = (0..self.operations.len()).filter(|at| open(*at));
            // An operation that returned before another was called comes first.
            let bound = remaining
                .clone()
                .filter_map(|at| self.operations[at].returned)
                .min();
            let Some(bound) = bound else {
                return true;
            };
            for at in remaining {
                let operation = &self.operations[at];
                if operation.called > bound {
                    break;
                }
                if let Some(after) = apply(operation.action, value) {
                    let mut done = done.clone();
                    done[at / 64] |= 1 << (at % 64);
                    stack.push((done, after));
                }
            }
        }
        false
    }
}

/// Returns the value after an operation, if the operation can happen at this value.
fn apply(action: Action, value: u64) -> Option<u64> {
    match action {
        Action::Read(read) => (read == value).then_some(value),
        Action::Swap { new, old } => old.is_none_or(|old| old == value).then_some(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swap(called: u64, returned: Option<u64>, old: Option<u64>, new: u64) -> Operation {
        let action = Action::Swap { new, old };
        Operation {
            key: 1,
            action,
            called,
            returned,
        }
    }

    fn read(called: u64, returned: u64, value: u64) -> Operation {
        Operation {
            key: 1,
            action: Action::Read(value),
            called,
            returned: Some(returned),
        }
    }

    #[test]
    fn overlapping_operations_may_happen_in_any_order() {
        let history = [
            swap(1, Some(10), Some(2), 1),
            swap(2, Some(9), Some(0), 2),
            read(3, 4, 0),
            read(11, 12, 1),
        ];
        assert_eq!(check(&history), Ok(()));
    }

    #[test]
    fn stale_reads_and_lost_writes_are_found() {
        assert!(check(&[swap(1, Some(2), Some(0), 1), read(3, 4, 0)]).is_err());
        let forked = [
            swap(1, Some(5), Some(0), 1),
            swap(2, Some(6), Some(0), 2),
            read(7, 8, 2),
        ];
        assert!(check(&forked).is_err());
        let twice = [
            swap(1, Some(2), Some(0), 1),
            swap(3, Some(4), Some(1), 2),
            read(5, 6, 1),
        ];
        assert!(check(&twice).is_err());
    }

    #[test]
    fn an_operation_without_an_outcome_happens_late_or_never() {
        let unknown = swap(1, None, None, 5);
        assert_eq!(check(&[unknown, read(2, 3, 0), read(4, 5, 5)]), Ok(()));
        assert_eq!(check(&[unknown, read(2, 3, 0)]), Ok(()));
        assert!(check(&[unknown, read(2, 3, 5), read(4, 5, 0)]).is_err());
    }

    #[test]
    fn registers_are_independent() {
        let other = Operation {
            key: 2,
            ..read(3, 4, 0)
        };
        assert_eq!(check(&[swap(1, Some(2), Some(0), 1), other]), Ok(()));
    }
}
