//! Transactions: what is sent, how they end, and that the replica is restored.

use corvid_data::{Atom, Datum, Schema, Tag, Uuid, WireError};
use corvid_idl::{Misuse, Status};
use corvid_json::Value;

use crate::fixture::{Fixture, integer, integers, narrow_schema, references, schema, string};

#[test]
fn a_new_row_is_there_at_once_and_again_when_the_server_tells() {
    let mut fixture = Fixture::with_client();
    let table = fixture.table("simple");
    let seqno = fixture.idl().change_seqno();
    fixture.idl().begin().unwrap();
    let row = fixture.insert("simple", &[("i", integer(5)), ("ia", integers(&[2, 1]))]);
    assert_eq!(fixture.value(row, "i"), "5");
    let txn = fixture.idl().open_txn().unwrap();
    assert_eq!(fixture.idl().commit(), Ok(Status::Incomplete));
    assert_eq!(fixture.idl().row_count(table), 0, "put back");
    assert_eq!(fixture.idl().change_seqno(), seqno);
    fixture.run();
    assert_eq!(fixture.idl().status(txn), Some(Status::Success));
    assert_eq!(fixture.value(row, "ia"), r#"["set",[1,2]]"#);
    assert!(fixture.idl().change_seqno() > seqno);
    assert!(fixture.last_operations().contains(r#""op":"insert""#));
}

#[test]
fn rows_of_one_transaction_refer_to_each_other_by_name() {
    let mut fixture = Fixture::with_client();
    let link = fixture.table("link");
    let (i, one, many) = (
        fixture.column("link", "i"),
        fixture.column("link", "one"),
        fixture.column("link", "many"),
    );
    let mut rows = Vec::new();
    let txn = fixture.succeed(|fixture| {
        for number in 0..3 {
            let uuid = fixture.uuid();
            let row = fixture.idl().insert(link, uuid, false).unwrap();
            fixture.idl().write(row, i, integer(number)).unwrap();
            rows.push(row);
        }
        fixture
            .idl()
            .write(rows[0], one, references(&rows[2..]))
            .unwrap();
        fixture
            .idl()
            .write(rows[2], one, references(&rows[..1]))
            .unwrap();
        fixture
            .idl()
            .write(rows[1], many, references(&rows))
            .unwrap();
    });
    let real: Vec<Uuid> = rows
        .iter()
        .map(|row| fixture.idl().inserted_uuid(txn, *row).unwrap())
        .collect();
    let row = |at: usize, fixture: &mut Fixture| fixture.idl().row(link, real[at]).unwrap();
    let first = row(0, &mut fixture);
    assert_eq!(
        fixture.idl().read(first, one).unwrap().as_uuid(),
        Some(real[2])
    );
    let second = row(1, &mut fixture);
    assert_eq!(fixture.idl().read(second, many).unwrap().len(), 3);
}

#[test]
fn a_failed_verification_is_tried_again() {
    let mut fixture = Fixture::with_client();
    let i = fixture.column("simple", "i");
    let s = fixture.column("simple", "s");
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[("i", integer(1))])));
    let row = row.unwrap();
    let where_row = format!(r#""where":[["_uuid","==",["uuid","{}"]]]"#, row.uuid);
    fixture.idl().begin().unwrap();
    fixture.idl().verify(row, i).unwrap();
    fixture.idl().write(row, s, string("x")).unwrap();
    fixture.server.transact(&format!(
        r#"{{"op":"update","table":"simple",{where_row},"row":{{"i":2}}}}"#
    ));
    let txn = fixture.idl().open_txn().unwrap();
    fixture.idl().commit().unwrap();
    fixture.run();
    assert_eq!(fixture.idl().status(txn), Some(Status::TryAgain));
    fixture.succeed(|fixture| {
        fixture.idl().verify(row, i).unwrap();
        fixture.idl().write(row, s, string("x")).unwrap();
    });
    assert_eq!(
        (fixture.value(row, "i"), fixture.value(row, "s")),
        ("2".into(), "\"x\"".into())
    );
    // Verifying an untouched row is sent along with a change elsewhere, and applies to that
    // transaction only.
    fixture.succeed(|fixture| {
        fixture.idl().verify(row, i).unwrap();
        fixture.insert("simple", &[]);
    });
    assert!(fixture.last_operations().contains(r#""op":"wait""#));
    fixture.succeed(|fixture| fixture.idl().write(row, s, string("y")).unwrap());
    assert!(!fixture.last_operations().contains(r#""op":"wait""#));
}

#[test]
fn what_changes_nothing_is_not_sent() {
    let mut fixture = Fixture::with_client();
    let (name, children) = (
        fixture.column("parent", "name"),
        fixture.column("parent", "children"),
    );
    let mut rows = Vec::new();
    fixture.succeed(|fixture| {
        let child = fixture.insert("child", &[("name", string("c"))]);
        let parent = fixture.insert("parent", &[("children", references(&[child]))]);
        rows.extend([child, parent]);
    });
    let (child, parent) = (rows[0], rows[1]);
    fixture.forget_sent();
    type Act = Box<dyn FnOnce(&mut Fixture)>;
    let acts: Vec<Act> = vec![
        Box::new(|_| {}),
        Box::new(move |fixture| fixture.idl().write(parent, name, string("")).unwrap()),
        Box::new(move |fixture| fixture.idl().verify(parent, children).unwrap()),
        Box::new(|fixture| fixture.idl().add_comment("nothing").unwrap()),
        Box::new(|fixture| fixture.idl().set_dry_run().unwrap()),
        Box::new(move |fixture| fixture.idl().delete(child).unwrap()),
        Box::new(|fixture| {
            let row = fixture.insert("simple", &[]);
            fixture.idl().delete(row).unwrap();
        }),
        Box::new(|fixture| {
            let i = fixture.column("simple", "i");
            let row = fixture.insert("simple", &[]);
            fixture.idl().increment(row, i, false).unwrap();
            fixture.idl().delete(row).unwrap();
        }),
    ];
    for act in acts {
        let (_, status) = fixture.transact(act);
        assert_eq!(status, Status::Unchanged);
    }
    assert_eq!(fixture.peers[0].sent, Vec::<String>::new());
    assert!(fixture.idl().row(child.table, child.uuid).is_some());
}

#[test]
fn aborting_and_forgetting_leave_no_trace() {
    let mut fixture = Fixture::with_client();
    let s = fixture.column("simple", "s");
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[("s", string("a"))])));
    let row = row.unwrap();
    for is_forgotten in [false, true] {
        let txn = fixture.idl().begin().unwrap();
        assert_eq!(fixture.idl().begin(), Err(Misuse::TransactionOpen));
        fixture.idl().write(row, s, string("b")).unwrap();
        fixture.insert("simple", &[]);
        fixture.idl().delete(row).unwrap();
        assert_eq!(
            fixture.idl().write(row, s, string("c")),
            Err(Misuse::RowGone)
        );
        assert_eq!(fixture.idl().read(row, s), None);
        if is_forgotten {
            fixture.idl().forget(txn);
        } else {
            fixture.idl().abort(txn);
            assert_eq!(fixture.idl().status(txn), Some(Status::Aborted));
        }
        assert_eq!(fixture.value(row, "s"), "\"a\"");
        assert_eq!(fixture.idl().row_count(row.table), 1);
    }
    // After the commit, aborting only stops waiting for the reply.
    let txn = fixture.idl().begin().unwrap();
    fixture.idl().write(row, s, string("d")).unwrap();
    fixture.idl().commit().unwrap();
    fixture.idl().abort(txn);
    fixture.run();
    assert_eq!(fixture.idl().status(txn), Some(Status::Aborted));
    assert_eq!(fixture.value(row, "s"), "\"d\"");
}

#[test]
fn counters_and_comments() {
    let mut fixture = Fixture::with_client();
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    let mut row = None;
    let txn = fixture.succeed(|fixture| {
        let new = fixture.insert("simple", &[("i", integer(-1))]);
        fixture.idl().increment(new, i, false).unwrap();
        assert_eq!(
            fixture.idl().increment(new, i, false),
            Err(Misuse::SecondIncrement)
        );
        assert_eq!(
            fixture.idl().increment(new, s, false),
            Err(Misuse::WrongType)
        );
        fixture.idl().add_comment("one").unwrap();
        fixture.idl().add_comment("two").unwrap();
        row = Some(new);
    });
    assert_eq!(fixture.idl().incremented_to(txn), Some(0));
    assert!(
        fixture
            .last_operations()
            .ends_with(r#"{"op":"comment","comment":"one\ntwo"}"#)
    );
    let row = row.unwrap();
    let (_, status) = fixture.transact(|fixture| fixture.idl().increment(row, i, false).unwrap());
    assert_eq!(status, Status::Unchanged);
    let txn = fixture.succeed(|fixture| fixture.idl().increment(row, i, true).unwrap());
    assert_eq!(fixture.idl().incremented_to(txn), Some(1));
    assert_eq!(fixture.value(row, "i"), "1");
}

#[test]
fn locks_are_asserted() {
    let mut fixture = Fixture::with_client();
    let other = fixture.add(corvid_idl::Class::new(corvid_data::Arc::new(
        crate::fixture::schema(),
    )));
    fixture.peers[other].idl.session().set_lock(0, Some("l"));
    fixture.run();
    fixture.idl().session().set_lock(0, Some("l"));
    fixture.run();
    assert!(fixture.idl().session().is_lock_contended());
    fixture.forget_sent();
    let (_, status) = fixture.transact(|fixture| {
        fixture.insert("simple", &[]);
    });
    assert_eq!(
        (status, fixture.peers[0].sent.len()),
        (Status::NotLocked, 0)
    );
    let seqno = fixture.idl().change_seqno();
    fixture.peers[other].idl.session().set_lock(0, None);
    fixture.run();
    assert!(fixture.idl().change_seqno() > seqno);
    fixture.succeed(|fixture| {
        fixture.insert("simple", &[]);
    });
    assert!(
        fixture
            .last_operations()
            .starts_with(r#"{"op":"assert","lock":"l"},"#)
    );
    // A dry run with a lock succeeds and stores nothing.
    let simple = fixture.table("simple");
    let txn = fixture.succeed(|fixture| {
        fixture.insert("simple", &[]);
        fixture.idl().set_dry_run().unwrap();
    });
    assert!(fixture.last_operations().ends_with(r#"{"op":"abort"}"#));
    assert_eq!(fixture.idl().row_count(simple), 1);
    assert_eq!(fixture.idl().txn_error(txn), None);
}

#[test]
fn errors_are_told_in_the_words_of_the_server() {
    let mut fixture = Fixture::with_client();
    let table = fixture.table("unique");
    fixture.succeed(|fixture| {
        fixture.insert("unique", &[("i", integer(1))]);
    });
    let (txn, status) = fixture.transact(|fixture| {
        fixture.insert("unique", &[("i", integer(1))]);
    });
    assert_eq!(status, Status::Error);
    let error = fixture.idl().txn_error(txn).unwrap().to_owned();
    let json = Value::parse(error.as_bytes()).unwrap();
    assert_eq!(
        json.get("error").and_then(Value::as_str),
        Some("constraint violation")
    );
    assert_eq!(json.to_string(), error, "compact, members sorted");
    assert_eq!(fixture.idl().row_count(table), 1);
}

#[test]
fn races_for_the_only_row_are_tried_again() {
    let mut fixture = Fixture::with_client();
    fixture.idl().begin().unwrap();
    fixture.insert("singleton", &[("name", string("mine"))]);
    fixture
        .server
        .transact(r#"{"op":"insert","table":"singleton","row":{"name":"theirs"}}"#);
    let txn = fixture.idl().open_txn().unwrap();
    fixture.idl().commit().unwrap();
    fixture.run();
    assert_eq!(fixture.idl().status(txn), Some(Status::TryAgain));
    // Replacing the existing row needs no wait.
    let table = fixture.table("singleton");
    let theirs = fixture.idl().rows(table).next().unwrap();
    fixture.succeed(|fixture| {
        fixture.idl().delete(theirs).unwrap();
        fixture.insert("singleton", &[]);
    });
    assert!(!fixture.last_operations().contains("wait"));
}

#[test]
fn a_lost_connection_leaves_it_open_what_happened() {
    let mut fixture = Fixture::with_client();
    fixture.peers[0].is_deaf = true;
    let (txn, status) = fixture.transact(|fixture| {
        fixture.insert("simple", &[]);
    });
    assert_eq!(
        (status, fixture.idl().outstanding_count()),
        (Status::Incomplete, 1)
    );
    fixture.peers[0].is_deaf = false;
    fixture.cut(0);
    assert_eq!(fixture.idl().status(txn), Some(Status::TryAgain));
    let (_, status) = fixture.transact(|fixture| {
        fixture.insert("simple", &[]);
    });
    assert_eq!(status, Status::TryAgain);
    fixture.run_until_connected();
    let simple = fixture.table("simple");
    assert_eq!(
        fixture.idl().row_count(simple),
        1,
        "the first one was carried out"
    );
}

#[test]
fn what_does_not_fit_is_refused_at_once() {
    let mut fixture = Fixture::with_client();
    let column = |name: &str, fixture: &Fixture| fixture.column("simple", name);
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[("fixed", string("f"))])));
    let row = row.unwrap();
    let (s, few, fixed, i) = (
        column("s", &fixture),
        column("few", &fixture),
        column("fixed", &fixture),
        column("i", &fixture),
    );
    assert_eq!(
        fixture.idl().write(row, s, string("x")),
        Err(Misuse::NoTransaction)
    );
    let txn = fixture.idl().begin().unwrap();
    assert_eq!(
        fixture.idl().write(row, s, integer(1)),
        Err(Misuse::WrongType)
    );
    assert_eq!(
        fixture.idl().write(row, fixed, string("g")),
        Err(Misuse::Immutable)
    );
    assert!(matches!(
        fixture.idl().write(row, few, integer(10)),
        Err(Misuse::Constraint(_))
    ));
    assert!(matches!(
        fixture.idl().write(row, few, integers(&[1, 2, 3, 4])),
        Err(Misuse::Constraint(_))
    ));
    assert!(matches!(
        fixture.idl().write(row, i, Datum::empty()),
        Err(Misuse::Constraint(_))
    ));
    // A server closes the connection at a NUL.
    assert!(matches!(
        fixture.idl().write(row, s, string("a\0b")),
        Err(Misuse::Constraint(_))
    ));
    let other = fixture.column("maps", "name");
    assert_eq!(
        fixture.idl().write(row, other, string("x")),
        Err(Misuse::WrongTable)
    );
    assert!(fixture.idl().is_mutable(row, s) && !fixture.idl().is_mutable(row, fixed));
    fixture.idl().set_read_only(true).unwrap();
    assert_eq!(
        fixture.idl().write(row, s, string("x")),
        Err(Misuse::ReadOnly)
    );
    assert_eq!(fixture.idl().delete(row), Err(Misuse::ReadOnly));
    assert_eq!(fixture.idl().insert_new(s.table), Err(Misuse::ReadOnly));
    assert_eq!(
        fixture.idl().handle(0, corvid_session::Input::Tick),
        Err(Misuse::TransactionOpen)
    );
    fixture.idl().abort(txn);
}

#[test]
fn a_server_judges_what_is_left_to_it() {
    let mut fixture = Fixture::with_client();
    let column = |name: &str, fixture: &Fixture| fixture.column("simple", name);
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[("fixed", string("f"))])));
    let row = row.unwrap();
    let (s, few, fixed, i) = (
        column("s", &fixture),
        column("few", &fixture),
        column("fixed", &fixture),
        column("i", &fixture),
    );
    for (column, value, expected) in [
        (
            few,
            integer(10),
            "10 is greater than maximum allowed value 9",
        ),
        (
            few,
            integers(&[1, 2, 3, 4]),
            "must have 0 to 3 members but 4 are present",
        ),
        (
            i,
            Datum::empty(),
            "must have exactly one member but 0 are present",
        ),
        (fixed, string("g"), "immutable"),
    ] {
        let (txn, status) = fixture.transact(|fixture| {
            fixture.idl().defer_checks_to_server().unwrap();
            fixture.idl().write(row, s, string("x")).unwrap();
            fixture.idl().write(row, column, value.clone()).unwrap();
            assert_eq!(fixture.idl().read(row, column), Some(value.clone()));
        });
        assert_eq!(status, Status::Error);
        let error = fixture.idl().txn_error(txn).unwrap();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fixture.value(row, "s"), "\"\"", "nothing was committed");
    }
    let (txn, status) = fixture.transact(|fixture| {
        fixture.idl().defer_checks_to_server().unwrap();
        fixture
            .idl()
            .add_value(row, few, Atom::Integer(10))
            .unwrap();
    });
    assert_eq!(status, Status::Error);
    let error = fixture.idl().txn_error(txn).unwrap();
    assert!(
        error.contains("10 is greater than maximum allowed value 9"),
        "{error}"
    );
    // No server accepts a value of another type for this column.
    let txn = fixture.idl().begin().unwrap();
    fixture.idl().defer_checks_to_server().unwrap();
    assert_eq!(
        fixture.idl().write(row, s, integer(1)),
        Err(Misuse::WrongType)
    );
    assert!(matches!(
        fixture.idl().write(row, s, string("a\0b")),
        Err(Misuse::Constraint(_))
    ));
    fixture.idl().abort(txn);
    // The next transaction checks again.
    fixture.idl().begin().unwrap();
    assert!(fixture.idl().write(row, few, integer(10)).is_err());
}

