//! The rows that changed since a transaction, compared with the states that were remembered.

use corvid_data::{Datum, Uuid};
use corvid_history::{NoPast, Past, PastLimits, Timeline};
use corvid_log::Magic;

use crate::world::{State, World};

const MANY: PastLimits = PastLimits {
    rows_max: 10_000,
    bytes_max: 1 << 30,
    record_max: 1 << 30,
};

fn past(timeline: &Timeline<Vec<u8>>, txn: Uuid, limits: PastLimits) -> Result<Past, NoPast> {
    let tables = ["Port".to_owned(), "Other".to_owned()];
    timeline.past(txn, &tables, limits)
}

/// The history up to what a server has applied.
fn bounded(world: &mut World) -> Timeline<Vec<u8>> {
    let bound = world.bound();
    let mut timeline = world.timeline();
    timeline.end_at(bound).expect("a bound of its kind");
    timeline
}

/// A table and a row.
type Key = (String, Uuid);

/// The rows of an answer, by name.
fn rows(past: &Past) -> Vec<(Key, Option<Vec<Datum>>)> {
    let rows = past.rows.iter().map(|row| {
        let table = past.schema.table(row.table).name.to_string();
        let columns = row.columns.as_ref().map(|columns| columns.to_vec());
        ((table, row.uuid), columns)
    });
    rows.collect()
}

fn assert_complete(past: &Past, then: &State, now: &State) {
    let rows = rows(past);
    for (key, columns) in &rows {
        assert_eq!(then.get(key), columns.as_ref(), "{key:?} as it was");
    }
    for key in then.keys().chain(now.keys()) {
        if then.get(key) != now.get(key) {
            assert!(rows.iter().any(|(row, _)| row == key), "{key:?} changed");
        }
    }
}

#[test]
fn every_transaction_that_is_told_is_found_with_its_state() {
    let mut found = [0; 2];
    for seed in 0..60 {
        let magic = [Magic::Standalone, Magic::Clustered][seed as usize % 2];
        let mut world = World::numbered(seed, magic, 80);
        let timeline = bounded(&mut world);
        let last = world.states.len() - 1;
        for at in 0..=last {
            let is_converted = world.versions[at..]
                .iter()
                .any(|version| *version != world.versions[at]);
            match past(&timeline, world.ids[at], MANY) {
                Ok(past) => {
                    assert!(!is_converted, "seed {seed}, state {at}");
                    assert_complete(&past, &world.states[at], &world.states[last]);
                    found[seed as usize % 2] += 1;
                }
                Err(NoPast::Converted) => assert!(is_converted, "seed {seed}, state {at}"),
                Err(error) => {
                    let is_unmarked = world.unmarked.iter().any(|unmarked| *unmarked >= at);
                    assert!(
                        matches!(error, NoPast::Missing(_) | NoPast::Unknown)
                            && (is_unmarked || is_converted),
                        "seed {seed}, state {at} of {last}: {error}"
                    );
                }
            }
        }
        assert!(matches!(
            past(&timeline, Uuid([0xee; 16]), MANY),
            Err(NoPast::Unknown | NoPast::Converted | NoPast::Missing(_))
        ));
    }
    assert!(found.iter().all(|found| *found > 600), "{found:?}");
}

#[test]
fn an_answer_beyond_a_limit_is_none() {
    let mut world = World::numbered(4, Magic::Standalone, 0);
    for _ in 0..60 {
        world.commit();
    }
    world.compact();
    world.commit();
    let timeline = world.timeline();
    let whole = past(&timeline, world.ids[1], MANY).expect("an answer");
    for (rows_max, is_answered) in [(whole.rows.len(), true), (whole.rows.len() - 1, false)] {
        let limits = PastLimits { rows_max, ..MANY };
        let answer = past(&timeline, world.ids[1], limits);
        assert_eq!(answer.is_ok(), is_answered, "{answer:?}");
    }
    for limits in [
        PastLimits {
            bytes_max: 100,
            ..MANY
        },
        PastLimits {
            record_max: 20,
            ..MANY
        },
    ] {
        let answer = past(&timeline, world.ids[20], limits);
        assert!(matches!(answer, Err(NoPast::TooMuch)), "{answer:?}");
    }
}

#[test]
fn damage_and_missing_files_leave_no_answer() {
    let mut world = World::numbered(6, Magic::Standalone, 0);
    for _ in 0..3 {
        for _ in 0..20 {
            world.commit();
        }
        world.compact();
    }
    for _ in 0..5 {
        world.commit();
    }
    let txn = world.ids[10];
    assert!(past(&world.timeline(), txn, MANY).is_ok());
    // A commit in the middle of the present file.
    let good = world.present.clone();
    let middle = good.len() - 40;
    world.present[middle] ^= 1;
    let answer = past(&world.timeline(), txn, MANY);
    assert!(answer.is_err(), "{answer:?}");
    world.present = good;
    world.files.remove(1);
    let answer = past(&world.timeline(), txn, MANY);
    assert!(matches!(answer, Err(NoPast::Missing(_))), "{answer:?}");
    // The later files are whole.
    assert!(past(&world.timeline(), world.ids[50], MANY).is_ok());
}
