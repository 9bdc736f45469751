//! The page of a server: what it shows is what the server's status says, it follows a cluster whose
//! leader dies, it finds relays, and its buttons do what they say, for those who may press them.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use corvid_tests::browser::Browser;
use corvid_tests::client::Client;
use corvid_tests::cluster::Cluster;
use corvid_tests::console::Console;
use corvid_tests::http;
use corvid_tests::process::Process;
use corvid_tests::server::Implementation::{Corvid, Reference};
use corvid_tests::server::{Server, Setup};
use corvid_tests::{binary, peer};
use serde_json::{Value, json};

use super::{HOSTILE, Shown, between, schema, text_of};
use crate::active_backup::node::Node;
use crate::relay::node::{await_contents, relay_of};

pub(super) const LOCAL: (&str, &str) = ("Host", "localhost");

/// The status that a server tells at its control socket.
pub(super) fn status_of(socket: &Path) -> Value {
    let mut control = Client::connect(socket).expect("a control socket");
    let reply = control.call("ovsdb-server/status", &json!(["--json"]));
    let reply = reply.expect("a reply");
    serde_json::from_str(reply["result"].as_str().expect("a text")).expect("JSON")
}

pub(super) fn part(console: &Console, name: &str) -> String {
    let path = format!("/db/{name}/servers?part=1");
    let answer = console.get_until(&path, |answer| answer.status == 200);
    answer.expect("a page").body
}

/// The page of a console until it holds.
pub(super) fn part_until(console: &Console, name: &str, holds: impl Fn(&str) -> bool) -> String {
    let path = format!("/db/{name}/servers?part=1");
    let answer = console.get_until(&path, |answer| answer.status == 200 && holds(&answer.body));
    answer.expect("a page").body
}

pub(super) fn word(name: &str, sockets: &[&Path]) -> String {
    let sockets = sockets
        .iter()
        .map(|path| format!("unix:{}", path.display()));
    format!("{name}={}", sockets.collect::<Vec<_>>().join(","))
}

/// Asks for an action, and sends the form of the page that asks back.
pub(super) fn press(console: &Console, name: &str, query: &str, more: &str) -> http::Answer {
    let path = format!("/db/{name}/servers/act");
    let asked = console.get(&format!("{path}?{query}")).expect("a page");
    assert_eq!(asked.status, 200, "{asked:?}");
    let form = between(&asked.body, "<form method=\"post\"", "</form>");
    let hidden = form.split("<input type=\"hidden\" name=\"").skip(1);
    let encoded =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02x}")).collect() };
    let fields = hidden.map(|field| {
        let (name, rest) = field.split_once("\" value=\"").expect("a value");
        let value = rest.split('"').next().expect("its end");
        format!("{name}={}", encoded(value))
    });
    let body = format!("{}{more}", fields.collect::<Vec<_>>().join("&"));
    console
        .ask("POST", &path, &[LOCAL], &body)
        .expect("an answer")
}

