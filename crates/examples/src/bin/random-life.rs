//! A client that acts at random, next to the Python clients of the test
//! `crates/python/tests/test_random.py`.
//!
//! Arguments: the schema, the remote, a seed. The client changes rows of the table `Cage`, moves
//! its condition and drops its connections, until a keeper named `end SEED` appears. Then it prints
//! its replica as JSON, `{TABLE: {UUID: {COLUMN: VALUE}}}`, with values as on the wire. Commits
//! arrive in order, so the replica contains everything that was committed before the keeper.

use std::error::Error;
use std::time::Duration;

use corvid::blocking::Client;
use corvid::data::{Arc, wire};
use corvid::json::Value;
use corvid::{Atom, Class, Clause, Column, Condition, Datum, Function, Idl, Misuse, RowId, Schema};

/// The time-out of every wait.
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(60));

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A random number generator (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn text(&mut self, kinds: u64) -> Atom {
        Atom::String(self.below(kinds).to_string().as_str().into())
    }
}

struct Columns {
    name: Column,
    number: Column,
    tags: Column,
    labels: Column,
    note: Column,
    animals: Column,
    keeper: Column,
    animal_name: Column,
    keeper_name: Column,
}

fn class(schema: &Arc<Schema>) -> Outcome<(Class, Columns)> {
    let mut class = Class::new(schema.clone());
    for table in schema.tables() {
        for column in table.columns() {
            let column = class.column(&table.name, &column.name)?;
            class.add_column(column);
        }
    }
    let columns = Columns {
        name: class.column("Cage", "name")?,
        number: class.column("Cage", "number")?,
        tags: class.column("Cage", "tags")?,
        labels: class.column("Cage", "labels")?,
        note: class.column("Cage", "note")?,
        animals: class.column("Cage", "animals")?,
        keeper: class.column("Cage", "keeper")?,
        animal_name: class.column("Animal", "name")?,
        keeper_name: class.column("Keeper", "name")?,
    };
    Ok((class, columns))
}

/// Makes one random change to a cage in the open transaction.
fn step(idl: &mut Idl, columns: &Columns, dice: &mut Dice) -> Result<(), Misuse> {
    let mut cages: Vec<RowId> = idl.rows(columns.name.table).collect();
    cages.sort();
    let cage = if cages.is_empty() || dice.below(4) == 0 {
        let cage = idl.insert_new(columns.name.table)?;
        idl.write(cage, columns.name, Datum::one(dice.text(1 << 30)))?;
        let number = dice.below(1000).cast_signed();
        idl.write(cage, columns.number, Datum::one(Atom::Integer(number)))?;
        cage
    } else {
        cages[dice.below(cages.len() as u64) as usize]
    };
    match dice.below(9) {
        0 => idl.delete(cage),
        1 => {
            for _ in 0..dice.below(40) {
                idl.add_value(cage, columns.tags, dice.text(60))?;
            }
            Ok(())
        }
        2 => idl
            .remove_value(cage, columns.tags, dice.text(60))
            .map(drop),
        3 => {
            let (key, value) = (dice.text(9), dice.text(5));
            idl.set_key(cage, columns.labels, key, value).map(drop)
        }
        4 => idl.remove_key(cage, columns.labels, dice.text(9)).map(drop),
        5 => idl.write(cage, columns.note, Datum::one(dice.text(3))),
        6 => {
            let animal = idl.insert_new(columns.animal_name.table)?;
            idl.write(animal, columns.animal_name, Datum::one(dice.text(9)))?;
            let animal = Atom::Uuid(animal.uuid);
            idl.add_value(cage, columns.animals, animal).map(drop)
        }
        7 => {
            let keeper = idl.rows(columns.keeper_name.table).min();
            let keeper = keeper.map_or_else(Datum::empty, |it| Datum::one(Atom::Uuid(it.uuid)));
            idl.write(cage, columns.keeper, keeper)
        }
        _ => idl.write(cage, columns.tags, Datum::one(dice.text(60))),
    }
}

fn is_over(idl: &Idl, columns: &Columns, end: &Datum) -> bool {
    let mut keepers = idl.rows(columns.keeper_name.table);
    keepers.any(|row| idl.read(row, columns.keeper_name).as_ref() == Some(end))
}

/// Prints the replica as JSON.
fn print(idl: &Idl) {
    let schema = idl.schema().clone();
    let mut text = Vec::new();
    let separator = |text: &mut Vec<u8>| {
        if !matches!(text.last(), None | Some(b'{')) {
            text.push(b',');
        }
    };
    text.push(b'{');
    for table_schema in schema.tables() {
        let Some(table) = schema.table_id(&table_schema.name) else {
            continue;
        };
        separator(&mut text);
        text.extend(format!("\"{}\":{{", table_schema.name).bytes());
        for row in idl.rows(table) {
            separator(&mut text);
            text.extend(format!("\"{}\":{{", row.uuid).bytes());
            for column in table_schema.columns() {
                let id = table_schema.column_id(&column.name);
                let datum = id.and_then(|id| idl.read(row, Column { table, id }));
                if let Some(datum) = datum {
                    separator(&mut text);
                    text.extend(format!("\"{}\":", column.name).bytes());
                    wire::write_datum(&mut text, &datum, column.column_type.value.is_some());
                }
            }
            text.push(b'}');
        }
        text.push(b'}');
    }
    text.push(b'}');
    println!("{}", String::from_utf8_lossy(&text));
}

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("arguments: SCHEMA REMOTE SEED");
    let (schema, remote, seed) = (next()?, next()?, next()?.parse::<u64>()?);
    let schema = Schema::from_json(&Value::parse(&std::fs::read(schema)?)?)?;
    let (class, columns) = class(&Arc::new(schema))?;
    let mut dice = Dice(seed | 1);
    let mut client = Client::connect(class, &remote)?;
    client.wait_for_contents(TIMEOUT)?;
    println!("begun");
    let end = Datum::one(Atom::String(format!("end {seed}").as_str().into()));
    while !is_over(client.idl(), &columns, &end) {
        match dice.below(20) {
            0 => client.reconnect(),
            1 => {
                let number = dice.below(1000).cast_signed();
                let number = Datum::one(Atom::Integer(number));
                let mut condition = Condition::none();
                condition.add(Clause::new("number", Function::Less, &number, false));
                client.set_condition((columns.number.table, condition), TIMEOUT)?;
            }
            2 => client.set_condition((columns.number.table, Condition::all()), TIMEOUT)?,
            _ => {
                // The transaction may fail: another client may have deleted the row, or taken its
                // name.
                let steps = 1 + dice.below(4);
                let _ = client.transact(TIMEOUT, |idl| {
                    (0..steps).try_for_each(|_| step(idl, &columns, &mut dice))
                });
            }
        }
    }
    client.set_condition((columns.number.table, Condition::all()), TIMEOUT)?;
    print(client.idl());
    Ok(())
}
