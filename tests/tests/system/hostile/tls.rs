//! Handshakes that do not come to an end, and bytes that are not a handshake.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::json;

use super::scene::{TIME_LIMIT, attack, deaf, logged, pour, server, wait_for};

/// Makes a key and a self-signed certificate. Returns false if there is no program for this.
fn make_identity(dir: &Path) -> bool {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=server",
        ])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(dir)
        .output();
    matches!(made, Ok(output) if output.status.success())
}

#[test]
fn broken_handshakes_do_not_affect_other_sessions() {
    let dir = tempfile::tempdir().expect("a directory");
    if !make_identity(dir.path()) {
        eprintln!("SKIPPED: openssl, which makes the certificate, is not installed");
        return;
    }
    let at = |name: &str| dir.path().join(name).display().to_string();
    let schema = json!({"name": "D", "tables": {"T": {"isRoot": true, "columns": {
        "name": {"type": "string"}, "text": {"type": "string"}}}}});
    let setup = Setup {
        databases: vec![schema],
        options: vec![
            "--remote=pssl:0:127.0.0.1".to_owned(),
            format!("--private-key={}", at("key.pem")),
            format!("--certificate={}", at("cert.pem")),
            format!("--ca-cert={}", at("cert.pem")),
        ],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    wait_for(|| server.port().is_some(), "it listens");
    let port = server.port().expect("it listens");
    // A record of a handshake whose length is larger than the number of bytes that follow.
    let begun = [0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3];
    let endless: Vec<u8> = std::iter::repeat_n([0x16, 3, 1, 0x00, 1, 1], 20_000)
        .flatten()
        .collect();
    let garbage: Vec<&[u8]> = vec![
        br#"{"id":1,"method":"echo","params":[]}"#,
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 100_000],
        &[0; 100_000],
        &[0x16, 3, 1, 0xff, 0xff, 1, 0xff, 0xff, 0xff],
        &[0x15, 3, 3, 0, 2, 2, 40],
        &endless,
    ];
    let (_, memory) = attack(&server, || {
        let connect = || TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        // Some clients send nothing, or never send the rest.
        let mut silent: Vec<TcpStream> = (0..100).map(|_| connect()).collect();
        for stream in silent.iter_mut().step_by(2) {
            stream.write_all(&begun).expect("sent");
        }
        for bytes in garbage.iter().cycle().take(100) {
            let mut stream = connect();
            stream
                .set_read_timeout(Some(TIME_LIMIT))
                .expect("a timeout");
            stream
                .set_write_timeout(Some(Duration::from_secs(20)))
                .expect("a timeout");
            // Either may be cut short because the server closes the connection.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            assert!(rest.len() < 10_000, "nothing but an alert");
        }
    });
    assert!(memory < 32 << 20, "{memory} bytes");
}

/// Clients with a wrong remote: the log tells what they speak.
#[test]
fn protocols_other_than_json_are_named_in_the_log() {
    let server = server(&[]);
    for (bytes, protocol) in [
        (b"\x16\x03\x01\x02\x00".as_slice(), "SSL"),
        (b"\x01\x00\x00\x08", "OpenFlow"),
    ] {
        pour(&mut deaf(&server), bytes);
        let text = format!("received {protocol} data on JSON-RPC channel");
        logged(&server, &text);
    }
    let parsed = "error parsing stream: line 0,";
    // One byte tells nothing, nor do bytes after a text.
    pour(&mut deaf(&server), b"\x16");
    let after_a_text = b"{\"id\":1,\"method\":\"echo\",\"params\":[]}\x01\x00";
    pour(&mut deaf(&server), after_a_text);
    wait_for(|| server.log().matches(parsed).count() == 4, parsed);
    let named = server.log().matches("data on JSON-RPC channel").count();
    assert_eq!(named, 2);
}
