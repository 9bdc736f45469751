//! Tracked changes: which rows are listed, with what, and how far changes reach.

use corvid_data::{Arc, TableId};
use corvid_idl::{Class, RowId, Tracked};

use crate::bed::{Bed, integer, references, schema};

/// A client that tracks these columns of `link` and everything of `simple`.
fn tracking(columns: &[&str]) -> Bed {
    let mut bed = Bed::new(false);
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
    bed.add(class);
    bed
}

fn changes(bed: &mut Bed, table: TableId) -> Vec<Tracked> {
    let changes = bed.idl().changes(table).to_vec();
    bed.idl().clear_changes();
    changes
}

#[test]
fn a_row_is_listed_once_with_all_that_became_of_it() {
    let mut bed = tracking(&[]);
    let (simple, i) = (bed.table("simple"), bed.column("simple", "i"));
    let mut row = None;
    bed.succeed(|bed| row = Some(bed.insert("simple", &[])));
    let row = row.unwrap();
    // An insert of nothing but defaults is one, too.
    let found = changes(&mut bed, simple);
    assert!(found.len() == 1 && found[0].is_new && !found[0].is_updated(i.id));
    for value in [1, 2] {
        bed.succeed(|bed| bed.idl().write(row, i, integer(value)).unwrap());
    }
    let found = changes(&mut bed, simple);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].old(i.id).and_then(corvid_data::Datum::as_integer),
        Some(0)
    );
    assert!(!found[0].is_new && found[0].seqnos[1] <= bed.idl().change_seqno());
    bed.succeed(|bed| bed.idl().delete(row).unwrap());
    assert_eq!(bed.value(row, "i"), "2", "its last value is kept");
    let found = changes(&mut bed, simple);
    assert!(found[0].is_deleted && !found[0].is_new);
    assert_eq!(bed.idl().read(row, i), None);
    // It came and went.
    let uuid = row.uuid;
    bed.server.transact(&format!(
        r#"{{"op":"insert","table":"simple","uuid":"{uuid}","row":{{"i":7}}}}"#
    ));
    bed.run();
    bed.server
        .transact(r#"{"op":"delete","table":"simple","where":[]}"#);
    bed.run();
    let found = changes(&mut bed, simple);
    assert!(found.len() == 1 && found[0].is_deleted && found[0].is_new);
}

#[test]
fn changes_reach_whoever_refers_to_the_row() {
    let mut bed = tracking(&["i"]);
    let (link, i, one, many) = (
        bed.table("link"),
        bed.column("link", "i"),
        bed.column("link", "one"),
        bed.column("link", "many"),
    );
    // c -> b -> a, and d -> a weakly, a -> a.
    let mut rows: Vec<RowId> = Vec::new();
    bed.succeed(|bed| {
        rows = (0..4)
            .map(|n| bed.insert("link", &[("i", integer(n))]))
            .collect();
        let idl = bed.idl();
        idl.write(rows[0], one, references(&rows[..1])).unwrap();
        idl.write(rows[1], one, references(&rows[..1])).unwrap();
        idl.write(rows[2], one, references(&rows[1..2])).unwrap();
        idl.write(rows[3], many, references(&rows[..1])).unwrap();
    });
    assert_eq!(changes(&mut bed, link).len(), 4);
    bed.succeed(|bed| bed.idl().write(rows[0], i, integer(9)).unwrap());
    let found = changes(&mut bed, link);
    assert_eq!(found.len(), 4);
    for change in &found {
        let is_itself = change.uuid == rows[0].uuid;
        assert_eq!(change.updated().count(), usize::from(is_itself));
        assert!(!change.is_new && !change.is_deleted);
    }
    // A column that is not tracked: its row is not listed, and nobody else.
    bed.succeed(|bed| bed.idl().write(rows[3], many, references(&[])).unwrap());
    assert!(changes(&mut bed, link).is_empty());
    // The arc is gone with the reference.
    bed.succeed(|bed| bed.idl().write(rows[0], i, integer(10)).unwrap());
    assert_eq!(changes(&mut bed, link).len(), 3);
}

#[test]
fn a_deleted_target_is_told_to_its_referrers() {
    let mut bed = tracking(&["i", "many"]);
    let (link, many) = (bed.table("link"), bed.column("link", "many"));
    let mut rows: Vec<RowId> = Vec::new();
    bed.succeed(|bed| {
        rows = (0..2)
            .map(|n| bed.insert("link", &[("i", integer(n))]))
            .collect();
        bed.idl().write(rows[1], many, references(&rows)).unwrap();
    });
    bed.idl().clear_changes();
    bed.succeed(|bed| bed.idl().delete(rows[0]).unwrap());
    let found = changes(&mut bed, link);
    let of = |row: RowId| found.iter().find(|change| change.uuid == row.uuid).unwrap();
    assert!(of(rows[0]).is_deleted);
    assert!(
        of(rows[1]).is_updated(many.id),
        "a weak reference goes with its row"
    );
    // Out of sight rather than deleted: the reference stays and leads nowhere.
    let mut gone = None;
    bed.succeed(|bed| {
        let new = bed.insert("link", &[("i", integer(5))]);
        bed.idl().write(rows[1], many, references(&[new])).unwrap();
        gone = Some(new);
    });
    bed.idl().clear_changes();
    let mut wanted = corvid_session::Condition::none();
    let first = integer(1);
    wanted.add(corvid_session::Clause::new(
        "i",
        corvid_session::Function::Equal,
        &first,
        false,
    ));
    bed.idl().set_condition(0, link, wanted);
    bed.run();
    let found = changes(&mut bed, link);
    assert_eq!(found.len(), 2);
    let referrer = found
        .iter()
        .find(|change| change.uuid == rows[1].uuid)
        .unwrap();
    assert_eq!(referrer.updated().count(), 0);
    let target = bed.idl().read(rows[1], many).unwrap().as_uuid().unwrap();
    assert_eq!(Some(target), gone.map(|row| row.uuid));
    assert_eq!(bed.idl().row(link, target), None);
}

#[test]
fn writing_here_is_no_change_until_the_server_tells() {
    let mut bed = tracking(&["i"]);
    let simple = bed.table("simple");
    bed.idl().begin().unwrap();
    bed.insert("simple", &[("i", integer(1))]);
    assert!(bed.idl().changes(simple).is_empty());
    let txn = bed.idl().open_txn().unwrap();
    bed.idl().abort(txn);
    assert!(bed.idl().changes(simple).is_empty());
}
