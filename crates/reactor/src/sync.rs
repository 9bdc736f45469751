//! Locks and condition variables: the standard library's, or those of `loom` where every
//! interleaving is explored (`interleavings.rs`).

#[cfg(interleavings)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;
#[cfg(not(interleavings))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
