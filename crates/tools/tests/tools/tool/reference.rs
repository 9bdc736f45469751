//! The same commands on the same files with our tool and the reference's: standard output, standard
//! error, exit status and the resulting files must be equal. Skipped if the reference is not
//! installed.
//!
//! Random and unordered parts (ids, times, the order of members) are normalized. Deliberate
//! differences are tested in the other modules.

use std::path::Path;

use crate::tool::sandbox::{OURS, Run, SCHEMA, Sandbox, record};

pub(crate) const REFERENCE: &str = "/usr/bin/ovsdb-tool";

/// Runs the commands, one after another, in two sandboxes with the same files.
pub(crate) fn compare(files: &[(&str, Vec<u8>)], commands: &[&[&str]]) {
    if !Path::new(REFERENCE).exists() {
        eprintln!("no reference tool is installed: nothing to compare with");
        return;
    }
    let sandboxes = [Sandbox::new(), Sandbox::new()];
    for sandbox in &sandboxes {
        for (name, contents) in files {
            sandbox.write(name, contents);
        }
    }
    for args in commands {
        let [reference, ours] =
            [(REFERENCE, &sandboxes[0]), (OURS, &sandboxes[1])].map(|(tool, sandbox)| {
                let run = sandbox.run_tool(Path::new(tool), args, None);
                normal(&run, args.contains(&"show-log"))
            });
        assert_eq!(
            ours,
            reference,
            "{args:?} on {:?}",
            files.iter().map(|(name, _)| name).collect::<Vec<_>>()
        );
    }
    assert_eq!(
        sandboxes[1].list(),
        sandboxes[0].list(),
        "files left behind by {:?}",
        commands
            .iter()
            .map(|args| args.join(" "))
            .collect::<Vec<_>>()
    );
}

/// Options and commands that the reference does not have, as both tools list them.
const OURS_ALONE: [&str; 16] = [
    "--fail",
    "--at=",
    "--since=",
    "--until=",
    "--table=",
    "--row=",
    "--column=",
    "--client=",
    "--json",
    "-n ",
    "  salvage ",
    "  history ",
    "  log ",
    "  diff ",
    "  dump ",
    "  restore ",
];

fn is_ours_alone(line: &str) -> bool {
    OURS_ALONE.iter().any(|ours| line.starts_with(ours))
}

fn normal(run: &Run, is_listing: bool) -> Run {
    let tidy = |text: &str| {
        let mut lines: Vec<String> = text
            .lines()
            // The reference does not report entries of a recovered cluster that may not have been
            // committed.
            .filter(|line| !line.contains("not known to be committed"))
            // Only ours has the line that names the implementation, these options in the listing of
            // options, and these commands in the list of commands.
            .filter(|line| !line.starts_with("Corvid ") && !is_ours_alone(line))
            .map(normal_line)
            .collect();
        if is_listing {
            lines.sort();
        }
        lines.join("\n")
    };
    Run {
        status: run.status,
        stdout: tidy(&run.stdout),
        stderr: tidy(&run.stderr),
    }
}

/// Hides the digits of random identities, of today's dates and of versions.
fn normal_line(line: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for character in line.chars().chain([' ']) {
        if character.is_ascii_hexdigit() || "-:.TZ".contains(character) {
            word.push(character);
            continue;
        }
        // Server ids are cut to four digits.
        let is_id = ["_id: ", "_eid: ", "_servers: "]
            .iter()
            .any(|what| line.contains(what))
            && word.len() == 4
            && !["aaaa", "bbbb", "cccc", "eeee", "0000"].contains(&word.as_str());
        out.push_str(if is_id {
            "<id>"
        } else {
            hidden(&word).unwrap_or(&word)
        });
        out.push(character);
        word.clear();
    }
    out
}

fn hidden(word: &str) -> Option<&'static str> {
    let bare = word.trim_end_matches(':');
    match bare.len() {
        36 if bare.matches('-').count() == 4
            && &bare[14..15] == "4"
            && !bare.starts_with("00000000") =>
        {
            Some("<uuid>")
        }
        8 if bare.chars().all(|digit| digit.is_ascii_hexdigit()) && bare != "00000000" => {
            Some("<short>")
        }
        10 if bare.starts_with("20") && bare.matches('-').count() == 2 => Some("<date>"),
        12 if bare.matches(':').count() == 2 => Some("<time>"),
        20 if bare.starts_with("20") && bare.ends_with('Z') => Some("<instant>"),
        5 if matches!(bare, "3.1.0" | "3.7.0") => Some("<version>"),
        _ => None,
    }
}

