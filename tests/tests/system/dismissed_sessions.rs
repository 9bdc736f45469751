//! Sessions that are closed because a database is added, removed or converted, or because the
//! server exits, with real processes. A session that is not aware of database changes gets no
//! message before the end of its connection, however often the test is repeated.
//!
//! With `CORVID_REFERENCE=1`, the reference is tested instead of our server.

use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

/// The number of times that each change is tried, with two sessions each.
const TRIES: usize = 40;

/// The number of servers that are made to exit.
const EXITS: usize = 8;

fn schema(version: usize) -> Value {
    json!({"name": "D", "version": format!("{version}.0.0"), "tables": {"T": {"isRoot": true,
        "columns": {"text": {"type": "string"}}}}})
}

fn start() -> Server {
    let setup = Setup {
        databases: vec![schema(1)],
        spares: vec![
            json!({"name": "E", "tables": {"T": {"columns": {"i": {"type": "integer"}}}}}),
        ],
        ..Setup::default()
    };
    Server::start(Implementation::from_env(), &setup).expect("a server")
}

fn wait(database: &str, table: &str, column: &str, until: &str, value: &str) -> Value {
    json!([database, {"op": "wait", "table": table, "where": [[column, "==", value]],
        "columns": [column], "until": until, "rows": [{column: value}]}])
}

/// Opens a session that monitors everything and has waiting transactions. Two of them could
/// continue after the changes.
fn watcher(server: &Server) -> Client {
    let mut client = server.connect().expect("a connection");
    for params in [
        json!(["_Server", "s", {"Database": {"columns": ["name", "schema"]}}]),
        json!(["D", "m", {"T": {"columns": ["text"]}}]),
    ] {
        let reply = client.call("monitor", &params).expect("a reply");
        assert_eq!(reply["error"], Value::Null);
    }
    for (id, params) in [
        wait("D", "T", "text", "==", "never"),
        wait("_Server", "Database", "name", "==", "never"),
        wait("_Server", "Database", "name", "!=", "D"),
        wait("_Server", "Database", "name", "==", "E"),
    ]
    .iter()
    .enumerate()
    {
        let request = json!({"id": id, "method": "transact", "params": params});
        client.send(request.to_string().as_bytes()).expect("sent");
    }
    // The reply to this request means that the requests before it were examined. None of them
    // continues yet, because the database is served.
    let reply = client.call("list_dbs", &json!([])).expect("a reply");
    assert_eq!(reply["error"], Value::Null);
    client
}

/// Waits until `_Server` shows this version of the database's schema.
fn wait_for_version(client: &mut Client, version: usize) {
    let select = json!(["_Server", {"op": "select", "table": "Database", "where": [["name", "==", "D"]], "columns": ["schema"]}]);
    let shown = format!("\"{version}.0.0\"");
    let begin = Instant::now();
    loop {
        let reply = client.call("transact", &select).expect("a reply");
        let schema = reply["result"][0]["rows"][0]["schema"].as_str();
        if schema.is_some_and(|schema| schema.contains(&shown)) {
            return;
        }
        assert!(begin.elapsed() < LIMIT, "{version} is not shown: {reply}");
    }
}

/// Checks that a session receives no message until it is closed.
fn hears_nothing(mut client: Client, what: &str) {
    match client.receive(LIMIT).expect("received") {
        Received::Closed => {}
        Received::Text(text) => panic!("{what}: {}", String::from_utf8_lossy(&text)),
        Received::Nothing => panic!("{what}: not closed"),
    }
}

fn control(server: &Server, command: &str, argument: &str) {
    let reply = server.control(command, &[argument.to_owned()]);
    let reply = reply.expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{command} {argument}");
}

fn file(server: &Server, name: &str) -> String {
    server.dir().join(name).display().to_string()
}

#[test]
fn sessions_get_no_updates_of_added_and_removed_databases() {
    let server = start();
    for number in 0..TRIES {
        let watchers = [watcher(&server), watcher(&server)];
        control(&server, "ovsdb-server/add-db", &file(&server, "E.db"));
        for watcher in watchers {
            hears_nothing(watcher, &format!("added {number}"));
        }
        control(&server, "ovsdb-server/remove-db", "E");
        let watchers = [watcher(&server), watcher(&server)];
        control(&server, "ovsdb-server/remove-db", "D");
        for watcher in watchers {
            hears_nothing(watcher, &format!("removed {number}"));
        }
        control(&server, "ovsdb-server/add-db", &file(&server, "D.db"));
    }
}

#[test]
fn sessions_get_no_updates_of_conversions() {
    let server = start();
    let mut converter = server.connect().expect("a connection");
    let awareness = converter.call("set_db_change_aware", &json!([true]));
    awareness.expect("a reply");
    for number in 0..TRIES {
        let watchers = [watcher(&server), watcher(&server)];
        let reply = converter.call("convert", &json!(["D", schema(2 + number)]));
        assert_eq!(reply.expect("a reply")["error"], Value::Null);
        for watcher in watchers {
            hears_nothing(watcher, &format!("converted {number}"));
        }
        // The reply to a conversion may come before the change of `_Server`, which the next
        // watchers would otherwise get as an update.
        wait_for_version(&mut converter, 2 + number);
    }
}

#[test]
fn sessions_get_no_updates_of_the_exit() {
    for number in 0..EXITS {
        let server = start();
        let watchers = [watcher(&server), watcher(&server)];
        let exit = server.control("exit", &[]);
        assert_eq!(exit.expect("a reply")["error"], Value::Null);
        for watcher in watchers {
            hears_nothing(watcher, &format!("exit {number}"));
        }
    }
}
