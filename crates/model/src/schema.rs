//! Schemas of the model: plain maps by name. Only valid schemas can be parsed.

use std::collections::{BTreeMap, BTreeSet};

use corvid_json::Value;

use super::atom::{Atom, Kind, Real};
use super::datum::Datum;

/// The number of elements or rows that means "no limit".
pub const UNLIMITED: u64 = 4_294_967_295;

/// The reference constraint of a base type.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The name of the referenced table.
    pub table: String,
    /// Whether the reference keeps its target alive.
    pub is_strong: bool,
}

/// A key or value type with its constraints.
#[derive(Clone, Debug)]
pub struct Base {
    /// The atomic type.
    pub kind: Kind,
    /// The allowed atoms, if they are enumerated.
    pub allowed: Option<BTreeSet<Atom>>,
    /// The smallest allowed number, or the smallest length of a string.
    pub low: Option<Atom>,
    /// The largest allowed number, or the largest length of a string.
    pub high: Option<Atom>,
    /// The reference constraint, for UUIDs.
    pub reference: Option<Reference>,
}

/// The type of a column.
#[derive(Clone, Debug)]
pub struct Type {
    /// The type of set elements, or of a map's keys.
    pub key: Base,
    /// The type of a map's values; `None` for sets.
    pub value: Option<Base>,
    /// The smallest number of elements. Columns declare 0 or 1; conditions and mutations also use
    /// other limits.
    pub min: u64,
    /// The largest number of elements, up to [`UNLIMITED`].
    pub max: u64,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The type.
    pub ty: Type,
    /// Whether the column may change after the row is inserted.
    pub is_mutable: bool,
}

/// A table of the schema.
#[derive(Clone, Debug)]
pub struct Table {
    /// The declared columns by name, without `_uuid` and `_version`.
    pub columns: BTreeMap<String, Column>,
    /// Whether the table is in the root set, so that its rows are never garbage-collected.
    pub is_root: bool,
    /// The largest number of rows, up to [`UNLIMITED`].
    pub max_rows: u64,
    /// The indexes: lists of columns whose values must be unique together.
    pub indexes: Vec<Vec<String>>,
}

/// A database schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The database's name.
    pub name: String,
    /// The tables by name.
    pub tables: BTreeMap<String, Table>,
    /// The JSON form that the schema was parsed from.
    pub json: Value,
}

impl Base {
    /// Makes a base type without constraints.
    #[must_use]
    pub fn plain(kind: Kind) -> Base {
        Base {
            kind,
            allowed: None,
            low: None,
            high: None,
            reference: None,
        }
    }

    fn read(json: &Value) -> Base {
        let name = json.as_str().or_else(|| json.get("type")?.as_str());
        let kind = Kind::ALL.into_iter().find(|kind| Some(kind.name()) == name);
        let mut base = Base::plain(kind.expect("an atomic type"));
        let bound = |suffixes: &[&str]| {
            let members = suffixes.iter().filter_map(|name| json.get(name));
            members.map(|bound| bound_atom(base.kind, bound)).next()
        };
        let low = bound(&["minInteger", "minReal", "minLength"]);
        let high = bound(&["maxInteger", "maxReal", "maxLength"]);
        (base.low, base.high) = (low, high);
        base.reference = json.get("refTable").map(|table| Reference {
            table: table.as_str().expect("a name").to_owned(),
            is_strong: json.get("refType").and_then(Value::as_str) != Some("weak"),
        });
        base.allowed = json.get("enum").map(|allowed| {
            let ty = Type {
                key: Base::plain(base.kind),
                value: None,
                min: 1,
                max: UNLIMITED,
            };
            let datum = Datum::read(&ty, allowed, &mut super::datum::no_names);
            datum.expect("an enum").keys().cloned().collect()
        });
        base
    }
}

fn bound_atom(kind: Kind, bound: &Value) -> Atom {
    match (kind, bound) {
        (Kind::Real, Value::Integer(bound)) => Atom::Real(Real::new(*bound as f64)),
        (_, Value::Real(bound)) => Atom::Real(Real::new(*bound)),
        (_, bound) => Atom::Integer(bound.as_integer().expect("a bound")),
    }
}

impl Type {
    /// Makes the type of exactly one atom, such as that of `_uuid` and `_version`.
    #[must_use]
    pub fn scalar(key: Base) -> Type {
        Type {
            key,
            value: None,
            min: 1,
            max: 1,
        }
    }

    /// Returns the type with other element limits.
    #[must_use]
    pub fn limited(&self, min: u64, max: u64) -> Type {
        Type {
            min,
            max,
            ..self.clone()
        }
    }

