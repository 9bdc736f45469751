//! Tests of parsing the textual notation.

use super::*;
use crate::text::write_datum;
use crate::types::Bounds;

fn bounded(atom: AtomType, bounds: Bounds) -> BaseType {
    BaseType {
        bounds,
        ..BaseType::plain(atom)
    }
}

/// Up to 4096 integers from 0 to 4095, like `Bridge.flood_vlans`.
fn vlans() -> ColumnType {
    ColumnType {
        key: bounded(AtomType::Integer, Bounds::Integer { min: 0, max: 4095 }),
        value: None,
        min: 0,
        max: 4096,
    }
}

fn scalar(atom: AtomType, min: u32) -> ColumnType {
    ColumnType {
        min,
        ..ColumnType::scalar(atom)
    }
}

fn strings() -> ColumnType {
    ColumnType {
        value: Some(BaseType::plain(AtomType::String)),
        min: 0,
        max: ColumnType::UNLIMITED,
        ..ColumnType::scalar(AtomType::String)
    }
}

/// Parses each text and compares its printed form, or the error.
fn check(column_type: &ColumnType, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let found = match read_datum(text, column_type, &mut |name| {
            (name == "row").then_some(Uuid([0xab; 16]))
        }) {
            Ok(datum) => {
                let mut shown = String::new();
                write_datum(&mut shown, &datum, column_type);
                shown
            }
            Err(error) => error,
        };
        assert_eq!(found, *expected, "for {text:?}");
    }
}

#[test]
fn sets_of_integers() {
    check(
        &vlans(),
        &[
            ("1", "[1]"),
            ("[]", "[]"),
            ("[ ]", "[]"),
            (" [1]", "[1]"),
            ("[1] ", "[1]"),
            ("2,1", "[1, 2]"),
            ("1 2", "[1, 2]"),
            ("[ 1 , 2 ]", "[1, 2]"),
            ("[1,]", "[1]"),
            ("1, ", "[1]"),
            ("+5", "[5]"),
            ("\t5", "[5]"),
            ("00005", "[5]"),
            ("1\\2", "[12]"),
            (" ", "use \"[]\" to specify the empty set"),
            ("", "use \"[]\" to specify the empty set"),
            (
                "{}",
                "{}: unexpected \"{\" parsing set of up to 4096 integers",
            ),
            ("[1,2", "[1,2: missing \"]\" at end of data"),
            (
                "1,2]",
                "1,2]: unexpected \"]\" parsing set of up to 4096 integers",
            ),
            ("[1] x", "[1] x: trailing garbage after \"]\""),
            ("[1]]", "[1]]: trailing garbage after \"]\""),
            (
                "1,,2",
                "1,,2: unexpected \",\" parsing set of up to 4096 integers",
            ),
            (
                "1 , , 2",
                "1 , , 2: unexpected \",\" parsing set of up to 4096 integers",
            ),
            (
                "[,1]",
                "[,1]: unexpected \",\" parsing set of up to 4096 integers",
            ),
            (
                "1:2",
                "1:2: unexpected \":\" parsing set of up to 4096 integers",
            ),
            (
                "1<2",
                "1<2: unexpected \"<\" parsing set of up to 4096 integers",
            ),
            (
                "[[1]]",
                "[[1]]: unexpected \"[\" parsing set of up to 4096 integers",
            ),
            ("a", "\"a\" is not a valid integer or range"),
            ("1.0", "\"1.0\" is not a valid integer or range"),
            ("0x10", "\"0x10\" is not a valid integer or range"),
            ("5\t", "\"5\t\" is not a valid integer or range"),
            ("\"5\"", "\"\"5\"\" is not a valid integer or range"),
            (
                "99999999999999999999",
                "\"99999999999999999999\" is not a valid integer or range",
            ),
            ("1\\", "1\\: backslash at end of argument"),
            ("\"abc", "\"abc: quoted string extends past end of argument"),
            ("[1,1]", "[1,1]: set contains duplicate value"),
            (
                "4096",
                "constraint violation: 4096 is not in the valid range 0 to 4095 (inclusive)",
            ),
        ],
    );
}

