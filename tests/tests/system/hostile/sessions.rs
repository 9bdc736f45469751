//! Sessions for which the server would have to remember too much.

use serde_json::{Value, json};

use super::scene::{attack, next, round, server, sessions, wait_for};

/// The number of requests in flight. The server reads nothing from a client with unread replies. A
/// client that sends many more requests without reading could wait forever, because each reply may
/// take a kilobyte of the socket's buffer.
const TOGETHER: usize = 50;

/// Sends requests and counts those that succeed. The others must fail because of lacking resources.
fn granted(server: &corvid_tests::server::Server, requests: &[Value]) -> usize {
    let mut client = server.connect().expect("a connection");
    let mut granted = 0;
    for requests in requests.chunks(TOGETHER) {
        for request in requests {
            client.send(request.to_string().as_bytes()).expect("sent");
        }
        for _ in requests {
            let reply = next(&mut client);
            match reply["error"]["error"].as_str() {
                None => granted += 1,
                Some(error) => assert_eq!(error, "resources exhausted", "{reply}"),
            }
        }
    }
    granted
}

#[test]
fn monitors_and_locks_of_a_session_are_counted() {
    let server = server(&[]);
    let requests = |method: &str, params: &dyn Fn(usize) -> Value| -> Vec<Value> {
        (0..1500)
            .map(|id| json!({"id": id, "method": method, "params": params(id)}))
            .collect()
    };
    let (_, memory) = attack(&server, || {
        let monitors = requests("monitor", &|id| json!(["D", id, {"T": [{}]}]));
        assert_eq!(granted(&server, &monitors), 1024);
        let locks = requests("lock", &|id| json!([format!("lock{id}")]));
        assert_eq!(granted(&server, &locks), 1024);
        let long = requests("lock", &|id| json!([format!("{}{id}", "l".repeat(10_000))]));
        assert_eq!(granted(&server, &long[..100]), 0);
    });
    assert!(memory < 32 << 20, "{memory} bytes");
}

#[test]
fn released_monitors_and_locks_free_their_quota() {
    let server = server(&[]);
    let mut client = server.connect().expect("a connection");
    for id in 0..3000 {
        let reply = client
            .call("monitor", &json!(["D", id, {"T": [{}]}]))
            .expect("a reply");
        assert!(reply["error"].is_null(), "{reply}");
        assert!(
            client
                .call("monitor_cancel", &json!([id]))
                .expect("a reply")["error"]
                .is_null()
        );
        let name = format!("lock{id}");
        assert!(client.call("lock", &json!([name])).expect("a reply")["error"].is_null());
        assert!(client.call("unlock", &json!([name])).expect("a reply")["error"].is_null());
    }
}