    fn read(json: &Value) -> Type {
        let Some(key) = json.get("key") else {
            return Type::scalar(Base::read(json));
        };
        let limit = |name| match json.get(name) {
            Some(Value::Integer(limit)) => *limit as u64,
            Some(_) => UNLIMITED,
            None => 1,
        };
        Type {
            key: Base::read(key),
            value: json.get("value").map(Base::read),
            min: limit("min"),
            max: limit("max"),
        }
    }

    /// Returns whether a value is exactly one atom, and not a map.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        self.value.is_none() && self.min == 1 && self.max == 1
    }

    /// Returns the default value of a column of this type.
    #[must_use]
    pub fn default(&self) -> Datum {
        let value = self.value.as_ref().map(|value| value.kind.default());
        match self.min {
            0 => Datum::default(),
            _ => Datum::from_pairs([(self.key.kind.default(), value)]),
        }
    }

    /// Returns the type as error messages write it (docs/spec/protocol.md 2.7).
    #[must_use]
    pub fn english(&self) -> String {
        if self.is_scalar() {
            return self.key.kind.name().to_owned();
        }
        let class = if self.value.is_some() { "map" } else { "set" };
        let limits = match (self.min, self.max) {
            (0, UNLIMITED) => " of".to_owned(),
            (_, UNLIMITED) => " of 1 or more".to_owned(),
            (0, max) => format!(" of up to {max}"),
            (_, max) => format!(" of 1 to {max}"),
        };
        let key = self.key.kind.name();
        match &self.value {
            None => format!("{class}{limits} {key}s"),
            Some(value) => format!("{class}{limits} ({key}, {}) pairs", value.kind.name()),
        }
    }

    /// Iterates over the type's references. The flag is true for a reference in map values, false
    /// for one in keys or elements.
    pub fn references(&self) -> impl Iterator<Item = (bool, &Reference)> {
        let key = self.key.reference.as_ref().map(|key| (false, key));
        let value = self
            .value
            .as_ref()
            .and_then(|value| value.reference.as_ref());
        key.into_iter().chain(value.map(|value| (true, value)))
    }
}

impl Table {
    /// Returns a column's type; `_uuid` and `_version` are included.
    #[must_use]
    pub fn ty(&self, column: &str) -> Option<Type> {
        match column {
            "_uuid" | "_version" => Some(Type::scalar(Base::plain(Kind::Uuid))),
            own => self.columns.get(own).map(|column| column.ty.clone()),
        }
    }

    /// Returns whether an `update` may set the column.
    #[must_use]
    pub fn is_mutable(&self, column: &str) -> bool {
        self.columns
            .get(column)
            .is_some_and(|column| column.is_mutable)
    }

    /// Returns the names of all columns, `_uuid` and `_version` included.
    #[must_use]
    pub fn column_names(&self) -> Vec<String> {
        let standard = ["_uuid", "_version"].into_iter().map(str::to_owned);
        standard.chain(self.columns.keys().cloned()).collect()
    }

    fn read(json: &Value) -> Table {
        let columns = json
            .get("columns")
            .and_then(Value::as_object)
            .expect("columns");
        let column = |(name, column): (&bstr::BString, &Value)| {
            let ty = Type::read(column.get("type").expect("a type"));
            let is_weak = ty.references().any(|(_, reference)| !reference.is_strong);
            let is_mutable = column.get("mutable") != Some(&Value::Bool(false)) || is_weak;
            (name.to_string(), Column { ty, is_mutable })
        };
        let index = |index: &Value| {
            let names = index.as_array().expect("an index").iter();
            names
                .map(|name| name.as_str().expect("a name").to_owned())
                .collect()
        };
        let indexes = json
            .get("indexes")
            .and_then(Value::as_array)
            .unwrap_or_default();
        Table {
            columns: columns.iter().map(column).collect(),
            is_root: json.get("isRoot") == Some(&Value::Bool(true)),
            max_rows: json
                .get("maxRows")
                .and_then(Value::as_integer)
                .map_or(UNLIMITED, |max| max as u64),
            indexes: indexes.iter().map(index).collect(),
        }
    }
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Panics
    /// If the schema is not valid.
    #[must_use]
    pub fn read(json: &Value) -> Schema {
        let tables = json
            .get("tables")
            .and_then(Value::as_object)
            .expect("tables");
        let tables = tables.iter();
        let mut tables: BTreeMap<String, Table> = tables
            .map(|(name, table)| (name.to_string(), Table::read(table)))
            .collect();
        if !tables.values().any(|table| table.is_root) {
            tables.values_mut().for_each(|table| table.is_root = true);
        }
        Schema {
            name: json
                .get("name")
                .and_then(Value::as_str)
                .expect("a name")
                .to_owned(),
            tables,
            json: json.clone(),
        }
    }
}
