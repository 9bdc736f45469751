//! Changes arrive at viewers: quickly, once encoded, and only of tables that somebody looks at.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use corvid_tests::console::Console;
use serde_json::{Value, json};

use super::Shown;

/// A viewer's stream of events.
pub(super) struct Viewer(BufReader<TcpStream>);

impl Viewer {
    /// A viewer of a table.
    pub(super) fn of(shown: &Shown, table: &str) -> Viewer {
        Viewer::at(&shown.console, &format!("/db/net/table/{table}/events"))
    }

    /// A viewer of the stream at an address.
    pub(super) fn at(console: &Console, path: &str) -> Viewer {
        let stream = console.open("GET", path, &[("Host", "localhost")], "");
        let mut viewer = Viewer(BufReader::new(stream.expect("a stream")));
        // The stream begins with the time after which a browser connects again.
        let line = viewer.line("retry:");
        assert_eq!(line, "retry: 1000\n");
        viewer
    }

    /// The next line that begins so.
    pub(super) fn line(&mut self, begin: &str) -> String {
        loop {
            let mut line = String::new();
            let length = self.0.read_line(&mut line).expect("a line");
            assert!(length > 0, "the stream has ended");
            if line.starts_with(begin) {
                return line;
            }
        }
    }

    /// Reads what is left until the stream ends, which a chunk without contents tells.
    pub(super) fn await_end(&mut self) {
        let mut line = String::from("begin");
        while !line.is_empty() && line != "0\r\n" {
            line.clear();
            self.0.read_line(&mut line).expect("the end");
        }
    }

    /// The next change; `None` if the stream ends first, because the page has to be read anew.
    pub(super) fn change(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a line");
            if line.is_empty() || line == "0\r\n" {
                return None;
            }
            // The other data are the states of the connection.
            if line.starts_with("data: {") {
                let change = serde_json::from_str(&line["data: ".len()..]);
                return Some(change.expect("JSON"));
            }
        }
    }

    pub(super) fn event(&mut self) -> Value {
        let line = self.line("data: ");
        serde_json::from_str(&line["data: ".len()..]).expect("JSON")
    }
}

fn set_tag(shown: &mut Shown, tag: i64) {
    let row = json!({"op": "update", "table": "Port", "where": [], "row": {"tag": tag}});
    shown.transact(&[row]);
}

#[test]
fn a_change_reaches_all_viewers_at_once() {
    let mut shown = Shown::start(&[]);
    let (_, ports) = shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Port");
    let mut viewers: Vec<Viewer> = (0..5).map(|_| Viewer::of(&shown, "Port")).collect();
    let mut fastest = Duration::MAX;
    for tag in 0..5 {
        let begin = Instant::now();
        set_tag(&mut shown, 100 + tag);
        let events: Vec<Value> = viewers.iter_mut().map(Viewer::event).collect();
        fastest = fastest.min(begin.elapsed());
        let cell = format!("<span class=\"number\">{}</span>", 100 + tag);
        let expected = json!({"total": 1, "rows": [[ports[0], "modify", {"tag": cell}]]});
        assert!(events.iter().all(|event| *event == expected), "{events:?}");
    }
    // The slowest of five on a busy machine tells nothing about the console.
    assert!(fastest < Duration::from_millis(300), "{fastest:?}");
    shown.add_switch("sw1", &["p1"]);
    let event = viewers[0].event();
    assert_eq!(
        (&event["total"], &event["rows"][0][1]),
        (&json!(2), &json!("insert"))
    );
    let row = json!({"op": "delete", "table": "Switch", "where": [["name", "==", "sw1"]]});
    shown.transact(&[row]);
    assert_eq!(viewers[0].event()["rows"][0][1], json!("delete"));
}

