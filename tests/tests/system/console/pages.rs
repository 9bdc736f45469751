//! The contents of pages, compared with those of the server.

use std::process::Command;

use corvid_tests::console::Console;
use corvid_tests::server::{Implementation, Server, Setup};
use corvid_tests::{binary, one_file, peer};
use serde_json::{Value, json};

use super::{HOSTILE, Shown, between, schema, text_of};

/// The number of rows that the server has.
fn rows(shown: &mut Shown, table: &str) -> usize {
    let select = json!({"op": "select", "table": table, "where": [], "columns": ["_uuid"]});
    let results = shown.transact(&[select]);
    results[0]["rows"].as_array().expect("rows").len()
}

/// The number of rows on the page of tables.
fn shown_rows(page: &str, table: &str) -> String {
    let line = between(page, &format!("id=\"table-{table}\""), "</tr>");
    text_of(between(line, "count\">", "</td>"))
}

#[test]
fn the_first_page_and_the_tables_have_the_numbers_of_the_server() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0", "p1", "p2"]);
    let counted = [rows(&mut shown, "Switch"), rows(&mut shown, "Port")];
    let page = shown.page("/db/net");
    // Nobody has looked at a table: the numbers are those of the server's status.
    assert_eq!(shown_rows(&page, "Switch"), counted[0].to_string());
    assert_eq!(shown_rows(&page, "Port"), counted[1].to_string());
    assert!(
        between(&page, "Empty tables", "</main>").contains("Unused"),
        "{page}"
    );
    let first = text_of(between(&shown.page("/"), "id=\"db-net\"", "</tr>"));
    assert!(first.contains("net Net 1.2.3 standalone unix:"), "{first}");
    assert!(
        first.contains(" 3 4 "),
        "three tables with four rows: {first}"
    );
}

#[test]
fn a_table_is_filtered_sorted_and_paged() {
    let mut shown = Shown::start(&[]);
    let names: Vec<String> = (0..60).map(|n| format!("p{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    shown.add_switch("sw0", &names);
    let of = |page: &str| -> Vec<String> {
        let cells = page.split("<td data-label=\"name\">").skip(1);
        cells
            .map(|cell| text_of(cell.split("</td>").next().unwrap()))
            .collect()
    };
    let page = shown.page("/db/net/table/Port");
    assert_eq!(of(&page), names[..50], "by name");
    assert!(text_of(&page).contains("Rows 1 to 50 of 60"), "{page}");
    assert_eq!(of(&shown.page("/db/net/table/Port?page=2")), names[50..]);
    let page = shown.page("/db/net/table/Port?sort=-tag&rows=25");
    assert_eq!(of(&page).first().map(String::as_str), Some("p59"));
    assert_eq!(of(&page).len(), 25);
    let page = shown.page("/db/net/table/Port?where=name+~+%22%5Ep1%22+and+tag+%3E+17");
    assert_eq!(of(&page), ["p18", "p19"]);
    assert!(
        text_of(&page).contains("of 2 , selected from 60"),
        "{}",
        text_of(&page)
    );
    let page = shown.page("/db/net/table/Port?columns=tag");
    assert!(!page.contains("data-label=\"name\"") && page.contains("data-label=\"tag\""));
    // A fault says where, and the rows are there all the same.
    let wrong = shown
        .console
        .get("/db/net/table/Port?where=colour+%3D%3D+red")
        .unwrap();
    assert_eq!(wrong.status, 400);
    assert!(
        text_of(&wrong.body).contains("Port has no column \"colour\""),
        "{wrong:?}"
    );
    assert_eq!(of(&wrong.body).len(), 50);
    assert_eq!(
        shown.console.get("/db/net/table/Nothing").unwrap().status,
        404
    );
    assert_eq!(shown.console.get("/db/nothing").unwrap().status, 404);
}

#[test]
fn files_have_all_rows_that_the_filter_selects() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["b,\"1\"", "=a", "c"]);
    let csv = shown.page("/db/net/table/Port.csv?columns=name,tag");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "_uuid,name,tag");
    let rest: Vec<&str> = lines[1..].iter().map(|line| &line[37..]).collect();
    assert_eq!(rest, ["\"'=a\",1", "\"b,\"\"1\"\"\",0", "c,2"]);
    let text = shown.page("/db/net/table/Port.json?where=tag+%3E+0");
    let rows: Value = serde_json::from_str(&text).expect("JSON");
    let names: Vec<&Value> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, [&json!("=a"), &json!("c")]);
    assert_eq!(rows[0]["up"], json!(["set", []]));
}

