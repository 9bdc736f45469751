//! Pages in a browser. On a machine without one, the tests are skipped and say so.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use corvid_tests::browser::Browser;
use corvid_tests::console::Console;
use serde_json::json;

use super::load::{ROWS, large};
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

#[test]
fn a_number_of_rows_that_is_still_counted_becomes_exact() {
    let Some(browser) = browser() else {
        return;
    };
    let server = large();
    let word = format!("big=unix:{}", server.socket().display());
    let console = Console::start(&[word]).expect("a console");
    let arrived = format!("of <b id=\"selected\">{ROWS}</b>");
    let page = console.get_until("/db/big/table/Item", |answer| {
        answer.body.contains(&arrived)
    });
    page.expect("the rows");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Rows that change during a selection leave the number open.
        scope.spawn(|| {
            let mut client = server.connect().expect("a connection");
            let mut number = ROWS;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let name = format!("item-{:06}", number % ROWS);
                let update = json!(["Big", {"op": "update", "table": "Item",
                    "where": [["name", "==", name]], "row": {"number": number}}]);
                client.call("transact", &update).expect("a reply");
            }
        });
        let words = "return document.querySelector('#summary').textContent";
        // The order may be there, or its page asked again, before the browser is.
        let seen = (0..50).find_map(|least| {
            let path = format!("/db/big/table/Item?where=number+%3E+-{}", least + 1);
            let address = format!("http://127.0.0.1:{}{path}", console.port());
            browser.open(&address).unwrap();
            let text = browser.run(words).unwrap();
            text.as_str()
                .filter(|text| text.contains("at least"))
                .map(str::to_owned)
        });
        is_over.store(true, Ordering::Relaxed);
        let seen = seen.expect("a page that still counts");
        assert!(seen.contains(" (still counting)"), "{seen}");
    });
    browser.run("window.isTheSame = true").unwrap();
    let exact = format!(
        "const summary = document.querySelector('#summary').textContent;
         return summary.includes('of {ROWS}') && !/at least|counting/.test(summary)"
    );
    browser.wait_for(&exact).unwrap();
    assert_eq!(
        browser.run("return window.isTheSame").unwrap(),
        json!(true),
        "reloaded"
    );
    assert_eq!(browser.errors().unwrap(), [""; 0]);
}

#[test]
fn a_page_says_why_it_is_not_current() {
    let Some(browser) = browser() else {
        return;
    };
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Port");
    browser
        .open(&address(&shown, "/db/net/table/Port"))
        .unwrap();
    let live = "document.querySelector('#live')";
    let is_live = format!("return {live}.textContent == 'live' && !{live}.matches('.lost')");
    browser.wait_for(&is_live).unwrap();
    shown.server.kill();
    let script = format!(
        "return {live}.matches('.lost') && /^not current: ./.test({live}.textContent) && {live}.checkVisibility()"
    );
    browser.wait_for(&script).unwrap();
    let cells = "return document.querySelectorAll('#rows tbody tr').length";
    assert_eq!(browser.run(cells).unwrap(), json!(1), "the rows stay");
    shown.server.restart().expect("it starts again");
    browser.wait_for(&is_live).unwrap();
    // Without the console nobody tells why.
    let Shown { console, .. } = shown;
    drop(console);
    let is_lost = format!("return {live}.textContent == 'disconnected' && {live}.matches('.lost')");
    browser.wait_for(&is_lost).unwrap();
}

#[test]
fn keys_zoom_a_picture() {
    let Some(browser) = browser() else {
        return;
    };
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/network");
    browser.open(&address(&shown, "/db/net/network")).unwrap();
    browser
        .wait_for("return document.querySelector('#part svg') != null")
        .unwrap();
    let width = || {
        let script = "return document.querySelector('#part svg').getBoundingClientRect().width";
        browser.run(script).unwrap().as_f64().expect("a width")
    };
    let own = width();
    let is = |keys: &[&str], factor: f64| {
        for key in keys {
            browser.press(&[key]).unwrap();
        }
        let found = width() / own;
        assert!((found - factor).abs() < 0.01, "{keys:?}: {found}");
    };
    is(&["+"], 1.25);
    is(&["+"], 1.5625);
    is(&["-"], 1.25);
    is(&["0"], 1.0);
    // The largest picture is four times as wide.
    is(&["+"; 9], 4.0);
    // A key that is typed into a field is text.
    is(&["0", "f", "+"], 1.0);
    let field = "return document.querySelector('#where').value";
    assert_eq!(browser.run(field).unwrap(), json!("+"));
}
