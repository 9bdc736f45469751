//! The parts of the drop-in for `ovs` (`python/corvid/ovs`) that run for each row, value or
//! message: rows whose attributes follow the rules of that package, and the list of changes for its
//! `notify`. The rules are those of docs/spec/idl.md 8.
//!
//! Python (`python/corvid/ovs/db/idl.py`) derives its classes from these and decides about log
//! messages, so a value that does not fit leads to a call of a method there.

pub(crate) mod events;
pub(crate) mod read_values;
pub(crate) mod row;
pub(crate) mod value;