#[test]
fn a_row_has_its_columns_its_referrers_and_a_command_that_makes_it() {
    let mut shown = Shown::start(&[]);
    let (switch, ports) = shown.add_switch("o'hara", &["p0"]);
    let page = shown.page(&format!("/db/net/table/Port/row/{}", ports[0]));
    let referrers = between(&page, "id=\"referrers\"", "</table>");
    assert!(
        referrers.contains(&format!("/db/net/table/Switch/row/{switch}\"")),
        "{referrers}"
    );
    assert!(
        text_of(referrers).contains("Switch.ports o'hara"),
        "{}",
        text_of(referrers)
    );
    let page = shown.page(&format!("/db/net/table/Switch/row/{switch}"));
    // The row that it refers to is named, because its table is small.
    assert!(
        page.contains(&format!("/db/net/table/Port/row/{}", ports[0])),
        "{page}"
    );
    let json = text_of(between(&page, "id=\"as-json\">", "</pre>"));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["name"], "o'hara");
    assert_eq!(json["ports"], json!(["uuid", ports[0]]));

    let page = shown.page(&format!("/db/net/table/Port/row/{}", ports[0]));
    let command = between(&page, "id=\"as-command\">", "</pre>")
        .replace("&#39;", "'")
        .replace("&#34;", "\"");
    // Nothing would refer to a new port, so the same is tried with a switch.
    assert!(command.ends_with("name=p0"), "{command}");
    let page = shown.page(&format!("/db/net/table/Switch/row/{switch}"));
    let command = between(&page, "id=\"as-command\">", "</pre>");
    let command = command
        .replace("&#39;", "'")
        .replace("&#34;", "\"")
        .replace("hara", "brien");
    let folder = binary::bin("corvid");
    let path = format!(
        "{}:{}",
        folder.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let made = Command::new("sh")
        .args(["-c", &command])
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{command}\n{made:?}");
    assert_eq!(rows(&mut shown, "Switch"), 2);
    let unknown = "/db/net/table/Port/row/00000000-0000-4000-8000-000000000000";
    assert_eq!(shown.console.get(unknown).unwrap().status, 404);
    assert_eq!(
        shown
            .console
            .get("/db/net/table/Port/row/5")
            .unwrap()
            .status,
        404
    );
}

#[test]
fn hostile_names_are_text_on_every_page() {
    let mut shown = Shown::start(&[]);
    let (switch, _) = shown.add_switch(HOSTILE, &[HOSTILE]);
    let labels = json!(["map", [[HOSTILE, HOSTILE]]]);
    let row = json!({"op": "update", "table": "Switch", "where": [], "row": {"labels": labels}});
    shown.transact(&[row]);
    for path in [
        "/db/net".to_owned(),
        "/db/net/table/Switch".to_owned(),
        format!("/db/net/table/Switch/row/{switch}"),
        "/db/net/table/Port".to_owned(),
        "/db/net/changes".to_owned(),
        "/db/net/network".to_owned(),
        "/db/net/servers".to_owned(),
    ] {
        let page = shown.page(&path);
        assert!(
            !page.contains("<script>document") && !page.contains("<img"),
            "{path}: {page}"
        );
    }
    let page = shown.page("/db/net/table/Switch");
    assert!(
        text_of(&page).contains("<script>document.title='harmed'</script>"),
        "{page}"
    );
    let echoed = shown
        .console
        .get("/db/net/table/Switch?where=%3Cscript%3E&sort=%22%3E%3Cimg%3E")
        .unwrap();
    assert!(
        !echoed.body.contains("<script>\"") && !echoed.body.contains("<img"),
        "{}",
        echoed.body
    );
}

#[test]
fn a_schema_without_a_picture_of_its_own_is_drawn_by_its_references() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    let page = shown.page("/db/net/network");
    let picture = between(&page, "<svg", "</svg>");
    for name in ["Switch", "Port", "Unused"] {
        assert!(
            picture.contains(&format!("/db/net/table/{name}\"")),
            "{picture}"
        );
    }
}

#[test]
fn a_logical_network_is_drawn_with_its_switches_and_ports() {
    let Ok(text) = std::fs::read_to_string("/usr/share/ovn/ovn-nb.ovsschema") else {
        return;
    };
    let setup = Setup {
        databases: vec![serde_json::from_str(&text).expect("a schema")],
        ..Setup::default()
    };
    let server = Server::start(Implementation::Corvid, &setup).expect("a server");
    let mut client = server.connect().expect("a connection");
    let port = json!({"op": "insert", "table": "Logical_Switch_Port", "uuid-name": "p",
        "row": {"name": HOSTILE, "addresses": "0a:00:00:00:00:01 10.0.0.1"}});
    let switch = json!({"op": "insert", "table": "Logical_Switch",
        "row": {"name": "web-tier", "ports": ["named-uuid", "p"]}});
    let reply = client
        .call("transact", &json!(["OVN_Northbound", port, switch]))
        .expect("a reply");
    let uuid = reply["result"][1]["uuid"][1]
        .as_str()
        .expect("a UUID")
        .to_owned();
    let word = format!("nb=unix:{}", server.socket().display());
    let console = Console::start(&[word]).expect("a console");
    let page = console.get_until("/db/nb/network", |answer| answer.status == 200);
    let page = page.expect("a page").body;
    let picture = between(&page, "<svg", "</svg>");
    assert!(picture.contains("web-tier"), "{picture}");
    assert!(
        picture.contains(&format!("/db/nb/table/Logical_Switch/row/{uuid}")),
        "{picture}"
    );
    assert!(
        !page.contains("<script>document") && !picture.contains("<img"),
        "{page}"
    );
    let found = console
        .get("/db/nb/network?find=web-tier")
        .expect("a page")
        .body;
    assert!(
        text_of(&found).contains("Found: switch web-tier"),
        "{}",
        text_of(&found)
    );
    let nothing = console
        .get("/db/nb/network?find=nothing-like-it")
        .expect("a page")
        .body;
    assert!(
        text_of(&nothing).contains("Nothing is named"),
        "{}",
        text_of(&nothing)
    );
}

