//! Tables of unusual data in every combination of format, form of data, width and heading, byte for
//! byte as the reference prints them.

use std::process::Stdio;

use corvid_json::Value;

use crate::client::OURS;
use crate::client::reference::Compare::UpToOrder;
use crate::client::reference::compare_all;
use crate::client::reference::fixture::{Fixture, THEIRS};
use crate::client::reference::watching;
use crate::support::command;

const SCHEMA: &str = r#"{"name":"odd","version":"1.0.0","tables":{
    "Numbers":{"isRoot":true,"columns":{
        "n":{"type":"integer"},"r":{"type":"real"},
        "maybe":{"type":{"key":"real","min":0,"max":1}},
        "set":{"type":{"key":"real","min":0,"max":"unlimited"}},
        "map":{"type":{"key":"real","value":"real","min":0,"max":"unlimited"}}}},
    "Words":{"isRoot":true,"columns":{
        "w":{"type":"string"},"heading_of_some_length":{"type":"string"},"flag":{"type":"boolean"},
        "set":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "map":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "one":{"type":{"key":"string","value":"integer","min":0,"max":1}}}},
    "Links":{"isRoot":true,"columns":{
        "u":{"type":"uuid"},"text":{"type":"string"},
        "maybe":{"type":{"key":"uuid","min":0,"max":1}},
        "set":{"type":{"key":"uuid","min":0,"max":"unlimited"}},
        "map":{"type":{"key":"string","value":"uuid","min":0,"max":"unlimited"}}}},
    "Nothing":{"isRoot":true,"columns":{"x":{"type":"integer"}}}}}"#;

/// Reals that print as integers, with an exponent, rounded, or in a notation other than their
/// source.
const REALS: &[&str] = &[
    "0",
    "-0.0",
    "1",
    "0.1",
    "-1.5",
    "1e5",
    "1e14",
    "1e15",
    "1e+16",
    "123456789012345",
    "1234567890123456",
    "9007199254740993",
    "999999999999999.5",
    "33554432",
    "1e-5",
    "0.0001",
    "123456.789",
    "1e300",
    "-1e-300",
];

const UUID: &str = "01234567-89ab-cdef-0123-456789abcdef";

/// Strings with quotes, escapes or multi-byte characters, and strings that look like other types.
const WORDS: &[&str] = &[
    "",
    "a",
    "a b",
    "a\"b",
    "line\nbreak",
    "tab\t",
    "<&>'",
    "é",
    "日本語",
    "😀x",
    "true",
    "false",
    "1",
    "-x",
    "a,b",
    "{}",
    "[a]",
    "\\",
    "\u{1}\u{7f}",
    "_under-score.x",
    "éééééééééééé",
    "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
    "  leading",
    "trailing  ",
    "12345678 blank where it is cut",
    UUID,
    "01234567-89AB-CDEF-0123-456789ABCDEF",
    "within 01234567-89ab-cdef-0123-456789abcdef a text",
    "01234567-89ab-cdef-0123-456789abcde",
];

