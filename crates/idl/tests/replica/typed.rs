//! Typed rows, written by hand as the generator writes them.

use std::collections::{BTreeMap, BTreeSet};

use corvid_idl::typed::{
    ColumnId, Function, Map, Misuse, One, Optional, Real, Row, RowId, Set, Str, TableId,
    TypedColumn, TypedCondition, TypedCursor, TypedIndex, TypedIndexBuilder, Uuid,
};
use corvid_idl::{FetchOutcome, TableCondition};

use crate::fixture::Fixture;

macro_rules! row {
    ($name:ident, $table:literal, $($constant:ident: $kind:ty = $id:literal, $column:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        struct $name(RowId);

        impl Row for $name {
            const TABLE: TableId = TableId($table);
            fn of(row: RowId) -> Self {
                Self(row)
            }
            fn id(self) -> RowId {
                self.0
            }
        }

        impl $name {
            $(const $constant: TypedColumn<Self, $kind> = TypedColumn::new(ColumnId($id), $column);)*
        }
    };
}

row!(Kinds, 1,
    B: One<bool> = 0, "b";
    BA: Optional<bool> = 1, "ba";
    NOTES: Map<Str, Str> = 3, "notes";
    R: One<Real> = 4, "r";
    REFS: Map<i64, Link> = 6, "refs";
    SA: Set<Str> = 7, "sa";
    U: One<Uuid> = 8, "u";
);
row!(Link, 2,
    I: One<i64> = 0, "i";
    MANY: Set<Link> = 1, "many";
    ONE: Optional<Link> = 2, "one";
);

#[test]
fn values_go_in_and_come_out_as_they_are() {
    let mut fixture = Fixture::with_client();
    let schema = fixture.idl().schema().clone();
    assert_eq!(
        schema
            .table(Kinds::TABLE)
            .column(Kinds::U.column().id)
            .name
            .as_str(),
        Kinds::U.name()
    );
    let half = Real::new(0.5).expect("finite");
    let uuid = fixture.uuid();
    let fill = |idl: &mut corvid_idl::Idl| -> Result<(), Misuse> {
        let link = Link::insert(idl)?;
        Link::I.write(link, idl, 7)?;
        Link::ONE.write(link, idl, Some(link))?;
        Link::MANY.add(link, idl, link)?;
        let kinds = Kinds::insert(idl)?;
        Kinds::B.write(kinds, idl, true)?;
        Kinds::BA.write(kinds, idl, Some(false))?;
        Kinds::R.write(kinds, idl, half)?;
        Kinds::U.write(kinds, idl, uuid)?;
        Kinds::SA.write(kinds, idl, BTreeSet::from(["a".into(), "b".into()]))?;
        Kinds::SA.remove(kinds, idl, "a".into())?;
        Kinds::REFS.set_key(kinds, idl, 1, link)?;
        Kinds::NOTES.set_key(kinds, idl, "k".into(), "v".into())?;
        Kinds::NOTES.set_key(kinds, idl, "l".into(), "w".into())?;
        Kinds::NOTES.remove_key(kinds, idl, "k".into())?;
        Ok(())
    };
    fixture.succeed(|fixture| fill(fixture.idl()).expect("it fits"));
    let idl = fixture.idl();
    let (link, kinds) = (
        Link::all(idl).next().expect("one"),
        Kinds::all(idl).next().expect("one"),
    );
    assert_eq!(
        (Link::I.read(link, idl), Link::ONE.read(link, idl)),
        (7, Some(link))
    );
    assert_eq!(Link::MANY.read(link, idl), BTreeSet::from([link]));
    assert_eq!(
        (Kinds::B.read(kinds, idl), Kinds::BA.read(kinds, idl)),
        (true, Some(false))
    );
    assert_eq!(
        (Kinds::R.read(kinds, idl), Kinds::U.read(kinds, idl)),
        (half, uuid)
    );
    assert_eq!(Kinds::SA.read(kinds, idl), BTreeSet::from(["b".into()]));
    assert_eq!(Kinds::REFS.read(kinds, idl), BTreeMap::from([(1, link)]));
    assert_eq!(
        Kinds::NOTES.read(kinds, idl),
        BTreeMap::from([("l".into(), "w".into())])
    );
    assert_eq!(Link::get(idl, link.uuid()), Some(link));
    // A row that no condition selects shows in no value.
    TypedCondition::<Link>::none()
        .set(fixture.idl(), 0)
        .expect("accepted");
    fixture.run();
    let idl = fixture.idl();
    assert!(!link.is_there(idl) && Kinds::REFS.read(kinds, idl).is_empty());
    assert_eq!(
        (Link::I.read(link, idl), Link::ONE.read(link, idl)),
        (0, None)
    );
    let promise = TypedCondition::none()
        .or(Link::I.equal(7))
        .set(fixture.idl(), 0)
        .expect("accepted");
    fixture.run();
    assert!(fixture.idl().condition_seqno() >= promise && link.is_there(fixture.idl()));
}

#[test]
fn indexes_take_the_columns_of_their_table() {
    let mut index = None;
    let mut fixture = Fixture::with_class(|class| {
        let builder = TypedIndexBuilder::new()
            .descending(Link::I)
            .ascending(Link::MANY);
        index = builder.build(class).ok();
    });
    let index = index.expect("made");
    fixture.succeed(|fixture| {
        for number in [3, 1, 2] {
            let link = Link::insert(fixture.idl()).expect("new");
            Link::I.write(link, fixture.idl(), number).expect("fits");
        }
    });
    let idl = fixture.idl();
    let numbers = |links: &mut dyn Iterator<Item = Link>| -> Vec<i64> {
        links.map(|link| Link::I.read(link, idl)).collect()
    };
    assert_eq!(numbers(&mut index.rows(idl)), [3, 2, 1]);
    let two = index.key(idl).with(Link::I, 2);
    assert_eq!(numbers(&mut index.range(idl, Some(&two), None)), [2, 1]);
    assert_eq!(numbers(&mut two.rows(idl)), [2]);
    assert_eq!(two.find(idl).map(|link| Link::I.read(link, idl)), Some(2));
    assert_eq!(index.id().table, Link::TABLE);
    let by_note = TypedIndexBuilder::new().at_key(Kinds::NOTES, "id".into());
    let by_note = by_note.build_late(fixture.idl()).expect("it is held");
    fixture.succeed(|fixture| {
        for number in ["1", "2"] {
            let kinds = Kinds::insert(fixture.idl()).expect("new");
            let idl = fixture.idl();
            Kinds::NOTES
                .set_key(kinds, idl, "id".into(), number.into())
                .expect("fits");
        }
    });
    let idl = fixture.idl();
    let notes = BTreeMap::from([("id".into(), "2".into())]);
    let found = by_note.key(idl).with(Kinds::NOTES, notes.clone()).find(idl);
    assert_eq!(
        found.map(|kinds| Kinds::NOTES.read(kinds, idl)),
        Some(notes)
    );
}

#[test]
fn cursors_lead_to_typed_rows_and_survive_changes() {
    let mut index = None;
    let mut fixture = Fixture::with_class(|class| {
        let builder = TypedIndexBuilder::new().ascending(Link::I);
        index = builder.build(class).ok();
    });
    let index: TypedIndex<Link> = index.expect("made");
    fixture.succeed(|fixture| {
        for number in [3, 1, 2, 2] {
            let link = Link::insert(fixture.idl()).expect("new");
            Link::I.write(link, fixture.idl(), number).expect("fits");
        }
    });
    let mut numbers = Vec::new();
    fixture.succeed(|fixture| {
        let idl = fixture.idl();
        let mut cursor = index.first(idl);
        while let Some(link) = cursor.row(idl) {
            numbers.push(Link::I.read(link, idl));
            link.delete(idl).expect("it is there");
            assert_eq!(cursor.row(idl), None);
            cursor.next(idl);
        }
        assert!(cursor.is_at_end());
        for number in [5, 6, 6, 8] {
            let link = Link::insert(idl).expect("new");
            Link::I.write(link, idl, number).expect("fits");
        }
    });
    assert_eq!(numbers, [1, 2, 2, 3]);
    let idl = fixture.idl();
    let read = |cursor: &TypedCursor<Link>| Some(Link::I.read(cursor.row(idl)?, idl));
    let seven = index.key(idl).with(Link::I, 7);
    assert_eq!(read(&seven.at_least(idl)), Some(8));
    assert!(seven.first_equal(idl).is_at_end());
    let mut six = index.key(idl).with(Link::I, 6).first_equal(idl);
    assert_eq!(read(&six), Some(6));
    six.next_equal(idl);
    assert_eq!(read(&six), Some(6));
    let mut other = six.clone();
    six.next_equal(idl);
    other.next(idl);
    assert_eq!((six.is_at_end(), read(&other)), (true, Some(8)));
}

#[test]
fn conditions_and_changes_are_typed() {
    let mut fixture = Fixture::with_class(|class| {
        class.track(Link::I);
        class.add_column(Link::MANY);
        assert!(class.mode(Link::I).is_tracked);
    });
    fixture.succeed(|fixture| {
        for number in 1..=4 {
            let link = Link::insert(fixture.idl()).expect("new");
            Link::I.write(link, fixture.idl(), number).expect("fits");
        }
    });
    let seen = |fixture: &mut Fixture, condition: TypedCondition<Link>| {
        condition.set(fixture.idl(), 0).expect("accepted");
        fixture.run();
        let idl = fixture.idl();
        let mut seen: Vec<i64> = Link::all(idl).map(|link| Link::I.read(link, idl)).collect();
        seen.sort_unstable();
        seen
    };
    let either = Link::I.equal(1).or(Link::I.clause(Function::Greater, 3));
    assert_eq!(seen(&mut fixture, either), [1, 4]);
    assert_eq!(seen(&mut fixture, Link::I.not_equal(2).into()), [1, 3, 4]);
    assert_eq!(seen(&mut fixture, Link::I.excludes(3).into()), [1, 2, 4]);
    assert_eq!(seen(&mut fixture, TypedCondition::all()), [1, 2, 3, 4]);
    let wanted = TableCondition::from(Link::I.equal(1));
    assert_eq!(wanted.table, Link::TABLE);
    assert_eq!(wanted.condition.to_json(), br#"[["i","==",1]]"#);
    fixture.idl().clear_changes();
    let link = Link::all(fixture.idl()).next().expect("four");
    let before = Link::I.read(link, fixture.idl());
    fixture.succeed(|fixture| Link::I.write(link, fixture.idl(), 9).expect("fits"));
    let idl = fixture.idl();
    let (changed, change) = Link::changes(idl).next().expect("one");
    assert_eq!(changed, link);
    assert!(Link::I.is_changed(change) && !Link::MANY.is_changed(change));
    assert_eq!(Link::I.old(change, idl), Some(before));
    assert_eq!(Link::MANY.old(change, idl), None);
}

#[test]
fn columns_are_fetched_by_their_types() {
    let mut fixture = Fixture::with_class(|class| class.on_demand(Link::I));
    fixture
        .server
        .transact(r#"{"op":"insert","table":"link","row":{"i":7}}"#);
    fixture.run();
    let link = Link::all(fixture.idl()).next().expect("one");
    assert_eq!(Link::I.read(link, fixture.idl()), 0, "not fetched yet");
    for is_whole in [false, true] {
        let fetch = match is_whole {
            false => Link::I.fetch(link, fixture.idl()),
            true => Link::I.fetch_all(fixture.idl()),
        };
        fixture.run();
        let outcome = fixture.idl().take_fetch_outcome(fetch.expect("on demand"));
        assert_eq!(outcome, Some(FetchOutcome::Success));
        assert!(Link::I.is_fetched(link, fixture.idl()));
        assert_eq!(Link::I.read(link, fixture.idl()), 7);
    }
}
