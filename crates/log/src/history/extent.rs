//! Finds where the records of a replaced file end, after a crash: the process that knew it is gone.
//!
//! A loss of power may have torn the last records of a replaced file, because only the new file was
//! synced. Such records were not promised, and the new file has the contents. Any other damage is
//! in bytes that were complete once, so the file is kept as it is: a tool may still repair it.

use crate::disk::DiskFile;
use crate::header::{LINE_BYTES_MAX, Magic};
use crate::salvage::{self, Bytes};
use crate::split::{Cut, Splitter};
use crate::{ReadError, Source};

/// Records of at least this many bytes are hashed in pieces.
const LONG_BYTES: u64 = 1024 * 1024;

/// Where the records of a file end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All bytes before this offset are whole records, and no whole record follows.
    End(u64),
    /// Whole records follow the damage at this offset, or the file begins with damage.
    Damaged {
        /// Where the first damaged record begins.
        offset: u64,
        /// Number of whole records after it.
        behind: u64,
    },
}

/// Reads a file and finds where its records end. `is_wanted` is called for each piece.
///
/// # Errors
/// Reading failed, or the result is no longer wanted.
pub fn find_extent<F: DiskFile>(file: &F, is_wanted: impl Fn() -> bool) -> Result<Extent, String> {
    let mut room = [0; LINE_BYTES_MAX];
    let got = file.read_at(&mut room, 0).map_err(|fault| fault.text)?;
    let Ok(magic) = Magic::identify(&room[..got]) else {
        return Ok(Extent::Damaged {
            offset: 0,
            behind: 0,
        });
    };
    let bytes = file.length().map_err(|fault| fault.text)?;
    let reader = Sequential {
        file,
        offset: 0,
        bytes,
        is_wanted,
    };
    let mut splitter = Splitter::new(reader, magic);
    let mut end = 0;
    match whole_records(&mut splitter, &mut end) {
        Ok(()) => return Ok(Extent::End(end)),
        Err(ReadError::Source { reason, .. }) => return Err(reason),
        Err(_) => {}
    }
    let behind = salvage::records_behind(AtOffset(file), magic, end)?;
    // Without a single whole record the file says nothing, so it is left for an operator.
    Ok(if behind == 0 && end > 0 {
        Extent::End(end)
    } else {
        Extent::Damaged {
            offset: end,
            behind,
        }
    })
}

/// Sets `end` past each whole record, up to the end of the file or the first damage.
fn whole_records<S: Source>(splitter: &mut Splitter<S>, end: &mut u64) -> Result<(), ReadError> {
    while let Some(cut) = splitter.cut(LONG_BYTES)? {
        match cut {
            Cut::Batch(batch) => {
                for index in 0..batch.len() {
                    batch.raw(index)?;
                    *end = batch.end(index);
                }
                splitter.reuse(batch);
            }
            Cut::Long(mut long) => {
                while let Some(piece) = splitter.piece(&mut long)? {
                    splitter.reuse_piece(piece);
                }
                *end = long.end;
            }
        }
    }
    Ok(())
}

struct Sequential<'f, F, W> {
    file: &'f F,
    offset: u64,
    bytes: u64,
    is_wanted: W,
}

impl<F: DiskFile, W: Fn() -> bool> Source for Sequential<'_, F, W> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        if !(self.is_wanted)() {
            return Err("given up".to_owned());
        }
        let got = self.file.read_at(room, self.offset);
        let got = got.map_err(|fault| fault.text)?;
        self.offset += got as u64;
        Ok(got)
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(self.bytes.saturating_sub(self.offset))
    }
}

struct AtOffset<'f, F>(&'f F);

impl<F: DiskFile> Bytes for AtOffset<'_, F> {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.0.read_at(room, offset).map_err(|fault| fault.text)
    }
}
