//! The index of a segment: its form, and reading it from the end of the file.

use corvid_data::Uuid;
use corvid_log::Magic;
use sha1::{Digest, Sha1};

use super::frames::{ENTRY_BYTES, Frame};
use super::ids::IdTable;
use super::{SegmentError, Summary};
use crate::read_at::{ReadAt, read_exactly};
use crate::scan::Head;

/// The magic number of a skippable frame, and the length that follows it.
pub(super) const SKIPPABLE_MAGIC: u32 = 0x184D_2A5E;
pub(super) const SKIPPABLE_BYTES: usize = 8;

/// The end of every segment.
const END_MAGIC: &[u8; 8] = b"CRVDHIST";

/// The last bytes of a segment: number of frames, bytes of the facts, version, SHA-1, magic.
const TRAILER_BYTES: usize = 4 + 4 + 4 + 20 + 8;

/// The version of the index that this module writes and reads.
const VERSION: u32 = 1;

/// Facts of fixed length, and the longest name and version, bytes.
const FACTS_BYTES_MAX: usize = 4096;

/// The kind of file that the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A standalone database.
    Standalone,
    /// A member of a cluster.
    Clustered,
}

/// Which database a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The kind of file.
    pub kind: Kind,
    /// The database name; empty if record 0 has none.
    pub name: String,
    /// The version of its schema; empty if it has none.
    pub version: String,
    /// The id of the cluster, in a member's file that has joined.
    pub cluster_id: Option<Uuid>,
    /// The id of the member, in a member's file.
    pub server_id: Option<Uuid>,
}

/// The facts about a database file that are known without its text: the index of a segment, or the
/// same of a plain file that was scanned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Which database it is.
    pub identity: Identity,
    /// The frames, in order.
    pub frames: Vec<Frame>,
    /// Bytes of the text.
    pub text_length: u64,
    /// Bytes of the text that are whole records. A torn record may follow them.
    pub good_length: u64,
    /// SHA-1 of the text; zeros for a plain file.
    pub text_sha1: [u8; 20],
    /// Whole records, the first included.
    pub records: u64,
    /// Transactions: neither the schema, nor contents, nor a member's other records.
    pub transactions: u64,
    /// Dates of the first and last record that has one, ms since the Unix epoch.
    pub dates_ms: Option<(i64, i64)>,
    /// The table of the transactions' ids. A plain file has none.
    pub ids: IdTable,
    /// Bytes of the segment, or of the plain file.
    pub bytes: u64,
}

impl Kind {
    /// The magic of the file's records.
    #[must_use]
    pub fn magic(self) -> Magic {
        match self {
            Kind::Standalone => Magic::Standalone,
            Kind::Clustered => Magic::Clustered,
        }
    }

    pub(crate) fn of(magic: Magic) -> Kind {
        match magic {
            Magic::Standalone => Kind::Standalone,
            Magic::Clustered => Kind::Clustered,
        }
    }
}

impl Identity {
    pub(crate) fn new(magic: Magic, head: &Head) -> Identity {
        Identity {
            kind: Kind::of(magic),
            name: head.name.clone().unwrap_or_default(),
            version: head.version.clone().unwrap_or_default(),
            cluster_id: head.cluster_id,
            server_id: head.server_id,
        }
    }
}

impl Index {
    /// The summary, with the number 0: only the name of a segment has its number.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (first_ms, last_ms) = self.dates_ms.unwrap_or((0, 0));
        Summary {
            number: 0,
            bytes: self.bytes,
            transactions: self.transactions,
            first_ms,
            last_ms,
        }
    }

    /// Where the table of ids begins in a segment: after the frames.
    pub(super) fn ids_start(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.ends().0)
    }

    /// Appends the index as a skippable frame, the last part of a segment.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), SegmentError> {
        let mut payload = Vec::with_capacity(self.frames.len() * ENTRY_BYTES + 256);
        for frame in &self.frames {
            frame.write(&mut payload);
        }
        let facts_start = payload.len();
        payload.push(match self.identity.kind {
            Kind::Standalone => 0,
            Kind::Clustered => 1,
        });
        for number in [
            self.text_length,
            self.good_length,
            self.records,
            self.transactions,
        ] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        let (first_ms, last_ms) = self.dates_ms.unwrap_or((i64::MAX, i64::MIN));
        payload.extend_from_slice(&first_ms.to_le_bytes());
        payload.extend_from_slice(&last_ms.to_le_bytes());
        payload.extend_from_slice(&self.text_sha1);
        payload.extend_from_slice(&self.ids.entries.to_le_bytes());
        payload.extend_from_slice(&self.ids.sha1);
        for id in [self.identity.cluster_id, self.identity.server_id] {
            payload.extend_from_slice(&id.unwrap_or(Uuid::ZERO).to_text());
        }
        for text in [&self.identity.name, &self.identity.version] {
            // The scan bounds both, so the cast is exact.
            payload.extend_from_slice(&(text.len() as u16).to_le_bytes());
            payload.extend_from_slice(text.as_bytes());
        }
        let facts = payload.len() - facts_start;
        let too_large = SegmentError::Index("too large");
        for number in [self.frames.len(), facts] {
            let number = u32::try_from(number).map_err(|_| too_large.clone())?;
            payload.extend_from_slice(&number.to_le_bytes());
        }
        payload.extend_from_slice(&VERSION.to_le_bytes());
        let sha1: [u8; 20] = Sha1::digest(&payload).into();
        payload.extend_from_slice(&sha1);
        payload.extend_from_slice(END_MAGIC);
        let length = u32::try_from(payload.len()).map_err(|_| too_large)?;
        out.extend_from_slice(&SKIPPABLE_MAGIC.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&payload);
        Ok(())
    }
}

