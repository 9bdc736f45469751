//! Reading the text of a segment at any offset.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha1::{Digest, Sha1};
use zstd::bulk::Decompressor;

use super::ids::Ids;
use super::index::{Index, read_index};
use super::{Frame, SegmentError};
use crate::read_at::{ReadAt, read_exactly};
use crate::scan::{IdBeginning, Scan};

/// A segment whose text can be read.
pub struct Segment<F> {
    file: F,
    index: Index,
    number: u64,
    memory: FrameMemory,
}

/// The memory for one decompressed frame. The segments of a history share it, so that a pass over a
/// thousand of them needs that of one.
#[derive(Clone, Default)]
pub struct FrameMemory(Arc<Mutex<LastFrame>>);

impl FrameMemory {
    fn lock(&self) -> MutexGuard<'_, LastFrame> {
        // A frame that was not read whole is not named.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The frame that was read last.
#[derive(Default)]
struct LastFrame {
    decompressor: Option<Decompressor<'static>>,
    /// The numbers of the segment and of its frame.
    frame: Option<(u64, usize)>,
    compressed: Vec<u8>,
    text: Vec<u8>,
}

impl<F> std::fmt::Debug for Segment<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl<F: ReadAt> Segment<F> {
    /// Reads the index of a segment.
    ///
    /// # Errors
    /// As [`read_index`].
    pub fn open(file: F) -> Result<Segment<F>, SegmentError> {
        Segment::sharing(file, 0, FrameMemory::default())
    }

    /// The same for one of several segments, which have different numbers and share memory.
    ///
    /// # Errors
    /// As [`read_index`].
    pub fn sharing(file: F, number: u64, memory: FrameMemory) -> Result<Segment<F>, SegmentError> {
        let index = read_index(&file)?;
        Ok(Segment {
            file,
            index,
            number,
            memory,
        })
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Fills a prefix of `room` with the text from `offset`; 0 at the end of the text.
    ///
    /// # Errors
    /// Reading failed, or a frame is damaged.
    pub fn read_text(&self, room: &mut [u8], offset: u64) -> Result<usize, SegmentError> {
        if offset >= self.index.text_length {
            return Ok(0);
        }
        let after = self
            .index
            .frames
            .partition_point(|frame| frame.text_offset <= offset);
        let Some(number) = after.checked_sub(1) else {
            return Ok(0);
        };
        let mut last = self.memory.lock();
        let frame = self.index.frames[number];
        if last.frame != Some((self.number, number)) {
            last.read(&self.file, &frame, (self.number, number))?;
        }
        // The offset is within the frame, whose text is in memory.
        let within = (offset - frame.text_offset) as usize;
        let rest = &last.text[within..];
        let got = rest.len().min(room.len());
        room[..got].copy_from_slice(&rest[..got]);
        Ok(got)
    }

    /// The numbers of the transactions whose id begins like this, counting from 0; `None` if the
    /// segment has no table of ids.
    ///
    /// # Errors
    /// Reading failed, or the table is damaged.
    pub(crate) fn find_ids(&self, wanted: IdBeginning) -> Result<Option<Vec<u64>>, SegmentError> {
        let ids = &self.index.ids;
        if ids.entries == 0 {
            return Ok((self.index.transactions == 0).then(Vec::new));
        }
        ids.find(&self.file, self.index.ids_start(), wanted)
            .map(Some)
    }

    /// Decompresses everything, and compares it with the hash and the ids in the index.
    ///
    /// # Errors
    /// The segment is damaged.
    pub fn verify(&self) -> Result<(), SegmentError> {
        let mut hash = Sha1::new();
        let mut scan = Scan::new();
        let mut ids = Ids::new();
        let mut last = self.memory.lock();
        for (number, frame) in self.index.frames.iter().enumerate() {
            last.read(&self.file, frame, (self.number, number))?;
            hash.update(&last.text);
            scan.push(&last.text, |seen| ids.add(&seen));
        }
        if <[u8; 20]>::from(hash.finalize()) != self.index.text_sha1 {
            return Err(SegmentError::Text);
        }
        if ids.table() != self.index.ids {
            return Err(SegmentError::Index("ids of the transactions"));
        }
        // The entries themselves, whatever is wanted.
        self.find_ids(IdBeginning::default()).map(drop)
    }
}

impl LastFrame {
    fn read(
        &mut self,
        file: &impl ReadAt,
        frame: &Frame,
        number: (u64, usize),
    ) -> Result<(), SegmentError> {
        let damaged = |reason: String| SegmentError::Frame {
            frame: number.1,
            offset: frame.offset,
            reason,
        };
        self.frame = None;
        // The index bounds both lengths.
        self.compressed.resize(frame.length as usize, 0);
        read_exactly(file, &mut self.compressed, frame.offset).map_err(SegmentError::Read)?;
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            None => {
                let new = Decompressor::new().map_err(|error| damaged(error.to_string()))?;
                self.decompressor.insert(new)
            }
        };
        self.text.clear();
        self.text.reserve(frame.text_length as usize);
        let got = decompressor
            .decompress_to_buffer(&self.compressed, &mut self.text)
            .map_err(|error| damaged(error.to_string()))?;
        if got != frame.text_length as usize {
            return Err(damaged(format!(
                "it has {got} bytes instead of {}",
                frame.text_length
            )));
        }
        self.frame = Some(number);
        Ok(())
    }
}

impl<F: ReadAt> ReadAt for Segment<F> {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.read_text(room, offset)
            .map_err(|error| error.to_string())
    }

    fn length(&self) -> Result<u64, String> {
        Ok(self.index.text_length)
    }
}
