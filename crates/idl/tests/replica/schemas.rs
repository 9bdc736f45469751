//! A server that has less than the client knows, and conditions on what it lacks.

use corvid_data::Arc;
use corvid_idl::Class;
use corvid_session::{Clause, Condition, Function};

use crate::bed::{Bed, integer, narrow_schema, schema, string};

fn or(clauses: &[(&str, corvid_data::Datum)]) -> Condition {
    let mut condition = Condition::none();
    for (column, value) in clauses {
        condition.add(Clause::new(column, Function::Equal, value, false));
    }
    condition
}

/// A client that knows the whole schema, with conditions, and a server without `unique`, `simple.s` and some more.
fn narrow(history: bool, conditions: &[(&str, Condition)]) -> (Bed, u64) {
    let mut bed = Bed::serving(narrow_schema(), history);
    let class = Class::everything(Arc::new(schema()));
    let mut promise = 0;
    bed.add_with(class, |idl| {
        for (table, condition) in conditions {
            let table = idl.class().table(table).expect("a table");
            promise = promise.max(idl.set_condition(0, table, condition.clone()));
        }
    });
    (bed, promise)
}

fn insert_some(bed: &mut Bed) {
    bed.server.transact(
        r#"{"op":"insert","table":"simple","row":{"i":1}},
           {"op":"insert","table":"simple","row":{"i":2}},
           {"op":"insert","table":"maps","row":{}}"#,
    );
    bed.run();
}

#[test]
fn what_the_server_lacks_is_named_and_left_out() {
    let (mut bed, _) = narrow(false, &[]);
    let notes = bed.peers[0].notes.join("\n");
    for note in [
        "idltest database lacks unique table (database needs upgrade?)",
        "simple table in idltest database lacks s column (database needs upgrade?)",
        "maps table in idltest database lacks umap column (database needs upgrade?)",
        "link table in idltest database lacks many column (database needs upgrade?)",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
    insert_some(&mut bed);
    let (simple, unique, s) = (
        bed.table("simple"),
        bed.table("unique"),
        bed.column("simple", "s"),
    );
    let idl = bed.idl();
    assert_eq!((idl.row_count(simple), idl.row_count(unique)), (2, 0));
    assert!(idl.server_has_table(simple) && !idl.server_has_table(unique));
    assert!(idl.server_column(s).is_none());
    // The database is upgraded, and goes back.
    bed.server.convert(&schema());
    bed.run();
    assert!(bed.idl().server_has_table(unique) && bed.idl().server_column(s).is_some());
    let row = bed.idl().rows(simple).next().expect("one");
    bed.succeed(|bed| bed.idl().write(row, s, string("x")).expect("it fits"));
    assert_eq!(bed.value(row, "s"), "\"x\"");
    bed.server.convert(&narrow_schema());
    bed.run();
    assert!(!bed.idl().server_has_table(unique) && bed.idl().server_column(s).is_none());
    assert_eq!(bed.value(row, "s"), "\"\"");
}

#[test]
fn conditions_set_before_connecting_come_back_with_their_columns() {
    for history in [false, true] {
        let wanted = or(&[("s", string("x")), ("i", integer(1))]);
        let (mut bed, promise) = narrow(
            history,
            &[
                ("simple", wanted),
                ("unique", Condition::none()),
                ("maps", Condition::none()),
            ],
        );
        assert!(
            bed.idl().condition_seqno() >= promise,
            "it went with the monitor request"
        );
        let sent = bed.peers[0].sent.join("\n");
        assert!(sent.contains(r#""where":[["i","==",1]]"#), "{sent}");
        assert!(!sent.contains("monitor_cond_change"));
        insert_some(&mut bed);
        let (simple, maps, unique) = (bed.table("simple"), bed.table("maps"), bed.table("unique"));
        let counts = |bed: &mut Bed| [simple, maps, unique].map(|table| bed.idl().row_count(table));
        assert_eq!(counts(&mut bed), [1, 0, 0]);
        bed.server.convert(&schema());
        bed.run();
        bed.server.transact(
            r#"{"op":"insert","table":"simple","row":{"i":3,"s":"x"}},
               {"op":"insert","table":"unique","row":{"i":3}}"#,
        );
        bed.run();
        assert_eq!(counts(&mut bed), [2, 0, 0]);
    }
}

#[test]
fn conditions_of_columns_that_are_all_missing_let_nothing_in() {
    let (mut bed, _) = narrow(false, &[("simple", or(&[("s", string("x"))]))]);
    insert_some(&mut bed);
    let simple = bed.table("simple");
    assert_eq!(bed.idl().row_count(simple), 0);
}

#[test]
fn conditions_set_while_connected_are_restricted_too() {
    let (mut bed, _) = narrow(false, &[]);
    insert_some(&mut bed);
    let (simple, unique) = (bed.table("simple"), bed.table("unique"));
    bed.forget_sent();
    let seqno = bed.idl().condition_seqno();
    let promise = bed.idl().set_condition(0, unique, Condition::none());
    bed.run();
    assert_eq!((promise, bed.peers[0].sent.len()), (seqno, 0));
    let wanted = or(&[("s", string("x")), ("i", integer(2))]);
    let promise = bed.idl().set_condition(0, simple, wanted);
    bed.run();
    assert!(promise > seqno && bed.idl().condition_seqno() >= promise);
    assert!(bed.peers[0].sent[0].contains(r#"{"simple":[{"where":[["i","==",2]]}]}"#));
    assert_eq!(bed.idl().row_count(simple), 1);
    let promise = bed
        .idl()
        .set_condition(0, simple, or(&[("s", string("x"))]));
    bed.run();
    assert!(bed.idl().condition_seqno() >= promise);
    assert_eq!(bed.idl().row_count(simple), 0);
}

#[test]
fn a_condition_that_the_server_refuses_makes_a_new_connection() {
    let mut bed = Bed::with_client();
    let simple = bed.table("simple");
    let seqno = bed.idl().session_state().session_seqno();
    // Such a clause cannot be had from typed columns.
    bed.idl()
        .set_condition(0, simple, or(&[("i", string("one"))]));
    bed.run();
    assert!(bed.idl().session_state().session_seqno() > seqno);
    assert!(!bed.idl().session_state().is_monitoring());
    let promise = bed.idl().set_condition(0, simple, or(&[("i", integer(1))]));
    bed.run_until_connected();
    bed.run();
    assert!(bed.idl().condition_seqno() >= promise);
    insert_some(&mut bed);
    assert_eq!(bed.idl().row_count(simple), 1);
}

#[test]
fn a_condition_change_that_is_lost_is_made_good() {
    for history in [false, true] {
        let mut bed = Bed::new(history);
        bed.add(Class::everything(Arc::new(schema())));
        insert_some(&mut bed);
        let simple = bed.table("simple");
        bed.peers[0].is_deaf = true;
        bed.idl().set_condition(0, simple, or(&[("i", integer(2))]));
        bed.run();
        let promise = bed.idl().set_condition(0, simple, or(&[("i", integer(1))]));
        bed.cut(0);
        bed.peers[0].is_deaf = false;
        bed.server
            .transact(r#"{"op":"update","table":"simple","where":[["i","==",2]],"row":{"i":9}}"#);
        bed.run_until_connected();
        bed.run();
        assert!(bed.idl().condition_seqno() >= promise);
        assert_eq!(bed.idl().row_count(simple), 1);
        bed.server
            .transact(r#"{"op":"insert","table":"simple","row":{"i":1,"s":"later"}}"#);
        bed.run();
        assert_eq!(bed.idl().row_count(simple), 2);
        bed.idl().check_consistency().expect("settled");
    }
}
