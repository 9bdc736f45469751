//! Generated texts: compared with an independent JSON parser, round trips, and streams cut
//! anywhere.

use corvid_json::frame::{Framed, Framer, unfinishable};
use corvid_json::{DEPTH_MAX, Number, Reader, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value as Theirs;

/// Converts our tree to the other parser's, for values on which both agree (integers in range,
/// valid UTF-8).
fn convert(value: &Value) -> Theirs {
    match value {
        Value::Null => Theirs::Null,
        Value::Bool(value) => Theirs::from(*value),
        Value::Integer(value) => Theirs::from(*value),
        Value::Real(value) => Theirs::from(*value),
        Value::String(text) => Theirs::from(text.to_string()),
        Value::Array(elements) => elements.iter().map(convert).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.to_string(), convert(value)))
            .collect(),
    }
}

/// Applies our number rule to their tree.
fn normalize(value: &mut Theirs) {
    match value {
        Theirs::Number(number) => {
            match corvid_json::number::parse(number.to_string().as_bytes()).expect("a number") {
                Number::Integer(integer) => *value = Theirs::from(integer),
                Number::Real(real) => *value = Theirs::from(real),
            }
        }
        Theirs::Array(elements) => elements.iter_mut().for_each(normalize),
        Theirs::Object(members) => members.values_mut().for_each(normalize),
        _ => {}
    }
}

/// A tree whose reals have at most 15 significant digits, so that writing loses nothing.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        (-1_000_000_i64..1_000_000).prop_map(|odd| Value::Real((2 * odd + 1) as f64 / 1024.0)),
        "[^\\x00]{0,40}".prop_map(Value::string),
        "[\\x00-\\x1f\"\\\\a]{0,20}".prop_map(|text| Value::string(text.replace('\0', ""))),
    ];
    leaf.prop_recursive(5, 100, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::Array),
            vec((".{0,8}", inner), 0..8).prop_map(|members| {
                let members = members
                    .into_iter()
                    .map(|(name, value)| (name.replace('\0', "").into_bytes().into(), value));
                Value::Object(members.collect())
            }),
        ]
    })
}

/// Nearly JSON: fragments joined at random.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let fragments: &[&str] = &[
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"",
        "\\",
        "\"a\"",
        "\"b\":",
        "1",
        "-0",
        "2.5",
        "1e3",
        "0",
        "true",
        "false",
        "null",
        " ",
        "\n",
        "\\u0041",
        "\\ud83d\\ude00",
        "\\\"",
        "x",
        "\u{e9}",
        "[1,2]",
        "{\"a\":1}",
        "\"\"",
    ];
    vec(prop::sample::select(fragments.to_vec()), 0..16)
        .prop_map(|parts| parts.concat().into_bytes())
}

/// All frames of a stream that arrives in pieces of the given lengths, and whether it ended in an
/// error.
fn frames(stream: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Option<usize>) {
    let mut framer = Framer::new();
    let (mut frames, mut kept) = (Vec::new(), Vec::new());
    let mut rest = stream;
    let mut cuts = cuts.iter().copied().chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() {
        let (mut input, later) =
            rest.split_at(cuts.next().map_or(rest.len(), |cut| cut.min(rest.len())));
        while !input.is_empty() {
            match framer.advance(input) {
                Ok(Framed::Complete { start, end }) => {
                    kept.extend_from_slice(&input[start..end]);
                    frames.push(std::mem::take(&mut kept));
                    input = &input[end..];
                }
                Ok(Framed::Partial { start }) => {
                    kept.extend_from_slice(&input[start..]);
                    input = &[];
                }
                Err(error) => return (frames, Some(error.byte)),
            }
        }
        assert_eq!(framer.is_mid_text(), !kept.is_empty());
        rest = later;
    }
    (frames, None)
}

/// Whether a number in this value has no finite 64-bit form.
fn has_number_out_of_range(value: &Theirs) -> bool {
    match value {
        Theirs::Number(number) => number.as_f64().is_none_or(f64::is_infinite),
        Theirs::Array(values) => values.iter().any(has_number_out_of_range),
        Theirs::Object(members) => members.values().any(has_number_out_of_range),
        _ => false,
    }
}

#[test]
fn numbers_beyond_the_largest_real_are_refused() {
    assert!(Value::parse(b"[1e310]").is_err());
    // The other parser accepts it if its feature `arbitrary_precision` is on, as in builds of the
    // whole workspace.
    if let Ok(theirs) = serde_json::from_slice::<Theirs>(b"[1e310]") {
        assert!(has_number_out_of_range(&theirs));
    }
    let theirs: Theirs = serde_json::from_slice(b"[1e300]").unwrap();
    assert!(!has_number_out_of_range(&theirs));
}