#[test]
fn a_page_of_one_server_says_what_its_status_says() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    let mut waiting = shown.server.connect().expect("a connection");
    shown
        .client
        .call("lock", &json!(["northd"]))
        .expect("a reply");
    waiting.call("lock", &json!(["northd"])).expect("a reply");
    shown.page("/db/net");
    let page = part_until(&shown.console, "net", |page| {
        // The console's own session, and those of the two clients.
        page.contains("3 sessions") && page.contains("id=\"locks\"")
    });
    let status = status_of(&shown.server.control_socket());
    let text = text_of(&page);
    let server = &status["server"];
    for said in [&server["program"], &server["ovsdb_version"]] {
        assert!(
            text.contains(said.as_str().expect("a text")),
            "{said}: {text}"
        );
    }
    assert!(
        text.contains(&format!("process {}", server["pid"])),
        "{text}"
    );
    assert!(text.contains("Health ready"), "{text}");
    let sessions = status["sessions"].as_array().expect("sessions");
    let of_page = between(&page, "id=\"sessions\"", "</section>");
    assert!(
        text_of(of_page).contains(&format!("{} sessions", sessions.len())),
        "{of_page}"
    );
    for session in sessions {
        let peer = session["peer"].as_str().expect("a peer");
        let pid = session["pid"].to_string();
        let row = between(of_page, &format!(">{peer} "), "</tr>");
        assert!(text_of(row).contains(&format!("({pid})")), "{peer}: {row}");
        let received = session["received_bytes"].as_i64().expect("a number");
        // Only the console's own session may have received more since.
        let is_fixed = session["program"] != "corvid-console";
        let title = format!("title=\"{received} bytes\"");
        assert!(
            !is_fixed || received > 999 || row.contains(&title),
            "{title}: {row}"
        );
    }
    // The most expensive one comes first: the costs do not grow down the table.
    let costs = of_page
        .split("data-label=\"CPU\" class=\"right\" title=\"")
        .skip(1);
    let costs: Vec<u64> = costs
        .map(|cost| {
            let digits = cost.split("µs").next().expect("a number");
            let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
            digits.parse().expect("a number")
        })
        .collect();
    assert_eq!(costs.len(), sessions.len());
    assert!(costs.is_sorted_by(|one, next| one >= next), "{costs:?}");
    let lock = &status["locks"][0];
    let locks = text_of(between(&page, "id=\"locks\"", "</section>"));
    let line = format!(
        "{} {} {}",
        lock["name"].as_str().expect("a name"),
        lock["owner"].as_str().expect("an owner"),
        lock["waiting"][0].as_str().expect("one that waits")
    );
    assert!(locks.contains(&line), "{line}: {locks}");
    // A read-only console has no buttons, and the whole status is at the end of the page.
    assert!(!page.contains("<button"), "{page}");
    let whole = shown.page("/db/net/servers");
    let whole = text_of(between(&whole, "<details id=\"whole\"", "</details>"));
    assert!(whole.contains("slow-transaction-ms"), "{whole}");
}

#[test]
fn the_last_hour_is_drawn_with_its_figures_in_words() {
    let mut shown = Shown::start(&[]);
    for number in 0..20 {
        shown.add_switch(&format!("sw{number}"), &[]);
    }
    shown.page("/db/net");
    // A rate needs two samples.
    let page = part_until(&shown.console, "net", |page| {
        !page.contains("Commits/s: not known yet") && page.contains("id=\"hour\"")
    });
    let hour = between(&page, "id=\"hour\"", "</section>");
    assert_eq!(hour.matches("<svg").count(), 6, "{hour}");
    assert_eq!(hour.matches("<title>").count(), 6, "{hour}");
    // The first sample may precede a session.
    let sessions = between(hour, "<title>Sessions in the last hour: from ", "</title>");
    assert!(sessions.ends_with(", now 2"), "{sessions}");
    let now = between(hour, "Commits/s</abbr></span> <b>", "</b>");
    assert!(now.parse::<f64>().is_ok_and(|now| now >= 0.0), "{now}");
    // The policy for contents allows no styles within pages.
    assert!(!page.contains("style="), "{page}");
}

#[test]
fn figures_lead_to_metrics_that_exist() {
    let setup = Setup {
        databases: vec![schema()],
        options: vec!["--metrics-listen=127.0.0.1:0".to_owned()],
        ..Setup::default()
    };
    let server = Server::start(Corvid, &setup).expect("a server");
    let log = server.log();
    let port = log.split_once("127.0.0.1:0: listening on port ");
    let port = port.and_then(|(_, rest)| rest.lines().next()?.parse().ok());
    let port: u16 = port.unwrap_or_else(|| panic!("no port in\n{log}"));
    let pages = format!("net.status=http://127.0.0.1:{port}/status.json");
    let words = [
        word("net", &[&server.socket()]),
        pages,
        "--writable".to_owned(),
    ];
    let console = Console::start(&words).expect("a console");
    let page = part_until(&console, "net", |page| page.contains("id=\"sessions\""));
    let metrics = http::get_from_port(port, "/metrics", "*/*")
        .expect("the metrics")
        .body;
    let href = format!("href=\"http://127.0.0.1:{port}/metrics\" title=\"metric ");
    let names: Vec<&str> = page
        .split(&href)
        .skip(1)
        .map(|rest| rest.split('"').next().expect("its end"))
        .collect();
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        let family = format!("# TYPE {name} ");
        // The type of an information has no suffix.
        let is_there = metrics.contains(&family) || name == "corvid_build_info";
        assert!(is_there, "{name}");
    }
    // A button that needs the control socket cannot be pressed, and says why.
    let buttons = between(&page, "class=\"bar buttons\"", "</div>");
    assert!(buttons.contains("<button>Backup…"), "{buttons}");
    let compact = between(buttons, "value=\"compact\"", "</form>");
    assert!(
        compact.contains("disabled") && compact.contains("NAME.status=PATH"),
        "{compact}"
    );
    let asked = console
        .get("/db/net/servers/act?do=compact")
        .expect("a page");
    assert_eq!(asked.status, 409);
    assert!(asked.body.contains("NAME.status=PATH"), "{asked:?}");
}

