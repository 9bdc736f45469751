//! The header record of a file written by Corvid: the member's identity and the snapshot's
//! metadata, then the body as the last member.
//!
//! ```text
//! OVSDB CLUSTER <length> <sha1>\n
//! {"server_id":"...", ... ,"prev_data":[{schema},{rows}]}\n
//!                                      ^ body            ^ two bytes before the record's end
//! ```
//!
//! Invariant: the body is produced twice, once to measure it and once to write it, so it is never
//! in memory as a whole. The contents of new files call this module; they know where the body comes
//! from.

use sha1::{Digest, Sha1};

use super::header::{Header, Membership, Snapshot};
use super::header_scan::HeaderScan;
use super::{BodyLocation, Cid, Data, ELECTION_TIMER_DEFAULT_MS, Sid, SnapshotMeta};
use crate::disk::{DiskFile, Fault};
use crate::header::{Header as Line, LINE_BYTES_MAX, Magic, first_line};

/// The end of the record, after the body.
const BEHIND: &[u8] = b"}\n";

/// Bytes read in search of the body.
const HEAD_BYTES: usize = 64 * 1024;

/// A member's identity in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberIdentity {
    /// The member's server id.
    pub server_id: Sid,
    /// The cluster's id; `None` is written as zeros.
    pub cluster_id: Option<Cid>,
    /// The name of the database.
    pub name: String,
    /// The address at which the member listens for its peers.
    pub local_address: String,
}

/// The header record up to the snapshot's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The record's text before the body.
    before: Vec<u8>,
}

/// Receives the pieces of a body.
pub type Sink<'s, E> = &'s mut dyn FnMut(&[u8]) -> Result<(), E>;

impl SnapshotHeader {
    /// The header of a member with this snapshot. Ignores `meta.body_bytes`.
    #[must_use]
    pub fn new(identity: &MemberIdentity, meta: &SnapshotMeta) -> SnapshotHeader {
        let timer = Some(meta.election_timer_ms);
        let empty = Data::of(None, None);
        let placeholder = empty.json().len() + 1;
        let header = Header {
            server_id: identity.server_id,
            name: identity.name.clone(),
            local_address: identity.local_address.clone(),
            cluster_id: identity.cluster_id,
            membership: Membership::Joined {
                servers: meta.servers.clone(),
                snapshot: Some(Snapshot {
                    index: meta.index,
                    term: meta.term,
                    eid: meta.eid,
                    data: empty,
                    election_timer_ms: timer.filter(|timer| *timer != ELECTION_TIMER_DEFAULT_MS),
                }),
            },
        };
        // Encode the header with an empty body, then cut it where the body begins: at the empty
        // body and the closing brace.
        let mut before = Vec::new();
        header.encode(&mut before);
        before.truncate(before.len() - placeholder);
        SnapshotHeader { before }
    }

