//! The contents of a replica: from the initial contents on, in every kind of column.

use corvid_data::Arc;
use corvid_idl::{Class, Idl, Status};
use corvid_session::{Clause, Condition, Function, Input, Output};

use crate::fixture::{Fixture, integer, schema, string};

#[test]
fn an_empty_database_is_told_once() {
    let mut fixture = Fixture::with_client();
    assert!(fixture.idl().has_ever_connected());
    assert_eq!(
        fixture.idl().change_seqno(),
        1,
        "one reply, and nothing in it"
    );
    let idl = fixture.idl();
    let tables: Vec<_> = idl.schema().iter().map(|(table, _)| table).collect();
    assert!(tables.iter().all(|table| idl.row_count(*table) == 0));
    fixture.run();
    assert_eq!(fixture.idl().change_seqno(), 1);
}

#[test]
fn contents_are_there_before_anything_is_done() {
    let mut fixture = Fixture::new(false);
    fixture.server.transact(
        r#"{"op":"insert","table":"simple","row":{"i":1}},{"op":"insert","table":"simple","row":{"i":2}}"#,
    );
    fixture.add(Class::everything(Arc::new(schema())));
    let simple = fixture.table("simple");
    assert_eq!(
        (
            fixture.idl().row_count(simple),
            fixture.idl().change_seqno()
        ),
        (2, 3)
    );
}

