//! `libcorvid`: the client library for programs in C and C++.
//!
//! Each exported function is a thin translation: it turns a handle into an object of the registry,
//! C values into those of `corvid`, and a failure into a code. `include/corvid.h` is generated from
//! the doc comments here, so these comments are for users in C.
//!
//! Invariants. A handle is looked up, never followed ([`handle`]). No panic leaves a function
//! ([`error::guard`]). Pointers are followed in [`pointer`] and in typed rows ([`typed`]) only. The
//! caller's log handler and its code for synthetic columns run while no lock is held ([`logging`],
//! [`typed`]); its functions for maps must not call the library.

#![allow(unsafe_code, reason = "the interface to C: each block has its reason")]
#![allow(non_camel_case_types, reason = "the names of types and constants in C")]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "C has no unsafe functions: the header states what pointers must point to"
)]

pub mod abi;
pub mod change;
pub mod client;
pub mod condition;
pub mod config;
pub mod error;
pub mod fetch;
mod handle;
pub mod history;
pub mod index;
pub mod logging;
mod platform;
mod pointer;
pub mod poll_loop;
pub mod process;
pub mod reading;
pub mod transaction;
pub mod typed;
pub mod value;
