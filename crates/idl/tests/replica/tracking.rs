//! Tracked changes: which rows are listed, with which columns, and how far changes propagate.

use corvid_data::{Arc, TableId};
use corvid_idl::{Class, RowId, Tracked};

use crate::fixture::{Fixture, integer, references, schema};

/// A client that tracks these columns of `link` and everything of `simple`.
fn tracking(columns: &[&str]) -> Fixture {
    let mut fixture = Fixture::new(false);
    let mut class = Class::new(Arc::new(schema()));
    for (table, name) in [
        ("link", "i"),
        ("link", "one"),
        ("link", "many"),
        ("simple", "i"),
    ] {
        let column = class.column(table, name).expect("a column");
        class.add_column(column);
        if table == "simple" || columns.contains(&name) {
            class.track(column);
        }
    }
    fixture.add(class);
    fixture
}

fn changes(fixture: &mut Fixture, table: TableId) -> Vec<Tracked> {
    let changes = fixture.idl().changes(table).to_vec();
    fixture.idl().clear_changes();
    changes
}

#[test]
fn a_row_is_listed_once_with_all_that_became_of_it() {
    let mut fixture = tracking(&[]);
    let (simple, i) = (fixture.table("simple"), fixture.column("simple", "i"));
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[])));
    let row = row.unwrap();
    // Inserting a row of defaults counts too.
    let found = changes(&mut fixture, simple);
    assert!(found.len() == 1 && found[0].is_new && !found[0].is_updated(i.id));
    for value in [1, 2] {
        fixture.succeed(|fixture| fixture.idl().write(row, i, integer(value)).unwrap());
    }
    let found = changes(&mut fixture, simple);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].old(i.id).and_then(corvid_data::Datum::as_integer),
        Some(0)
    );
    assert!(!found[0].is_new && found[0].seqnos[1] <= fixture.idl().change_seqno());
    fixture.succeed(|fixture| fixture.idl().delete(row).unwrap());
    assert_eq!(fixture.value(row, "i"), "2", "its last value is kept");
    let found = changes(&mut fixture, simple);
    assert!(found[0].is_deleted && !found[0].is_new);
    assert_eq!(fixture.idl().read(row, i), None);
    // The row was inserted and deleted.
    let uuid = row.uuid;
    fixture.server.transact(&format!(
        r#"{{"op":"insert","table":"simple","uuid":"{uuid}","row":{{"i":7}}}}"#
    ));
    fixture.run();
    fixture
        .server
        .transact(r#"{"op":"delete","table":"simple","where":[]}"#);
    fixture.run();
    let found = changes(&mut fixture, simple);
    assert!(found.len() == 1 && found[0].is_deleted && found[0].is_new);
}

#[test]
fn changes_reach_rows_that_refer_to_the_row() {
    let mut fixture = tracking(&["i"]);
    let (link, i, one, many) = (
        fixture.table("link"),
        fixture.column("link", "i"),
        fixture.column("link", "one"),
        fixture.column("link", "many"),
    );
    // c -> b -> a, d -> a weakly, a -> a.
    let mut rows: Vec<RowId> = Vec::new();
    fixture.succeed(|fixture| {
        rows = (0..4)
            .map(|n| fixture.insert("link", &[("i", integer(n))]))
            .collect();
        let idl = fixture.idl();
        idl.write(rows[0], one, references(&rows[..1])).unwrap();
        idl.write(rows[1], one, references(&rows[..1])).unwrap();
        idl.write(rows[2], one, references(&rows[1..2])).unwrap();
        idl.write(rows[3], many, references(&rows[..1])).unwrap();
    });
    assert_eq!(changes(&mut fixture, link).len(), 4);
    fixture.succeed(|fixture| fixture.idl().write(rows[0], i, integer(9)).unwrap());
    let found = changes(&mut fixture, link);
    assert_eq!(found.len(), 4);
    for change in &found {
        let is_itself = change.uuid == rows[0].uuid;
        assert_eq!(change.updated().count(), usize::from(is_itself));
        assert!(!change.is_new && !change.is_deleted);
    }
    // The column is not tracked, so neither its row nor any other row is listed.
    fixture.succeed(|fixture| fixture.idl().write(rows[3], many, references(&[])).unwrap());
    assert!(changes(&mut fixture, link).is_empty());
    // The arc was removed with the reference.
    fixture.succeed(|fixture| fixture.idl().write(rows[0], i, integer(10)).unwrap());
    assert_eq!(changes(&mut fixture, link).len(), 3);
}

