//! Fetching on demand.

use corvid_data::Arc;
use corvid_idl::{Class, FetchError, FetchOutcome, Misuse, RowId, Status};

use crate::fixture::{Fixture, integer, integers, schema, string};

/// A client that monitors `s` of `simple` and fetches `i` and `ia` on demand, and two rows.
fn on_demand() -> (Fixture, [RowId; 2]) {
    on_demand_of(false)
}

/// The same, with a server that keeps history or not.
fn on_demand_of(has_history: bool) -> (Fixture, [RowId; 2]) {
    let mut fixture = Fixture::new(has_history);
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
    fixture.add(class);
    let mut rows = Vec::new();
    fixture.succeed(|fixture| {
        for number in 1..3 {
            let columns = [("i", integer(number)), ("ia", integers(&[number, 9]))];
            rows.push(fixture.insert("simple", &columns));
        }
    });
    (fixture, [rows[0], rows[1]])
}

#[test]
fn values_are_defaults_until_they_are_fetched() {
    let (mut fixture, rows) = on_demand();
    let (i, ia) = (
        fixture.column("simple", "i"),
        fixture.column("simple", "ia"),
    );
    assert_eq!(
        (fixture.value(rows[0], "i"), fixture.value(rows[1], "i")),
        ("0".into(), "0".into())
    );
    let fetch = fixture.idl().fetch_row(rows[0], i).unwrap();
    assert_eq!(
        fixture.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Pending)
    );
    assert!(fixture.idl().is_row_fetch_pending(rows[0]));
    assert!(
        !fixture.idl().is_column_fetch_pending(i) && !fixture.idl().is_table_fetch_pending(i.table)
    );
    assert!(!fixture.idl().is_row_fetch_pending(rows[1]));
    let seqno = fixture.idl().change_seqno();
    fixture.run();
    assert_eq!(fixture.idl().change_seqno(), seqno + 1);
    assert_eq!(
        fixture.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Success)
    );
    assert_eq!(fixture.idl().take_fetch_outcome(fetch), None);
    assert!(!fixture.idl().is_row_fetch_pending(rows[0]));
    assert_eq!(
        (fixture.value(rows[0], "i"), fixture.value(rows[1], "i")),
        ("1".into(), "0".into())
    );
    assert!(fixture.idl().is_fetched(rows[0], i) && !fixture.idl().is_fetched(rows[0], ia));
    fixture.idl().fetch_column(i).unwrap();
    fixture.idl().fetch_column(i).unwrap();
    let table = fixture.idl().fetch_table(i.table).unwrap();
    assert!(
        fixture.idl().is_column_fetch_pending(i) && fixture.idl().is_table_fetch_pending(i.table)
    );
    fixture.run();
    assert!(!fixture.idl().is_column_fetch_pending(i));
    assert_eq!(
        fixture.idl().take_fetch_outcome(table),
        Some(FetchOutcome::Success)
    );
    assert_eq!(fixture.value(rows[1], "i"), "2");
    assert_eq!(fixture.value(rows[1], "ia"), r#"["set",[2,9]]"#);
}