#[test]
fn ranges() {
    check(
        &vlans(),
        &[
            ("1-3", "[1, 2, 3]"),
            ("5-5", "[5]"),
            ("[1-3,7]", "[1, 2, 3, 7]"),
            ("1-+3", "[1, 2, 3]"),
            ("1-\t3", "[1, 2, 3]"),
            ("[1-3,2]", "[1-3,2]: set contains duplicate value"),
            (
                "3-1",
                "\"3-1\" is not a valid range. Range end cannot be before start.",
            ),
            (
                "9000-1",
                "\"9000-1\" is not a valid range. Range end cannot be before start.",
            ),
            (
                "-10--5",
                "constraint violation: -10 is not in the valid range 0 to 4095 (inclusive)",
            ),
            (
                "0-9999",
                "constraint violation: 9999 is not in the valid range 0 to 4095 (inclusive)",
            ),
            ("--5", "\"--5\" is not a valid integer or range"),
            ("1-", "\"1-\" is not a valid integer or range"),
            ("-5-", "\"-5-\" is not a valid integer or range"),
            ("1-3-5", "\"1-3-5\" is not a valid integer or range"),
            ("1- 3", "\"1-\" is not a valid integer or range"),
        ],
    );
    let unlimited = ColumnType {
        max: ColumnType::UNLIMITED,
        ..scalar(AtomType::Integer, 0)
    };
    check(
        &unlimited,
        &[
            ("-10--9", "[-10, -9]"),
            (
                "0-4096",
                "constraint violation: Range \"0-4096\" is too big. Maximum allowed size is 4096.",
            ),
            (
                "-9223372036854775808-9223372036854775807",
                "constraint violation: Range \"-9223372036854775808-9223372036854775807\" is too big. Maximum allowed size is 4096.",
            ),
        ],
    );
    let widest = read_datum("0-4095", &unlimited, &mut |_| None);
    assert_eq!(widest.map(|datum| datum.len()), Ok(4096));
    check(
        &scalar(AtomType::Integer, 0),
        &[
            ("5-5", "5"),
            (
                "5-6",
                "5-6: 2 value(s) specified but the maximum number is 1",
            ),
        ],
    );
}

#[test]
fn scalars_count_their_values() {
    check(
        &scalar(AtomType::Boolean, 1),
        &[
            ("yes", "true"),
            ("[on]", "true"),
            ("1", "true"),
            ("no", "false"),
            ("off", "false"),
            ("0", "false"),
            (
                "TRUE",
                "\"TRUE\" is not a valid boolean (use \"true\" or \"false\")",
            ),
            (
                "\"true\"",
                "\"\"true\"\" is not a valid boolean (use \"true\" or \"false\")",
            ),
            ("[]", "[]: 0 value(s) specified but the minimum number is 1"),
            (
                "true false",
                "true false: 2 value(s) specified but the maximum number is 1",
            ),
        ],
    );
    check(
        &scalar(AtomType::Integer, 0),
        &[(
            "1,1",
            "1,1: 2 value(s) specified but the maximum number is 1",
        )],
    );
    check(
        &scalar(AtomType::Real, 0),
        &[
            ("1.50", "1.5"),
            ("-.5", "-0.5"),
            ("5.", "5"),
            ("1e20", "1e+20"),
            ("inf", "\"inf\" is not a valid real number"),
            ("1.5x", "\"1.5x\" is not a valid real number"),
        ],
    );
    check(
        &scalar(AtomType::Uuid, 0),
        &[
            ("@row", "abababab-abab-abab-abab-abababababab"),
            (
                "B3C0F7A4-0c2b-4a7e-9d6c-2f1c0f7a5d11",
                "b3c0f7a4-0c2b-4a7e-9d6c-2f1c0f7a5d11",
            ),
            ("x", "\"x\" is not a valid UUID"),
            ("@x", "\"@x\" is not a valid UUID"),
        ],
    );
}

