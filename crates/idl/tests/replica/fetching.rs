//! Fetching on demand.

use corvid_data::Arc;
use corvid_idl::{Class, FetchError, FetchOutcome, Misuse, RowId, Status};

use crate::bed::{Bed, integer, integers, schema, string};

/// A client that monitors `s` of `simple` and fetches `i` and `ia`, and two rows.
fn on_demand() -> (Bed, [RowId; 2]) {
    on_demand_of(false)
}

/// The same of a server that knows what changed, or not.
fn on_demand_of(has_history: bool) -> (Bed, [RowId; 2]) {
    let mut bed = Bed::new(has_history);
    let mut class = Class::new(Arc::new(schema()));
    let column = |class: &Class, name: &str| class.column("simple", name).expect("a column");
    let (s, i, ia) = (
        column(&class, "s"),
        column(&class, "i"),
        column(&class, "ia"),
    );
    class.add_column(s);
    class.on_demand(i);
    class.on_demand(ia);
    bed.add(class);
    let mut rows = Vec::new();
    bed.succeed(|bed| {
        for number in 1..3 {
            let columns = [("i", integer(number)), ("ia", integers(&[number, 9]))];
            rows.push(bed.insert("simple", &columns));
        }
    });
    (bed, [rows[0], rows[1]])
}

#[test]
fn values_are_defaults_until_they_are_fetched() {
    let (mut bed, rows) = on_demand();
    let (i, ia) = (bed.column("simple", "i"), bed.column("simple", "ia"));
    assert_eq!(
        (bed.value(rows[0], "i"), bed.value(rows[1], "i")),
        ("0".into(), "0".into())
    );
    let fetch = bed.idl().fetch_row(rows[0], i).unwrap();
    assert_eq!(
        bed.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Pending)
    );
    assert!(bed.idl().is_row_fetch_pending(rows[0]));
    assert!(!bed.idl().is_column_fetch_pending(i) && !bed.idl().is_table_fetch_pending(i.table));
    assert!(!bed.idl().is_row_fetch_pending(rows[1]));
    let seqno = bed.idl().change_seqno();
    bed.run();
    assert_eq!(bed.idl().change_seqno(), seqno + 1);
    assert_eq!(
        bed.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Success)
    );
    assert_eq!(bed.idl().take_fetch_outcome(fetch), None);
    assert!(!bed.idl().is_row_fetch_pending(rows[0]));
    assert_eq!(
        (bed.value(rows[0], "i"), bed.value(rows[1], "i")),
        ("1".into(), "0".into())
    );
    assert!(bed.idl().is_fetched(rows[0], i) && !bed.idl().is_fetched(rows[0], ia));
    bed.idl().fetch_column(i).unwrap();
    bed.idl().fetch_column(i).unwrap();
    let table = bed.idl().fetch_table(i.table).unwrap();
    assert!(bed.idl().is_column_fetch_pending(i) && bed.idl().is_table_fetch_pending(i.table));
    bed.run();
    assert!(!bed.idl().is_column_fetch_pending(i));
    assert_eq!(
        bed.idl().take_fetch_outcome(table),
        Some(FetchOutcome::Success)
    );
    assert_eq!(bed.value(rows[1], "i"), "2");
    assert_eq!(bed.value(rows[1], "ia"), r#"["set",[2,9]]"#);
}

