//! Messages and positions of syntax errors, as the reference's tools print them
//! (`ovsdb-tool query DB TEXT`).

use corvid_json::{DEPTH_MAX, Reader, Value};

/// Checks the error of a text, both parsed as a tree and skipped.
fn check(text: &[u8], position: (usize, usize, usize), message: &str) {
    let expected = format!(
        "line {}, column {}, byte {}: {message}",
        position.0, position.1, position.2
    );
    let shown = String::from_utf8_lossy(&text[..text.len().min(60)]);
    let tree = Value::parse_text(text).expect_err(&shown).to_string();
    assert_eq!(tree, expected, "{shown}");
    let mut reader = Reader::new(text);
    let skipped = reader
        .outermost()
        .and_then(|()| reader.skip())
        .and_then(|_| reader.end());
    assert_eq!(skipped.expect_err(&shown).to_string(), expected, "{shown}");
}

/// Checks the error of a one-line text, in which column and byte agree.
fn check_line(text: &str, byte: usize, message: &str) {
    check(text.as_bytes(), (0, byte, byte), message);
}

#[test]
fn beginning_and_end_of_input() {
    let beginning = "syntax error at beginning of input";
    check_line("", 0, "empty input stream");
    check_line(" ", 1, "empty input stream");
    check_line("\"a\"", 2, beginning);
    check_line("1", 1, beginning);
    check_line("1 2", 1, beginning);
    check_line("null", 4, beginning);
    check_line("]", 0, beginning);
    check_line(":", 0, beginning);
    for (text, byte) in [
        ("{", 1),
        ("{\"a\"", 4),
        ("{\"a\":", 5),
        ("{\"a\":1,", 7),
        ("[1,", 3),
        ("[1 ", 3),
    ] {
        check_line(text, byte, "unexpected end of input");
    }
    for (text, byte) in [("{\"a\":1", 7), ("[123", 5), ("[true", 6)] {
        check_line(text, byte, "unexpected end of input");
    }
    let trailing = "trailing garbage at end of input";
    for (text, byte) in [
        ("[] []", 3),
        ("[] 1", 4),
        ("[] \"a\"", 5),
        ("[]]", 2),
        ("[] {", 3),
    ] {
        check_line(text, byte, trailing);
    }
    check_line("[] x", 4, "invalid keyword 'x'");
}

#[test]
fn order_of_tokens() {
    let value = "syntax error expecting value";
    for (text, byte) in [("[1,]", 3), ("[}", 1), ("[,1]", 1), ("{\"a\":]", 5)] {
        check_line(text, byte, value);
    }
    let element = "syntax error expecting ']' or ','";
    for (text, byte) in [
        ("[1 2]", 4),
        ("[true1]", 6),
        ("[1:2]", 2),
        ("[1}", 2),
        ("[\"a\" \"b\"]", 7),
        ("[[] []]", 4),
    ] {
        check_line(text, byte, element);
    }
    let name = "syntax error parsing object expecting string";
    for (text, byte) in [
        ("{\"a\":1,}", 7),
        ("{1:2}", 2),
        ("{]", 1),
        ("{,", 1),
        ("{true:1}", 5),
        ("{[]:1}", 1),
    ] {
        check_line(text, byte, name);
    }
    let colon = "syntax error parsing object expecting ':'";
    for (text, byte) in [
        ("{\"a\" 1}", 6),
        ("{\"a\"]", 4),
        ("{\"a\",\"b\"}", 4),
        ("{\"a\":1,\"b\"}", 10),
    ] {
        check_line(text, byte, colon);
    }
    let member = "syntax error expecting '}' or ','";
    for (text, byte) in [
        ("{\"a\":1:2}", 6),
        ("{\"a\":1]", 6),
        ("{\"a\":1 \"b\":2}", 9),
        ("{\"a\":true false}", 15),
    ] {
        check_line(text, byte, member);
    }
}

