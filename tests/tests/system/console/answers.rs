//! Answers when something is missing: the rest of a file, the server, a moment, a page of rows, the
//! token.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Shown, between, schema};
use corvid_tests::console::Console;
use corvid_tests::http::Answer;
use corvid_tests::server::{Implementation, Server, Setup};

const LOCAL: (&str, &str) = ("Host", "localhost");

#[test]
fn files_tell_their_rows_and_are_refused_without_a_server() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0", "p1"]);
    shown.page("/db/net/table/Port");
    let paths = ["/db/net/table/Port.csv", "/db/net/table/Port.json"];
    for path in paths {
        let answer = shown.console.get(path).expect("an answer");
        let head = answer.head.to_ascii_lowercase();
        assert!(head.contains("corvid-rows: 2 of 2"), "{head}");
    }
    shown.server.kill();
    for path in paths {
        let answer = shown.console.get_until(path, |answer| answer.status == 503);
        let answer = answer.expect("a refusal");
        assert!(answer.body.starts_with("not current: "), "{}", answer.body);
    }
    let page = shown.console.get("/db/net/servers").expect("a page").body;
    assert!(page.contains("not connected"), "{page}");
    assert!(!page.contains("has no _Server"), "{page}");
}

/// A server and a console with the database, and with one that has a picture of its own as `nb`.
fn with_a_picture(options: &[&str]) -> Shown {
    let mut picture = schema();
    picture["name"] = json!("OVN_Northbound");
    picture["tables"] = json!({"Logical_Switch": {"isRoot": true,
        "columns": {"name": {"type": "string"}}}});
    let setup = Setup {
        databases: vec![schema(), picture],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let client = server.connect().expect("a connection");
    let socket = server.socket().display().to_string();
    let mut words = vec![
        format!("net=unix:{socket}/Net"),
        format!("nb=unix:{socket}/OVN_Northbound"),
    ];
    words.extend(options.iter().map(|&option| option.to_owned()));
    let console = Console::start(&words).expect("a console");
    Shown {
        console,
        server,
        client,
    }
}

#[test]
fn what_a_server_that_is_down_would_have_to_tell_is_refused_at_once() {
    let mut shown = with_a_picture(&["--writable"]);
    let (switch, _) = shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Switch");
    shown.page("/db/nb/network");
    let missing = "01234567-89ab-4cde-8f01-23456789abcd";
    let ask = |path: &str| {
        let begin = Instant::now();
        let answer = shown.console.get(path).expect("an answer");
        (answer, begin.elapsed())
    };
    // A moment that does not exist is one thing, a server that cannot tell it another.
    for path in ["/db/net/table/Switch?at=nonsense", "/db/nb?at=nonsense"] {
        assert_eq!(ask(path).0.status, 404, "{path}");
    }
    let form = shown.page("/db/net/query");
    let token = between(&form, "name=\"form_token\" value=\"", "\"").to_owned();
    shown.server.kill();
    for name in ["net", "nb"] {
        let path = format!("/db/{name}/tables");
        let is_told = |answer: &Answer| answer.body.contains("Not current: ");
        shown.console.get_until(&path, is_told).expect("the news");
    }
    // Pages that wait for an answer do so for five seconds, or for twenty.
    let at_once = Duration::from_secs(4);
    for path in [
        "/db/net/table/Switch?at=HEAD",
        "/db/net/table/Switch.csv?at=HEAD",
        "/db/net/table/Unused",
        "/db/net/table/Unused/values/name",
        &format!("/db/net/table/Unused/row/{missing}"),
        "/db/net/changes",
        "/db/net/changes?from=HEAD~1",
        "/db/nb?at=HEAD",
        "/db/nb?before=HEAD",
    ] {
        let (answer, took) = ask(path);
        assert_eq!(answer.status, 503, "{path}: {}", answer.body);
        let words = answer.body.to_lowercase();
        assert!(words.contains("not current: "), "{path}: {words}");
        assert!(took < at_once, "{path} took {took:?}");
    }
    for (path, status) in [
        ("/db/other/table/Switch?at=HEAD", 404),
        ("/db/net/table/Nothing?at=HEAD", 404),
        (&format!("/db/net/table/Switch/row/{missing}"), 404),
        // The console shows the rows that it has, and says that they are old.
        (&format!("/db/net/table/Switch/row/{switch}"), 200),
        ("/db/net/table/Switch", 200),
        ("/db/net/servers", 200),
    ] {
        let (answer, took) = ask(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(took < at_once, "{path} took {took:?}");
    }
    for (path, rest) in [
        ("/db/net/query", "operations=%7B%22op%22:%22comment%22%7D"),
        ("/db/net/servers/act", "do=backup"),
        ("/db/net/servers/act", "do=compact"),
    ] {
        let begin = Instant::now();
        let body = format!("form_token={token}&{rest}");
        let answer = shown.console.ask("POST", path, &[LOCAL], &body);
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 503, "{rest}: {}", answer.body);
        assert!(answer.body.contains("Not current: "), "{}", answer.body);
        assert!(begin.elapsed() < at_once, "{rest}");
    }
}

#[test]
fn pages_beyond_the_end_lead_back() {
    let mut shown = Shown::start(&[]);
    let names: Vec<String> = (0..60).map(|n| format!("p{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    shown.add_switch("sw0", &names);
    for page in ["99", "18446744073709551615"] {
        let page = shown.page(&format!("/db/net/table/Port?page={page}"));
        let link = between(&page, "<a rel=\"prev\" href=\"", "\"");
        assert_eq!(link, "?page=2");
        assert!(!page.contains("rel=\"next\""), "{page}");
    }
}

#[test]
fn a_wrong_moment_leaves_the_form() {
    let shown = Shown::start(&[]);
    shown.page("/db/net/table/Port");
    let answer = shown.console.get("/db/net/table/Port?at=yesterdayish");
    let body = answer.expect("an answer").body;
    assert!(
        body.contains("name=\"at\" value=\"yesterdayish\""),
        "{body}"
    );
    assert!(body.contains("id=\"trouble\""), "{body}");
    assert!(!body.contains("&#34;error&#34;"), "{body}");
}

#[test]
fn references_in_maps_lead_to_their_rows() {
    let mut of_maps = schema();
    of_maps["tables"]["Switch"]["columns"]["queues"] = json!({"type": {"key": "integer",
        "value": {"type": "uuid", "refTable": "Port"}, "min": 0, "max": "unlimited"}});
    let setup = Setup {
        databases: vec![of_maps],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let client = server.connect().expect("a connection");
    let net = format!("net=unix:{}", server.socket().display());
    let console = Console::start(&[net]).expect("a console");
    let mut shown = Shown {
        console,
        server,
        client,
    };
    let (_, ports) = shown.add_switch("sw0", &["p0"]);
    let queues = json!(["map", [[7, ["uuid", ports[0]]]]]);
    let row = json!({"op": "update", "table": "Switch", "where": [], "row": {"queues": queues}});
    shown.transact(&[row]);
    let path = format!("/db/net/table/Port/row/{}", ports[0]);
    shown.page("/db/net/table/Port");
    let page = shown.page(&path);
    let row = page.split("<tr>").find(|row| row.contains("Switch.queues"));
    let link = between(row.expect("a link"), "href=\"", "\"").replace("&#38;", "&");
    let page = shown.page(&link);
    assert!(page.contains("<b id=\"selected\">1</b>"), "{page}");
}

#[test]
fn a_login_leads_to_the_page_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("token");
    fs::write(&file, "a token of the tests").expect("a file");
    let shown = Shown::start(&[&format!("--token-file={}", file.display())]);
    let visit = [LOCAL, ("Sec-Fetch-Mode", "navigate")];
    let path = "/db/net/table/Port?sort=name";
    let answer = shown
        .console
        .ask("GET", path, &visit, "")
        .expect("an answer");
    let login = between(&answer.head, "location: ", "\r\n");
    assert_eq!(login, "/login?to=%2Fdb%2Fnet%2Ftable%2FPort%3Fsort%3Dname");
    let page = shown.console.ask("GET", login, &visit, "").expect("a page");
    let to = between(&page.body, "name=\"to\" value=\"", "\"");
    assert_eq!(to, path);
    let log_in = |to: &str| {
        let body = format!("token=a+token+of+the+tests&to={to}");
        let answer = shown.console.ask("POST", "/login", &[LOCAL], &body);
        let head = answer.expect("an answer").head;
        between(&head, "location: ", "\r\n").to_owned()
    };
    assert_eq!(log_in("%2Fdb%2Fnet%3Fa%3Db"), "/db/net?a=b");
    assert_eq!(log_in("%2F%2Fevil.example"), "/");
    let bearer = ("Authorization", "bearer a token of the tests");
    let answer = shown.console.ask("GET", "/", &[LOCAL, bearer], "");
    assert_eq!(answer.expect("a page").status, 200);
}
