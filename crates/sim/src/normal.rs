//! Normal forms of replies, which must be equal for two executions of the same request.
//!
//! Rows of both sides get a common name. Every other UUID (versions, names that were never
//! inserted) is masked. Sets, maps and rows of a `select` are sorted again afterwards, because
//! UUIDs sort differently on both sides.

use std::collections::HashMap;

use corvid_json::{Object, Value};

/// Names of known UUIDs, by their text.
#[derive(Clone, Debug, Default)]
pub struct Known {
    names: HashMap<String, String>,
    /// UUIDs with this prefix are their own names.
    kept_prefix: Option<String>,
}

const UUID_LEN: usize = 36;

impl Known {
    /// A table without names.
    #[must_use]
    pub fn new() -> Known {
        Known::default()
    }

    /// Gives a UUID its name.
    pub fn name(&mut self, uuid: &str, name: impl Into<String>) {
        self.names.insert(uuid.to_owned(), name.into());
    }

    /// Makes every UUID with this prefix its own name.
    pub fn keep_prefix(&mut self, prefix: &str) {
        self.kept_prefix = Some(prefix.to_owned());
    }

    fn shown<'k>(&'k self, uuid: &'k str) -> &'k str {
        match &self.kept_prefix {
            Some(prefix) if uuid.starts_with(prefix) => uuid,
            _ => self.names.get(uuid).map_or("?", String::as_str),
        }
    }

    /// A text with every UUID replaced by its name or `?`.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let head = rest.get(..UUID_LEN).filter(|head| is_uuid(head));
            let taken = match head {
                Some(uuid) => {
                    out.push_str(self.shown(uuid));
                    UUID_LEN
                }
                None => {
                    out.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[taken..];
        }
        out
    }

    /// The normal form of a value.
    #[must_use]
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match std::str::from_utf8(text) {
                Ok(text) => Value::string(self.text(text)),
                Err(_) => value.clone(),
            },
            Value::Array(elements) => {
                let mut elements: Vec<Value> =
                    elements.iter().map(|element| self.value(element)).collect();
                if let [tag, Value::Array(inner)] = &mut elements[..]
                    && matches!(tag.as_str(), Some("set" | "map"))
                {
                    inner.sort_by_key(Value::to_bytes);
                }
                Value::Array(elements)
            }
            Value::Object(members) => {
                let mut normal = Object::new();
                for (name, member) in members {
                    let name = String::from_utf8_lossy(name);
                    normal.insert(self.text(&name).into(), self.value(member));
                }
                if let Some(Value::Array(rows)) = normal.get_mut(bstr::BStr::new("rows")) {
                    rows.sort_by_key(Value::to_bytes);
                }
                Value::Object(normal)
            }
            // Written and read again, so that 3.0 equals 3, as it does on the wire.
            Value::Real(_) => Value::parse(&value.to_bytes()).expect("a number"),
            other => other.clone(),
        }
    }
}

fn is_uuid(text: &str) -> bool {
    corvid_data::Uuid::parse(text.as_bytes()).is_some()
}

/// Removes modifications without a visible change, which servers may send or omit
/// (docs/spec/protocol.md 4.5.3, 4.7).
#[must_use]
pub fn without_empty_modifications(updates: &Value) -> Value {
    let is_empty = |row: &Value| {
        let empty = Value::Object(Object::new());
        row.get("modify") == Some(&empty)
            || (row.get("new").is_some() && row.get("old") == Some(&empty))
    };
    let tables = updates
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, rows)| {
            let rows = rows.as_object()?.iter().filter(|(_, row)| !is_empty(row));
            let rows: Object = rows
                .map(|(uuid, row)| (uuid.clone(), row.clone()))
                .collect();
            (!rows.is_empty()).then(|| (name.clone(), Value::Object(rows)))
        });
    Value::Object(tables.collect())
}

/// Checks that every set and map is sorted, and that single elements are written without a set
/// around them.
///
/// # Errors
/// The first value that violates this.
pub fn check_canonical(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(elements) => {
            if let [tag, Value::Array(inner)] = &elements[..]
                && let Some(class @ ("set" | "map")) = tag.as_str()
            {
                let key = |element: &Value| match element.as_array() {
                    Some([key, _]) if class == "map" => key.clone(),
                    _ => element.clone(),
                };
                let is_sorted = inner
                    .windows(2)
                    .all(|pair| is_before(&key(&pair[0]), &key(&pair[1])));
                if !is_sorted || (class == "set" && inner.len() == 1) {
                    return Err(format!("not canonical: {value}"));
                }
            }
            elements.iter().try_for_each(check_canonical)
        }
        Value::Object(members) => members.values().try_for_each(check_canonical),
        _ => Ok(()),
    }
}

fn is_before(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Real(real) => Some(*real),
        _ => None,
    };
    match (number(a), number(b)) {
        // Integers beyond 2^53 may look equal as doubles.
        (Some(a), Some(b)) => a <= b,
        _ => match (a, b) {
            (Value::Array(a), Value::Array(b)) => a[1].as_str() < b[1].as_str(),
            (Value::String(a), Value::String(b)) => a < b,
            (Value::Bool(a), Value::Bool(b)) => a < b,
            _ => false,
        },
    }
}

/// The keys by which the rows of a `select` are sorted; rows with equal keys may come in any order.
/// Visible columns determine the order only as long as they include the leading sort columns.
#[must_use]
pub fn sort_keys(known: &Known, sort: &[Value], result: &Value) -> Vec<Vec<Value>> {
    let rows = result
        .get("rows")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter();
    let cell =
        |row: &Value, column: &Value| row.get(column.as_str()?).map(|value| known.value(value));
    rows.map(|row| sort.iter().map_while(|column| cell(row, column)).collect())
        .collect()
}
