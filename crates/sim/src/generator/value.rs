//! Random values: atoms, data and conditions that mostly fit their columns.

use corvid_json::Value;

use super::Generator;
use corvid_model::atom::{Atom, Kind};
use corvid_model::schema::{Base, Type, UNLIMITED};

/// Number of UUIDs per table. The number is small, so that UUIDs are reused and references dangle.
const IDENTITIES: usize = 24;

const STRINGS: [&str; 9] = [
    "",
    "a",
    "b",
    "ab",
    "a b",
    "é",
    "true",
    "x\"y\\z",
    "länger als drei",
];

fn array(elements: Vec<Value>) -> Value {
    Value::Array(elements)
}

fn tagged(tag: &str, text: &str) -> Value {
    array(vec![Value::string(tag), Value::string(text)])
}

impl Generator {
    /// Draws a UUID from a table's own small range.
    pub(super) fn invented_uuid(&mut self, table: &str) -> String {
        let table = table.trim_start_matches('T').parse::<usize>().unwrap_or(99);
        let number = self.dice.below(IDENTITIES);
        format!("00000000-0000-4000-8{table:03}-{number:012x}")
    }

    /// Draws the UUID of a row that probably exists.
    pub(super) fn known_uuid(&mut self, table: &str) -> String {
        let rows = self
            .rows
            .get(table)
            .filter(|rows| !rows.is_empty())
            .cloned();
        match rows {
            Some(rows) if !self.dice.chance(4) => self.dice.pick(&rows).clone(),
            _ => self.invented_uuid(table),
        }
    }

    /// Draws a reference to a row of a table.
    pub(super) fn reference(&mut self, table: &str) -> Value {
        let names: Vec<String> = self
            .names
            .iter()
            .filter(|(of, _)| of == table)
            .map(|(_, name)| name.clone())
            .collect();
        if self.may_name && !names.is_empty() && self.dice.chance(60) {
            let name: &String = self.dice.pick(&names);
            return tagged("named-uuid", name);
        }
        if self.may_name && self.dice.chance(1) {
            return tagged("named-uuid", "nobody");
        }
        tagged("uuid", &self.known_uuid(table))
    }

    /// Whether a table has a row to which a reference can point.
    fn has_target(&self, table: &str) -> bool {
        let has_name = self.may_name && self.names.iter().any(|(of, _)| of == table);
        has_name || self.rows.get(table).is_some_and(|rows| !rows.is_empty())
    }

    /// Draws an atom, which occasionally violates its constraints.
    pub(super) fn atom(&mut self, base: &Base) -> Value {
        if let Some(allowed) = &base.allowed
            && !self.dice.chance(4)
        {
            let allowed: Vec<Atom> = allowed.iter().cloned().collect();
            return self.dice.pick(&allowed).to_json();
        }
        match base.kind {
            Kind::Integer => Value::Integer(self.integer(base)),
            Kind::Real => {
                let choices = [-1.5, 0.0, 0.5, 1.0, 2.0, 2.5, 1e10, 0.1];
                let choices = if self.profile.keeps_reals_exact {
                    &choices[..6]
                } else {
                    &choices
                };
                let real: f64 = *self.dice.pick(choices);
                if self.dice.chance(90) && base.high.is_some() {
                    Value::Real(real.min(2.0))
                } else {
                    Value::Real(real)
                }
            }
            Kind::Boolean => Value::Bool(self.dice.chance(50)),
            Kind::String => Value::string(self.string(base)),
            Kind::Uuid => match &base.reference {
                Some(reference) => {
                    let table = reference.table.clone();
                    self.reference(&table)
                }
                None => tagged("uuid", &self.invented_uuid("T77")),
            },
        }
    }

    fn integer(&mut self, base: &Base) -> i64 {
        if self.dice.chance(2) {
            return *self.dice.pick(&[100, -100, 1 << 40]);
        }
        let bound = |bound: &Option<Atom>, usual: i64| match bound {
            Some(Atom::Integer(bound)) => *bound,
            _ => usual,
        };
        let low = bound(&base.low, -3);
        self.dice.between(low, bound(&base.high, 9).max(low))
    }