#[test]
fn every_fetch_ends_with_an_outcome() {
    let (mut bed, rows) = on_demand();
    let (i, s) = (bed.column("simple", "i"), bed.column("simple", "s"));
    assert_eq!(
        bed.idl().fetch_row(rows[0], s),
        Err(FetchError::NotOnDemand)
    );
    let maps = bed.table("maps");
    assert_eq!(bed.idl().fetch_table(maps), Err(FetchError::NotOnDemand));
    // The row goes before the answer comes.
    bed.peers[0].is_deaf = true;
    let fetch = bed.idl().fetch_row(rows[0], i).unwrap();
    let delete = format!(
        r#"{{"op":"delete","table":"simple","where":[["_uuid","==",["uuid","{}"]]]}}"#,
        rows[0].uuid
    );
    bed.server.transact(&delete);
    bed.run();
    bed.peers[0].is_deaf = false;
    bed.run();
    assert_eq!(
        bed.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::RowGone)
    );
    assert_eq!(bed.idl().fetch_row(rows[0], i), Err(FetchError::RowGone));
    // The connection goes.
    bed.peers[0].is_deaf = true;
    let fetch = bed.idl().fetch_row(rows[1], i).unwrap();
    let seqno = bed.idl().change_seqno();
    bed.run();
    bed.peers[0].is_deaf = false;
    bed.cut(0);
    assert_eq!(
        bed.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Disconnected)
    );
    assert!(!bed.idl().is_row_fetch_pending(rows[1]) && bed.idl().change_seqno() > seqno);
    assert_eq!(
        bed.idl().fetch_row(rows[1], i),
        Err(FetchError::NotConnected)
    );
    // Nothing matches, or the answer is an error.
    bed.run_until_connected();
    bed.server
        .transact(r#"{"op":"delete","table":"simple","where":[]}"#);
    bed.run();
    let fetch = bed.idl().fetch_column(i).unwrap();
    bed.run();
    assert_eq!(
        bed.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Success)
    );
    let fetch = bed.idl().fetch_column(i).unwrap();
    bed.peers[0].is_deaf = true;
    bed.run();
    let last = bed.peers[0].sent.last().unwrap();
    let id = last.split([':', ',']).nth(1).unwrap().to_owned();
    let answer = format!(r#"{{"id":{id},"result":[{{"error":"not allowed"}}],"error":null}}"#);
    bed.idl()
        .handle(0, corvid_session::Input::Received(answer.as_bytes()))
        .unwrap();
    let outcome = bed.idl().take_fetch_outcome(fetch);
    assert_eq!(
        outcome,
        Some(FetchOutcome::Error(r#"{"error":"not allowed"}"#.to_owned()))
    );
    // Rows that are not here are passed over.
    let fetch = bed.idl().fetch_column(i).unwrap();
    bed.run();
    let rows = format!(r#"[{{"_uuid":["uuid","{}"],"i":5}}]"#, rows[0].uuid);
    bed.answer_last(&format!(r#""result":[{{"rows":{rows}}}],"error":null"#));
    assert_eq!(
        bed.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Success)
    );
    assert_eq!(bed.idl().row_count(i.table), 0);
}

#[test]
fn fetched_values_last_as_long_as_the_contents_are_followed() {
    for has_history in [false, true] {
        let (mut bed, rows) = on_demand_of(has_history);
        let i = bed.column("simple", "i");
        bed.idl().fetch_row(rows[0], i).unwrap();
        bed.run();
        bed.cut(0);
        assert_eq!(bed.value(rows[0], "i"), "1");
        bed.run_until_connected();
        let expected = if has_history { "1" } else { "0" };
        assert_eq!(
            bed.value(rows[0], "i"),
            expected,
            "a default if all rows came anew"
        );
        assert_eq!(bed.idl().is_fetched(rows[0], i), has_history);
    }
}

#[test]
fn fetched_columns_can_be_written_and_verified() {
    let (mut bed, rows) = on_demand();
    let (i, s) = (bed.column("simple", "i"), bed.column("simple", "s"));
    bed.succeed(|bed| bed.idl().write(rows[0], i, integer(5)).unwrap());
    bed.idl().begin().unwrap();
    assert_eq!(bed.idl().verify(rows[0], i), Err(Misuse::NotReplicated));
    let txn = bed.idl().open_txn().unwrap();
    bed.idl().abort(txn);
    bed.idl().fetch_row(rows[0], i).unwrap();
    bed.run();
    assert_eq!(bed.value(rows[0], "i"), "5");
    bed.server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"i":6}}"#);
    bed.run();
    let (_, status) = bed.transact(|bed| {
        bed.idl().verify(rows[0], i).unwrap();
        bed.idl().write(rows[0], s, string("x")).unwrap();
    });
    assert_eq!(status, Status::TryAgain, "what was fetched is out of date");
}