#[test]
fn a_change_of_many_rows_is_short() {
    let mut shown = Shown::start(&[]);
    let names: Vec<String> = (0..300).map(|n| format!("p{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    shown.add_switch("sw0", &names);
    shown.page("/db/net/table/Port");
    let mut viewer = Viewer::of(&shown, "Port");
    set_tag(&mut shown, 1000);
    assert_eq!(viewer.event(), json!({"total": 300}));
}

#[test]
fn only_tables_that_are_looked_at_are_sent() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Unused");
    // Bytes that the server has sent to the console, among others.
    let sent = |shown: &Shown| {
        let status = shown
            .server
            .control("ovsdb-server/status", &["--json".to_owned()]);
        let text = status.expect("a status")["result"]
            .as_str()
            .expect("text")
            .to_owned();
        let status: Value = serde_json::from_str(&text).expect("JSON");
        let sessions = status["sessions"].as_array().expect("sessions").clone();
        let sent = sessions
            .iter()
            .filter(|session| session["monitors"] != json!(0));
        sent.map(|session| session["sent_bytes"].as_u64().expect("a number"))
            .sum::<u64>()
    };
    let before = sent(&shown);
    assert!(before > 0);
    for tag in 0..50 {
        set_tag(&mut shown, 1000 + tag);
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(sent(&shown) - before < 1000, "nobody looks at ports");
    shown.page("/db/net/table/Port");
    let _viewer = Viewer::of(&shown, "Port");
    let before = sent(&shown);
    for tag in 0..50 {
        set_tag(&mut shown, 2000 + tag);
    }
    let begin = Instant::now();
    while sent(&shown) - before < 1000 {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "nothing was sent"
        );
    }
}

#[test]
fn rows_that_only_refer_to_a_changed_row_are_no_changes() {
    let mut shown = Shown::start(&[]);
    let (_, ports) = shown.add_switch("sw", &["p0"]);
    // More than the page lists of one update.
    let switches: Vec<Value> = (0..25)
        .map(|index| {
            json!({"op": "insert", "table": "Switch",
                "row": {"name": format!("sw{index}"), "ports": ["uuid", ports[0]]}})
        })
        .collect();
    shown.transact(&switches);
    shown.page("/db/net/table/Switch");
    shown.page("/db/net/table/Port");
    let mut switches = Viewer::of(&shown, "Switch");
    let mut all = Viewer::at(&shown.console, "/db/net/events");
    set_tag(&mut shown, 100);
    assert_eq!(switches.event(), json!({"total": 26, "rows": []}));
    shown.transact(&[
        json!({"op": "update", "table": "Port", "where": [], "row": {"tag": 101}}),
        json!({"op": "update", "table": "Switch", "where": [["name", "==", "sw7"]],
            "row": {"labels": ["map", [["a", "b"]]]}}),
    ]);
    let event = switches.event();
    assert_eq!(event["rows"].as_array().expect("rows").len(), 1, "{event}");
    // Both changes may share an event, but each table has its own.
    let mut lines = String::new();
    while !lines.contains("data-of=\"Switch\"") || !lines.contains("101") {
        lines += all.event()["html"].as_str().expect("lines");
    }
    assert_eq!(lines.matches("data-of=\"Switch\"").count(), 1, "{lines}");
    let page = shown.page("/db/net/changes");
    let page = super::between(&page, "<h2>Now</h2>", "<h2>History</h2>");
    assert_eq!(page.matches("data-of=\"Switch\"").count(), 1, "{page}");
    assert!(page.contains("sw7") && !page.contains("more row"), "{page}");
}

#[test]
fn the_name_of_a_row_changes_wherever_it_is_shown() {
    let mut shown = Shown::start(&["--idle=1"]);
    let (switch, ports) = shown.add_switch("sw", &["p0", "p1"]);
    shown.add_switch("other", &["p2"]);
    let page = shown.page("/db/net/table/Switch");
    assert!(page.contains(">p0</a>"), "{page}");
    let mut switches = Viewer::of(&shown, "Switch");
    // The table of the names is monitored as long as the page is open.
    std::thread::sleep(Duration::from_secs(5));
    let named = |name: &str| {
        json!({"op": "update", "table": "Port", "where": [["_uuid", "==", ["uuid", ports[0]]]],
            "row": {"name": name}})
    };
    shown.transact(&[named("renamed")]);
    let event = switches.event();
    let rows = event["rows"].as_array().expect("rows");
    let [row] = rows.as_slice() else {
        panic!("another row shows no other name: {event}");
    };
    assert_eq!((&row[0], &row[1]), (&json!(switch), &json!("modify")));
    let cells = row[2].as_object().expect("cells");
    assert_eq!(cells.keys().collect::<Vec<_>>(), ["ports"], "{event}");
    let cell = cells["ports"].as_str().expect("a cell");
    assert!(
        cell.contains(">renamed</a>") && cell.contains(">p1</a>"),
        "{cell}"
    );
    // A row that changes itself is told once, with both.
    let labels = json!({"op": "update", "table": "Switch", "where": [["name", "==", "sw"]],
        "row": {"labels": ["map", [["a", "b"]]]}});
    shown.transact(&[named("again"), labels]);
    let event = switches.event();
    let rows = event["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{event}");
    let cells = rows[0][2].as_object().expect("cells");
    assert_eq!(
        cells.keys().collect::<Vec<_>>(),
        ["labels", "ports"],
        "{event}"
    );
    assert!(
        cells["ports"]
            .as_str()
            .expect("a cell")
            .contains(">again</a>")
    );
    // A page of changes lists the port alone.
    let page = shown.page("/db/net/changes");
    let now = super::between(&page, "<h2>Now</h2>", "<h2>History</h2>");
    assert_eq!(now.matches("data-of=\"Switch\"").count(), 1, "{now}");
}

#[test]
fn a_viewer_that_reads_nothing_delays_nobody() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Port");
    let headers = [("Host", "localhost")];
    let stalled = shown
        .console
        .open("GET", "/db/net/table/Port/events", &headers, "");
    let _stalled = stalled.expect("a stream");
    let mut viewer = Viewer::of(&shown, "Port");
    for tag in 0..20 {
        set_tag(&mut shown, 100 + tag);
        viewer.event();
    }
}
