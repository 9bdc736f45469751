//! Measures the Rust client on a server with an empty zoo: loading, reading, looking up and
//! changing rows. `crates/capi/bench/figures.c` measures the same in C, and `make bench-c` prints
//! both.
//!
//! Reading and looking up never wait, so they are measured in wall-clock time; the kernel counts
//! CPU time in coarser steps.
//!
//! Arguments: the schema, the remote, the number of rows. Each output line has the name of a
//! figure, a tab and its value. The names are those of the program in C.

use std::error::Error;
use std::time::Instant;

use corvid::blocking::Client;
use corvid::data::Arc;
use corvid::json::Value;
use corvid::{Atom, Class, Column, Datum, IndexColumn, RowId, Schema};

const CHANGES: u32 = 2000;
const BATCH: usize = 1000;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Returns the CPU time of the only thread, in seconds.
fn cpu() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos: f64 = text.split_whitespace().next().ok_or("no time")?.parse()?;
    Ok(nanos / 1e9)
}

fn figure(name: &str, value: f64) {
    println!("{name}\t{value:.4}");
}

struct Columns {
    name: Column,
    age: Column,
    ids: Column,
}

fn class(schema: &Arc<Schema>) -> Outcome<(Class, Columns)> {
    let mut class = Class::new(schema.clone());
    let columns = Columns {
        name: class.column("Keeper", "name")?,
        age: class.column("Keeper", "age")?,
        ids: class.column("Keeper", "external_ids")?,
    };
    for column in [columns.name, columns.age, columns.ids] {
        class.add_column(column);
    }
    Ok((class, columns))
}

fn load(schema: &Arc<Schema>, remote: &str) -> Outcome<(Client, Columns)> {
    let (class, columns) = class(schema)?;
    let mut client = Client::connect(class, remote)?;
    client.wait_for_contents(None)?;
    Ok((client, columns))
}

fn text(at: usize) -> Atom {
    Atom::String(format!("keeper-{at}").as_str().into())
}

fn fill(client: &mut Client, columns: &Columns, count: usize) -> Outcome {
    let begun = cpu()?;
    for first in (0..count).step_by(BATCH) {
        client.transact(None, |idl| {
            for at in first..count.min(first + BATCH) {
                let row = idl.insert_new(columns.name.table)?;
                idl.write(row, columns.name, Datum::one(text(at)))?;
                let age = Atom::Integer((at % 100).try_into().unwrap_or(0));
                idl.write(row, columns.age, Datum::one(age))?;
                let mut ids = Datum::pair(Atom::String("owner".into()), Atom::String("zoo".into()));
                ids.insert(Atom::String("serial".into()), Some(text(at)));
                idl.write(row, columns.ids, ids)?;
            }
            Ok::<_, corvid::Misuse>(())
        })?;
    }
    figure("insert, CPU us/row", (cpu()? - begun) * 1e6 / count as f64);
    Ok(())
}

fn read_all(client: &Client, columns: &Columns, count: usize) -> Outcome {
    let begun = Instant::now();
    let (mut sum, mut letters) = (0, 0);
    // The program in C also lists the rows first, and then reads the columns of each row.
    let rows: Vec<RowId> = client.rows(columns.name.table).collect();
    for row in rows {
        let name = client.read(row, columns.name).ok_or("no row")?;
        letters += name.as_string().map_or(0, |text| text.len());
        let age = client.read(row, columns.age).ok_or("no row")?;
        sum += age.as_integer().unwrap_or(0);
    }
    assert!(sum > 0 && letters > 0);
    let per_row = begun.elapsed().as_secs_f64() * 1e9 / count as f64;
    figure("read two columns of each row, ns/row", per_row);
    Ok(())
}

fn look_up(client: &mut Client, columns: &Columns, count: usize) -> Outcome {
    let by_name = vec![IndexColumn::ascending(columns.name)];
    let index = client
        .idl_mut()
        .add_index(columns.name.table, "", by_name)?;
    let names: Vec<String> = (0..count).map(|at| format!("keeper-{at}")).collect();
    let begun = Instant::now();
    for name in &names {
        let mut key = client.key(index);
        key.set(columns.name, Datum::one(Atom::String(name.as_str().into())));
        client.find(&key).ok_or("no row")?;
    }
    figure(
        "look a row up by name, ns",
        begun.elapsed().as_secs_f64() * 1e9 / count as f64,
    );
    Ok(())
}

fn change(client: &mut Client, columns: &Columns) -> Outcome {
    let row = client.rows(columns.name.table).next().ok_or("no row")?;
    let begun = cpu()?;
    for at in 0..CHANGES {
        client.transact(None, |idl| {
            idl.write(
                row,
                columns.age,
                Datum::one(Atom::Integer((1000 + at).into())),
            )
        })?;
    }
    let per_txn = (cpu()? - begun) * 1e6 / f64::from(CHANGES);
    figure("change one column, CPU us/txn", per_txn);
    Ok(())
}

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("arguments: SCHEMA REMOTE ROWS");
    let (schema, remote, count) = (next()?, next()?, next()?.parse()?);
    let json = Value::parse(&std::fs::read(schema)?)?;
    let schema = Arc::new(Schema::from_json(&json)?);
    let (mut client, columns) = load(&schema, &remote)?;
    fill(&mut client, &columns, count)?;
    drop(client);
    let begun = cpu()?;
    let (mut client, columns) = load(&schema, &remote)?;
    figure("load, CPU us/row", (cpu()? - begun) * 1e6 / count as f64);
    read_all(&client, &columns, count)?;
    look_up(&mut client, &columns, count)?;
    change(&mut client, &columns)
}
