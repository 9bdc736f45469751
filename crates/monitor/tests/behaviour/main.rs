//! Monitors as clients see them, through the public interface: a real database, transactions as
//! JSON text, notifications compared as text. One file per topic of docs/spec/protocol.md 4.5 to
//! 4.9.

mod clauses;
mod coalescing;
mod condition_change;
mod conditions;
mod errors;
mod fixture;
mod precomputed;
mod replay;
mod replica;
mod since;
mod speculation;
mod version1;
mod version2;
