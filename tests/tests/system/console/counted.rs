//! Requests of clients that come and go between two samples are counted.

use serde_json::json;

use super::Shown;
use super::servers::{part_until, status_of};

#[test]
fn requests_of_clients_that_have_gone_are_counted() {
    let shown = Shown::start(&[]);
    shown.page("/db/net");
    let told = || status_of(&shown.server.control_socket());
    let requests = |status: &serde_json::Value| status["server"]["requests"].as_u64();
    let before = told();
    for _ in 0..40 {
        let mut client = shown.server.connect().expect("a connection");
        for _ in 0..5 {
            client.call("echo", &json!([])).expect("a reply");
        }
    }
    let after = told();
    let (before, count) = (requests(&before), requests(&after));
    let grown = count.expect("a number") - before.expect("a number");
    assert!(grown >= 200, "{grown}");
    // The page has the rate of all of them, although no session of theirs is left in a sample.
    let page = part_until(&shown.console, "net", |page| {
        let now = page.split("Requests/s</abbr></span> <b>").nth(1);
        let now = now.and_then(|rest| rest.split("</b>").next()?.parse::<f64>().ok());
        let is_high = now.is_some_and(|now| now > 10.0);
        if !is_high {
            let mut client = shown.server.connect().expect("a connection");
            for _ in 0..20 {
                client.call("echo", &json!([])).expect("a reply");
            }
        }
        is_high
    });
    assert!(page.contains("Requests/s"), "{page}");
}
