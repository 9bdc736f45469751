//! Sessions that want to be remembered for too much.

use serde_json::{Value, json};

use super::scene::{attack, next, server};

/// Requests under way together. The server reads nothing from a client with unread replies, so a client that sends many more without
/// reading may wait for ever: each reply may take a kilobyte of the socket's buffer.
const TOGETHER: usize = 50;

/// Sends requests and counts those that are answered well; the others lack resources.
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
        // Answered are those for which there is no room.
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
        // One that is canceled makes room.
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