#[test]
fn a_cluster_whose_leader_dies_is_followed() {
    let mut cluster = Cluster::of(3, &schema()).expect("made");
    cluster.start().expect("started");
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let sockets: Vec<_> = cluster.members().iter().map(Process::socket).collect();
    let sockets: Vec<&Path> = sockets.iter().map(AsRef::as_ref).collect();
    let console = Console::start(&[word("net", &sockets)]).expect("a console");
    let id = |number: usize| {
        let status = status_of(&cluster.members()[number].control_socket());
        let id = status["databases"][0]["cluster"]["server_id"].clone();
        id.as_str().expect("an id").to_owned()
    };
    let ids: Vec<String> = (0..3).map(id).collect();
    let page = part_until(&console, "net", |page| {
        let members = text_of(page.split("id=\"members\"").nth(1).unwrap_or_default());
        members.matches(" ok ").count() >= 3
    });
    let row = |page: &str, number: usize| {
        let members = between(page, "id=\"members\"", "</section>").to_owned();
        text_of(between(
            &members,
            &format!("title=\"{}\"", ids[number]),
            "</tr>",
        ))
    };
    let status = status_of(&cluster.members()[leader].control_socket());
    let told = &status["databases"][0]["cluster"];
    let first = row(&page, leader);
    let expected = format!(
        "leader {} 0 {} ",
        told["term"],
        told["address"].as_str().expect("an address")
    );
    assert!(
        first.contains(&expected) && first.ends_with("ok"),
        "{expected}: {first}"
    );
    let members = between(&page, "id=\"members\"", "</section>");
    assert_eq!(members.matches("\"mark this\"").count(), 1, "{members}");
    for (number, id) in ids
        .iter()
        .enumerate()
        .filter(|(number, _)| *number != leader)
    {
        let line = row(&page, number);
        assert!(
            line.contains(&id[..4]) && line.contains(" follower "),
            "{line}"
        );
        let is_heard = ["ago ok", "just now ok", "this server ok"];
        assert!(is_heard.iter().any(|end| line.ends_with(end)), "{line}");
    }

    let address = cluster.address(leader);
    cluster.member(leader).kill();
    let others: Vec<usize> = (0..3).filter(|number| *number != leader).collect();
    let (next, _) = cluster.leader_among(&others).expect("a leader");
    let begin = Instant::now();
    let named = format!("led by {}", &ids[next][..4]);
    let page = part_until(&console, "net", |page| {
        page.contains(&named) && text_of(page).contains("not heard")
    });
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
    let dead = row(&page, leader);
    assert!(
        dead.contains(&address) && dead.contains("not heard"),
        "{dead}"
    );
    assert!(!dead.contains("leader"), "{dead}");
    let lives = row(&page, next);
    assert!(lives.contains("leader") && lives.ends_with("ok"), "{lives}");
    assert!(
        text_of(&page).contains(&format!("Leader {}", &ids[next][..4])),
        "{}",
        text_of(&page)
    );
}

