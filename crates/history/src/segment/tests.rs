//! A segment gives back its text, zstd reads it too, and damage anywhere is noticed.

use corvid_log::{Magic, Record};

use super::*;
use crate::ReadAt;

fn append(text: &mut Vec<u8>, body: &str) {
    let mut record = Record::begin(text, Magic::Standalone);
    record.body().extend_from_slice(body.as_bytes());
    record.finish();
}

/// A file of several frames, with one record that is longer than a frame.
fn text() -> Vec<u8> {
    let mut text = Vec::new();
    append(
        &mut text,
        r#"{"name":"Demo","tables":{},"version":"1.0.0"}"#,
    );
    let mut state = 1u64;
    for number in 0..4000u64 {
        let count = if number == 2000 { 60_000 } else { 10 };
        let mut noise = String::new();
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            noise.push_str(&format!("{state:x}"));
        }
        let date_ms = 1_700_000_000_000 + number;
        append(
            &mut text,
            &format!(r#"{{"_comment":"{noise}","_date":{date_ms}}}"#),
        );
    }
    text
}

fn compress(text: &[u8], piece: usize) -> (Vec<u8>, Summary) {
    let mut out = Vec::new();
    let mut writer = SegmentWriter::new();
    for piece in text.chunks(piece) {
        writer.push(piece, &mut out).expect("compressed");
    }
    let summary = writer.finish(&mut out).expect("finished");
    (out, summary)
}

#[test]
fn a_segment_has_the_text_and_knows_its_records() {
    let text = text();
    let (segment, summary) = compress(&text, 100_000);
    assert_eq!(
        compress(&text, 7777).0,
        segment,
        "pieces make no difference"
    );
    assert_eq!(summary.bytes, segment.len() as u64);
    assert_eq!(summary.transactions, 4000);
    assert_eq!(summary.first_ms, 1_700_000_000_000);
    assert_eq!(summary.last_ms, 1_700_000_003_999);

    let opened = Segment::open(&segment[..]).expect("a segment");
    assert_eq!(opened.index().summary(), summary);
    assert_eq!(opened.index().identity.name, "Demo");
    assert_eq!(opened.index().identity.version, "1.0.0");
    opened.verify().expect("intact");
    let mut whole = vec![0; text.len()];
    crate::read_at::read_exactly(&opened, &mut whole, 0).expect("read");
    assert!(whole == text);
    assert_eq!(opened.read_at(&mut [0; 10], text.len() as u64), Ok(0));

    let frames = &opened.index().frames;
    assert!(frames.len() > 2);
    let mut records = 0;
    for frame in frames {
        assert_eq!(frame.record, records);
        records += u64::from(frame.records);
        if let Some(first) = frame.first_record {
            let start = (frame.text_offset + u64::from(first)) as usize;
            assert!(text[start..].starts_with(b"OVSDB JSON "));
        }
        // Only the long record spans frames.
        let is_cut = frame.first_record != Some(0);
        assert!(!is_cut || frame.record >= 2001, "{frame:?}");
    }
    assert_eq!(records, 4001);
}

#[test]
fn zstd_decompresses_a_segment_to_the_text() {
    let text = text();
    let (segment, _) = compress(&text, 65_536);
    let decompressed = zstd::stream::decode_all(&segment[..]).expect("zstd's own frames");
    assert!(decompressed == text);
}

#[test]
fn a_torn_end_stays_in_the_text() {
    let mut text = Vec::new();
    append(&mut text, r#"{"name":"Demo","tables":{}}"#);
    let good = text.len() as u64;
    text.extend_from_slice(b"OVSDB JSON 300 c76f8a00385625731c7e0849");
    let (segment, _) = compress(&text, 10);
    let opened = Segment::open(&segment[..]).expect("a segment");
    assert_eq!(opened.index().good_length, good);
    assert_eq!(opened.index().text_length, text.len() as u64);
    assert_eq!(
        (opened.index().records, opened.index().transactions),
        (1, 0)
    );
}

#[test]
fn a_text_that_is_no_database_is_refused() {
    for text in [&b""[..], b"hello\n", &[b'x'; 1000]] {
        let mut out = Vec::new();
        let mut writer = SegmentWriter::new();
        let pushed = writer.push(text, &mut out);
        let result = pushed.and_then(|()| writer.finish(&mut out));
        assert_eq!(result, Err(SegmentError::NotDatabase));
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed_or_ignored() {
    let mut text = Vec::new();
    append(&mut text, r#"{"name":"Demo","tables":{}}"#);
    append(&mut text, r#"{"_date":1700000001000}"#);
    let (segment, _) = compress(&text, 1000);
    // zstd ignores a few bits, which do not change the text.
    let check = |bytes: &[u8]| {
        let opened = Segment::open(bytes)?;
        opened.verify()?;
        let mut read = vec![0; text.len()];
        crate::read_at::read_exactly(&opened, &mut read, 0).map_err(SegmentError::Read)?;
        Ok::<_, SegmentError>(read == text)
    };
    assert_eq!(check(&segment), Ok(true));
    assert_eq!(
        Segment::open(&segment[..]).map(|it| it.index().ids.entries),
        Ok(1)
    );
    for length in 0..segment.len() {
        assert!(check(&segment[..length]).is_err(), "cut to {length}");
    }
    for at in 0..segment.len() {
        for bit in 0..8 {
            let mut flipped = segment.clone();
            flipped[at] ^= 1 << bit;
            match check(&flipped) {
                Err(_) => {}
                Ok(is_same) => assert!(is_same, "bit {bit} of byte {at}"),
            }
        }
    }
}

/// Counts what is read of a segment.
struct Counted<'s> {
    bytes: &'s [u8],
    read: &'s std::cell::Cell<usize>,
}

impl ReadAt for Counted<'_> {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        let got = self.bytes.read_at(room, offset)?;
        self.read.set(self.read.get() + got);
        Ok(got)
    }

    fn length(&self) -> Result<u64, String> {
        self.bytes.length()
    }
}

#[test]
fn a_transaction_is_found_by_its_id_without_its_text() {
    let text = text();
    let (bytes, summary) = compress(&text, 100_000);
    let read_bytes = std::cell::Cell::new(0);
    let counted = Counted {
        bytes: &bytes,
        read: &read_bytes,
    };
    let segment = Segment::open(counted).expect("a segment");
    let mut records =
        crate::records::Records::new(&text, Magic::Standalone, (0, 0), text.len() as u64, false);
    records.next().expect("the schema");
    while let Some(heading) = records.next().expect("a record") {
        let beginning = *heading.sha1.first_chunk().expect("long enough");
        let found = segment.find_ids(beginning).expect("a table");
        assert!(found.expect("a table").contains(&(heading.number - 1)));
        if heading.number == 10 {
            // The index, and ten times the table.
            let index = 40 + 8 + 32 * segment.index().frames.len() + 200;
            let tables = 10 * (8 + 4 * summary.transactions as usize);
            let read = read_bytes.get();
            assert!((tables..tables + index).contains(&read), "{read}");
        }
    }
    assert_eq!(segment.find_ids(*b"none"), Ok(Some(Vec::new())));
}
