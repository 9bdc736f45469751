//! Fuzz targets for every decoder: functions that take any bytes and check invariants.
//!
//! A target panics if an invariant is broken. The first invariant is that the target returns. The
//! folder `fuzz` in the root of the repository passes the targets to a coverage-guided fuzzer.
//! [`campaign`] runs a bounded number of mutated seeds with any toolchain; the tests use it. No
//! other crate depends on this one.

pub mod campaign;
pub mod mutate;
pub mod random;
pub mod targets;

pub use targets::{TARGETS, Target};
