//! A member's state as its file holds it: identity, promises, log. Built by [`super::recovery`];
//! the member starts with it.

use bytes::Bytes;
use corvid_json::{ObjectWriter, write};

use super::promises::Promises;
use super::record::{Entry, Payload};
use super::{BodyLocation, Cid, Eid, Index, MemberDamage, Servers, Sid, SnapshotMeta, Term, Unfit};

/// A member's state as its file holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The member's id.
    pub server_id: Sid,
    /// The cluster's id. Unknown only while the server is joining.
    pub cluster_id: Option<Cid>,
    /// The name of the database.
    pub name: String,
    /// The address at which the member listens for its peers.
    pub local_address: String,
    /// The highest term in any record.
    pub term: Term,
    /// The server for which the member voted in that term.
    pub vote: Option<Sid>,
    /// The winner of that term's election, if recorded. Only for display.
    pub leader: Option<Sid>,
    /// Whether the server has joined, and its log.
    pub membership: Membership,
    /// Why the member must not take part in its cluster, and the details for people.
    pub unfit: Option<(Unfit, String)>,
    /// Number of good records, the header included.
    pub records: u64,
    /// Offset just past the header record. Growth is measured against it (docs/spec/storage.md
    /// 9.3).
    pub base: u64,
    /// Offset just past the last good record, where the next one goes.
    pub good_end: u64,
    /// The damage after the good records. See [`MemberDamage::may_have_forgotten`].
    pub damage: Option<MemberDamage>,
}

/// Whether a server has joined its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    /// The server has not joined: it has no log and no database.
    Joining {
        /// Servers to ask for admission; at least one.
        remote_addresses: Vec<String>,
    },
    /// The server has joined.
    Joined(Box<Joined>),
    /// The server has joined, but its log is damaged; its term and vote are known. It must neither
    /// vote nor acknowledge entries until it has a snapshot from its leader that reaches its last
    /// entry. That snapshot replaces the file, which is not written to before.
    Damaged(Promises),
}

/// The log of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The snapshot before the entries.
    pub snapshot: SnapshotMeta,
    /// The location of the snapshot's body in the file.
    pub body: BodyLocation,
    /// Entries up to this index are known to be committed.
    pub commit: Index,
    /// All entries after the snapshot, without gaps.
    pub entries: Vec<StoredEntry>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// The term of the leader that created it.
    pub term: Term,
    /// Its position in the log.
    pub index: Index,
    /// The members other than `term` and `index`, without braces: the text of
    /// `corvid_consensus::EntryBody`.
    pub text: Bytes,
    /// The new list of members, if it changes.
    pub servers: Option<Servers>,
    /// The new election timer, ms, if it changes.
    pub election_timer_ms: Option<u64>,
    /// For a change of the database, its id and its data: `[null,T]`, `[S,T]` or `[S,null]`. The
    /// data is a slice of `text`.
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

    /// Whether the member may have forgotten a vote, or an entry that it acknowledged. Then it must
    /// neither vote nor serve until it is rebuilt.
    #[must_use]
    pub fn may_have_forgotten(&self) -> bool {
        let damage = self.damage.as_ref();
        damage.is_some_and(MemberDamage::may_have_forgotten)
    }
}

impl Joined {
    /// The position of the last entry, or of the snapshot if there is none.
    #[must_use]
    pub fn last_index(&self) -> Index {
        let last = self.entries.last();
        last.map_or(self.snapshot.index, |entry| entry.index)
    }

    /// The term of the last entry, or of the snapshot if there is none.
    #[must_use]
    pub fn last_term(&self) -> Term {
        let last = self.entries.last();
        last.map_or(self.snapshot.term, |entry| entry.term)
    }

    /// The id of the last entry with data, committed or not.
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
    /// Appends the body of the entry's record, without LF.
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

    /// Converts an entry read from the file.
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
        // A foreign writer may have used line feeds as white space, but records and messages of
        // Corvid are one line. Strings never hold a raw line feed.
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
