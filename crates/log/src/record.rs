//! Composing one record: the body is written in place, after room reserved for its header, which is
//! filled in last.
//!
//! Beyond the body, a record costs one SHA-1 pass, and one move of the body within the buffer
//! unless its length has three digits. A body of 100 to 999 bytes, by far the most frequent, never
//! moves. The code that appends to a log calls this module; several records may follow one another
//! in one buffer, for one write.

use crate::header::{Header, Magic};

/// The header's room is reserved for a length of this many digits.
const LENGTH_DIGITS_GUESS: usize = 3;

/// A record under construction at the end of a buffer. Dropping it unfinished restores the buffer.
#[derive(Debug)]
pub struct Record<'a> {
    out: &'a mut Vec<u8>,
    magic: Magic,
    start: usize,
    /// Bytes reserved for the header.
    room: usize,
    finished: bool,
}

impl<'a> Record<'a> {
    /// Starts a record after what `out` already holds.
    #[must_use]
    pub fn begin(out: &'a mut Vec<u8>, magic: Magic) -> Record<'a> {
        Record::begin_with_room(out, magic, room(magic, LENGTH_DIGITS_GUESS))
    }

    /// Like [`Record::begin`], for a body of about `bytes` bytes. A long body moves only if its
    /// length has more or fewer digits than `bytes`.
    #[must_use]
    pub fn begin_long(out: &'a mut Vec<u8>, magic: Magic, bytes: usize) -> Record<'a> {
        let digits = bytes.checked_ilog10().unwrap_or(0) as usize + 1;
        let room = room(magic, digits);
        // Reserve more than the estimate: growing the buffer would move the body too.
        out.reserve(room + bytes + bytes / 8);
        Record::begin_with_room(out, magic, room)
    }

    fn begin_with_room(out: &'a mut Vec<u8>, magic: Magic, room: usize) -> Record<'a> {
        let start = out.len();
        out.resize(start + room, 0);
        Record {
            out,
            magic,
            start,
            room,
            finished: false,
        }
    }

    /// The buffer for the body: append one JSON object, without the final LF. Bytes already in it
    /// must not change.
    pub fn body(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Bytes of body so far.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        self.out.len() - self.start - self.room
    }

    /// Ends the body with its LF and fills in the header. Returns the number of bytes that the
    /// record added to the buffer.
    pub fn finish(mut self) -> usize {
        self.out.push(b'\n');
        let body_start = self.start + self.room;
        let header = Header::of(&self.out[body_start..]);
        // The header is written after the body first, then moved to its place.
        let body_end = self.out.len();
        header.write(self.magic, self.out);
        let line = self.out.len() - body_end;
        let new_start = self.start + line;
        if new_start == body_start {
            self.out.copy_within(body_end.., self.start);
            self.out.truncate(body_end);
        } else {
            let line = self.out.split_off(body_end);
            if new_start > body_start {
                self.out.resize(body_end + new_start - body_start, 0);
            }
            self.out.copy_within(body_start..body_end, new_start);
            self.out.truncate(body_end + new_start - body_start);
            self.out[self.start..new_start].copy_from_slice(&line);
        }
        self.finished = true;
        debug_assert!(
            self.out[self.start..].starts_with(b"OVSDB ") && self.out.ends_with(b"\n"),
            "a record is a header and a line"
        );
        self.out.len() - self.start
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

fn room(magic: Magic, digits: usize) -> usize {
    "OVSDB ".len() + magic.word().len() + 1 + digits + 1 + 40 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordReader;

    #[test]
    fn every_length_gets_its_exact_header() {
        for body_bytes in [2, 8, 9, 98, 99, 500, 998, 999, 1000, 70_000] {
            let mut out = b"before".to_vec();
            let text = format!("{{{}}}", " ".repeat(body_bytes - 2));
            let mut record = Record::begin(&mut out, Magic::Standalone);
            record.body().extend_from_slice(text.as_bytes());
            assert_eq!(record.body_bytes(), body_bytes);
            let added = record.finish();
            assert_eq!(out.len(), 6 + added);
            let expected = format!("OVSDB JSON {} ", body_bytes + 1);
            assert!(out[6..].starts_with(expected.as_bytes()), "{body_bytes}");
            let mut reader = RecordReader::new(&out[6..], Magic::Standalone);
            let raw = reader.next().expect("readable").expect("present");
            assert_eq!(raw.body, format!("{text}\n").as_bytes());
            assert!(reader.next().expect("readable").is_none());
            for guess in [0, 9, body_bytes, 1_000_000] {
                let mut long = b"before".to_vec();
                let mut record = Record::begin_long(&mut long, Magic::Standalone, guess);
                record.body().extend_from_slice(text.as_bytes());
                assert_eq!(record.body_bytes(), body_bytes);
                assert_eq!(record.finish(), added);
                assert_eq!(long, out, "{guess}");
            }
        }
    }

    #[test]
    fn records_follow_each_other_in_one_buffer() {
        let mut out = Vec::new();
        for text in ["{}", "{\"a\":1}", "{\"b\":[1,2,3]}"] {
            let mut record = Record::begin(&mut out, Magic::Clustered);
            record.body().extend_from_slice(text.as_bytes());
            record.finish();
        }
        let mut reader = RecordReader::new(&out[..], Magic::Clustered);
        for text in ["{}\n", "{\"a\":1}\n", "{\"b\":[1,2,3]}\n"] {
            assert_eq!(
                reader.next().expect("readable").expect("present").body,
                text.as_bytes()
            );
        }
        assert!(reader.next().expect("readable").is_none());
    }

    #[test]
    fn dropped_record_leaves_no_trace() {
        let mut out = b"before".to_vec();
        let mut record = Record::begin(&mut out, Magic::Standalone);
        record.body().extend_from_slice(b"{\"half");
        drop(record);
        assert_eq!(out, b"before");
    }
}
