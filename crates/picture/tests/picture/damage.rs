//! Rows as no schema allows them: references to nothing, columns that are missing or hold the
//! values of others. A monitor that has not told everything yet looks like this for a moment.

use corvid_data::{Datum, Uuid};
use corvid_json::splitmix::SplitMix64;
use corvid_picture::{Picture, Tables, Texts, View, difference, interpretations, path};

use crate::graphs::WRITTEN;
use crate::svg::assert_well_formed;
use crate::written::tables;

/// Loses some rows and cells of a database, and gives some cells the values of others.
fn damaged(database: &str, whole: &Tables, seed: u64) -> Tables {
    let mut random = SplitMix64::new(seed);
    let mut below = |limit: usize| (random.draw() % limit.max(1) as u64) as usize;
    let interpretation = interpretations::of(database).expect("a known database");
    let mut cells: Vec<(&str, Uuid, &str, Datum)> = Vec::new();
    for &(table, columns) in interpretation.tables {
        for row in whole.rows(table) {
            for &column in columns {
                if let Some(datum) = row.cell(column) {
                    cells.push((table, row.uuid, column, datum.clone()));
                }
            }
        }
    }
    let others: Vec<Datum> = cells.iter().map(|(.., datum)| datum.clone()).collect();
    let mut tables = Tables::new();
    for (table, uuid, column, datum) in cells {
        match below(10) {
            0 => {}
            1 => tables.set(table, uuid, [(column, others[below(others.len())].clone())]),
            _ => tables.set(table, uuid, [(column, datum)]),
        }
        if below(60) == 0 {
            tables.remove(table, uuid);
        }
    }
    tables
}

#[test]
fn damaged_databases_are_drawn() {
    for (database, text) in WRITTEN {
        let interpretation = interpretations::of(database).expect("a known database");
        let whole = tables(text);
        let mut before = (interpretation.read)(&whole);
        let mut picture: Option<Picture> = None;
        for seed in 0..150 {
            let graph = (interpretation.read)(&damaged(database, &whole, seed));
            let merged = difference::between(&before, &graph);
            let next = Picture::new(&merged, &View::default(), picture.as_ref());
            assert_well_formed(&next.svg(&merged, &Texts::new(database)));
            if let (Some(first), Some(last)) = (graph.nodes.first(), graph.nodes.last()) {
                let _ = path::between(&graph, &first.id, &last.id);
            }
            (before, picture) = (graph, Some(next));
        }
    }
}
