//! The past of a database with many commits, and the network: as it was, how it has changed, and
//! its changes as they arrive.

use std::io::Write;
use std::time::{Duration, Instant};

use corvid_tests::browser::Browser;
use corvid_tests::client::Client;
use corvid_tests::console::Console;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

use super::live::Viewer;
use super::{between, text_of};

/// The time limit for contents on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The commits between two states of the network.
const COMMITS: usize = 10_000;

/// The columns of the northbound schema that a picture needs, and one that it does not.
fn schema() -> Value {
    let string = json!({"type": "string"});
    let ports = json!({"type": {"key": {"type": "uuid", "refTable": "Logical_Switch_Port"}, "min": 0, "max": "unlimited"}});
    let up = json!({"type": {"key": "boolean", "min": 0, "max": 1}});
    json!({"name": "OVN_Northbound", "version": "7.0.0", "tables": {
        "Logical_Switch": {"isRoot": true, "columns": {"name": string, "ports": ports}},
        "Logical_Switch_Port": {"columns": {"name": string, "up": up, "serial": {"type": "integer"}}}
    }})
}

struct Network {
    console: Console,
    client: Client,
    _server: Server,
}

impl Network {
    fn start(options: &[&str]) -> Network {
        let setup = Setup {
            databases: vec![schema()],
            options: options.iter().map(|&option| option.to_owned()).collect(),
            ..Setup::default()
        };
        let server = Server::start(Implementation::Corvid, &setup).expect("a server");
        let word = format!("nb=unix:{}", server.socket().display());
        Network {
            console: Console::start(&[word]).expect("a console"),
            client: server.connect().expect("a connection"),
            _server: server,
        }
    }

    fn transact(&mut self, operations: &[Value]) -> Value {
        let mut params = vec![json!("OVN_Northbound")];
        params.extend(operations.iter().cloned());
        let reply = self.client.call("transact", &json!(params));
        let reply = reply.expect("a reply");
        let results = reply["result"].as_array().expect("results");
        assert!(
            results.iter().all(|result| result.get("error").is_none()),
            "{reply}"
        );
        reply["result"].clone()
    }

    fn add_switch(&mut self, name: &str, ports: &[&str]) {
        let mut operations: Vec<Value> = (ports.iter().enumerate())
            .map(|(index, port)| {
                json!({"op": "insert", "table": "Logical_Switch_Port",
                "uuid-name": format!("p{index}"), "row": {"name": port, "up": true}})
            })
            .collect();
        let named: Vec<Value> = (0..ports.len())
            .map(|index| json!(["named-uuid", format!("p{index}")]))
            .collect();
        operations.push(json!({"op": "insert", "table": "Logical_Switch",
            "row": {"name": name, "ports": ["set", named]}}));
        self.transact(&operations);
    }

    fn page(&self, path: &str, wanted: &str) -> String {
        let answer = self
            .console
            .get_until(path, |answer| answer.body.contains(wanted));
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{path}\n{}", answer.body);
        answer.body
    }
}

fn set_up(port: &str, is_up: bool) -> Value {
    json!({"op": "update", "table": "Logical_Switch_Port", "where": [["name", "==", port]], "row": {"up": is_up}})
}

#[test]
fn moments_before_many_commits_are_shown() {
    let mut network = Network::start(&["--keep-history=1G"]);
    network.add_switch("first", &["p0"]);
    network.add_switch("doomed", &["p1"]);
    for number in 0..COMMITS {
        network.transact(&[json!({"op": "update", "table": "Logical_Switch_Port",
            "where": [["name", "==", "p0"]], "row": {"serial": number + 1}})]);
    }
    network.add_switch("second", &["p2"]);
    network.transact(&[
        json!({"op": "delete", "table": "Logical_Switch", "where": [["name", "==", "doomed"]]}),
        set_up("p0", false),
    ]);
    let ago = |commits: usize| format!("HEAD~{commits}");
    let early = ago(COMMITS + 2);

    // The newest commits, those of a while ago, and the sum of all.
    let page = network.page("/db/nb/changes", "<h2>History</h2>");
    assert_eq!(page.matches("<section class=\"commit\">").count(), 50);
    assert!(page.len() < 1024 * 1024, "{}", page.len());
    let page = network.page(
        &format!("/db/nb/changes?since={}", ago(40)),
        "<h2>History</h2>",
    );
    assert_eq!(page.matches("<section class=\"commit\">").count(), 40);
    let page = network.page(&format!("/db/nb/changes?from={early}"), "differences");
    let text = text_of(between(&page, "<h2>History</h2>", "</main>"));
    assert!(text.contains(&format!("serial 0 {COMMITS}")), "{text}");
    assert!(text.contains("second") && text.contains("doomed"), "{text}");

    // A table, and a value of each moment.
    for commits in [0, 1, 2, 5000, COMMITS] {
        let page = format!(
            "/db/nb/table/Logical_Switch_Port?at={}&columns=serial,name",
            ago(commits + 2)
        );
        let page = network.page(&page, "as it was at");
        let rows = text_of(between(&page, "<tbody>", "</tbody>"));
        assert!(
            rows.contains(&format!(" {} p0", COMMITS - commits)),
            "{commits}: {rows}"
        );
    }

    // The network as it was, and the difference of two moments.
    let picture = |query: &str, wanted: &str| {
        let page = network.page(&format!("/db/nb/network?{query}"), wanted);
        (
            text_of(between(&page, "id=\"drawn\"", "</p>")),
            between(&page, "<svg", "</svg>").to_owned(),
        )
    };
    let (_, now) = picture("", ">second<");
    assert!(!now.contains("doomed"), "{now}");
    let (_, then) = picture(&format!("at={early}"), "doomed");
    assert!(!then.contains("second"), "{then}");
    let card = |svg: &str, name: &str| {
        let cards = between(svg, "<g class=\"cards\">", "no end").to_owned();
        let found = cards
            .split("<g data-key=")
            .find(|card| card.contains(&format!(">{name}<")));
        let found = found.unwrap_or_else(|| panic!("no {name}: {cards}"));
        between(found, "class=\"", "\"").to_owned()
    };
    for query in [format!("before={early}"), format!("before={early}&at=HEAD")] {
        let (summary, both) = picture(&query, "doomed");
        assert!(summary.contains("2 added, 2 removed"), "{summary}");
        assert!(card(&both, "second").contains("added"), "{both}");
        assert!(card(&both, "doomed").contains("removed"), "{both}");
    }
    // Between two moments before the switch came nothing but the number differs, which is not
    // drawn.
    let (summary, _) = picture(&format!("before={early}&at={}", ago(5000)), "doomed");
    assert!(
        summary.contains("0 added, 0 removed, 0 changed"),
        "{summary}"
    );
    let page = network
        .console
        .get("/db/nb/network?before=yesterdayish")
        .unwrap();
    assert!(
        text_of(&page.body).contains("yesterdayish: "),
        "{}",
        text_of(&page.body)
    );
}

