//! Finding what a damaged file still holds: whole records after the damage ([`records_behind`]),
//! damaged records that can be restored ([`pieces`]), and rows in the text of the others
//! ([`fragments`]).
//!
//! A record is whole if its header line is found, at any offset, and the body after it matches the
//! hash. Nothing else is checked: without the records before it, its meaning is unknown. Bytes are
//! read at offsets, in pieces, so memory does not grow with the size of records. The code that
//! judges damage before a file is opened calls this module, and so does the tool that salvages.

pub mod fragments;
pub mod pieces;
pub(crate) mod restore;

use memchr::memmem;
use sha1::{Digest, Sha1};

use crate::header::{Header, LINE_BYTES_MAX, Magic, first_line};

/// Bytes read at a time.
const WINDOW_BYTES: usize = 128 * 1024;
/// The beginning of every header.
const SIGN: &[u8] = b"OVSDB ";

/// Bytes of a file, by offset.
pub trait Bytes {
    /// Fills a prefix of `room` from `offset`; 0 at the end of the file.
    ///
    /// # Errors
    /// The operating system's error text.
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String>;
}

impl Bytes for &[u8] {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
        let mut rest = rest.unwrap_or_default();
        crate::Source::read(&mut rest, room)
    }
}

/// Counts the whole records after a damaged one, whose header is at `offset`.
///
/// # Errors
/// Reading failed.
pub fn records_behind<B: Bytes>(bytes: B, magic: Magic, offset: u64) -> Result<u64, String> {
    let mut window = Window::new(bytes);
    let mut count = 0;
    // The damaged record itself does not count, even if it is whole and meaningless.
    let mut at = offset + 1;
    while let Some((_, end)) = window.next_whole(magic, at)? {
        count += 1;
        at = end;
    }
    Ok(count)
}

/// The offset of the first whole record after a damaged one, whose header is at `offset`.
///
/// # Errors
/// Reading failed.
pub fn next_whole<B: Bytes>(bytes: B, magic: Magic, offset: u64) -> Result<Option<u64>, String> {
    let found = Window::new(bytes).next_whole(magic, offset + 1)?;
    Ok(found.map(|(start, _)| start))
}

impl<B: Bytes + ?Sized> Bytes for &mut B {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        (**self).read_at(room, offset)
    }
}

/// The part of the file that is held in memory.
struct Window<B> {
    bytes: B,
    held: Vec<u8>,
    /// File offset of `held`.
    start: u64,
}

impl<B: Bytes> Window<B> {
    fn new(bytes: B) -> Window<B> {
        Window {
            bytes,
            held: Vec::new(),
            start: 0,
        }
    }

    /// Start and end of the first whole record at or after `at`.
    fn next_whole(&mut self, magic: Magic, mut at: u64) -> Result<Option<(u64, u64)>, String> {
        while let Some(found) = self.find_sign(at)? {
            if let Some(end) = self.record_end(found, magic)? {
                return Ok(Some((found, end)));
            }
            at = found + 1;
        }
        Ok(None)
    }

    /// The bytes in memory from `at` on: at least `wanted`, unless the file ends first.
    fn from(&mut self, at: u64, wanted: usize) -> Result<&[u8], String> {
        let skipped = at
            .checked_sub(self.start)
            .and_then(|skipped| usize::try_from(skipped).ok());
        let is_held = |skipped: &usize| self.held.len().saturating_sub(*skipped) >= wanted;
        if let Some(skipped) = skipped.filter(is_held) {
            return Ok(&self.held[skipped..]);
        }
        self.start = at;
        self.held.resize(WINDOW_BYTES, 0);
        let mut got = 0;
        while got < WINDOW_BYTES {
            match self.bytes.read_at(&mut self.held[got..], at + got as u64)? {
                0 => break,
                more => got += more,
            }
        }
        self.held.truncate(got);
        Ok(&self.held)
    }

    /// The next offset at which a header may begin.
    fn find_sign(&mut self, from: u64) -> Result<Option<u64>, String> {
        let mut at = from;
        loop {
            let held = self.from(at, SIGN.len())?;
            if held.len() < SIGN.len() {
                return Ok(None);
            }
            if let Some(found) = memmem::find(held, SIGN) {
                return Ok(Some(at + found as u64));
            }
            at += (held.len() - SIGN.len() + 1) as u64;
        }
    }

    /// The end of the record at `at`, if it is whole.
    fn record_end(&mut self, at: u64, magic: Magic) -> Result<Option<u64>, String> {
        let held = self.from(at, LINE_BYTES_MAX)?;
        let Some(line) = first_line(held) else {
            return Ok(None);
        };
        let Ok(header) = Header::parse(line, magic) else {
            return Ok(None);
        };
        let body = at + line.len() as u64 + 1;
        let Some(end) = body.checked_add(header.length) else {
            return Ok(None);
        };
        // A wrong length usually exceeds the file. Check that first, because hashing reads the
        // whole body.
        let mut last = [0];
        if self.bytes.read_at(&mut last, end - 1)? == 0 {
            return Ok(None);
        }
        let mut hash = Sha1::new();
        let mut hashed = body;
        while hashed < end {
            let piece = self.from(hashed, 1)?;
            let left = usize::try_from(end - hashed).unwrap_or(usize::MAX);
            let piece = &piece[..piece.len().min(left)];
            if piece.is_empty() {
                return Ok(None);
            }
            hash.update(piece);
            hashed += piece.len() as u64;
        }
        let actual: [u8; 20] = hash.finalize().into();
        Ok((actual == header.sha1).then_some(end))
    }
}

#[cfg(test)]
mod tests;
