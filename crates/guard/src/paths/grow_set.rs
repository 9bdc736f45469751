//! `grow-set`: a session that monitors the table receives the message that inserts one element into
//! a set of 30,000, and sends the update and the reply. The record and the history are included,
//! with the commits that the history drops. No step may read the rest of the set. The count
//! confirms this: for a set of a tenth of the size it is only 2 % lower.

use corvid_service::frontend::session_id;

use super::Path;
use crate::server::Server;

pub(super) const PATH: Path = Path {
    name: "grow-set",
    about: "an element for a set of 30,000, from its message to record, update and reply",
    times: 200,
    prepare,
};

const ELEMENTS: usize = 30_000;
/// The maximum number of elements in one message of the preparation. The shard reads messages of
/// this size itself; another thread would read longer ones.
const FILLED_AT_ONCE: usize = 5000;
/// The number of commits of the preparation, which is more than the history keeps.
const WARMING: usize = 110;

fn prepare(times: usize) -> Box<dyn FnMut()> {
    let session = session_id(0, 0);
    let mut server = Server::new();
    server.connect(session);
    let insertion = r#"{"op":"insert","table":"Item","row":{"name":"it"}}"#;
    assert_eq!(server.handle(session, transact(insertion)), 1, "a reply");
    for first in (0..ELEMENTS).step_by(FILLED_AT_ONCE) {
        let numbers = first..ELEMENTS.min(first + FILLED_AT_ONCE);
        let message = insert(numbers.map(|number| 2 * number));
        assert_eq!(server.handle(session, message), 1, "a reply");
    }
    // This client may reconnect and fetch missed changes, so the server keeps a history.
    let monitor = r#"{"method":"monitor_cond_since","params":["Bench",1,{"Item":{}},"00000000-0000-0000-0000-000000000000"],"id":0}"#;
    assert_eq!(server.handle(session, monitor.into()), 1, "a reply");
    // The elements are spread over the set.
    let mut messages =
        (0..WARMING + times).map(|number| insert([2 * (number * 619 % ELEMENTS) + 1]));
    for message in messages.by_ref().take(WARMING) {
        server.handle(session, message);
    }
    let messages: Vec<_> = messages.collect();
    let mut messages = messages.into_iter();
    Box::new(move || {
        let message = messages.next().expect("one each time");
        assert_eq!(server.handle(session, message), 2, "an update and a reply");
    })
}

fn address(number: usize) -> String {
    format!(
        r#""0a:00:00:{:02x}:{:02x}:{:02x}""#,
        number >> 16,
        number >> 8 & 0xff,
        number & 0xff
    )
}

/// Returns a message that inserts these addresses into the set.
fn insert(numbers: impl IntoIterator<Item = usize>) -> Vec<u8> {
    let addresses: Vec<String> = numbers.into_iter().map(address).collect();
    let addresses = addresses.join(",");
    transact(&format!(
        r#"{{"op":"mutate","table":"Item","where":[["name","==","it"]],"mutations":[["addresses","insert",["set",[{addresses}]]]]}}"#
    ))
}

fn transact(operation: &str) -> Vec<u8> {
    format!(r#"{{"method":"transact","params":["Bench",{operation}],"id":7}}"#).into_bytes()
}