#[test]
fn viewers_of_a_picture_share_what_has_changed() {
    let mut network = Network::start(&[]);
    network.add_switch("first", &["p0", "p1"]);
    network.add_switch("second", &["p2"]);
    let page = network.page("/db/nb/network", ">second<");
    let shown = between(&page, "data-version=\"", "\"").to_owned();
    let stream = between(&page, "data-picture=\"", "\"").to_owned();
    let mut viewers: Vec<Viewer> = (0..20)
        .map(|_| Viewer::at(&network.console, &stream))
        .collect();
    for viewer in &mut viewers {
        assert_eq!(
            viewer.line("id: ").trim(),
            format!("id: {shown}"),
            "the page is current"
        );
    }
    // The picture does not show that number.
    network.transact(&[
        json!({"op": "update", "table": "Logical_Switch_Port", "where": [], "row": {"serial": 7}}),
    ]);
    network.transact(&[set_up("p1", false)]);
    let mut told = Vec::new();
    for viewer in &mut viewers {
        let number = viewer.line("id: ");
        told.push((number, viewer.event()));
    }
    assert!(told.iter().all(|event| *event == told[0]), "{told:?}");
    let (number, event) = &told[0];
    assert_eq!(event["before"], json!(shown));
    let parts = event["parts"].as_array().expect("parts");
    assert_eq!(parts.len(), 1, "one card has changed: {event}");
    assert_eq!(parts[0][1], json!("cards"));
    let text = parts[0][2].as_str().expect("a text");
    assert!(text.contains("first") && text.contains("down"), "{text}");
    assert_eq!(event["gone"], json!([]));
    // The page has the version of the event, and the same part.
    let page = network.console.get("/db/nb/network?part=1").unwrap().body;
    let version = between(&page, "data-version=\"", "\"");
    assert_eq!(number.trim(), format!("id: {version}"));
    assert!(page.contains(text), "{page}");
    // Another part of the network has events of its own.
    let around = network.page("/db/nb/network?find=second", "Found: ");
    let other = between(&around, "data-picture=\"", "\"").to_owned();
    assert_ne!(other, stream);
    let mut other = Viewer::at(&network.console, &other);
    other.line("id: ");
    network.add_switch("third", &[]);
    // A card more is a part more, or another size of the picture, which is told without parts.
    for viewer in [&mut viewers[0], &mut other] {
        let event = viewer.event();
        assert!(
            event["parts"].is_null() || event.to_string().contains("third"),
            "{event}"
        );
    }
    let begin = Instant::now();
    while !network
        .console
        .get("/db/nb/network?part=1")
        .unwrap()
        .body
        .contains(">third<")
    {
        assert!(begin.elapsed() < LIMIT, "the picture is old");
    }
}

#[test]
fn a_browser_replaces_the_changed_part_of_a_picture() {
    if !Browser::is_installed() {
        // Past the test runner, which captures the output of tests.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: a picture in a browser: chromium is not installed"
        );
        return;
    }
    let browser = Browser::start().expect("a browser");
    let mut network = Network::start(&[]);
    network.add_switch("first", &["p0", "p1"]);
    network.page("/db/nb/network", ">first<");
    let address = format!("http://127.0.0.1:{}/db/nb/network", network.console.port());
    browser.open(&address).unwrap();
    browser
        .wait_for("return document.querySelector('#live').textContent == 'live'")
        .unwrap();
    let svg = "document.querySelector('#part svg')";
    browser.run(&format!("{svg}.isTheSame = true")).unwrap();
    network.transact(&[set_up("p1", false)]);
    browser
        .wait_for(&format!("return {svg}.textContent.includes('1 down')"))
        .unwrap();
    let is_same = browser.run(&format!("return {svg}.isTheSame === true"));
    assert_eq!(
        is_same.unwrap(),
        json!(true),
        "the whole picture was replaced"
    );
    // The part is still a part of the picture, and changes again.
    network.transact(&[set_up("p1", true)]);
    browser
        .wait_for(&format!("return !{svg}.textContent.includes('1 down')"))
        .unwrap();
    network.add_switch("second", &[]);
    browser
        .wait_for(&format!("return {svg}.textContent.includes('second')"))
        .unwrap();
    let cards = browser.run("return document.querySelectorAll('#part svg g.cards > g').length");
    assert_eq!(cards.unwrap(), json!(2));
}
