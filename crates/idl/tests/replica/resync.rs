//! The replica across lost connections, and columns that are not replicated.

use corvid_data::Arc;
use corvid_idl::{Class, Misuse, Resync, Status};
use corvid_session::{Clause, Condition, Function};

use crate::fixture::{Fixture, integer, integers, narrow_schema, schema, string};

/// While the client is away, one row stays, one changes, one is deleted and one is inserted.
fn miss_changes(fixture: &mut Fixture) {
    fixture.server.transact(
        r#"{"op":"insert","table":"simple","row":{"s":"stays"}},
           {"op":"insert","table":"simple","row":{"s":"changes","i":1,"ia":["set",[1,2]]}},
           {"op":"insert","table":"simple","row":{"s":"goes"}}"#,
    );
    fixture.run();
    fixture.idl().clear_changes();
    fixture.cut(0);
    fixture.server.transact(
        r#"{"op":"update","table":"simple","where":[["s","==","changes"]],"row":{"i":2,"ia":["set",[2,3]]}},
           {"op":"delete","table":"simple","where":[["s","==","goes"]]},
           {"op":"insert","table":"simple","row":{"s":"comes"}}"#,
    );
}

/// The tracked changes of `simple`: `+`, `-` or the changed columns, with `s`.
fn told(fixture: &mut Fixture) -> Vec<String> {
    let (table, s) = (fixture.table("simple"), fixture.column("simple", "s"));
    let idl = fixture.idl();
    let mut told: Vec<String> = (idl.changes(table).iter())
        .map(|change| {
            let row = corvid_idl::RowId {
                table,
                uuid: change.uuid,
            };
            let s = idl.read(row, s).expect("kept");
            let s = s.as_string().expect("a string").to_string();
            let kind = match (change.is_new, change.is_deleted) {
                (true, false) => "+".to_owned(),
                (false, true) => "-".to_owned(),
                (true, true) => "+-".to_owned(),
                (false, false) => (change.updated())
                    .map(|id| idl.schema().table(table).column(id).name.to_string())
                    .collect::<Vec<_>>()
                    .join(","),
            };
            format!("{kind} {s}")
        })
        .collect();
    told.sort();
    told
}

#[test]
fn a_full_download_is_told_as_what_changed() {
    for history in [false, true] {
        let mut fixture = Fixture::new(history);
        let mut class = Class::everything(Arc::new(schema()));
        class.track_all();
        fixture.add(class);
        miss_changes(&mut fixture);
        let table = fixture.table("simple");
        assert_eq!(
            fixture.idl().row_count(table),
            3,
            "untouched while disconnected"
        );
        fixture.run_until_connected();
        assert_eq!(told(&mut fixture), ["+ comes", "- goes", "i,ia changes"]);
        assert_eq!(
            (fixture.idl().resync_epoch(), fixture.idl().row_count(table)),
            (0, 3)
        );
        let sent = fixture.peers[0].sent.join("\n");
        let is_resumed = !sent
            .rsplit("monitor_cond_since")
            .next()
            .unwrap()
            .contains("00000000-0000-0000-0000-000000000000");
        assert_eq!(is_resumed, history);
    }
}

#[test]
fn or_as_a_new_beginning() {
    let mut fixture = Fixture::with_class(Class::track_all);
    fixture.idl().set_resync(Resync::Reload);
    let epoch = fixture.idl().resync_epoch();
    miss_changes(&mut fixture);
    fixture.run_until_connected();
    assert_eq!(told(&mut fixture), ["+ changes", "+ comes", "+ stays"]);
    assert_eq!(fixture.idl().resync_epoch(), epoch + 1);
}

