//! `update1`: the whole server without sockets, files and threads. A session receives the message
//! that updates one row, and sends the reply. Ten sessions do this in turn, as in the workload with
//! the same name.

use corvid_service::frontend::session_id;

use super::Path;
use crate::server::Server;

pub(super) const PATH: Path = Path {
    name: "update1",
    about: "an update of one row of 1,000, from its message to the record and the reply",
    times: 200,
    prepare,
};

const ROWS: usize = 1000;
const SESSIONS: u64 = 10;

fn prepare(times: usize) -> Box<dyn FnMut()> {
    let mut server = Server::new();
    for session in 0..SESSIONS {
        server.connect(session_id(0, session));
    }
    let rows: Vec<String> = (0..ROWS).map(insertion).collect();
    let filling = format!(
        r#"{{"method":"transact","params":["Bench",{}],"id":0}}"#,
        rows.join(",")
    );
    assert_eq!(server.handle(session_id(0, 0), filling.into_bytes()), 1);
    let messages: Vec<_> = (0..times)
        .map(|number| (session_id(0, number as u64 % SESSIONS), update(number)))
        .collect();
    let mut messages = messages.into_iter();
    Box::new(move || {
        let (session, message) = messages.next().expect("one each time");
        assert_eq!(server.handle(session, message), 1, "a reply");
    })
}

fn insertion(number: usize) -> String {
    let (high, low) = (number / 256, number % 256);
    format!(
        r#"{{"op":"insert","table":"Item","row":{{"name":"item-{number:08}","number":{number},"up":true,"addresses":["set",["0a:00:00:00:{high:02x}:{low:02x}","10.0.{high}.{low}"]],"options":["map",[["requested-chassis","host-{low}"],["mcast_flood","true"]]]}}}}"#
    )
}

fn update(number: usize) -> Vec<u8> {
    // The step between two rows is large, so that the rows are visited without locality.
    let row = number * 619 % ROWS;
    format!(
        r#"{{"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["name","==","item-{row:08}"]],"row":{{"number":{number},"options":["map",[["requested-chassis","host-{}"],["mcast_flood","true"]]]}}}}],"id":{number}}}"#,
        number % 512
    )
    .into_bytes()
}