    /// Writes the record to `sink`. `body` is called twice and must pass the JSON text
    /// `[schema,rows]` to its argument in pieces, the same text both times.
    ///
    /// # Errors
    /// The first failure of `body` or `sink`.
    ///
    /// # Panics
    /// The length of the body changed between the two calls.
    pub fn write<E>(
        &self,
        body: impl Fn(Sink<'_, E>) -> Result<(), E>,
        sink: Sink<'_, E>,
    ) -> Result<(), E> {
        // The header line comes first and has the hash of everything that follows. So the body
        // passes twice: once for its hash and length, and once into the file.
        let mut hash = Sha1::new();
        let mut length = 0;
        hash.update(&self.before);
        body(&mut |piece| {
            hash.update(piece);
            length += piece.len() as u64;
            Ok(())
        })?;
        hash.update(BEHIND);
        let line = Line {
            length: (self.before.len() + BEHIND.len()) as u64 + length,
            sha1: hash.finalize().into(),
        };
        let mut head = Vec::with_capacity(LINE_BYTES_MAX + self.before.len());
        line.write(Magic::Clustered, &mut head);
        head.extend_from_slice(&self.before);
        sink(&head)?;
        let mut written = 0;
        body(&mut |piece| {
            written += piece.len() as u64;
            sink(piece)
        })?;
        assert_eq!(
            written, length,
            "a body does not change while it is written"
        );
        sink(BEHIND)
    }
}

/// Locates the body in a file whose header ends with it, as [`SnapshotHeader`] writes it. Returns
/// `None` for any other file; [`super::recover`] locates the body there. Reads only the beginning
/// and the end of the record.
///
/// # Errors
/// Reading failed.
pub fn locate_body<F: DiskFile>(file: &F) -> Result<Option<BodyLocation>, Fault> {
    let mut head = vec![0; HEAD_BYTES];
    let got = read_full(file, &mut head, 0)?;
    let head = &head[..got];
    let Some((line, text)) = first_line(head).map(|line| (line, &head[line.len() + 1..])) else {
        return Ok(None);
    };
    let Ok(header) = Line::parse(line, Magic::Clustered) else {
        return Ok(None);
    };
    let record = (head.len() - text.len()) as u64;
    let end = record.saturating_add(header.length);
    let Some(before) = HeaderScan::before_body(text) else {
        return Ok(None);
    };
    let offset = record + before as u64;
    // No other member of the header is an array, so a bracket before the end closes the body.
    let mut last = [0; 3];
    let from = end.saturating_sub(last.len() as u64);
    let is_last = from >= offset && read_full(file, &mut last, from)? == 3 && last == *b"]}\n";
    Ok(is_last.then(|| BodyLocation {
        offset,
        length: end - BEHIND.len() as u64 - offset,
    }))
}

/// Whether the first record, which holds the snapshot, still matches the hash in its header line.
/// Reads all of it.
///
/// # Errors
/// Reading failed.
pub fn is_snapshot_intact<F: DiskFile>(file: &F) -> Result<bool, Fault> {
    let mut piece = vec![0; HEAD_BYTES];
    let got = read_full(file, &mut piece, 0)?;
    let Some(line) = first_line(&piece[..got]) else {
        return Ok(false);
    };
    let Ok(header) = Line::parse(line, Magic::Clustered) else {
        return Ok(false);
    };
    let mut at = line.len() as u64 + 1;
    let end = at.saturating_add(header.length);
    let mut hash = Sha1::new();
    while at < end {
        let wanted = usize::try_from(end - at).map_or(HEAD_BYTES, |left| left.min(HEAD_BYTES));
        let got = read_full(file, &mut piece[..wanted], at)?;
        if got == 0 {
            return Ok(false);
        }
        hash.update(&piece[..got]);
        at += got as u64;
    }
    let actual: [u8; 20] = hash.finalize().into();
    Ok(actual == header.sha1)
}

/// Reads up to `bytes_max` bytes of a snapshot's body, fewer only at its end. `file` may meanwhile
/// have lost its name to a newer file.
///
/// # Errors
/// Reading failed, or the file ends before the body.
pub fn read_body<F: DiskFile>(
    file: &F,
    body: BodyLocation,
    offset: u64,
    bytes_max: usize,
) -> Result<Vec<u8>, Fault> {
    let left = body.length.saturating_sub(offset);
    let wanted = usize::try_from(left).map_or(bytes_max, |left| left.min(bytes_max));
    let mut bytes = vec![0; wanted];
    if read_full(file, &mut bytes, body.offset + offset)? < wanted {
        return Err(Fault {
            code: 0,
            text: "End of file".to_owned(),
        });
    }
    Ok(bytes)
}

/// Reads until `room` is full or the file ends. Returns the number of bytes read.
pub(super) fn read_full<F: DiskFile>(
    file: &F,
    room: &mut [u8],
    offset: u64,
) -> Result<usize, Fault> {
    let mut held = 0;
    while held < room.len() {
        match file.read_at(&mut room[held..], offset + held as u64)? {
            0 => break,
            got => held += got,
        }
    }
    Ok(held)
}
