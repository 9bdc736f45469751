//! The counters of `coverage/show`. Each counts all of its events, and no others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The time limit for a condition to become true on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Counters that change as time passes, or because they are read.
const RESTLESS: [&str; 6] = [
    "db_wakeup",
    "main_wakeup",
    "poll_zero_timeout",
    "shard_wakeup",
    "unixctl_received",
    "unixctl_replied",
];

/// The totals by name.
type Counters = BTreeMap<String, u64>;

fn control(server: &Server, command: &str, arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
    let reply = server.control(command, &arguments).expect("a reply");
    let text = reply["result"].as_str();
    text.unwrap_or_else(|| panic!("{command}: {reply}"))
        .to_owned()
}

/// Returns the counters that have counted something, and the number of those that have not.
fn shown(server: &Server) -> (Counters, usize) {
    let text = control(server, "coverage/show", &[]);
    let mut lines: Vec<&str> = text.lines().collect();
    let heading = lines.remove(0);
    assert!(heading.starts_with("Event coverage, avg rate over last: "));
    let last = lines.pop().expect("a last line");
    let never = last
        .strip_suffix(" events never hit")
        .expect("the reference's form");
    let counters = lines.iter().map(|line| {
        let name = line.split_whitespace().next().expect("a name");
        let total = line.rsplit(' ').next().expect("a total");
        (name.to_owned(), total.parse().expect("a number"))
    });
    (counters.collect(), never.parse().expect("a number"))
}

