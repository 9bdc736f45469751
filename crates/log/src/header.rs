//! The header line of a record: `OVSDB <magic> <length> <sha1>`.
//!
//! Written strictly, read as leniently as the reference reads (docs/spec/storage.md 1.2). The
//! length goes through a C number parser, so leading white space, a sign and leading zeros pass;
//! everything else must match exactly. The first header line also identifies the kind of file. The
//! record reader and writer call this module; it knows nothing about bodies.

use corvid_json::{hex, write};
use sha1::{Digest, Sha1};

use crate::FormatError;

/// The longest header line that is accepted, LF included. The reference reads headers into a buffer
/// of this size and rejects a line that does not fit.
pub const LINE_BYTES_MAX: usize = 127;

/// The kind of file, named by every header in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Magic {
    /// `JSON`: a standalone database.
    Standalone,
    /// `CLUSTER`: a member of a cluster.
    Clustered,
}

/// A parsed header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the body, its final LF included. Untrusted: may exceed the file, or memory.
    pub length: u64,
    /// SHA-1 of the body.
    pub sha1: [u8; 20],
}

impl Magic {
    /// The magic word in the header.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Magic::Standalone => "JSON",
            Magic::Clustered => "CLUSTER",
        }
    }

    /// Identifies the kind of file from `prefix`: its first [`LINE_BYTES_MAX`] bytes, or all of it
    /// if it is shorter.
    ///
    /// # Errors
    /// The file is empty, does not begin with a header, or is of another kind.
    pub fn identify(prefix: &[u8]) -> Result<Magic, FormatError> {
        if prefix.is_empty() {
            return Err(FormatError::Unidentified);
        }
        let line = first_line(prefix).ok_or(FormatError::Unexpected)?;
        let (word, _) = split_header(line).ok_or(FormatError::Unexpected)?;
        [Magic::Standalone, Magic::Clustered]
            .into_iter()
            .find(|magic| magic.word().as_bytes() == word)
            .ok_or(FormatError::Unidentified)
    }
}

impl Header {
    /// Hashes a body, which includes its final LF, and returns its header.
    #[must_use]
    pub fn of(body: &[u8]) -> Header {
        Header::of_pieces(&[body])
    }

    /// Like [`Header::of`], for a body in pieces.
    #[must_use]
    pub fn of_pieces(body: &[&[u8]]) -> Header {
        let mut hash = Sha1::new();
        body.iter().for_each(|piece| hash.update(piece));
        Header {
            length: body.iter().map(|piece| piece.len() as u64).sum(),
            sha1: hash.finalize().into(),
        }
    }

    /// Parses a header line without its LF.
    ///
    /// # Errors
    /// The line is malformed. The value is the length of its prefix that messages show
    /// (docs/spec/storage.md 1.4).
    pub fn parse(line: &[u8], magic: Magic) -> Result<Header, usize> {
        match split_header(line) {
            Some((word, header)) if word == magic.word().as_bytes() => Ok(header),
            _ => Err(shown_bytes(line)),
        }
    }

    /// Appends the line, LF included.
    pub fn write(&self, magic: Magic, out: &mut Vec<u8>) {
        out.reserve(LINE_BYTES_MAX);
        out.extend_from_slice(b"OVSDB ");
        out.extend_from_slice(magic.word().as_bytes());
        out.push(b' ');
        // A body fits into memory, so its length always fits.
        write::integer(out, i64::try_from(self.length).unwrap_or(i64::MAX));
        out.push(b' ');
        write_hex(&self.sha1, out);
        out.push(b'\n');
    }
}

/// Appends a hash as 40 lower-case digits.
pub(crate) fn write_hex(sha1: &[u8; 20], out: &mut Vec<u8>) {
    let mut digits = [0; 40];
    let words = sha1.as_chunks::<4>().0.iter();
    for (eight, word) in digits.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *eight = write::hexadecimal(*word);
    }
    out.extend_from_slice(&digits);
}

/// The first line without its LF, if it ends within [`LINE_BYTES_MAX`].
pub(crate) fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let end = memchr::memchr(b'\n', window)?;
    Some(&window[..end])
}

/// Length of the prefix of a malformed header line that messages show: up to the end of the magic
/// word if the line begins like a header, else up to the first NUL. (The reference overwrites the
/// space after the word while it parses.)
pub(crate) fn shown_bytes(line: &[u8]) -> usize {
    let word_end = line
        .strip_prefix(b"OVSDB ")
        .and_then(|rest| rest.iter().position(|byte| *byte == b' '))
        .map_or(line.len(), |at| at + b"OVSDB ".len());
    let nul = line.iter().position(|byte| *byte == 0);
    nul.map_or(word_end, |nul| nul.min(word_end))
}

