//! Commands that print one answer and end.

use crate::client::reference::Compare::{Exactly, Status, UpToOrder, UpToUuids};
use crate::client::reference::compare_all;
use crate::client::reference::fixture::Fixture;

#[test]
fn servers_and_databases_are_chosen_as_by_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let cases: &[&[&str]] = &[
        &["list-dbs"],
        &["list-dbs", "unix:db.sock"],
        &["list-dbs", "unix:nobody.sock"],
        &["list-dbs", "bogus:1"],
        &["list-dbs", "tcp:127.0.0.1:1"],
        &["list-dbs", "db.sock"],
        &["get-schema-version"],
        &["get-schema-version", "mydb"],
        &["get-schema-version", "unix:db.sock", "other"],
        &["get-schema-version", "unix:db.sock", "_Server"],
        &["get-schema-version", "unix:db.sock", "nodb"],
        &["get-schema-cksum", "mydb"],
        &["get-schema-cksum", "other"],
        &["dump", "nodb"],
        &["dump", "mydb", "nodb"],
        &[
            "get-schema-version",
            "unix:nobody.sock,unix:db.sock",
            "mydb",
        ],
        &[
            "get-schema-version",
            "unix:nobody.sock, unix:db.sock",
            "mydb",
        ],
        &["get-schema-version", "unix:nobody.sock,unix:db.sock"],
        &[
            "get-schema-version",
            "unix:nobody.sock,unix:nobody2.sock",
            "mydb",
        ],
        &["list-dbs", "unix:nobody.sock,unix:db.sock"],
    ];
    compare_all(&fixture, Exactly, cases.iter().copied());
    // Here the logged messages differ: the reference logs a refusal as a timeout.
    compare_all(
        &fixture,
        Status,
        [&["get-schema-version", "unix:db.sock,unix:./db.sock", "nodb"] as &[&str]],
    );
}

#[test]
fn schemas_are_listed_as_by_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let ordered: &[&[&str]] = &[
        &["get-schema", "mydb"],
        &["get-schema", "_Server"],
        &["--pretty", "get-schema", "mydb"],
        &["get-schema", "other"],
    ];
    compare_all(&fixture, Exactly, ordered.iter().copied());
    let unordered: &[&[&str]] = &[
        &["list-tables", "mydb"],
        &["list-tables", "_Server"],
        &["list-columns", "mydb"],
        &["list-columns", "mydb", "T"],
        &["list-columns", "mydb", "Nothing"],
        &["-fcsv", "list-columns", "mydb", "U"],
        &["-flist", "list-tables", "mydb"],
        &["-fhtml", "list-columns", "mydb", "U"],
        &["--data=bare", "list-columns", "mydb"],
        &["--no-headings", "list-tables", "mydb"],
    ];
    compare_all(&fixture, UpToOrder, unordered.iter().copied());
}

#[test]
fn dumps_are_equal_in_every_format() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let selections: &[&[&str]] = &[
        &["mydb"],
        &["mydb", "T"],
        &["mydb", "Empty"],
        &["mydb", "U", "k"],
        &["mydb", "T", "s", "n"],
        &["mydb", "T", "_uuid", "name"],
        &["mydb", "T", "n", "_version"],
        &["mydb", "T", "n", "n"],
        &["mydb", "T", "zz"],
        &["mydb", "Nothing"],
        &["other"],
    ];
    let styles: &[&[&str]] = &[
        &[],
        &["-f", "list"],
        &["-f", "html"],
        &["-f", "csv"],
        &["-f", "json"],
        &["-f", "json", "--pretty"],
        &["-d", "bare"],
        &["-d", "json"],
        &["-f", "csv", "-d", "bare"],
        &["-f", "csv", "-d", "json"],
        &["-f", "list", "-d", "json"],
        &["-f", "html", "-d", "bare"],
        &["-f", "html", "--no-headings"],
        &["--no-headings"],
        &["-f", "csv", "--no-headings"],
        &["-f", "json", "--no-headings", "-d", "bare"],
        &["--bare"],
        &["--max-column-width=5"],
        &["--max-column-width=1", "--no-headings"],
        &["--timestamp"],
    ];
    for style in styles {
        let cases: Vec<Vec<&str>> = selections
            .iter()
            .map(|selection| {
                style
                    .iter()
                    .copied()
                    .chain(["dump"])
                    .chain(selection.iter().copied())
                    .collect()
            })
            .collect();
        compare_all(&fixture, Exactly, cases.iter().map(Vec::as_slice));
    }
}

