//! Fuzz targets for every decoder: what may be thrown at them, and what must hold whatever it is.
//!
//! A target takes bytes and panics when an invariant is broken; that it returns at all is the first invariant. The folder
//! `fuzz` at the root hands them to a coverage-guided fuzzer; [`campaign`] runs a bounded number of mutated seeds on any
//! toolchain and is what the tests do. Nothing of Corvid depends on this crate.

pub mod campaign;
pub mod mutate;
pub mod random;
pub mod targets;

pub use targets::{TARGETS, Target};
