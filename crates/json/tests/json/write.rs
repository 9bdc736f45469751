//! The exact text that is written.

use corvid_json::{Value, write};

fn compact(text: &str) -> String {
    Value::parse(text.as_bytes()).expect(text).to_string()
}

#[test]
fn members_are_sorted_and_the_last_of_equal_names_wins() {
    assert_eq!(compact(r#"{"b":1,"a":2,"b":3}"#), r#"{"a":2,"b":3}"#);
}

#[test]
fn numbers_are_written_by_value() {
    assert_eq!(
        compact("[1.50, -0, 1e3, 1e15, 1e19, 1e-5]"),
        "[1.5,0,1000,1000000000000000,1e+19,1e-05]"
    );
    assert_eq!(compact("[12345678901234567890]"), "[1.23456789012346e+19]");
    for integer in [0, 7, -1, 10, i64::MAX, i64::MIN] {
        let mut out = Vec::new();
        write::integer(&mut out, integer);
        assert_eq!(String::from_utf8(out).unwrap(), integer.to_string());
    }
}

#[test]
fn only_quotes_backslashes_and_control_bytes_are_escaped() {
    assert_eq!(compact(r#""\u00e9\/\u007f""#), "\"\u{e9}/\x7f\"");
    let control: Vec<u8> = (1..0x20).collect();
    assert_eq!(
        Value::string(control).to_string(),
        "\"\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f\\u0010\\u0011\\u0012\\u0013\\u0014\
         \\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f\""
    );
    assert_eq!(Value::string(r#"a"b\c"#).to_string(), r#""a\"b\\c""#);
    let mut out = Vec::new();
    write::string(&mut out, b"\xff\xc3(");
    assert_eq!(out, b"\"\xff\xc3(\"");
}

#[test]
fn pretty_puts_each_element_on_its_line_and_closes_at_the_end() {
    let value = Value::parse(br#"{"rows":[],"a":[1,{"b":{}}],"c":"x"}"#).unwrap();
    let mut out = Vec::new();
    value.write_pretty(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}}],\n  \"c\": \"x\",\n  \"rows\": []}"
    );
}
