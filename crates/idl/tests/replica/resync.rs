//! What becomes of the replica when connections end, and what is not replicated at all.

use corvid_data::Arc;
use corvid_idl::{Class, Misuse, Resync, Status};
use corvid_session::{Clause, Condition, Function};

use crate::bed::{Bed, integer, integers, narrow_schema, schema, string};

/// A row that stays, one that changes and one that goes while the client is away, and one that comes.
fn miss_changes(bed: &mut Bed) {
    bed.server.transact(
        r#"{"op":"insert","table":"simple","row":{"s":"stays"}},
           {"op":"insert","table":"simple","row":{"s":"changes","i":1,"ia":["set",[1,2]]}},
           {"op":"insert","table":"simple","row":{"s":"goes"}}"#,
    );
    bed.run();
    bed.idl().clear_changes();
    bed.cut(0);
    bed.server.transact(
        r#"{"op":"update","table":"simple","where":[["s","==","changes"]],"row":{"i":2,"ia":["set",[2,3]]}},
           {"op":"delete","table":"simple","where":[["s","==","goes"]]},
           {"op":"insert","table":"simple","row":{"s":"comes"}}"#,
    );
}

/// The tracked changes of `simple`: `+`, `-` or the changed columns, with `s`.
fn told(bed: &mut Bed) -> Vec<String> {
    let (table, s) = (bed.table("simple"), bed.column("simple", "s"));
    let idl = bed.idl();
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
        let mut bed = Bed::new(history);
        let mut class = Class::everything(Arc::new(schema()));
        class.track_all();
        bed.add(class);
        miss_changes(&mut bed);
        let table = bed.table("simple");
        assert_eq!(
            bed.idl().row_count(table),
            3,
            "untouched while disconnected"
        );
        bed.run_until_connected();
        assert_eq!(told(&mut bed), ["+ comes", "- goes", "i,ia changes"]);
        assert_eq!(
            (bed.idl().resync_epoch(), bed.idl().row_count(table)),
            (0, 3)
        );
        let sent = bed.peers[0].sent.join("\n");
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
    let mut bed = Bed::with_class(Class::track_all);
    bed.idl().set_resync(Resync::Reload);
    let epoch = bed.idl().resync_epoch();
    miss_changes(&mut bed);
    bed.run_until_connected();
    assert_eq!(told(&mut bed), ["+ changes", "+ comes", "+ stays"]);
    assert_eq!(bed.idl().resync_epoch(), epoch + 1);
}