#[test]
fn a_transaction_that_is_refused_here_sends_nothing() {
    let mut fixture = Fixture::with_client();
    let error = |details: &str| WireError::new(Tag::ConstraintViolation, details);
    assert_eq!(
        fixture.idl().refuse(error("none")),
        Err(Misuse::NoTransaction)
    );
    fixture.forget_sent();
    let (txn, status) = fixture.transact(|fixture| {
        fixture.insert("simple", &[("i", integer(1))]);
        fixture.idl().refuse(error("the first")).unwrap();
        fixture.idl().refuse(error("the second")).unwrap();
    });
    assert_eq!(status, Status::Error);
    let expected = r#"{"details":"the first","error":"constraint violation"}"#;
    assert_eq!(fixture.idl().txn_error(txn), Some(expected));
    let refused = fixture.idl().txn_refused(txn).unwrap();
    assert_eq!(refused.tag(), Some(Tag::ConstraintViolation));
    assert_eq!(fixture.peers[0].sent, Vec::<String>::new());
    let simple = fixture.table("simple");
    assert_eq!(fixture.idl().row_count(simple), 0);
    // A reason that a retry may cure takes precedence, as on a server.
    fixture.cut(0);
    let (_, status) = fixture.transact(|fixture| fixture.idl().refuse(error("x")).unwrap());
    assert_eq!(status, Status::TryAgain);
}

