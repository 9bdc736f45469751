//! Making a segment of the text of a database file.

use sha1::{Digest, Sha1};
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::frames::Frame;
use super::ids::{IdTable, Ids};
use super::index::{Identity, Index};
use super::{FRAME_TEXT_BYTES, SegmentError, Summary};
use crate::scan::{Role, Scan, Seen};

/// zstd's level: its default. Higher ones gain little on such texts and take much longer.
const LEVEL: i32 = 3;

/// Compresses a text that comes in pieces. Holds one frame, and 4 bytes for each transaction.
pub struct SegmentWriter {
    compressor: Option<Compressor<'static>>,
    scan: Scan,
    hash: Sha1,
    /// Text that is not in a frame yet.
    held: Vec<u8>,
    /// Records of which no frame knows yet.
    unassigned: Vec<(u64, Option<i64>)>,
    ids: Ids,
    index: Index,
}

impl Default for SegmentWriter {
    fn default() -> SegmentWriter {
        SegmentWriter::new()
    }
}

impl std::fmt::Debug for SegmentWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentWriter")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl SegmentWriter {
    /// Starts a segment.
    #[must_use]
    pub fn new() -> SegmentWriter {
        SegmentWriter {
            compressor: None,
            scan: Scan::new(),
            hash: Sha1::new(),
            held: Vec::new(),
            unassigned: Vec::new(),
            ids: Ids::new(),
            index: Index::empty(),
        }
    }

    /// Adds the next piece of the text, and appends to `out` what is complete of the segment.
    ///
    /// # Errors
    /// The text is not that of a database file, or zstd failed. The segment is unusable then.
    pub fn push(&mut self, mut text: &[u8], out: &mut Vec<u8>) -> Result<(), SegmentError> {
        self.hash.update(text);
        while !text.is_empty() {
            let room = FRAME_TEXT_BYTES - self.held.len();
            let (piece, rest) = text.split_at(room.min(text.len()));
            text = rest;
            self.held.extend_from_slice(piece);
            let SegmentWriter {
                scan,
                unassigned,
                ids,
                index,
                ..
            } = self;
            scan.push(piece, |seen| {
                index.add(&seen, unassigned);
                ids.add(&seen);
            });
            if scan.records() == 0 && scan.is_broken() {
                return Err(SegmentError::NotDatabase);
            }
            if self.held.len() == FRAME_TEXT_BYTES {
                let boundary = self.scan.good_end().saturating_sub(self.index.text_length);
                let cut = usize::try_from(boundary).ok().filter(|cut| *cut > 0);
                self.cut(cut.unwrap_or(FRAME_TEXT_BYTES), out)?;
            }
        }
        Ok(())
    }

    /// Ends the segment: appends the last frame and the index. The summary has the number 0.
    ///
    /// # Errors
    /// As [`SegmentWriter::push`]; also a text without a whole record.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Summary, SegmentError> {
        if !self.held.is_empty() {
            self.cut(self.held.len(), out)?;
        }
        let Some(magic) = self.scan.magic().filter(|_| self.scan.records() > 0) else {
            return Err(SegmentError::NotDatabase);
        };
        self.index.identity = Identity::new(magic, self.scan.head());
        self.index.good_length = self.scan.good_end();
        self.index.text_sha1 = self.hash.finalize().into();
        self.index.ids = self.ids.table();
        let before = out.len();
        self.ids.write(out)?;
        self.index.write(out)?;
        self.index.bytes += (out.len() - before) as u64;
        Ok(self.index.summary())
    }

    /// Compresses the first `length` bytes that are held.
    fn cut(&mut self, length: usize, out: &mut Vec<u8>) -> Result<(), SegmentError> {
        let before = self.index.bytes;
        let compressed = compress(&mut self.compressor, &self.held[..length])?;
        out.extend_from_slice(&compressed);
        self.held.drain(..length);
        self.index
            .push_frame(before, compressed.len(), length, &mut self.unassigned);
        Ok(())
    }
}

impl Index {
    /// The index of nothing.
    pub(crate) fn empty() -> Index {
        Index {
            identity: Identity {
                kind: super::Kind::Standalone,
                name: String::new(),
                version: String::new(),
                cluster_id: None,
                server_id: None,
            },
            frames: Vec::new(),
            text_length: 0,
            good_length: 0,
            text_sha1: [0; 20],
            records: 0,
            transactions: 0,
            dates_ms: None,
            ids: IdTable::default(),
            bytes: 0,
        }
    }

    /// Counts a record, and adds it to the frame in which it begins: one of those before, or one to
    /// come, for which it is left in `unassigned`.
    pub(crate) fn add(&mut self, seen: &Seen, unassigned: &mut Vec<(u64, Option<i64>)>) {
        self.records += 1;
        self.transactions += u64::from(seen.role == Role::Transaction);
        if let Some(date_ms) = seen.date_ms {
            let first_ms = self.dates_ms.map_or(date_ms, |(first_ms, _)| first_ms);
            self.dates_ms = Some((first_ms, date_ms));
        }
        if seen.start >= self.text_length {
            unassigned.push((seen.start, seen.date_ms));
            return;
        }
        let after = self
            .frames
            .partition_point(|frame| frame.text_offset <= seen.start);
        if let Some(at) = after.checked_sub(1) {
            self.frames[at].add(seen.start, seen.date_ms);
            for later in &mut self.frames[after..] {
                later.record += 1;
            }
        }
    }

    /// Adds a frame at offset `offset` of the segment, with the records that begin in it.
    pub(crate) fn push_frame(
        &mut self,
        offset: u64,
        length: usize,
        text_length: usize,
        unassigned: &mut Vec<(u64, Option<i64>)>,
    ) {
        let mut frame = Frame {
            offset,
            // Both are bounded by the size of a frame.
            length: length as u32,
            text_offset: self.text_length,
            text_length: text_length as u32,
            record: self.frames.last().map_or(0, |frame| frame.ends().2),
            records: 0,
            first_record: None,
            dates_ms: None,
        };
        self.text_length = frame.text_end();
        self.bytes += length as u64;
        let count = unassigned.partition_point(|(start, _)| *start < self.text_length);
        for (start, date_ms) in unassigned.drain(..count) {
            frame.add(start, date_ms);
        }
        self.frames.push(frame);
    }
}

/// Compresses one frame, with its checksum and its content's size.
fn compress(
    compressor: &mut Option<Compressor<'static>>,
    text: &[u8],
) -> Result<Vec<u8>, SegmentError> {
    let failed = |error: std::io::Error| SegmentError::Compress(error.to_string());
    let compressor = match compressor {
        Some(compressor) => compressor,
        None => {
            let mut new = Compressor::new(LEVEL).map_err(failed)?;
            new.set_parameter(CParameter::ChecksumFlag(true))
                .map_err(failed)?;
            new.set_parameter(CParameter::ContentSizeFlag(true))
                .map_err(failed)?;
            compressor.insert(new)
        }
    };
    compressor.compress(text).map_err(failed)
}
