//! Relays between real servers, ours and the reference's as source and as relay. Copies equal their
//! source, writes reach it, and commands and `_Server` show the true state.

mod clusters;
mod copies;
mod faults;
mod locks;
pub(crate) mod node;
mod operators;
mod plays;
mod roles;
mod writes;
