//! `history`, `log`, `diff`, `dump`, `restore` and `query --at`.

use std::fs;

use corvid_history::SegmentWriter;

use crate::tool::sandbox::{Sandbox, record};

const ROW: &str = "00000000-0000-4000-8000-000000000001";
const OTHER: &str = "00000000-0000-4000-8000-000000000002";

const SCHEMA: &str = r#"{"name":"Demo","tables":{"t":{"columns":{"i":{"type":"integer"},"name":{"type":"string"},"tags":{"type":{"key":"string","max":"unlimited","min":0}}},"isRoot":true}},"version":"1.0.0"}"#;

/// A commit at second `second` of the example.
fn commit(second: u32, comment: &str, rows: &str) -> Vec<u8> {
    let date_ms = 1_700_000_000_000 + u64::from(second) * 1000;
    record(&format!(
        r#"{{"_comment":"{comment}","_date":{date_ms},"_is_diff":true,"t":{{{rows}}}}}"#
    ))
}

/// The records of the example: the schema, then five commits.
fn commits() -> [Vec<u8>; 6] {
    [
        record(SCHEMA),
        commit(
            0,
            "add a",
            &format!(r#""{ROW}":{{"name":"a","tags":["set",["x","y"]]}}"#),
        ),
        commit(10, "add b", &format!(r#""{OTHER}":{{"name":"b"}}"#)),
        commit(
            20,
            "ovs-vsctl: set",
            &format!(r#""{ROW}":{{"i":7,"tags":["set",["x","z"]]}}"#),
        ),
        commit(30, "remove b", &format!(r#""{OTHER}":null"#)),
        commit(40, "two\\nlines", &format!(r#""{ROW}":{{"i":8}}"#)),
    ]
}

/// A database with two segments of history. The second file begins after the second commit, and
/// has a copy of the third one.
fn with_history() -> Sandbox {
    let sandbox = Sandbox::new();
    let [schema, one, two, three, four, five] = commits();
    let contents = |second, rows: &str| commit(second, "compacting database online", rows);
    let a = format!(r#""{ROW}":{{"name":"a","tags":["set",["x","y"]]}}"#);
    let b = format!(r#""{OTHER}":{{"name":"b"}}"#);
    let later = format!(r#""{ROW}":{{"i":7,"name":"a","tags":["set",["y","z"]]}}"#);
    let first = [&schema[..], &one, &two, &three].concat();
    let second = [
        &schema[..],
        &contents(15, &format!("{a},{b}")),
        &three,
        &four,
    ]
    .concat();
    let present = [&schema[..], &contents(35, &later), &five].concat();
    fs::create_dir(sandbox.path("a.db.history")).expect("a folder");
    sandbox.write("a.db.history/0000000001.db.zst", &segment(&first));
    sandbox.write("a.db.history/0000000002.db.zst", &segment(&second));
    sandbox.write("a.db.history/0000000003.db.zst.tmp", b"being written");
    sandbox.write("a.db", &present);
    sandbox
}

fn segment(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = SegmentWriter::new();
    writer.push(text, &mut out).expect("a database");
    writer.finish(&mut out).expect("a database");
    out
}

const LOG: &str = "\
commit ID
Date:    2023-11-14T22:13:20.000Z

    add a

insert t \"a\" 00000000-0000-4000-8000-000000000001
+ name: a
+ tags: [x, y]

commit ID
Date:    2023-11-14T22:13:30.000Z

    add b

insert t \"b\" 00000000-0000-4000-8000-000000000002
+ name: b

commit ID
Date:    2023-11-14T22:13:40.000Z

    ovs-vsctl: set

modify t \"a\" 00000000-0000-4000-8000-000000000001
- i: 0
+ i: 7
- tags: [x]
+ tags: [z]

commit ID
Date:    2023-11-14T22:13:50.000Z

    remove b

delete t \"b\" 00000000-0000-4000-8000-000000000002
- name: b

commit ID
Date:    2023-11-14T22:14:00.000Z

    two
    lines

modify t \"a\" 00000000-0000-4000-8000-000000000001
- i: 7
+ i: 8
";

/// Replaces the ids of commits, which are hashes.
fn without_ids(text: &str) -> String {
    let lines = text.lines().map(|line| match line.starts_with("commit ") {
        true => "commit ID",
        false => line,
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_plain_file_and_a_history_have_the_same_log() {
    let sandbox = with_history();
    sandbox.write("plain.db", &commits().concat());
    assert_eq!(without_ids(&sandbox.ok(&["log", "plain.db"])), LOG);
    assert_eq!(without_ids(&sandbox.ok(&["log", "a.db"])), LOG);
    assert_eq!(sandbox.ok(&["history", "verify", "a.db"]), "");
    // Options select.
    let last = sandbox.ok(&["-n", "1", "log", "a.db"]);
    assert!(LOG.ends_with(&without_ids(&last)), "{last}");
    assert_eq!(last.matches("commit ").count(), 1);
    for (options, comments) in [
        (
            &["--row=00000000-0000-4000-8000-000000000002"][..],
            &["add b", "remove b"][..],
        ),
        (&["--column=i"], &["ovs-vsctl: set", "two"]),
        (&["--client=vsctl"], &["ovs-vsctl: set"]),
        (&["--since=2023-11-14T22:13:40Z"], &["remove b", "two"]),
        (&["--until=2023-11-14T22:13:39Z"], &["add a", "add b"]),
        (
            &["--since=HEAD~4", "--until=HEAD~2"],
            &["add b", "ovs-vsctl: set"],
        ),
    ] {
        let log = sandbox.ok(&[options, &["log", "a.db"]].concat());
        let found: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|line| *line != "lines")
            .collect();
        assert_eq!(found, comments, "{options:?}");
    }
    // An id names a moment.
    let id = last
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("commit "))
        .expect("an id");
    let diff = sandbox.ok(&["diff", "a.db", "HEAD~1", id]);
    assert!(LOG.ends_with(&diff), "{diff}");
    // So does an age, which is not an option there.
    assert_eq!(sandbox.ok(&["diff", "a.db", "-1s", "HEAD"]), "");
    let diff = sandbox.ok(&["--json", "diff", "a.db", "HEAD~5", "HEAD"]);
    assert_eq!(
        diff,
        format!(
            r#"{{"table":"t","row":"{ROW}","name":"a","op":"insert","columns":{{"i":{{"new":8}},"name":{{"new":"a"}},"tags":{{"added":["set",["y","z"]]}}}}}}"#
        ) + "\n"
    );
    let json = sandbox.ok(&["--json", "--since=HEAD~1", "log", "a.db"]);
    assert!(
        json.contains(r#""event":"commit""#) && json.contains(r#""comment":"two\nlines""#),
        "{json}"
    );
}

#[test]
fn the_client_of_a_commit_is_shown_and_matched_apart_from_its_comment() {
    let sandbox = Sandbox::new();
    let hv1 = "corvid: client=hv%201 peer=ssl:192.0.2.7:50122 role=host via=member:1";
    let txn = "corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 results=1";
    let row = |n: u32| format!(r#""{ROW}":{{"i":{n}}}"#);
    let records = [
        record(SCHEMA),
        commit(0, hv1, &row(1)),
        commit(1, &format!("why\\n{hv1}\\n{txn}"), &row(2)),
        // A client that wrote such a line, before ours and before an empty one.
        commit(2, &format!("{hv1}\\ncorvid: client= peer=unix#3"), &row(3)),
        commit(3, &format!("{hv1}\\n"), &row(4)),
    ];
    sandbox.write("a.db", &records.concat());
    let client = "Client:  ssl:192.0.2.7:50122 (client \"hv 1\", role \"host\") via member:1";
    let log = sandbox.ok(&["log", "a.db"]);
    let heads: Vec<&str> = without_ids_and_changes(&log);
    let date = |second: u32| format!("Date:    2023-11-14T22:13:2{second}.000Z");
    let of_client = |line: &str| format!("    {line}");
    let expected = [
        date(0),
        client.to_owned(),
        date(1),
        client.to_owned(),
        of_client("why"),
        date(2),
        "Client:  unix#3".to_owned(),
        of_client(hv1),
        date(3),
        of_client(hv1),
        "    ".to_owned(),
    ];
    assert_eq!(heads, expected, "{log}");
    for (text, found) in [
        ("hv 1", &[1, 2][..]),
        ("(client \"hv 1\"", &[1, 2]),
        ("192.0.2.7:5", &[1, 2, 3, 4]),
        ("unix#3", &[3]),
        ("member:1", &[1, 2, 3, 4]),
        ("why", &[2]),
        ("nobody", &[]),
    ] {
        let option = format!("--client={text}");
        let log = sandbox.ok(&["--json", &option, "log", "a.db"]);
        let is_in = |n: &u32| log.contains(&format!(r#"new":{n}}}"#));
        let listed: Vec<u32> = (1..=4).filter(is_in).collect();
        assert_eq!(listed, found, "{text}: {log}");
    }
    let json = sandbox.ok(&["--json", "--until=HEAD~2", "-n", "1", "log", "a.db"]);
    let client = r#""client":{"client":"hv 1","peer":"ssl:192.0.2.7:50122","role":"host","via":["member:1"]},"comment":"why""#;
    assert!(json.contains(client), "{json}");
}

/// The lines of commits with dates, clients and comments.
fn without_ids_and_changes(log: &str) -> Vec<&str> {
    let is_head = |line: &&str| {
        ["Date:", "Client:", "    "]
            .iter()
            .any(|it| line.starts_with(it))
    };
    log.lines().filter(is_head).collect()
}

#[test]
fn the_files_are_listed_and_removed() {
    let sandbox = with_history();
    let listing = sandbox.ok(&["history", "a.db"]);
    let lines: Vec<&str> = listing.lines().collect();
    assert_eq!(lines.len(), 3, "{listing}");
    assert!(
        lines[0].trim_start().starts_with(
            "1  2023-11-14T22:13:20.000Z to 2023-11-14T22:13:40.000Z  3 transactions  "
        )
    );
    assert!(
        lines[1].ends_with("  a.db.history/0000000002.db.zst"),
        "{listing}"
    );
    assert!(
        lines[2].trim_start().starts_with("-  ") && lines[2].ends_with("  a.db"),
        "{listing}"
    );
    let json = sandbox.ok(&["--json", "history", "a.db"]);
    assert!(
        json.starts_with(
            r#"{"number":1,"file":"a.db.history/0000000001.db.zst","database":"Demo","#
        ),
        "{json}"
    );

    let error = "ovsdb-tool: a.db: there is no segment 7 in its history\n";
    assert_eq!(
        sandbox.run(&["history", "remove", "a.db", "1", "7"]).stderr,
        error
    );
    sandbox.ok(&["history", "remove", "a.db", "1"]);
    let log = sandbox.ok(&["log", "a.db"]);
    assert!(
        log.starts_with("history begins with the contents of a.db.history/0000000002.db.zst\n"),
        "{log}"
    );
    let run = sandbox.run(&["--at=2023-11-14T22:13:25Z", "dump", "a.db"]);
    assert_eq!(
        run.stderr,
        "ovsdb-tool: \"2023-11-14T22:13:25Z\" is before the history; the history begins at 2023-11-14T22:13:35.000Z\n"
    );
    assert_eq!(run.status, Some(1));

    // No later file shows that the newest is missing.
    let sandbox = with_history();
    sandbox.ok(&["history", "remove", "a.db", "2"]);
    let listing = sandbox.ok(&["history", "a.db"]);
    let gap = "segment 2 is missing before a.db";
    assert_eq!(listing.lines().last(), Some(gap));
    let run = sandbox.run(&["-n1", "log", "a.db"]);
    assert_eq!(run.stderr, format!("ovsdb-tool: {gap}\n"));
    sandbox.ok(&["history", "remove", "a.db", "1"]);
    let listing = sandbox.ok(&["history", "a.db"]);
    assert_eq!(
        listing.lines().count(),
        1,
        "it begins with the present file: {listing}"
    );

    // A gap is said, and its changes are listed together.
    let sandbox = with_history();
    fs::rename(
        sandbox.path("a.db.history/0000000002.db.zst"),
        sandbox.path("kept"),
    )
    .expect("moved");
    fs::rename(
        sandbox.path("a.db.history/0000000001.db.zst"),
        sandbox.path("a.db.history/0000000004.db.zst"),
    )
    .expect("moved");
    let log = sandbox.ok(&["log", "a.db"]);
    assert!(
        log.contains("commits are missing before a.db; their changes together:\n"),
        "{log}"
    );
    let run = sandbox.run(&["history", "verify", "a.db"]);
    assert_eq!(run.status, Some(2));
    assert!(
        run.stdout
            .starts_with("commits are missing before a.db: 1 rows are not as "),
        "{run:?}"
    );

    // A number that is skipped is said too, to people and to scripts.
    let sandbox = with_history();
    fs::rename(
        sandbox.path("a.db.history/0000000002.db.zst"),
        sandbox.path("a.db.history/0000000003.db.zst"),
    )
    .expect("moved");
    let gap = "segment 2 is missing before a.db.history/0000000003.db.zst";
    let listing = sandbox.ok(&["history", "a.db"]);
    assert_eq!(listing.lines().last(), Some(gap));
    let json = sandbox.ok(&["--json", "history", "a.db"]);
    let object = format!("{{\"gap\":\"{gap}\"}}");
    assert_eq!(json.lines().last(), Some(object.as_str()));
}

#[test]
fn contents_of_then_are_shown_and_restored_with_their_uuids() {
    let sandbox = with_history();
    let then = "--at=2023-11-14T22:13:45Z";
    let dump = "\
t table
_uuid                                i name tags
------------------------------------ - ---- ------
00000000-0000-4000-8000-000000000002 0 b    []
00000000-0000-4000-8000-000000000001 7 a    [y, z]
";
    assert_eq!(sandbox.ok(&[then, "dump", "a.db"]), dump);
    let select = r#"["Demo",{"op":"select","table":"t","where":[],"columns":["name"]}]"#;
    let names = sandbox.ok(&[then, "query", "a.db", select]);
    assert!(
        names.contains(r#"{"name":"a"}"#) && names.contains(r#"{"name":"b"}"#),
        "{names}"
    );
    sandbox.ok(&[then, "restore", "a.db", "new.db"]);
    assert_eq!(sandbox.ok(&["dump", "new.db", "t"]), dump);
    let run = sandbox.run(&[then, "restore", "a.db", "new.db"]);
    assert_eq!(run.status, Some(1));
    assert_eq!(
        run.stderr,
        "ovsdb-tool: I/O error: new.db: create failed (File exists)\n"
    );
    assert_eq!(
        sandbox.run(&["restore", "a.db", "b.db"]).stderr,
        "ovsdb-tool: --at=MOMENT is required\n"
    );
    // The folder alone, when the database is lost.
    fs::remove_file(sandbox.path("a.db")).expect("removed");
    sandbox.ok(&["--at=HEAD", "restore", "a.db", "found.db"]);
    assert!(sandbox.ok(&["dump", "found.db"]).contains("7 a"));
    let run = sandbox.run(&["log", "none.db"]);
    assert_eq!(
        run.stderr,
        "ovsdb-tool: none.db: No such file or directory\n"
    );
}

#[test]
fn damaged_and_foreign_files_are_named() {
    let sandbox = with_history();
    let name = "a.db.history/0000000001.db.zst";
    let whole = fs::read(sandbox.path(name)).expect("a segment");
    sandbox.write(name, &whole[..whole.len() / 2]);
    let run = sandbox.run(&["log", "a.db"]);
    assert_eq!(run.status, Some(1));
    let text = "not a segment of a database's history, or its end is missing";
    assert_eq!(run.stderr, format!("ovsdb-tool: {name}: {text}\n"));
    let foreign = [record(&SCHEMA.replace("Demo", "Else")), record("{}")].concat();
    sandbox.write(name, &segment(&foreign));
    let text = "it does not belong to this history: its database is \"Else\", that of the others is \"Demo\"";
    assert_eq!(
        sandbox.run(&["history", "a.db"]).stderr,
        format!("ovsdb-tool: {name}: {text}\n")
    );
    for moment in ["2099-01-01", "@99999999999999"] {
        let run = sandbox.run(&[&format!("--at={moment}"), "dump", "a.db"]);
        assert!(run.stderr.contains("Else"), "{run:?}");
    }
    sandbox.write(name, &whole);
    let run = sandbox.run(&["--at=2099-01-01", "dump", "a.db"]);
    assert_eq!(run.stderr, "ovsdb-tool: \"2099-01-01\" is in the future\n");
    for (options, error) in [
        (
            "--row=xyz",
            "\"xyz\" is not a row's UUID, nor the beginning of one",
        ),
        ("--table=u", "there is no table u in the history"),
        ("--column=u", "no table has a column u in the history"),
        (
            "--since=lately",
            "\"lately\": a moment is HEAD, HEAD~3, now, -2h, 2026-11-28, 2026-11-28T10:00:00, @1700000000000, or the id of a commit",
        ),
    ] {
        let run = sandbox.run(&[options, "log", "a.db"]);
        assert_eq!(run.stderr, format!("ovsdb-tool: {error}\n"));
    }
}