/// A transaction that inserts all these values, and rows with default values.
fn contents() -> String {
    let mut inserts = Vec::new();
    let mut insert = |table: &str, row: &str| {
        inserts.push(format!(
            r#"{{"op":"insert","table":"{table}","row":{{{row}}}}}"#
        ));
    };
    for (n, real) in REALS.iter().enumerate() {
        let set = format!(r#"["set",[{real},3,1e17]]"#);
        let map = format!(r#"["map",[[{real},{real}],[7,1e15]]]"#);
        insert(
            "Numbers",
            &format!(r#""n":{n},"r":{real},"maybe":{real},"set":{set},"map":{map}"#),
        );
    }
    for (n, word) in WORDS.iter().enumerate() {
        let word = Value::string(word);
        let one = if n % 2 == 0 {
            String::new()
        } else {
            format!("[{word},{n}]")
        };
        let sets = format!(
            r#""set":["set",[{word},"and more"]],"map":["map",[[{word},{word}],["key","v"]]]"#
        );
        insert(
            "Words",
            &format!(
                r#""w":{word},"heading_of_some_length":{word},"flag":true,"one":["map",[{one}]],{sets}"#
            ),
        );
    }
    for n in 0..3 {
        let own = format!(r#"["uuid","{n:08}{}"]"#, &UUID[8..]);
        let sets =
            format!(r#""set":["set",[{own},["uuid","{UUID}"]]],"map":["map",[["<",{own}]]]"#);
        let maybe = if n == 0 { r#"["set",[]]"# } else { &own };
        insert(
            "Links",
            &format!(r#""u":{own},"text":"{n} {UUID}","maybe":{maybe},{sets}"#),
        );
    }
    for table in ["Numbers", "Words", "Links"] {
        insert(table, "");
    }
    format!(r#"["odd",{}]"#, inserts.join(","))
}

fn odd() -> Option<Fixture> {
    Fixture::serving(&[("odd", SCHEMA)], &contents())
}

/// Every combination of the options for tables. Widths affect only one format; every other format
/// runs with one width.
fn styles() -> Vec<Vec<&'static str>> {
    const WIDTHS: &[&str] = &["0", "1", "3", "5", "10", "20", "-1", "5x", "4294967301"];
    let mut styles = Vec::new();
    for format in ["table", "list", "html", "csv", "json"] {
        let widths = if format == "table" {
            WIDTHS
        } else {
            &WIDTHS[3..4]
        };
        let widths = widths.iter().map(|width| vec!["--max-column-width", width]);
        for width in widths.chain([Vec::new()]) {
            for data in ["string", "bare", "json"] {
                for further in [
                    &[] as &[&str],
                    &["--no-headings"],
                    &["--pretty"],
                    &["--timestamp", "--no-headings", "--pretty"],
                ] {
                    let mut style = vec!["-f", format, "-d", data];
                    style.extend(&width);
                    style.extend(further);
                    styles.push(style);
                }
            }
        }
    }
    for further in [
        &["-f", "csv"] as &[&str],
        &["-d", "json"],
        &["--max-column-width=5"],
        &[],
    ] {
        styles.push([&["--bare"], further].concat());
        styles.push([further, &["--bare"]].concat());
    }
    styles
}

/// Standard output, byte for byte.
fn printed(program: &str, fixture: &Fixture, args: &[&str]) -> Vec<u8> {
    let output = command(program, fixture.dir.path(), args)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    output.stdout
}

#[test]
fn every_combination_of_format_form_and_width_is_equal_byte_for_byte() {
    let Some(fixture) = odd() else {
        return;
    };
    let selections: &[&[&str]] = &[
        &["dump", "odd"],
        &[
            "dump",
            "odd",
            "Words",
            "w",
            "heading_of_some_length",
            "flag",
        ],
        &["dump", "odd", "Links", "_uuid", "u"],
    ];
    let cases: Vec<Vec<&str>> = styles()
        .into_iter()
        .flat_map(|style| {
            selections
                .iter()
                .map(move |words| [&style, *words].concat())
        })
        .collect();
    let differing = |cases: &[Vec<&str>]| -> Vec<String> {
        cases
            .iter()
            .filter(|args| printed(OURS, &fixture, args) != printed(THEIRS, &fixture, args))
            .map(|args| args.join(" "))
            .collect()
    };
    let half = cases.len() / 2;
    let differing: Vec<String> = std::thread::scope(|scope| {
        let first = scope.spawn(|| differing(&cases[..half]));
        let second = differing(&cases[half..]);
        [first.join().expect("all were run"), second].concat()
    });
    assert!(
        differing.is_empty(),
        "{} of {} differ:\n{}",
        differing.len(),
        cases.len(),
        differing.join("\n")
    );
}

/// Listings and monitors use the same printer as dumps.
#[test]
fn listings_and_monitors_of_odd_data_are_equal() {
    let Some(fixture) = odd() else {
        return;
    };
    for style in [
        &["-f", "html", "-d", "json"] as &[&str],
        &["--max-column-width=5"],
        &["--max-column-width=5", "-d", "json", "--no-headings"],
        &["-f", "json"],
        &["-f", "csv", "-d", "json"],
        &["-f", "list", "-d", "bare"],
    ] {
        // As JSON the listing is one line whose rows have no defined order.
        if !style.contains(&"json") || style.contains(&"-d") {
            let listing = [style, &["list-columns", "odd"]].concat();
            compare_all(&fixture, UpToOrder, [listing.as_slice()]);
        }
        for table in ["Numbers", "Words", "Links"] {
            watching::compare(&fixture, &[style, &["monitor", "odd", table]].concat(), &[]);
        }
    }
}