#[test]
fn strings_are_literals_or_words() {
    check(
        &scalar(AtomType::String, 0),
        &[
            ("a\\ b", "\"a b\""),
            ("\"\\u0041\\/\"", "\"A/\""),
            ("\"\\uD83D\\uDE00\"", "\"\u{1f600}\""),
            ("\"a\tb\"", "\"a\\tb\""),
            ("a\nb", "\"a\\nb\""),
            ("\"\"", "\"\""),
            ("\"a\\\"b\"", "\"a\\\"b\""),
            ("true", "\"true\""),
            ("a-b.c_d", "a-b.c_d"),
            ("\"a\"b", "\"a\"b: missing quote at end of quoted string"),
            (
                "\"a\"b\"c\"",
                "\"a\"b\"c\": quoted string may not include unescaped \"",
            ),
            ("\"\\x\"", "\"\\x\": bad escape \\x"),
            (
                "\"\\u12\"",
                "\"\\u12\": quoted string ends within \\u escape",
            ),
            (
                "\"\\u0000\"",
                "\"\\u0000\": null bytes not supported in quoted strings",
            ),
            (
                "\"\\ud800\"",
                "\"\\ud800\": malformed escaped surrogate pair",
            ),
            (
                "\"\\udc00\"",
                "constraint violation: not a valid UTF-8 string: invalid UTF-8 sequence 0xed 0xb0",
            ),
        ],
    );
}

#[test]
fn maps() {
    const TYPE: &str = "map of (string, string) pairs";
    let empty = "An empty string is not valid as input; use \"\" to represent the empty string";
    check(
        &strings(),
        &[
            ("a=b", "{a=b}"),
            ("{}", "{}"),
            ("{ a=b , c=d }", "{a=b, c=d}"),
            ("a=b c=d,", "{a=b, c=d}"),
            ("a = b", "{a=b}"),
            ("\"a\"=\"b c\"", "{a=\"b c\"}"),
            ("a\\=b=c", "{\"a=b\"=c}"),
            ("true=5", "{\"true\"=\"5\"}"),
            ("\"\"=\"\"", "{\"\"=\"\"}"),
            ("", "use \"{}\" to specify the empty map"),
            ("{a=b", "{a=b: missing \"}\" at end of data"),
            ("{a=b}}", "{a=b}}: trailing garbage after \"}\""),
            ("a=b}", &format!("a=b}}: unexpected \"}}\" parsing {TYPE}")),
            ("=b", &format!("=b: unexpected \"=\" parsing {TYPE}")),
            ("a=b=c", &format!("a=b=c: unexpected \"=\" parsing {TYPE}")),
            ("a=b:c", &format!("a=b:c: unexpected \":\" parsing {TYPE}")),
            ("[a=b]", &format!("[a=b]: unexpected \"[\" parsing {TYPE}")),
            ("a=", empty),
            ("a==b", empty),
            ("a={b}", empty),
            ("a", "a: syntax error at \"\" expecting \"=\""),
            ("x=1 a:b", "a:b: syntax error at \":\" expecting \"=\""),
            ("x=1 a b=c", "a b=c: syntax error at \"b\" expecting \"=\""),
            ("a=\"b", "\"b: quoted string extends past end of argument"),
            ("a=b,a=b", "a=b,a=b: map contains duplicate key"),
        ],
    );
    let one = ColumnType {
        max: 1,
        ..strings()
    };
    check(
        &one,
        &[
            ("{a=b}", "a=b"),
            (
                "a=b c=d",
                "a=b c=d: 2 pair(s) specified but the maximum number is 1",
            ),
        ],
    );
}
