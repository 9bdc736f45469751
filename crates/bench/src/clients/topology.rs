//! Files of the northbound database for the measured clients, with many ports in switches, or with
//! sets of addresses.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::Path;

use corvid_data::Schema;
use corvid_log::{Magic, Record};

use crate::database_file;
use crate::error::Error;
use crate::northbound;

/// The number of ports of a switch.
pub(super) const PORTS_EACH: u32 = 200;

/// Writes a database of `ports` ports, with [`PORTS_EACH`] ports in each switch and a record for
/// each switch.
pub(super) fn write_ports(file: &Path, ports: u32) -> Result<(), Error> {
    write_ports_of(file, ports, PORTS_EACH)
}

/// Writes a database of `ports` ports, with `each` ports in each switch and a record for each
/// switch.
pub(crate) fn write_ports_of(file: &Path, ports: u32, each: u32) -> Result<(), Error> {
    let switches = (0..ports).step_by(each as usize);
    write(
        file,
        switches.map(|first| switch(first..ports.min(first + each), first / each)),
    )
}

/// Writes a database with one set of addresses for each size, named `set-SIZE`.
pub(super) fn write_sets(file: &Path, sizes: &[u32]) -> Result<(), Error> {
    let sets = sizes.iter().zip(0..).map(|(&size, number)| {
        let mut text = format!(
            r#""Address_Set":{{"{}":{{"name":"set-{size}","addresses":["set",["#,
            database_file::uuid(number)
        );
        for number in 0..size {
            let comma = if number == 0 { "" } else { "," };
            let _ = write!(text, r#"{comma}"{}""#, address(number));
        }
        text.push_str("]]}}");
        text
    });
    write(file, sets)
}

/// Returns an element of a set. All elements have the same length.
fn address(number: u32) -> String {
    let [_, high, middle, low] = number.to_be_bytes();
    format!("10.{high:03}.{middle:03}.{low:03}")
}

/// Returns an address that is in no set. It has the same length as the others, and is between them
/// in the sort order.
pub(super) fn absent_address(number: u32) -> String {
    format!("10.000.{:03}.{:03}", number % 118, 256 + number % 700)
}

fn switch(ports: Range<u32>, number: u32) -> String {
    // The UUIDs of ports and switches come from one sequence of numbers: ports use the beginning,
    // switches the second half.
    let mut text = format!(
        r#""Logical_Switch":{{"{}":{{"name":"switch-{number}","ports":["set",["#,
        database_file::uuid(u32::MAX / 2 + number)
    );
    for port in ports.clone() {
        let comma = if port == ports.start { "" } else { "," };
        let _ = write!(text, r#"{comma}["uuid","{}"]"#, database_file::uuid(port));
    }
    text.push_str(r#"]]}},"Logical_Switch_Port":{"#);
    for port in ports.clone() {
        let comma = if port == ports.start { "" } else { "," };
        let [_, high, middle, low] = port.to_be_bytes();
        let mac = format!("0a:00:00:{high:02x}:{middle:02x}:{low:02x} 10.{high}.{middle}.{low}");
        let _ = write!(
            text,
            r#"{comma}"{}":{{"name":"port-{port:06}","addresses":"{mac}","port_security":"{mac}","options":["map",[["requested-chassis","host-{number}"]]],"external_ids":["map",[["namespace","ns-{number}"],["pod","true"]]]}}"#,
            database_file::uuid(port)
        );
    }
    text.push('}');
    text
}

/// Writes a database of the northbound schema with a record for each element of `tables`, which is
/// the text of the members of a transaction.
fn write(file: &Path, tables: impl Iterator<Item = String>) -> Result<(), Error> {
    let schema = northbound::schema()?;
    let mut out = BufWriter::new(File::create(file)?);
    let mut record = Vec::new();
    corvid_log::write_schema(&mut record, &schema);
    // The daemon of the C library would insert this row of global settings if it were missing.
    let global = schema.table_id("NB_Global").map(|_| {
        let uuid = database_file::uuid(u32::MAX - 1);
        format!(r#""NB_Global":{{"{uuid}":{{}}}}"#)
    });
    for table in global.into_iter().chain(tables) {
        let mut body = Record::begin(&mut record, Magic::Standalone);
        write!(body.body(), r#"{{"_date":1700000000000,{table}}}"#)?;
        body.finish();
        out.write_all(&record)?;
        record.clear();
    }
    Ok(out.flush()?)
}

/// Writes the northbound schema to a file, for clients that need one.
pub(super) fn write_schema(file: &Path) -> Result<Schema, Error> {
    let schema = northbound::schema()?;
    std::fs::write(file, schema.to_json().to_bytes())?;
    Ok(schema)
}
