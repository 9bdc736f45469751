//! Traffic from one seed: schemas, transactions, monitors and damage to them.
//!
//! Values come from small domains, so that they collide; identities are mostly those of rows that exist. Whoever drives the generator
//! tells it which rows those are. A [`Taste`] keeps it from what a peer cannot stand.

mod damage;
mod monitor;
mod operation;
mod schema;
mod value;

use std::collections::BTreeMap;

use corvid_json::Value;

use crate::dice::Dice;
use crate::model::schema::Schema;

/// What may be generated.
#[derive(Clone, Copy, Debug)]
pub struct Taste {
    /// Nothing on which the reference server crashes or is documented to err (docs/spec/protocol.md 9).
    pub suits_reference: bool,
    /// Only reals that the wire carries without loss, which it does for 15 digits (docs/spec/protocol.md 1.4).
    pub keeps_reals_exact: bool,
    /// How many operations in a hundred are damaged.
    pub damage_percent: usize,
}

/// A source of traffic on one schema.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Its randomness; drivers may draw from it too.
    pub dice: Dice,
    /// The schema.
    pub schema: Schema,
    taste: Taste,
    /// Identities of existing rows, as text, by table.
    rows: BTreeMap<String, Vec<String>>,
    /// Names of rows that the transaction in work inserts, with their tables.
    names: Vec<(String, String)>,
    /// Names are allowed where a uuid is: inside a transaction.
    may_name: bool,
}

impl Generator {
    /// Makes a schema and begins.
    #[must_use]
    pub fn new(mut dice: Dice, taste: Taste) -> Generator {
        let json = schema::generate(&mut dice, taste);
        Generator {
            schema: Schema::read(&json),
            dice,
            taste,
            rows: BTreeMap::new(),
            names: Vec::new(),
            may_name: false,
        }
    }

    /// Tells which rows a table has.
    pub fn set_rows(&mut self, table: &str, rows: Vec<String>) {
        self.rows.insert(table.to_owned(), rows);
    }

    /// A table, any.
    pub fn table(&mut self) -> String {
        let names: Vec<&String> = self.schema.tables.keys().collect();
        (*self.dice.pick(&names)).clone()
    }

    /// The operations of a transaction.
    pub fn transaction(&mut self) -> Vec<Value> {
        self.may_name = true;
        let operations = operation::transaction(self);
        self.may_name = false;
        // Read back from text, in which a real 2.0 is the integer 2.
        let text = Value::Array(operations).to_bytes();
        let operations = Value::parse(&text).expect("valid JSON");
        operations.as_array().expect("an array").to_vec()
    }

    /// Valid monitor requests; `is_v1` knows no conditions.
    pub fn monitor(&mut self, is_v1: bool) -> Value {
        monitor::requests(self, is_v1)
    }

    /// Valid requests to change conditions, for the tables of `requests`.
    pub fn condition_change(&mut self, requests: &Value) -> Value {
        monitor::change(self, requests)
    }

    /// The value with one place of it spoilt.
    pub fn damaged(&mut self, value: &Value) -> Value {
        damage::damaged(&mut self.dice, value)
    }
}
