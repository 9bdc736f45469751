//! A server whose schema lacks parts of the client's, and conditions on the missing parts.

use corvid_data::Arc;
use corvid_idl::{Class, Misuse};
use corvid_session::{Clause, Condition, Function};

use crate::fixture::{Fixture, integer, narrow_schema, schema, string};

fn or(clauses: &[(&str, corvid_data::Datum)]) -> Condition {
    let mut condition = Condition::none();
    for (column, value) in clauses {
        condition.add(Clause::new(column, Function::Equal, value, false));
    }
    condition
}

/// A client that knows the whole schema, with conditions, and a server without `unique`, `simple.s`
/// and some other columns.
fn narrow(history: bool, conditions: &[(&str, Condition)]) -> (Fixture, u64) {
    let mut fixture = Fixture::serving(narrow_schema(), history);
    let class = Class::everything(Arc::new(schema()));
    let mut promise = 0;
    fixture.add_with(class, |idl| {
        for (table, condition) in conditions {
            let table = idl.class().table(table).expect("a table");
            promise = promise.max(
                idl.set_condition(0, table, condition.clone())
                    .expect("accepted"),
            );
        }
    });
    (fixture, promise)
}

fn insert_some(fixture: &mut Fixture) {
    fixture.server.transact(
        r#"{"op":"insert","table":"simple","row":{"i":1}},
           {"op":"insert","table":"simple","row":{"i":2}},
           {"op":"insert","table":"maps","row":{}}"#,
    );
    fixture.run();
}

#[test]
fn what_the_server_lacks_is_named_and_left_out() {
    let (mut fixture, _) = narrow(false, &[]);
    let log = fixture.peers[0].log.join("\n");
    for message in [
        "idltest database lacks unique table (database needs upgrade?)",
        "simple table in idltest database lacks s column (database needs upgrade?)",
        "maps table in idltest database lacks umap column (database needs upgrade?)",
        "link table in idltest database lacks many column (database needs upgrade?)",
    ] {
        assert!(log.contains(message), "{log}");
    }
    insert_some(&mut fixture);
    let (simple, unique, s) = (
        fixture.table("simple"),
        fixture.table("unique"),
        fixture.column("simple", "s"),
    );
    let idl = fixture.idl();
    assert_eq!((idl.row_count(simple), idl.row_count(unique)), (2, 0));
    assert!(idl.server_has_table(simple) && !idl.server_has_table(unique));
    assert!(idl.server_column(s).is_none());
    // The database is upgraded, and downgraded again.
    fixture.server.convert(&schema());
    fixture.run();
    assert!(fixture.idl().server_has_table(unique) && fixture.idl().server_column(s).is_some());
    let row = fixture.idl().rows(simple).next().expect("one");
    fixture.succeed(|fixture| fixture.idl().write(row, s, string("x")).expect("it fits"));
    assert_eq!(fixture.value(row, "s"), "\"x\"");
    fixture.server.convert(&narrow_schema());
    fixture.run();
    assert!(!fixture.idl().server_has_table(unique) && fixture.idl().server_column(s).is_none());
    assert_eq!(fixture.value(row, "s"), "\"\"");
}

