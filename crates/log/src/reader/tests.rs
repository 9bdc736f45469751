//! Every row of docs/spec/storage.md 1.2 and 1.4, with the reference's texts.

use super::*;
use crate::Record;
use crate::header::Header;
use crate::split::BATCH_BYTES;

/// A source that returns one byte at a time, then fails or ends.
struct Trickle<'a> {
    rest: &'a [u8],
    failure: Option<&'static str>,
}

impl Source for Trickle<'_> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        if self.rest.is_empty() {
            return self.failure.map_or(Ok(0), |reason| Err(reason.to_owned()));
        }
        room[0] = self.rest[0];
        self.rest = &self.rest[1..];
        Ok(1)
    }
}

fn record(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Header::of(body.as_bytes()).write(Magic::Standalone, &mut out);
    out.extend_from_slice(body.as_bytes());
    out
}

/// Reads everything after one good record of 54 + 3 bytes. Returns the number of further records,
/// or the error.
fn outcome(tail: &[u8]) -> Result<u64, String> {
    let mut file = record("{}\n");
    assert_eq!(file.len(), 57);
    file.extend_from_slice(tail);
    let whole = read_all(RecordReader::new(&file[..], Magic::Standalone));
    let trickled = read_all(RecordReader::new(
        Trickle {
            rest: &file,
            failure: None,
        },
        Magic::Standalone,
    ));
    assert_eq!(whole, trickled);
    whole
}

fn read_all<S: Source>(mut reader: RecordReader<S>) -> Result<u64, String> {
    loop {
        match reader.next_object() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(reader.records() - 1),
            Err(error) => {
                assert_eq!(reader.good_end(), 57);
                assert_eq!(reader.records(), 1);
                assert_eq!(reader.next(), Err(error.clone()), "errors are sticky");
                return Err(error.to_wire("a.db").to_string());
            }
        }
    }
}

const HASH: &str = "5f36b2ea290645ee34d943220a14b54ee5ea5be5";

#[test]
fn lenient_forms_are_accepted() {
    for tail in [
        record("{}\n"),
        record("{}"),
        record("{\n}\n"),
        record("{}  \n \n"),
        format!("OVSDB JSON   +003 {}\n{{}}\n", HASH.to_uppercase()).into_bytes(),
    ] {
        assert_eq!(
            outcome(&tail),
            Ok(1),
            "{:?}",
            String::from_utf8_lossy(&tail)
        );
    }
    assert_eq!(outcome(&[record("{}"), record("{}\n")].concat()), Ok(2));
    assert_eq!(outcome(b""), Ok(0));
}

#[test]
fn bad_headers_are_shown_as_far_as_they_were_parsed() {
    let shown = |tail: &[u8], line: &str| {
        let expected =
            format!("syntax error: a.db: parse error at offset 57 in header line \"{line}\"");
        assert_eq!(outcome(tail), Err(expected));
    };
    shown(b"OVSDB JSON 5", "OVSDB JSON");
    shown(b"OVSDB JSON 5 abc", "OVSDB JSON");
    shown(b"OVSDB JS", "OVSDB JS");
    shown(b"\n", "");
    shown(b"a\"b\\\tc\n", "a\"b\\\tc");
    shown(b"a\xffb\n", "a\u{fffd}b");
    shown(&[b'x'; 300], &"x".repeat(127));
    shown(
        format!("OVSDB CLUSTER 3 {HASH}\n{{}}\n").as_bytes(),
        "OVSDB CLUSTER",
    );
    shown(
        format!("OVSDB JSON 0 {HASH}\n{{}}\n").as_bytes(),
        "OVSDB JSON",
    );
    shown(
        format!("OVSDB JSON {}3 {HASH}\n{{}}\n", " ".repeat(80)).as_bytes(),
        "OVSDB JSON",
    );
    shown(format!("OVSDB JSON 3 {HASH}").as_bytes(), "OVSDB JSON");
    shown(
        format!("OVSDB JSON 3 {HASH}\r\n{{}}\n").as_bytes(),
        "OVSDB JSON",
    );
}

