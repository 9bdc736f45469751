//! `apply-diff`: inserts an element into a set of 30,000 or deletes it, while the previous version
//! is kept.

use std::hint::black_box;

use corvid_data::{Atom, ColumnType, Datum, DatumBuilder, Str};

use super::Path;
use crate::northbound;

pub(super) const PATH: Path = Path {
    name: "apply-diff",
    about: "applies a difference of one element to a set of 30,000 addresses",
    times: 200,
    prepare,
};

const ELEMENTS: usize = 30_000;

fn prepare(_times: usize) -> Box<dyn FnMut()> {
    let column_type = addresses();
    let mut set = DatumBuilder::new();
    for number in 0..ELEMENTS {
        set.push(address(number), None);
    }
    let mut set = set.finish().expect("no element twice");
    // The elements are spread over the set. Their number is odd, so each element is inserted and
    // deleted in turn.
    let diffs: Vec<Datum> = (0..51)
        .map(|number| Datum::one(address(number * 1171)))
        .collect();
    let mut at = 0;
    Box::new(move || {
        let before = set.clone();
        set.apply_diff(&diffs[at], &column_type).expect("it fits");
        at = (at + 1) % diffs.len();
        black_box(before);
    })
}

fn address(number: usize) -> Atom {
    Atom::String(Str::new(&format!("10.{}.{}", number / 256, number % 256)))
}

/// Returns the type of the addresses of an address set.
fn addresses() -> ColumnType {
    let schema = northbound::schema();
    let table = schema.table_id("Address_Set").expect("a table");
    let table = schema.table(table);
    let column = table.column_id("addresses").expect("a column");
    table.column(column).column_type.clone()
}
