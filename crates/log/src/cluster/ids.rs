//! Ids and numbers of a cluster, each with its own type: five kinds of 128 or 64 bits that must not
//! be mixed up.

use std::fmt;

use corvid_data::Uuid;

/// A server's id: random, created with its file, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid(pub Uuid);

/// A cluster's id, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cid(Uuid);

/// The id of an entry with data, which is also the transaction id that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Eid(pub Uuid);

/// The number of an election; it only grows. 0 before the first election.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// An entry's position in the log. A new cluster's initial snapshot is 1, its first entry 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u64);

impl Sid {
    /// The number by which the consensus library knows the server: the first half of its id. It is
    /// unique within a cluster and never 0.
    #[must_use]
    pub fn number(self) -> u64 {
        let mut half = [0; 8];
        half.copy_from_slice(&self.0.0[..8]);
        u64::from_be_bytes(half)
    }
}

impl Cid {
    /// Wraps a UUID; `None` for all zeros, which stands for an id that is not known yet.
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

    /// The previous position.
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

/// The name of a server for people, in logs and in `cluster/status` (docs/spec/distribution.md
/// 1.1). For a `unix:` address it is the last path component up to its first `.`; for other
/// addresses it is the beginning of the id, or `0000` while that is unknown.
#[must_use]
pub fn nickname(address: &str, sid: Option<Sid>) -> String {
    if let Some(path) = address.strip_prefix("unix:") {
        let component = path.rsplit('/').next().unwrap_or_default();
        let name = component.split('.').next().unwrap_or_default();
        if !name.is_empty() {
            return name.to_owned();
        }
    }
    sid.map_or_else(|| "0000".to_owned(), |sid| sid.to_string())
}

/// Shows the short form.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nicknames_are_short() {
        let sid = Some(Sid(Uuid([0xab; 16])));
        assert_eq!(nickname("tcp:10.0.0.1:6644", sid), "abab");
        assert_eq!(nickname("tcp:10.0.0.1:6644", None), "0000");
        assert_eq!(nickname("unix:/run/s1.raft.sock", sid), "s1");
        assert_eq!(nickname("unix:s2.raft", None), "s2");
        assert_eq!(nickname("unix:/run/.raft", sid), "abab");
    }

    #[test]
    fn a_number_is_the_first_half_of_the_id() {
        let mut id = [0xff; 16];
        id[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Sid(Uuid(id)).number(), 0x0102_0304_0506_0708);
    }
}