#[test]
fn transactions_print_the_same_results_as_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let cases: &[&[&str]] = &[
        &["transact", r#"["mydb"]"#],
        &["transact", r#"["nodb"]"#],
        &[
            "transact",
            r#"["mydb",{"op":"select","table":"T","where":[],"columns":["n","m"]}]"#,
        ],
        &[
            "transact",
            r#"["mydb",{"op":"insert","table":"Empty","row":{"x":1}}]"#,
        ],
        &[
            "transact",
            r#"["mydb",{"op":"insert","table":"Empty","row":{"x":"no"}}]"#,
        ],
        &["transact", r#"["mydb",{"op":"foo"}]"#],
        &["transact", r#"["mydb",5]"#],
        &[
            "transact",
            r#"["mydb",{"op":"delete","table":"Empty","where":[["x","==",99]]}]"#,
        ],
        &["transact", "xx"],
        &["transact", ""],
        &["transact", "\"x\""],
        &["transact", "{}"],
        &["transact", "[]"],
        &["transact", "[1]"],
        &["transact", "[\"mydb\""],
        &["transact", "[\"mydb\"]]"],
        &["transact", "unix:db.sock", "[\"mydb\"]"],
        &["--db-change-aware", "transact", "[\"mydb\"]"],
        &["--no-db-change-aware", "transact", "[\"mydb\"]"],
        &["query", r#"["mydb"]"#],
        &["query", r#"["nodb"]"#],
        &[
            "query",
            r#"["mydb",{"op":"insert","table":"Empty","row":{"x":1}},{"op":"select","table":"Empty","where":[]}]"#,
        ],
        &["query", r#"["mydb",{"op":"foo"}]"#],
        &[
            "query",
            r#"["mydb",{"op":"insert","table":"Empty","row":{"x":"no"}}]"#,
        ],
        &["query", r#"["mydb",{"op":"abort"}]"#],
        &["query", "xx"],
        &["query", "{}"],
        &["query", "[1]"],
        &["transact"],
        &["transact", "unix:db.sock", "[\"mydb\"]", "more"],
    ];
    compare_all(&fixture, UpToUuids, cases.iter().copied());
}

#[test]
fn pretty_indents_what_the_reference_indents() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let commands: &[&[&str]] = &[
        &[
            "transact",
            r#"["mydb",{"op":"select","table":"T","where":[],"columns":["n","m"]}]"#,
        ],
        &["transact", r#"["mydb"]"#],
        &["transact", r#"["mydb",{"op":"foo"}]"#],
        &["transact", r#"["nodb"]"#],
        &[
            "query",
            r#"["mydb",{"op":"insert","table":"Empty","row":{"x":1}}]"#,
        ],
        &["query", r#"["nodb"]"#],
        &["get-schema", "mydb"],
        &["-fjson", "list-tables", "other"],
        &["-t1", "-vconsole:off", "lock", "unix:db.sock", "l"],
        &["-t1", "-vconsole:off", "steal", "unix:db.sock", "l"],
        &["dump", "mydb", "U"],
        &["list-dbs"],
        &["get-schema-cksum", "mydb"],
    ];
    let cases: Vec<Vec<&str>> = commands
        .iter()
        .map(|words| [&["--pretty"], *words].concat())
        .collect();
    compare_all(&fixture, UpToUuids, cases.iter().map(Vec::as_slice));
}

#[test]
fn waits_end_as_in_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let cases: &[&[&str]] = &[
        &["wait", "mydb", "added"],
        &["wait", "unix:db.sock", "mydb", "connected"],
        &["wait", "unix:db.sock", "nodb", "removed"],
        &["-t1", "wait", "unix:db.sock", "nodb", "added"],
        &["-t1", "wait", "unix:nobody.sock", "nodb", "added"],
        &["wait", "mydb", "gone"],
        &["wait", "mydb"],
        &["wait"],
        &["wait", "a", "b", "c", "d"],
        &["-t1", "lock", "unix:db.sock", "foo"],
        &["-t1", "steal", "foo"],
        &["lock"],
    ];
    compare_all(&fixture, Exactly, cases.iter().copied());
}
