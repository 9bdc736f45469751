//! Many viewers of one table: what a change costs the console, and how soon all have it.

use std::thread;
use std::time::{Duration, Instant};

use super::{Setup, idle_us, ms, transact};
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::{self, Figure};

const ROWS: u32 = 1000;
const CHANGES: u32 = 30;

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let file = directory.path().join("table.db");
    database_file::write(&file, History::of_rows(ROWS))?;
    let server = setup.serve(&file)?;
    let console = setup.console(&server)?;
    console.page_with("/db/bench/table/Item", "<tr data-uuid")?;
    let mut figures = Vec::new();
    for viewers in [1_u32, 500] {
        let streams: Result<Vec<_>, Error> = (0..viewers)
            .map(|_| console.viewer("/db/bench/table/Item/events"))
            .collect();
        let mut streams = streams?;
        let before_us = idle_us(|| console.cpu_us())?;
        let mut taken = Vec::new();
        for number in 0..CHANGES {
            let uuid = database_file::uuid(number);
            let row = format!(
                r#"{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{}}}}}"#,
                u64::from(viewers) * 1000 + u64::from(number) + u64::from(ROWS)
            );
            let began = Instant::now();
            transact(server.address(), "Bench", &row)?;
            for stream in &mut streams {
                stream.event()?;
            }
            taken.push(ms(began.elapsed()));
            thread::sleep(Duration::from_millis(50));
        }
        let cost_us = (idle_us(|| console.cpu_us())? - before_us) / f64::from(CHANGES);
        let at = |figure: Figure| figure.at("viewers", viewers);
        figures.push(at(Figure::lower(
            "change: until all viewers have it",
            "ms",
            figure::middle(taken),
        )));
        figures.push(at(Figure::lower(
            "change: CPU of the console",
            "us",
            cost_us,
        )
        .digits(0)));
        figures.push(at(Figure::lower(
            "memory of the console",
            "MiB",
            console.memory()?.resident_mib,
        )));
    }
    Ok(figures)
}