const SMALL: &str = r#"{"name":"Demo","tables":{"t":{"columns":{"i":{"type":"integer"},"tags":{"type":{"key":"string","max":"unlimited","min":0}},"two":{"type":{"key":"integer","max":2}}}}},"version":"1.0.0"}"#;
const SELECT: &str =
    r#"["Demo",{"op":"select","table":"t","where":[],"columns":["_uuid","i","tags","two"]}]"#;

/// Compares every reading command on a file with a valid schema record and this tail.
fn compare_tail(tail: &[u8]) {
    let file = [record(SMALL), tail.to_vec()].concat();
    compare(
        &[("a.db", file), ("demo.schema", SMALL.as_bytes().to_vec())],
        &[
            &["query", "a.db", SELECT],
            &["transact", "a.db", SELECT],
            &["show-log", "a.db"],
            &["-m", "show-log", "a.db"],
            &["-mm", "show-log", "a.db"],
            &["db-name", "a.db"],
            &["db-version", "a.db"],
            &["db-cksum", "a.db"],
            &["db-cid", "a.db"],
            &["db-is-standalone", "a.db"],
            &["needs-conversion", "a.db", "demo.schema"],
            &["compact", "a.db", "b.db"],
            &["-mm", "show-log", "b.db"],
        ],
    );
}

#[test]
fn headers_are_read_as_by_the_reference() {
    let hash = "5f36b2ea290645ee34d943220a14b54ee5ea5be5";
    for header in [
        "JSON 3 HASH",
        "JSON 0 HASH",
        "JSON -3 HASH",
        "JSON +3 HASH",
        "JSON 0003 HASH",
        "JSON    3 HASH",
        "JSON \t3 HASH",
        "JSON 99999999999999999999999 HASH",
        "JSON 9999999999 HASH",
        "JSON 18446744073709551615 HASH",
        "JSON  + 3 HASH",
        "JSON x HASH",
        "JSON  HASH",
        "JSON 0x3 HASH",
        "JSON 3HASH",
        "JSON 3  HASH",
        "JSON 3 HASH ",
        "JSON 3 HASH\r",
        "JSON 3 HASHa",
        "CLUSTER 3 HASH",
        "JSONX 3 HASH",
        " JSON 3 HASH",
        "JSON",
        "JSON 9 HASH",
    ] {
        compare_tail(format!("OVSDB {}\n{{}}\n", header.replace("HASH", hash)).as_bytes());
    }
    compare_tail(format!("OVSDB JSON 3 {}\n{{}}\n", hash.to_uppercase()).as_bytes());
    compare_tail(format!("OVSDB JSON 3 {}\n{{}}\n", "0".repeat(40)).as_bytes());
    compare_tail(format!("OVSDB JSON {}3 {hash}\n{{}}\n", " ".repeat(80)).as_bytes());
    for torn in [
        "O",
        "OVS",
        "OVSDB JS",
        "OVSDB JSON 5",
        "\n",
        "a\"b\\\n",
        "a\0b\n",
    ] {
        compare_tail(torn.as_bytes());
    }
    compare_tail(&[b'x'; 300]);
}

#[test]
fn bodies_are_read_as_by_the_reference() {
    let raw = |body: &str| {
        let mut out = Vec::new();
        corvid_log::header::Header::of(body.as_bytes())
            .write(corvid_log::Magic::Standalone, &mut out);
        out.extend_from_slice(body.as_bytes());
        out
    };
    for body in [
        "{\"a\":}\n",
        "{} x\n",
        "{}}\n",
        "{} {}\n",
        "{\n",
        "\n",
        "12\n",
        "\"a\"\n",
        "[1]\n",
        "{\n}\n",
        "{}",
        "{}  \n \n",
        "{\n\"a\":x}\n",
        "null\n",
        "{\"a\":1,}\n",
        "{\"a\" 1}\n",
        "{'a':1}\n",
        "{\"a\":\"\\x\"}\n",
    ] {
        compare_tail(&raw(body));
    }
    compare_tail(&[raw("{}"), record("{}")].concat());
}

