//! Column types from JSON and back: the type rows of docs/spec/protocol.md 3.3 and 3.5, and the
//! canonical form of 3.4.
//!
//! References are read only by name; [`crate::schema_json`] resolves them once it has read all
//! tables.

use corvid_json::{Object, Reader, Value};

use crate::members::{Kinds, Members, Subject};
use crate::types::Bounds;
use crate::{
    AtomType, BaseType, ColumnType, Datum, RefType, Reference, Str, TableId, WireError, wire,
};

/// The table of a [`Reference`] until the schema is complete.
const UNRESOLVED: TableId = TableId(u16::MAX);

impl AtomType {
    /// The type with this name, for example `integer`.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<AtomType> {
        match name {
            b"integer" => Some(AtomType::Integer),
            b"real" => Some(AtomType::Real),
            b"boolean" => Some(AtomType::Boolean),
            b"string" => Some(AtomType::String),
            b"uuid" => Some(AtomType::Uuid),
            _ => None,
        }
    }

    fn from_json(json: &Value) -> Result<AtomType, WireError> {
        let name = text_of(json);
        AtomType::from_name(name).ok_or_else(|| {
            let shown = String::from_utf8_lossy(name);
            WireError::syntax_value(json, format!("\"{shown}\" is not an atomic-type"))
        })
    }
}

impl ColumnType {
    /// Parses a column type. `json` is a string or an object. The tables of its references are not
    /// looked up.
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 3.5.
    pub fn from_json(json: &Value) -> Result<ColumnType, WireError> {
        if let Value::String(_) = json {
            return AtomType::from_json(json).map(ColumnType::scalar);
        }
        let base = Kinds::STRING.or(Kinds::OBJECT);
        let mut members = Members::parse(Subject::Type, json)?;
        let key = members.required("key", base)?;
        let value = members.optional("value", base)?;
        let min = members.optional("min", Kinds::INTEGER)?;
        let max = members.optional("max", Kinds::INTEGER.or(Kinds::STRING))?;
        members.finish()?;
        let column_type = ColumnType {
            key: BaseType::from_json(key)?,
            value: value.map(BaseType::from_json).transpose()?,
            min: min.map_or(Ok(1), count)?,
            max: max.map_or(Ok(1), count)?,
        };
        if column_type.min > 1 || column_type.max < 1 {
            return Err(WireError::syntax_value(
                json,
                "ovsdb type fails constraint checks",
            ));
        }
        Ok(column_type)
    }

    /// The canonical form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if self.is_scalar() && self.key.is_plain() {
            return Value::string(self.key.atom.name());
        }
        let mut object = Object::new();
        object.insert("key".into(), self.key.to_json());
        if let Some(value) = &self.value {
            object.insert("value".into(), value.to_json());
        }
        if self.min != 1 {
            object.insert("min".into(), Value::Integer(self.min.into()));
        }
        if self.max == ColumnType::UNLIMITED {
            object.insert("max".into(), Value::string("unlimited"));
        } else if self.max != 1 {
            object.insert("max".into(), Value::Integer(self.max.into()));
        }
        Value::Object(object)
    }
}

impl BaseType {
    /// Parses a base type. `json` is a string or an object. The table of a reference is not looked
    /// up.
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 3.5.
    pub fn from_json(json: &Value) -> Result<BaseType, WireError> {
        if let Value::String(_) = json {
            return AtomType::from_json(json).map(BaseType::plain);
        }
        let mut members = Members::parse(Subject::Type, json)?;
        let atom = AtomType::from_json(members.required("type", Kinds::STRING)?)?;
        let mut base = BaseType::plain(atom);
        if let Some(choices) = members.optional("enum", Kinds::ANY)? {
            base.enumeration = Some(enumeration(atom, choices)?);
        } else {
            match atom {
                AtomType::Integer => base.bounds = integer_bounds(&mut members)?,
                AtomType::Real => base.bounds = real_bounds(&mut members)?,
                AtomType::String => base.bounds = length_bounds(&mut members)?,
                AtomType::Uuid => base.reference = reference(&mut members)?,
                AtomType::Boolean => {}
            }
        }
        members.finish()?;
        Ok(base)
    }

    /// Whether there are neither constraints nor a reference.
    fn is_plain(&self) -> bool {
        self.is_unconstrained() && self.reference.is_none()
    }

    /// The canonical form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if self.is_plain() {
            return Value::string(self.atom.name());
        }
        let mut object = Object::new();
        let mut put = |name: &str, value: Value| {
            object.insert(name.into(), value);
        };
        put("type", Value::string(self.atom.name()));
        if let Some(choices) = &self.enumeration {
            put("enum", choices.to_json(false));
        }
        match self.bounds {
            Bounds::None => {}
            Bounds::Integer { min, max } => {
                if min != i64::MIN {
                    put("minInteger", Value::Integer(min));
                }
                if max != i64::MAX {
                    put("maxInteger", Value::Integer(max));
                }
            }
            Bounds::Real { min, max } => {
                if min != -f64::MAX {
                    put("minReal", Value::Real(min));
                }
                if max != f64::MAX {
                    put("maxReal", Value::Real(max));
                }
            }
            Bounds::Length { min, max } => {
                if min != 0 {
                    put("minLength", Value::Integer(min.into()));
                }
                if max != u32::MAX {
                    put("maxLength", Value::Integer(max.into()));
                }
            }
        }
        if let Some(reference) = &self.reference {
            put("refTable", Value::string(reference.table_name.as_str()));
            if reference.ref_type == RefType::Weak {
                put("refType", Value::string("weak"));
            }
        }
        Value::Object(object)
    }
}

