//! Cuts a damaged file into records and ranges that hold no record.
//!
//! ```text
//! [record][record, one bit restored][lost: 700 bytes][record]
//! ```
//!
//! Invariant: pieces follow each other without gaps and cover the file. A record is returned only
//! with a body that matches the hash of its header line, or nearly ([`super::restore`]).

use std::ops::Range;

use memchr::memmem;
use sha1::{Digest, Sha1};

use super::restore::{find_body, is_nearly, restore};
use crate::Magic;
use crate::header::{Header, LINE_BYTES_MAX, first_line};
use crate::reader::parse_object;

/// A longer body is not restored, because that would take minutes. Bytes.
const RESTORED_BYTES_MAX: usize = 32 * 1024;

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A record.
    Record {
        /// The range of the body in the file.
        body: Range<usize>,
        /// If the record is damaged: the body as it was written, and the damage.
        restored: Option<(Vec<u8>, Restored)>,
    },
    /// Damage that hides one record or more.
    Lost,
}

/// The damage of a record that is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// One bit of the body.
    Bit,
    /// The header line.
    Line,
}

/// Iterates over the pieces of a file, in order, each with its range.
#[derive(Debug)]
pub struct Pieces<'f> {
    file: &'f [u8],
    magic: Magic,
    at: usize,
}

impl<'f> Pieces<'f> {
    /// Iterates over a file of this kind.
    #[must_use]
    pub fn new(file: &'f [u8], magic: Magic) -> Pieces<'f> {
        Pieces { file, magic, at: 0 }
    }

    fn record(&self, body: Range<usize>) -> (Piece, usize) {
        let end = body.end;
        let restored = None;
        (Piece::Record { body, restored }, end)
    }

    /// The piece at the present offset, and where it ends.
    fn piece(&self) -> (Piece, usize) {
        let (file, at) = (self.file, self.at);
        let line = first_line(&file[at..]);
        let header = line.and_then(|line| Header::parse(line, self.magic).ok());
        let start = at + line.map_or(0, |line| line.len() + 1);
        let length = header.and_then(|header| usize::try_from(header.length).ok());
        let end = length.and_then(|length| start.checked_add(length));
        let end = end.filter(|end| *end <= file.len());
        if let (Some(header), Some(end)) = (header, end) {
            let body = &file[start..end];
            let actual: [u8; 20] = Sha1::digest(body).into();
            if actual == header.sha1 && parse_object(body).is_ok() {
                return self.record(start..end);
            }
            if is_nearly(&actual, &header.sha1) && parse_object(body).is_ok() {
                return self.restored(start..end, body.to_vec(), Restored::Line);
            }
            let mut restored = body.to_vec();
            if body.len() <= RESTORED_BYTES_MAX
                && restore(&mut restored, &header.sha1)
                && parse_object(&restored).is_ok()
            {
                return self.restored(start..end, restored, Restored::Bit);
            }
        }
        // Bytes in memory are always readable, so this cannot fail.
        let next = super::next_whole(file, self.magic, at as u64).unwrap_or(None);
        let limit = next.and_then(|next| usize::try_from(next).ok());
        let limit = limit.unwrap_or(file.len());
        let head = &file[at..file.len().min(at + LINE_BYTES_MAX)];
        let mut bytes = file;
        if let Ok(Some(body)) = find_body(&mut bytes, head, at as u64, limit as u64) {
            let start = limit - body.len();
            return self.restored(start..limit, body, Restored::Line);
        }
        // Another damaged record may begin earlier. This text proves it, because no body has a line
        // that begins so.
        let sign = ["\nOVSDB ", self.magic.word(), " "].concat();
        let next = memmem::find(&file[at..limit], sign.as_bytes());
        (Piece::Lost, next.map_or(limit, |next| at + next + 1))
    }

    fn restored(&self, body: Range<usize>, text: Vec<u8>, what: Restored) -> (Piece, usize) {
        let end = body.end;
        let restored = Some((text, what));
        (Piece::Record { body, restored }, end)
    }
}

impl Iterator for Pieces<'_> {
    type Item = (Range<usize>, Piece);

    fn next(&mut self) -> Option<(Range<usize>, Piece)> {
        if self.at == self.file.len() {
            return None;
        }
        let (piece, end) = self.piece();
        assert!(end > self.at, "every piece takes the file further");
        let range = self.at..end;
        self.at = end;
        Some((range, piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::append;

    fn file() -> (Vec<u8>, Vec<usize>) {
        let (mut file, mut starts) = (Vec::new(), Vec::new());
        for body in [
            r#"{"name":"D"}"#,
            r#"{"a":1,"b":"text"}"#,
            r#"{"c":[1,2,3]}"#,
        ] {
            starts.push(file.len());
            append(&mut file, body);
        }
        (file, starts)
    }

    #[test]
    fn every_flipped_bit_is_restored() {
        let (intact, starts) = file();
        let bodies = |file: &[u8]| -> Vec<Vec<u8>> {
            let pieces = Pieces::new(file, Magic::Standalone);
            pieces
                .map(|(_, piece)| match piece {
                    Piece::Record { body, restored } => {
                        restored.map_or_else(|| file[body].to_vec(), |(text, _)| text)
                    }
                    Piece::Lost => Vec::new(),
                })
                .collect()
        };
        let expected = bodies(&intact);
        for at in starts[1]..starts[2] {
            for bit in 0..8 {
                let mut damaged = intact.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(bodies(&damaged), expected, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn what_cannot_be_restored_ends_where_the_next_record_begins() {
        let (mut file, starts) = file();
        file[starts[1] + 60..starts[1] + 70].fill(b'#');
        let pieces: Vec<_> = Pieces::new(&file, Magic::Standalone).collect();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1], (starts[1]..starts[2], Piece::Lost));
        file[starts[1]..starts[1] + 30].fill(0);
        let pieces: Vec<_> = Pieces::new(&file, Magic::Standalone).collect();
        assert_eq!(pieces[1], (starts[1]..starts[2], Piece::Lost));
        // The record after it is damaged too.
        let cut = &file[..file.len() - 9];
        let pieces: Vec<_> = Pieces::new(cut, Magic::Standalone).collect();
        assert_eq!(pieces[1], (starts[1]..starts[2], Piece::Lost));
        assert_eq!(pieces[2], (starts[2]..cut.len(), Piece::Lost));
    }
}