#[test]
fn what_does_not_fit_is_fetched_anew() {
    let mut fixture = Fixture::with_class(Class::track_all);
    miss_changes(&mut fixture);
    fixture.run_until_connected();
    let (simple, link) = (fixture.table("simple"), fixture.table("link"));
    let here = fixture.idl().rows(simple).next().unwrap();
    let (nowhere, before) = (fixture.uuid(), fixture.value(here, "i"));
    // As if updates had been lost: changes to rows that the replica lacks, and inserts of rows that
    // it has.
    for misfit in [
        format!(r#""{nowhere}":{{"delete":null}}"#),
        format!(r#""{nowhere}":{{"modify":{{"i":7}}}}"#),
        format!(r#""{}":{{"insert":{{"i":7}}}}"#, here.uuid),
    ] {
        let seqno = fixture.idl().session_state().session_seqno();
        fixture.hear(&format!(
            r#"{{"id":null,"method":"update3","params":[["monid","idltest"],"{zero}",{{"simple":{{{misfit}}},"link":{{"{nowhere}":{{"insert":{{}}}}}}}}]}}"#,
            zero = "00000000-0000-0000-0000-000000000000",
        ));
        assert_eq!(fixture.idl().row_count(link), 0, "all or nothing");
        fixture.run_until_connected();
        assert!(fixture.idl().session_state().session_seqno() >= seqno + 2);
        assert_eq!(fixture.idl().row_count(simple), 3);
        assert_eq!(fixture.value(here, "i"), before);
    }
}

#[test]
fn modes_decide_what_is_held_and_what_is_told() {
    let mut fixture = Fixture::new(false);
    let mut class = Class::new(Arc::new(schema()));
    let column = |class: &Class, name: &str| class.column("simple", name).unwrap();
    let (i, s, ia, o) = (
        column(&class, "i"),
        column(&class, "s"),
        column(&class, "ia"),
        column(&class, "o"),
    );
    class.add_column(i);
    class.add_column(s);
    class.omit_alert(s);
    class.add_column(ia);
    class.set_write_changed_only(ia, true);
    let one = class.column("parent", "children").unwrap();
    class.add_column(one);
    class.set_strict(false);
    fixture.add(class);
    let (simple, child) = (fixture.table("simple"), fixture.table("child"));
    fixture.server.transact(
        r#"{"op":"insert","table":"simple","row":{"s":"a","i":1,"o":5}},
           {"op":"insert","table":"child","uuid-name":"c","row":{"name":"x"}},
           {"op":"insert","table":"parent","row":{"children":["named-uuid","c"]}},
           {"op":"insert","table":"maps","row":{}}"#,
    );
    fixture.run();
    let row = fixture.idl().rows(simple).next().unwrap();
    assert_eq!(fixture.value(row, "o"), r#"["set",[]]"#, "not held");
    assert_eq!(
        fixture.idl().row_count(child),
        1,
        "rows that may be referred to are"
    );
    let maps = fixture.table("maps");
    assert_eq!(fixture.idl().row_count(maps), 0);
    assert!(fixture.idl().server_has_table(maps));
    // A column without alerts changes silently.
    let seqno = fixture.idl().change_seqno();
    fixture
        .server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"s":"b"}}"#);
    fixture.run();
    assert_eq!(
        (
            fixture.idl().change_seqno(),
            fixture.value(row, "s").as_str()
        ),
        (seqno, "\"b\"")
    );
    fixture
        .server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"i":2}}"#);
    fixture.run();
    assert_eq!(fixture.idl().change_seqno(), seqno + 1);
    assert_eq!(fixture.idl().table_seqnos(simple)[1], seqno + 1);
    // Equal writes are sent with another change, except for columns without alerts and for those
    // that send only changes.
    fixture.succeed(|fixture| {
        let idl = fixture.idl();
        idl.write(row, s, string("b")).unwrap();
        idl.write(row, ia, integers(&[])).unwrap();
        idl.write(row, i, integer(2)).unwrap();
        assert_eq!(idl.write(row, o, integer(1)), Err(Misuse::NotReplicated));
        let new = fixture.insert("simple", &[("o", integer(9))]);
        assert_eq!(fixture.value(new, "o"), "9");
    });
    let sent = fixture.last_operations();
    assert!(
        sent.contains(r#""row":{"i":2}"#) && sent.contains(r#""row":{"o":9}"#),
        "{sent}"
    );
}

#[test]
fn conditions_bring_rows_in_and_out_of_sight() {
    let mut fixture = Fixture::new(false);
    let mut class = Class::everything(Arc::new(schema()));
    class.track_all();
    fixture.add(class);
    let (simple, i) = (fixture.table("simple"), fixture.column("simple", "i"));
    assert_eq!(
        fixture
            .idl()
            .set_condition(0, simple, Condition::all())
            .expect("accepted"),
        0
    );
    let promise = fixture
        .idl()
        .set_condition(0, simple, Condition::none())
        .expect("accepted");
    fixture.run();
    assert!(fixture.idl().condition_seqno() >= promise);
    fixture.server.transact(
        r#"{"op":"insert","table":"simple","row":{"i":1,"s":"one"}},
           {"op":"insert","table":"simple","row":{"i":2,"s":"two"}}"#,
    );
    fixture.run();
    assert_eq!(fixture.idl().row_count(simple), 0);
    let mut wanted = Condition::none();
    wanted.add(Clause::new("i", Function::Equal, &integer(2), false));
    let promise = fixture
        .idl()
        .set_condition(0, simple, wanted.clone())
        .expect("accepted");
    assert_eq!(
        fixture
            .idl()
            .set_condition(0, simple, wanted)
            .expect("accepted"),
        promise
    );
    fixture.run();
    assert!(fixture.idl().condition_seqno() >= promise);
    assert_eq!(told(&mut fixture), ["+ two"]);
    let row = fixture.idl().rows(simple).next().unwrap();
    fixture.idl().clear_changes();
    let (_, status) = fixture.transact(|fixture| fixture.idl().write(row, i, integer(3)).unwrap());
    assert_eq!(status, Status::Success);
    assert_eq!(told(&mut fixture), ["- two"]);
}

#[test]
fn tables_are_seen_through_conditions_of_their_own() {
    let mut fixture = Fixture::with_client();
    let (simple, link, maps) = (
        fixture.table("simple"),
        fixture.table("link"),
        fixture.table("maps"),
    );
    let clause = |name: &str, function, datum| Clause::new(name, function, &datum, false);
    let mut either = Condition::none();
    either.add(clause("i", Function::Equal, integer(1)));
    either.add(clause("s", Function::Equal, string("x")));
    let mut own = Condition::none();
    own.add(clause("i", Function::GreaterOrEqual, integer(5)));
    let idl = fixture.idl();
    idl.set_condition(0, simple, either).expect("accepted");
    idl.set_condition(0, link, own).expect("accepted");
    let promise = idl
        .set_condition(0, maps, Condition::none())
        .expect("accepted");
    fixture.run();
    assert!(fixture.idl().condition_seqno() >= promise);
    fixture.server.transact(
        r#"{"op":"insert","table":"simple","row":{"i":1}},
           {"op":"insert","table":"simple","row":{"i":2}},
           {"op":"insert","table":"simple","row":{"i":3,"s":"x"}},
           {"op":"insert","table":"maps","row":{}},
           {"op":"insert","table":"link","uuid-name":"a","row":{"i":4,"one":["named-uuid","a"]}},
           {"op":"insert","table":"link","row":{"i":5,"one":["named-uuid","a"]}}"#,
    );
    fixture.run();
    let counts =
        |fixture: &mut Fixture| [simple, link, maps].map(|table| fixture.idl().row_count(table));
    assert_eq!(counts(&mut fixture), [2, 1, 0]);
    fixture
        .idl()
        .set_condition(0, maps, Condition::all())
        .expect("accepted");
    fixture.run();
    assert_eq!(counts(&mut fixture), [2, 1, 1]);
    fixture.idl().check_consistency().unwrap();
}

#[test]
fn a_conversion_is_followed_without_a_new_connection() {
    for history in [false, true] {
        let mut fixture = Fixture::new(history);
        let mut class = Class::everything(Arc::new(schema()));
        class.track_all();
        fixture.add(class);
        let (simple, s, unique) = (
            fixture.table("simple"),
            fixture.column("simple", "s"),
            fixture.table("unique"),
        );
        fixture.server.transact(
            r#"{"op":"insert","table":"simple","row":{"s":"a","i":1}},
               {"op":"insert","table":"unique","row":{"i":1}}"#,
        );
        fixture.run();
        fixture.idl().clear_changes();
        let seqno = fixture.idl().session_state().session_seqno();
        fixture.server.convert(&narrow_schema());
        fixture.run();
        assert_eq!(fixture.idl().session_state().session_seqno(), seqno);
        assert!(fixture.idl().session_state().is_monitoring());
        assert!(
            !fixture.idl().server_has_table(unique) && fixture.idl().server_column(s).is_none()
        );
        assert_eq!(fixture.idl().row_count(unique), 0);
        let row = fixture.idl().rows(simple).next().unwrap();
        assert_eq!(
            (fixture.value(row, "s"), fixture.value(row, "i")),
            ("\"\"".into(), "1".into())
        );
        assert!(fixture.idl().changes(unique)[0].is_deleted);
        assert!(fixture.idl().changes(simple)[0].is_updated(s.id));
        fixture.server.convert(&schema());
        fixture.run();
        assert!(fixture.idl().server_has_table(unique));
        fixture.succeed(|fixture| fixture.idl().write(row, s, string("b")).unwrap());
        assert_eq!(fixture.value(row, "s"), "\"b\"");
        assert_eq!(fixture.idl().session_state().session_seqno(), seqno);
    }
}
