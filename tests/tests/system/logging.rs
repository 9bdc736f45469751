//! The logs of servers: lines in the form of JSON objects if an option says so, and warnings about
//! work that takes long.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::process::pause;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn setup(options: &[&str]) -> Setup {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {
        "n": {"type": "integer"}, "name": {"type": "string"}}}}});
    Setup {
        databases: vec![schema],
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Setup::default()
    }
}

/// Waits until the log contains something. Returns the log.
fn log_with(server: &Server, wanted: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + LIMIT;
    loop {
        let log = server.log();
        if wanted(&log) {
            return log;
        }
        assert!(Instant::now() < deadline, "{log}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn control(server: &Server, command: &str, arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let reply = server.control(command, &arguments).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{command}");
    reply["result"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_log_of_json_has_an_object_on_each_line() {
    let setup = setup(&["--log-format=json"]);
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    control(&server, "vlog/message", &["a \"quoted\"\nmessage"]);
    let log = log_with(&server, |log| log.contains("user-message"));
    // The first line was written before the option was read.
    let (first, rest) = log.split_once('\n').expect("lines");
    assert!(first.contains("|vlog|INFO|opened log file "), "{first}");
    let lines: Vec<Value> = rest
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    let mut last = 1;
    for line in &lines {
        let time = line["time"].as_str().expect("a time");
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        let seq = line["seq"].as_u64().expect("a number");
        assert!(seq > last, "{log}");
        last = seq;
        assert_eq!(line["pid"], json!(server.pid()));
        assert_eq!(line["program"], "ovsdb-server");
    }
    let version = &lines[0];
    assert_eq!(
        (&version["module"], &version["level"], &version["thread"]),
        (&json!("ovsdb_server"), &json!("INFO"), &json!("main"))
    );
    let message = lines.last().expect("lines");
    assert_eq!(
        message["message"], "user-message: a \"quoted\"\nmessage",
        "{log}"
    );
    assert!(
        control(&server, "vlog/list-pattern", &[])
            .contains("FILE     none                              json\n")
    );

    // Patterns still work.
    control(&server, "vlog/set", &["PATTERN:file:%c-%p-%m"]);
    control(&server, "vlog/message", &["text again"]);
    log_with(&server, |log| {
        log.ends_with("vlog-INFO-user-message: text again\n")
    });
}

#[test]
fn options_of_our_own_make_no_abbreviation_ambiguous() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = Implementation::Corvid.server_binary().expect("built");
    let run = |arguments: &[&str]| {
        let output = Command::new(&program)
            .args(["--no-dbs", "--unixctl=none", "--run=true"])
            .args(arguments)
            .current_dir(dir.path())
            .env("OVS_LOGDIR", dir.path())
            .stdin(Stdio::null())
            .output()
            .expect("started");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    assert_eq!(
        run(&["-vconsole:off", "--log=short.log"]),
        (Some(0), String::new())
    );
    assert!(dir.path().join("short.log").exists());
    assert_eq!(
        run(&["--log-format=xml"]),
        (
            Some(1),
            "ovsdb-server: --log-format: expected \"text\" or \"json\", not \"xml\"\n".to_owned()
        )
    );
    let (status, said) = run(&["--slow-transaction-ms=soon"]);
    assert_eq!(status, Some(1));
    assert_eq!(
        said,
        "ovsdb-server: --slow-transaction-ms: expected a number of milliseconds, not \"soon\"\n"
    );
}

/// Returns a transaction that inserts `count` rows.
fn inserts(count: usize) -> Value {
    let mut params = vec![json!("D"), json!({"op": "comment", "comment": "many"})];
    params.extend((0..count).map(|n| json!({"op": "insert", "table": "T", "row": {"n": n}})));
    Value::from(params)
}

#[test]
fn slow_transactions_are_logged_with_client_and_operations() {
    let server = Server::start(Implementation::Corvid, &setup(&["--slow-transaction-ms=1"]));
    let server = server.expect("a server");
    let mut client = server.connect().expect("a connection");
    let reply = client.call("transact", &inserts(5000)).expect("a reply");
    assert_eq!(reply["error"], Value::Null);
    let log = log_with(&server, |log| log.contains("transaction on D took "));
    let line = log
        .lines()
        .find(|line| line.contains("|transaction|INFO|unix#"))
        .expect("a line");
    let tail = r#"ms (1 comment, 5000 insert; comment "many"; 5000 rows changed)"#;
    assert!(line.ends_with(tail), "{line}");

    // Long transactions are not read again for the log line, but the comment is known.
    let mut long = inserts(1);
    let text = json!({"op": "insert", "table": "T", "row": {"name": "x".repeat(8 << 20)}});
    long.as_array_mut().expect("an array").push(text);
    client.call("transact", &long).expect("a reply");
    log_with(&server, |log| {
        log.contains(r#" bytes; comment "many"; 2 rows changed)"#)
    });

    // Transactions that change nothing are logged, too: here scans of all rows for each operation,
    // and a long result that another thread writes.
    let mut idle = vec![json!("D")];
    idle.extend((0..500).map(
        |_| json!({"op": "update", "table": "T", "where": [["name", "!=", ""]], "row": {"n": 0}}),
    ));
    let mut select = vec![json!("D")];
    select.extend((0..20).map(|_| json!({"op": "select", "table": "T", "where": []})));
    for (request, said) in [(idle, "ms (500 update)\n"), (select, "ms (20 select)\n")] {
        let reply = client.call("transact", &Value::from(request));
        assert_eq!(reply.expect("a reply")["error"], Value::Null);
        log_with(&server, |log| log.contains(said));
    }
    assert!(!server.log().contains("|WARN|transaction"), "no warning");
}

#[test]
fn a_thread_that_is_held_up_logs_it_in_the_words_of_the_reference() {
    let server = Server::start(Implementation::Corvid, &setup(&["--slow-transaction-ms=0"]));
    let server = server.expect("a server");
    let mut client = server.connect().expect("a connection");
    let long = |line: &&str| line.contains("|WARN|Unreasonably long ");
    let deadline = Instant::now() + LIMIT;
    let mut rows = 60_000;
    // If the test stops the server too late, the server is already idle. In this case, the test
    // tries again with a longer transaction.
    while !server.log().lines().any(|line| long(&line)) {
        assert!(Instant::now() < deadline, "{}", server.log());
        let params = inserts(rows);
        let request = json!({"id": 1, "method": "transact", "params": params}).to_string();
        rows = (2 * rows).min(480_000);
        let idle = database_ticks(server.pid());
        client.send(request.as_bytes()).expect("sent");
        while database_ticks(server.pid()) < idle + 2 {
            assert!(Instant::now() < deadline, "it does not begin");
        }
        pause(server.pid(), true).expect("stopped");
        std::thread::sleep(Duration::from_millis(1200));
        pause(server.pid(), false).expect("it goes on");
        drain(&mut client);
    }
    let log = log_with(&server, |log| log.contains("|coverage"));
    let line = log.lines().find(long).expect("a line");
    let words: Vec<&str> = line.split('|').collect();
    assert!(words[2].starts_with("timeval"), "{line}");
    assert!(
        line.ends_with("ms system)") && line.contains("ms poll interval ("),
        "{line}"
    );
    assert!(!server.log().contains("|transaction|"), "switched off");
}

/// Returns the CPU time of the thread of database `D`, in ticks of the kernel.
fn database_ticks(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let stats =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("stat")).ok());
    let found = stats.into_iter().find(|stat| stat.contains("(db:D)"));
    let stat = found.expect("the thread of the database");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<u64>().expect("a number");
    ticks(11) + ticks(12)
}

/// Waits for the reply.
fn drain(client: &mut Client) {
    client.receive(LIMIT).expect("an answer");
}
