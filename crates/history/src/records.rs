//! The records of a text, one after the other. A record that is not wanted is skipped without
//! reading its body, so a large snapshot costs nothing on the way to a later record.
//!
//! Invariant: at most one record is in memory, and no more is read than is asked for plus
//! [`READ_BYTES`].

use std::fmt;

use corvid_log::Magic;
use corvid_log::header::{Header, LINE_BYTES_MAX};
use memchr::memchr;
use sha1::{Digest, Sha1};

use crate::ReadAt;

/// Bytes of one read.
const READ_BYTES: usize = 256 * 1024;

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    /// Its number in the file, counting from 0.
    pub(crate) number: u64,
    /// Offset of its header in the text.
    pub(crate) start: u64,
    /// Offset just past its body.
    pub(crate) end: u64,
    /// SHA-1 of its body.
    pub(crate) sha1: [u8; 20],
    /// Bytes of the header line.
    line: u64,
}

/// Reads records in order.
pub(crate) struct Records<'t> {
    text: &'t dyn ReadAt,
    magic: Magic,
    /// Bytes of the text from `offset` on; those before `at` are done with.
    held: Vec<u8>,
    at: usize,
    offset: u64,
    /// The text ends here.
    limit: u64,
    number: u64,
    heading: Option<Heading>,
    is_checked: bool,
    /// Whether the text ends before the first record that is not whole.
    ends_before_damage: bool,
}

impl fmt::Debug for Records<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("number", &self.number)
            .field("offset", &self.position())
            .finish_non_exhaustive()
    }
}

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record at offset {offset} is damaged ({reason})")]
pub(crate) struct RecordError {
    offset: u64,
    reason: String,
}

impl<'t> Records<'t> {
    /// Reads from `offset`, where the record `number` begins, to `limit`, where one ends. With
    /// `is_checked`, the hash of each body that is read is compared.
    pub(crate) fn new(
        text: &'t dyn ReadAt,
        magic: Magic,
        (offset, number): (u64, u64),
        limit: u64,
        is_checked: bool,
    ) -> Records<'t> {
        Records {
            text,
            magic,
            held: Vec::new(),
            at: 0,
            offset,
            limit,
            number,
            heading: None,
            is_checked,
            ends_before_damage: false,
        }
    }

    /// Makes the text end before the first record that is not whole.
    pub(crate) fn end_before_damage(&mut self) {
        self.ends_before_damage = true;
    }

    /// Moves to the next record; `None` at the end of the text.
    ///
    /// # Errors
    /// Reading failed, or there is no record.
    pub(crate) fn next(&mut self) -> Result<Option<Heading>, RecordError> {
        if let Some(heading) = self.heading.take() {
            self.pass(heading.end);
        }
        let start = self.position();
        if start >= self.limit {
            return Ok(None);
        }
        let end = loop {
            let held = &self.held[self.at..];
            if let Some(end) = memchr(b'\n', &held[..held.len().min(LINE_BYTES_MAX)]) {
                break end;
            }
            if held.len() >= LINE_BYTES_MAX || !self.fill()? {
                return self.damaged("no header line");
            }
        };
        let line = &self.held[self.at..self.at + end];
        let Ok(header) = Header::parse(line, self.magic) else {
            return self.damaged("no header line");
        };
        let line = end as u64 + 1;
        let end = (start + line).checked_add(header.length);
        let Some(end) = end.filter(|end| *end <= self.limit) else {
            return self.damaged("it is longer than the file");
        };
        let heading = Heading {
            number: self.number,
            start,
            end,
            sha1: header.sha1,
            line,
        };
        self.number += 1;
        self.heading = Some(heading);
        Ok(Some(heading))
    }

    /// The body of the record that [`Records::next`] returned last.
    ///
    /// # Errors
    /// Reading failed, or the hash is wrong.
    pub(crate) fn body(&mut self) -> Result<&[u8], RecordError> {
        let Some(heading) = self.heading else {
            return Ok(&[]);
        };
        let whole = usize::try_from(heading.end - heading.start)
            .map_err(|_| self.error("it does not fit into memory"))?;
        while self.held.len() - self.at < whole {
            if !self.fill()? {
                return Err(self.error("End of file"));
            }
        }
        let start = self.at + heading.line as usize;
        let body = start..self.at + whole;
        if self.is_checked
            && <[u8; 20]>::from(Sha1::digest(&self.held[body.clone()])) != heading.sha1
        {
            return Err(self.error("its SHA-1 is wrong"));
        }
        Ok(&self.held[body])
    }

    /// The offset of the next byte to look at.
    fn position(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// Continues at `offset`, which is not before the present one.
    fn pass(&mut self, offset: u64) {
        let ahead = offset - self.position();
        match usize::try_from(ahead) {
            Ok(ahead) if ahead <= self.held.len() - self.at => self.at += ahead,
            _ => {
                self.held.clear();
                self.at = 0;
                self.offset = offset;
            }
        }
    }

    /// Reads more; `false` at the end of the text.
    fn fill(&mut self) -> Result<bool, RecordError> {
        self.held.drain(..self.at);
        self.offset += self.at as u64;
        self.at = 0;
        let held = self.held.len();
        // A long record doubles the buffer, so that it is moved a few times only.
        let room = READ_BYTES.max(held);
        let left = self.limit.saturating_sub(self.offset + held as u64);
        let room = usize::try_from(left).map_or(room, |left| left.min(room));
        if room == 0 {
            return Ok(false);
        }
        self.held.resize(held + room, 0);
        let read = self
            .text
            .read_at(&mut self.held[held..], self.offset + held as u64);
        match read {
            Ok(got) => {
                self.held.truncate(held + got);
                Ok(got > 0)
            }
            Err(reason) => {
                self.held.truncate(held);
                Err(self.error(&reason))
            }
        }
    }

    /// The outcome at a record that is not whole.
    fn damaged(&mut self, reason: &str) -> Result<Option<Heading>, RecordError> {
        if !self.ends_before_damage {
            return Err(self.error(reason));
        }
        self.limit = self.position();
        Ok(None)
    }

    fn error(&self, reason: &str) -> RecordError {
        RecordError {
            offset: self.position(),
            reason: reason.to_owned(),
        }
    }
}
