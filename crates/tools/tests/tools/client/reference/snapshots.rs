//! Backups, restores and conversions; each program reads the other's files.

use corvid_json::Value;

use crate::client::OURS;
use crate::client::reference::Compare::UpToUuids;
use crate::client::reference::compare_all;
use crate::client::reference::fixture::{Fixture, SCHEMA, THEIRS, with_sorted_members};
use crate::support::{command, run, status, without_dates, without_uuids};

/// The bodies of a backup's records: the schema, and the transaction without its date and default
/// values.
fn bodies(file: &str) -> Vec<Value> {
    let mut bodies: Vec<Value> = file
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| Value::parse(line.as_bytes()).expect("a body is JSON"))
        .collect();
    let Value::Object(members) = &mut bodies[1] else {
        panic!("a transaction is an object")
    };
    assert!(members.remove(bstr::BStr::new("_date")).is_some());
    for table in members.values_mut() {
        let Value::Object(rows) = table else { continue };
        for row in rows.values_mut() {
            let Value::Object(columns) = row else {
                panic!("a row is an object")
            };
            columns.retain(|_, value| !is_default(value));
        }
    }
    bodies
}

fn is_default(value: &Value) -> bool {
    let text = value.to_string();
    let zero = "[\"uuid\",\"00000000-0000-0000-0000-000000000000\"]";
    ["0", "false", "\"\"", "[\"set\",[]]", "[\"map\",[]]", zero].contains(&text.as_str())
}

#[test]
fn backups_are_equal_and_interchangeable() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let dir = fixture.dir.path();
    let backups = [THEIRS, OURS].map(|program| {
        let done = run(program, dir, &["backup", "mydb"], b"");
        assert_eq!((done.status, done.stderr.as_str()), (0, ""));
        done.stdout
    });
    assert_eq!(bodies(&backups[1]), bodies(&backups[0]));
    let dump = || {
        without_uuids(
            &run(
                THEIRS,
                dir,
                &["dump", "mydb", "T", "name", "s", "m", "n", "one"],
                b"",
            )
            .stdout,
        )
    };
    let before = dump();
    for (program, backup) in [
        (OURS, &backups[0]),
        (THEIRS, &backups[1]),
        (OURS, &backups[1]),
    ] {
        fixture.transact(r#"["mydb",{"op":"delete","table":"T","where":[]}]"#);
        let done = run(program, dir, &["restore", "mydb"], backup.as_bytes());
        // The reference cannot read a pipe.
        if program == THEIRS {
            assert_ne!(done.status, 0);
            let file = fixture.dir.file("backup.db");
            std::fs::write(&file, backup).unwrap();
            let input = std::fs::File::open(&file).unwrap();
            let ended = command(THEIRS, dir, &["restore", "mydb"])
                .stdin(input)
                .status()
                .unwrap();
            assert!(ended.success());
        } else {
            assert_eq!(
                (done.status, done.stderr.as_str(), done.stdout.as_str()),
                (0, "", "")
            );
        }
        assert_eq!(dump(), before);
        let referring = run(THEIRS, dir, &["-fjson", "dump", "mydb", "U"], b"").stdout;
        assert!(
            referring.contains("first") && referring.contains("second"),
            "{referring}"
        );
    }
}

/// The reference restores into the database that the backup names; ours restores into the one that
/// the command line names.
#[test]
fn forced_restores_replace_the_named_database() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let dir = fixture.dir.path();
    fixture.transact(r#"["other",{"op":"insert","table":"O","row":{"v":"keep"}}]"#);
    let other = run(THEIRS, dir, &["backup", "other"], b"").stdout;
    let done = run(OURS, dir, &["--force", "restore", "mydb"], other.as_bytes());
    assert_eq!(done.status, 1);
    assert!(done.stderr.contains("No table named O."), "{done:?}");
    assert!(
        run(THEIRS, dir, &["dump", "other"], b"")
            .stdout
            .contains("keep")
    );

    std::fs::write(
        fixture.dir.file("newer.ovsschema"),
        SCHEMA.replace("1.0.0", "1.0.1"),
    )
    .unwrap();
    let backup = run(THEIRS, dir, &["backup", "mydb"], b"").stdout;
    assert_eq!(
        run(THEIRS, dir, &["convert", "newer.ovsschema"], b"").status,
        0
    );
    let expected = "ovsdb_client|INFO|backup schema has version \"1.0.0\" but database schema has version \"1.0.1\"\n";
    for program in [THEIRS, OURS] {
        std::fs::write(fixture.dir.file("backup.db"), &backup).unwrap();
        let input = std::fs::File::open(fixture.dir.file("backup.db")).unwrap();
        let done = command(program, dir, &["--force", "restore", "mydb"])
            .stdin(input)
            .output()
            .unwrap();
        assert_eq!(
            without_dates(&String::from_utf8_lossy(&done.stderr)),
            expected
        );
        assert!(done.status.success());
    }
}

