//! Measures a change of one element of a large set: the work of a client that receives the change,
//! and the number of bytes that the client that makes it sends. Neither may grow with the size of
//! the set.

use std::thread;
use std::time::{Duration, Instant};

use corvid_data::{Atom, Str};
use corvid_idl::{Class, Column, RowId};

use super::process::Client;
use super::session::Session;
use super::{Line, Setup, replica, topology};
use crate::error::Error;
use crate::figure::{self, Aim, Figure};

/// The numbers of elements of the sets.
const SIZES: [u32; 2] = [100, 30_000];
/// The number of changes of each set that are measured within this process. Half of them insert an
/// element, the other half delete it again.
const CHANGES: u32 = 1_000;
/// The number of changes of each set that the other processes receive, and the time between two
/// changes, in which every client finishes handling the first.
const TOLD: u32 = 100;
const APART: Duration = Duration::from_millis(10);

pub(super) fn measure(setup: &Setup<'_>) -> Result<Vec<Line>, Error> {
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let (file, schema) = (
        directory.path().join("sets.db"),
        directory.path().join("schema"),
    );
    topology::write_sets(&file, &SIZES)?;
    topology::write_schema(&schema)?;
    let server = setup.serve(&file)?;
    let class =
        || -> Result<Class, Error> { Ok(Class::everything(replica::read_schema(&schema)?)) };
    let mut writer = Session::open(class()?, server.address())?;
    let mut watcher = Session::open(class()?, server.address())?;
    let mut lines = within(&mut writer, &mut watcher)?;
    drop(watcher);
    let mut cpu_us = [[f64::NAN; 3]; SIZES.len()];
    for &(place, kind) in &setup.kinds {
        let client = Client::start(kind, server.address(), &schema)?;
        for (&size, cpu_us) in SIZES.iter().zip(&mut cpu_us) {
            let set = Set::find(&writer, size)?;
            let before_us = client.idle_cpu_us()?;
            for change in 0..TOLD {
                set.change(&mut writer, change)?;
                thread::sleep(APART);
            }
            cpu_us[place] = (client.idle_cpu_us()? - before_us) / f64::from(TOLD);
        }
    }
    for (size, cpu_us) in SIZES.into_iter().zip(cpu_us) {
        lines.push(Line::of(cpu_us, |value| {
            Figure::lower("hearing of one element: client CPU", "us/change", value)
                .at("elements", size)
        }));
    }
    Ok(lines)
}

/// Returns the figures that are measured within this process.
fn within(writer: &mut Session, watcher: &mut Session) -> Result<Vec<Line>, Error> {
    let mut lines = Vec::new();
    let (mut applied, mut made, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for size in SIZES {
        let set = Set::find(writer, size)?;
        let (mut applying_us, mut making_us) = (Vec::new(), Vec::new());
        let sent_bytes = writer.sent_bytes;
        for change in 0..CHANGES {
            let seqno = watcher.idl.change_seqno();
            watcher.handling = Duration::ZERO;
            making_us.push(set.change(writer, change)?.as_secs_f64() * 1e6);
            watcher.wait_until(|idl| idl.change_seqno() != seqno)?;
            applying_us.push(watcher.handling.as_secs_f64() * 1e6);
        }
        applied.push(figure::middle(applying_us));
        made.push(figure::middle(making_us));
        bytes.push((writer.sent_bytes - sent_bytes) as f64 / f64::from(CHANGES));
    }
    for (title, unit, values, aim) in [
        (
            "applying one element: time p50",
            "us",
            applied,
            Aim::AtMost(1.5),
        ),
        ("making the change: time p50", "us", made, Aim::None),
        (
            "making the change: bytes sent",
            "bytes",
            bytes,
            Aim::AtMost(1.05),
        ),
    ] {
        for (size, &value) in SIZES.into_iter().zip(&values) {
            let figure = Figure::lower(title, unit, value).digits(2);
            lines.push(Line::alone(figure.at("elements", size)));
        }
        let growth = Figure::lower("  30,000 elements over 100", "", values[1] / values[0]);
        lines.push(Line::alone(growth.digits(3).aim(aim)));
    }
    Ok(lines)
}

/// A set in the database.
struct Set {
    row: RowId,
    column: Column,
}

impl Set {
    fn find(session: &Session, size: u32) -> Result<Set, Error> {
        let missing = |what: &dyn std::fmt::Display| Error::Client(what.to_string());
        let column = |name: &str| {
            let column = session.idl.class().column("Address_Set", name);
            column.map_err(|error| missing(&error))
        };
        let (name, column) = (column("name")?, column("addresses")?);
        let wanted = format!("set-{size}");
        let is_wanted = |row: &RowId| {
            let value = session.idl.read(*row, name);
            value.is_some_and(|value| value.as_string().is_some_and(|name| **name == *wanted))
        };
        let row = session.idl.rows(name.table).find(is_wanted);
        Ok(Set {
            row: row.ok_or_else(|| missing(&format!("{wanted} is missing")))?,
            column,
        })
    }

    /// Inserts an element, or deletes the element that was inserted last. Returns the time to make
    /// and send the change.
    fn change(&self, writer: &mut Session, change: u32) -> Result<Duration, Error> {
        let element = Atom::String(Str::new(&topology::absent_address(change / 2)));
        let began = Instant::now();
        let mut made = Duration::ZERO;
        writer.transact(|idl| {
            if change.is_multiple_of(2) {
                idl.add_value(self.row, self.column, element)?;
            } else {
                idl.remove_value(self.row, self.column, element)?;
            }
            made = began.elapsed();
            Ok(())
        })?;
        Ok(made)
    }
}
