//! Framing and reading of JSON.

use corvid_json::{Assembler, Reader, Value};

/// Returns all frames of a stream, and whether the stream ended with an error. `cuts` returns the
/// lengths of the pieces in which the stream is read.
fn frames(stream: &[u8], mut cuts: impl FnMut() -> usize) -> (Vec<Vec<u8>>, bool) {
    let mut assembler = Assembler::default();
    let mut frames = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let (input, later) = rest.split_at(cuts().clamp(1, rest.len()));
        for text in assembler.texts(input) {
            match text {
                Ok(text) => frames.push(text.into_owned()),
                Err(_) => return (frames, true),
            }
        }
        rest = later;
    }
    (frames, false)
}

/// Framing: the frames do not depend on how the stream is cut, and a valid text is one frame.
///
/// # Panics
/// If one of these invariants is broken.
pub fn frame(stream: &[u8]) {
    let whole = frames(stream, || usize::MAX);
    let mut state = stream.len();
    let irregular = frames(stream, || {
        state = state.wrapping_mul(0x5851_f42d).wrapping_add(12_345);
        (state >> 7) % 150
    });
    assert_eq!(irregular, whole, "cut at random places");
    assert_eq!(frames(stream, || 1), whole, "byte by byte");
    let mut reader = Reader::new(stream);
    if reader.outermost().is_ok() && reader.skip().is_ok() {
        let text = stream[..reader.offset()].trim_ascii_start();
        assert_eq!(
            whole.0.first().map(Vec::as_slice),
            Some(text),
            "the reader's text is the first frame"
        );
    }
}

/// Reading: skipping a value, building its tree and the reader of trusted text agree. A written
/// tree reads back as the same tree.
///
/// # Panics
/// If one of these invariants is broken.
pub fn read(text: &[u8]) {
    let mut strict = Reader::new(text);
    let skipped = strict.skip();
    let mut building = Reader::new(text);
    let built = building.value();
    assert_eq!(skipped.as_ref().err(), built.as_ref().err());
    let (Ok(skipped), Ok(built)) = (skipped, built) else {
        return;
    };
    assert_eq!(strict.offset(), building.offset());
    let mut trusted = Reader::trusted(text);
    assert_eq!(trusted.skip().as_deref(), Ok(skipped));
    // Writing a real drops digits, and the written text may be read as an integer. After the first
    // time, nothing changes any more.
    let again = Value::parse(&built.to_bytes()).expect("what was written reads back");
    assert_eq!(Value::parse(&again.to_bytes()).as_ref(), Ok(&again));
    let mut pretty = Vec::new();
    again.write_pretty(&mut pretty);
    assert_eq!(
        Value::parse(&pretty).expect("so does the indented form"),
        again
    );
}
