//! A reference server whose databases have contents.

use std::process::{Child, Stdio};

use corvid_json::Value;

use crate::support::{Dir, command, lines, run, wait_until};

pub(crate) const THEIRS: &str = "/usr/bin/ovsdb-client";
const TOOL: &str = "/usr/bin/ovsdb-tool";
const SERVER: &str = "/usr/sbin/ovsdb-server";

/// Every atomic type, every shape of column, an ephemeral column, references and constraints.
pub(crate) const SCHEMA: &str = r#"{"name":"mydb","version":"1.0.0","cksum":"1 2","tables":{
    "T":{"isRoot":true,"columns":{
        "b":{"type":"boolean"},"n":{"type":"integer"},"name":{"type":"string"},"r":{"type":"real"},"id":{"type":"uuid"},
        "e":{"type":"string","ephemeral":true},
        "o":{"type":{"key":"integer","min":0,"max":1}},
        "s":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "one":{"type":{"key":"string","value":"integer","min":0,"max":1}},
        "u":{"type":{"key":{"type":"uuid","refTable":"U"},"min":0,"max":"unlimited"}},
        "kind":{"type":{"key":{"type":"string","enum":["set",["","x","y"]]}}}}},
    "U":{"isRoot":false,"columns":{
        "k":{"type":{"key":{"type":"string","maxLength":40}}},
        "back":{"type":{"key":{"type":"uuid","refTable":"T","refType":"weak"},"min":0,"max":1}}}},
    "Empty":{"isRoot":true,"columns":{"x":{"type":"integer"}}}}}"#;

const CONTENTS: &str = r#"["mydb",
    {"op":"insert","table":"T","uuid-name":"t1","row":{"n":5,"name":"a b","s":["set",["x","y z"]],"r":0.1,
        "m":["map",[["k","v"],["k2","v 2"]]],"u":["set",[["named-uuid","u1"],["named-uuid","u2"]]],"kind":"x"}},
    {"op":"insert","table":"T","row":{"n":-9223372036854775808,"name":"<&>\"'","b":true,"r":1e20,"o":7,"s":"one",
        "one":["map",[["a",1]]],"id":["uuid","01234567-89ab-cdef-0123-456789abcdef"],"e":"gone"}},
    {"op":"insert","table":"T","row":{"n":5,"name":"é,\n\\","r":-1.5e-7,"o":["set",[]],
        "s":["set",["true","01234567-89ab-cdef-0123-456789abcdef","","a,b","a\"b"]]}},
    {"op":"insert","table":"U","uuid-name":"u1","row":{"k":"first","back":["named-uuid","t1"]}},
    {"op":"insert","table":"U","uuid-name":"u2","row":{"k":"second"}}]"#;

/// A running server and its directory. Dropping it kills the server and removes the directory.
pub(crate) struct Fixture {
    _server: Process,
    pub dir: Dir,
}

impl Fixture {
    /// A server with two databases; `None` if the reference is not installed.
    pub(crate) fn start() -> Option<Fixture> {
        let other = r#"{"name":"other","tables":{"O":{"columns":{"v":{"type":"string"}}}}}"#;
        Fixture::serving(&[("my", SCHEMA), ("other", other)], CONTENTS)
    }

    /// A server with a database for each file name and schema, filled by the transaction
    /// `contents`; `None` if the reference is not installed.
    pub(crate) fn serving(databases: &[(&str, &str)], contents: &str) -> Option<Fixture> {
        let missing = [THEIRS, TOOL, SERVER]
            .into_iter()
            .find(|program| !std::path::Path::new(program).exists());
        if let Some(program) = missing {
            eprintln!("SKIPPED: {program} is not installed, so nothing was compared");
            return None;
        }
        let dir = Dir::new();
        let mut args = [
            "--remote=punix:db.sock",
            "--unixctl=server.ctl",
            "-vconsole:off",
        ]
        .map(str::to_owned)
        .to_vec();
        for (name, schema) in databases {
            let (db, file) = (format!("{name}.db"), format!("{name}.ovsschema"));
            std::fs::write(dir.file(&file), schema).expect("the schema can be written");
            let made = run(TOOL, dir.path(), &["create", &db, &file], b"");
            assert_eq!(made.status, 0, "{}", made.stderr);
            args.push(db);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let server = command(SERVER, dir.path(), &args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the reference server starts");
        let server = Process(server);
        wait_until("the server's socket", || {
            run(THEIRS, dir.path(), &["list-dbs"], b"").status == 0
        });
        let fixture = Fixture {
            _server: server,
            dir,
        };
        fixture.transact(contents);
        Some(fixture)
    }

    /// Runs a transaction, which must succeed.
    pub(crate) fn transact(&self, transaction: &str) {
        let done = run(THEIRS, self.dir.path(), &["transact", transaction], b"");
        assert!(
            done.status == 0 && !done.stdout.contains("\"error\""),
            "{done:?}"
        );
    }
}

/// A process; dropping it kills the process.
pub(crate) struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sorts the members of JSON objects at the ends of lines.
pub(crate) fn with_sorted_members(text: &str) -> String {
    lines(text, |line| {
        let starts = line.match_indices(['{', '[']).map(|(start, _)| start);
        for start in starts {
            if let Ok(value) = Value::parse(&line.as_bytes()[start..]) {
                return format!("{}{value}", &line[..start]);
            }
        }
        line.to_owned()
    })
}
