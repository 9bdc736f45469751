//! Rows leave the memory of the console after the last viewer, and the server sends no more of
//! them.

use std::time::{Duration, Instant};

use corvid_tests::console::Console;
use corvid_tests::server::Server;
use serde_json::{Value, json};

use super::live::Viewer;
use super::load::{ROWS, large};

const LIMIT: Duration = Duration::from_secs(60);

/// The resident memory of a console, bytes.
pub(super) fn memory(console: &Console) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", console.pid()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_else(|| panic!("{status}"));
    kib * 1024
}

/// The bytes that the server has sent to the console's monitors.
fn sent(server: &Server, console: &Console) -> u64 {
    let status = server.control("ovsdb-server/status", &["--json".to_owned()]);
    let status = status.expect("a status");
    let status: Value =
        serde_json::from_str(status["result"].as_str().expect("a text")).expect("JSON");
    let sessions = status["sessions"].as_array().expect("sessions");
    let own = sessions.iter().filter(|session| {
        session["pid"] == json!(console.pid()) && session["monitors"] != json!(0)
    });
    own.map(|session| session["sent_bytes"].as_u64().expect("a number"))
        .sum()
}

/// Changes a row of the table, with a text of 1,000 bytes.
fn change(server: &Server, number: usize) {
    let mut client = server.connect().expect("a connection");
    let name = format!("item-{number}-{}", "x".repeat(1000));
    let update = json!(["Big", {"op": "update", "table": "Item", "where": [["number", "==", 7]],
        "row": {"name": name}}]);
    client.call("transact", &update).expect("a reply");
}

#[test]
fn rows_leave_memory_after_the_last_viewer() {
    let server = large();
    let word = format!("big=unix:{}", server.socket().display());
    let console = Console::start(&[word, "--idle=1".to_owned()]).expect("a console");
    console
        .get_until("/db/big", |answer| answer.status == 200)
        .expect("the tables");
    let before = memory(&console);
    let arrived = format!("of <b id=\"selected\">{ROWS}</b>");
    let look = || {
        let page = console.get_until("/db/big/table/Item?sort=number", |answer| {
            answer.body.contains(&arrived) && !answer.body.contains("Not current: ")
        });
        page.expect("the rows").body
    };
    look();
    let stream = Viewer::at(&console, "/db/big/table/Item/events");
    let with_rows = memory(&console);
    assert!(
        with_rows > before + 100 * ROWS as u64,
        "{before} and {with_rows} bytes"
    );
    // While somebody looks, the rows stay, for longer than a table stays without viewers.
    std::thread::sleep(Duration::from_secs(4));
    let told = sent(&server, &console);
    change(&server, 1);
    let begin = Instant::now();
    while sent(&server, &console) < told + 1000 {
        assert!(begin.elapsed() < LIMIT, "the change was not sent");
    }
    drop(stream);
    // The last viewer is gone when the console has noticed: its events are written to nobody.
    let begin = Instant::now();
    let mut number = 2;
    let mut after;
    loop {
        change(&server, number);
        number += 1;
        std::thread::sleep(Duration::from_millis(200));
        after = memory(&console);
        if after < before + (with_rows - before) / 2 {
            break;
        }
        assert!(
            begin.elapsed() < LIMIT,
            "{before} bytes before, {with_rows} with the rows, {after} after"
        );
    }
    // The server is told to send no more of the table when the rows have gone, or a moment later.
    let begin = Instant::now();
    loop {
        let told = sent(&server, &console);
        for _ in 0..20 {
            number += 1;
            change(&server, number);
        }
        let now = sent(&server, &console);
        if now < told + 1000 {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{} bytes of changes", now - told);
    }
    // A later look has all rows again.
    assert!(look().contains(&arrived));
}
