//! Traffic from one seed: schemas, transactions, monitors and damaged requests.
//!
//! Values come from small domains, so that they collide. Identities are mostly those of existing
//! rows, which the caller passes in. A [`Profile`] excludes requests that the peer cannot handle.

mod damage;
mod monitor;
mod operation;
mod schema;
mod value;

use std::collections::BTreeMap;

use corvid_json::Value;

use crate::world::dice::Dice;
use corvid_model::schema::Schema;

/// The requests that may be generated.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Exclude requests on which the reference server crashes or is documented to err
    /// (docs/spec/protocol.md 9).
    pub suits_reference: bool,
    /// Use only reals that survive the wire, which carries 15 digits (docs/spec/protocol.md 1.4).
    pub keeps_reals_exact: bool,
    /// Percentage of operations that are damaged.
    pub damage_percent: usize,
}

/// Generates traffic for one schema.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Its source of randomness; drivers may draw from it too.
    pub dice: Dice,
    /// The schema of the traffic.
    pub schema: Schema,
    profile: Profile,
    /// Identities of existing rows as text, by table.
    rows: BTreeMap<String, Vec<String>>,
    /// Names of the rows that the current transaction inserts, with their tables.
    names: Vec<(String, String)>,
    /// Whether names may stand for UUIDs, as inside a transaction.
    may_name: bool,
}

impl Generator {
    /// Generates a schema, and a generator for it.
    #[must_use]
    pub fn new(mut dice: Dice, profile: Profile) -> Generator {
        let json = schema::generate(&mut dice, profile);
        Generator {
            schema: Schema::read(&json),
            dice,
            profile,
            rows: BTreeMap::new(),
            names: Vec::new(),
            may_name: false,
        }
    }

    /// Sets the existing rows of a table.
    pub fn set_rows(&mut self, table: &str, rows: Vec<String>) {
        self.rows.insert(table.to_owned(), rows);
    }

    /// A random table.
    pub fn table(&mut self) -> String {
        let names: Vec<&String> = self.schema.tables.keys().collect();
        (*self.dice.pick(&names)).clone()
    }

    /// The operations of a transaction.
    pub fn transaction(&mut self) -> Vec<Value> {
        self.may_name = true;
        let operations = operation::transaction(self);
        self.may_name = false;
        // Parsed from text, where a real 2.0 becomes the integer 2.
        let text = Value::Array(operations).to_bytes();
        let operations = Value::parse(&text).expect("valid JSON");
        operations.as_array().expect("an array").to_vec()
    }

    /// Valid monitor requests; without conditions if `is_v1`.
    pub fn monitor(&mut self, is_v1: bool) -> Value {
        monitor::requests(self, is_v1)
    }

    /// Valid requests that change the conditions of the tables in `requests`.
    pub fn condition_change(&mut self, requests: &Value) -> Value {
        monitor::change(self, requests)
    }

    /// The value with damage in one place.
    pub fn damaged(&mut self, value: &Value) -> Value {
        damage::damaged(&mut self.dice, value)
    }
}