/// Whether these are the first two bytes of an encoded trailing surrogate.
fn is_trailing_surrogate(bytes: &[u8]) -> bool {
    matches!(bytes, [0xed, 0xb0..=0xbf])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn written_trees_read_back(value in tree()) {
        let text = value.to_bytes();
        prop_assert_eq!(&Value::parse(&text).unwrap(), &value);
        let mut pretty = Vec::new();
        value.write_pretty(&mut pretty);
        prop_assert_eq!(&Value::parse(&pretty).unwrap(), &value);
        let theirs: Theirs = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(convert(&value), theirs);
    }

    #[test]
    fn trusted_skipping_passes_over_the_same_bytes(value in tree(), tail in nearly()) {
        let mut text = value.to_bytes();
        let length = text.len();
        text.push(b',');
        text.extend(tail);
        prop_assert_eq!(Reader::new(&text).skip().unwrap().len(), length);
        prop_assert_eq!(Reader::trusted(&text).skip().unwrap().len(), length);
    }

    #[test]
    fn acceptance_agrees_with_an_independent_parser(text in nearly()) {
        let mut reader = Reader::new(&text);
        let skipped = reader.skip().and_then(|_| reader.end()).is_ok();
        let ours = Value::parse(&text);
        prop_assert_eq!(skipped, ours.is_ok());
        match (ours, serde_json::from_slice::<Theirs>(&text)) {
            (Ok(ours), Ok(mut theirs)) => {
                normalize(&mut theirs);
                prop_assert_eq!(convert(&ours), theirs);
            }
            (Err(_), Err(_)) => {}
            // A trailing surrogate without a leading one is encoded as it is, as in the reference.
            // The other parser rejects it.
            (Ok(ours), Err(_)) if ours.to_bytes().windows(2).any(is_trailing_surrogate) => {}
            // A number beyond the largest real is rejected. The other parser keeps its digits.
            (Err(_), Ok(theirs)) if has_number_out_of_range(&theirs) => {}
            (ours, theirs) => prop_assert!(false, "{:?} against {:?}", ours, theirs),
        }
    }

    #[test]
    fn no_prefix_of_a_good_text_is_unfinishable(value in tree(), cut in any::<prop::sample::Index>()) {
        let text = Value::Array(vec![value]).to_bytes();
        let cut = cut.index(text.len() + 1);
        prop_assert_eq!(unfinishable(&text[..cut], DEPTH_MAX), None);
    }

    #[test]
    fn an_unfinishable_prefix_is_never_completed(prefix in nearly(), rest in nearly()) {
        if let Some(fault) = unfinishable(&prefix, DEPTH_MAX) {
            let whole = [prefix, rest].concat();
            prop_assert_eq!(unfinishable(&whole, DEPTH_MAX).map(|fault| fault.byte), Some(fault.byte));
            prop_assert!(Value::parse(&whole).is_err());
        }
    }

    #[test]
    fn frames_do_not_depend_on_how_the_stream_is_cut(
        texts in vec((tree(), "[ \n]{0,3}"), 0..6),
        tail in nearly(),
        cuts in vec(1_usize..200, 0..40),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (value, space) in texts {
            let text = Value::Array(vec![value]).to_bytes();
            stream.extend_from_slice(space.as_bytes());
            stream.extend_from_slice(&text);
            expected.push(text);
        }
        let whole = frames(&stream, &[]);
        prop_assert_eq!(&whole, &(expected, None));
        prop_assert_eq!(&frames(&stream, &cuts), &whole);
        stream.extend(tail);
        let (whole, error) = frames(&stream, &[]);
        let (cut, cut_error) = frames(&stream, &cuts);
        prop_assert_eq!(cut, whole);
        prop_assert_eq!(cut_error.is_some(), error.is_some());
    }

    #[test]
    fn runs_of_backslashes_end_strings_rightly(runs in vec(0_usize..9, 1..40), cuts in vec(1_usize..70, 0..20)) {
        let text: Vec<u8> = runs.iter().flat_map(|&run| [vec![b'\\'; run], b"]\"[".to_vec()].concat()).collect();
        let stream = [b"[\"".as_slice(), &text].concat();
        prop_assert_eq!(frames(&stream, &cuts), bytewise_frames(&stream));
    }
}

/// The framing rule, spelled out one byte at a time.
fn bytewise_frames(stream: &[u8]) -> (Vec<Vec<u8>>, Option<usize>) {
    let (mut frames, mut start) = (Vec::new(), 0);
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for (at, &byte) in stream.iter().enumerate() {
        if depth == 0 && !matches!(byte, b'[' | b'{') {
            return (frames, Some(at - start));
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    frames.push(stream[start..=at].to_vec());
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    (frames, None)
}