#[test]
fn a_deleted_target_is_told_to_its_referrers() {
    let mut fixture = tracking(&["i", "many"]);
    let (link, many) = (fixture.table("link"), fixture.column("link", "many"));
    let mut rows: Vec<RowId> = Vec::new();
    fixture.succeed(|fixture| {
        rows = (0..2)
            .map(|n| fixture.insert("link", &[("i", integer(n))]))
            .collect();
        fixture
            .idl()
            .write(rows[1], many, references(&rows))
            .unwrap();
    });
    fixture.idl().clear_changes();
    fixture.succeed(|fixture| fixture.idl().delete(rows[0]).unwrap());
    let found = changes(&mut fixture, link);
    let of = |row: RowId| found.iter().find(|change| change.uuid == row.uuid).unwrap();
    assert!(of(rows[0]).is_deleted);
    assert!(
        of(rows[1]).is_updated(many.id),
        "a weak reference goes with its row"
    );
    // The target leaves the condition instead of being deleted: the reference stays and dangles.
    let mut gone = None;
    fixture.succeed(|fixture| {
        let new = fixture.insert("link", &[("i", integer(5))]);
        fixture
            .idl()
            .write(rows[1], many, references(&[new]))
            .unwrap();
        gone = Some(new);
    });
    fixture.idl().clear_changes();
    let mut wanted = corvid_session::Condition::none();
    let first = integer(1);
    wanted.add(corvid_session::Clause::new(
        "i",
        corvid_session::Function::Equal,
        &first,
        false,
    ));
    fixture
        .idl()
        .set_condition(0, link, wanted)
        .expect("accepted");
    fixture.run();
    let found = changes(&mut fixture, link);
    assert_eq!(found.len(), 2);
    let referrer = found
        .iter()
        .find(|change| change.uuid == rows[1].uuid)
        .unwrap();
    assert_eq!(referrer.updated().count(), 0);
    let target = fixture
        .idl()
        .read(rows[1], many)
        .unwrap()
        .as_uuid()
        .unwrap();
    assert_eq!(Some(target), gone.map(|row| row.uuid));
    assert_eq!(fixture.idl().row(link, target), None);
}

#[test]
fn writing_here_is_no_change_until_the_server_tells() {
    let mut fixture = tracking(&["i"]);
    let simple = fixture.table("simple");
    fixture.idl().begin().unwrap();
    fixture.insert("simple", &[("i", integer(1))]);
    assert!(fixture.idl().changes(simple).is_empty());
    let txn = fixture.idl().open_txn().unwrap();
    fixture.idl().abort(txn);
    assert!(fixture.idl().changes(simple).is_empty());
}

#[test]
fn a_table_whose_tracking_is_paused_lists_nothing() {
    let mut fixture = tracking(&["i", "one", "many"]);
    let (simple, i) = (fixture.table("simple"), fixture.column("simple", "i"));
    let mut row = None;
    fixture.succeed(|fixture| row = Some(fixture.insert("simple", &[])));
    let row = row.unwrap();
    fixture.idl().set_tracking(simple, false);
    assert_eq!(fixture.idl().changes(simple).len(), 0, "pausing clears");
    let before = fixture.idl().table_seqnos(simple);
    fixture.succeed(|fixture| fixture.idl().write(row, i, integer(1)).unwrap());
    fixture.succeed(|fixture| {
        fixture.insert("simple", &[]);
    });
    assert_eq!(fixture.idl().changes(simple).len(), 0);
    assert_ne!(fixture.idl().table_seqnos(simple), before, "they are seen");
    fixture.idl().set_tracking(simple, true);
    fixture.succeed(|fixture| fixture.idl().write(row, i, integer(2)).unwrap());
    let found = changes(&mut fixture, simple);
    let old = found[0].old(i.id).and_then(corvid_data::Datum::as_integer);
    assert_eq!((found.len(), old), (1, Some(1)));
}