impl Datum {
    /// The datum as a tree. `is_map` decides how an empty datum is written. For schemas and tools;
    /// see [`wire::write_datum`].
    #[must_use]
    pub fn to_json(&self, is_map: bool) -> Value {
        let mut text = Vec::new();
        wire::write_datum(&mut text, self, is_map);
        // The writer's output is valid JSON.
        Value::parse(&text).unwrap_or(Value::Null)
    }

    /// Parses a datum from a tree. For schemas and tools; see [`wire::read_datum`].
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 2.1 to 2.4.
    pub fn from_json(json: &Value, column_type: &ColumnType) -> Result<Datum, WireError> {
        let text = json.to_bytes();
        wire::read_datum(&mut Reader::trusted(&text), column_type, None)
    }
}

fn enumeration(atom: AtomType, json: &Value) -> Result<Datum, WireError> {
    let choices = ColumnType {
        max: ColumnType::UNLIMITED,
        ..ColumnType::scalar(atom)
    };
    Datum::from_json(json, &choices)
}

fn integer_bounds<'a>(members: &mut Members<'a, &'a Value>) -> Result<Bounds, WireError> {
    let mut bound = |name: &str, limit: i64| -> Result<i64, WireError> {
        let json = members.optional(name, Kinds::INTEGER)?;
        Ok(json.and_then(Value::as_integer).unwrap_or(limit))
    };
    let (min, max) = (
        bound("minInteger", i64::MIN)?,
        bound("maxInteger", i64::MAX)?,
    );
    ordered(members, "Integer", min <= max)?;
    Ok(match (min, max) {
        (i64::MIN, i64::MAX) => Bounds::None,
        (min, max) => Bounds::Integer { min, max },
    })
}

fn real_bounds<'a>(members: &mut Members<'a, &'a Value>) -> Result<Bounds, WireError> {
    let mut bound = |name: &str, limit: f64| -> Result<f64, WireError> {
        Ok(match members.optional(name, Kinds::NUMBER)? {
            Some(Value::Integer(integer)) => *integer as f64,
            Some(Value::Real(real)) => *real,
            _ => limit,
        })
    };
    let (min, max) = (bound("minReal", -f64::MAX)?, bound("maxReal", f64::MAX)?);
    ordered(members, "Real", min <= max)?;
    Ok(if min == -f64::MAX && max == f64::MAX {
        Bounds::None
    } else {
        Bounds::Real { min, max }
    })
}

fn length_bounds<'a>(members: &mut Members<'a, &'a Value>) -> Result<Bounds, WireError> {
    let mut bound = |name: &str, limit: u32| -> Result<u32, WireError> {
        let Some(json) = members.optional(name, Kinds::INTEGER)? else {
            return Ok(limit);
        };
        let length = json
            .as_integer()
            .and_then(|value| u32::try_from(value).ok());
        length.ok_or_else(|| {
            WireError::syntax_value(json, format!("{name} out of valid range 0 to {}", u32::MAX))
        })
    };
    let (min, max) = (bound("minLength", 0)?, bound("maxLength", u32::MAX)?);
    ordered(members, "Length", min <= max)?;
    Ok(match (min, max) {
        (0, u32::MAX) => Bounds::None,
        (min, max) => Bounds::Length { min, max },
    })
}

fn ordered<'a>(
    members: &Members<'a, &'a Value>,
    what: &str,
    is_ordered: bool,
) -> Result<(), WireError> {
    if is_ordered {
        return Ok(());
    }
    Err(WireError::syntax_value(
        members.whole(),
        format!("min{what} exceeds max{what}"),
    ))
}

fn reference<'a>(members: &mut Members<'a, &'a Value>) -> Result<Option<Reference>, WireError> {
    let Some(table) = members.optional("refTable", Kinds::ID)? else {
        return Ok(None);
    };
    let ref_type = match members.optional("refType", Kinds::ID)? {
        None => RefType::Strong,
        Some(json) => match text_of(json) {
            b"strong" => RefType::Strong,
            b"weak" => RefType::Weak,
            other => {
                let shown = String::from_utf8_lossy(other);
                return Err(WireError::syntax_value(
                    members.whole(),
                    format!("refType must be \"strong\" or \"weak\" (not \"{shown}\")"),
                ));
            }
        },
    };
    Ok(Some(Reference {
        table_name: Str::new(table.as_str().unwrap_or_default()),
        table: UNRESOLVED,
        ref_type,
    }))
}

/// Parses `min` or `max`. [`ColumnType::UNLIMITED`] itself must be written `"unlimited"`.
fn count(json: &Value) -> Result<u32, WireError> {
    let count = match json {
        Value::String(_) => (text_of(json) == b"unlimited").then_some(ColumnType::UNLIMITED),
        _ => json
            .as_integer()
            .and_then(|value| u32::try_from(value).ok())
            .filter(|&count| count != ColumnType::UNLIMITED),
    };
    count.ok_or_else(|| WireError::syntax_value(json, "bad min or max value"))
}

/// The bytes of a string; none for other kinds.
fn text_of(json: &Value) -> &[u8] {
    match json {
        Value::String(text) => text,
        _ => b"",
    }
}
