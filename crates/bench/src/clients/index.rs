//! Measures compound indexes: look-ups of single rows and of ranges among a million rows that are
//! ordered by two columns. The first column is equal in all rows, so every comparison reads both
//! columns.

use std::hint::black_box;

use corvid_data::{Arc, Atom, Datum, Str};
use corvid_idl::{Class, ClassError, IndexColumn, Key};

use super::session::Session;
use super::{Line, Setup};
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::usage;

const LOOKUPS: u32 = 200_000;
/// The number of rows of a range, and the number of ranges.
const RANGE: u32 = 1_000;
const RANGES: u32 = 1_000;
/// The step from one row that is looked up to the next. It has no common factor with the number of
/// rows, so all rows are visited, without locality.
const STRIDE: u32 = 7_654_321;

pub(super) fn measure(setup: &Setup<'_>) -> Result<Vec<Line>, Error> {
    let rows = setup.scale.pick(200_000, 1_000_000);
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let file = directory.path().join("rows.db");
    database_file::write(&file, History::of_rows(rows))?;
    let server = setup.serve(&file)?;
    let bad = |error: ClassError| Error::Client(error.to_string());
    let mut class = Class::everything(Arc::new(database_file::schema_of(&file)?));
    let column = |class: &Class, name| class.column("Item", name).map_err(bad);
    let (up, name, number) = (
        column(&class, "up")?,
        column(&class, "name")?,
        column(&class, "number")?,
    );
    let columns = vec![IndexColumn::ascending(up), IndexColumn::descending(name)];
    let index = class.add_index(up.table, "by-name", columns).map_err(bad)?;
    let session = Session::open(class, server.address())?;
    let idl = &session.idl;
    let loading_us = session.handling.as_secs_f64() * 1e6 / f64::from(rows);
    let key_of = |key: &mut Key, row: u32| {
        let text = Str::new(&format!("item-{row:08}"));
        key.set(name, Datum::one(Atom::String(text)));
    };
    let mut key = idl.key(index);
    key.set(up, Datum::one(Atom::Boolean(true)));
    let visit = |turn: u32, of: u32| {
        let row = u64::from(turn) * u64::from(STRIDE) % u64::from(of);
        u32::try_from(row).unwrap_or_default()
    };

    // CPU time is measured, because nothing waits here.
    let began_us = usage::thread_cpu_us();
    for turn in 0..LOOKUPS {
        key_of(&mut key, visit(turn, rows));
        let row = idl.find(&key);
        black_box(row.ok_or_else(|| Error::Client("a row is missing".to_owned()))?);
    }
    let lookup_us = (usage::thread_cpu_us() - began_us) / f64::from(LOOKUPS);

    let mut range_ns = [0.0; 2];
    let mut to = key.clone();
    for (reads, range_ns) in [false, true].into_iter().zip(&mut range_ns) {
        let (began_us, mut count, mut sum) = (usage::thread_cpu_us(), 0_u32, 0);
        for turn in 0..RANGES {
            let first = visit(turn, rows - RANGE);
            // The column is in descending order, so the range begins with the greater name.
            key_of(&mut key, first + RANGE - 1);
            key_of(&mut to, first);
            for row in idl.views_of(index, Some(&key), Some(&to)) {
                count += 1;
                if reads {
                    let value = row.get(number);
                    sum += value.and_then(Datum::as_integer).unwrap_or_default();
                } else {
                    black_box(row.id());
                }
            }
        }
        black_box(sum);
        *range_ns = (usage::thread_cpu_us() - began_us) * 1e3 / f64::from(count);
        if count != RANGE * RANGES {
            return Err(Error::Client(format!("ranges have {count} rows")));
        }
    }
    let [range_ns, reading_ns] = range_ns;
    let lines = [
        Figure::lower(
            "initial contents with an index: handling",
            "us/row",
            loading_us,
        )
        .digits(2),
        Figure::lower("look-up by two columns: CPU", "us", lookup_us)
            .digits(2)
            .aim(Aim::AtMost(2.0)),
        Figure::lower("range of 1,000 rows: CPU", "ns/row", range_ns).aim(Aim::AtMost(100.0)),
        Figure::lower("range, each row read: CPU", "ns/row", reading_ns),
    ];
    Ok(lines
        .map(|figure| Line::alone(figure.at("rows", rows)))
        .into())
}
