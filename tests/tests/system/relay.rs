//! Relays between real servers, ours and the reference's as source and as relay: copies equal their source, writes reach it, commands and `_Server` tell the
//! truth.

mod clusters;
mod copies;
mod faults;
mod locks;
pub(crate) mod node;
mod operators;
mod plays;
mod roles;
mod writes;
