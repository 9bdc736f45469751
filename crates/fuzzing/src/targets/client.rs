//! Messages from a server to a client.

use corvid_data::{Arc, Schema};
use corvid_idl::{Class, Idl, IndexColumn};
use corvid_json::Value;
use corvid_session::{Input, Output};

const SCHEMA: &str = r#"{"name":"D","version":"1.0.0","tables":{"T":{"isRoot":true,"columns":{
 "n":{"type":"integer"},"s":{"type":{"key":"string","min":0,"max":"unlimited"}},
 "m":{"type":{"key":"string","value":"integer","min":0,"max":"unlimited"}},
 "r":{"type":{"key":{"type":"uuid","refTable":"T","refType":"weak"},"min":0,"max":"unlimited"}}}}}}"#;

/// Passes the bytes that a server sends on one connection to a client. An index lists exactly the
/// rows of the replica, in order. The client sends only JSON. After the end of the connection, the
/// client asks for another connection.
///
/// # Panics
/// If one of these invariants is broken.
pub fn client(input: &[u8]) {
    receive(input);
}

/// Returns the client after the whole input.
fn receive(input: &[u8]) -> Idl {
    let json = Value::parse(SCHEMA.as_bytes()).expect("a constant");
    let schema = Schema::from_json(&json).expect("a constant");
    let mut class = Class::everything(Arc::new(schema));
    class.track_all();
    let (n, s) = (
        class.column("T", "n").expect("a column"),
        class.column("T", "s").expect("a column"),
    );
    let columns = vec![IndexColumn::ascending(s), IndexColumn::descending(n)];
    let index = class.add_index(n.table, "", columns).expect("new");
    let mut idl = Idl::new(class, 1);
    idl.session().set_lock(0, Some("l"));
    idl.session().set_remote(0, "tcp:a:1", true);
    let mut handle = |input: Input<'_>| {
        idl.handle(1, input).expect("no transaction is open");
        while let Some(output) = idl.poll_output() {
            if let Output::Send(text) = output {
                Value::parse(&text).expect("what is sent is JSON");
            }
        }
        let rows: Vec<_> = idl.range_of(index, None, None).collect();
        assert_eq!(
            (rows.len(), idl.row_count(n.table)),
            (idl.index_len(index), rows.len())
        );
        let is_sorted = |pair: &[_]| idl.compare(index, Some(pair[0]), Some(pair[1])).is_le();
        assert!(rows.windows(2).all(is_sorted));
        while idl.poll_log().is_some() {}
        idl.poll_timeout(1) == Some(1) && idl.session_state().is_connected()
    };
    handle(Input::Connected);
    // The input is passed in two parts, so that a message is split.
    let (early, late) = input.split_at(input.len() / 2);
    for part in [early, late] {
        let mut has_more = handle(Input::Received(part));
        while has_more {
            has_more = handle(Input::Tick);
        }
    }
    assert!(idl.session_state().is_alive());
    idl
}

#[cfg(test)]
mod tests {
    use super::receive;

    #[test]
    fn seeds_are_understood_to_their_end() {
        for (seed, rows) in [
            (&include_bytes!("../../corpus/client/cluster")[..], 2),
            (include_bytes!("../../corpus/client/converted"), 2),
            (include_bytes!("../../corpus/client/old"), 0),
        ] {
            let idl = receive(seed);
            assert!(idl.session_state().is_monitoring() && idl.change_seqno() >= 3);
            let table = idl.class().table("T").expect("a table");
            assert_eq!(idl.row_count(table), rows);
        }
    }
}
