//! Rows whose UUIDs the client decides, rows that only the server knows by name, and operations that the library does not understand.

use corvid_data::{Datum, Uuid};
use corvid_idl::{Misuse, Status};
use corvid_json::Value;

use crate::bed::{Bed, integer, references};

#[test]
fn rows_keep_the_uuids_that_were_asked_for() {
    let mut bed = Bed::with_client();
    let (link, one) = (bed.table("link"), bed.column("link", "one"));
    let mut rows = Vec::new();
    let txn = bed.succeed(|bed| {
        rows = (0..2)
            .map(|number| bed.insert("link", &[("i", integer(number))]))
            .collect();
        bed.idl()
            .write(rows[0], one, references(&rows[1..]))
            .unwrap();
    });
    for &row in &rows {
        assert_eq!(bed.idl().inserted_uuid(txn, row), Some(row.uuid));
        assert_eq!(bed.idl().row(link, row.uuid), Some(row));
    }
    let sent = bed.last_operations();
    let named = format!(r#"["uuid","{}"]"#, rows[1].uuid);
    assert!(
        sent.contains(&named) && !sent.contains("named-uuid"),
        "{sent}"
    );
    assert_eq!(
        bed.idl().read(rows[0], one).unwrap().as_uuid(),
        Some(rows[1].uuid)
    );
    // A row that stays; one whose UUID the server has and the client does not see.
    let txn = bed.idl().begin().unwrap();
    let again = bed.idl().insert(link, rows[0].uuid, true);
    assert_eq!(again, Err(Misuse::UuidInUse));
    bed.idl().delete(rows[0]).unwrap();
    assert_eq!(
        bed.idl().insert(link, rows[0].uuid, true),
        Err(Misuse::UuidInUse)
    );
    bed.idl().abort(txn);
    bed.succeed(|bed| bed.idl().delete(rows[0]).unwrap());
    bed.succeed(|bed| {
        bed.idl().insert(link, rows[0].uuid, true).unwrap();
    });
    assert_eq!(bed.idl().row(link, rows[0].uuid), Some(rows[0]));
}

#[test]
fn a_uuid_that_the_server_has_already_fails_everything() {
    let mut bed = Bed::with_client();
    let link = bed.table("link");
    bed.idl().begin().unwrap();
    let taken = bed.insert("link", &[]);
    bed.insert("link", &[("i", integer(5))]);
    bed.server.transact(&format!(
        r#"{{"op":"insert","table":"link","uuid":"{}","row":{{}}}}"#,
        taken.uuid
    ));
    let txn = bed.idl().open_txn().unwrap();
    bed.idl().commit().unwrap();
    bed.run();
    assert_eq!(bed.idl().status(txn), Some(Status::Error));
    let error = bed.idl().txn_error(txn).unwrap();
    assert!(error.contains("would duplicate"), "{error}");
    assert_eq!(bed.idl().row_count(link), 1, "only theirs");
}

#[test]
fn a_row_that_came_and_went_has_no_uuid() {
    let mut bed = Bed::with_client();
    let mut gone = None;
    let txn = bed.succeed(|bed| {
        let row = bed.insert("simple", &[]);
        bed.idl().delete(row).unwrap();
        gone = Some(row);
        bed.insert("simple", &[]);
    });
    assert_eq!(bed.idl().inserted_uuid(txn, gone.unwrap()), None);
    assert_eq!(bed.last_operations().matches("insert").count(), 1);
}

fn operation(text: &str) -> Value {
    Value::parse(text.as_bytes()).expect("JSON")
}

#[test]
fn raw_operations_do_what_they_say() {
    let mut bed = Bed::with_client();
    let simple = bed.table("simple");
    bed.succeed(|bed| {
        for number in 0..4 {
            bed.insert("simple", &[("i", integer(number))]);
        }
    });
    let delete = operation(r#"{"op":"delete","table":"simple","where":[["i","<",2]]}"#);
    bed.succeed(|bed| bed.idl().add_operation(&delete).unwrap());
    assert_eq!(bed.idl().row_count(simple), 2, "nothing else in it");
    bed.succeed(|bed| {
        bed.insert("simple", &[("i", integer(0))]);
        bed.idl().add_operation(&delete).unwrap();
        let insert = operation(r#"{"op":"insert","table":"simple","row":{"i":9}}"#);
        bed.idl().add_operation(&insert).unwrap();
    });
    let i = bed.column("simple", "i");
    let mut values: Vec<Datum> = bed.peers[0]
        .idl
        .rows(simple)
        .map(|row| bed.peers[0].idl.read(row, i).expect("held"))
        .collect();
    values.sort();
    assert_eq!(values, [2, 3, 9].map(integer));
    let (txn, status) = bed.transact(|bed| {
        bed.idl()
            .add_operation(&operation(r#"{"op":"dance"}"#))
            .unwrap();
    });
    assert_eq!(status, Status::Error);
    assert!(bed.idl().txn_error(txn).is_some());
    assert_eq!(bed.idl().row(simple, Uuid::ZERO), None);
}