#[test]
fn transactions_execute_as_in_the_reference() {
    for body in [
        r#"{"_date":1,"b":{}}"#,
        r#"{"_date":"x"}"#,
        r#"{"_date":1.5}"#,
        r#"{"_is_diff":1}"#,
        r#"{"_is_diff":false}"#,
        r#"{"_comment":[1,{"b":1,"a":2}]}"#,
        r#"{"t":[{"b":1,"a":2}]}"#,
        r#"{"t":{"ROW":[{"b":1,"a":2}]}}"#,
        r#"{"t":{}}"#,
        r#"{"t":{"xyz":{"i":1}}}"#,
        r#"{"t":{"xyz":null}}"#,
        r#"{"t":{"ROW":null}}"#,
        r#"{"t":{"ROW":{"z":1}}}"#,
        r#"{"t":{"ROW":{"i":"x"}}}"#,
        r#"{"t":{"ROW":{"tags":["set",["a",{"z":1,"b":2}]]}}}"#,
        r#"{"t":{"ROW":{"tags":["set",["a","a"]]}}}"#,
        r#"{"t":{"ROW":{"two":["set",[1,2,3]]}}}"#,
        r#"{"_is_diff":true,"t":{"ROW":{"two":["set",[1,2,3]]}}}"#,
        r#"{"_is_diff":true,"t":{"ROW":{"i":["set",[1,2,3]]}}}"#,
        r#"{"t":5,"t":{"ROW":{"i":4}}}"#,
        r#"{"t":{"ROW":{"i":4},"ROW":{"two":9}}}"#,
        r#"{"t":{"ROW":{"i":3,"i":4}}}"#,
        r#"{"t":{"ROW":{"tags":["named-uuid","x"]}}}"#,
        r#"{"_date":1700000000123,"_comment":"a\"b"}"#,
        r#"{"_date":-5}"#,
        r#"{"_date":2147483646}"#,
        r#"{"_date":2147483647}"#,
        r#"{"_date":0,"_comment":""}"#,
        r#"{"t":5}"#,
        r#"{"_is_diff":true,"t":{"ROW":{"tags":["set",["b","a"]],"i":4,"two":7}}}"#,
    ] {
        compare_tail(&record(
            &body.replace("ROW", "00000000-0000-4000-8000-000000000001"),
        ));
    }
}