/// Reads the index of a segment: its last bytes, then the rest of it.
///
/// # Errors
/// Reading failed, or the file is not a whole segment.
pub fn read_index(file: &(impl ReadAt + ?Sized)) -> Result<Index, SegmentError> {
    let bytes = file.length().map_err(SegmentError::Read)?;
    let mut trailer = [0; TRAILER_BYTES];
    let trailer_start = bytes
        .checked_sub(TRAILER_BYTES as u64)
        .ok_or(SegmentError::NotSegment)?;
    read_exactly(file, &mut trailer, trailer_start).map_err(SegmentError::Read)?;
    let mut cursor = Cursor(&trailer);
    let (frames, facts, version) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let sha1: [u8; 20] = cursor.array()?;
    if cursor.0 != END_MAGIC {
        return Err(SegmentError::NotSegment);
    }
    if version != VERSION {
        return Err(SegmentError::Version(version));
    }
    if facts as usize > FACTS_BYTES_MAX {
        return Err(SegmentError::Index("length of the facts"));
    }
    // All of this fits into the file, so the file's length bounds the memory.
    let payload_bytes = u64::from(frames) * ENTRY_BYTES as u64 + u64::from(facts);
    let start = trailer_start
        .checked_sub(payload_bytes)
        .and_then(|start| start.checked_sub(SKIPPABLE_BYTES as u64))
        .ok_or(SegmentError::Index("longer than the file"))?;
    let length = usize::try_from(payload_bytes).map_err(|_| SegmentError::Index("too large"))?;
    let mut head = vec![0; SKIPPABLE_BYTES + length];
    read_exactly(file, &mut head, start).map_err(SegmentError::Read)?;
    let (skippable, payload) = head.split_at(SKIPPABLE_BYTES);
    let mut hash = Sha1::new();
    hash.update(payload);
    hash.update(&trailer[..12]);
    if <[u8; 20]>::from(hash.finalize()) != sha1 {
        return Err(SegmentError::Index("checksum"));
    }
    let mut cursor = Cursor(skippable);
    let (magic, skipped) = (cursor.u32()?, cursor.u32()?);
    if magic != SKIPPABLE_MAGIC || u64::from(skipped) != payload_bytes + TRAILER_BYTES as u64 {
        return Err(SegmentError::Index("beginning"));
    }
    let index = parse(payload, frames, bytes)?;
    let end = index
        .ids_start()
        .checked_add(index.ids.bytes().unwrap_or(u64::MAX));
    if end != Some(start) {
        return Err(SegmentError::Index("lengths of the frames"));
    }
    Ok(index)
}

/// Parses the table of frames and the facts.
fn parse(payload: &[u8], frames: u32, bytes: u64) -> Result<Index, SegmentError> {
    let mut cursor = Cursor(payload);
    let mut table: Vec<Frame> = Vec::with_capacity(frames as usize);
    for _ in 0..frames {
        let frame = Frame::read(&mut cursor, table.last())?;
        table.push(frame);
    }
    let kind = match cursor.array::<1>()? {
        [0] => Kind::Standalone,
        [1] => Kind::Clustered,
        _ => return Err(SegmentError::Index("kind of file")),
    };
    let [text_length, good_length, records, transactions] =
        [cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?];
    let (first_ms, last_ms) = (cursor.i64()?, cursor.i64()?);
    let text_sha1 = cursor.array()?;
    let ids = IdTable {
        entries: cursor.u64()?,
        sha1: cursor.array()?,
    };
    let [cluster_id, server_id] = [cursor.uuid()?, cursor.uuid()?];
    let identity = Identity {
        kind,
        name: cursor.text()?,
        version: cursor.text()?,
        cluster_id,
        server_id,
    };
    if !cursor.0.is_empty() {
        return Err(SegmentError::Index("length of the facts"));
    }
    let (_, text_end, record_end) = table.last().map_or((0, 0, 0), Frame::ends);
    if text_end != text_length || good_length > text_length {
        return Err(SegmentError::Index("length of the text"));
    }
    if record_end != records || transactions > records || records == 0 {
        return Err(SegmentError::Index("number of records"));
    }
    if ids.entries != 0 && ids.entries != transactions {
        return Err(SegmentError::Index("number of ids"));
    }
    let undated = (first_ms, last_ms) == (i64::MAX, i64::MIN);
    Ok(Index {
        identity,
        frames: table,
        text_length,
        good_length,
        text_sha1,
        records,
        transactions,
        dates_ms: (!undated).then_some((first_ms, last_ms)),
        ids,
        bytes,
    })
}

/// The part of a text that is not read yet.
pub(super) struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], SegmentError> {
        let short = SegmentError::Index("too short");
        let (array, rest) = self.0.split_first_chunk().ok_or(short)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn u32(&mut self) -> Result<u32, SegmentError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, SegmentError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, SegmentError> {
        self.array().map(i64::from_le_bytes)
    }

    fn uuid(&mut self) -> Result<Option<Uuid>, SegmentError> {
        let text: [u8; Uuid::TEXT_LEN] = self.array()?;
        let uuid = Uuid::parse(&text).ok_or(SegmentError::Index("an id"))?;
        Ok((uuid != Uuid::ZERO).then_some(uuid))
    }

    fn text(&mut self) -> Result<String, SegmentError> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let split = self.0.split_at_checked(length);
        let (text, rest) = split.ok_or(SegmentError::Index("too short"))?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| SegmentError::Index("a name"))
    }
}
