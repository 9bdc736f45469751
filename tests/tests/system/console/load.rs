//! Many rows, many viewers, large values: what pages show stays right, and bounded.
//!
//! Times are not judged here; `make console-figures` measures them, with a million rows.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::{Duration, Instant};

use corvid_tests::client::Client;
use corvid_tests::console::Console;
use corvid_tests::database_file;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

use super::live::Viewer;
use super::{Shown, between, text_of};

/// The time limit for contents on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The UUIDs of the rows of a page, in order.
fn rows_of(page: &str) -> Vec<String> {
    let mut rows = page.split("<tr data-uuid=\"");
    rows.next();
    rows.map(|row| row.split('"').next().unwrap_or_default().to_owned())
        .collect()
}

/// A row of ports: UUID, name, tag.
type Port = (String, String, i64);

fn ports(shown: &mut Shown) -> Vec<Port> {
    let select =
        json!({"op": "select", "table": "Port", "where": [], "columns": ["_uuid", "name", "tag"]});
    let results = shown.transact(&[select]);
    let rows = results[0]["rows"].as_array().expect("rows");
    rows.iter()
        .map(|row| {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let tag = row["tag"].as_i64().expect("a number");
            (text(&row["_uuid"][1]), text(&row["name"]), tag)
        })
        .collect()
}

#[test]
fn orders_follow_changes() {
    let mut shown = Shown::start(&[]);
    let names: Vec<String> = (0..400).map(|n| format!("p{:03}", n * 37 % 400)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    shown.add_switch("sw0", &names);
    // The order, the filter, and the same for a list of ports.
    type Sort = fn(&mut Vec<Port>);
    let views: [(&str, Sort); 5] = [
        ("sort=tag", |ports| {
            ports.sort_by_key(|port| (port.2, port.0.clone()));
        }),
        ("sort=-tag", |ports| {
            ports.sort_by_key(|port| (std::cmp::Reverse(port.2), port.0.clone()));
        }),
        ("sort=-name", |ports| {
            ports.sort_by_key(|port| (std::cmp::Reverse(port.1.clone()), port.0.clone()));
        }),
        ("where=tag+%3E+150&sort=tag", |ports| {
            ports.retain(|port| port.2 > 150);
            ports.sort_by_key(|port| (port.2, port.0.clone()));
        }),
        ("where=tag+%3C+50&sort=_uuid", |ports| {
            ports.retain(|port| port.2 < 50);
            ports.sort();
        }),
    ];
    let mut state = 5_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for round in 0..25_u64 {
        let known = ports(&mut shown);
        // One change, several of one row, a few rows, or most of them.
        for _ in 0..[1, 5, 1][usize::try_from(round % 3).unwrap_or(0)] {
            let limit = [2, 20, 300_i64][usize::try_from(random(3)).unwrap_or(0)];
            let tag = i64::try_from(random(300)).unwrap_or(0);
            let first = i64::try_from(random(300)).unwrap_or(0);
            let mut operations = vec![
                json!({"op": "mutate", "table": "Port", "mutations": [["tag", "+=", tag - 150]],
                    "where": [["tag", ">", first], ["tag", "<", first + limit]]}),
            ];
            if random(2) == 0 {
                let gone = &known[usize::try_from(random(known.len() as u64)).unwrap_or(0)].0;
                operations.push(json!({"op": "mutate", "table": "Switch", "where": [],
                    "mutations": [["ports", "delete", ["uuid", gone]]]}));
                operations.push(json!({"op": "insert", "table": "Port", "uuid-name": "new",
                    "row": {"name": format!("n{round:03}-{tag:03}"), "tag": tag}}));
                operations.push(json!({"op": "mutate", "table": "Switch", "where": [],
                    "mutations": [["ports", "insert", ["set", [["named-uuid", "new"]]]]]}));
            }
            shown.transact(&operations);
            // A page between two changes moves the rows that have changed so far.
            shown.page("/db/net/table/Port?sort=tag");
        }
        let expected = ports(&mut shown);
        for (view, sort) in &views {
            let mut wanted = expected.clone();
            sort(&mut wanted);
            let wanted: Vec<String> = wanted.into_iter().map(|port| port.0).collect();
            let path = format!("/db/net/table/Port?{view}&rows=500");
            let begin = Instant::now();
            loop {
                let found = rows_of(&shown.page(&path));
                if found == wanted {
                    break;
                }
                let same: BTreeSet<&String> = found.iter().collect();
                assert_eq!(same.len(), found.len(), "{view}: a row is shown twice");
                assert!(begin.elapsed() < LIMIT, "{view}, round {round}");
            }
            let page = shown.page(&format!("/db/net/table/Port?{view}&rows=25&page=3"));
            let second: Vec<&String> = wanted.iter().skip(50).take(25).collect();
            assert_eq!(rows_of(&page).iter().collect::<Vec<_>>(), second, "{view}");
        }
    }
}

#[test]
fn a_filter_by_a_name_follows_the_name() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.add_switch("sw1", &["p1"]);
    shown.page("/db/net/table/Port");
    let path = "/db/net/table/Switch?where=ports+%3D%3D+p0";
    let name_of = |page: &str| text_of(between(page, "<tbody>", "</tbody>"));
    assert!(name_of(&shown.page(path)).contains("sw0"));
    let rename = |from: &str, to: &str| json!({"op": "update", "table": "Port", "where": [["name", "==", from]], "row": {"name": to}});
    shown.transact(&[rename("p0", "other"), rename("p1", "p0")]);
    let begin = Instant::now();
    while !name_of(&shown.page(path)).contains("sw1") {
        assert!(
            begin.elapsed() < LIMIT,
            "the filter means the row that had the name"
        );
    }
}

