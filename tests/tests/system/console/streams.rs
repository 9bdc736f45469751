//! Streams of events tell the state of the connection, and end when a page has to be read anew.

use serde_json::{Value, json};

use super::live::Viewer;
use super::{Shown, schema};

/// The next state that a stream tells.
fn state(viewer: &mut Viewer) -> String {
    viewer.line("event: state");
    let line = viewer.line("data:");
    serde_json::from_str(&line["data:".len()..]).expect("a text")
}

/// The schema with a further column of ports.
fn later_schema() -> Value {
    let mut schema = schema();
    schema["version"] = json!("1.3.0");
    schema["tables"]["Port"]["columns"]["note"] = json!({"type": "string"});
    schema
}

#[test]
fn streams_end_when_the_schema_changes() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Port");
    let streams = [
        "/db/net/table/Port/events",
        "/db/net/events",
        "/db/net/network/events",
    ];
    let mut viewers = streams.map(|path| Viewer::at(&shown.console, path));
    let params = json!(["Net", later_schema()]);
    let reply = shown.client.call("convert", &params).expect("a reply");
    assert_eq!(reply["error"], Value::Null, "{reply}");
    // The conversion has closed this session, which does not want to know of conversions.
    shown.client = shown.server.connect().expect("a connection");
    viewers.iter_mut().for_each(Viewer::await_end);
    // A page that connects again gets the changes of the new schema.
    let page = shown.console.get_until("/db/net/table/Port", |answer| {
        answer.status == 200 && answer.body.contains("\"note\"")
    });
    page.expect("the new column");
    shown.page("/db/net/table/Port");
    let mut viewer = Viewer::of(&shown, "Port");
    let row = json!({"op": "update", "table": "Port", "where": [], "row": {"note": "later"}});
    shown.transact(&[row]);
    let event = viewer.event();
    assert!(event.to_string().contains("later"), "{event}");
}

#[test]
fn streams_tell_that_the_server_is_gone_and_end_when_it_is_back() {
    let mut shown = Shown::start(&[]);
    shown.add_switch("sw0", &["p0"]);
    shown.page("/db/net/table/Port");
    let mut viewer = Viewer::at(&shown.console, "/db/net/events");
    assert_eq!(state(&mut viewer), "");
    shown.server.kill();
    assert_ne!(state(&mut viewer), "");
    let mut late = Viewer::at(&shown.console, "/db/net/table/Port/events");
    assert_ne!(state(&mut late), "", "a stream begins with the state");
    shown.server.restart().expect("it starts again");
    while !state(&mut viewer).is_empty() {}
    viewer.await_end();
    while !state(&mut late).is_empty() {}
    late.await_end();
    shown.page("/db/net/table/Port");
    assert_eq!(state(&mut Viewer::of(&shown, "Port")), "");
}
