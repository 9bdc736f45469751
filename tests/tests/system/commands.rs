//! Control commands that show the state of a server, compared with the reference if it is
//! installed.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::binary;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The replies and the log of one implementation.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    answers: Vec<String>,
    /// The cells of each logged row, sorted and without identities.
    rows: Vec<Vec<String>>,
}

fn tell(implementation: Implementation) -> Told {
    let schema = json!({"name": "D", "tables": {
        "T": {"isRoot": true, "columns": {
            "name": {"type": "string"},
            "note": {"type": {"key": "string", "min": 0, "max": 1}},
            "numbers": {"type": {"key": "integer", "min": 0, "max": "unlimited"}},
            "pairs": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}},
            "friend": {"type": {"key": {"type": "uuid", "refTable": "T", "refType": "weak"}, "min": 0}}}},
        "U": {"isRoot": true, "columns": {"n": {"type": "integer"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    let server = Server::start(implementation, &setup).expect("a server");
    let mut client = server.connect().expect("a connection");
    let mut answers = Vec::new();
    let mut ask = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().expect("a command");
        let arguments: Vec<String> = words.collect();
        let reply = server.control(&command, &arguments).expect("a reply");
        answers.push(format!("{line}: {}", normal(&reply)));
    };
    let mut transact = |operations: Value| {
        let mut params = vec![json!("D")];
        params.extend(operations.as_array().expect("operations").iter().cloned());
        let reply = client
            .call("transact", &Value::Array(params))
            .expect("a reply");
        assert_eq!(reply["error"], Value::Null, "{reply}");
    };
    // The session that checked whether the server listens may end a little after our session has
    // begun.
    let deadline = Instant::now() + LIMIT;
    loop {
        let reply = server.control("memory/show", &[]).expect("a reply");
        if normal(&reply).ends_with("sessions:1") {
            break;
        }
        assert!(Instant::now() < deadline, "{reply}");
        thread::sleep(Duration::from_millis(5));
    }
    ask("memory/show");
    transact(json!([
        {"op": "insert", "table": "T", "uuid-name": "a", "row": {"name": "a"}},
        {"op": "insert", "table": "T", "row": {"name": "b c", "numbers": ["set", [3, 1, 2]],
            "friend": ["named-uuid", "a"]}},
        {"op": "insert", "table": "U", "row": {"n": 7}}]));
    for line in [
        "memory/show",
        "ovsdb-server/tlog-list",
        "ovsdb-server/tlog-set D:T maybe",
        "ovsdb-server/tlog-set T on",
        "ovsdb-server/tlog-set E:T on",
        "ovsdb-server/tlog-set D:X on",
        "ovsdb-server/tlog-set D:T on",
        "ovsdb-server/tlog-list",
        "ovsdb-server/memory-trim-on-compaction off",
        "ovsdb-server/memory-trim-on-compaction on",
        "ovsdb-server/memory-trim-on-compaction both",
        "ovsdb-server/perf-counters-show",
        "ovsdb-server/perf-counters-clear",
    ] {
        ask(line);
    }
    for operation in [
        json!({"op": "insert", "table": "T", "row": {"name": "c", "note": "x y"}}),
        json!({"op": "update", "table": "T", "where": [["name", "==", "c"]], "row": {"pairs": ["map", [["k", "v 1"]]]}}),
        json!({"op": "update", "table": "U", "where": [], "row": {"n": 8}}),
        json!({"op": "delete", "table": "T", "where": [["name", "==", "b c"]]}),
    ] {
        transact(json!([operation]));
    }
    ask("ovsdb-server/tlog-set D:T off");
    transact(json!([{"op": "delete", "table": "T", "where": []}]));
    ask("memory/show");
    let log = server.log();
    let rows = log
        .lines()
        .filter_map(|line| line.split_once("|transaction|INFO|"));
    Told {
        answers,
        rows: rows.map(|(_, row)| cells(row)).collect(),
    }
}

/// Returns a reply without the parts that standalone databases of the reference do not have.
fn normal(reply: &Value) -> String {
    let text = match &reply["error"] {
        Value::Null => reply["result"].as_str().unwrap_or_default(),
        error => error.as_str().unwrap_or_default(),
    };
    let words = text
        .split(' ')
        .filter(|word| !word.starts_with("txn-history"));
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// Returns the parts between commas, sorted and without identities.
fn cells(row: &str) -> Vec<String> {
    let is_identity = |cell: &&str| {
        ["_uuid:", "_version:", "friend:"]
            .iter()
            .any(|name| cell.starts_with(name))
    };
    let mut cells: Vec<String> = row
        .split(',')
        .filter(|cell| !is_identity(cell))
        .map(str::to_owned)
        .collect();
    cells.sort();
    cells
}

#[test]
fn commands_about_all_databases_answer_as_the_reference_does() {
    let ours = tell(Implementation::Corvid);
    assert_eq!(ours.rows.len(), 3, "{:?}", ours.rows);
    let shown = ours
        .answers
        .iter()
        .filter(|answer| answer.contains("atoms:"));
    assert_eq!(shown.count(), 3, "{:?}", ours.answers);
    if Implementation::Reference.server_binary().is_ok() {
        assert_eq!(ours, tell(Implementation::Reference));
    }
}

/// Returns the output of our control client, and whether it succeeded.
fn appctl(server: &Server, words: &[&str]) -> (String, bool) {
    let output = Command::new(binary::bin("ovs-appctl"))
        .arg("-t")
        .arg(server.control_socket())
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let text = if output.status.success() {
        output.stdout
    } else {
        output.stderr
    };
    (
        String::from_utf8(text).expect("text"),
        output.status.success(),
    )
}

/// The commands whose reply is data if JSON is asked for. Every command answers in both forms: the
/// JSON form wraps the text, except for these commands and `list-commands`, which has its own form.
/// Errors are text in both forms.
const DATA: [&str; 3] = [
    "ovsdb-server/list-sessions",
    "ovsdb-server/list-settings",
    "ovsdb-server/status",
];

#[test]
fn replies_as_json_hold_the_texts() {
    let setup = Setup {
        options: vec!["--no-dbs".to_owned()],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let json = |words: &[&str]| appctl(&server, &[&["-f", "json"], words].concat());
    let (listed, _) = json(&["list-commands"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let usages = listed.as_object().expect("an object");
    assert_eq!(usages["ovsdb-server/add-db"], "DB");
    let (mut wrapped, mut refused) = (0, 0);
    for name in usages.keys() {
        // These commands end the connection or the server, count the commands, or have their own
        // data.
        let others = ["exit", "list-commands", "coverage/show", "memory/show"];
        if others.contains(&name.as_str()) || DATA.contains(&name.as_str()) {
            continue;
        }
        let ((text, is_answer), (shown, is_shown)) = (appctl(&server, &[name]), json(&[name]));
        assert_eq!(is_answer, is_shown, "{name}: {text} {shown}");
        if is_answer {
            let reply: Value = serde_json::from_str(&shown).expect("JSON");
            assert_eq!(reply["reply-format"], "plain", "{name}");
            let reply = reply["reply"].as_str().expect("a text");
            assert_eq!(reply.trim_end(), text.trim_end(), "{name}");
            wrapped += 1;
        } else {
            assert_eq!(text, shown, "{name}");
            refused += 1;
        }
    }
    assert!(wrapped > 10 && refused > 5, "{wrapped} {refused}");
    for name in DATA {
        let data: Value = serde_json::from_str(&json(&[name]).0).expect("JSON");
        let is_expected = match name {
            "ovsdb-server/list-sessions" => data.is_array(),
            "ovsdb-server/list-settings" => data["max-message-size"].is_string(),
            _ => data["version"] == 1,
        };
        assert!(is_expected, "{name}: {data}");
    }
    for name in ["coverage/show", "memory/show"] {
        let reply: Value = serde_json::from_str(&json(&[name]).0).expect("JSON");
        assert!(reply["reply"].is_string(), "{name}: {reply}");
    }
}
