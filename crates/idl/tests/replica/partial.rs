//! Changes of single elements: every cell of the tables of docs/spec/idl.md 3.2 and 3.5, in the
//! replica and on the server.

use corvid_data::{Atom, Datum};
use corvid_idl::{RowId, Status};

use crate::fixture::{Fixture, integer, integers, references, string, strings, text_atom};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// For a map: key `k`.
    Set(&'static str),
    RemoveKey,
    /// For a set: 7.
    Add,
    Remove,
    /// Writes the whole column: with key `k` or 7 in it, or empty.
    Write(bool),
}

use Step::{Add, Remove, RemoveKey, Set, Write};

/// Applies steps to a row; `is_map` selects the column.
fn take(fixture: &mut Fixture, row: RowId, is_map: bool, steps: &[Step]) {
    let column = if is_map {
        fixture.column("maps", "smap")
    } else {
        fixture.column("simple", "ia")
    };
    let idl = fixture.idl();
    for step in steps {
        match step {
            Set(value) => idl
                .set_key(row, column, text_atom("k"), text_atom(value))
                .map(drop),
            RemoveKey => idl.remove_key(row, column, text_atom("k")).map(drop),
            Add => idl.add_value(row, column, Atom::Integer(7)).map(drop),
            Remove => idl.remove_value(row, column, Atom::Integer(7)).map(drop),
            Write(has) => idl.write(
                row,
                column,
                match (is_map, has) {
                    (true, true) => strings(&[("k", "w")]),
                    (false, true) => integer(7),
                    (_, false) => Datum::empty(),
                },
            ),
        }
        .expect("it fits");
    }
}

/// Starts with a row whose column is empty or not, applies steps, and commits. Returns the
/// mutations or the row that was sent, if any, and the final value, which must be the one that the
/// transaction showed.
fn outcome(is_map: bool, begins_full: bool, steps: &[Step]) -> (Option<String>, String) {
    let mut fixture = Fixture::with_client();
    let (table, name) = if is_map {
        ("maps", "smap")
    } else {
        ("simple", "ia")
    };
    let before = match (is_map, begins_full) {
        (true, true) => strings(&[("k", "a"), ("other", "o")]),
        (true, false) => strings(&[("other", "o")]),
        (false, true) => integers(&[1, 7]),
        (false, false) => integer(1),
    };
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert(table, &[(name, before)])));
    let row = row.expect("it fits");
    fixture.forget_sent();
    let mut shown = String::new();
    let (_, status) = fixture.transact(|fixture| {
        take(fixture, row, is_map, steps);
        shown = fixture.value(row, name);
    });
    assert_eq!(fixture.value(row, name), shown, "{steps:?}");
    if fixture.peers[0].sent.is_empty() {
        assert_eq!(status, Status::Unchanged);
        return (None, shown);
    }
    assert_eq!(status, Status::Success);
    let sent = fixture.last_operations();
    let start = sent
        .find("\"mutations\":")
        .or(sent.find("\"row\":"))
        .expect("it fits");
    (Some(sent[start..sent.len() - 1].to_owned()), shown)
}