#[test]
fn bodies_must_be_whole_and_have_their_hash() {
    assert_eq!(
        outcome(format!("OVSDB JSON 9 {HASH}\n{{}}\n").as_bytes()),
        Err("I/O error: a.db: error reading 9 bytes starting at offset 111 (End of file)".into())
    );
    assert_eq!(
        outcome(format!("OVSDB JSON -3 {HASH}\n{{}}\n").as_bytes()),
        Err("I/O error: a.db: error reading 18446744073709551613 bytes starting at offset 112 (End of file)".into())
    );
    assert_eq!(
        outcome(format!("OVSDB JSON 3 {}\n{{}}\n", "0".repeat(40)).as_bytes()),
        Err(format!(
            "syntax error: a.db: 3 bytes starting at offset 111 have SHA-1 hash {HASH} but should have hash {}",
            "0".repeat(40)
        ))
    );
}

#[test]
fn bodies_must_be_one_object() {
    for (body, message) in [
        (
            "[1]\n",
            "4 bytes starting at offset 111 are not a JSON object",
        ),
        (
            "{\"a\":}\n",
            "7 bytes starting at offset 111 are not valid JSON (line 0, column 5, byte 5: syntax error expecting value)",
        ),
        (
            "{} x\n",
            "5 bytes starting at offset 111 are not valid JSON (line 0, column 4, byte 4: invalid keyword 'x')",
        ),
        (
            "{}}\n",
            "4 bytes starting at offset 111 are not valid JSON (line 0, column 2, byte 2: trailing garbage at end of input)",
        ),
        (
            "{} {}\n",
            "6 bytes starting at offset 111 are not valid JSON (line 0, column 3, byte 3: trailing garbage at end of input)",
        ),
        (
            "{\n",
            "2 bytes starting at offset 111 are not valid JSON (line 1, column 0, byte 2: unexpected end of input)",
        ),
        (
            "\n",
            "1 bytes starting at offset 111 are not valid JSON (line 1, column 0, byte 1: empty input stream)",
        ),
        (
            "12\n",
            "3 bytes starting at offset 111 are not valid JSON (line 0, column 2, byte 2: syntax error at beginning of input)",
        ),
        (
            "\"a\"\n",
            "4 bytes starting at offset 111 are not valid JSON (line 0, column 2, byte 2: syntax error at beginning of input)",
        ),
    ] {
        assert_eq!(
            outcome(&record(body)),
            Err(format!("syntax error: a.db: {message}")),
            "{body:?}"
        );
    }
}

#[test]
fn failing_source_is_reported_with_what_was_wanted() {
    let mut file = record("{}\n");
    file.extend_from_slice(&record("{\"a\":1}\n")[..56]);
    let source = Trickle {
        rest: &file,
        failure: Some("Input/output error"),
    };
    assert_eq!(
        read_all(RecordReader::new(source, Magic::Standalone)),
        Err(
            "I/O error: a.db: error reading 8 bytes starting at offset 111 (Input/output error)"
                .into()
        )
    );
}

#[test]
fn records_larger_than_one_read_pass() {
    let mut file = Vec::new();
    let long = "x".repeat(3 * BATCH_BYTES);
    for _ in 0..3 {
        let mut record = Record::begin(&mut file, Magic::Standalone);
        record
            .body()
            .extend_from_slice(format!("{{\"a\":\"{long}\"}}").as_bytes());
        record.finish();
    }
    let mut reader = RecordReader::new(&file[..], Magic::Standalone);
    let mut end = 0;
    while let Some(raw) = reader.next().expect("intact") {
        assert_eq!(raw.header_offset, end);
        end = raw.offset + raw.body.len() as u64;
    }
    assert_eq!(reader.records(), 3);
    assert_eq!(reader.good_end(), file.len() as u64);
}