#[test]
fn conditions_set_before_connecting_come_back_with_their_columns() {
    for history in [false, true] {
        let wanted = or(&[("s", string("x")), ("i", integer(1))]);
        let (mut fixture, promise) = narrow(
            history,
            &[
                ("simple", wanted),
                ("unique", Condition::none()),
                ("maps", Condition::none()),
            ],
        );
        assert!(
            fixture.idl().condition_seqno() >= promise,
            "it went with the monitor request"
        );
        let sent = fixture.peers[0].sent.join("\n");
        assert!(sent.contains(r#""where":[["i","==",1]]"#), "{sent}");
        assert!(!sent.contains("monitor_cond_change"));
        insert_some(&mut fixture);
        let (simple, maps, unique) = (
            fixture.table("simple"),
            fixture.table("maps"),
            fixture.table("unique"),
        );
        let counts = |fixture: &mut Fixture| {
            [simple, maps, unique].map(|table| fixture.idl().row_count(table))
        };
        assert_eq!(counts(&mut fixture), [1, 0, 0]);
        fixture.server.convert(&schema());
        fixture.run();
        fixture.server.transact(
            r#"{"op":"insert","table":"simple","row":{"i":3,"s":"x"}},
               {"op":"insert","table":"unique","row":{"i":3}}"#,
        );
        fixture.run();
        assert_eq!(counts(&mut fixture), [2, 0, 0]);
    }
}

#[test]
fn conditions_of_columns_that_are_all_missing_let_nothing_in() {
    let (mut fixture, _) = narrow(false, &[("simple", or(&[("s", string("x"))]))]);
    insert_some(&mut fixture);
    let simple = fixture.table("simple");
    assert_eq!(fixture.idl().row_count(simple), 0);
}

#[test]
fn conditions_set_while_connected_are_restricted_too() {
    let (mut fixture, _) = narrow(false, &[]);
    insert_some(&mut fixture);
    let (simple, unique) = (fixture.table("simple"), fixture.table("unique"));
    fixture.forget_sent();
    let seqno = fixture.idl().condition_seqno();
    let promise = fixture
        .idl()
        .set_condition(0, unique, Condition::none())
        .expect("accepted");
    fixture.run();
    assert_eq!((promise, fixture.peers[0].sent.len()), (seqno, 0));
    let wanted = or(&[("s", string("x")), ("i", integer(2))]);
    let promise = fixture
        .idl()
        .set_condition(0, simple, wanted)
        .expect("accepted");
    fixture.run();
    assert!(promise > seqno && fixture.idl().condition_seqno() >= promise);
    assert!(fixture.peers[0].sent[0].contains(r#"{"simple":[{"where":[["i","==",2]]}]}"#));
    assert_eq!(fixture.idl().row_count(simple), 1);
    let promise = fixture
        .idl()
        .set_condition(0, simple, or(&[("s", string("x"))]))
        .expect("accepted");
    fixture.run();
    assert!(fixture.idl().condition_seqno() >= promise);
    assert_eq!(fixture.idl().row_count(simple), 0);
}

#[test]
fn a_condition_that_the_server_would_refuse_is_an_error_of_the_call() {
    let mut fixture = Fixture::with_client();
    let simple = fixture.table("simple");
    let seqno = fixture.idl().session_state().session_seqno();
    // Typed columns cannot build such a clause.
    let refused = fixture
        .idl()
        .set_condition(0, simple, or(&[("i", string("one"))]));
    assert!(matches!(refused, Err(Misuse::Condition(_))), "{refused:?}");
    let mut ordered = Condition::none();
    ordered.add(Clause::new("s", Function::Less, &string("zzz"), false));
    let refused = fixture.idl().set_condition(0, simple, ordered);
    let error = refused.expect_err("a string has no order").to_string();
    let text = "Type mismatch: \"<\" operator may not be applied to column s of type string.";
    assert_eq!(error, text);
    let promise = fixture
        .idl()
        .set_condition(0, simple, or(&[("i", integer(1))]))
        .expect("accepted");
    fixture.run();
    assert!(fixture.idl().condition_seqno() >= promise);
    assert_eq!(fixture.idl().session_state().session_seqno(), seqno);
    insert_some(&mut fixture);
    assert_eq!(fixture.idl().row_count(simple), 1);
}

#[test]
fn a_condition_change_that_is_lost_is_made_good() {
    for history in [false, true] {
        let mut fixture = Fixture::new(history);
        fixture.add(Class::everything(Arc::new(schema())));
        insert_some(&mut fixture);
        let simple = fixture.table("simple");
        fixture.peers[0].is_deaf = true;
        fixture
            .idl()
            .set_condition(0, simple, or(&[("i", integer(2))]))
            .expect("accepted");
        fixture.run();
        let promise = fixture
            .idl()
            .set_condition(0, simple, or(&[("i", integer(1))]))
            .expect("accepted");
        fixture.cut(0);
        fixture.peers[0].is_deaf = false;
        fixture
            .server
            .transact(r#"{"op":"update","table":"simple","where":[["i","==",2]],"row":{"i":9}}"#);
        fixture.run_until_connected();
        fixture.run();
        assert!(fixture.idl().condition_seqno() >= promise);
        assert_eq!(fixture.idl().row_count(simple), 1);
        fixture
            .server
            .transact(r#"{"op":"insert","table":"simple","row":{"i":1,"s":"later"}}"#);
        fixture.run();
        assert_eq!(fixture.idl().row_count(simple), 2);
        fixture.idl().check_consistency().expect("synchronized");
    }
}
