//! The table of frames in an index.

use super::index::Cursor;
use super::{FRAME_TEXT_MAX, SegmentError};

/// Bytes of a frame in the table.
pub(super) const ENTRY_BYTES: usize = 32;

/// The value of `first_record` in a frame in which no record begins.
const NONE: u32 = u32::MAX;

/// Bytes by which the compressed form of a frame may exceed its text.
const OVERHEAD_MAX: usize = 1 << 16;

/// One frame of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its offset in the segment.
    pub offset: u64,
    /// Its bytes in the segment.
    pub length: u32,
    /// The offset of its text in the database file.
    pub text_offset: u64,
    /// Bytes of its text.
    pub text_length: u32,
    /// The number of the first record that begins in it, or, if none does, of the next one.
    pub record: u64,
    /// Records that begin in it.
    pub records: u32,
    /// Offset in its text of the first record that begins in it.
    pub first_record: Option<u32>,
    /// Least and greatest date of the records that begin in it, ms since the Unix epoch; `None` if
    /// none has a date.
    pub dates_ms: Option<(i64, i64)>,
}

impl Frame {
    /// Appends the frame as the table has it. Offsets and the record's number follow from the
    /// frames before, so they are not written.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (least, greatest) = self.dates_ms.unwrap_or((i64::MAX, i64::MIN));
        for number in [
            self.length,
            self.text_length,
            self.records,
            self.first_record.unwrap_or(NONE),
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&least.to_le_bytes());
        out.extend_from_slice(&greatest.to_le_bytes());
    }

    /// Reads the frame that follows `before`.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        before: Option<&Frame>,
    ) -> Result<Frame, SegmentError> {
        let [length, text_length, records, first_record] =
            [cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?];
        let (least, greatest) = (cursor.i64()?, cursor.i64()?);
        if text_length == 0 || text_length as usize > FRAME_TEXT_MAX {
            return Err(SegmentError::Index("length of a frame's text"));
        }
        if length == 0 || length as usize > text_length as usize + OVERHEAD_MAX {
            return Err(SegmentError::Index("length of a frame"));
        }
        if records > text_length || (records == 0) != (first_record == NONE) {
            return Err(SegmentError::Index("number of a frame's records"));
        }
        if records > 0 && first_record >= text_length {
            return Err(SegmentError::Index("position of a frame's first record"));
        }
        let (offset, text_offset, record) = before.map_or((0, 0, 0), Frame::ends);
        Ok(Frame {
            offset,
            length,
            text_offset,
            text_length,
            record,
            records,
            first_record: (records > 0).then_some(first_record),
            dates_ms: (least <= greatest).then_some((least, greatest)),
        })
    }

    /// Where it ends: in the segment, in the text, and in the numbers of records.
    pub(super) fn ends(&self) -> (u64, u64, u64) {
        (
            self.offset + u64::from(self.length),
            self.text_end(),
            self.record + u64::from(self.records),
        )
    }

    /// The offset in the database file just past its text.
    #[must_use]
    pub fn text_end(&self) -> u64 {
        self.text_offset + u64::from(self.text_length)
    }

    /// Adds a record that begins in the frame, at this offset of the database file.
    pub(crate) fn add(&mut self, start: u64, date_ms: Option<i64>) {
        self.records += 1;
        let within = u32::try_from(start.saturating_sub(self.text_offset)).unwrap_or(NONE);
        self.first_record.get_or_insert(within);
        if let Some(date_ms) = date_ms {
            let (least, greatest) = self.dates_ms.unwrap_or((date_ms, date_ms));
            self.dates_ms = Some((least.min(date_ms), greatest.max(date_ms)));
        }
    }
}