#[test]
fn the_past_is_shown_beside_the_present() {
    let mut shown = Shown::start(&[]);
    let (switch, _) = shown.add_switch("before", &["p0"]);
    let row = json!({"op": "update", "table": "Switch", "where": [], "row": {"name": "after"}});
    shown.transact(&[
        row,
        json!({"op": "comment", "comment": "renamed by a test"}),
    ]);
    let page = shown.page("/db/net/table/Switch?at=HEAD~1");
    assert!(
        text_of(&page).contains("as it was at HEAD~1"),
        "{}",
        text_of(&page)
    );
    assert!(
        page.contains(">before<") && !page.contains(">after<"),
        "{page}"
    );
    assert!(!page.contains("data-events"), "the past does not change");
    let page = shown.page(&format!("/db/net/changes?table=Switch&row={switch}"));
    let history = text_of(between(&page, "<h2>History</h2>", "</main>"));
    assert!(history.contains("renamed by a test"), "{history}");
    assert!(history.contains("name before after"), "{history}");
    let page = shown.page("/db/net/changes?from=HEAD~1");
    let differences = text_of(between(&page, "<h2>History</h2>", "</main>"));
    assert!(
        differences.contains("HEAD~1 to HEAD differences"),
        "{differences}"
    );
    assert!(differences.contains("name before after"), "{differences}");
    let unknown = shown
        .console
        .get("/db/net/table/Switch?at=yesterdayish")
        .unwrap();
    assert_eq!(unknown.status, 404, "{unknown:?}");
}

#[test]
fn the_servers_page_has_the_sessions_of_the_server() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &[]);
    // The test's own connection and the console's are there. A status is shown for two seconds, so
    // the first one may be from before the transaction.
    let page = shown.console.get_until("/db/net/servers", |answer| {
        let sessions = answer.body.split_once("<h2>Sessions</h2>");
        sessions.is_some_and(|(_, rest)| between(rest, "", "</section>").contains("transact"))
    });
    let text = text_of(&page.expect("the session").body);
    assert!(text.contains("Settings"), "{text}");
    assert!(text.contains(&shown.server.pid().to_string()), "{text}");
}

#[test]
fn a_server_of_the_reference_is_shown_too() {
    if Implementation::Reference.server_binary().is_err() {
        return;
    }
    let mut shown = Shown::of(Implementation::Reference, &[]);
    shown.add_switch("sw0", &["p0", "p1"]);
    let page = shown.page("/db/net");
    assert!(
        page.contains("?count=1"),
        "the server tells no numbers of rows: {page}"
    );
    let page = shown.page("/db/net?count=1");
    assert_eq!(shown_rows(&page, "Port"), "2");
    let page = shown.page("/db/net/table/Port");
    assert!(text_of(&page).contains("Rows 1 to 2 of 2"), "{page}");
}

#[test]
fn a_server_that_goes_leaves_its_rows_and_a_note() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Port");
    shown.server.restart().expect("it starts again");
    let page = shown.console.get_until("/db/net/table/Port", |answer| {
        answer.body.contains("p0") && !answer.body.contains("Not current")
    });
    page.expect("current again");
}

#[test]
fn a_server_is_read_by_tls_and_messages_go_to_a_file() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=me".split(' '))
        .args(["-keyout", &at("key"), "-out", &at("certificate")])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        peer::say_skipped("openssl is not installed: the console by TLS");
        return;
    }
    let identity = [
        format!("--private-key={}", at("key")),
        format!("--certificate={}", at("certificate")),
        format!("--ca-cert={}", at("certificate")),
    ];
    let mut options = identity.each_ref().map(String::as_str).to_vec();
    options.push("--remote=pssl:0:127.0.0.1");
    let (server, _, _folder) = one_file::start(&schema(), &options).expect("a server");
    let port = server.port().expect("a port");
    let log = at("console.log");
    let mut arguments = identity.to_vec();
    arguments.push(format!("net=ssl:127.0.0.1:{port}"));
    arguments.extend([format!("--log-file={log}"), "-vfile:dbg".to_owned()]);
    let console = Console::start(&arguments).expect("a console");
    let page = console.get_until("/db/net", |answer| {
        answer.status == 200 && !answer.body.contains("Not current: ")
    });
    assert!(page.expect("the tables").body.contains("Switch"));
    let logged = std::fs::read_to_string(log).expect("a log");
    assert!(
        logged.contains(&format!("|DBG|ssl:127.0.0.1:{port}: send request")),
        "{logged}"
    );
}
