//! The parts of the drop-in for `ovs` (`python/corvid/ovs`) that cost something for each row, value or message: rows whose attributes follow the rules of
//! that package, and the list of changes for its `notify`. The rules are those of docs/spec/idl.md 8.
//!
//! Python (`python/corvid/ovs/db/idl.py`) derives its classes of these and decides about log messages, which is why a value that does not fit ends in
//! a call of a method there.

pub(crate) mod events;
pub(crate) mod row;
pub(crate) mod value;
