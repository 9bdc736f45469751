//! Atoms of the model, in the order of docs/spec/protocol.md 2.1, with their JSON and text
//! notations.

use corvid_data::Uuid;
use corvid_json::Value;

/// A `real` value, which is never a NaN and never a negative zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Real(f64);

impl Real {
    /// Makes a real of a finite double; a negative zero becomes zero.
    #[must_use]
    pub fn new(value: f64) -> Real {
        assert!(value.is_finite(), "reals are finite");
        Real(if value == 0.0 { 0.0 } else { value })
    }

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Eq for Real {}

impl Ord for Real {
    fn cmp(&self, other: &Real) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Real) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The five atomic types of OVSDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `integer`
    Integer,
    /// `real`
    Real,
    /// `boolean`
    Boolean,
    /// `string`
    String,
    /// `uuid`
    Uuid,
}

impl Kind {
    /// All five types.
    pub const ALL: [Kind; 5] = [
        Kind::Integer,
        Kind::Real,
        Kind::Boolean,
        Kind::String,
        Kind::Uuid,
    ];

    /// Returns the type's name in schemas.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Integer => "integer",
            Kind::Real => "real",
            Kind::Boolean => "boolean",
            Kind::String => "string",
            Kind::Uuid => "uuid",
        }
    }

    /// Returns the default atom of a column of this type.
    #[must_use]
    pub fn default(self) -> Atom {
        match self {
            Kind::Integer => Atom::Integer(0),
            Kind::Real => Atom::Real(Real::new(0.0)),
            Kind::Boolean => Atom::Boolean(false),
            Kind::String => Atom::String(String::new()),
            Kind::Uuid => Atom::Uuid(Uuid::ZERO),
        }
    }
}

/// A value of one of the five types. The derived order is correct only among atoms of one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    /// `integer`
    Integer(i64),
    /// `real`
    Real(Real),
    /// `boolean`
    Boolean(bool),
    /// `string`
    String(String),
    /// `uuid`
    Uuid(Uuid),
}

impl Atom {
    /// Returns the JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Atom::Integer(integer) => Value::Integer(*integer),
            Atom::Real(real) => Value::Real(real.get()),
            Atom::Boolean(boolean) => Value::Bool(*boolean),
            Atom::String(string) => Value::string(string),
            Atom::Uuid(uuid) => {
                Value::Array(vec![Value::string("uuid"), Value::string(uuid.to_string())])
            }
        }
    }

    /// Returns the text form that error messages use (docs/spec/protocol.md 2.7): strings are
    /// quoted unless they look like words.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Atom::Uuid(uuid) => uuid.to_string(),
            Atom::String(string) if is_word(string) => string.clone(),
            other => other.to_json().to_string(),
        }
    }
}

fn is_word(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_part = |c: char| is_start(c) || c.is_ascii_digit() || c == '-' || c == '.';
    text.starts_with(is_start)
        && text.chars().all(is_part)
        && text != "true"
        && text != "false"
        && Uuid::parse(text.as_bytes()).is_none()
}