#[test]
fn every_fetch_ends_with_an_outcome() {
    let (mut fixture, rows) = on_demand();
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    assert_eq!(
        fixture.idl().fetch_row(rows[0], s),
        Err(FetchError::NotOnDemand)
    );
    let maps = fixture.table("maps");
    assert_eq!(
        fixture.idl().fetch_table(maps),
        Err(FetchError::NotOnDemand)
    );
    // The row is deleted before the reply arrives.
    fixture.peers[0].is_deaf = true;
    let fetch = fixture.idl().fetch_row(rows[0], i).unwrap();
    let delete = format!(
        r#"{{"op":"delete","table":"simple","where":[["_uuid","==",["uuid","{}"]]]}}"#,
        rows[0].uuid
    );
    fixture.server.transact(&delete);
    fixture.run();
    fixture.peers[0].is_deaf = false;
    fixture.run();
    assert_eq!(
        fixture.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::RowGone)
    );
    assert_eq!(
        fixture.idl().fetch_row(rows[0], i),
        Err(FetchError::RowGone)
    );
    // The connection is lost.
    fixture.peers[0].is_deaf = true;
    let fetch = fixture.idl().fetch_row(rows[1], i).unwrap();
    let seqno = fixture.idl().change_seqno();
    fixture.run();
    fixture.peers[0].is_deaf = false;
    fixture.cut(0);
    assert_eq!(
        fixture.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Disconnected)
    );
    assert!(!fixture.idl().is_row_fetch_pending(rows[1]) && fixture.idl().change_seqno() > seqno);
    assert_eq!(
        fixture.idl().fetch_row(rows[1], i),
        Err(FetchError::NotConnected)
    );
    // No row matches, or the reply is an error.
    fixture.run_until_connected();
    fixture
        .server
        .transact(r#"{"op":"delete","table":"simple","where":[]}"#);
    fixture.run();
    let fetch = fixture.idl().fetch_column(i).unwrap();
    fixture.run();
    assert_eq!(
        fixture.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Success)
    );
    let fetch = fixture.idl().fetch_column(i).unwrap();
    fixture.peers[0].is_deaf = true;
    fixture.run();
    let last = fixture.peers[0].sent.last().unwrap();
    let id = last.split([':', ',']).nth(1).unwrap().to_owned();
    let answer = format!(r#"{{"id":{id},"result":[{{"error":"not allowed"}}],"error":null}}"#);
    fixture
        .idl()
        .handle(0, corvid_session::Input::Received(answer.as_bytes()))
        .unwrap();
    let outcome = fixture.idl().take_fetch_outcome(fetch);
    assert_eq!(
        outcome,
        Some(FetchOutcome::Error(r#"{"error":"not allowed"}"#.to_owned()))
    );
    // Rows that the replica lacks are skipped.
    let fetch = fixture.idl().fetch_column(i).unwrap();
    fixture.run();
    let rows = format!(r#"[{{"_uuid":["uuid","{}"],"i":5}}]"#, rows[0].uuid);
    fixture.answer_last(&format!(r#""result":[{{"rows":{rows}}}],"error":null"#));
    assert_eq!(
        fixture.idl().take_fetch_outcome(fetch),
        Some(FetchOutcome::Success)
    );
    assert_eq!(fixture.idl().row_count(i.table), 0);
}

#[test]
fn fetched_values_last_as_long_as_the_contents_are_followed() {
    for has_history in [false, true] {
        let (mut fixture, rows) = on_demand_of(has_history);
        let i = fixture.column("simple", "i");
        fixture.idl().fetch_row(rows[0], i).unwrap();
        fixture.run();
        fixture.cut(0);
        assert_eq!(fixture.value(rows[0], "i"), "1");
        fixture.run_until_connected();
        let expected = if has_history { "1" } else { "0" };
        assert_eq!(
            fixture.value(rows[0], "i"),
            expected,
            "a default if all rows came anew"
        );
        assert_eq!(fixture.idl().is_fetched(rows[0], i), has_history);
    }
}

#[test]
fn fetched_columns_can_be_written_and_verified() {
    let (mut fixture, rows) = on_demand();
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    fixture.succeed(|fixture| fixture.idl().write(rows[0], i, integer(5)).unwrap());
    fixture.idl().begin().unwrap();
    assert_eq!(fixture.idl().verify(rows[0], i), Err(Misuse::NotReplicated));
    let txn = fixture.idl().open_txn().unwrap();
    fixture.idl().abort(txn);
    fixture.idl().fetch_row(rows[0], i).unwrap();
    fixture.run();
    assert_eq!(fixture.value(rows[0], "i"), "5");
    fixture
        .server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"i":6}}"#);
    fixture.run();
    let (_, status) = fixture.transact(|fixture| {
        fixture.idl().verify(rows[0], i).unwrap();
        fixture.idl().write(rows[0], s, string("x")).unwrap();
    });
    assert_eq!(status, Status::TryAgain, "what was fetched is out of date");
}
