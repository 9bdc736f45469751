//! Transactions: what is sent, what comes of it, and that the replica is put back.

use corvid_data::{Datum, Schema, Uuid};
use corvid_idl::{Misuse, Status};
use corvid_json::Value;

use crate::bed::{Bed, integer, integers, narrow_schema, references, schema, string};

#[test]
fn a_new_row_is_there_at_once_and_again_when_the_server_tells() {
    let mut bed = Bed::with_client();
    let table = bed.table("simple");
    let seqno = bed.idl().change_seqno();
    bed.idl().begin().unwrap();
    let row = bed.insert("simple", &[("i", integer(5)), ("ia", integers(&[2, 1]))]);
    assert_eq!(bed.value(row, "i"), "5");
    let txn = bed.idl().open_txn().unwrap();
    assert_eq!(bed.idl().commit(), Ok(Status::Incomplete));
    assert_eq!(bed.idl().row_count(table), 0, "put back");
    assert_eq!(bed.idl().change_seqno(), seqno);
    bed.run();
    assert_eq!(bed.idl().status(txn), Some(Status::Success));
    assert_eq!(bed.value(row, "ia"), r#"["set",[1,2]]"#);
    assert!(bed.idl().change_seqno() > seqno);
    assert!(bed.last_operations().contains(r#""op":"insert""#));
}

#[test]
fn rows_of_one_transaction_refer_to_each_other_by_name() {
    let mut bed = Bed::with_client();
    let link = bed.table("link");
    let (i, one, many) = (
        bed.column("link", "i"),
        bed.column("link", "one"),
        bed.column("link", "many"),
    );
    let mut rows = Vec::new();
    let txn = bed.succeed(|bed| {
        for number in 0..3 {
            let uuid = bed.uuid();
            let row = bed.idl().insert(link, uuid, false).unwrap();
            bed.idl().write(row, i, integer(number)).unwrap();
            rows.push(row);
        }
        bed.idl()
            .write(rows[0], one, references(&rows[2..]))
            .unwrap();
        bed.idl()
            .write(rows[2], one, references(&rows[..1]))
            .unwrap();
        bed.idl().write(rows[1], many, references(&rows)).unwrap();
    });
    let real: Vec<Uuid> = rows
        .iter()
        .map(|row| bed.idl().inserted_uuid(txn, *row).unwrap())
        .collect();
    let row = |at: usize, bed: &mut Bed| bed.idl().row(link, real[at]).unwrap();
    let first = row(0, &mut bed);
    assert_eq!(bed.idl().read(first, one).unwrap().as_uuid(), Some(real[2]));
    let second = row(1, &mut bed);
    assert_eq!(bed.idl().read(second, many).unwrap().len(), 3);
}

#[test]
fn a_failed_verification_is_tried_again() {
    let mut bed = Bed::with_client();
    let i = bed.column("simple", "i");
    let s = bed.column("simple", "s");
    let mut row = None;
    bed.succeed(|bed| row = Some(bed.insert("simple", &[("i", integer(1))])));
    let row = row.unwrap();
    let where_row = format!(r#""where":[["_uuid","==",["uuid","{}"]]]"#, row.uuid);
    bed.idl().begin().unwrap();
    bed.idl().verify(row, i).unwrap();
    bed.idl().write(row, s, string("x")).unwrap();
    bed.server.transact(&format!(
        r#"{{"op":"update","table":"simple",{where_row},"row":{{"i":2}}}}"#
    ));
    let txn = bed.idl().open_txn().unwrap();
    bed.idl().commit().unwrap();
    bed.run();
    assert_eq!(bed.idl().status(txn), Some(Status::TryAgain));
    bed.succeed(|bed| {
        bed.idl().verify(row, i).unwrap();
        bed.idl().write(row, s, string("x")).unwrap();
    });
    assert_eq!(
        (bed.value(row, "i"), bed.value(row, "s")),
        ("2".into(), "\"x\"".into())
    );
    // A verification of an untouched row beside a change elsewhere is sent too, and forgotten after.
    bed.succeed(|bed| {
        bed.idl().verify(row, i).unwrap();
        bed.insert("simple", &[]);
    });
    assert!(bed.last_operations().contains(r#""op":"wait""#));
    bed.succeed(|bed| bed.idl().write(row, s, string("y")).unwrap());
    assert!(!bed.last_operations().contains(r#""op":"wait""#));
}

#[test]
fn what_changes_nothing_is_not_sent() {
    let mut bed = Bed::with_client();
    let (name, children) = (
        bed.column("parent", "name"),
        bed.column("parent", "children"),
    );
    let mut rows = Vec::new();
    bed.succeed(|bed| {
        let child = bed.insert("child", &[("name", string("c"))]);
        let parent = bed.insert("parent", &[("children", references(&[child]))]);
        rows.extend([child, parent]);
    });
    let (child, parent) = (rows[0], rows[1]);
    bed.forget_sent();
    type Act = Box<dyn FnOnce(&mut Bed)>;
    let acts: Vec<Act> = vec![
        Box::new(|_| {}),
        Box::new(move |bed| bed.idl().write(parent, name, string("")).unwrap()),
        Box::new(move |bed| bed.idl().verify(parent, children).unwrap()),
        Box::new(|bed| bed.idl().add_comment("nothing").unwrap()),
        Box::new(|bed| bed.idl().set_dry_run().unwrap()),
        Box::new(move |bed| bed.idl().delete(child).unwrap()),
        Box::new(|bed| {
            let row = bed.insert("simple", &[]);
            bed.idl().delete(row).unwrap();
        }),
        Box::new(|bed| {
            let i = bed.column("simple", "i");
            let row = bed.insert("simple", &[]);
            bed.idl().increment(row, i, false).unwrap();
            bed.idl().delete(row).unwrap();
        }),
    ];
    for act in acts {
        let (_, status) = bed.transact(act);
        assert_eq!(status, Status::Unchanged);
    }
    assert_eq!(bed.peers[0].sent, Vec::<String>::new());
    assert!(bed.idl().row(child.table, child.uuid).is_some());
}

#[test]
fn aborting_and_forgetting_leave_no_trace() {
    let mut bed = Bed::with_client();
    let s = bed.column("simple", "s");
    let mut row = None;
    bed.succeed(|bed| row = Some(bed.insert("simple", &[("s", string("a"))])));
    let row = row.unwrap();
    for is_forgotten in [false, true] {
        let txn = bed.idl().begin().unwrap();
        assert_eq!(bed.idl().begin(), Err(Misuse::TransactionOpen));
        bed.idl().write(row, s, string("b")).unwrap();
        bed.insert("simple", &[]);
        bed.idl().delete(row).unwrap();
        assert_eq!(bed.idl().write(row, s, string("c")), Err(Misuse::RowGone));
        assert_eq!(bed.idl().read(row, s), None);
        if is_forgotten {
            bed.idl().forget(txn);
        } else {
            bed.idl().abort(txn);
            assert_eq!(bed.idl().status(txn), Some(Status::Aborted));
        }
        assert_eq!(bed.value(row, "s"), "\"a\"");
        assert_eq!(bed.idl().row_count(row.table), 1);
    }
    // After the commit, aborting only stops waiting.
    let txn = bed.idl().begin().unwrap();
    bed.idl().write(row, s, string("d")).unwrap();
    bed.idl().commit().unwrap();
    bed.idl().abort(txn);
    bed.run();
    assert_eq!(bed.idl().status(txn), Some(Status::Aborted));
    assert_eq!(bed.value(row, "s"), "\"d\"");
}

#[test]
fn counters_and_comments() {
    let mut bed = Bed::with_client();
    let (i, s) = (bed.column("simple", "i"), bed.column("simple", "s"));
    let mut row = None;
    let txn = bed.succeed(|bed| {
        let new = bed.insert("simple", &[("i", integer(-1))]);
        bed.idl().increment(new, i, false).unwrap();
        assert_eq!(
            bed.idl().increment(new, i, false),
            Err(Misuse::SecondIncrement)
        );
        assert_eq!(bed.idl().increment(new, s, false), Err(Misuse::WrongType));
        bed.idl().add_comment("one").unwrap();
        bed.idl().add_comment("two").unwrap();
        row = Some(new);
    });
    assert_eq!(bed.idl().incremented_to(txn), Some(0));
    assert!(
        bed.last_operations()
            .ends_with(r#"{"op":"comment","comment":"one\ntwo"}"#)
    );
    let row = row.unwrap();
    let (_, status) = bed.transact(|bed| bed.idl().increment(row, i, false).unwrap());
    assert_eq!(status, Status::Unchanged);
    let txn = bed.succeed(|bed| bed.idl().increment(row, i, true).unwrap());
    assert_eq!(bed.idl().incremented_to(txn), Some(1));
    assert_eq!(bed.value(row, "i"), "1");
}

#[test]
fn locks_are_asserted() {
    let mut bed = Bed::with_client();
    let other = bed.add(corvid_idl::Class::new(corvid_data::Arc::new(
        crate::bed::schema(),
    )));
    bed.peers[other].idl.session().set_lock(0, Some("l"));
    bed.run();
    bed.idl().session().set_lock(0, Some("l"));
    bed.run();
    assert!(bed.idl().session().is_lock_contended());
    bed.forget_sent();
    let (_, status) = bed.transact(|bed| {
        bed.insert("simple", &[]);
    });
    assert_eq!((status, bed.peers[0].sent.len()), (Status::NotLocked, 0));
    let seqno = bed.idl().change_seqno();
    bed.peers[other].idl.session().set_lock(0, None);
    bed.run();
    assert!(bed.idl().change_seqno() > seqno);
    bed.succeed(|bed| {
        bed.insert("simple", &[]);
    });
    assert!(
        bed.last_operations()
            .starts_with(r#"{"op":"assert","lock":"l"},"#)
    );
    // A dry run with a lock succeeds, and stores nothing.
    let simple = bed.table("simple");
    let txn = bed.succeed(|bed| {
        bed.insert("simple", &[]);
        bed.idl().set_dry_run().unwrap();
    });
    assert!(bed.last_operations().ends_with(r#"{"op":"abort"}"#));
    assert_eq!(bed.idl().row_count(simple), 1);
    assert_eq!(bed.idl().txn_error(txn), None);
}

#[test]
fn errors_are_told_in_the_words_of_the_server() {
    let mut bed = Bed::with_client();
    let table = bed.table("unique");
    bed.succeed(|bed| {
        bed.insert("unique", &[("i", integer(1))]);
    });
    let (txn, status) = bed.transact(|bed| {
        bed.insert("unique", &[("i", integer(1))]);
    });
    assert_eq!(status, Status::Error);
    let error = bed.idl().txn_error(txn).unwrap().to_owned();
    let json = Value::parse(error.as_bytes()).unwrap();
    assert_eq!(
        json.get("error").and_then(Value::as_str),
        Some("constraint violation")
    );
    assert_eq!(json.to_string(), error, "compact, members sorted");
    assert_eq!(bed.idl().row_count(table), 1);
}

#[test]
fn races_for_the_only_row_are_tried_again() {
    let mut bed = Bed::with_client();
    bed.idl().begin().unwrap();
    bed.insert("singleton", &[("name", string("mine"))]);
    bed.server
        .transact(r#"{"op":"insert","table":"singleton","row":{"name":"theirs"}}"#);
    let txn = bed.idl().open_txn().unwrap();
    bed.idl().commit().unwrap();
    bed.run();
    assert_eq!(bed.idl().status(txn), Some(Status::TryAgain));
    // Taking the place of the row that is there needs no wait.
    let table = bed.table("singleton");
    let theirs = bed.idl().rows(table).next().unwrap();
    bed.succeed(|bed| {
        bed.idl().delete(theirs).unwrap();
        bed.insert("singleton", &[]);
    });
    assert!(!bed.last_operations().contains("wait"));
}

#[test]
fn a_lost_connection_leaves_it_open_what_happened() {
    let mut bed = Bed::with_client();
    bed.peers[0].is_deaf = true;
    let (txn, status) = bed.transact(|bed| {
        bed.insert("simple", &[]);
    });
    assert_eq!(
        (status, bed.idl().outstanding_count()),
        (Status::Incomplete, 1)
    );
    bed.peers[0].is_deaf = false;
    bed.cut(0);
    assert_eq!(bed.idl().status(txn), Some(Status::TryAgain));
    let (_, status) = bed.transact(|bed| {
        bed.insert("simple", &[]);
    });
    assert_eq!(status, Status::TryAgain);
    bed.run_until_connected();
    let simple = bed.table("simple");
    assert_eq!(
        bed.idl().row_count(simple),
        1,
        "the first one was carried out"
    );
}

#[test]
fn what_does_not_fit_is_refused_at_once() {
    let mut bed = Bed::with_client();
    let column = |name: &str, bed: &Bed| bed.column("simple", name);
    let mut row = None;
    bed.succeed(|bed| row = Some(bed.insert("simple", &[("fixed", string("f"))])));
    let row = row.unwrap();
    let (s, few, fixed, i) = (
        column("s", &bed),
        column("few", &bed),
        column("fixed", &bed),
        column("i", &bed),
    );
    assert_eq!(
        bed.idl().write(row, s, string("x")),
        Err(Misuse::NoTransaction)
    );
    let txn = bed.idl().begin().unwrap();
    assert_eq!(bed.idl().write(row, s, integer(1)), Err(Misuse::WrongType));
    assert_eq!(
        bed.idl().write(row, fixed, string("g")),
        Err(Misuse::Immutable)
    );
    assert!(matches!(
        bed.idl().write(row, few, integer(10)),
        Err(Misuse::Constraint(_))
    ));
    assert!(matches!(
        bed.idl().write(row, few, integers(&[1, 2, 3, 4])),
        Err(Misuse::Constraint(_))
    ));
    assert!(matches!(
        bed.idl().write(row, i, Datum::empty()),
        Err(Misuse::Constraint(_))
    ));
    let other = bed.column("maps", "name");
    assert_eq!(
        bed.idl().write(row, other, string("x")),
        Err(Misuse::WrongTable)
    );
    assert!(bed.idl().is_mutable(row, s) && !bed.idl().is_mutable(row, fixed));
    bed.idl().set_read_only(true).unwrap();
    assert_eq!(bed.idl().write(row, s, string("x")), Err(Misuse::ReadOnly));
    assert_eq!(bed.idl().delete(row), Err(Misuse::ReadOnly));
    assert_eq!(bed.idl().insert_new(s.table), Err(Misuse::ReadOnly));
    assert_eq!(
        bed.idl().handle(0, corvid_session::Input::Tick),
        Err(Misuse::TransactionOpen)
    );
    bed.idl().abort(txn);
}

#[test]
fn raw_operations_come_last() {
    let mut bed = Bed::with_client();
    let simple = bed.table("simple");
    bed.succeed(|bed| {
        bed.insert("simple", &[("i", integer(1))]);
        let update = br#"{"op":"update","table":"simple","where":[["i","==",1]],"row":{"i":2}}"#;
        let update = Value::parse(update).unwrap();
        bed.idl().add_operation(&update).unwrap();
    });
    let row = bed.idl().rows(simple).next().unwrap();
    assert_eq!(bed.value(row, "i"), "2");
}

#[test]
fn a_success_is_told_when_it_can_be_seen() {
    let mut bed = Bed::with_client();
    let i = bed.column("simple", "i");
    let mut row = None;
    bed.succeed(|bed| row = Some(bed.insert("simple", &[("i", integer(1))])));
    let row = row.unwrap();
    // A conversion ends the monitor before the transaction arrives: no update tells of it.
    let commit_after_conversion = |bed: &mut Bed, schema: &Schema, value: i64| {
        bed.peers[0].is_deaf = true;
        bed.server.convert(schema);
        let txn = bed.idl().begin().unwrap();
        bed.idl().write(row, i, integer(value)).unwrap();
        assert_eq!(bed.idl().commit(), Ok(Status::Incomplete));
        bed.run();
        bed.hear_waiting();
        assert_eq!(bed.idl().outstanding_count(), 0, "it was answered");
        assert_eq!(bed.idl().status(txn), Some(Status::Incomplete));
        txn
    };
    let txn = commit_after_conversion(&mut bed, &narrow_schema(), 2);
    assert_eq!(bed.value(row, "i"), "1");
    bed.peers[0].is_deaf = false;
    bed.run();
    assert_eq!(bed.idl().status(txn), Some(Status::Success));
    assert_eq!(bed.value(row, "i"), "2");
    // Who loses the connection hears at once what is known.
    let txn = commit_after_conversion(&mut bed, &schema(), 3);
    bed.cut(0);
    assert_eq!(bed.idl().status(txn), Some(Status::Success));
}
