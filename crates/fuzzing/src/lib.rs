//! Fuzz targets for every decoder: functions from any bytes to a check of invariants.
//!
//! A target panics when an invariant is broken. The first invariant is that it returns. The folder `fuzz` at the root passes the targets to a
//! coverage-guided fuzzer. [`campaign`] runs a bounded number of mutated seeds on any toolchain; the tests use it. No other crate
//! depends on this one.

pub mod campaign;
pub mod mutate;
pub mod random;
pub mod targets;

pub use targets::{TARGETS, Target};
