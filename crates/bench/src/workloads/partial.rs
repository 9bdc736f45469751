//! `partial`: inserts one element into a large set or map, by writing the whole column and by a
//! mutation. Measures bytes and time.

use std::fmt::Write as _;

use crate::error::Error;
use crate::figure::Figure;
use crate::harness::Harness;
use crate::requests::Requests;
use crate::workload::{Run, Workload};

/// The number of changes for each kind and size.
const CHANGES: u32 = 100;
/// The table of the operations, and the condition that selects the row.
const WHERE: &str = r#""table":"Item","where":[["name","==","large"]]"#;

pub(crate) struct Partial;

/// A kind of column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Set,
    Map,
}

impl Workload for Partial {
    fn name(&self) -> &'static str {
        "partial"
    }

    fn about(&self) -> &'static str {
        "one element into a set and a map of 1,000 and 10,000 (full: 30,000): rewritten, and mutated"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let mut figures = Vec::new();
        for kind in [Kind::Set, Kind::Map] {
            for size in [1_000, run.pick(10_000, 30_000)] {
                figures.extend(measure(run, kind, size)?);
            }
        }
        Ok(figures)
    }
}

fn measure(run: &Run<'_>, kind: Kind, size: u32) -> Result<Vec<Figure>, Error> {
    let mut harness = Harness::new(run)?;
    let (column, elements) = column(kind, 0..size);
    harness.prepare(
        transact(&format!(
            r#"{{"op":"insert","table":"Item","row":{{"name":"large","{column}":{elements}}}}}"#
        )),
        |_| {},
    )?;
    harness.connect(1)?;
    // A client that rewrites the column knows its contents from a monitor or a select; its `wait`
    // operation checks that the column has not changed since.
    let (mut rewrites, mut mutations) = (Requests::default(), Requests::default());
    let mut before = elements;
    for change in 0..CHANGES {
        let (_, after) = self::column(kind, 0..size + change + 1);
        let text = request(&format!(
            r#"{{"op":"wait",{WHERE},"timeout":0,"columns":["{column}"],"until":"==","rows":[{{"{column}":{before}}}]}},{{"op":"update",{WHERE},"row":{{"{column}":{after}}}}}"#
        ));
        rewrites.push(&text);
        before = after;
        let added = size + CHANGES + change;
        let (_, added) = self::column(kind, added..added + 1);
        mutations.push(&request(&format!(
            r#"{{"op":"mutate",{WHERE},"mutations":[["{column}","insert",{added}]]}}"#
        )));
    }
    let mut figures = Vec::new();
    let titles = match kind {
        Kind::Set => [SET_REWRITTEN, SET_MUTATED],
        Kind::Map => [MAP_REWRITTEN, MAP_MUTATED],
    };
    for (titles, requests) in titles.into_iter().zip([rewrites, mutations]) {
        let phase = harness.phase(vec![requests], 1, None)?;
        let [bytes, wall, cpu] = titles;
        figures.extend([
            Figure::plain(bytes, "bytes/change", phase.bytes_each()).digits(0),
            Figure::lower(wall, "us/change", phase.wall_us_each()),
            Figure::lower(cpu, "us/change", phase.cpu_us_each()),
        ]);
    }
    Ok(figures
        .into_iter()
        .map(|figure| figure.at("elements", size))
        .collect())
}

const SET_REWRITTEN: [&str; 3] = [
    "set rewritten, bytes",
    "set rewritten, wall time",
    "set rewritten, server CPU",
];
const SET_MUTATED: [&str; 3] = [
    "set mutated, bytes",
    "set mutated, wall time",
    "set mutated, server CPU",
];
const MAP_REWRITTEN: [&str; 3] = [
    "map rewritten, bytes",
    "map rewritten, wall time",
    "map rewritten, server CPU",
];
const MAP_MUTATED: [&str; 3] = [
    "map mutated, bytes",
    "map mutated, wall time",
    "map mutated, server CPU",
];

/// Returns the name of a column of the given kind, and a datum for it.
fn column(kind: Kind, numbers: std::ops::Range<u32>) -> (&'static str, String) {
    let (name, tag) = match kind {
        Kind::Set => ("addresses", "set"),
        Kind::Map => ("options", "map"),
    };
    let mut text = format!(r#"["{tag}",["#);
    let first = numbers.start;
    for number in numbers {
        let comma = if number == first { "" } else { "," };
        let _ = match kind {
            Kind::Set => write!(text, r#"{comma}"element-{number:08}""#),
            Kind::Map => write!(text, r#"{comma}["key-{number:08}","value-{number}"]"#),
        };
    }
    text.push_str("]]");
    (name, text)
}

fn request(operations: &str) -> String {
    format!(r#"{{"id":0,"method":"transact","params":["Bench",{operations}]}}"#)
}

fn transact(operations: &str) -> Requests {
    Requests::one(&request(operations))
}