#[test]
fn what_does_not_fit_is_fetched_anew() {
    let mut bed = Bed::with_class(Class::track_all);
    miss_changes(&mut bed);
    bed.run_until_connected();
    let (simple, link) = (bed.table("simple"), bed.table("link"));
    let here = bed.idl().rows(simple).next().unwrap();
    let (nowhere, before) = (bed.uuid(), bed.value(here, "i"));
    // As if updates had been lost: rows that are here and not there, or there and not here.
    for misfit in [
        format!(r#""{nowhere}":{{"delete":null}}"#),
        format!(r#""{nowhere}":{{"modify":{{"i":7}}}}"#),
        format!(r#""{}":{{"insert":{{"i":7}}}}"#, here.uuid),
    ] {
        let seqno = bed.idl().session_state().session_seqno();
        bed.hear(&format!(
            r#"{{"id":null,"method":"update3","params":[["monid","idltest"],"{zero}",{{"simple":{{{misfit}}},"link":{{"{nowhere}":{{"insert":{{}}}}}}}}]}}"#,
            zero = "00000000-0000-0000-0000-000000000000",
        ));
        assert_eq!(bed.idl().row_count(link), 0, "all or nothing");
        bed.run_until_connected();
        assert!(bed.idl().session_state().session_seqno() >= seqno + 2);
        assert_eq!(bed.idl().row_count(simple), 3);
        assert_eq!(bed.value(here, "i"), before);
    }
}

#[test]
fn modes_decide_what_is_held_and_what_is_told() {
    let mut bed = Bed::new(false);
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
    bed.add(class);
    let (simple, child) = (bed.table("simple"), bed.table("child"));
    bed.server.transact(
        r#"{"op":"insert","table":"simple","row":{"s":"a","i":1,"o":5}},
           {"op":"insert","table":"child","uuid-name":"c","row":{"name":"x"}},
           {"op":"insert","table":"parent","row":{"children":["named-uuid","c"]}},
           {"op":"insert","table":"maps","row":{}}"#,
    );
    bed.run();
    let row = bed.idl().rows(simple).next().unwrap();
    assert_eq!(bed.value(row, "o"), r#"["set",[]]"#, "not held");
    assert_eq!(
        bed.idl().row_count(child),
        1,
        "rows that may be referred to are"
    );
    let maps = bed.table("maps");
    assert_eq!(bed.idl().row_count(maps), 0);
    assert!(bed.idl().server_has_table(maps));
    // A column without alert changes in silence.
    let seqno = bed.idl().change_seqno();
    bed.server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"s":"b"}}"#);
    bed.run();
    assert_eq!(
        (bed.idl().change_seqno(), bed.value(row, "s").as_str()),
        (seqno, "\"b\"")
    );
    bed.server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"i":2}}"#);
    bed.run();
    assert_eq!(bed.idl().change_seqno(), seqno + 1);
    assert_eq!(bed.idl().table_seqnos(simple)[1], seqno + 1);
    // Equal writes: kept beside another change, but not for silent columns or those that send changes only.
    bed.succeed(|bed| {
        let idl = bed.idl();
        idl.write(row, s, string("b")).unwrap();
        idl.write(row, ia, integers(&[])).unwrap();
        idl.write(row, i, integer(2)).unwrap();
        assert_eq!(idl.write(row, o, integer(1)), Err(Misuse::NotReplicated));
        let new = bed.insert("simple", &[("o", integer(9))]);
        assert_eq!(bed.value(new, "o"), "9");
    });
    let sent = bed.last_operations();
    assert!(
        sent.contains(r#""row":{"i":2}"#) && sent.contains(r#""row":{"o":9}"#),
        "{sent}"
    );
}

#[test]
fn conditions_bring_rows_in_and_out_of_sight() {
    let mut bed = Bed::new(false);
    let mut class = Class::everything(Arc::new(schema()));
    class.track_all();
    bed.add(class);
    let (simple, i) = (bed.table("simple"), bed.column("simple", "i"));
    assert_eq!(bed.idl().set_condition(0, simple, Condition::all()), 0);
    let promise = bed.idl().set_condition(0, simple, Condition::none());
    bed.run();
    assert!(bed.idl().condition_seqno() >= promise);
    bed.server.transact(
        r#"{"op":"insert","table":"simple","row":{"i":1,"s":"one"}},
           {"op":"insert","table":"simple","row":{"i":2,"s":"two"}}"#,
    );
    bed.run();
    assert_eq!(bed.idl().row_count(simple), 0);
    let mut wanted = Condition::none();
    wanted.add(Clause::new("i", Function::Equal, &integer(2), false));
    let promise = bed.idl().set_condition(0, simple, wanted.clone());
    assert_eq!(bed.idl().set_condition(0, simple, wanted), promise);
    bed.run();
    assert!(bed.idl().condition_seqno() >= promise);
    assert_eq!(told(&mut bed), ["+ two"]);
    let row = bed.idl().rows(simple).next().unwrap();
    bed.idl().clear_changes();
    let (_, status) = bed.transact(|bed| bed.idl().write(row, i, integer(3)).unwrap());
    assert_eq!(status, Status::Success);
    assert_eq!(told(&mut bed), ["- two"]);
}

#[test]
fn tables_are_seen_through_conditions_of_their_own() {
    let mut bed = Bed::with_client();
    let (simple, link, maps) = (bed.table("simple"), bed.table("link"), bed.table("maps"));
    let clause = |name: &str, function, datum| Clause::new(name, function, &datum, false);
    let mut either = Condition::none();
    either.add(clause("i", Function::Equal, integer(1)));
    either.add(clause("s", Function::Equal, string("x")));
    let mut own = Condition::none();
    own.add(clause("i", Function::GreaterOrEqual, integer(5)));
    let idl = bed.idl();
    idl.set_condition(0, simple, either);
    idl.set_condition(0, link, own);
    let promise = idl.set_condition(0, maps, Condition::none());
    bed.run();
    assert!(bed.idl().condition_seqno() >= promise);
    bed.server.transact(
        r#"{"op":"insert","table":"simple","row":{"i":1}},
           {"op":"insert","table":"simple","row":{"i":2}},
           {"op":"insert","table":"simple","row":{"i":3,"s":"x"}},
           {"op":"insert","table":"maps","row":{}},
           {"op":"insert","table":"link","uuid-name":"a","row":{"i":4,"one":["named-uuid","a"]}},
           {"op":"insert","table":"link","row":{"i":5,"one":["named-uuid","a"]}}"#,
    );
    bed.run();
    let counts = |bed: &mut Bed| [simple, link, maps].map(|table| bed.idl().row_count(table));
    assert_eq!(counts(&mut bed), [2, 1, 0]);
    bed.idl().set_condition(0, maps, Condition::all());
    bed.run();
    assert_eq!(counts(&mut bed), [2, 1, 1]);
    bed.idl().check_consistency().unwrap();
}

#[test]
fn a_conversion_is_followed_without_a_new_connection() {
    for history in [false, true] {
        let mut bed = Bed::new(history);
        let mut class = Class::everything(Arc::new(schema()));
        class.track_all();
        bed.add(class);
        let (simple, s, unique) = (
            bed.table("simple"),
            bed.column("simple", "s"),
            bed.table("unique"),
        );
        bed.server.transact(
            r#"{"op":"insert","table":"simple","row":{"s":"a","i":1}},
               {"op":"insert","table":"unique","row":{"i":1}}"#,
        );
        bed.run();
        bed.idl().clear_changes();
        let seqno = bed.idl().session_state().session_seqno();
        bed.server.convert(&narrow_schema());
        bed.run();
        assert_eq!(bed.idl().session_state().session_seqno(), seqno);
        assert!(bed.idl().session_state().is_monitoring());
        assert!(!bed.idl().server_has_table(unique) && bed.idl().server_column(s).is_none());
        assert_eq!(bed.idl().row_count(unique), 0);
        let row = bed.idl().rows(simple).next().unwrap();
        assert_eq!(
            (bed.value(row, "s"), bed.value(row, "i")),
            ("\"\"".into(), "1".into())
        );
        assert!(bed.idl().changes(unique)[0].is_deleted);
        assert!(bed.idl().changes(simple)[0].is_updated(s.id));
        bed.server.convert(&schema());
        bed.run();
        assert!(bed.idl().server_has_table(unique));
        bed.succeed(|bed| bed.idl().write(row, s, string("b")).unwrap());
        assert_eq!(bed.value(row, "s"), "\"b\"");
        assert_eq!(bed.idl().session_state().session_seqno(), seqno);
    }
}