/// Returns the counters that have changed between two moments, except for those that change all the
/// time.
fn moved(before: &Counters, after: &Counters) -> Counters {
    after
        .iter()
        .filter(|(name, _)| !RESTLESS.contains(&name.as_str()))
        .map(|(name, total)| (name.clone(), total - before.get(name).unwrap_or(&0)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// A server with a database, and its counters when they were last read.
struct Counted {
    server: Server,
    before: Counters,
}

impl Counted {
    fn start() -> Counted {
        let columns = json!({"n": {"type": "integer"}});
        let schema = json!({"name": "D", "tables": {"T": {"columns": columns, "isRoot": true}}});
        let setup = Setup {
            databases: vec![schema],
            ..Setup::default()
        };
        let server = Server::start(Implementation::Corvid, &setup).expect("a server");
        let mut counted = Counted {
            before: Counters::new(),
            server,
        };
        counted.wait_until_steady();
        counted
    }

    /// Waits until nothing happens any more: the connections that checked whether the server
    /// listens are closed.
    fn wait_until_steady(&mut self) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let counters = shown(&self.server).0;
            let of = |name: &str| counters.get(name).copied().unwrap_or_default();
            let is_quiet = moved(&self.before, &counters).is_empty();
            self.before = counters.clone();
            if is_quiet && of("session_open") == of("session_close") {
                return;
            }
            assert!(Instant::now() < deadline, "{:?}", self.before);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Does something, and waits until each of these counters has changed by exactly the given
    /// number. Other counters are ignored.
    fn expect(&mut self, expected: &[(&str, u64)], act: impl FnOnce(&Server)) {
        act(&self.server);
        let deadline = Instant::now() + LIMIT;
        loop {
            let counters = shown(&self.server).0;
            let moved = moved(&self.before, &counters);
            let by = |name: &str| moved.get(name).copied().unwrap_or_default();
            if expected.iter().all(|(name, count)| by(name) == *count) {
                self.before = counters;
                return;
            }
            assert!(
                Instant::now() < deadline,
                "expected {expected:?}, moved: {moved:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn transact(client: &mut Client, operations: &[Value]) -> Value {
    let mut params = vec![json!("D")];
    params.extend_from_slice(operations);
    client
        .call("transact", &Value::Array(params))
        .expect("a reply")["result"]
        .clone()
}

fn insert(n: i64) -> Value {
    json!({"op": "insert", "table": "T", "row": {"n": n}})
}

#[test]
fn counters_change_with_their_events_only() {
    let mut counted = Counted::start();
    counted.expect(&[("txn_success", 0), ("jsonrpc_received", 0)], |server| {
        for _ in 0..3 {
            control(server, "ovsdb-server/list-dbs", &[]);
        }
    });
    let mut client = counted.server.connect().expect("a connection");
    counted.expect(
        &[
            ("stream_accept", 1),
            ("session_open", 1),
            ("session_close", 0),
        ],
        |_| {},
    );
    let stored = [
        ("txn_success", 10),
        ("log_record", 10),
        ("log_write", 10),
        ("log_sync", 0),
        ("jsonrpc_received", 10),
        ("jsonrpc_sent", 10),
        ("monitor_flush", 0),
        ("txn_error", 0),
    ];
    counted.expect(&stored, |_| {
        for n in 0..10 {
            transact(&mut client, &[insert(n)]);
        }
    });
    // There may be more batches, because a batch may find nothing left to do.
    assert!(counted.before["db_batch"] >= 10, "{:?}", counted.before);
    let outcomes = [
        ("txn_success", 1),
        ("txn_unchanged", 1),
        ("txn_aborted", 1),
        ("txn_not_locked", 1),
        ("txn_error", 2),
        ("log_record", 1),
    ];
    counted.expect(&outcomes, |_| {
        let durable = json!({"op": "commit", "durable": true});
        transact(&mut client, &[insert(20), durable]);
        transact(&mut client, &[json!({"op": "comment", "comment": "x"})]);
        transact(&mut client, &[insert(21), json!({"op": "abort"})]);
        transact(&mut client, &[json!({"op": "assert", "lock": "nobody"})]);
        transact(
            &mut client,
            &[json!({"op": "insert", "table": "T", "row": {"n": "x"}})],
        );
        transact(&mut client, &[json!({"op": "nothing"})]);
    });
    assert!(
        counted.before["log_sync"] >= 1,
        "a durable commit is synced"
    );
    watch(&mut counted, &mut client);
    counted.expect(
        &[("log_compact", 1), ("txn_success", 0), ("log_record", 0)],
        |server| {
            control(server, "ovsdb-server/compact", &["D"]);
        },
    );
    drop(client);
    counted.expect(&[("session_close", 1), ("session_open", 0)], |_| {});
}

/// Updates are counted for each session that gets one, and flushes for each batch.
fn watch(counted: &mut Counted, client: &mut Client) {
    let mut monitors: Vec<Client> = (0..3)
        .map(|_| counted.server.connect().expect("a connection"))
        .collect();
    for monitor in &mut monitors {
        monitor
            .call("monitor", &json!(["D", null, {"T": [{}]}]))
            .expect("a reply");
    }
    let opened = [
        ("session_open", 3),
        ("monitor_update", 0),
        ("monitor_flush", 0),
    ];
    counted.expect(&opened, |_| {});
    let told = [
        ("monitor_update", 3),
        ("monitor_flush", 1),
        ("monitor_update2", 0),
        ("txn_success", 1),
    ];
    counted.expect(&told, |_| {
        transact(client, &[insert(30)]);
        for monitor in &mut monitors {
            let received = monitor.receive(LIMIT).expect("a connection");
            assert!(matches!(received, Received::Text(_)), "{received:?}");
        }
    });
    let waits = [
        ("txn_blocked", 1),
        ("txn_success", 1),
        ("monitor_update", 3),
        ("monitor_flush", 1),
    ];
    counted.expect(&waits, |server| {
        let mut waiting = server.connect().expect("a connection");
        let wait = json!({"op": "wait", "table": "T", "where": [["n", "==", 31]], "columns": ["n"], "until": "==",
            "rows": [{"n": 31}]});
        let request = json!({"id": 1, "method": "transact", "params": ["D", wait]});
        waiting.send(request.to_string().as_bytes()).expect("sent");
        // Every reply on this connection is sent after the transaction has been read.
        let blocked = || shown(server).0.get("txn_blocked").copied() == Some(1);
        let deadline = Instant::now() + LIMIT;
        while !blocked() {
            assert!(Instant::now() < deadline, "it does not wait");
            std::thread::sleep(Duration::from_millis(5));
        }
        transact(client, &[insert(31)]);
        let received = waiting.receive(LIMIT).expect("a connection");
        assert!(matches!(received, Received::Text(_)), "{received:?}");
    });
}

#[test]
fn connections_that_the_server_opens_are_counted() {
    let mut counted = Counted::start();
    // The port is bound, but nobody listens on it: no other process gets this port, and connections
    // to it are refused.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let remote = format!("tcp:{}", taken.local_addr().expect("an address"));
    let connected = [
        ("reconnect_attempt", 1),
        ("reconnect_connected", 1),
        ("stream_open", 1),
        ("session_open", 1),
    ];
    counted.expect(&connected, |server| {
        control(server, "ovsdb-server/add-remote", &[&remote]);
    });
    counted.expect(
        &[("session_close", 1), ("reconnect_attempt", 0)],
        |server| {
            control(server, "ovsdb-server/remove-remote", &[&remote]);
        },
    );
    counted.expect(&[("pstream_open", 1), ("lockfile_lock", 0)], |server| {
        let remote = format!("punix:{}", server.dir().join("more").display());
        control(server, "ovsdb-server/add-remote", &[&remote]);
    });
    counted.expect(&[("lockfile_unlock", 1), ("session_open", 0)], |server| {
        control(server, "ovsdb-server/remove-db", &["D"]);
    });
}

#[test]
fn counters_that_were_never_hit_are_known() {
    let counted = Counted::start();
    let read = |name: &str| control(&counted.server, "coverage/read-counter", &[name]);
    assert_eq!(read("txn_error"), "0\n");
    let (counters, never) = shown(&counted.server);
    assert_eq!(
        read("stream_accept"),
        format!("{}\n", counters["stream_accept"])
    );
    assert_eq!(counters.len() + never, names().len());
    let received: u64 = read("unixctl_received").trim().parse().expect("a number");
    let replied: u64 = read("unixctl_replied").trim().parse().expect("a number");
    assert_eq!(
        received, replied,
        "the second reads after the reply to the first, before its own"
    );
    let reply = counted
        .server
        .control("coverage/read-counter", &["hmap_expand".to_owned()])
        .expect("a reply");
    assert_eq!(reply["error"], "No such counter\n");
}

/// Returns the names of all counters in the sources.
fn names() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    [
        "crates/net/src/coverage/events.rs",
        "crates/reactor/src/events.rs",
        "crates/shell/src/events.rs",
        "crates/server/src/coverage.rs",
    ]
    .iter()
    .flat_map(|file| {
        let code = fs::read_to_string(root.join(file)).expect("code");
        let after = code.split("Counter::new(\"").skip(1);
        after
            .filter_map(|rest| rest.split('"').next().map(str::to_owned))
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_counter_is_explained() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate/counters.md");
    let page = fs::read_to_string(page).expect("a page");
    for name in names() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