#[test]
fn schemas_are_read_as_by_the_reference() {
    let mut files = vec![("good", SCHEMA.as_bytes().to_vec())];
    for (name, text) in [
        ("bad1", "{\"name\":\"x\"}\n"),
        ("bad2", "{\n"),
        ("bad3", "[1]\n"),
        ("bad4", ""),
        ("bad5", "5\n"),
        ("bad6", "\n\n  {\"a\"\n:tru}"),
        ("bad7", r#"{"name":"x","tables":{},"version":"1"}"#),
        ("bad8", r#"{"name":"x","tables":{"t":{"columns":{}}}}"#),
    ] {
        files.push((name, text.as_bytes().to_vec()));
    }
    let names: Vec<&str> = files
        .iter()
        .map(|(name, _)| *name)
        .chain(["none", "."])
        .collect();
    let mut commands = Vec::new();
    for name in &names {
        for command in ["schema-name", "schema-version", "schema-cksum"] {
            commands.push(vec![command, name]);
        }
    }
    for name in &names[1..] {
        commands.push(vec!["create", "a.db", name]);
    }
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    compare(&files, &commands);
}

#[test]
fn command_sequences_end_as_in_the_reference() {
    let insert = r#"["Demo",{"op":"insert","table":"T","row":{"name":"x","n":5,"set":["set",["a","b c"]],"m":["map",[["k1","v1"],["k 2","v2"]]],"os":"q","r":1.5}},{"op":"comment","comment":"hello\nworld"}]"#;
    let more = r#"["Demo",{"op":"insert","table":"T","row":{}},{"op":"insert","table":"U","row":{}},{"op":"update","table":"T","where":[["name","==","x"]],"row":{"name":"yy","set":["set",["a","c"]],"om":["map",[["a","c"]]]}}]"#;
    let empty = r#"["Demo",{"op":"update","table":"T","where":[["name","==","yy"]],"row":{"om":["map",[]],"os":["set",[]]}}]"#;
    let delete = r#"["Demo",{"op":"delete","table":"T","where":[["name","==","yy"]]},{"op":"commit","durable":true}]"#;
    let wait = |timeout: &str| {
        format!(
            r#"["Demo",{{"op":"wait","table":"T","where":[],"columns":["n"],"until":"==","rows":[{{"n":77}}]{timeout}}}]"#
        )
    };
    let (wait_now, wait_ever, wait_long) = (
        wait(r#","timeout":0"#),
        wait(""),
        wait(r#","timeout":5000"#),
    );
    let create: [&[&str]; 3] = [
        &["create", "a.db", "good"],
        &["create", "a.db", "good"],
        &["create", "none/a.db", "good"],
    ];
    let transact = [
        insert,
        more,
        empty,
        delete,
        "[]",
        "{}",
        "[\"Z\"]",
        "[5]",
        "5",
        "xx",
        "",
        "[\"Demo\"]x",
        "\"a\"",
        "[",
        "[\"Demo\"]",
        "[\"Demo\",5]",
        r#"["Demo",{"op":"abort"}]"#,
        r#"["Demo",{"op":"assert","lock":"x"}]"#,
        r#"["Demo",{"op":"bogus"}]"#,
        r#"["Demo",{"op":"comment","comment":"alone"}]"#,
        &wait_now,
        &wait_ever,
        &wait_long,
        r#"["Demo",{"op":"insert","table":"T","row":{"n":"x"}}]"#,
    ]
    .map(|request| ["transact", "a.db", request]);
    let after: [&[&str]; 19] = [
        &["show-log", "a.db"],
        &["-m", "show-log", "a.db"],
        &["-mm", "show-log", "a.db"],
        &["--more", "--mo", "-m", "show-log", "a.db"],
        &["query", "a.db", "{}"],
        &["query", "none", "[\"Demo\"]"],
        &["transact", "none", "[\"Demo\"]"],
        &["query", "[\"Demo\"]"],
        &["compact", "a.db", "b.db"],
        &["-mm", "show-log", "b.db"],
        &["compact", "a.db"],
        &["-mm", "show-log", "a.db"],
        &["convert", "a.db", "none"],
        &["convert", "none", "none"],
        &["needs-conversion", "none", "none"],
        &["needs-conversion", "a.db", "good"],
        &["convert", "a.db", "good"],
        &["-mm", "show-log", "a.db"],
        &["--rbac-role=x", "transact", "a.db", insert],
    ];
    let commands: Vec<&[&str]> = create
        .into_iter()
        .chain(transact.iter().map(<[_; 3]>::as_slice))
        .chain(after)
        .collect();
    compare(&[("good", SCHEMA.as_bytes().to_vec())], &commands);
}

#[test]
fn clustered_files_are_handled_as_by_the_reference() {
    if !Path::new(REFERENCE).exists() {
        return;
    }
    let maker = Sandbox::new();
    maker.write("good", SCHEMA.as_bytes());
    let make = |args: &[&str]| {
        let run = maker.run_tool(Path::new(REFERENCE), args, None);
        assert_eq!(run.status, Some(0), "{run:?}");
    };
    make(&["create", "s.db", "good"]);
    make(&[
        "transact",
        "s.db",
        r#"["Demo",{"op":"insert","table":"T","row":{"name":"x"}}]"#,
    ]);
    make(&[
        "--election-timer=2000",
        "create-cluster",
        "c.db",
        "s.db",
        "tcp:127.0.0.1:6641",
    ]);
    make(&[
        "join-cluster",
        "j.db",
        "Demo",
        "tcp:127.0.0.1:6642",
        "tcp:127.0.0.1:6641",
        "tcp:127.0.0.1:6643",
    ]);
    let bytes = |name: &str| std::fs::read(maker.path(name)).expect("a file");
    let torn = bytes("c.db")[..300].to_vec();
    let files = [
        ("c.db", bytes("c.db")),
        ("j.db", bytes("j.db")),
        ("t.db", torn),
        ("good", SCHEMA.as_bytes().to_vec()),
    ];
    let mut commands = Vec::new();
    for (name, _) in &files {
        for command in [
            "db-name",
            "db-version",
            "db-cksum",
            "db-cid",
            "db-sid",
            "db-local-address",
            "db-is-clustered",
            "db-is-standalone",
            "show-log",
        ] {
            commands.push(vec![command, name]);
        }
        commands.push(vec!["-mm", "show-log", name]);
        commands.push(vec!["needs-conversion", name, "good"]);
        commands.push(vec!["query", name, "[\"Demo\"]"]);
        commands.push(vec!["compact", name]);
        commands.push(vec!["compact", name, "d.db"]);
        commands.push(vec!["convert", name, "good"]);
        commands.push(vec!["transact", name, "[\"Demo\"]"]);
    }
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    compare(&files, &commands);
}

#[test]
fn command_lines_are_parsed_as_by_the_reference() {
    compare(
        &[],
        &[
            &[],
            &["bogus"],
            &["create", "a", "b", "c"],
            &["db-cid"],
            &["db-cid", "a", "b"],
            &["query"],
            &["query", "a", "b", "c"],
            &["create-cluster"],
            &["join-cluster", "a"],
            &["check-cluster"],
            &["--log-file"],
            &["-x"],
            &["--mo=3"],
            &["-vbogus"],
            &["--verbose=bogus"],
            &["-v"],
            &["--cid"],
            &["--version"],
            &["-Vm"],
            &["-mV"],
            &["-o"],
            &["--option"],
            &["list-commands"],
            &["--v=off", "list-commands"],
            &["compare-versions", "1.2.3"],
            &["--", "bogus"],
            &["create", "--bogus"],
            &["compare-versions", "1.2.3", "<", "1.2.4"],
            &["compare-versions", "1.2", "<", "1.2.4"],
        ],
    );
}

#[test]
fn argument_counts_are_checked_as_by_the_reference() {
    let names = [
        "create",
        "create-cluster",
        "join-cluster",
        "compact",
        "convert",
        "needs-conversion",
        "db-name",
        "db-version",
        "db-cksum",
        "db-cid",
        "db-sid",
        "db-local-address",
        "db-is-clustered",
        "db-is-standalone",
        "schema-name",
        "schema-version",
        "schema-cksum",
        "query",
        "transact",
        "show-log",
        "check-cluster",
        "compare-versions",
        "cluster-to-standalone",
        "prepend",
        "rewrite",
        "rejoin",
    ];
    let mut commands = Vec::new();
    for name in names {
        for words in 0..=5 {
            commands.push([&[name][..], &["none"; 5][..words]].concat());
        }
    }
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    compare(&[], &commands);
}

/// The reference does not read its results again, which would make integers of whole reals.
#[test]
fn reals_are_printed_as_by_the_reference() {
    let schema = r#"{"name":"D","version":"1.0.0","tables":{"T":{"columns":{
        "r":{"type":"real"},
        "m":{"type":{"key":"string","value":"real","min":0,"max":"unlimited"}}}}}}"#;
    let insert = r#"["D",{"op":"insert","table":"T","row":{"r":1e15,"m":["map",[["a",1e18],["b",-5],["c",1e-7],["d",1e300]]]}}]"#;
    let select = r#"["D",{"op":"select","table":"T","where":[],"columns":["m","r"]}]"#;
    compare(
        &[("d.ovsschema", schema.into())],
        &[
            &["create", "d.db", "d.ovsschema"],
            &["transact", "d.db", insert],
            &["query", "d.db", select],
            &["transact", "d.db", select],
            &["show-log", "-mm", "d.db"],
            &["compact", "d.db"],
            &["show-log", "-mm", "d.db"],
        ],
    );
    let sandbox = Sandbox::new();
    sandbox.write("d.ovsschema", schema.as_bytes());
    sandbox.ok(&["create", "d.db", "d.ovsschema"]);
    sandbox.ok(&["transact", "d.db", insert]);
    let row =
        r#"[{"rows":[{"m":["map",[["a",1e+18],["b",-5],["c",1e-07],["d",1e+300]]],"r":1e+15}]}]"#;
    assert_eq!(sandbox.ok(&["query", "d.db", select]), format!("{row}\n"));
}
