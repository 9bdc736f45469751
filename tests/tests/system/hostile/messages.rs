//! Messages that never end, are too long, too deep or too slow, or are incomplete.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use corvid_tests::client::Received;
use serde_json::{Value, json};

use super::scene::{
    TIME_LIMIT, attack, deaf, logged, next, pour, round, server, sessions, wait_for,
};

const MIB: usize = 1 << 20;

/// Returns the beginning of a request with a long string in it.
fn begun(length: usize) -> Vec<u8> {
    let mut text = br#"{"id":1,"method":"echo","params":[""#.to_vec();
    text.resize(text.len() + length, b'x');
    text
}

#[test]
fn a_message_that_never_ends_is_cut_off_at_the_limit() {
    let server = server(&["--max-message-size=4M"]);
    let (sent, memory) = attack(&server, || {
        let mut stream = deaf(&server);
        pour(&mut stream, &begun(64 * MIB))
    });
    assert!(sent < 32 * MIB, "{sent} bytes were taken");
    assert!(memory < 24 * MIB as u64, "{memory} bytes");
    logged(&server, "message exceeds the limit of 4194304 bytes");
    // A message within the limit is answered.
    let mut client = server.connect().expect("a connection");
    client.send(&begun(3 * MIB)).expect("sent");
    client.send(br#""]}"#).expect("sent");
    assert_eq!(
        next(&mut client)["result"][0].as_str().map(str::len),
        Some(3 * MIB)
    );
}

#[test]
fn unfinished_messages_of_many_are_bounded_together() {
    let server = server(&["--max-message-size=4M"]);
    let (held, memory) = attack(&server, || {
        let mut streams: Vec<UnixStream> = (0..32).map(|_| deaf(&server)).collect();
        for stream in &mut streams {
            pour(stream, &begun(3 * MIB));
        }
        logged(
            &server,
            "incomplete messages of all clients take too much memory",
        );
        streams
    });
    assert!(memory < 40 * MIB as u64, "{memory} bytes");
    drop(held);
    // There is room again.
    wait_for(|| sessions(&server) == 0, "sessions are closed");
    let mut client = server.connect().expect("a connection");
    client.send(&begun(3 * MIB)).expect("sent");
    client.send(br#""]}"#).expect("sent");
    assert!(next(&mut client)["error"].is_null());
}

/// Checks that a transaction of three megabytes gets a reply on a connection.
fn assert_large_transaction_passes(stream: &mut (impl Read + Write)) {
    let row = json!({"name": "large", "text": "t".repeat(3 * MIB)});
    let params = json!(["D", {"op": "insert", "table": "T", "row": row}, {"op": "abort"}]);
    let text = json!({"id": 1, "method": "transact", "params": params}).to_string();
    // The message is written in parts, as it would arrive over a network.
    for part in text.as_bytes().chunks(64 * 1024) {
        stream.write_all(part).expect("the connection stays");
        stream.flush().expect("the connection stays");
    }
    let mut reply = vec![0; 64];
    let count = stream.read(&mut reply).expect("a reply");
    let reply = String::from_utf8_lossy(&reply[..count]).into_owned();
    assert!(reply.starts_with(r#"{"id":1,"result":[{"#), "{reply}");
}

#[test]
fn stalled_messages_make_room_for_whole_ones() {
    let server = server(&["--max-message-size=24M", "--remote=ptcp:0:127.0.0.1"]);
    wait_for(|| server.port().is_some(), "it listens");
    let address = ("127.0.0.1", server.port().expect("it listens"));
    let (strangers, memory) = attack(&server, || {
        // Together they send as much as there is room for, and then nothing more.
        let strangers: Vec<TcpStream> = (0..80)
            .map(|_| {
                let mut stream = TcpStream::connect(address).expect("a connection");
                // A connection that has to make room is closed while it sends.
                let _ = stream.write_all(&begun(650 * 1024));
                stream
            })
            .collect();
        for _ in 0..10 {
            // One client has the same address as the strangers, the other uses the local socket.
            let mut client = TcpStream::connect(address).expect("a connection");
            client
                .set_read_timeout(Some(TIME_LIMIT))
                .expect("a timeout");
            assert_large_transaction_passes(&mut client);
            let mut local = UnixStream::connect(server.socket()).expect("a connection");
            local.set_read_timeout(Some(TIME_LIMIT)).expect("a timeout");
            assert_large_transaction_passes(&mut local);
        }
        strangers
    });
    logged(
        &server,
        "incomplete messages of all clients take too much memory",
    );
    assert!(memory < 128 * MIB as u64, "{memory} bytes");
    drop(strangers);
    wait_for(|| sessions(&server) == 0, "the sessions are closed");
}

#[test]
fn errors_repeat_the_beginning_of_a_long_request() {
    let server = server(&[]);
    let mut client = server.connect().expect("a connection");
    let long = "x".repeat(8 * MIB);
    for params in [json!([[long]]), json!([long]), json!(["D", {"op": long}])] {
        let text = json!({"id": 1, "method": "transact", "params": params}).to_string();
        client.send(text.as_bytes()).expect("sent");
        let Received::Text(reply) = client.receive(TIME_LIMIT).expect("received") else {
            panic!("no answer");
        };
        assert!(reply.len() < 300 * 1024, "{} bytes", reply.len());
        let contains = |part: &[u8]| reply.windows(part.len()).any(|window| window == part);
        assert!(contains(b"xxxxxxxx") && contains(b"x...\""));
    }
    round(&mut client);
}

#[test]
fn ids_are_short() {
    let server = server(&[]);
    let mut client = server.connect().expect("a connection");
    let long = "i".repeat(100_000);
    let text = json!({"id": long, "method": "list_dbs", "params": []}).to_string();
    client.send(text.as_bytes()).expect("sent");
    let reply = next(&mut client);
    assert_eq!(reply["id"], json!(long));
    assert_eq!(reply["error"]["error"], json!("resources exhausted"));
    let reply = client
        .call("monitor", &json!(["D", long, {"T": {}}]))
        .expect("a reply");
    assert_eq!(reply["error"]["error"], json!("resources exhausted"));
    round(&mut client);
}

#[test]
fn requests_before_bad_bytes_are_answered_over_every_transport() {
    let server = server(&["--remote=ptcp:0:127.0.0.1"]);
    wait_for(|| server.port().is_some(), "it listens");
    let address = ("127.0.0.1", server.port().expect("it listens"));
    let insert = |name: usize, operations: &str| {
        let row = json!({"name": name.to_string(), "text": ""});
        let insert = json!({"op": "insert", "table": "T", "row": row});
        format!(r#"{{"id":2,"method":"transact","params":["D",{insert}{operations}]}}"#)
    };
    let durable = r#",{"op":"commit","durable":true}"#;
    let monitor = r#"{"id":1,"method":"monitor","params":["D","m",{"T":{"columns":["name"]}}]}"#;
    let echo = r#"{"id":3,"method":"echo","params":[]}"#;
    let play = |number: usize, bad: &[u8], mut stream: Box<dyn ReadWrite>| {
        let before = [monitor, &insert(number, durable), echo].concat();
        let text = [before.as_bytes(), bad, insert(99_999, "").as_bytes()].concat();
        stream.write_all(&text).expect("sent");
        let mut got = Vec::new();
        let mut room = [0; 4096];
        // If a connection is closed with unread input, it ends with a reset, which comes after
        // everything that was sent.
        while let Ok(count @ 1..) = stream.read(&mut room) {
            got.extend_from_slice(&room[..count]);
        }
        let got = String::from_utf8(got).expect("UTF-8");
        let places = [
            r#""id":1,"#,
            r#""method":"update""#,
            r#""id":2,"#,
            r#""id":3,"#,
        ]
        .map(|part| got.find(part).unwrap_or(usize::MAX));
        assert!(
            places.is_sorted() && places[3] != usize::MAX,
            "try {number}, before {:?}: {got}",
            String::from_utf8_lossy(bad)
        );
    };
    let reply: &[u8] = br#"{"id":9,"result":[],"error":null}"#;
    let kinds: [&[u8]; 8] = [
        b"x",
        b"}",
        b"\0",
        b"[]",
        b"[}",
        br#"{"a":1}"#,
        br#"{"a":tru}"#,
        reply,
    ];
    for number in 0..200 {
        let bad = kinds[number / 2 % kinds.len()];
        if number % 2 == 0 {
            play(number, bad, Box::new(deaf(&server)));
        } else {
            play(
                number,
                bad,
                Box::new(TcpStream::connect(address).expect("a connection")),
            );
        }
    }
    let mut client = server.connect().expect("a connection");
    let params = json!(["D", {"op": "select", "table": "T", "where": [], "columns": ["name"]}]);
    let reply = client.call("transact", &params).expect("a reply");
    let rows = reply["result"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 200, "what stands before is executed");
    assert!(
        !rows.contains(&json!({"name": "99999"})),
        "nothing behind it"
    );
    wait_for(|| sessions(&server) == 1, "the others are closed");
}

trait ReadWrite: Read + Write {}
impl<S: Read + Write> ReadWrite for S {}

#[test]
fn nesting_is_accepted_up_to_a_thousand_levels() {
    let server = server(&[]);
    let nest = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"id":1,"method":"echo","params":[{open}{close}]}}"#)
    };
    let (_, memory) = attack(&server, || {
        let mut deep = server.connect().expect("a connection");
        for _ in 0..200 {
            deep.send(nest(998).as_bytes()).expect("sent");
            // The reply is too deep for the JSON reader of the tests.
            let Received::Text(answer) = deep.receive(TIME_LIMIT).expect("received") else {
                panic!("no answer");
            };
            assert!(answer.ends_with(br#"]],"error":null}"#));
            let mut deeper = server.connect().expect("a connection");
            // The connection may be closed before everything is written.
            let _ = deeper.send(nest(100_000).as_bytes());
            assert_eq!(
                deeper.receive(TIME_LIMIT).expect("received"),
                Received::Closed
            );
        }
    });
    assert!(memory < 16 * MIB as u64, "{memory} bytes");
}

#[test]
fn messages_may_arrive_byte_by_byte() {
    let server = server(&[]);
    let request = br#"{"id":1,"method":"list_dbs","params":[]}"#;
    attack(&server, || {
        let mut clients: Vec<_> = (0..50)
            .map(|_| server.connect().expect("a connection"))
            .collect();
        for byte in request {
            for client in &mut clients {
                client.send(&[*byte]).expect("sent");
            }
        }
        for client in &mut clients {
            assert!(next(client)["error"].is_null());
        }
    });
}

#[test]
fn huge_values_get_a_reply() {
    let server = server(&[]);
    let number = "9".repeat(MIB);
    let string = "s".repeat(16 * MIB);
    let uuids: Vec<Value> = (0..200_000)
        .map(|i| json!(["uuid", format!("00000000-0000-4000-8000-{i:012}")]))
        .collect();
    let uuids = Value::from(uuids).to_string();
    let insert = |value: &str| {
        format!(
            r#"{{"id":1,"method":"transact","params":["D",{{"op":"insert","table":"T","row":{{"text":{value}}}}},{{"op":"abort"}}]}}"#
        )
    };
    let (_, memory) = attack(&server, || {
        let mut client = server.connect().expect("a connection");
        for value in [
            format!("0.{number}"),
            format!("{}e-60000", &number[..60_000]),
            format!("\"{string}\""),
            format!(r#"["set",{uuids}]"#),
            format!(r#"["map",{uuids}]"#),
            format!("{{\"{string}\":1}}"),
        ] {
            client.send(insert(&value).as_bytes()).expect("sent");
            let reply = next(&mut client);
            assert!(
                reply["result"].is_array(),
                "a reply of {} bytes",
                value.len()
            );
        }
        // No number is that large, so the text is not JSON.
        client.send(insert(&number).as_bytes()).expect("sent");
        assert_eq!(
            client.receive(TIME_LIMIT).expect("received"),
            Received::Closed
        );
    });
    assert!(memory < 256 * MIB as u64, "{memory} bytes");
}

#[test]
fn sessions_closed_in_a_message_leave_nothing() {
    let server = server(&[]);
    let request = br#"{"id":1,"method":"transact","params":["D",{"op":"insert","table":"T","row":{"name":"half"}}]}"#;
    let (_, memory) = attack(&server, || {
        for cut in 0..600 {
            let mut stream = deaf(&server);
            stream
                .write_all(&request[..cut % request.len()])
                .expect("sent");
            // Half of the clients only close the sending side. The server must close their
            // connections.
            if cut % 2 == 0 {
                stream.shutdown(std::net::Shutdown::Write).expect("shut");
                let mut rest = Vec::new();
                std::io::Read::read_to_end(&mut stream, &mut rest).expect("closed");
                assert!(rest.is_empty());
            }
        }
    });
    assert!(memory < 16 * MIB as u64, "{memory} bytes");
    wait_for(|| sessions(&server) == 0, "sessions are closed");
    let mut client = server.connect().expect("a connection");
    let params = json!(["D", {"op": "select", "table": "T", "where": [], "columns": ["name"]}]);
    let reply = client.call("transact", &params).expect("a reply");
    assert_eq!(reply["result"][0]["rows"], json!([]));
    round(&mut client);
}

/// The reference repeats such bytes in `details`, too. A parser that requires UTF-8 fails on them.
#[test]
fn invalid_utf8_is_replaced_in_error_details() {
    let server = server(&[]);
    let mut client = server.connect().expect("a connection");
    client
        .send(b"{\"id\":1,\"method\":\"transact\",\"params\":[\"D\xff\"]}")
        .expect("sent");
    let Received::Text(answer) = client.receive(TIME_LIMIT).expect("received") else {
        panic!("no answer");
    };
    let details = "\"details\":\"transact request specifies unknown database D\u{fffd}\"";
    let contains = |part: &[u8]| answer.windows(part.len()).any(|window| window == part);
    assert!(contains(details.as_bytes()), "{answer:?}");
    assert!(contains(b"\"syntax\":\"[\\\"D\xff\\\"]\""), "{answer:?}");
}
