//! Clients that send requests and do not read the replies.

use std::time::Instant;

use serde_json::{Value, json};

use corvid_tests::server::Server;

use super::scene::{
    attack, deaf, fill, logged, memory, next, pour, round, server, sessions, wait_for,
};

const MIB: usize = 1 << 20;

fn request(id: usize, method: &str, params: &Value) -> String {
    json!({"id": id, "method": method, "params": params}).to_string()
}

#[test]
fn unread_selections_are_not_executed() {
    let server = server(&[]);
    fill(&server, 400, 10_000);
    // All rows, then only as many as the database thread writes itself: 4 MB and 400 KB, each a
    // thousand times.
    let some: Vec<Value> = (0..40).map(|name| json!({"op": "select", "table": "T", "where": [["name", "==", name.to_string()]]})).collect();
    let some: Vec<Value> = std::iter::once(json!("D")).chain(some).collect();
    for params in [
        json!(["D", {"op": "select", "table": "T", "where": []}]),
        json!(some),
        json!(["D"]),
    ] {
        let method = if params == json!(["D"]) {
            "get_schema"
        } else {
            "transact"
        };
        let requests: String = (0..1000).map(|id| request(id, method, &params)).collect();
        let (streams, memory) = attack(&server, || {
            let mut streams: Vec<_> = (0..4).map(|_| deaf(&server)).collect();
            for stream in &mut streams {
                pour(stream, requests.as_bytes());
            }
            streams
        });
        assert!(memory < 96 * MIB as u64, "{memory} bytes");
        drop(streams);
    }
}

/// Returns `count` operations, each of which selects everything.
fn selects(count: usize) -> Vec<Value> {
    vec![json!({"op": "select", "table": "T", "where": []}); count]
}

/// Returns a transaction of these operations.
fn transaction(operations: &[Value]) -> Value {
    let name = json!("D");
    std::iter::once(&name).chain(operations).cloned().collect()
}

