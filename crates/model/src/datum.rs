//! Data of the model: a datum is a sorted map from keys to values, and a set has no values
//! (docs/spec/protocol.md 2.4).

use std::collections::BTreeMap;
use std::collections::btree_map::Keys;

use corvid_data::Uuid;
use corvid_json::Value;

use super::atom::{Atom, Kind, Real};
use super::fault::Fault;
use super::schema::{Base, Type};

/// Resolves a named UUID; `None` if names are not allowed here.
pub type Names<'n> = dyn FnMut(&str) -> Option<Uuid> + 'n;

/// Resolves no name, as outside a transaction.
pub fn no_names(_: &str) -> Option<Uuid> {
    None
}

/// The content of one column in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datum {
    elements: BTreeMap<Atom, Option<Atom>>,
}

impl Ord for Datum {
    fn cmp(&self, other: &Datum) -> std::cmp::Ordering {
        let (a, b) = (&self.elements, &other.elements);
        a.len()
            .cmp(&b.len())
            .then_with(|| a.keys().cmp(b.keys()))
            .then_with(|| a.values().cmp(b.values()))
    }
}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Datum) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Datum {
    /// Collects elements; of repeated keys, the last one wins.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (Atom, Option<Atom>)>) -> Datum {
        Datum {
            elements: pairs.into_iter().collect(),
        }
    }

    /// Makes a datum of one atom.
    #[must_use]
    pub fn scalar(atom: Atom) -> Datum {
        Datum::from_pairs([(atom, None)])
    }

    /// Iterates over the elements in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&Atom, Option<&Atom>)> {
        self.elements
            .iter()
            .map(|(key, value)| (key, value.as_ref()))
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> Keys<'_, Atom, Option<Atom>> {
        self.elements.keys()
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns whether the datum has no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Returns the value at a key: `Some(None)` in a set, `None` if the key is absent.
    #[must_use]
    pub fn get(&self, key: &Atom) -> Option<&Option<Atom>> {
        self.elements.get(key)
    }

    /// Returns the elements that `keep` accepts.
    #[must_use]
    pub fn filtered(&self, mut keep: impl FnMut(&Atom, Option<&Atom>) -> bool) -> Datum {
        let kept = self
            .elements
            .iter()
            .filter(|(key, value)| keep(key, value.as_ref()));
        Datum::from_pairs(kept.map(|(key, value)| (key.clone(), value.clone())))
    }

    /// Adds the elements of `other` whose keys are new. Keys that exist keep their values.
    #[must_use]
    pub fn united(&self, other: &Datum) -> Datum {
        let mut elements = other.elements.clone();
        elements.extend(self.elements.clone());
        Datum { elements }
    }

    /// Returns the difference from this datum to `new`, as `modify` shows it (docs/spec/protocol.md
    /// 4.7).
    #[must_use]
    pub fn difference(&self, new: &Datum, ty: &Type) -> Datum {
        if ty.max == 1 {
            return new.clone();
        }
        let gone = self.filtered(|key, _| !new.elements.contains_key(key));
        let come = new.filtered(|key, value| self.get(key).map(Option::as_ref) != Some(value));
        gone.united(&come)
    }

    /// Applies a [`Datum::difference`], and returns the new datum.
    #[must_use]
    pub fn patched(&self, difference: &Datum, ty: &Type) -> Datum {
        if ty.max == 1 {
            return difference.clone();
        }
        let kept = self.filtered(|key, _| !difference.elements.contains_key(key));
        let come =
            difference.filtered(|key, value| self.get(key).map(Option::as_ref) != Some(value));
        kept.united(&come)
    }

    /// Returns the JSON form.
    #[must_use]
    pub fn to_json(&self, ty: &Type) -> Value {
        if ty.value.is_some() {
            let pair = |(key, value): (&Atom, Option<&Atom>)| {
                Value::Array(vec![key.to_json(), value.expect("a map").to_json()])
            };
            return tagged("map", self.iter().map(pair).collect());
        }
        match self.keys().next() {
            Some(only) if self.len() == 1 => only.to_json(),
            _ => tagged("set", self.keys().map(Atom::to_json).collect()),
        }
    }

    /// Returns the text form that error messages use (docs/spec/protocol.md 2.7).
    #[must_use]
    pub fn to_text(&self, ty: &Type) -> String {
        let element = |(key, value): (&Atom, Option<&Atom>)| match value {
            None => key.to_text(),
            Some(value) => format!("{}={}", key.to_text(), value.to_text()),
        };
        let inner = self.iter().map(element).collect::<Vec<_>>().join(", ");
        match (ty.max > 1 || self.is_empty(), ty.value.is_some()) {
            (false, _) => inner,
            (true, false) => format!("[{inner}]"),
            (true, true) => format!("{{{inner}}}"),
        }
    }

    /// Parses the JSON form with all checks of docs/spec/protocol.md 2.4, in their order.
    ///
    /// # Errors
    /// The first fault found.
    pub fn read(ty: &Type, json: &Value, names: &mut Names<'_>) -> Result<Datum, Fault> {
        let is_map = ty.value.is_some();
        let is_set = json
            .as_array()
            .is_some_and(|array| array.first().and_then(Value::as_str) == Some("set"));
        if !is_map && !is_set {
            return read_atom(&ty.key, json, names).map(Datum::scalar);
        }
        let class = if is_map { "map" } else { "set" };
        let elements = match json.as_array() {
            Some([tag, Value::Array(elements)]) if tag.as_str() == Some(class) => elements,
            _ => {
                return Err(Fault::syntax(
                    json,
                    format!("expected [\"{class}\", <array>]"),
                ));
            }
        };
        let count = elements.len() as u64;
        if count < ty.min || count > ty.max {
            let details = if ty.min == 1 && ty.max == 1 {
                format!("{class} must have exactly one member but {count} are present")
            } else {
                format!(
                    "{class} must have {} to {} members but {count} are present",
                    ty.min, ty.max
                )
            };
            return Err(Fault::syntax(json, details));
        }
        let mut pairs = Vec::new();
        for element in elements {
            pairs.push(match &ty.value {
                None => (read_atom(&ty.key, element, names)?, None),
                Some(value) => {
                    let Some([first, second]) = element.as_array() else {
                        return Err(Fault::syntax(element, "expected 2-element array"));
                    };
                    let key = read_atom(&ty.key, first, names)?;
                    (key, Some(read_atom(value, second, names)?))
                }
            });
        }
        let datum = Datum::from_pairs(pairs);
        if datum.len() < elements.len() {
            let what = if is_map {
                "map contains duplicate key"
            } else {
                "set contains duplicate"
            };
            return Err(Fault::new("ovsdb error", what));
        }
        Ok(datum)
    }

    /// Checks every atom against the constraints of its base type.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self, ty: &Type) -> Result<(), Fault> {
        for (key, value) in self.iter() {
            check_atom(&ty.key, key)?;
            if let (Some(base), Some(value)) = (&ty.value, value) {
                check_atom(base, value)?;
            }
        }
        Ok(())
    }
}

