//! Loading compared with replaying: the same contents, errors and counts after every transaction.

use corvid_data::{Atom, Datum, DatumBuilder, Recorded, RecordedRow, TableId, Uuid};
use corvid_engine::RowBuilder;

use crate::fixture::{Fixture, numbered};

/// A small generator: the same numbers for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A row that probably exists: few UUIDs are in use.
    fn uuid(&mut self) -> Uuid {
        numbered(self.below(8))
    }

    fn set(&mut self, element: impl Fn(&mut Chance) -> Atom) -> Datum {
        let mut set = DatumBuilder::new();
        let mut seen = Vec::new();
        for _ in 0..self.below(4) {
            let atom = element(self);
            if !seen.contains(&atom) {
                seen.push(atom.clone());
                set.push(atom, None);
            }
        }
        set.finish().expect("distinct")
    }

    fn word(&mut self) -> Atom {
        Atom::String(["a", "b", "c", "d"][self.below(4) as usize].into())
    }

    fn column(&mut self, name: &str) -> Datum {
        match name {
            "name" | "kind" | "note" => Datum::one(self.word()),
            "tags" => self.set(Chance::word),
            "pets" | "friends" | "toys" => self.set(|chance| Atom::Uuid(chance.uuid())),
            "age" | "inmate" if self.is_one_in(3) => Datum::empty(),
            "age" | "row" | "col" => Datum::one(Atom::Integer(self.below(2).cast_signed())),
            "inmate" => Datum::one(Atom::Uuid(self.uuid())),
            "cfg" => Datum::pair(self.word(), self.word()),
            _ => Datum::pair(self.word(), Atom::Uuid(self.uuid())),
        }
    }

    fn transaction(&mut self, zoo: &Fixture) -> Recorded {
        let rows = (0..1 + self.below(4)).map(|_| self.row(zoo)).collect();
        Recorded {
            is_diff: self.is_one_in(2),
            rows,
            ..Recorded::default()
        }
    }

    fn row(&mut self, zoo: &Fixture) -> RecordedRow {
        let tables: [(&str, &[&str]); 3] = [
            ("Keeper", &["name", "age", "tags", "cfg", "pets", "friends"]),
            ("Pet", &["kind", "toys"]),
            ("Cage", &["row", "col", "note", "inmate", "warden"]),
        ];
        let (name, columns) = tables[self.below(3) as usize];
        let table = zoo.database.schema().table_id(name).expect("a table");
        let schema = zoo.database.schema().table(table);
        let is_deletion = self.is_one_in(6);
        let mut given = Vec::new();
        for column in columns.iter().filter(|_| !is_deletion) {
            if self.is_one_in(2) {
                let id = schema.column_id(column).expect("a column");
                given.push((id, self.column(column)));
            }
        }
        RecordedRow {
            table,
            uuid: self.uuid(),
            columns: (!is_deletion).then_some(given),
        }
    }
}

/// All columns except versions.
fn contents(zoo: &Fixture) -> Vec<(TableId, Uuid, Box<[Datum]>)> {
    zoo.database.check_invariants().expect("consistent");
    let rows = zoo.contents().into_iter();
    let mut rows: Vec<_> = rows
        .map(|((table, uuid), row)| (table, uuid, row.columns.clone()))
        .collect();
    rows.sort_by_key(|(table, uuid, _)| (*table, *uuid));
    rows
}

#[test]
fn loading_equals_replaying() {
    let (mut accepted, mut refused, mut mistakes) = (0, 0, 0);
    for seed in 0..400 {
        let mut chance = Chance(seed);
        let mut zoos = [(); 3].map(|()| Fixture::zoo());
        let rows = RowBuilder::new(&zoos[0].database);
        for step in 0..20 {
            let transaction = chance.transaction(&zoos[0]);
            let [loaded, prepared, replayed] = &mut zoos;
            let context = format!("seed {seed}, step {step}: {transaction:?}");
            let replay = replayed
                .database
                .apply_recorded(transaction.clone(), &mut replayed.uuids)
                .map(drop);
            let ready = rows.prepare(transaction.clone(), true, &mut prepared.uuids);
            mistakes += prepared.database.prefetch([&ready].into_iter());
            let load = prepared.database.load_prepared(ready, &mut prepared.uuids);
            assert_eq!(load, replay, "prepared, {context}");
            assert_eq!(
                contents(prepared),
                contents(replayed),
                "prepared, {context}"
            );
            let load = loaded.database.load(transaction, &mut loaded.uuids);
            assert_eq!(load, replay, "{context}");
            assert_eq!(contents(loaded), contents(replayed), "{context}");
            match load {
                Ok(()) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted}, {refused}");
    assert!(mistakes > 200, "{mistakes}");
}
