//! Rows whose UUIDs the client chooses, rows whose UUIDs only the server knows, and raw operations.

use corvid_data::{Datum, Uuid};
use corvid_idl::{Misuse, Status};
use corvid_json::Value;

use crate::fixture::{Fixture, integer, references};

#[test]
fn rows_keep_the_uuids_that_were_asked_for() {
    let mut fixture = Fixture::with_client();
    let (link, one) = (fixture.table("link"), fixture.column("link", "one"));
    let mut rows = Vec::new();
    let txn = fixture.succeed(|fixture| {
        rows = (0..2)
            .map(|number| fixture.insert("link", &[("i", integer(number))]))
            .collect();
        fixture
            .idl()
            .write(rows[0], one, references(&rows[1..]))
            .unwrap();
    });
    for &row in &rows {
        assert_eq!(fixture.idl().inserted_uuid(txn, row), Some(row.uuid));
        assert_eq!(fixture.idl().row(link, row.uuid), Some(row));
    }
    let sent = fixture.last_operations();
    let named = format!(r#"["uuid","{}"]"#, rows[1].uuid);
    assert!(
        sent.contains(&named) && !sent.contains("named-uuid"),
        "{sent}"
    );
    assert_eq!(
        fixture.idl().read(rows[0], one).unwrap().as_uuid(),
        Some(rows[1].uuid)
    );
    // Reusing the UUID of an existing row; then a UUID that exists on the server but not in the
    // replica.
    let txn = fixture.idl().begin().unwrap();
    let again = fixture.idl().insert(link, rows[0].uuid, true);
    assert_eq!(again, Err(Misuse::UuidInUse));
    fixture.idl().delete(rows[0]).unwrap();
    assert_eq!(
        fixture.idl().insert(link, rows[0].uuid, true),
        Err(Misuse::UuidInUse)
    );
    fixture.idl().abort(txn);
    fixture.succeed(|fixture| fixture.idl().delete(rows[0]).unwrap());
    fixture.succeed(|fixture| {
        fixture.idl().insert(link, rows[0].uuid, true).unwrap();
    });
    assert_eq!(fixture.idl().row(link, rows[0].uuid), Some(rows[0]));
}

#[test]
fn a_uuid_that_the_server_has_already_fails_everything() {
    let mut fixture = Fixture::with_client();
    let link = fixture.table("link");
    fixture.idl().begin().unwrap();
    let taken = fixture.insert("link", &[]);
    fixture.insert("link", &[("i", integer(5))]);
    fixture.server.transact(&format!(
        r#"{{"op":"insert","table":"link","uuid":"{}","row":{{}}}}"#,
        taken.uuid
    ));
    let txn = fixture.idl().open_txn().unwrap();
    fixture.idl().commit().unwrap();
    fixture.run();
    assert_eq!(fixture.idl().status(txn), Some(Status::Error));
    let error = fixture.idl().txn_error(txn).unwrap();
    assert!(error.contains("would duplicate"), "{error}");
    assert_eq!(fixture.idl().row_count(link), 1, "only theirs");
}

#[test]
fn a_row_that_came_and_went_has_no_uuid() {
    let mut fixture = Fixture::with_client();
    let mut gone = None;
    let txn = fixture.succeed(|fixture| {
        let row = fixture.insert("simple", &[]);
        fixture.idl().delete(row).unwrap();
        gone = Some(row);
        fixture.insert("simple", &[]);
    });
    assert_eq!(fixture.idl().inserted_uuid(txn, gone.unwrap()), None);
    assert_eq!(fixture.last_operations().matches("insert").count(), 1);
}

fn operation(text: &str) -> Value {
    Value::parse(text.as_bytes()).expect("JSON")
}

#[test]
fn raw_operations_do_what_they_say() {
    let mut fixture = Fixture::with_client();
    let simple = fixture.table("simple");
    fixture.succeed(|fixture| {
        for number in 0..4 {
            fixture.insert("simple", &[("i", integer(number))]);
        }
    });
    let delete = operation(r#"{"op":"delete","table":"simple","where":[["i","<",2]]}"#);
    fixture.succeed(|fixture| fixture.idl().add_operation(&delete).unwrap());
    assert_eq!(fixture.idl().row_count(simple), 2, "nothing else in it");
    fixture.succeed(|fixture| {
        fixture.insert("simple", &[("i", integer(0))]);
        fixture.idl().add_operation(&delete).unwrap();
        let insert = operation(r#"{"op":"insert","table":"simple","row":{"i":9}}"#);
        fixture.idl().add_operation(&insert).unwrap();
    });
    let i = fixture.column("simple", "i");
    let mut values: Vec<Datum> = fixture.peers[0]
        .idl
        .rows(simple)
        .map(|row| fixture.peers[0].idl.read(row, i).expect("held"))
        .collect();
    values.sort();
    assert_eq!(values, [2, 3, 9].map(integer));
    let (txn, status) = fixture.transact(|fixture| {
        fixture
            .idl()
            .add_operation(&operation(r#"{"op":"dance"}"#))
            .unwrap();
    });
    assert_eq!(status, Status::Error);
    assert!(fixture.idl().txn_error(txn).is_some());
    assert_eq!(fixture.idl().row(simple, Uuid::ZERO), None);
}