#[test]
fn strings() {
    for text in [
        "[\"abc",
        "[\"\\",
        "[\"\\u",
        "[\"\\u00",
        "[\"\\ud800",
        "[\"\\ud800\\\"]",
    ] {
        check_line(text, text.len(), "unexpected end of input in quoted string");
    }
    for (text, byte, message) in [
        (r#"["\q"]"#, 4, r"bad escape \q"),
        (r#"{"\q":1}"#, 4, r"bad escape \q"),
        (r#"["\u12"]"#, 6, r"quoted string ends within \u escape"),
        (r#"["\uD8",""#, 6, r"quoted string ends within \u escape"),
        (
            r#"["\u0000"]"#,
            8,
            "null bytes not supported in quoted strings",
        ),
        (r#"["\u00zz"]"#, 8, r"malformed \u escape"),
        (r#"["\u+123"]"#, 8, r"malformed \u escape"),
        (r#"["\ud800"]"#, 8, "malformed escaped surrogate pair"),
        (r#"["\ud800x"]"#, 9, "malformed escaped surrogate pair"),
        (r#"["\ud800\n"]"#, 10, "malformed escaped surrogate pair"),
        (
            r#"["\ud800\u0041"]"#,
            14,
            "second half of escaped surrogate pair is not trailing surrogate",
        ),
        (
            r#"["\ud800\u0000"]"#,
            14,
            "null bytes not supported in quoted strings",
        ),
        (
            r#"["\ud800\u12"]"#,
            12,
            r"quoted string ends within \u escape",
        ),
        (r#"["\ud800\uzzzz"]"#, 14, r"malformed \u escape"),
        ("[\"a\x01b\"]", 3, "U+0001 must be escaped in quoted string"),
        ("[\"a\x01", 3, "U+0001 must be escaped in quoted string"),
    ] {
        check_line(text, byte, message);
    }
}

#[test]
fn numbers() {
    for (text, byte, message) in [
        ("[01]", 3, "leading zeros not allowed"),
        ("[-01]", 4, "leading zeros not allowed"),
        ("[00x]", 3, "leading zeros not allowed"),
        ("[-]", 2, "'-' must be followed by digit"),
        ("[--1]", 4, "'-' must be followed by digit"),
        ("-", 1, "'-' must be followed by digit"),
        ("[1.]", 3, "decimal point must be followed by digit"),
        ("[1.", 3, "decimal point must be followed by digit"),
        ("[-0.]", 4, "decimal point must be followed by digit"),
        ("[1e]", 3, "exponent must contain at least one digit"),
        ("[1e+]", 4, "exponent must contain at least one digit"),
        ("[1e999]", 6, "number outside valid range"),
        ("[-1e400]", 7, "number outside valid range"),
        ("[1e2147483647]", 13, "exponent outside valid range"),
        ("[0e99999999999]", 14, "exponent outside valid range"),
        ("[1.5.5]", 6, "syntax error in number"),
        ("[1-2]", 4, "syntax error in number"),
        ("[1e5x]", 5, "invalid keyword 'x'"),
        ("[0x10]", 3, "invalid keyword 'x'"),
    ] {
        check_line(text, byte, message);
    }
}

#[test]
fn keywords_and_characters() {
    for (text, byte, message) in [
        ("[nul]", 4, "invalid keyword 'nul'"),
        ("[nullx]", 6, "invalid keyword 'nullx'"),
        ("[truE]", 5, "invalid keyword 'truE'"),
        ("[t_x]", 2, "invalid keyword 't'"),
        ("nul", 3, "invalid keyword 'nul'"),
        ("tru", 3, "invalid keyword 'tru'"),
        ("[true_]", 5, "invalid character '_'"),
        ("[NULL]", 1, "invalid character 'N'"),
        ("BAD", 0, "invalid character 'B'"),
        ("[+1]", 1, "invalid character '+'"),
        ("[.5]", 1, "invalid character '.'"),
        ("[1 .5]", 3, "invalid character '.'"),
        ("[/]", 1, "invalid character '/'"),
        ("['a']", 1, "invalid character '''"),
        ("[\x01]", 1, "invalid character U+0001"),
        ("[\x0c]", 1, "invalid character U+000c"),
        ("\u{feff}[]", 0, "invalid character U+00ef"),
    ] {
        check_line(text, byte, message);
    }
    check(b"[\xff]", (0, 1, 1), "invalid character U+00ff");
}

#[test]
fn lines_are_counted() {
    check(
        b"[\"a\nb\"]",
        (0, 3, 3),
        "U+000A must be escaped in quoted string",
    );
    check(b"[1,\n\n  x]", (2, 3, 8), "invalid keyword 'x'");
    check(
        b"[1,\n\"a\nb\"]",
        (1, 2, 6),
        "U+000A must be escaped in quoted string",
    );
    check(b"[\"x\",\nbad]", (1, 3, 9), "invalid keyword 'bad'");
    check(b"\n\nx", (2, 1, 3), "invalid keyword 'x'");
    check(b"[1\n2]", (1, 1, 4), "syntax error expecting ']' or ','");
    check(b"[\"\\\n\"]", (1, 0, 4), "bad escape \\\n");
    check(b"[1\n", (1, 0, 3), "unexpected end of input");
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let deepest = nested(DEPTH_MAX);
    assert_eq!(Value::parse_text(&deepest).unwrap().to_bytes(), deepest);
    assert_eq!(Reader::new(&deepest).skip().unwrap(), deepest);
    let message = "input exceeds maximum nesting depth 1000";
    check(&nested(DEPTH_MAX + 1), (0, 1000, 1000), message);
    check(
        "{\"a\":".repeat(DEPTH_MAX + 1).as_bytes(),
        (0, 5000, 5000),
        message,
    );
    check(
        &vec![b'['; DEPTH_MAX],
        (0, 1000, 1000),
        "unexpected end of input",
    );
    check(
        &[vec![b'['; DEPTH_MAX], b"x".to_vec()].concat(),
        (0, 1001, 1001),
        "invalid keyword 'x'",
    );
}

#[test]
fn typed_reading_names_the_expected_kind() {
    assert_eq!(
        Reader::new(b"[1]").string().unwrap_err().message,
        "string expected"
    );
    assert_eq!(
        Reader::new(b"\"a\"").number().unwrap_err().message,
        "number expected"
    );
    assert_eq!(
        Reader::new(b"{}").begin_array().unwrap_err().message,
        "array expected"
    );
    assert_eq!(
        Reader::new(b"nul").null().unwrap_err().message,
        "invalid keyword 'nul'"
    );
    assert_eq!(
        Reader::new(b"\"a").begin_object().unwrap_err().message,
        "unexpected end of input in quoted string"
    );
}