    fn string(&mut self, base: &Base) -> &'static str {
        let is_strict = self.dice.chance(96);
        let fits = |text: &&&str| {
            let length = Atom::Integer(text.chars().count() as i64);
            !is_strict
                || (base.low.as_ref().is_none_or(|low| length >= *low)
                    && base.high.as_ref().is_none_or(|high| length <= *high))
        };
        let fitting: Vec<&str> = STRINGS.iter().filter(fits).copied().collect();
        fitting[self.dice.below(fitting.len())]
    }

    /// Draws a datum of a type. A few have too many elements, or a repeated one.
    pub(super) fn datum(&mut self, ty: &Type) -> Value {
        if ty.is_scalar() {
            let atom = self.atom(&ty.key);
            return if self.dice.chance(95) {
                atom
            } else {
                array(vec![Value::string("set"), array(vec![atom])])
            };
        }
        let most = if ty.max == UNLIMITED {
            4
        } else {
            ty.max as usize
        };
        let most = if self.dice.chance(2) { most + 1 } else { most };
        // A column whose references would dangle stays empty.
        let targets: Vec<String> = ty
            .references()
            .map(|(_, reference)| reference.table.clone())
            .collect();
        let is_void = targets.iter().any(|table| !self.has_target(table));
        let most = if is_void && self.dice.chance(95) {
            0
        } else {
            most
        };
        let least = if most == 0 || self.dice.chance(2) {
            0
        } else {
            ty.min as usize
        };
        let count = least + self.dice.below(most + 1 - least);
        let mut elements: Vec<Value> = Vec::new();
        let mut keys: Vec<Value> = Vec::new();
        let may_repeat = self.dice.chance(3);
        for _ in 0..count {
            let key = self.atom(&ty.key);
            if keys.contains(&key) && !may_repeat && elements.len() >= least {
                continue;
            }
            keys.push(key.clone());
            elements.push(match &ty.value {
                None => key,
                Some(value) => {
                    let value = self.atom(value);
                    array(vec![key, value])
                }
            });
        }
        match (&ty.value, elements.len()) {
            (Some(_), _) => array(vec![Value::string("map"), array(elements)]),
            (None, 1) if self.dice.chance(70) => elements.remove(0),
            (None, _) => array(vec![Value::string("set"), array(elements)]),
        }
    }

    /// Draws the name of a column.
    pub(super) fn column(&mut self, table: &str) -> String {
        let columns: Vec<&String> = self.schema.tables[table].columns.keys().collect();
        (*self.dice.pick(&columns)).clone()
    }

    /// Draws clauses that must all hold. Mostly they match one row.
    pub(super) fn condition(&mut self, table: &str) -> Value {
        let count = *self.dice.pick(&[0, 1, 1, 1, 1, 2, 3]);
        array((0..count).map(|_| self.clause(table)).collect())
    }

    /// Draws a clause.
    pub(super) fn clause(&mut self, table: &str) -> Value {
        if self.dice.chance(4) {
            return Value::Bool(self.dice.chance(70));
        }
        if self.dice.chance(35) {
            let function = *self.dice.pick(&["==", "==", "==", "includes", "!="]);
            let uuid = self.reference(table);
            return array(vec![Value::string("_uuid"), Value::string(function), uuid]);
        }
        let column = self.column(table);
        self.clause_on(table, &column)
    }

    /// Draws a clause on a column.
    pub(super) fn clause_on(&mut self, table: &str, column: &str) -> Value {
        let ty = self.schema.tables[table].columns[column].ty.clone();
        let is_ordered =
            matches!(ty.key.kind, Kind::Integer | Kind::Real) && ty.value.is_none() && ty.max == 1;
        let function = match self.dice.below(10) {
            0..3 => "==",
            3 => "!=",
            4..6 => "includes",
            6 => "excludes",
            _ if is_ordered || self.dice.chance(5) => *self.dice.pick(&["<", "<=", ">", ">="]),
            _ => "includes",
        };
        let argument = match function {
            "<" | "<=" | ">" | ">=" => self.atom(&ty.key),
            "includes" | "excludes" if !ty.is_scalar() => self.datum(&ty.limited(0, ty.max)),
            _ => self.datum(&ty),
        };
        array(vec![
            Value::string(column),
            Value::string(function),
            argument,
        ])
    }
}
