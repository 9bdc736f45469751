//! Segments of a database's history, and histories of one file.

use std::ops::ControlFlow;

use corvid_data::{HashSeed, Uuid, UuidSource};
use corvid_history::segment::Segment;
use corvid_history::{Filter, Part, Range, ReadAt, SegmentWriter, Timeline};
use corvid_log::header::Header;

/// The last bytes of a segment: numbers of frames and bytes, a version, SHA-1, a magic.
const TRAILER_BYTES: usize = 40;
const HASH_AT: usize = 12;
const MAGIC: &[u8] = b"CRVDHIST";

/// Reads the input as a segment. Nothing that it claims is believed without a check, so reading
/// ends with a text of the promised length or with an error; an intact text can be compressed
/// again. The input, or its text, is read as a history too.
///
/// # Panics
/// If one of these invariants is broken.
pub fn segments(input: &[u8]) {
    read(input);
    // A random change hardly ever comes with the right hash.
    if let Some(mended) = with_hash(input) {
        read(&mended);
    }
}

fn read(input: &[u8]) {
    if let Ok(segment) = Segment::open(input) {
        let length = segment.index().text_length;
        if segment.verify().is_ok() {
            let mut text = Vec::new();
            let mut room = [0; 1000];
            loop {
                match segment
                    .read_text(&mut room, text.len() as u64)
                    .expect("verified")
                {
                    0 => break,
                    got => text.extend_from_slice(&room[..got]),
                }
            }
            assert_eq!(text.len() as u64, length);
            let mut again = Vec::new();
            let mut writer = SegmentWriter::new();
            if writer.push(&text, &mut again).is_ok() && writer.finish(&mut again).is_ok() {
                Segment::open(&again[..])
                    .expect("new")
                    .verify()
                    .expect("intact");
            }
        }
    }
    if let Ok(part) = Part::present("f", input) {
        history(part);
    }
}

/// Walks through a history, and loads the state at its end and its beginning.
fn history<F: ReadAt>(part: Part<F>) {
    let Ok(timeline) = Timeline::of(vec![part]) else {
        return;
    };
    let _ = timeline.walk(&Filter::default(), Range::default(), &mut |_| {
        ControlFlow::Continue(())
    });
    let mut uuids = Numbers(0);
    for position in [timeline.end(), timeline.beginning()].into_iter().flatten() {
        let _ = timeline.state_at(position, HashSeed::new(1), &mut uuids);
    }
}

/// The input with the right hash of its index, if it ends like a segment.
fn with_hash(input: &[u8]) -> Option<Vec<u8>> {
    let trailer_at = input.len().checked_sub(TRAILER_BYTES)?;
    let trailer = &input[trailer_at..];
    if !trailer.ends_with(MAGIC) {
        return None;
    }
    let number = |at: usize| -> Option<usize> {
        let bytes = trailer.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let payload = number(0)?.checked_mul(32)?.checked_add(number(4)?)?;
    let start = trailer_at.checked_sub(payload)?;
    let hash = Header::of(&input[start..trailer_at + HASH_AT]).sha1;
    let mut mended = input.to_vec();
    mended[trailer_at + HASH_AT..trailer_at + HASH_AT + hash.len()].copy_from_slice(&hash);
    Some(mended)
}

/// Row versions in order.
struct Numbers(u64);

impl UuidSource for Numbers {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.0.to_be_bytes());
        Uuid::from_random(bytes)
    }
}
