//! The state of a member as its file has it: identity, promises, log. Made by [`super::recovery`]; the member starts with it.

use bytes::Bytes;
use corvid_json::{ObjectWriter, write};

use super::promises::Promises;
use super::record::{Entry, Payload};
use super::{BodyLocation, Cid, Eid, Index, MemberDamage, Servers, Sid, SnapshotMeta, Term, Unfit};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The member's id.
    pub server_id: Sid,
    /// The cluster's id, if it is known; a member knows it.
    pub cluster_id: Option<Cid>,
    /// The name of the database.
    pub name: String,
    /// The address at which the member listens for the others.
    pub local_address: String,
    /// The highest term in any record.
    pub term: Term,
    /// The server that the member voted for in that term.
    pub vote: Option<Sid>,
    /// The winner of the election of that term, if recorded. For people.
    pub leader: Option<Sid>,
    /// Whether the server has joined, and its log.
    pub membership: Membership,
    /// The member must not take part any more, and why.
    pub unfit: Option<(Unfit, String)>,
    /// The number of good records.
    pub records: u64,
    /// The offset behind the header record: growth is measured against it (docs/spec/storage.md 9.3).
    pub base: u64,
    /// The offset behind the last good record, where the next one goes.
    pub good_end: u64,
    /// The damage behind the good records. See [`MemberDamage::may_have_forgotten`].
    pub damage: Option<MemberDamage>,
}

/// Whether a server has joined its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It has not: it has no log and no database.
    Joining {
        /// Servers to ask for admission; at least one.
        remote_addresses: Vec<String>,
    },
    /// It has.
    Joined(Box<Joined>),
    /// It has, and its log is damaged. It must neither vote nor acknowledge before it has a snapshot of its leader that reaches its last
    /// entry; term and vote are known. The file is not written to: the snapshot replaces it.
    Damaged(Promises),
}

/// The log of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The snapshot before the entries.
    pub snapshot: SnapshotMeta,
    /// Its body in the file.
    pub body: BodyLocation,
    /// Entries through this one are known to be committed.
    pub commit: Index,
    /// All entries behind the snapshot, without gaps.
    pub entries: Vec<StoredEntry>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// The term of the leader that made it.
    pub term: Term,
    /// Its position.
    pub index: Index,
    /// The members other than `term` and `index`, without braces: the text of `corvid_consensus::EntryBody`.
    pub text: Bytes,
    /// The new list of members.
    pub servers: Option<Servers>,
    /// The new election timer, ms.
    pub election_timer_ms: Option<u64>,
    /// The id and the data of a change of the database: `[null,T]`, `[S,T]` or `[S,null]`. The data is a part of the text.
    pub commit: Option<(Eid, Bytes)>,
}

impl Recovered {
    /// The log, if the server has joined.
    #[must_use]
    pub fn joined(&self) -> Option<&Joined> {
        match &self.membership {
            Membership::Joining { .. } | Membership::Damaged(_) => None,
            Membership::Joined(joined) => Some(joined),
        }
    }

    /// Whether the member may have forgotten a vote or an entry that it acknowledged. Then it must neither vote nor serve until it is
    /// rebuilt.
    #[must_use]
    pub fn may_have_forgotten(&self) -> bool {
        let damage = self.damage.as_ref();
        damage.is_some_and(MemberDamage::may_have_forgotten)
    }
}

impl Joined {
    /// The last entry, or the snapshot's.
    #[must_use]
    pub fn last_index(&self) -> Index {
        let last = self.entries.last();
        last.map_or(self.snapshot.index, |entry| entry.index)
    }

    /// The term of the last entry.
    #[must_use]
    pub fn last_term(&self) -> Term {
        let last = self.entries.last();
        last.map_or(self.snapshot.term, |entry| entry.term)
    }

    /// The last entry with data, committed or not.
    #[must_use]
    pub fn last_eid(&self) -> Eid {
        let mut commits = self.entries.iter().rev().filter_map(|entry| {
            let (eid, _) = entry.commit.as_ref()?;
            Some(*eid)
        });
        commits.next().unwrap_or(self.snapshot.eid)
    }

    /// The newest list of members, committed or not.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        let mut lists = self.entries.iter().rev();
        let newest = lists.find_map(|entry| entry.servers.as_ref());
        newest.unwrap_or(&self.snapshot.servers)
    }

    /// The newest committed election timer, ms.
    #[must_use]
    pub fn election_timer_ms(&self) -> u64 {
        let committed = self.committed().iter().rev();
        let newest = committed.filter_map(|entry| entry.election_timer_ms).next();
        newest.unwrap_or(self.snapshot.election_timer_ms)
    }

    /// The entries that are known to be committed.
    #[must_use]
    pub fn committed(&self) -> &[StoredEntry] {
        let count = self
            .entries
            .partition_point(|entry| entry.index <= self.commit);
        &self.entries[..count]
    }
}

impl StoredEntry {
    /// Appends the body of its record, without LF.
    pub fn write_record(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"term\":");
        write::integer(out, self.term.0.cast_signed());
        out.extend_from_slice(b",\"index\":");
        write::integer(out, self.index.0.cast_signed());
        if !self.text.is_empty() {
            out.push(b',');
            out.extend_from_slice(&self.text);
        }
        out.push(b'}');
    }

    /// From an entry of the file.
    #[must_use]
    pub fn of(entry: Entry) -> StoredEntry {
        let data_bytes = entry
            .payload
            .as_ref()
            .map_or(0, |payload| payload.data.json().len());
        let mut text = Vec::with_capacity(data_bytes + 64);
        let mut object = ObjectWriter::new(&mut text);
        entry.encode_members(&mut object);
        object.end();
        let end = text.len() - 1;
        // White space of a foreign writer: records and messages of ours are one line. Strings hold no raw line feed.
        while let Some(at) = memchr::memchr(b'\n', &text) {
            text[at] = b' ';
        }
        let text = Bytes::from(text).slice(1..end);
        let commit = entry
            .payload
            .map(|Payload { eid, .. }| (eid, text.slice(text.len() - data_bytes..)));
        StoredEntry {
            term: entry.term,
            index: entry.index,
            text,
            servers: entry.servers,
            election_timer_ms: entry.election_timer_ms,
            commit,
        }
    }
}
