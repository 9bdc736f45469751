//! `ovsdb-client history`, `log`, `diff` and `--at` on a running server: the same output as that of
//! `ovsdb-tool` on the server's files.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary::bin;
use corvid_tests::client::Client;
use corvid_tests::limited;
use corvid_tests::one_file;
use corvid_tests::peer;
use corvid_tests::process::Process;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// More rows than a server puts into one line of an event.
const MANY: i64 = 600;

pub(crate) fn schema(version: &str, columns: &Value) -> Value {
    json!({"name": "D", "version": version, "tables": {"T": {"isRoot": true, "columns": columns}}})
}

pub(crate) fn columns() -> Value {
    json!({"name": {"type": "string"}, "n": {"type": "integer"},
        "r": {"type": {"key": "real", "min": 0, "max": 1}},
        "map": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}},
        "set": {"type": {"key": "string", "min": 0, "max": "unlimited"}}})
}

/// A server that keeps its history, and a folder for it and for the commands.
pub(crate) struct Served {
    pub(crate) server: Process,
    pub(crate) folder: TempDir,
}

/// A finished command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl Served {
    pub(crate) fn start() -> Served {
        let schema = schema("1.0.0", &columns());
        let started = one_file::start(&schema, &["--keep-history=100000"]);
        let (server, _, folder) = started.expect("started");
        Served { server, folder }
    }

    /// Compacts the file and waits until the replaced one, which has this number, is compressed.
    fn compact(&self, number: u32) {
        let compact = self
            .server
            .control("ovsdb-server/compact", &["D".to_owned()]);
        compact.expect("answered");
        let segment = format!("a.db.history/{number:010}.db.zst");
        let begin = Instant::now();
        while !self.folder.path().join(&segment).exists() {
            assert!(begin.elapsed() < LIMIT, "{}", self.server.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn remote(&self) -> String {
        format!("unix:{}", self.server.socket().display())
    }

    /// Asks the file.
    pub(crate) fn tool(&self, words: &[&str]) -> Done {
        run(self.folder.path(), "ovsdb-tool", words)
    }

    /// Asks the server; the word SERVER is its address.
    fn client(&self, words: &[&str]) -> Done {
        let remote = self.remote();
        let words: Vec<&str> = words
            .iter()
            .map(|&word| if word == "SERVER" { &remote } else { word })
            .collect();
        run(self.folder.path(), "ovsdb-client", &words)
    }

    /// The output of both, which must be equal and not empty.
    fn both(&self, options: &[&str], command: &str, rest: &[&str]) -> String {
        let tool = self.tool(&[options, &["--", command, "a.db"], rest].concat());
        let client = self.client(&[options, &["--", command, "SERVER", "D"], rest].concat());
        assert_eq!((tool.status, tool.errors.as_str()), (Some(0), ""));
        assert_eq!(client, tool, "{options:?} {command} {rest:?}");
        assert!(!tool.out.is_empty(), "{options:?} {command} {rest:?}");
        tool.out
    }
}

pub(crate) fn run(folder: &Path, program: &str, words: &[&str]) -> Done {
    let mut command = Command::new(bin(program));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    let output = limited::output(&mut command).expect("it ends");
    Done {
        status: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn transact(client: &mut Client, operations: &[Value]) -> Value {
    let params: Vec<Value> = [json!("D")].iter().chain(operations).cloned().collect();
    let reply = client.call("transact", &json!(params)).expect("a reply");
    let results = reply["result"].as_array().expect("results");
    let refused = results.iter().any(|result| !result["error"].is_null());
    assert!(!refused && results.len() == operations.len(), "{reply}");
    reply["result"].clone()
}

pub(crate) fn insert(row: &Value) -> Value {
    json!({"op": "insert", "table": "T", "row": row})
}

pub(crate) fn comment(text: &str) -> Value {
    json!({"op": "comment", "comment": text})
}

fn is_named(name: &str) -> Value {
    json!([["name", "==", name]])
}

/// Makes a past of two segments and the present file. Returns the UUID of the row `a`, which is
/// deleted last.
pub(crate) fn live(served: &Served) -> String {
    let mut client = served.server.connect().expect("connected");
    let row = json!({"name": "a", "n": 1, "r": 0.5, "set": ["set", ["x", "y z"]],
        "map": ["map", [["k", "v"], ["true", ""]]]});
    let results = transact(
        &mut client,
        &[insert(&row), comment("ovs-vsctl: add a\nnow")],
    );
    let uuid = results[0]["uuid"][1].as_str().expect("a UUID").to_owned();
    let set_n = |name: &str, n: i64| json!({"op": "update", "table": "T", "where": is_named(name), "row": {"n": n}});
    transact(&mut client, &[set_n("a", 2), comment("first")]);
    served.compact(1);
    let change = json!({"op": "mutate", "table": "T", "where": is_named("a"), "mutations": [
        ["set", "insert", "w"], ["set", "delete", "x"], ["map", "insert", ["map", [["l", "m"]]]]]});
    transact(&mut client, &[change, comment("ovs-vsctl: set a")]);
    let many: Vec<Value> = (0..MANY).map(|n| insert(&json!({"n": n}))).collect();
    transact(&mut client, &many);
    served.compact(2);
    let delete = json!({"op": "delete", "table": "T", "where": is_named("a")});
    transact(&mut client, &[delete, comment("remove a")]);
    let empty = json!({"op": "delete", "table": "T", "where": [["n", ">", 1]]});
    transact(&mut client, &[empty]);
    uuid
}

#[test]
fn a_running_server_tells_what_the_tool_reads_in_its_files() {
    let served = Served::start();
    let uuid = live(&served);

    let files = served.both(&[], "history", &[]);
    assert_eq!(files.lines().count(), 3, "{files}");
    let files = served.both(&["--json"], "history", &[]);
    assert!(files.contains("a.db.history/0000000002.db.zst"), "{files}");

    let row = format!("--row={uuid}");
    let log = served.both(&[&row], "log", &[]);
    assert_eq!(log.matches("commit ").count(), 4, "{log}");
    served.both(&[&row, "--json"], "log", &[]);
    // A commit with many changes comes in several lines, of which people see nothing.
    let log = served.both(&[], "log", &[]);
    assert_eq!(log.matches("insert T").count(), 1 + MANY as usize);
    let last = served.both(&["-n", "3"], "log", &[]);
    assert_eq!(last.matches("commit ").count(), 3, "{last}");
    for options in [
        &["--client=ovs-vsctl"][..],
        &["--table=T", "--column=set"],
        &["--since=HEAD~3", "--until=HEAD~1"],
        &["--json", "--column=map"],
    ] {
        served.both(options, "log", &[]);
    }
    let id = last
        .lines()
        .find_map(|line| line.strip_prefix("commit "))
        .expect("an id");
    served.both(&[], "diff", &["HEAD~6", id]);
    served.both(&["--json", "--column=set"], "diff", &["HEAD~6", "HEAD~2"]);

    let dump = served.both(&["--at=HEAD~4"], "dump", &[]);
    assert!(dump.contains(&uuid), "{dump}");
    served.both(&["--at=HEAD~2"], "dump", &["T"]);
    let now = local_now();
    let at = format!("--at={now}");
    served.both(&[&at], "dump", &["T"]);
    let select = format!(
        r#"["D",{{"op":"select","table":"T","where":[["_uuid","==",["uuid","{uuid}"]]],"columns":["n"]}}]"#
    );
    for (at, rows) in [
        ("--at=HEAD~5", r#"{"n":1}"#),
        ("--at=HEAD~2", r#"{"n":2}"#),
        ("--at=HEAD", ""),
    ] {
        let query = served.client(&[at, "query", "SERVER", &select]);
        assert_eq!((query.status, query.errors.as_str()), (Some(0), ""));
        assert_eq!(query.out, format!("[{{\"rows\":[{rows}]}}]\n"), "{at}");
    }
}

/// The present local time, as people write it.
fn local_now() -> String {
    let output = Command::new("date").arg("+%Y-%m-%dT%H:%M:%S.%3N").output();
    let text = String::from_utf8(output.expect("date").stdout).expect("digits");
    text.trim().to_owned()
}

#[test]
fn a_backup_of_a_moment_is_a_database_file_that_is_restored() {
    let served = Served::start();
    let uuid = live(&served);
    let folder = served.folder.path();
    let backup = |options: &[&str], name: &str| {
        let file = File::create(folder.join(name)).expect("a file");
        let mut command = Command::new(bin("ovsdb-client"));
        command
            .args(options)
            .args(["backup", &served.remote(), "D"]);
        let status = command.stdout(file).status().expect("it runs");
        assert!(status.success(), "{options:?}");
    };
    backup(&["--at=HEAD~2"], "then.db");
    let dump = |file: &str| served.tool(&["dump", file]).out;
    let then = served.tool(&["--at=HEAD~2", "dump", "a.db"]).out;
    assert!(then.contains(&uuid) && dump("then.db") == then, "{then}");
    // The tool reads and restores it like any other database file.
    let restored = served.tool(&["--at=HEAD", "restore", "then.db", "again.db"]);
    assert_eq!(restored.status, Some(0), "{restored:?}");
    assert_eq!(dump("again.db"), then);
    // So does a server that runs.
    let mut command = Command::new(bin("ovsdb-client"));
    command
        .args(["--keep-uuids", "restore", &served.remote(), "D"])
        .stdin(File::open(folder.join("then.db")).expect("the backup"));
    assert!(command.status().expect("it runs").success());
    assert_eq!(served.client(&["dump", "SERVER", "D"]).out, then);
    let head = served.both(&["-n", "1", "--row", &uuid], "log", &[]);
    assert!(head.contains(&format!("insert T \"a\" {uuid}")), "{head}");
}

#[test]
fn contents_before_a_conversion_have_the_schema_of_then() {
    let served = Served::start();
    live(&served);
    let new = json!({"renamed": {"type": "string"}});
    let schema_file = served.folder.path().join("new.ovsschema");
    fs::write(&schema_file, schema("2.0.0", &new).to_string()).expect("written");
    let convert = served.client(&["convert", "SERVER", "new.ovsschema"]);
    assert_eq!(convert.status, Some(0), "{convert:?}");
    served.compact(4);
    let now = served.both(&["--at=HEAD"], "dump", &[]);
    assert!(now.contains("renamed"), "{now}");
    let log = served.both(&["--since=HEAD~1"], "log", &[]);
    assert!(
        log.contains("conversion from schema version 1.0.0 to 2.0.0"),
        "{log}"
    );
    let then = served.both(&["--at=HEAD~4"], "dump", &[]);
    assert!(then.contains("map") && !then.contains("renamed"), "{then}");
    // Rows of tables with other columns are not compared; both say so.
    let words = ["HEAD~4", "HEAD"];
    let tool = served.tool(&[&["diff", "a.db"], &words[..]].concat());
    let client = served.client(&[&["diff", "SERVER", "D"], &words[..]].concat());
    let problem =
        "table T: its columns differ between the two moments, so its rows are not compared\n";
    assert_eq!(tool.errors, format!("ovsdb-tool: {problem}"));
    assert_eq!(client.errors, format!("ovsdb-client: {problem}"));
    assert_eq!((client.status, client.out), (tool.status, tool.out));
}

#[test]
fn wrong_questions_are_answered_with_the_words_of_the_tool() {
    let served = Served::start();
    live(&served);
    for (options, command, rest) in [
        (&["--since=HEAD~99"][..], "log", &[][..]),
        (&["--since=yesterday"], "log", &[]),
        (&["--until=00000000"], "log", &[]),
        (&["--table=U"], "log", &[]),
        (&["--column=nothing"], "diff", &["HEAD~1", "HEAD"]),
        (&["--at=@1"], "dump", &[]),
    ] {
        let tool = served.tool(&[options, &[command, "a.db"], rest].concat());
        let client = served.client(&[options, &[command, "SERVER", "D"], rest].concat());
        assert_eq!((tool.status, client.status), (Some(1), Some(1)));
        let said = tool.errors.strip_prefix("ovsdb-tool: ").expect("a message");
        let is_same = client.errors.starts_with("ovsdb-client: ") && client.errors.ends_with(said);
        assert!(is_same, "{options:?} {command}: {client:?} {tool:?}");
        assert_eq!(client.out, "");
    }
    let insert = r#"["D",{"op":"insert","table":"T","row":{}}]"#;
    let refused = served.client(&["--at=HEAD", "query", "SERVER", insert]);
    assert_eq!((refused.status, refused.out.as_str()), (Some(1), ""));
    assert!(
        refused.errors.contains("only select and comment"),
        "{refused:?}"
    );
}

#[test]
fn the_reference_and_its_relays_are_answered_with_what_to_do_instead() {
    if Implementation::Reference.server_binary().is_err() {
        return peer::say_skipped("ovsdb-server");
    }
    let setup = Setup {
        databases: vec![schema("1.0.0", &columns())],
        ..Setup::default()
    };
    let reference = Server::start(Implementation::Reference, &setup).expect("a server");
    let folder = tempfile::tempdir().expect("a folder");
    let remote = format!("unix:{}", reference.socket().display());
    let done = run(folder.path(), "ovsdb-client", &["log", &remote, "D"]);
    let expected = format!(
        "ovsdb-client: {remote}: the server cannot read the history of its databases: it is an older release or another \
         program; use \"ovsdb-tool log FILE\" on a host that has the database's file\n"
    );
    assert_eq!((done.status, done.errors), (Some(1), expected));

    let relay = relay_of(folder.path(), &remote);
    let remote = format!("unix:{}", relay.socket().display());
    for words in [&["log"][..], &["--at=HEAD", "dump"]] {
        let done = run(
            folder.path(),
            "ovsdb-client",
            &[words, &[&remote, "D"]].concat(),
        );
        let text = "ovsdb-client: not supported: database D is that of a relay, whose source cannot be asked for its \
                    history; ask a server that has the database's file\n";
        assert_eq!((done.status, done.errors.as_str()), (Some(1), text));
    }
}

/// Starts a relay of the database of `remote`, and waits until it is connected.
pub(crate) fn relay_of(folder: &Path, remote: &str) -> Process {
    let program = Implementation::Corvid.server_binary().expect("built");
    let source = OsString::from(format!("relay:D:{remote}"));
    let mut relay = Process::new(&program, folder, &[source]);
    relay.start().expect("started");
    let remote = format!("unix:{}", relay.socket().display());
    let wait = ["-t60", "wait", &remote, "D", "connected"];
    assert_eq!(run(folder, "ovsdb-client", &wait).status, Some(0));
    relay
}

/// The rows of `T` by name: `n`, the set and the map, as they are printed in JSON.
fn contents(client: &mut Client) -> Vec<String> {
    let select = json!({"op": "select", "table": "T", "where": []});
    let results = transact(client, &[select]);
    let rows = results[0]["rows"].as_array().expect("rows");
    let mut texts: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {} {}",
                row["name"].as_str().expect("a name"),
                row["_uuid"][1].as_str().expect("a UUID"),
                row["n"],
                row["set"],
                row["map"]
            )
        })
        .collect();
    texts.sort();
    texts
}

/// The id and the time of the commit with this comment.
fn commit(served: &Served, comment: &str) -> (String, i64) {
    let log = served.client(&["--json", "log", "SERVER", "D"]);
    let mut lines = log
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let found = lines.find(|line: &Value| line["comment"] == comment);
    let line = found.expect("the commit");
    let id = line["id"].as_str().expect("an id").to_owned();
    (id, line["date"].as_i64().expect("a time"))
}

#[test]
fn a_commit_is_reverted_unless_others_have_changed_it() {
    let served = Served::start();
    let client = &mut served.server.connect().expect("connected");
    transact(
        client,
        &[
            insert(&json!({"name": "a", "n": 1, "set": "x"})),
            insert(&json!({"name": "b", "n": 5})),
            comment("begin"),
        ],
    );
    let (_, begin_ms) = commit(&served, "begin");
    let before = contents(client);
    served.compact(1);
    // The times of commits have a resolution of one millisecond.
    thread::sleep(Duration::from_millis(5));
    transact(
        client,
        &[
            json!({"op": "update", "table": "T", "where": is_named("a"), "row": {"n": 2}}),
            json!({"op": "mutate", "table": "T", "where": is_named("a"), "mutations": [
                ["set", "insert", "y"], ["map", "insert", ["map", [["k", "v"]]]]]}),
            json!({"op": "delete", "table": "T", "where": is_named("b")}),
            insert(&json!({"name": "c"})),
            comment("the mistake"),
        ],
    );
    let (mistake, _) = commit(&served, "the mistake");
    let later = json!({"op": "mutate", "table": "T", "where": is_named("a"),
        "mutations": [["set", "insert", "z"]]});
    transact(client, &[later, comment("later")]);
    let with_mistake = contents(client);

    let revert = |options: &[&str], what: &str| {
        served.client(&[options, &["--", "revert", "SERVER", "D", what]].concat())
    };
    let planned = revert(&["--dry-run"], &mistake);
    assert_eq!(planned.status, Some(0), "{planned:?}");
    assert_eq!(contents(client), with_mistake);
    let done = revert(&[], &mistake);
    assert_eq!(done, planned);
    for line in ["- n: 2", "+ n: 1", "delete T \"c\"", "insert T \"b\""] {
        assert!(done.out.contains(line), "{done:?}");
    }
    // Elements that were added later to the same set stays, and `b` is the same row as before.
    let expected: Vec<String> = before
        .iter()
        .map(|row| row.replace("\"x\"", r#"["set",["x","z"]]"#))
        .collect();
    assert_eq!(contents(client), expected);
    let again = revert(&[], &mistake);
    assert_eq!((again.status, again.out.as_str()), (Some(0), ""));
    assert!(again.errors.contains("nothing is left to revert"));
    // Nothing has happened since now, so the last commit stays.
    let now = revert(&[], "now");
    assert_eq!((now.status, now.out.as_str()), (Some(0), ""));
    assert!(now.errors.contains("nothing is left to revert"));
    let (_, reverted_ms) = commit(&served, &format!("ovsdb-client: revert commit {mistake}"));
    assert!(reverted_ms > begin_ms);

    // A revert is a commit like others.
    let done = revert(&[], "HEAD");
    assert_eq!(done.status, Some(0), "{done:?}");
    assert_eq!(contents(client), with_mistake);

    let change = json!({"op": "update", "table": "T", "where": is_named("a"), "row": {"n": 9}});
    transact(client, &[change]);
    let changed = contents(client);
    let refused = revert(&[], &mistake);
    assert_eq!((refused.status, refused.out.as_str()), (Some(1), ""));
    let conflict = "n is 9 now, and the change set it to 2";
    assert!(refused.errors.contains(conflict), "{refused:?}");
    assert_eq!(contents(client), changed, "nothing is half done");

    // A part of it, and then everything since a time.
    let lost = before.iter().find(|row| row.starts_with("b ")).expect("b");
    let uuid = lost.split(' ').nth(1).expect("its UUID");
    let row = format!("--row={uuid}");
    let done = revert(&[&row, "--table=T"], &mistake);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert_eq!(contents(client).len(), changed.len() + 1);
    let done = revert(&[], &format!("@{begin_ms}"));
    assert_eq!(done.status, Some(0), "{done:?}");
    assert_eq!(contents(client), before);
    let nothing = revert(&[], "00000000");
    assert_eq!(nothing.status, Some(1), "{nothing:?}");
    assert!(nothing.errors.contains("no such commit"), "{nothing:?}");
}

/// A bridge refers to a port, which is deleted with its last reference; a mirror refers weakly to
/// the port, also in a map.
#[test]
fn a_revert_neither_deletes_rows_of_others_nor_references_to_rows() {
    let reference = |how: &str| json!({"type": "uuid", "refTable": "Port", "refType": how});
    let set = |key: &Value| json!({"type": {"key": key, "min": 0, "max": "unlimited"}});
    let schema = json!({"name": "D", "version": "1.0.0", "tables": {
        "Bridge": {"isRoot": true, "columns": {"ports": set(&reference("strong"))}},
        "Mirror": {"isRoot": true, "columns": {"port": set(&reference("weak")),
            "map": {"type": {"key": "string", "value": reference("weak"), "min": 0, "max": "unlimited"}}}},
        "Port": {"columns": {"tag": {"type": "integer"}}}}});
    let started = one_file::start(&schema, &[]);
    let (server, _, folder) = started.expect("started");
    let served = Served { server, folder };
    let client = &mut served.server.connect().expect("connected");
    let add = |table: &str, row: &Value| json!({"op": "insert", "table": table, "row": row});
    transact(
        client,
        &[
            add("Bridge", &json!({})),
            add("Mirror", &json!({})),
            comment("begin"),
        ],
    );
    let port = json!({"op": "insert", "table": "Port", "row": {"tag": 1}, "uuid-name": "p"});
    let refer = json!({"op": "update", "table": "Bridge", "where": [], "row": {"ports": ["named-uuid", "p"]}});
    let results = transact(client, &[port, refer, comment("add a port")]);
    let port = &results[0]["uuid"];
    let (added, _) = commit(&served, "add a port");
    let revert = |options: &[&str]| {
        served.client(&[options, &["--", "revert", "SERVER", "D", &added]].concat())
    };

    // A part of the commit: the port would be deleted, and a later change of it would be lost.
    let refused = revert(&["--table=Bridge"]);
    assert_eq!(refused.status, Some(1), "{refused:?}");
    let problem = "nothing would refer to the row any more";
    assert!(refused.errors.contains(problem), "{refused:?}");

    // Others refer to the port since.
    for row in [
        json!({"port": port}),
        json!({"map": ["map", [["m", port]]]}),
    ] {
        transact(
            client,
            &[json!({"op": "update", "table": "Mirror", "where": [], "row": row})],
        );
        let refused = revert(&[]);
        assert_eq!(refused.status, Some(1), "{row}: {refused:?}");
        assert!(
            refused.errors.contains("refers to the row now"),
            "{refused:?}"
        );
        let none = json!({"port": ["set", []], "map": ["map", []]});
        transact(
            client,
            &[json!({"op": "update", "table": "Mirror", "where": [], "row": none})],
        );
    }
    let done = revert(&[]);
    assert_eq!(done.status, Some(0), "{done:?}");
    let select = json!({"op": "select", "table": "Port", "where": []});
    let left = transact(client, &[select]);
    assert_eq!(left[0]["rows"], json!([]));
}

#[test]
fn commands_refuse_options_that_they_cannot_obey() {
    let served = Served::start();
    let before = std::fs::read(served.folder.path().join("a.db")).expect("a file");
    for words in [
        &[
            "--at=HEAD~1",
            "transact",
            "a.db",
            r#"["D",{"op":"comment","comment":"x"}]"#,
        ][..],
        &["--at=HEAD~1", "compact", "a.db"],
        &["--table=T", "dump", "a.db"],
        &["-n", "5", "diff", "a.db", "HEAD~1", "HEAD"],
    ] {
        let refused = served.tool(words);
        assert_eq!(
            (refused.status, refused.out.as_str()),
            (Some(1), ""),
            "{words:?}"
        );
        assert!(refused.errors.contains("does not accept"), "{refused:?}");
    }
    let after = std::fs::read(served.folder.path().join("a.db")).expect("a file");
    assert!(before == after, "a file has changed");
    for (options, command, problem) in [
        (
            &["--column=n"][..],
            &["revert", "SERVER", "D", "HEAD"][..],
            "'revert' does not accept --column",
        ),
        (
            &["--table=U"],
            &["revert", "SERVER", "D", "HEAD"],
            "there is no table \"U\"",
        ),
        (
            &["--dry-run"],
            &["transact", "SERVER", "[\"D\"]"],
            "'transact' does not accept --dry-run",
        ),
        (
            &["--since=HEAD~1"],
            &["dump", "SERVER", "D"],
            "'dump' does not accept --since, only these commands do: log",
        ),
        (
            &["--keep-uuids"],
            &["revert", "SERVER", "D", "HEAD"],
            "'revert' does not accept --keep-uuids, only these commands do: restore",
        ),
    ] {
        let refused = served.client(&[options, command].concat());
        assert_eq!(
            (refused.status, refused.out.as_str()),
            (Some(1), ""),
            "{options:?}"
        );
        assert!(refused.errors.contains(problem), "{refused:?}");
    }
}