#[test]
fn relays_are_a_tree_seen_from_either_end() {
    let top = Node::started(Corvid, &schema(), &[]);
    let middle = relay_of(Corvid, "Net", &top.remote());
    await_contents(&middle, "Net");
    let low = relay_of(Corvid, "Net", &middle.remote());
    await_contents(&low, "Net");
    let of = |name: &str, node: &Node| word(name, &[&node.process.socket()]);
    // The console knows the lowest one only, and climbs.
    let console = Console::start(&[of("low", &low)]).expect("a console");
    let page = part_until(&console, "low", |page| page.contains("id=\"relays\""));
    let tree = text_of(between(&page, "id=\"relays\"", "</section>"));
    let expected = [
        format!("{} standalone ready", top.remote()),
        format!("{} relay connected for", middle.remote()),
        "low this relay connected for".to_owned(),
    ];
    let mut rest = tree.as_str();
    for line in &expected {
        rest = rest
            .split_once(line)
            .unwrap_or_else(|| panic!("{line}: {tree}"))
            .1;
    }
    // The source finds its relay among its sessions.
    let console = Console::start(&[of("top", &top)]).expect("a console");
    let page = part_until(&console, "top", |page| page.contains("id=\"relays\""));
    let tree = text_of(between(&page, "id=\"relays\"", "</section>"));
    let session = format!("ovsdb-server ({})", middle.process.pid());
    assert!(
        tree.contains("top this standalone ready") && tree.contains(&session),
        "{tree}"
    );
    // With names for all of them, the tree is whole, and each name leads to its page.
    let words = [of("top", &top), of("middle", &middle), of("low", &low)];
    let console = Console::start(&words).expect("a console");
    let page = part_until(&console, "top", |page| page.contains("/db/low/servers"));
    let tree = between(&page, "id=\"relays\"", "</section>");
    let inner = between(tree, "/db/middle/servers", "</section>");
    assert!(inner.contains("/db/low/servers"), "{tree}");
    assert!(
        !tree.contains("ovsdb-server ("),
        "a relay is shown once: {tree}"
    );
    // A relay that has lost its source says so.
    let mut top = top;
    top.process.kill();
    let page = part_until(&console, "middle", |page| page.contains("disconnected for"));
    assert!(page.contains("disconnected for"), "{page}");
}

#[test]
fn buttons_do_what_they_say() {
    let mut shown = Shown::start(&["--writable"]);
    shown.add_switch("sw0", &["p0", "p1"]);
    shown.page("/db/net");
    let page = part_until(&shown.console, "net", |page| {
        page.contains("id=\"sessions\"")
    });
    assert!(!page.contains("disabled"), "{page}");
    // A session that is closed ends, and no other.
    let mut victim = shown.server.connect().expect("a connection");
    victim.call("lock", &json!(["mine"])).expect("a reply");
    let status = status_of(&shown.server.control_socket());
    let peer = status["locks"][0]["owner"].as_str().expect("an owner");
    let sessions = status["sessions"].as_array().expect("sessions");
    let session = sessions.iter().find(|session| session["peer"] == peer);
    let id = session.expect("a session")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let listed = format!("do=close&#38;id={id}\">Close");
    part_until(&shown.console, "net", |page| page.contains(&listed));
    let answer = press(&shown.console, "net", &format!("do=close&id={id}"), "");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("was closed"), "{answer:?}");
    assert!(
        victim.call("echo", &json!([])).is_err(),
        "it was not closed"
    );
    assert!(shown.client.call("echo", &json!([])).is_ok());
    let gone = shown
        .console
        .get_until(&format!("/db/net/servers/act?do=close&id={id}"), |answer| {
            answer.status == 409
        });
    assert!(gone.expect("a page").body.contains("the session has ended"));
    // A file is written anew.
    let file = shown.server.dir().join("Net.db");
    for number in 0..200 {
        let row = json!({"op": "update", "table": "Port", "where": [], "row": {"tag": number}});
        shown.transact(&[row]);
    }
    let before = std::fs::metadata(&file).expect("a file").len();
    let answer = press(&shown.console, "net", "do=compact", "");
    assert_eq!(answer.status, 200, "{answer:?}");
    let after = std::fs::metadata(&file).expect("a file").len();
    assert!(after * 2 < before, "{before} bytes before, {after} after");
    // A form without the token does nothing, and neither does an unknown action.
    let body = "form_token=00&do=compact";
    let refused = shown
        .console
        .ask("POST", "/db/net/servers/act", &[LOCAL], body);
    assert_eq!(refused.expect("an answer").status, 403);
    let unknown = shown
        .console
        .get("/db/net/servers/act?do=explode")
        .expect("a page");
    assert_eq!(unknown.status, 409);
}

