//! Connections: messages out of order, connections that break, replies that do not arrive.

use crate::client::OURS;
use crate::client::scripted::peer::serve;
use crate::support::{Dir, run};

#[test]
fn echoes_are_answered_and_other_messages_skipped_during_a_call() {
    let dir = Dir::new();
    let server = serve(dir.path(), "db.sock", |peer| {
        let (id, _) = peer.expect("list_dbs");
        peer.probe();
        peer.notify("update", "[null,{}]");
        peer.reply("99", "[]");
        peer.reply("\"echo\"", "[]");
        peer.reply(&id, "[\"A\"]");
    });
    let done = run(OURS, dir.path(), &["list-dbs"], b"");
    server.join().expect("the script ran to its end");
    assert_eq!(
        (done.status, done.stdout.as_str(), done.stderr.as_str()),
        (0, "A\n", "")
    );
}

#[test]
fn broken_connection_is_an_error() {
    let broken = |bytes: &'static [u8]| {
        let dir = Dir::new();
        let server = serve(dir.path(), "db.sock", |peer| {
            // As a server of the reference, which executes no ids.
            peer.answer("get_server_id", r#""d7a3bf0c-5e0c-4b2a-9b63-0d8ad7a2ce10""#);
            peer.expect("transact");
            peer.send(bytes);
        });
        let done = run(
            OURS,
            dir.path(),
            &["-vconsole:off", "transact", "[\"D\"]"],
            b"",
        );
        server.join().expect("the script ran to its end");
        assert_eq!((done.status, done.stdout.as_str()), (1, ""));
        done.stderr
    };
    assert_eq!(
        broken(b""),
        "ovsdb-client: transaction failed (End of file)\n"
    );
    assert_eq!(
        broken(b"{\"id\":1,\"result\""),
        "ovsdb-client: transaction failed (End of file)\n"
    );
    assert_eq!(
        broken(b"{]"),
        "ovsdb-client: transaction failed (Protocol error)\n"
    );
    assert_eq!(
        broken(b"{\"id\":1}"),
        "ovsdb-client: transaction failed (Protocol error)\n"
    );
    assert_eq!(
        broken(b"[]"),
        "ovsdb-client: transaction failed (Protocol error)\n"
    );
}

#[test]
fn timeout_ends_the_program_by_its_signal() {
    let dir = Dir::new();
    let server = serve(dir.path(), "db.sock", |peer| {
        peer.expect("list_dbs");
        let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| peer.receive()));
        assert!(gone.is_err(), "nothing follows");
    });
    let done = run(OURS, dir.path(), &["-t1", "list-dbs"], b"");
    server.join().expect("the script ran to its end");
    assert_eq!(done.status, -14);
    assert_eq!(
        done.stderr,
        "fatal_signal|WARN|terminating with signal 14 (Alarm clock)\n"
    );
}

#[test]
fn wait_survives_a_lost_connection() {
    let dir = Dir::new();
    let path = dir.path().to_owned();
    let (sender, second) = std::sync::mpsc::channel();
    let server = serve(dir.path(), "db.sock", move |peer| {
        peer.expect("set_db_change_aware");
        peer.expect("transact");
        let again = serve(&path, "db.sock", |peer| {
            peer.refuse("set_db_change_aware", "\"unknown method\"");
            let params = peer.answer("transact", "[{}]");
            let wait = r#"{"columns":["connected"],"op":"wait","rows":[{"connected":true}],"table":"Database","until":"==","where":[["name","==","D"]]}"#;
            assert_eq!(params.to_string(), format!("[\"_Server\",{wait}]"));
        });
        sender.send(again).expect("the test waits");
    });
    let done = run(OURS, dir.path(), &["wait", "D", "connected"], b"");
    server.join().expect("the script ran to its end");
    let second = second.recv().expect("there was a second connection");
    second.join().expect("the script ran to its end");
    assert_eq!((done.status, done.stdout.as_str()), (0, ""));
    let log: Vec<&str> = done
        .stderr
        .lines()
        .filter_map(|line| line.rsplit_once("db.sock: "))
        .map(|(_, what)| what)
        .collect();
    assert_eq!(
        log,
        [
            "connecting...",
            "connected",
            "connection closed by peer",
            "connecting...",
            "connected"
        ]
    );
}

#[test]
fn clusters_get_no_ephemeral_columns() {
    let dir = Dir::new();
    let schema = r#"{"name":"D","tables":{"T":{"columns":{"e":{"type":"string","ephemeral":true},"p":{"type":"string"}}}}}"#;
    std::fs::write(dir.file("schema"), schema).expect("the schema can be written");
    let server = serve(dir.path(), "db.sock", |peer| {
        peer.answer(
            "transact",
            r#"[{"rows":[{"name":"D","model":"clustered"}]}]"#,
        );
        peer.answer("set_db_change_aware", "{}");
        let params = peer.answer("convert", "{}");
        let columns = r#"{"e":{"type":"string"},"p":{"type":"string"}}"#;
        let expected = format!(r#"["D",{{"name":"D","tables":{{"T":{{"columns":{columns}}}}}}}]"#);
        assert_eq!(params.to_string(), expected);
    });
    let done = run(OURS, dir.path(), &["convert", "schema"], b"");
    let served = server.join();
    assert_eq!(done.status, 0, "{done:?}");
    assert!(served.is_ok());
    let warning = "ovsdb_client|WARN|schema: changed 1 columns in 'D' database from ephemeral to persistent, including 'e' \
                   column in 'T' table, because clusters do not support ephemeral columns\n";
    assert_eq!(done.stderr, warning);
}

#[test]
fn unusable_messages_are_logged_in_the_words_of_the_reference() {
    let logged = |bytes: &'static [u8]| {
        let dir = Dir::new();
        let server = serve(dir.path(), "db.sock", |peer| {
            peer.expect("list_dbs");
            peer.send(bytes);
        });
        let done = run(OURS, dir.path(), &["list-dbs"], b"");
        server.join().expect("the script ran to its end");
        assert_eq!((done.status, done.stdout.as_str()), (1, ""));
        let lines = done.stderr.lines();
        let lines = lines.map(|line| line.rsplit_once("db.sock: ").map_or(line, |(_, text)| text));
        lines.collect::<Vec<_>>().join("\n")
    };
    let failed = "ovsdb-client: transaction failed (Protocol error)";
    assert_eq!(
        logged(br#"{"id":0,"result":tru}"#),
        format!(
            "error parsing stream: line 0, column 20, byte 20: invalid keyword 'tru'\n{failed}"
        )
    );
    assert_eq!(
        logged(b"[1]"),
        format!("received bad JSON-RPC message: message is not a JSON object\n{failed}")
    );
    let unknown = "error parsing stream: line 0, column 0, byte 0: invalid character";
    assert_eq!(
        logged(b"\x16\x03\x01\x02\x00"),
        format!("{unknown} U+0016\nreceived SSL data on JSON-RPC channel\n{failed}")
    );
    assert_eq!(
        logged(b"\x01\x00\x00\x08"),
        format!("{unknown} U+0001\nreceived OpenFlow data on JSON-RPC channel\n{failed}")
    );
    assert_eq!(logged(b"\x16"), format!("{unknown} U+0016\n{failed}"));
}