/// The input is a file, because the reference cannot read a pipe.
#[test]
fn bad_restores_fail_as_in_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let dir = fixture.dir.path();
    let backup = run(THEIRS, dir, &["backup", "mydb"], b"").stdout;
    let other = run(THEIRS, dir, &["backup", "other"], b"").stdout;
    let newer = {
        std::fs::write(
            fixture.dir.file("newer.ovsschema"),
            SCHEMA.replace("1.0.0", "1.0.1"),
        )
        .unwrap();
        let made = run(
            "/usr/bin/ovsdb-tool",
            dir,
            &["create", "newer.db", "newer.ovsschema"],
            b"",
        );
        assert_eq!(made.status, 0, "{made:?}");
        std::fs::read_to_string(fixture.dir.file("newer.db")).unwrap()
    };
    let half = backup[..backup.len() - 20].to_owned();
    let damaged = backup.replace("first", "fIrst");
    for (args, content) in [
        (&["restore", "mydb"] as &[&str], other.as_str()),
        (&["restore", "mydb"], &newer),
        (&["restore", "mydb"], ""),
        (&["restore", "mydb"], "hello\n"),
        (
            &["restore", "mydb"],
            "OVSDB CLUSTER 10 0123456789012345678901234567890123456789\n",
        ),
        (&["restore", "mydb"], &half),
        (&["restore", "mydb"], &damaged),
    ] {
        let path = fixture.dir.file("input.db");
        std::fs::write(&path, content).unwrap();
        let outcomes = [THEIRS, OURS].map(|program| {
            let input = std::fs::File::open(&path).unwrap();
            let done = command(program, dir, args).stdin(input).output().unwrap();
            let text =
                |bytes: &[u8]| with_sorted_members(&without_dates(&String::from_utf8_lossy(bytes)));
            (status(done.status), text(&done.stdout), text(&done.stderr))
        });
        assert_eq!(outcomes[1], outcomes[0], "{args:?} {content:.60}");
    }
}

#[test]
fn conversions_end_as_in_the_reference() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let write = |name: &str, text: &str| std::fs::write(fixture.dir.file(name), text).unwrap();
    write("newer.ovsschema", &SCHEMA.replace("1.0.0", "1.0.1"));
    write("bad.ovsschema", "{\"name\":\"mydb\"}");
    write("nojson.ovsschema", "{");
    let cases: &[&[&str]] = &[
        &["needs-conversion", "my.ovsschema"],
        &["needs-conversion", "newer.ovsschema"],
        &["needs-conversion", "unix:db.sock", "newer.ovsschema"],
        &["needs-conversion", "bad.ovsschema"],
        &["needs-conversion", "nojson.ovsschema"],
        &["needs-conversion", "nofile.ovsschema"],
        &["convert", "bad.ovsschema"],
        &["--no-db-change-aware", "convert", "newer.ovsschema"],
        &["needs-conversion", "newer.ovsschema"],
        &["convert", "unix:db.sock", "my.ovsschema"],
        &["needs-conversion", "my.ovsschema"],
    ];
    compare_all(&fixture, UpToUuids, cases.iter().copied());
    // The reference crashes here.
    write("unknown.ovsschema", r#"{"name":"nodb","tables":{}}"#);
    for word in ["convert", "needs-conversion"] {
        let done = run(OURS, fixture.dir.path(), &[word, "unknown.ovsschema"], b"");
        assert_eq!(done.status, 1);
        assert!(
            done.stderr
                .starts_with("ovsdb-client: transaction returned error: "),
            "{done:?}"
        );
        assert!(done.stderr.contains("unknown database"), "{done:?}");
    }
}
