//! Sessions as operators see and end them: `ovsdb-server/list-sessions` and
//! `ovsdb-server/close-session`.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use corvid_tests::client::{Client, Received};
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// The time limit for any event on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn serve() -> Server {
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {"s": {"type": "string"}}}}});
    let setup = Setup {
        databases: vec![schema],
        ..Setup::default()
    };
    Server::start(Implementation::Corvid, &setup).expect("a server")
}

/// Returns the key-value pairs of each line of the list.
fn list(server: &Server) -> Vec<BTreeMap<String, String>> {
    let reply = server.control("ovsdb-server/list-sessions", &[]);
    let reply = reply.expect("a reply");
    let text = reply["result"].as_str().expect("a text");
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("a pair");
        (name.to_owned(), value.to_owned())
    };
    let lines = text.lines();
    lines
        .map(|line| line.split(' ').map(pair).collect())
        .collect()
}

/// Returns the only session for which `holds` returns true.
fn only(
    server: &Server,
    holds: impl Fn(&BTreeMap<String, String>) -> bool,
) -> BTreeMap<String, String> {
    let mut found: Vec<_> = list(server).into_iter().filter(holds).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn close(server: &Server, id: &str) -> Value {
    let reply = server.control("ovsdb-server/close-session", &[id.to_owned()]);
    reply.expect("a reply")
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn sessions_are_listed_with_what_they_do() {
    let server = serve();
    // The sessions that checked whether the server listens must have ended.
    until("no sessions", || list(&server).is_empty());
    let mut busy = server.connect().expect("a connection");
    let mut other = server.connect().expect("a connection");
    for name in ["one", "two"] {
        let params = json!(["D", name, {"T": [{}]}]);
        busy.call("monitor_cond", &params).expect("a reply");
    }
    busy.call("lock", &json!(["L"])).expect("a reply");
    let insert = json!(["D", {"op": "insert", "table": "T", "row": {"s": "x".repeat(5000)}}]);
    busy.call("transact", &insert).expect("a reply");
    other
        .call("set_db_change_aware", &json!([true]))
        .expect("a reply");
    assert_eq!(list(&server).len(), 2);
    let first = only(&server, |session| session["monitors"] == "2");
    let remote = format!("punix:{}", server.socket().display());
    for (name, value) in [
        ("remote", remote.as_str()),
        ("role", ""),
        ("client", ""),
        ("read_only", "false"),
        ("change_aware", "false"),
        ("locks", "1"),
        ("requests", "0"),
        ("backlog_bytes", "0"),
        ("last_request", "transact"),
    ] {
        assert_eq!(first[name], value, "{name}");
    }
    let number = |name: &str| first[name].parse::<u64>().expect("a number");
    assert!(
        number("received_bytes") > 5000 && number("sent_bytes") > 5000,
        "{first:?}"
    );
    assert!(number("age_ms") >= number("last_request_age_ms"));
    assert_eq!(
        (number("cost.requests"), number("cost.updates")),
        (4, 2),
        "{first:?}"
    );
    assert!((1..1_000_000).contains(&number("cost.cpu_us")), "{first:?}");
    assert!(first["peer"].starts_with("unix#"));
    let second = only(&server, |session| session["change_aware"] == "true");
    assert_eq!(
        (second["monitors"].as_str(), second["last_request"].as_str()),
        ("0", "set_db_change_aware")
    );

    let mut control = Client::connect(&server.control_socket()).expect("a connection");
    control
        .call("set-options", &json!(["--format", "json"]))
        .expect("a reply");
    let reply = control.call("ovsdb-server/list-sessions", &json!([]));
    let reply = reply.expect("a reply");
    let sessions = reply["result"].as_array().expect("a list");
    assert_eq!(sessions.len(), 2);
    let found = sessions.iter().find(|session| session["monitors"] == 2);
    let found = found.expect("the first");
    assert_eq!(
        (&found["id"], &found["locks"]),
        (&json!(first["id"]), &json!(1))
    );
}

/// A session is charged with what it causes, and all of them together with no more than the server
/// has used.
#[test]
fn a_session_costs_what_its_requests_cost() {
    let server = serve();
    until("no sessions", || list(&server).is_empty());
    let mut busy = server.connect().expect("a connection");
    let mut idle = server.connect().expect("a connection");
    let rows = (0..2000).map(|_| json!({"op": "insert", "table": "T", "row": {"s": "some text"}}));
    let mut insert = vec![json!("D")];
    insert.extend(rows);
    busy.call("transact", &json!(insert)).expect("a reply");
    let select = json!(["D", {"op": "select", "table": "T", "where": [["s", "!=", "x"]]}]);
    for _ in 0..50 {
        busy.call("transact", &select).expect("a reply");
        idle.call("echo", &json!([])).expect("a reply");
    }
    let cost = |requests: &str| {
        let session = only(&server, |session| session["cost.requests"] == requests);
        session["cost.cpu_us"].parse::<u64>().expect("a number")
    };
    let (busy_us, idle_us) = (cost("51"), cost("50"));
    assert!(idle_us > 0 && busy_us > 5 * idle_us, "{busy_us} {idle_us}");
    let reply = server.control("ovsdb-server/status", &["--json".to_owned()]);
    let reply = reply.expect("a reply");
    let status = reply["result"].as_str().expect("a text");
    let status: Value = serde_json::from_str(status).expect("a document");
    let used_ms = status["server"]["cpu_ms"].as_u64().expect("a number");
    // The kernel counts it in steps of 10 ms.
    let used_us = 1000 * used_ms + 20_000;
    assert!(
        busy_us + idle_us <= used_us,
        "{busy_us} {idle_us} {used_us}"
    );
}

/// The threads that read history work for one session each.
#[test]
fn a_session_is_charged_with_its_readings_of_history() {
    let server = serve();
    until("no sessions", || list(&server).is_empty());
    let mut writer = server.connect().expect("a connection");
    for _ in 0..40 {
        let rows =
            (0..250).map(|_| json!({"op": "insert", "table": "T", "row": {"s": "some text"}}));
        let mut insert = vec![json!("D")];
        insert.extend(rows);
        writer.call("transact", &json!(insert)).expect("a reply");
    }
    drop(writer);
    let mut reader = server.connect().expect("a connection");
    let cost = || {
        let session = only(&server, |session| session["last_request"] != "transact");
        session["cost.cpu_us"].parse::<u64>().expect("a number")
    };
    reader.call("echo", &json!([])).expect("a reply");
    let before_us = cost();
    // The reply is short, but all rows of the moment are read for it.
    let none = json!({"op": "select", "table": "T", "where": [["s", "==", "x"]]});
    for _ in 0..10 {
        let reply = reader.call("select_at", &json!(["D", "HEAD~1", none]));
        let reply = reply.expect("a reply");
        assert_eq!(reply["result"][0]["rows"], json!([]), "{reply}");
    }
    let cost_us = cost() - before_us;
    // 10,000 rows each time. A request without a reading costs some 50 us.
    assert!(cost_us > 10_000, "{cost_us} us for ten readings");
}

#[test]
fn a_session_is_closed_and_no_other() {
    let server = serve();
    let mut kept = server.connect().expect("a connection");
    let mut closed = server.connect().expect("a connection");
    kept.call("lock", &json!(["L"])).expect("a reply");
    closed.call("list_dbs", &json!([])).expect("a reply");
    let id = only(&server, |session| session["last_request"] == "list_dbs")["id"].clone();
    for bad in ["", "nonsense", "ffffffffffffffff", "7fffffff"] {
        assert_eq!(close(&server, bad)["error"], "no such session\n", "{bad}");
    }
    assert_eq!(close(&server, &id)["error"], Value::Null);
    assert_eq!(closed.receive(LIMIT).expect("received"), Received::Closed);
    let line = "disconnecting (user ran ovsdb-server/close-session)";
    assert!(server.log().contains(line), "{}", server.log());
    kept.call("echo", &json!([])).expect("a reply");
    until("it is gone", || {
        close(&server, &id)["error"] == "no such session\n"
    });
}

/// This also works for a session that does not read its replies.
#[test]
fn a_session_that_does_not_read_is_listed_and_closed() {
    let server = serve();
    let mut deaf = server.connect().expect("a connection");
    let insert = json!(["D", {"op": "insert", "table": "T", "row": {"s": "x".repeat(8 << 20)}}]);
    deaf.call("transact", &insert).expect("a reply");
    let select = json!({"id": 1, "method": "transact", "params": ["D", {"op": "select", "table": "T", "where": []}]});
    deaf.send(select.to_string().as_bytes()).expect("sent");
    let behind = |session: &BTreeMap<String, String>| session["backlog_bytes"] != "0";
    until("a backlog", || list(&server).iter().any(behind));
    let session = only(&server, behind);
    let backlog: u64 = session["backlog_bytes"].parse().expect("a number");
    assert!(backlog > 1 << 20 && backlog < 9 << 20, "{session:?}");
    assert_eq!(close(&server, &session["id"])["error"], Value::Null);
    until("it is gone", || {
        list(&server)
            .iter()
            .all(|other| other["id"] != session["id"])
    });
}