pub(super) const ROWS: usize = 200_000;

/// A server with a table of [`ROWS`] rows, whose numbers are a permutation of theirs.
pub(super) fn large() -> Server {
    let schema = json!({"name": "Big", "version": "1.0.0", "tables": {"Item": {"isRoot": true,
        "columns": {"name": {"type": "string"}, "number": {"type": "integer"}}}}});
    let setup = Setup {
        spares: vec![schema],
        options: vec!["--no-dbs".to_owned()],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let file = server.dir().join("Big.db");
    for first in (0..ROWS).step_by(10_000) {
        let rows: serde_json::Map<String, Value> = (first..first + 10_000)
            .map(|row| {
                let uuid = format!(
                    "{:08x}-0000-4000-8000-000000000000",
                    row * 19_919 % 0x1_0000_0000
                );
                (
                    uuid,
                    json!({"name": format!("item-{row:06}"), "number": row * 7919 % ROWS}),
                )
            })
            .collect();
        let record = json!({"_date": 1_700_000_000_000_u64, "Item": rows});
        database_file::append(&file, &record).expect("a record");
    }
    let file = file.to_string_lossy().into_owned();
    let reply = server
        .control("ovsdb-server/add-db", &[file])
        .expect("a reply");
    assert!(reply["error"].is_null(), "{reply}");
    server
}

fn console_of(server: &Server) -> Console {
    Console::start(&[format!("big=unix:{}", server.socket().display())]).expect("a console")
}

/// The numbers of the rows of a page.
fn numbers_of(page: &str) -> Vec<usize> {
    let cells = page.split("data-label=\"number\"");
    cells
        .skip(1)
        .map(|cell| {
            let text = text_of(&format!(
                "<{}",
                cell.split("</td>").next().unwrap_or_default()
            ));
            text.parse().unwrap_or_else(|_| panic!("{text:?}"))
        })
        .collect()
}

#[test]
fn a_large_table_is_paged_sorted_and_filtered() {
    let server = large();
    let console = console_of(&server);
    let arrived = format!("of <b id=\"selected\">{ROWS}</b>");
    let get = |query: &str| {
        let page = console.get_until(&format!("/db/big/table/Item?{query}"), |answer| {
            answer.body.contains("<tr data-uuid")
        });
        page.expect("a page").body
    };
    let page = console.get_until("/db/big/table/Item", |answer| {
        answer.body.contains(&arrived)
    });
    let page = page.expect("the rows").body;
    assert!(text_of(&page).contains("in no order"), "{}", text_of(&page));
    let last = get(&format!("page={}", ROWS / 50));
    let shown = text_of(between(&last, "id=\"summary\"", "</p>"));
    assert!(
        shown.contains(&format!("Rows {} to {ROWS}", ROWS - 49)),
        "{shown}"
    );
    assert!(
        !last.contains("rel=\"next\""),
        "the last page has a next one"
    );
    let beyond = console
        .get(&format!("/db/big/table/Item?page={ROWS}"))
        .unwrap();
    assert!(
        text_of(&beyond.body).contains("No rows"),
        "{}",
        beyond.status
    );
    for first in [0, 50, 100_000, ROWS - 50] {
        let page = 1 + first / 50;
        let wanted: Vec<usize> = (first..first + 50).collect();
        assert_eq!(
            numbers_of(&get(&format!("sort=number&page={page}"))),
            wanted
        );
        let wanted: Vec<usize> = wanted.iter().map(|number| ROWS - 1 - number).collect();
        assert_eq!(
            numbers_of(&get(&format!("sort=-number&page={page}"))),
            wanted
        );
    }
    let filtered = get("where=number+%3C+1000&sort=number&page=20");
    assert_eq!(numbers_of(&filtered), (950..1000).collect::<Vec<_>>());
    assert!(
        filtered.contains("<b id=\"selected\">1000</b>"),
        "{filtered}"
    );
    // A change moves one row in each of the orders.
    let mut client: Client = server.connect().expect("a connection");
    let update = json!(["Big", {"op": "update", "table": "Item", "where": [["name", "==", "item-000000"]],
        "row": {"number": ROWS + 5}}]);
    client.call("transact", &update).expect("a reply");
    let begin = Instant::now();
    while numbers_of(&get("sort=-number"))[0] != ROWS + 5 {
        assert!(begin.elapsed() < LIMIT, "the row has not moved");
    }
    assert_eq!(numbers_of(&get("sort=number"))[0], 1);
    let filtered = get("where=number+%3C+1000&sort=number&page=20");
    assert!(
        filtered.contains("<b id=\"selected\">999</b>"),
        "{filtered}"
    );
    // A file has the first rows of the same order, as long as its bytes have room.
    assert!(
        page.contains("(the first 100000 rows, at most 64 MiB)"),
        "{page}"
    );
    assert!(filtered.contains("(at most 64 MiB)"), "{filtered}");
    let file = console
        .get("/db/big/table/Item.csv?sort=number&where=number+%3C+10")
        .unwrap();
    assert_eq!(file.body.lines().count(), 10, "{}", file.body);
}

#[test]
fn a_server_that_dies_while_a_page_waits_comes_back() {
    let mut server = large();
    let console = console_of(&server);
    let page = || console.get("/db/big/table/Item");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(page);
        std::thread::sleep(Duration::from_millis(100));
        // Ends the server as a crash does, while rows arrive or the schema is asked for.
        server.kill();
        let answer = waiting.join().expect("an answer").expect("an answer");
        assert!([200, 503].contains(&answer.status), "{}", answer.status);
    });
    let answer = page().expect("an answer");
    assert!([200, 503].contains(&answer.status), "{}", answer.status);
    server.restart().expect("a server");
    let file = server.dir().join("Big.db").to_string_lossy().into_owned();
    server
        .control("ovsdb-server/add-db", &[file])
        .expect("a reply");
    let arrived = format!("of <b id=\"selected\">{ROWS}</b>");
    let answer = console.get_until("/db/big/table/Item?sort=number", |answer| {
        answer.body.contains(&arrived) && !answer.body.contains("Not current: ")
    });
    assert_eq!(numbers_of(&answer.expect("the rows").body)[..3], [0, 1, 2]);
}