/// Splits a well-formed header line into magic word and header.
fn split_header(line: &[u8]) -> Option<(&[u8], Header)> {
    let rest = line.strip_prefix(b"OVSDB ")?;
    let space = rest.iter().position(|byte| *byte == b' ')?;
    let (word, rest) = (&rest[..space], &rest[space + 1..]);
    let (length, rest) = parse_length(rest)?;
    let digits = rest.strip_prefix(b" ")?;
    let sha1 = parse_hex(digits)?;
    Some((word, Header { length, sha1 }))
}

/// Parses like C's `strtoull`: white space, a sign (minus wraps around), digits. Rejects zero and
/// the largest value.
fn parse_length(text: &[u8]) -> Option<(u64, &[u8])> {
    let blank = |byte: &u8| matches!(byte, b' ' | 9..=13);
    let text = &text[text.iter().position(|byte| !blank(byte))?..];
    let (negative, text) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let magnitude = digits.iter().try_fold(0u64, |sum, digit| {
        sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    let length = if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    (length != 0 && length != u64::MAX).then_some((length, rest))
}

fn parse_hex(digits: &[u8]) -> Option<[u8; 20]> {
    match digits.as_chunks() {
        (eights, []) => hex::bytes::<5>(eights.try_into().ok()?)?
            .as_flattened()
            .try_into()
            .ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "5f36b2ea290645ee34d943220a14b54ee5ea5be5";

    fn length_of(middle: &str) -> Option<u64> {
        let line = format!("OVSDB JSON {middle} {HASH}");
        Header::parse(line.as_bytes(), Magic::Standalone)
            .ok()
            .map(|header| header.length)
    }

    #[test]
    fn length_is_read_like_a_c_number() {
        for (text, length) in [
            ("3", 3),
            ("+3", 3),
            ("0003", 3),
            ("    3", 3),
            ("\t3", 3),
            ("\u{b}\u{c}\r3", 3),
            ("-3", u64::MAX - 2),
        ] {
            assert_eq!(length_of(text), Some(length), "{text:?}");
        }
        for text in [
            "0",
            "-0",
            "",
            "x",
            "0x3",
            "+ 3",
            "3 ",
            "18446744073709551615",
            "99999999999999999999999",
        ] {
            assert_eq!(length_of(text), None, "{text:?}");
        }
    }

    #[test]
    fn hash_is_exact_but_either_case() {
        let parse = |line: String| Header::parse(line.as_bytes(), Magic::Standalone);
        assert!(parse(format!("OVSDB JSON 3 {}", HASH.to_uppercase())).is_ok());
        for line in [
            format!("OVSDB JSON 3 {HASH} "),
            format!("OVSDB JSON 3 {HASH}\r"),
            format!("OVSDB JSON 3 {HASH}a"),
            format!("OVSDB JSON 3 {}", &HASH[1..]),
            format!("OVSDB JSON 3{HASH}"),
            format!("OVSDB  JSON 3 {HASH}"),
            format!("OVSDB\tJSON 3 {HASH}"),
        ] {
            assert!(parse(line.clone()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn shown_part_ends_after_the_magic_word() {
        for (line, shown) in [
            ("OVSDB JSON 5", "OVSDB JSON"),
            ("OVSDB CLUSTER 5", "OVSDB CLUSTER"),
            ("OVSDB JS", "OVSDB JS"),
            ("OVS", "OVS"),
            ("", ""),
            ("a\0b", "a"),
            ("OVSDB JSON\0 3 ", "OVSDB JSON"),
        ] {
            let length = Header::parse(line.as_bytes(), Magic::Standalone).unwrap_err();
            assert_eq!(&line[..length], shown);
        }
    }

    #[test]
    fn first_line_identifies_the_kind_of_file() {
        let line = |magic: &str| format!("OVSDB {magic} 3 {HASH}\n{{}}\n");
        assert_eq!(
            Magic::identify(line("JSON").as_bytes()),
            Ok(Magic::Standalone)
        );
        assert_eq!(
            Magic::identify(line("CLUSTER").as_bytes()),
            Ok(Magic::Clustered)
        );
        assert_eq!(
            Magic::identify(line("FOO").as_bytes()),
            Err(FormatError::Unidentified)
        );
        assert_eq!(Magic::identify(b""), Err(FormatError::Unidentified));
        assert_eq!(Magic::identify(b"hello\n"), Err(FormatError::Unexpected));
        assert_eq!(
            Magic::identify(b"OVSDB JSON 3 "),
            Err(FormatError::Unexpected)
        );
    }

    #[test]
    fn written_header_is_read_back() {
        let header = Header {
            length: 145,
            sha1: parse_hex(HASH.as_bytes()).expect("forty digits"),
        };
        let mut line = Vec::new();
        header.write(Magic::Clustered, &mut line);
        assert_eq!(line, format!("OVSDB CLUSTER 145 {HASH}\n").into_bytes());
        assert_eq!(
            Header::parse(&line[..line.len() - 1], Magic::Clustered),
            Ok(header)
        );
    }
}