#[test]
fn steps_collapse_into_what_they_come_to() {
    let insert_k = |value: &str| {
        Some(format!(
            r#""mutations":[["smap","insert",["map",[["k","{value}"]]]]]"#
        ))
    };
    let update_k = |value: &str| {
        Some(format!(
            r#""mutations":[["smap","delete",["set",["k"]]],["smap","insert",["map",[["k","{value}"]]]]]"#
        ))
    };
    let delete_k = || Some(r#""mutations":[["smap","delete",["set",["k"]]]]"#.to_owned());
    let insert_7 = || Some(r#""mutations":[["ia","insert",["set",[7]]]]"#.to_owned());
    let delete_7 = || Some(r#""mutations":[["ia","delete",["set",[7]]]]"#.to_owned());
    let cases: Vec<(bool, bool, &[Step], Option<String>)> = vec![
        (true, false, &[Set("v")], insert_k("v")),
        (true, true, &[Set("v")], update_k("v")),
        (true, true, &[Set("a")], None),
        (true, true, &[RemoveKey], delete_k()),
        (true, false, &[RemoveKey], None),
        (true, false, &[Set("v"), Set("w")], insert_k("w")),
        (true, false, &[Set("v"), RemoveKey], None),
        (true, true, &[Set("v"), Set("w")], update_k("w")),
        (true, true, &[Set("v"), Set("a")], None),
        (true, true, &[Set("v"), RemoveKey], delete_k()),
        (true, true, &[RemoveKey, Set("v")], update_k("v")),
        (true, true, &[RemoveKey, Set("a")], None),
        (true, true, &[RemoveKey, RemoveKey], delete_k()),
        (false, false, &[Add], insert_7()),
        (false, true, &[Add], None),
        (false, true, &[Remove], delete_7()),
        (false, false, &[Remove], None),
        (false, false, &[Add, Add], insert_7()),
        (false, false, &[Add, Remove], None),
        (false, true, &[Add, Remove], delete_7()),
        (false, true, &[Remove, Add], None),
        (false, true, &[Remove, Remove], delete_7()),
    ];
    for (is_map, begins_full, steps, sent) in cases {
        let (found, _) = outcome(is_map, begins_full, steps);
        assert_eq!(found, sent, "{steps:?} on {begins_full}");
    }
}

#[test]
fn writes_and_steps_go_together() {
    let row = |value: &str| Some(format!(r#""row":{{"ia":{value}}}"#));
    for (steps, sent) in [
        (&[Write(false), Add][..], row("7")),
        (&[Write(true), Remove], row(r#"["set",[]]"#)),
        (&[Add, Write(false)], row(r#"["set",[]]"#)),
        (&[Remove, Write(true), Add], row("7")),
    ] {
        assert_eq!(outcome(false, false, steps).0, sent, "{steps:?}");
    }
    // On a new row every change is part of the insert.
    let mut fixture = Fixture::with_client();
    let mut row = None;
    fixture.succeed(|fixture| {
        let new = fixture.insert("maps", &[("name", string("m"))]);
        take(fixture, new, true, &[Set("v"), Set("w")]);
        row = Some(new);
    });
    assert!(!fixture.last_operations().contains("mutat"));
    assert_eq!(
        fixture.value(row.unwrap(), "smap"),
        r#"["map",[["k","w"]]]"#
    );
}

#[test]
fn steps_on_a_deleted_row_are_gone() {
    let mut fixture = Fixture::with_client();
    let n = fixture.column("child", "n");
    let mut child = None;
    fixture.succeed(|fixture| {
        let new = fixture.insert("child", &[]);
        fixture.insert("parent", &[("children", references(&[new]))]);
        child = Some(new);
    });
    let child = child.unwrap();
    fixture.forget_sent();
    let (_, status) = fixture.transact(|fixture| {
        fixture.idl().add_value(child, n, Atom::Integer(1)).unwrap();
        fixture.idl().delete(child).unwrap();
    });
    assert_eq!(
        (status, fixture.peers[0].sent.len()),
        (Status::Unchanged, 0)
    );
    assert_eq!(fixture.value(child, "n"), r#"["set",[]]"#);
}

#[test]
fn others_keep_what_they_changed_meanwhile() {
    let mut fixture = Fixture::with_client();
    let smap = fixture.column("maps", "smap");
    let mut row = None;
    fixture
        .succeed(|fixture| row = Some(fixture.insert("maps", &[("smap", strings(&[("a", "1")]))])));
    let row = row.unwrap();
    fixture.idl().begin().unwrap();
    fixture
        .idl()
        .set_key(row, smap, text_atom("b"), text_atom("2"))
        .unwrap();
    fixture.server.transact(
        r#"{"op":"mutate","table":"maps","where":[],"mutations":[["smap","insert",["map",[["c","3"]]]]]}"#,
    );
    fixture.idl().commit().unwrap();
    fixture.run();
    assert_eq!(
        fixture.value(row, "smap"),
        r#"["map",[["a","1"],["b","2"],["c","3"]]]"#
    );
}

#[test]
fn keys_of_any_type_are_sent_as_such() {
    let mut fixture = Fixture::with_client();
    let umap = fixture.column("maps", "umap");
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("maps", &[])));
    let row = row.unwrap();
    let key = fixture.uuid();
    fixture.succeed(|fixture| {
        fixture
            .idl()
            .set_key(row, umap, Atom::Uuid(key), Atom::Integer(1))
            .unwrap();
    });
    fixture.succeed(|fixture| {
        fixture
            .idl()
            .remove_key(row, umap, Atom::Uuid(key))
            .unwrap();
    });
    assert_eq!(fixture.value(row, "umap"), r#"["map",[]]"#);
    // An element may refer to a row that is new in the same transaction.
    let mut parent = None;
    fixture.succeed(|fixture| parent = Some(fixture.insert("parent", &[])));
    let (parent, children) = (parent.unwrap(), fixture.column("parent", "children"));
    let child = fixture.table("child");
    fixture.succeed(|fixture| {
        let uuid = fixture.uuid();
        let new = fixture.idl().insert(child, uuid, false).unwrap();
        fixture
            .idl()
            .add_value(parent, children, Atom::Uuid(new.uuid))
            .unwrap();
    });
    assert_eq!(fixture.idl().read(parent, children).unwrap().len(), 1);
}

#[test]
fn what_is_sent_does_not_grow_with_the_column() {
    let mut fixture = Fixture::with_client();
    let ia = fixture.column("simple", "ia");
    let mut row = None;
    let many: Vec<i64> = (0..5000).collect();
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[("ia", integers(&many))])));
    fixture.succeed(|fixture| {
        fixture
            .idl()
            .add_value(row.unwrap(), ia, Atom::Integer(-1))
            .unwrap();
    });
    assert!(fixture.last_operations().len() < 200);
}