#[test]
fn a_change_is_encoded_once_for_500_viewers() {
    let mut shown = Shown::start(&[]);
    let (_, ports) = shown.add_switch("sw0", &["p0"]);
    let page = shown.page("/db/net/table/Port");
    let event: u64 = between(&page, "data-event=\"", "\"")
        .parse()
        .expect("a number");
    let mut viewers: Vec<Viewer> = (0..500).map(|_| Viewer::of(&shown, "Port")).collect();
    let number = |viewer: &mut Viewer| viewer.line("id: ").trim().to_owned();
    for viewer in &mut viewers {
        assert_eq!(
            number(viewer),
            format!("id: {event}"),
            "the page is current"
        );
    }
    for round in 1..=3 {
        let row =
            json!({"op": "update", "table": "Port", "where": [], "row": {"tag": 100 + round}});
        shown.transact(&[row]);
        // Each encoding has the next number, so it would differ if there were one for each viewer.
        for viewer in &mut viewers {
            assert_eq!(number(viewer), format!("id: {}", event + round));
            let change = viewer.event();
            assert_eq!(change["rows"][0][0], json!(ports[0]), "{change}");
        }
    }
    drop(viewers);
    assert_eq!(shown.console.get("/db/net/table/Port").unwrap().status, 200);
}

