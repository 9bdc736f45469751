//! The natural order of atoms: that of texts is the one in which pictures have their names.

use std::cmp::Ordering;

use corvid::data::AtomRef;
use corvid_picture::natural;

/// Compares two atoms of one type.
pub(crate) fn atoms(one: AtomRef<'_>, other: AtomRef<'_>) -> Ordering {
    match (one, other) {
        (AtomRef::String(one), AtomRef::String(other)) => natural::compare(one, other),
        (one, other) => one.cmp(&other),
    }
}