#[test]
fn elements_of_new_rows_need_no_replicated_column() {
    let mut fixture = Fixture::with_class(|class| {
        let ia = class.column("simple", "ia").unwrap();
        class.omit(ia);
    });
    let ia = fixture.column("simple", "ia");
    let mut row = None;
    fixture.succeed(|fixture| {
        let new = fixture.insert("simple", &[]);
        for value in [1, 2, 3] {
            fixture
                .idl()
                .add_value(new, ia, Atom::Integer(value))
                .unwrap();
        }
        fixture
            .idl()
            .remove_value(new, ia, Atom::Integer(2))
            .unwrap();
        row = Some(new);
    });
    assert!(fixture.last_operations().contains(r#""ia":["set",[1,3]]"#));
    fixture.idl().begin().unwrap();
    assert_eq!(
        fixture.idl().add_value(row.unwrap(), ia, Atom::Integer(4)),
        Err(Misuse::NotReplicated)
    );
}

#[test]
fn raw_operations_come_last() {
    let mut fixture = Fixture::with_client();
    let simple = fixture.table("simple");
    fixture.succeed(|fixture| {
        fixture.insert("simple", &[("i", integer(1))]);
        let update = br#"{"op":"update","table":"simple","where":[["i","==",1]],"row":{"i":2}}"#;
        let update = Value::parse(update).unwrap();
        fixture.idl().add_operation(&update).unwrap();
    });
    let row = fixture.idl().rows(simple).next().unwrap();
    assert_eq!(fixture.value(row, "i"), "2");
}

#[test]
fn a_success_is_told_when_it_can_be_seen() {
    let mut fixture = Fixture::with_client();
    let i = fixture.column("simple", "i");
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[("i", integer(1))])));
    let row = row.unwrap();
    // A conversion ends the monitor before the transaction arrives, so no update reports the
    // change.
    let commit_after_conversion = |fixture: &mut Fixture, schema: &Schema, value: i64| {
        fixture.peers[0].is_deaf = true;
        fixture.server.convert(schema);
        let txn = fixture.idl().begin().unwrap();
        fixture.idl().write(row, i, integer(value)).unwrap();
        assert_eq!(fixture.idl().commit(), Ok(Status::Incomplete));
        fixture.run();
        fixture.hear_waiting();
        assert_eq!(fixture.idl().outstanding_count(), 0, "it was answered");
        assert_eq!(fixture.idl().status(txn), Some(Status::Incomplete));
        txn
    };
    let txn = commit_after_conversion(&mut fixture, &narrow_schema(), 2);
    assert_eq!(fixture.value(row, "i"), "1");
    fixture.peers[0].is_deaf = false;
    fixture.run();
    assert_eq!(fixture.idl().status(txn), Some(Status::Success));
    assert_eq!(fixture.value(row, "i"), "2");
    // A client that loses the connection gets the outcome at once.
    let txn = commit_after_conversion(&mut fixture, &schema(), 3);
    fixture.cut(0);
    assert_eq!(fixture.idl().status(txn), Some(Status::Success));
}