#[test]
fn blocked_transactions_are_counted() {
    let server = server(&[]);
    let wait = |id: usize| {
        json!({"id": id, "method": "transact", "params": ["D", {"op": "wait", "table": "T",
            "where": [["name", "==", "never"]], "columns": ["name"], "until": "==", "rows": [{"name": "never"}]}]})
    };
    let (_, memory) = attack(&server, || {
        let mut client = server.connect().expect("a connection");
        for id in 0..1024 {
            client.send(wait(id).to_string().as_bytes()).expect("sent");
        }
        // Only the transactions for which there is no room are answered.
        for first in (1024..3000).step_by(TOGETHER) {
            let ids = first..(first + TOGETHER).min(3000);
            for id in ids.clone() {
                client.send(wait(id).to_string().as_bytes()).expect("sent");
            }
            for id in ids {
                let reply = next(&mut client);
                assert_eq!(reply["id"], json!(id));
                assert_eq!(
                    reply["error"]["details"],
                    json!("session has too many waiting transactions")
                );
            }
        }
        // Canceling a transaction makes room.
        client
            .send(br#"{"id":null,"method":"cancel","params":[5]}"#)
            .expect("sent");
        assert_eq!(next(&mut client)["error"], json!("canceled"));
        client.send(wait(5).to_string().as_bytes()).expect("sent");
        let echo = client.call("echo", &json!([])).expect("an answer");
        assert_eq!(echo["result"], json!([]));
    });
    assert!(memory < 32 << 20, "{memory} bytes");
}

/// Returns a condition with `clauses` clauses, which are different for each number.
fn condition(number: usize, clauses: usize) -> Value {
    let clause = |clause: usize| json!(["name", "==", format!("n{number}-{clause}")]);
    (0..clauses).map(clause).collect()
}

#[test]
fn conditions_of_all_sessions_are_bounded_together() {
    // A quarter of this memory is for conditions.
    let server = server(&["--max-client-memory=64M"]);
    let monitor = |number: usize, clauses: usize| json!(["D", "m", {"T": [{"where": condition(number, clauses)}]}]);
    let (clients, memory) = attack(&server, || {
        let mut clients = Vec::new();
        let mut granted = 0;
        for number in 0..40 {
            let mut client = server.connect().expect("a connection");
            let reply = client.call("monitor_cond", &monitor(number, 20_000));
            let reply = reply.expect("a reply");
            match reply["error"]["error"].as_str() {
                None => granted += 1,
                Some(error) => assert_eq!(error, "resources exhausted", "{reply}"),
            }
            clients.push(client);
        }
        // Each condition takes about four megabytes.
        assert!((2..=8).contains(&granted), "{granted}");
        // Changing a condition does not bypass the limit. The previous condition stays in force.
        let mut client = server.connect().expect("a connection");
        let reply = client.call("monitor_cond", &monitor(50, 10));
        assert!(reply.expect("a reply")["error"].is_null());
        let params = json!(["m", "m", {"T": [{"where": condition(51, 20_000)}]}]);
        let reply = client.call("monitor_cond_change", &params);
        let reply = reply.expect("a reply");
        assert_eq!(reply["error"]["error"], json!("resources exhausted"));
        clients.push(client);
        // Equal conditions count once.
        let mut client = server.connect().expect("a connection");
        let reply = client.call("monitor_cond", &monitor(50, 10));
        assert!(reply.expect("a reply")["error"].is_null());
        clients
    });
    assert!(memory < 64 << 20, "{memory} bytes");
    drop(clients);
    wait_for(|| sessions(&server) == 0, "the sessions are closed");
    let mut client = server.connect().expect("a connection");
    let reply = client.call("monitor_cond", &monitor(0, 20_000));
    assert!(
        reply.expect("a reply")["error"].is_null(),
        "room comes back"
    );
}

#[test]
fn waiting_transactions_of_all_sessions_are_bounded_together() {
    let server = server(&["--max-client-memory=64M"]);
    let wait = |length: usize| {
        json!({"id": 1, "method": "transact", "params": ["D", {"op": "wait", "table": "T",
            "where": [["name", "==", "never"]], "columns": ["name"], "until": "==",
            "rows": [{"name": "w".repeat(length)}]}]})
        .to_string()
    };
    let (clients, memory) = attack(&server, || {
        let mut clients = Vec::new();
        let mut waiting = 0;
        for _ in 0..30 {
            let mut client = server.connect().expect("a connection");
            client.send(wait(3 << 20).as_bytes()).expect("sent");
            // The reply to the echo comes after the transaction, which is answered if there is no
            // room for it.
            client
                .send(br#"{"id":2,"method":"echo","params":[]}"#)
                .expect("sent");
            let reply = next(&mut client);
            match reply["error"]["error"].as_str() {
                None => waiting += 1,
                Some(error) => assert_eq!(error, "resources exhausted", "{reply}"),
            }
            clients.push(client);
        }
        assert!((4..=5).contains(&waiting), "{waiting}");
        // A short transaction may always wait.
        let mut client = server.connect().expect("a connection");
        client.send(wait(10).as_bytes()).expect("sent");
        let echo = client.call("echo", &json!([])).expect("a reply");
        assert!(echo["error"].is_null());
        clients
    });
    assert!(memory < 64 << 20, "{memory} bytes");
    drop(clients);
    wait_for(|| sessions(&server) == 0, "the sessions are closed");
    round(&mut server.connect().expect("a connection"));
}