#[test]
fn a_backup_is_the_file_that_the_client_writes() {
    let mut shown = Shown::start(&["--writable"]);
    let names: Vec<String> = (0..3000).map(|number| format!("port-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    shown.add_switch("sw0", &names);
    shown.page("/db/net");
    let path = "/db/net/servers/act";
    let asked = shown
        .console
        .get(&format!("{path}?do=backup"))
        .expect("a page");
    let token = between(&asked.body, "name=\"form_token\" value=\"", "\"").to_owned();
    let body = format!("form_token={token}&do=backup");
    let stream = shown.console.open("POST", path, &[LOCAL], &body);
    let mut bytes = Vec::new();
    stream
        .expect("a connection")
        .read_to_end(&mut bytes)
        .expect("a reply");
    let text = String::from_utf8(bytes).expect("a text");
    let (head, rest) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("attachment; filename=\"Net.db\""), "{head}");
    let ours = unchunked(rest);
    let output = Command::new(binary::bin("ovsdb-client"))
        .args([
            "backup",
            &format!("unix:{}", shown.server.socket().display()),
            "Net",
        ])
        .output()
        .expect("ovsdb-client");
    assert!(output.status.success(), "{output:?}");
    let theirs = String::from_utf8(output.stdout).expect("a text");
    // The records differ in their time and comment, and so in their hashes.
    let schema_of = |text: &str| text.lines().take(2).collect::<Vec<_>>().join("\n");
    assert_eq!(schema_of(&ours), schema_of(&theirs));
    let rows = |text: &str| {
        let record = text.lines().last().expect("a record").to_owned();
        let mut record: Value = serde_json::from_str(&record).expect("JSON");
        let members = record.as_object_mut().expect("an object");
        members.retain(|name, _| name != "_date" && name != "_comment");
        record
    };
    assert_eq!(rows(&ours), rows(&theirs));
    assert!(
        ours.contains("produced by \\\"corvid-console\\\""),
        "its comment"
    );
}

/// The body of a reply that is sent in chunks.
pub(super) fn unchunked(text: &str) -> String {
    let mut body = String::new();
    let mut rest = text;
    loop {
        let (length, after) = rest.split_once("\r\n").expect("a length");
        let length = usize::from_str_radix(length, 16).expect("a number");
        if length == 0 {
            return body;
        }
        body.push_str(&after[..length]);
        rest = after[length..].strip_prefix("\r\n").expect("an end");
    }
}

#[test]
fn leadership_is_transferred_to_the_chosen_member() {
    let mut cluster = Cluster::of(3, &schema()).expect("made");
    cluster.start().expect("started");
    let (leader, _) = cluster.leader_among(&[0, 1, 2]).expect("a leader");
    let sockets: Vec<_> = cluster.members().iter().map(Process::socket).collect();
    let sockets: Vec<&Path> = sockets.iter().map(AsRef::as_ref).collect();
    let words = [word("net", &sockets), "--writable".to_owned()];
    let console = Console::start(&words).expect("a console");
    part_until(&console, "net", |page| {
        page.contains("<button>Transfer leadership") && page.contains("3 members")
    });
    let next = (leader + 1) % 3;
    let status = status_of(&cluster.members()[next].control_socket());
    let id = status["databases"][0]["cluster"]["server_id"].clone();
    let id = id.as_str().expect("an id");
    let answer = press(&console, "net", "do=transfer", &format!("&to={id}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    cluster
        .wait_until("the chosen member leads", || {
            cluster.leads(next).unwrap_or(false)
        })
        .expect("it leads");
    let led = format!("led by {}", &id[..4]);
    part_until(&console, "net", |page| page.contains(&led));
    let answer = press(&console, "net", "do=transfer", "&to=nobody");
    assert_eq!(answer.status, 409);
}

#[test]
fn a_read_only_console_does_nothing_to_servers() {
    let shown = Shown::start(&[]);
    let page = shown.page("/db/net/query");
    let token = between(&page, "name=\"form_token\" value=\"", "\"").to_owned();
    part_until(&shown.console, "net", |page| {
        page.contains("id=\"sessions\"")
    });
    let status = status_of(&shown.server.control_socket());
    let id = status["sessions"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for action in ["backup", "compact", "transfer", &format!("close&id={id}")] {
        let path = "/db/net/servers/act";
        let asked = shown
            .console
            .get(&format!("{path}?do={action}"))
            .expect("a page");
        assert_eq!(asked.status, 403, "{action}: {asked:?}");
        let body = format!("form_token={token}&do={action}");
        let told = shown
            .console
            .ask("POST", path, &[LOCAL], &body)
            .expect("an answer");
        assert_eq!(told.status, 403, "{action}: {told:?}");
        assert!(told.body.contains("--writable"), "{action}: {told:?}");
    }
    assert_eq!(
        status_of(&shown.server.control_socket())["sessions"][0]["id"],
        json!(id)
    );
}

#[test]
fn hostile_comments_of_transactions_are_text() {
    let mut shown = Shown::start(&["--writable"]);
    let setting = ["slow-transaction-ms", "1"].map(str::to_owned);
    shown
        .server
        .control("ovsdb-server/set-setting", &setting)
        .expect("set");
    let mut operations = vec![json!({"op": "comment", "comment": HOSTILE})];
    let row =
        |number| json!({"op": "insert", "table": "Switch", "row": {"name": format!("s{number}")}});
    operations.extend((0..4000).map(row));
    shown.transact(&operations);
    shown.page("/db/net");
    let page = part_until(&shown.console, "net", |page| page.contains("id=\"slow\""));
    let slow = between(&page, "id=\"slow\"", "</section>");
    assert!(
        !page.contains("<script>document") && !page.contains("<img"),
        "{page}"
    );
    assert!(
        text_of(slow).contains("<script>document.title='harmed'</script>"),
        "{slow}"
    );
    let asked = shown
        .console
        .get("/db/net/servers/act?do=%3Cscript%3Edocument&id=%22%3E%3Cimg%3E")
        .expect("a page");
    assert!(
        !asked.body.contains("<script>document") && !asked.body.contains("<img"),
        "{asked:?}"
    );
}

#[test]
fn the_page_in_a_browser_is_made_anew_and_keeps_the_focus() {
    if !Browser::is_installed() {
        peer::say_skipped("chromium is not installed: the page of a server in a browser");
        return;
    }
    let browser = Browser::start().expect("a browser");
    let mut shown = Shown::start(&["--writable"]);
    shown.page("/db/net");
    let address = format!("http://127.0.0.1:{}/db/net/servers", shown.console.port());
    browser.open(&address).expect("a page");
    let focus = "document.querySelector('[value=compact]').form.querySelector('button').focus(); \
                 window.isTheSame = true";
    browser.run(focus).expect("a button");
    shown
        .client
        .call("lock", &json!(["northd"]))
        .expect("a reply");
    browser
        .wait_for(
            "return document.querySelector('#locks')?.textContent.includes('northd') ?? false",
        )
        .expect("the lock, without reloading");
    let kept = "return window.isTheSame && document.activeElement.form.elements.do.value";
    assert_eq!(browser.run(kept).expect("a value"), json!("compact"));
    assert_eq!(browser.errors().expect("errors"), [""; 0]);
}

#[test]
fn of_a_server_of_the_reference_the_page_says_what_is_missing() {
    if Reference.server_binary().is_err() {
        return;
    }
    let shown = Shown::of(Reference, &[]);
    shown.page("/db/net");
    let text = text_of(&part(&shown.console, "net"));
    assert!(text.contains("This server publishes no status"), "{text}");
    assert!(
        text.contains("Model standalone") && text.contains("Net"),
        "{text}"
    );
}