#[test]
fn one_transaction_does_not_take_all_memory_by_selecting_again_and_again() {
    let server = server(&["--max-reply-memory=32M"]);
    // The rows have four megabytes. The first transaction asks for eight hundred megabytes.
    fill(&server, 400, 10_000);
    let insert = json!({"op": "insert", "table": "T", "row": {"name": "mine", "text": ""}});
    let mut changing = selects(200);
    changing.insert(100, insert);
    let by_name = |name: usize| json!({"op": "select", "table": "T", "where": [["name", "==", name.to_string()]]});
    // This is the same amount, but in pieces that the database thread writes itself.
    let many: Vec<Value> = (0..80_000).map(|name| by_name(name % 400)).collect();
    for operations in [selects(200), changing, many] {
        let (reply, memory) = attack(&server, || {
            let mut client = server.connect().expect("a connection");
            client
                .call("transact", &transaction(&operations))
                .expect("a reply")
        });
        let text = reply.to_string();
        assert!(text.contains(r#""resources exhausted""#), "{text:.300}");
        assert!(memory < 160 * MIB as u64, "{memory} bytes");
    }
    // No part of the transaction was committed, and a client that asks for everything once gets it.
    let mut client = server.connect().expect("a connection");
    let reply = client
        .call("transact", &transaction(&selects(3)))
        .expect("a reply");
    for result in reply["result"].as_array().expect("results") {
        assert_eq!(result["rows"].as_array().map(Vec::len), Some(400));
    }
}

#[test]
fn unread_replies_are_bounded_together() {
    let server = server(&["--max-reply-memory=16M"]);
    fill(&server, 2000, 4000);
    let dump = transaction(&selects(1));
    let monitor = |n: usize| {
        let clause = json!(["name", "!=", n.to_string()]);
        json!(["D", n, {"T": [{"where": [clause]}]}])
    };
    let (streams, memory) = attack(&server, || {
        let streams: Vec<_> = (0..30)
            .map(|n| {
                let mut stream = deaf(&server);
                let request = if n % 2 == 0 {
                    request(1, "transact", &dump)
                } else {
                    // Each of these monitors has different contents.
                    request(1, "monitor_cond", &monitor(n))
                };
                pour(&mut stream, request.as_bytes());
                stream
            })
            .collect();
        // Each reply has eight megabytes, so most of them are rejected.
        wait_for(|| refused(&server), "the limit is reached");
        streams
    });
    assert!(memory < 80 * MIB as u64, "{memory} bytes");
    // Short requests are still served.
    round(&mut server.connect().expect("a connection"));
    drop(streams);
    wait_for(|| !refused(&server), "room comes back");
    let mut client = server.connect().expect("a connection");
    let reply = client.call("monitor_cond", &monitor(7)).expect("a reply");
    assert_eq!(
        reply["result"]["T"].as_object().map(serde_json::Map::len),
        Some(1999)
    );
}

#[test]
fn unread_replies_of_the_database_thread_are_bounded_together() {
    let server = server(&["--max-reply-memory=16M"]);
    // A megabyte, in so few rows that the database thread writes the reply itself.
    fill(&server, 100, 10_000);
    let requests = request(1, "transact", &transaction(&selects(1))).repeat(3);
    let (streams, memory) = attack(&server, || {
        let streams: Vec<_> = (0..100)
            .map(|_| {
                let mut stream = deaf(&server);
                pour(&mut stream, requests.as_bytes());
                stream
            })
            .collect();
        wait_for(
            || answer_to_all(&server).contains("resources exhausted"),
            "the limit is reached",
        );
        streams
    });
    assert!(memory < 64 * MIB as u64, "{memory} bytes");
    drop(streams);
    wait_for(
        || !answer_to_all(&server).contains("resources exhausted"),
        "room comes back",
    );
}

#[test]
fn unread_echoes_are_bounded_together() {
    let server = server(&["--max-reply-memory=20M"]);
    let long = "e".repeat(8 * MIB);
    let echo = request(1, "echo", &json!([long]));
    // Every reply repeats the id of the request, including a reply that rejects the request.
    let id = format!(r#"{{"id":"{long}","method":"echo","params":[]}}"#);
    let before = memory(&server, "VmRSS");
    for request in [echo.as_str(), &id] {
        let (streams, _) = attack(&server, || {
            let streams = (0..20).map(|_| {
                let mut stream = deaf(&server);
                assert_eq!(pour(&mut stream, request.as_bytes()), request.len());
                stream
            });
            let streams: Vec<_> = streams.collect();
            wait_for(
                || {
                    let mut client = server.connect().expect("a connection");
                    let reply = client.call("echo", &json!([long])).expect("a reply");
                    reply["error"]["error"] == json!("resources exhausted")
                },
                "the limit is reached",
            );
            streams
        });
        // Requests that have not been handled yet have their own limit, so only the rest counts.
        wait_for(
            || memory(&server, "VmRSS").saturating_sub(before) < 64 * MIB as u64,
            "requests that are refused leave nothing",
        );
        drop(streams);
        wait_for(
            || {
                let mut client = server.connect().expect("a connection");
                let reply = client.call("echo", &json!([long])).expect("a reply");
                reply["result"][0].as_str().map(str::len) == Some(long.len())
            },
            "room comes back",
        );
    }
}

#[test]
fn changes_of_conditions_stop_while_their_rows_are_unread() {
    let server = server(&[]);
    // Four megabytes come into view and leave it, a thousand times.
    fill(&server, 400, 10_000);
    let monitor = request(
        0,
        "monitor_cond",
        &json!(["D", "m", {"T": [{"where": [false]}]}]),
    );
    let change = |id: usize| {
        let params = json!(["m", "m", {"T": [{"where": [id % 2 == 1]}]}]);
        request(id, "monitor_cond_change", &params)
    };
    let requests: String = std::iter::once(monitor)
        .chain((1..1001).map(change))
        .collect();
    let (stream, memory) = attack(&server, || {
        let mut stream = deaf(&server);
        pour(&mut stream, requests.as_bytes());
        stream
    });
    assert!(memory < 64 * MIB as u64, "{memory} bytes");
    drop(stream);
    // A client that reads gets all of it.
    let mut client = server.connect().expect("a connection");
    client.send(requests.as_bytes()).expect("sent");
    let mut replies = 0;
    while replies < 1001 {
        let message = next(&mut client);
        replies += usize::from(message.get("result").is_some());
    }
}

/// Returns the reply to a client that asks for everything.
fn answer_to_all(server: &Server) -> String {
    let mut client = server.connect().expect("a connection");
    let reply = client.call("transact", &transaction(&selects(1)));
    reply.expect("a reply").to_string()
}

/// Whether the server currently rejects a long reply.
fn refused(server: &Server) -> bool {
    answer_to_all(server).contains(r#""resources exhausted""#)
}

#[test]
fn a_late_reader_gets_everything() {
    let server = server(&[]);
    fill(&server, 100, 10_000);
    let params = json!(["D", {"op": "select", "table": "T", "where": []}]);
    let mut client = server.connect().expect("a connection");
    let requests: String = (0..200)
        .map(|id| request(id, "transact", &params))
        .collect();
    client.send(requests.as_bytes()).expect("sent");
    for id in 0..200 {
        let reply = next(&mut client);
        assert_eq!(reply["id"], json!(id));
        assert_eq!(
            reply["result"][0]["rows"].as_array().map(Vec::len),
            Some(100)
        );
    }
}

#[test]
fn tiny_requests_without_a_reader_stop_being_read() {
    let server = server(&[]);
    for method in ["echo", "list_dbs", "nonsense"] {
        let requests = request(1, method, &json!([])).repeat(1_000_000);
        let (sent, memory) = attack(&server, || {
            let mut stream = deaf(&server);
            let sent = pour(&mut stream, requests.as_bytes());
            (sent, stream)
        });
        assert!(sent.0 < requests.len(), "somebody reads {method}");
        assert!(memory < 24 * MIB as u64, "{method}: {memory} bytes");
    }
}

#[test]
fn ignored_notifications_cost_no_memory() {
    let server = server(&[]);
    let cancel = json!({"id": null, "method": "cancel", "params": [1]}).to_string();
    let (_, memory) = attack(&server, || {
        let mut stream = deaf(&server);
        // The session must know the database first, so that the database is asked.
        pour(
            &mut stream,
            request(1, "get_schema", &json!(["D"])).as_bytes(),
        );
        pour(&mut stream, cancel.repeat(500_000).as_bytes())
    });
    assert!(memory < 32 * MIB as u64, "{memory} bytes");
}

#[test]
fn unread_changes_merge() {
    let server = server(&[]);
    fill(&server, 20, 10_000);
    let monitor = request(1, "monitor", &json!(["D", "m", {"T": [{}]}]));
    let mut slow = server.connect().expect("a connection");
    slow.send(monitor.as_bytes()).expect("sent");
    let (_, memory) = attack(&server, || {
        let mut writer = server.connect().expect("a connection");
        for round in 0..3000 {
            let text = format!("{round:010000}");
            let params = json!(["D", {"op": "update", "table": "T",
                "where": [["name", "==", (round % 20).to_string()]], "row": {"text": text}}]);
            assert!(writer.call("transact", &params).expect("a reply")["error"].is_null());
        }
    });
    // Thirty megabytes were written.
    assert!(memory < 12 * MIB as u64, "{memory} bytes");
    // A client that reads at last finds the current contents.
    let mut client = server.connect().expect("a connection");
    let select = json!(["D", {"op": "select", "table": "T", "where": [["name", "==", "19"]]}]);
    let wanted =
        client.call("transact", &select).expect("a reply")["result"][0]["rows"][0]["text"].clone();
    let mut last = Value::Null;
    slow.send(request(2, "list_dbs", &json!([])).as_bytes())
        .expect("sent");
    loop {
        let message = next(&mut slow);
        if message["id"] == json!(2) {
            break;
        }
        let rows = message["params"][1]["T"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        for row in rows
            .values()
            .filter(|row| row["new"]["name"] == json!("19"))
        {
            last = row["new"]["text"].clone();
        }
    }
    assert_eq!(last, wanted);
}

#[test]
fn memory_is_freed_when_clients_that_did_not_read_disconnect() {
    const CLIENTS: usize = 200;
    let server = server(&[]);
    fill(&server, 100, 10_000);
    let before = memory(&server, "VmRSS");
    let select = json!(["D", {"op": "select", "table": "T", "where": []}]);
    // Each of these leaves about two megabytes unread.
    let requests = request(1, "transact", &select).repeat(3);
    let streams: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut stream = deaf(&server);
            pour(&mut stream, requests.as_bytes());
            stream
        })
        .collect();
    let held = || memory(&server, "VmRSS").saturating_sub(before);
    wait_for(
        || held() > (CLIENTS * MIB) as u64,
        "replies wait for every client",
    );
    drop(streams);
    wait_for(|| sessions(&server) == 0, "the sessions are closed");
    // From here on no client does anything. A tenth of the memory may remain, which is a hundred
    // megabytes for a thousand such clients.
    let gone = Instant::now();
    wait_for(
        || held() < (CLIENTS * MIB / 10) as u64,
        "memory is given back",
    );
    println!("given back after {} ms", gone.elapsed().as_millis());
}

#[test]
fn a_client_with_too_large_a_backlog_is_disconnected() {
    let server = server(&["--max-session-backlog=1M"]);
    fill(&server, 400, 10_000);
    let params = json!(["D", {"op": "select", "table": "T", "where": []}]);
    attack(&server, || {
        let mut stream = deaf(&server);
        pour(&mut stream, request(1, "transact", &params).as_bytes());
        logged(
            &server,
            "|jsonrpc|WARN|sending backlog exceeded maximum size (",
        );
    });
}
