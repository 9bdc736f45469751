//! Pages of a table of a million rows: in the order of the replica, sorted and filtered, right
//! after a change; and the memory of the console next to that of a plain client.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::{Setup, median_ms, ms, transact};
use crate::clients::process::{Client, Kind};
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::workload::Scale;

/// Rows on a page.
const PAGE: u32 = 50;
/// The aim for a page, in milliseconds.
const PAGE_MS: f64 = 50.0;
/// The memory that the console may need beyond a plain client, in MiB.
const MORE_MIB: f64 = 64.0;
/// Pages of each kind; their median is reported.
const PAGES: usize = 9;

/// The time after which the allocator has returned memory that only loading needed.
const MEMORY_RELEASE: Duration = Duration::from_secs(12);
/// The time after which rows that nobody looks at have left the memory.
const LEFT: Duration = Duration::from_secs(140);

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let rows: u32 = setup.scale.pick(200_000, 1_000_000);
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let [file, schema] = ["table.db", "schema"].map(|name| directory.path().join(name));
    database_file::write(&file, History::of_rows(rows))?;
    fs::write(
        &schema,
        database_file::schema_of(&file)?.to_json().to_bytes(),
    )?;
    let server = setup.serve(&file)?;
    let client = Client::start(Kind::Ours, server.address(), &schema)?;
    let console = setup.console(&server)?;
    let began = Instant::now();
    let total = format!(">{rows}</b>");
    console.page_with("/db/bench/table/Item", &total)?;
    let arrived = began.elapsed();
    thread::sleep(MEMORY_RELEASE);
    let (plain, unsorted) = (client.memory()?, console.memory()?);

    let at = |figure: Figure| figure.at("rows", rows);
    let mut figures = vec![
        at(Figure::lower(
            "page of a table: until its rows have arrived",
            "ms",
            ms(arrived),
        )),
        at(Figure::plain(
            "a plain client: until its rows have arrived",
            "ms",
            ms(client.synced_in),
        )),
    ];
    let last = rows / PAGE;
    let page = |query: &str, number: u32| {
        let path = format!("/db/bench/table/Item?{query}&page={number}");
        Ok::<_, Error>(console.page_with(&path, "<tr data-uuid")?.took)
    };
    let pages = |query: &str| {
        let spread = |at: usize| 1 + last / 10 * u32::try_from(at).unwrap_or(0);
        median_ms(PAGES, |at| page(query, spread(at)))
    };
    for (query, title, first) in [
        ("", "page in the order of the replica", ""),
        (
            "sort=number",
            "page in the order of a number",
            "first page in the order of a number",
        ),
        (
            "sort=-name",
            "page in the order of a name",
            "first page in the order of a name",
        ),
        (
            "where=number+%3E+1000",
            "page of a filter",
            "first page of a filter",
        ),
    ] {
        let began = page(query, 1)?;
        if !first.is_empty() {
            figures.push(at(Figure::lower(first, "ms", ms(began))));
        }
        figures.push(at(
            Figure::lower(title, "ms", pages(query)?).aim(Aim::AtMost(PAGE_MS))
        ));
    }
    let mut value = 2 * rows;
    for (query, title) in [
        (
            "sort=number",
            "page in the order of a number, after a change",
        ),
        ("where=number+%3E+1000", "page of a filter, after a change"),
    ] {
        let took = median_ms(PAGES, |number| {
            let number = u32::try_from(number).unwrap_or(0);
            let uuid = database_file::uuid(number * 7);
            value += 1;
            let row = format!(
                r#"{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{value}}}}}"#
            );
            transact(server.address(), "Bench", &row)?;
            thread::sleep(Duration::from_millis(100));
            page(query, 1 + last / 10 * number)
        })?;
        figures.push(at(
            Figure::lower(title, "ms", took).aim(Aim::AtMost(PAGE_MS))
        ));
    }
    thread::sleep(MEMORY_RELEASE);
    let sorted = console.memory()?;
    for (title, memory) in [
        ("memory beyond a plain client, table shown", unsorted),
        (
            "memory beyond a plain client, after sorting and filtering",
            sorted,
        ),
    ] {
        let more = memory.resident_mib - plain.resident_mib;
        figures.push(at(
            Figure::lower(title, "MiB", more).aim(Aim::AtMost(MORE_MIB))
        ));
    }
    if setup.scale == Scale::Full {
        thread::sleep(LEFT);
        let left = console.memory()?.resident_mib;
        figures.push(at(Figure::lower(
            "memory two minutes after the last page",
            "MiB",
            left,
        )));
    }
    figures.push(at(Figure::plain(
        "largest memory of the console",
        "MiB",
        sorted.peak_mib,
    )));
    figures.push(at(Figure::plain(
        "memory of a plain client",
        "MiB",
        plain.resident_mib,
    )));
    Ok(figures)
}
