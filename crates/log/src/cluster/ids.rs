//! Names and numbers of a cluster, each a type of its own: five kinds of 128 or 64 bits that must not be mixed up.

use std::fmt;

use corvid_data::Uuid;

/// A server's id: random, made with its file, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid(pub Uuid);

/// A cluster's id, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cid(Uuid);

/// The id of an entry with data, which is also the transaction id that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Eid(pub Uuid);

/// An election's number; grows forever. 0 before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// An entry's position in the log; the initial snapshot of a cluster is 1, its first entry 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u64);

impl Cid {
    /// `None` for all zeros, which stands for an id that is not known yet.
    #[must_use]
    pub fn new(uuid: Uuid) -> Option<Cid> {
        (uuid != Uuid::ZERO).then_some(Cid(uuid))
    }

    /// The id as a UUID.
    #[must_use]
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl Index {
    /// The next position.
    #[must_use]
    pub fn next(self) -> Index {
        Index(self.0.wrapping_add(1))
    }

    /// The position before.
    #[must_use]
    pub fn previous(self) -> Index {
        Index(self.0.wrapping_sub(1))
    }
}

/// The first four digits of a UUID, enough for people to tell the members of a cluster apart.
#[must_use]
pub fn short(uuid: Uuid) -> String {
    format!("{:02x}{:02x}", uuid.0[0], uuid.0[1])
}

/// The short form.
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short(self.0))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
