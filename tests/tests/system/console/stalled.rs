//! Viewers that stall: one asks for a backup and does not read it, others never end their forms.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use corvid_tests::console::Console;
use serde_json::json;

use super::forgotten::memory;
use super::live::Viewer;
use super::load::{ROWS, large};
use super::servers::{LOCAL, unchunked};
use super::{Shown, between};

const MIB: u64 = 1 << 20;

/// The number of open files of the console that have no name.
fn unnamed_files(console: &Console) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", console.pid())).expect("it runs");
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().ends_with(" (deleted)"))
        .count()
}

#[test]
fn a_viewer_that_leaves_frees_its_backup() {
    let server = large();
    let word = format!("big=unix:{}", server.socket().display());
    let console = Console::start(&[word, "--writable".to_owned()]).expect("a console");
    let path = "/db/big/servers/act";
    let asked = console.get_until(&format!("{path}?do=backup"), |answer| answer.status == 200);
    let token = asked.expect("a page").body;
    let token = between(&token, "name=\"form_token\" value=\"", "\"").to_owned();
    let body = format!("form_token={token}&do=backup");
    let mut leaving = console
        .open("POST", path, &[LOCAL], &body)
        .expect("a connection");
    let mut head = [0; 64];
    leaving.read_exact(&mut head).expect("a head");
    assert_eq!(unnamed_files(&console), 1);
    drop(leaving);
    let begin = Instant::now();
    while unnamed_files(&console) > 0 {
        // One that only stalls keeps its file for 30 seconds.
        assert!(begin.elapsed() < Duration::from_secs(15), "the file stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The turn follows the file.
    let again = loop {
        let again = console.ask("POST", path, &[LOCAL], &body);
        let status = again.expect("an answer").status;
        if status != 409 || begin.elapsed() > Duration::from_secs(15) {
            break status;
        }
    };
    assert_eq!(again, 200);
}

#[test]
fn a_stalled_download_of_a_backup_holds_up_nobody() {
    let server = large();
    let word = format!("big=unix:{}", server.socket().display());
    let console = Console::start(&[word, "--writable".to_owned()]).expect("a console");
    console
        .get_until("/db/big", |answer| answer.status == 200)
        .expect("the tables");
    let path = "/db/big/servers/act";
    let asked = console.get_until(&format!("{path}?do=backup"), |answer| answer.status == 200);
    let token = asked.expect("a page").body;
    let token = between(&token, "name=\"form_token\" value=\"", "\"").to_owned();
    let body = format!("form_token={token}&do=backup");
    let before = memory(&console);
    let mut stalled = console
        .open("POST", path, &[LOCAL], &body)
        .expect("a connection");
    // The head arrives, so the contents have been read from the server; then nobody reads on.
    let mut head = [0; 64];
    stalled.read_exact(&mut head).expect("a head");
    assert!(
        head.starts_with(b"HTTP/1.1 200 "),
        "{}",
        String::from_utf8_lossy(&head)
    );
    // The file waits on the disk. The allocator gives memory back with a delay.
    assert_eq!(unnamed_files(&console), 1);
    let begin = Instant::now();
    let mut held = memory(&console).saturating_sub(before);
    while held >= 24 * MIB && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        held = memory(&console).saturating_sub(before);
    }
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("a stalled backup of {ROWS} rows holds {} MiB\n", held / MIB).as_bytes(),
    );
    assert!(held < 24 * MIB, "{held} bytes");
    // Pages and events go on, and so do writes.
    let mut client = server.connect().expect("a connection");
    let update = |number: usize| {
        json!(["Big", {"op": "update", "table": "Item", "where": [["name", "==", "item-000007"]],
            "row": {"number": ROWS + number}}])
    };
    let arrived = format!("of <b id=\"selected\">{ROWS}</b>");
    let page = console.get_until("/db/big/table/Item", |answer| {
        answer.body.contains(&arrived)
    });
    page.expect("the rows");
    let mut viewer = Viewer::at(&console, "/db/big/table/Item/events");
    for number in 0..10 {
        client.call("transact", &update(number)).expect("a reply");
        viewer.event();
    }
    // One backup is made at a time. The stalled one ends by itself, and leaves its turn; until then
    // another is refused.
    let refused = console
        .ask("POST", path, &[LOCAL], &body)
        .expect("an answer");
    assert!(
        refused.status == 200 || refused.body.contains("another backup is being made"),
        "{refused:?}"
    );
    let begin = Instant::now();
    let whole = loop {
        let answer = console.ask("POST", path, &[LOCAL], &body);
        match answer {
            Ok(answer) if answer.status == 200 => break answer,
            Ok(answer) => assert_eq!(answer.status, 409, "{answer:?}"),
            Err(error) => panic!("{error}"),
        }
        assert!(
            begin.elapsed() < Duration::from_secs(180),
            "the turn is not given back"
        );
        std::thread::sleep(Duration::from_millis(500));
    };
    let text = unchunked(&whole.body);
    assert!(text.starts_with("OVSDB JSON "), "{}", &text[..100]);
    assert!(text.contains("item-199999") && text.contains(&format!("{}", ROWS + 9)));
    // The connection of the stalled one was broken: the browser keeps no half of a file.
    let mut rest = Vec::new();
    let end = stalled.read_to_end(&mut rest);
    assert!(
        end.is_err() || !rest.ends_with(b"\r\n0\r\n\r\n"),
        "a whole file of {} bytes",
        rest.len()
    );
}

#[test]
fn a_form_that_never_ends_is_given_up_wherever_it_is_sent() {
    let shown = Shown::start(&["--writable"]);
    shown.page("/db/net");
    let mut streams: Vec<TcpStream> = ["/login", "/db/net/query", "/db/net/servers/act"]
        .into_iter()
        .map(|path| {
            let address = ("127.0.0.1", shown.console.port());
            let mut stream = TcpStream::connect(address).expect("a connection");
            let limit = Some(Duration::from_secs(120));
            stream.set_read_timeout(limit).expect("set");
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1000\r\n\r\nform"
            );
            stream.write_all(head.as_bytes()).expect("sent");
            stream
        })
        .collect();
    for stream in &mut streams {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
    }
}
