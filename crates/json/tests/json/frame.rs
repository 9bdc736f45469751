//! Framing at its edges: how a text begins, the depth limit, and the positions of errors in a
//! stream.

use corvid_json::frame::{Framed, Framer};
use corvid_json::{DEPTH_MAX, Error};

fn error(inputs: &[&[u8]]) -> String {
    let mut framer = Framer::new();
    for input in inputs {
        let mut input = *input;
        while !input.is_empty() {
            match framer.advance(input) {
                Ok(Framed::Complete { end, .. }) => input = &input[end..],
                Ok(Framed::Partial { .. }) => break,
                Err(error) => return error.to_string(),
            }
        }
    }
    "no error".to_owned()
}

#[test]
fn a_text_begins_with_a_bracket() {
    let beginning = "syntax error at beginning of input";
    assert_eq!(
        error(&[b"BAD"]),
        "line 0, column 0, byte 0: invalid character 'B'"
    );
    assert_eq!(
        error(&[b"\"abc\""]),
        format!("line 0, column 4, byte 4: {beginning}")
    );
    assert_eq!(
        error(&[b"12 "]),
        format!("line 0, column 2, byte 2: {beginning}")
    );
    assert_eq!(
        error(&[b" nul "]),
        "line 0, column 4, byte 4: invalid keyword 'nul'"
    );
    assert_eq!(
        error(&[b"}"]),
        format!("line 0, column 0, byte 0: {beginning}")
    );
    assert_eq!(
        error(&[b"\x01"]),
        "line 0, column 0, byte 0: invalid character U+0001"
    );
    assert_eq!(
        error(&[b"\xef\xbb\xbf[]"]),
        "line 0, column 0, byte 0: invalid character U+00ef"
    );
}

#[test]
fn positions_count_from_the_end_of_the_last_text() {
    assert_eq!(
        error(&[b"{\"id\":1}\n  BAD"]),
        "line 1, column 2, byte 3: invalid character 'B'"
    );
    assert_eq!(
        error(&[b"[[", b"]]\n", b" \n ", b"  BAD"]),
        "line 2, column 3, byte 6: invalid character 'B'"
    );
}

#[test]
fn depth_is_limited_at_any_cut() {
    let deepest = [vec![b'['; DEPTH_MAX], vec![b']'; DEPTH_MAX]].concat();
    let length = deepest.len();
    assert_eq!(
        Framer::new().advance(&deepest),
        Ok(Framed::Complete {
            start: 0,
            end: length
        })
    );
    let deeper = vec![b'['; DEPTH_MAX + 1];
    let expected = "line 0, column 1000, byte 1000: input exceeds maximum nesting depth 1000";
    assert_eq!(error(&[&deeper]), expected);
    for cut in [1, 63, 64, 65, 999, 1000] {
        assert_eq!(
            error(&[&deeper[..cut], &deeper[cut..]]),
            expected,
            "cut at {cut}"
        );
    }
}

#[test]
fn brackets_close_exactly_at_block_edges() -> Result<(), Error> {
    for length in 2..200 {
        let text = [b"[".to_vec(), vec![b' '; length - 2], b"][".to_vec()].concat();
        let mut framer = Framer::new();
        assert_eq!(
            framer.advance(&text)?,
            Framed::Complete {
                start: 0,
                end: length
            }
        );
        assert!(!framer.is_mid_text());
        assert_eq!(
            framer.advance(&text[length..])?,
            Framed::Partial { start: 0 }
        );
        assert!(framer.is_mid_text());
    }
    Ok(())
}

#[test]
fn white_space_opens_nothing() {
    let mut framer = Framer::new();
    assert_eq!(framer.advance(b""), Ok(Framed::Partial { start: 0 }));
    assert_eq!(framer.advance(b" \t\r\n"), Ok(Framed::Partial { start: 4 }));
    assert!(!framer.is_mid_text());
}
