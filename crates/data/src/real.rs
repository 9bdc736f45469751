//! Finite doubles without negative zero, so that they are totally ordered and hashable.
//!
//! Invariant: a `Real` is finite and not negative zero. Results of arithmetic come back through
//! [`Real::new`].

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A real atom.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real(f64);

impl Real {
    /// `None` if `value` is not finite. Negative zero becomes zero (docs/spec/protocol.md 1.4).
    #[must_use]
    pub fn new(value: f64) -> Option<Real> {
        value.is_finite().then_some(Real(value + 0.0))
    }

    /// The double.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Real {}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
