//! Help for viewers who write filters and operations: completion, values by frequency, the form.

use serde_json::{Value, json};

use super::browser::{address, browser};
use super::{HOSTILE, Shown, between, text_of};

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// The candidates at the end of a text, separated by blanks.
fn candidates(shown: &Shown, place: &str, text: &str) -> String {
    let page = shown.page(&format!("/db/net/{place}/complete?text={}", encoded(text)));
    let found: Value = serde_json::from_str(&page).expect("JSON");
    let words = found["candidates"].as_array().expect("candidates").iter();
    let words: Vec<&str> = words.filter_map(|one| one[0].as_str()).collect();
    words.join(" ")
}

#[test]
fn filters_and_operations_are_completed() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw one", &["p0", "p0", "p1"]);
    shown.page("/db/net/table/Port");
    shown.page("/db/net/table/Switch");
    let in_ports = |text: &str| candidates(&shown, "table/Port", text);
    assert_eq!(in_ports("n"), "name not");
    assert_eq!(in_ports("name "), "== != ~ !~ in");
    assert_eq!(in_ports("name == "), "p0 p1", "the most frequent first");
    assert_eq!(in_ports("up == "), "true false");
    assert_eq!(in_ports("tag <"), "0 1 2");
    assert_eq!(in_ports("up == true a"), "and");
    let in_switches = |text: &str| candidates(&shown, "table/Switch", text);
    assert_eq!(in_switches("name == \"sw"), "\"sw one\"");
    let in_query = |text: &str| candidates(&shown, "query", text);
    assert_eq!(in_query("[{\"op\": \"sel"), "select");
    assert_eq!(in_query("[{\"op\": \"select\", \"table\": \"Sw"), "Switch");
    let missing = shown.console.get("/db/net/table/Nothing/complete?text=a");
    assert_eq!(missing.expect("an answer").status, 404);
}

#[test]
fn values_are_counted_and_lead_to_their_rows() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["common", "common", "common", "rare", HOSTILE]);
    shown.page("/db/net/table/Port");
    let page = shown.page("/db/net/table/Port/values/name");
    let text = text_of(&page);
    assert!(text.contains("3 different values in 5 rows"), "{text}");
    assert!(text.contains("common 3 60.0 %"), "{text}");
    assert!(text.contains("rare 1 20.0 %"), "{text}");
    assert!(!page.contains("<script>document"), "{page}");
    let text = text_of(&shown.page("/db/net/table/Port/values/up"));
    assert!(text.contains("5 rows have none"), "{text}");
    // Each link selects as many rows as the page says, that of the hostile name too.
    let lines = between(&page, "<tbody>", "</tbody>");
    let mut counts = Vec::new();
    for line in lines.split("<a href=\"").skip(1) {
        let href = line.split('"').next().unwrap_or_default();
        let table = shown.page(&href.replace("&#38;", "&"));
        counts.push(between(&table, "id=\"selected\">", "<").to_owned());
    }
    assert_eq!(counts, ["3", "1", "1"]);
    let missing = shown.console.get("/db/net/table/Port/values/nothing");
    assert_eq!(missing.expect("an answer").status, 404);
}

#[test]
fn names_are_in_their_natural_order() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["net10", "net2", "net1", "net20a", "net20"]);
    let text = text_of(&shown.page("/db/net/table/Port"));
    let mut rest = text.as_str();
    for name in ["net1 ", "net2 ", "net10 ", "net20 ", "net20a "] {
        let (_, after) = rest
            .split_once(name)
            .unwrap_or_else(|| panic!("{name}: {text}"));
        rest = after;
    }
}

#[test]
fn a_form_writes_operations() {
    let shown = Shown::start(&["--writable"]);
    let fields = shown.page("/db/net/query?op=insert&table=Port");
    for name in ["c.name", "c.up", "c.tag"] {
        assert!(fields.contains(&format!("name=\"{name}\"")), "{name}");
    }
    let up = between(&fields, "<select name=\"c.up\">", "</select>");
    assert_eq!(text_of(up), "true false");
    let filled = shown.page("/db/net/query?op=insert&table=Switch&c.name=two+words&c.labels=a%3Db");
    let written = text_of(between(&filled, "id=\"operations\"", "</textarea>"));
    let (_, written) = written.split_once('>').expect("the box");
    let written: Value = serde_json::from_str(written.trim()).expect("JSON");
    let wanted = json!([{"op": "insert", "table": "Switch",
        "row": {"name": "two words", "labels": ["map", [["a", "b"]]]}}]);
    assert_eq!(written, wanted);
    let token = between(&filled, "name=\"form_token\" value=\"", "\"");
    let body = format!(
        "form_token={token}&operations={}",
        encoded(&written.to_string())
    );
    let headers = [("Host", "localhost")];
    let done = shown
        .console
        .ask("POST", "/db/net/query", &headers, &body)
        .expect("an answer");
    assert_eq!(done.status, 200, "{done:?}");
    let wrong = shown
        .console
        .get("/db/net/query?op=update&table=Port&c.tag=many")
        .expect("an answer");
    assert_eq!(wrong.status, 400);
    assert!(text_of(&wrong.body).contains("tag: "), "{wrong:?}");
}

#[test]
fn a_filter_is_written_by_keys_alone() {
    let Some(browser) = browser() else {
        return;
    };
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["web", "web", "db"]);
    shown.page("/db/net/table/Port");
    browser
        .open(&address(&shown, "/db/net/table/Port"))
        .unwrap();
    let options = |count: usize| {
        format!(
            "return document.querySelectorAll('#where-candidates:not([hidden]) li').length == {count}"
        )
    };
    let value = |text: &str| {
        let text = json!(text);
        format!("return document.getElementById('where').value == {text}")
    };
    const TAB: &str = "\u{e004}";
    const DOWN: &str = "\u{e015}";
    const ENTER: &str = "\u{e007}";
    const ESCAPE: &str = "\u{e00c}";
    browser.press(&["f", "n", "a"]).unwrap();
    browser.wait_for(&options(1)).unwrap();
    browser.press(&[TAB]).unwrap();
    browser.wait_for(&value("name ")).unwrap();
    browser.wait_for(&options(5)).unwrap();
    browser.press(&[DOWN]).unwrap();
    let chosen = "const field = document.getElementById('where');
        const item = document.getElementById(field.getAttribute('aria-activedescendant'));
        return field.getAttribute('aria-expanded') == 'true' && item.textContent.startsWith('==')";
    assert_eq!(browser.run(chosen).unwrap(), json!(true));
    browser.press(&[ENTER]).unwrap();
    browser.wait_for(&value("name == ")).unwrap();
    browser.wait_for(&options(2)).unwrap();
    browser.press(&[DOWN, ENTER]).unwrap();
    browser.wait_for(&value("name == web ")).unwrap();
    browser.wait_for(&options(2)).unwrap();
    browser.press(&[ESCAPE]).unwrap();
    browser.wait_for(&options(0)).unwrap();
    browser.press(&[ENTER]).unwrap();
    browser
        .wait_for("return document.getElementById('selected').textContent == '2'")
        .unwrap();
    // A Tab without a choice leaves the field.
    browser
        .wait_for("return document.readyState == 'complete'")
        .unwrap();
    browser.press(&["f", TAB]).unwrap();
    let left = "return document.activeElement.id != 'where'";
    assert_eq!(browser.run(left).unwrap(), json!(true));
    assert_eq!(browser.errors().unwrap(), [""; 0]);
}