fn tagged(tag: &str, elements: Vec<Value>) -> Value {
    Value::Array(vec![Value::string(tag), Value::Array(elements)])
}

/// Parses one atom and checks its constraints.
fn read_atom(base: &Base, json: &Value, names: &mut Names<'_>) -> Result<Atom, Fault> {
    let atom = match (base.kind, json) {
        (Kind::Integer, Value::Integer(integer)) => Atom::Integer(*integer),
        (Kind::Real, Value::Integer(integer)) => Atom::Real(Real::new(*integer as f64)),
        (Kind::Real, Value::Real(real)) => Atom::Real(Real::new(*real)),
        (Kind::Boolean, Value::Bool(boolean)) => Atom::Boolean(*boolean),
        (Kind::String, Value::String(_)) => Atom::String(
            json.as_str()
                .expect("the generator writes UTF-8")
                .to_owned(),
        ),
        (Kind::Uuid, json) => Atom::Uuid(read_uuid(json, names)?),
        (kind, json) => return Err(Fault::syntax(json, format!("expected {}", kind.name()))),
    };
    check_atom(base, &atom)?;
    Ok(atom)
}

fn read_uuid(json: &Value, names: &mut Names<'_>) -> Result<Uuid, Fault> {
    let expected = || Fault::syntax(json, "expected [\"uuid\", <string>]");
    let Some([tag, text]) = json.as_array() else {
        return Err(expected());
    };
    let text = text.as_str().ok_or_else(expected)?;
    match tag.as_str() {
        Some("uuid") => Uuid::parse(text.as_bytes())
            .ok_or_else(|| Fault::syntax(json, format!("\"{text}\" is not a valid UUID"))),
        Some("named-uuid") if !is_id(text) => {
            Err(Fault::syntax(json, "named-uuid string is not a valid <id>"))
        }
        Some("named-uuid") => names(text).ok_or_else(expected),
        _ => Err(expected()),
    }
}

/// Returns whether a text is an `<id>`.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_start) && text.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

/// Checks an atom against the constraints of its base type (docs/spec/protocol.md 2.2).
///
/// # Errors
/// The violated constraint.
pub fn check_atom(base: &Base, atom: &Atom) -> Result<(), Fault> {
    if let Some(allowed) = &base.allowed {
        if allowed.contains(atom) {
            return Ok(());
        }
        let list = allowed
            .iter()
            .map(Atom::to_text)
            .collect::<Vec<_>>()
            .join(", ");
        let text = atom.to_text();
        return Err(Fault::constraint(format!(
            "{text} is not one of the allowed values ([{list}])"
        )));
    }
    if let Atom::String(text) = atom {
        return check_length(base, text);
    }
    let is_low = base.low.as_ref().is_some_and(|low| atom < low);
    let is_high = base.high.as_ref().is_some_and(|high| atom > high);
    if !is_low && !is_high {
        return Ok(());
    }
    let text = atom.to_text();
    Err(Fault::constraint(match (&base.low, &base.high) {
        (Some(low), Some(high)) => {
            format!(
                "{text} is not in the valid range {} to {} (inclusive)",
                low.to_text(),
                high.to_text()
            )
        }
        (Some(low), None) => format!(
            "{text} is less than minimum allowed value {}",
            low.to_text()
        ),
        (None, Some(high)) => format!(
            "{text} is greater than maximum allowed value {}",
            high.to_text()
        ),
        (None, None) => unreachable!("one of them was crossed"),
    }))
}

fn check_length(base: &Base, text: &str) -> Result<(), Fault> {
    let length = text.chars().count() as i64;
    let crossed = |what: &str, bound: i64| {
        Fault::constraint(format!(
            "\"{text}\" length {length} is {what} allowed length {bound}"
        ))
    };
    match (&base.low, &base.high) {
        (Some(Atom::Integer(low)), _) if length < *low => Err(crossed("less than minimum", *low)),
        (_, Some(Atom::Integer(high))) if length > *high => {
            Err(crossed("greater than maximum", *high))
        }
        _ => Ok(()),
    }
}
