//! Pages in a browser. On a machine without one, the tests are skipped and say so.

use std::io::Write;
use std::time::Duration;

use corvid_tests::browser::Browser;
use serde_json::json;

use super::{HOSTILE, Shown};

/// A browser, if this machine has one.
pub(super) fn browser() -> Option<Browser> {
    if !Browser::is_installed() {
        // Past the test runner, which captures the output of tests.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: pages in a browser: chromium is not installed"
        );
        return None;
    }
    Some(Browser::start().expect("a browser"))
}

pub(super) fn address(shown: &Shown, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", shown.console.port())
}

#[test]
fn a_change_is_seen_without_reloading() {
    let Some(browser) = browser() else {
        return;
    };
    let mut shown = Shown::start(&[]);
    let (_, ports) = shown.add_switch("sw0", &["p0", "p1"]);
    shown.page("/db/net/table/Port");
    browser
        .open(&address(&shown, "/db/net/table/Port"))
        .unwrap();
    browser
        .wait_for("return document.querySelector('#live').textContent == 'live'")
        .unwrap();
    browser.run("window.isTheSame = true").unwrap();
    let cell = |uuid: &str| {
        format!("document.querySelector('tr[data-uuid=\"{uuid}\"] td[data-label=tag]')")
    };
    let mut fastest = Duration::MAX;
    for tag in 500..505 {
        let row = json!({"op": "update", "table": "Port", "where": [["name", "==", "p1"]], "row": {"tag": tag}});
        shown.transact(&[row]);
        let script = format!("return {}.textContent == '{tag}'", cell(&ports[1]));
        fastest = fastest.min(browser.wait_for(&script).unwrap());
    }
    assert!(fastest < Duration::from_millis(300), "{fastest:?}");
    let glows = format!("return {}.classList.contains('glow')", cell(&ports[1]));
    assert_eq!(browser.run(&glows).unwrap(), json!(true));
    shown.add_switch("sw1", &["p2"]);
    browser
        .wait_for("return document.querySelectorAll('#rows tbody tr').length == 3")
        .unwrap();
    browser
        .wait_for("return document.querySelectorAll('#rows tr.added').length == 1")
        .unwrap();
    assert_eq!(
        browser.run("return window.isTheSame").unwrap(),
        json!(true),
        "reloaded"
    );
    // The page of a row is live too.
    browser
        .open(&address(
            &shown,
            &format!("/db/net/table/Port/row/{}", ports[0]),
        ))
        .unwrap();
    browser
        .wait_for("return document.querySelector('#live').textContent == 'live'")
        .unwrap();
    let row = json!({"op": "update", "table": "Port", "where": [], "row": {"up": true}});
    shown.transact(&[row]);
    browser
        .wait_for("return document.querySelector('td[data-label=up]').textContent == 'true'")
        .unwrap();
    assert_eq!(browser.errors().unwrap(), [""; 0]);
}

#[test]
fn hostile_names_show_as_text() {
    let Some(browser) = browser() else {
        return;
    };
    let mut shown = Shown::start(&[]);
    let (switch, ports) = shown.add_switch(HOSTILE, &["p0"]);
    shown.page("/db/net/table/Port");
    browser
        .open(&address(&shown, "/db/net/table/Port"))
        .unwrap();
    browser
        .wait_for("return document.querySelector('#live').textContent == 'live'")
        .unwrap();
    // By an event too, which a script puts into the page.
    let row = json!({"op": "update", "table": "Port", "where": [], "row": {"name": HOSTILE}});
    shown.transact(&[row]);
    let cell = "document.querySelector('td[data-label=name]')";
    browser
        .wait_for(&format!("return {cell}.textContent.startsWith('<script>')"))
        .unwrap();
    for path in [
        "/db/net/table/Switch".to_owned(),
        format!("/db/net/table/Switch/row/{switch}"),
        format!("/db/net/table/Port/row/{}", ports[0]),
    ] {
        browser.open(&address(&shown, &path)).unwrap();
        let harm = "return document.title == 'harmed' || document.querySelectorAll('main img, main script').length";
        assert_eq!(browser.run(harm).unwrap(), json!(0), "{path}");
        let shows = format!(
            "return document.body.textContent.includes({})",
            json!(HOSTILE)
        );
        assert_eq!(browser.run(&shows).unwrap(), json!(true), "{path}");
    }
    assert_eq!(browser.errors().unwrap(), [""; 0]);
}

#[test]
fn pages_fit_a_screen_of_320_pixels() {
    let Some(browser) = browser() else {
        return;
    };
    let mut shown = Shown::start(&[]);
    let long = "a-name-without-blanks-".repeat(20);
    let (switch, _) = shown.add_switch(&long, &[&long, HOSTILE]);
    shown.page("/db/net/table/Port");
    browser.resize(320, 800).unwrap();
    for path in [
        "/".to_owned(),
        "/db/net".to_owned(),
        "/db/net/table/Port".to_owned(),
        format!("/db/net/table/Switch/row/{switch}"),
        "/db/net/changes".to_owned(),
        "/db/net/network".to_owned(),
        "/db/net/servers".to_owned(),
        "/db/net/query".to_owned(),
        "/nothing".to_owned(),
    ] {
        browser.open(&address(&shown, &path)).unwrap();
        let width = browser
            .run("return document.documentElement.scrollWidth")
            .unwrap();
        assert!(
            width.as_u64().is_some_and(|width| width <= 320),
            "{path}: {width}"
        );
    }
}

#[test]
fn the_palette_leads_to_a_table_by_keys_alone() {
    let Some(browser) = browser() else {
        return;
    };
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net");
    browser.open(&address(&shown, "/")).unwrap();
    browser.press(&["/"]).unwrap();
    browser
        .wait_for("return document.querySelector('dialog').open")
        .unwrap();
    browser.wait_for("return [...document.querySelectorAll('dialog a')].some(a => a.textContent.includes('Port'))").unwrap();
    browser.press(&["p", "o", "r", "t"]).unwrap();
    browser.press(&["\u{e007}"]).unwrap();
    browser
        .wait_for("return location.pathname == '/db/net/table/Port'")
        .unwrap();
    // `f` leads to the filter, whose keys are letters then.
    browser
        .wait_for("return document.readyState == 'complete'")
        .unwrap();
    browser.press(&["f"]).unwrap();
    browser.press(&["/"]).unwrap();
    assert_eq!(
        browser
            .run("return document.getElementById('where').value")
            .unwrap(),
        json!("/")
    );
}