#[test]
fn every_kind_of_column_is_understood() {
    let mut fixture = Fixture::with_client();
    fixture.server.transact(
        r#"{"op":"insert","table":"link","uuid-name":"l","row":{"i":4}},
           {"op":"insert","table":"kinds","row":{}},
           {"op":"insert","table":"kinds","row":{"b":true,"r":-2.5,"u":["uuid","00000000-0000-0000-0000-000000000007"],
             "ba":false,"ra":["set",[1,0.5]],"sa":["set",["","ü","a"]],"e":"green",
             "ua":["uuid","00000000-0000-0000-0000-000000000008"],"refs":["map",[[2,["named-uuid","l"]]]],
             "notes":["map",[["k","v"],["",""]]]}}"#,
    );
    fixture.run();
    let (kinds, b) = (fixture.table("kinds"), fixture.column("kinds", "b"));
    let link = fixture.table("link");
    let link = fixture.idl().rows(link).next().expect("one");
    let rows: Vec<_> = fixture.idl().rows(kinds).collect();
    assert_eq!(rows.len(), 2);
    let zero = r#"["uuid","00000000-0000-0000-0000-000000000000"]"#;
    let reference = format!(r#"["map",[[2,["uuid","{}"]]]]"#, link.uuid);
    for row in rows {
        let is_full = fixture.idl().read(row, b).expect("held").as_boolean() == Some(true);
        for (name, default, value) in [
            ("r", "0", "-2.5"),
            (
                "u",
                zero,
                r#"["uuid","00000000-0000-0000-0000-000000000007"]"#,
            ),
            ("ba", r#"["set",[]]"#, "false"),
            ("ra", r#"["set",[]]"#, r#"["set",[0.5,1]]"#),
            ("sa", r#"["set",[]]"#, r#"["set",["","a","ü"]]"#),
            (
                "ua",
                r#"["set",[]]"#,
                r#"["uuid","00000000-0000-0000-0000-000000000008"]"#,
            ),
            ("e", r#"["set",[]]"#, r#""green""#),
            ("refs", r#"["map",[]]"#, reference.as_str()),
            ("notes", r#"["map",[]]"#, r#"["map",[["",""],["k","v"]]]"#),
        ] {
            let expected = if is_full { value } else { default };
            assert_eq!(fixture.value(row, name), expected, "{name}");
        }
    }
}

#[test]
fn several_rows_are_verified_and_changed_at_once() {
    let mut fixture = Fixture::with_client();
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    let mut rows = Vec::new();
    fixture.succeed(|fixture| {
        rows = (0..3)
            .map(|number| fixture.insert("simple", &[("i", integer(number))]))
            .collect();
    });
    fixture.succeed(|fixture| {
        for &row in &rows[..2] {
            for column in [i, s] {
                fixture.idl().verify(row, column).unwrap();
            }
            fixture.idl().write(row, s, string("both")).unwrap();
            fixture.idl().write(row, i, integer(9)).unwrap();
        }
    });
    assert_eq!(fixture.value(rows[1], "s"), "\"both\"");
    // Verifying a new row has no effect. Verifying a row that is also deleted holds.
    fixture.succeed(|fixture| {
        let new = fixture.insert("simple", &[]);
        fixture.idl().verify(new, i).unwrap();
        fixture.idl().write(new, i, integer(7)).unwrap();
        fixture.idl().verify(rows[0], i).unwrap();
        fixture.idl().delete(rows[2]).unwrap();
    });
    let sent = fixture.last_operations();
    assert_eq!(sent.matches(r#""op":"wait""#).count(), 1, "{sent}");
    assert_eq!(fixture.idl().row_count(i.table), 3);
}

#[test]
fn rows_of_a_unique_index_come_change_and_go() {
    let mut fixture = Fixture::with_client();
    let i = fixture.column("unique", "i");
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("unique", &[("i", integer(1))])));
    let row = row.unwrap();
    fixture.succeed(|fixture| fixture.idl().write(row, i, integer(2)).unwrap());
    fixture.succeed(|fixture| {
        fixture.idl().delete(row).unwrap();
        fixture.insert("unique", &[("i", integer(2))]);
    });
    assert_eq!(fixture.idl().row_count(i.table), 1);
}

#[test]
fn every_row_that_comes_or_goes_is_counted() {
    let mut fixture = Fixture::new(false);
    let mut class = Class::new(Arc::new(schema()));
    let ba = class.column("kinds", "ba").unwrap();
    class.add_column(ba);
    let maps = class.table("maps").unwrap();
    class.add_table(maps);
    fixture.add(class);
    // Covers rows at their defaults in tables without scalars, and a row of a table that is
    // monitored without columns.
    for table in ["kinds", "maps"] {
        let id = fixture.table(table);
        let seqno = fixture.idl().change_seqno();
        fixture.server.transact(&format!(
            r#"{{"op":"insert","table":"{table}","row":{{}}}}"#
        ));
        fixture.run();
        assert_eq!(
            (fixture.idl().change_seqno(), fixture.idl().table_seqnos(id)),
            (seqno + 1, [seqno + 1, 0, 0])
        );
        fixture.server.transact(&format!(
            r#"{{"op":"delete","table":"{table}","where":[]}}"#
        ));
        fixture.run();
        assert_eq!(
            fixture.idl().table_seqnos(id)[2],
            fixture.idl().change_seqno()
        );
        assert_eq!(fixture.idl().change_seqno(), seqno + 2);
    }
}

#[test]
fn a_lock_does_not_stand_in_for_contents() {
    let mut idl = Idl::new(Class::everything(Arc::new(schema())), 1);
    idl.session().set_lock(0, Some("l"));
    idl.session().set_remote(0, "unix:server", true);
    idl.handle(0, Input::Connected).unwrap();
    let mut lock = None;
    while let Some(output) = idl.poll_output() {
        if let Output::Send(bytes) = output {
            let text = String::from_utf8(bytes).expect("UTF-8");
            let id = text.split([':', ',']).nth(1).map(str::to_owned);
            lock = id.filter(|_| text.contains("\"lock\"")).or(lock);
        }
    }
    let id = lock.expect("it is asked for at once");
    let answer = format!(r#"{{"id":{id},"result":{{"locked":true}},"error":null}}"#);
    idl.handle(0, Input::Received(answer.as_bytes())).unwrap();
    assert!(idl.session_state().has_lock());
    assert!(!idl.has_ever_connected());
    assert_eq!(idl.change_seqno(), 0);
}

#[test]
fn a_condition_that_cannot_be_sent_causes_no_wakeups() {
    let mut fixture = Fixture::with_client();
    let simple = fixture.table("simple");
    fixture.peers[0].is_deaf = true;
    // The first is in flight; the second has to wait for its reply.
    fixture
        .idl()
        .set_condition(0, simple, Condition::none())
        .expect("accepted");
    fixture.run();
    let mut wanted = Condition::none();
    wanted.add(Clause::new("i", Function::Equal, &integer(1), false));
    let promise = fixture
        .idl()
        .set_condition(0, simple, wanted)
        .expect("accepted");
    fixture.run();
    assert_ne!(fixture.idl().poll_timeout(0), Some(0));
    fixture.peers[0].is_deaf = false;
    fixture.cut(0);
    fixture.run_until_connected();
    fixture.run();
    assert!(fixture.idl().condition_seqno() >= promise);
    let (_, status) = fixture.transact(|fixture| {
        fixture.insert("simple", &[("i", integer(1))]);
    });
    assert_eq!(
        (status, fixture.idl().row_count(simple)),
        (Status::Success, 1)
    );
}

#[test]
fn differences_longer_than_the_column_apply() {
    let mut fixture = Fixture::with_client();
    fixture
        .server
        .transact(r#"{"op":"insert","table":"simple","row":{"few":["set",[1,2,3]],"o":1}}"#);
    fixture.run();
    let simple = fixture.table("simple");
    let row = fixture.idl().rows(simple).next().expect("one");
    for (few, o) in [
        (r#"["set",[4,5,6]]"#, "2"),
        (r#"["set",[6,7,8]]"#, r#"["set",[]]"#),
        ("1", "5"),
        (r#"["set",[]]"#, "5"),
    ] {
        fixture.server.transact(&format!(
            r#"{{"op":"update","table":"simple","where":[],"row":{{"few":{few},"o":{o}}}}}"#
        ));
        fixture.run();
        assert_eq!(fixture.value(row, "few"), few);
        assert_eq!(fixture.value(row, "o"), o);
    }
}

#[test]
fn many_messages_take_several_turns() {
    let mut fixture = Fixture::with_client();
    fixture.peers[0].is_deaf = true;
    for number in 0..200 {
        fixture.server.transact(&format!(
            r#"{{"op":"insert","table":"simple","row":{{"i":{number}}}}}"#
        ));
    }
    let simple = fixture.table("simple");
    fixture.hear_waiting();
    let first = fixture.idl().row_count(simple);
    assert!(first > 0 && first <= 50, "{first}");
    assert_eq!(
        fixture.idl().poll_timeout(0),
        Some(0),
        "the rest is due at once"
    );
    fixture.peers[0].is_deaf = false;
    fixture.run();
    assert_eq!(fixture.idl().row_count(simple), 200);
    assert_eq!(fixture.idl().change_seqno(), 201);
}