#[test]
fn a_viewer_that_has_stalled_is_dropped() {
    let mut shown = Shown::start(&[]);
    for number in 0..60 {
        shown.add_switch(&format!("sw{number}"), &[]);
    }
    shown.page("/db/net/table/Switch");
    let path = "/db/net/table/Switch/events";
    let stalled = shown
        .console
        .open("GET", path, &[("Host", "localhost")], "");
    let mut stalled = stalled.expect("a stream");
    let mut viewer = Viewer::of(&shown, "Switch");
    for round in 0..80 {
        let labels: Vec<Value> = (0..12)
            .map(|key| {
                json!([
                    format!("{key}{}", "k".repeat(100)),
                    format!("{round}{}", "v".repeat(110))
                ])
            })
            .collect();
        let row = json!({"op": "update", "table": "Switch", "where": [], "row": {"labels": ["map", labels]}});
        shown.transact(&[row]);
        viewer.event();
    }
    // Longer than a viewer may not read.
    std::thread::sleep(Duration::from_secs(12));
    let mut rest = Vec::new();
    let end = stalled.read_to_end(&mut rest);
    assert!(end.is_ok(), "the stream has not ended: {end:?}");
}

#[test]
fn cells_of_a_megabyte_are_cut() {
    let mut shown = Shown::start(&[]);
    let (_, ports) = shown.add_switch("sw0", &["p0"]);
    let long = |letter: &str| letter.repeat(1024 * 1024);
    let rename =
        |name: String| json!({"op": "update", "table": "Port", "where": [], "row": {"name": name}});
    shown.transact(&[rename(long("x"))]);
    let path = format!("/db/net/table/Port/row/{}", ports[0]);
    for page in [
        "/db/net/table/Port",
        "/db/net/table/Switch",
        "/db/net/changes",
        &path,
    ] {
        let begin = Instant::now();
        loop {
            let page_text = shown.page(page);
            if page_text.contains("xxxxxxxx…") {
                assert!(page_text.len() < 256 * 1024, "{page}: {}", page_text.len());
                break;
            }
            assert!(begin.elapsed() < LIMIT, "{page}: {page_text}");
        }
    }
    let page = shown.page(&path);
    let whole = format!("{path}/name");
    assert!(page.contains(&format!("href=\"{whole}\"")), "{page}");
    assert_eq!(shown.console.get(&whole).unwrap().body, long("x"));
    assert_eq!(
        shown
            .console
            .get(&format!("{path}/nothing"))
            .unwrap()
            .status,
        404
    );
    let mut viewer = Viewer::of(&shown, "Port");
    shown.transact(&[rename(long("y"))]);
    let event = viewer.event();
    let cell = event["rows"][0][2]["name"].as_str().expect("a cell");
    assert!(
        cell.len() < 1024 && cell.contains("yyyy…"),
        "{}",
        cell.len()
    );
    // Maps and sets of such texts as well.
    let labels: Vec<Value> = (0..8)
        .map(|key| json!([format!("{key}"), long("z")]))
        .collect();
    shown.transact(&[
        json!({"op": "update", "table": "Switch", "where": [], "row": {"labels": ["map", labels]}}),
    ]);
    let begin = Instant::now();
    loop {
        let page = shown.page("/db/net/table/Switch");
        assert!(page.len() < 256 * 1024, "{}", page.len());
        if page.contains("zzzz…") {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{page}");
    }
}
