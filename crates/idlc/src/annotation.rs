//! Annotations of a schema, added before code is generated from it (docs/spec/idl.md 7.1).
//!
//! Annotations are either a JSON object that is merged into the schema (RFC 7386), or lines of the form that existing annotation files
//! have: `s["idlPrefix"] = "nbrec_"`. Those are read as text; nothing is executed. For Rust no annotation matters; they are carried through
//! for readers of the result.

use corvid_json::Value;

use crate::error::Error;

/// Merges annotations into a schema; the result as JSON.
///
/// ```
/// let annotations = "# prefix\ns[\"idlPrefix\"] = \"zoorec_\"\n";
/// let merged = corvid_idlc::annotate(r#"{"name":"Zoo"}"#, annotations)?;
/// assert_eq!(merged, r#"{"idlPrefix":"zoorec_","name":"Zoo"}"#);
/// let merged = corvid_idlc::annotate(r#"{"name":"Zoo","cksum":"1 2"}"#, r#"{"cksum":null,"x":{"y":1}}"#)?;
/// assert_eq!(merged, r#"{"name":"Zoo","x":{"y":1}}"#);
/// # Ok::<(), corvid_idlc::Error>(())
/// ```
///
/// # Errors
/// Either is not what it should be.
pub fn annotate(schema: &str, annotations: &str) -> Result<String, Error> {
    let parse =
        |text: &str| Value::parse(text.as_bytes()).map_err(|error| Error::Json(error.to_string()));
    let mut json = parse(schema)?;
    if annotations.trim_start().starts_with('{') {
        merge(&mut json, parse(annotations)?);
        return Ok(json.to_string());
    }
    let Value::Object(members) = &mut json else {
        return Err(Error::Schema("it is no object".to_owned()));
    };
    for (number, line) in annotations.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, text) = assignment(line).ok_or(Error::Annotations(number + 1))?;
        members.insert(name, text);
    }
    Ok(json.to_string())
}

/// `s["name"] = "text"`, in the quotes of JSON or of Python.
fn assignment(line: &str) -> Option<(bstr::BString, Value)> {
    let (target, text) = line.split_once('=')?;
    let name = target.trim().strip_prefix("s[")?.strip_suffix(']')?;
    let unquote = |text: &str| -> Option<String> {
        let text = text.trim();
        if let Some(plain) = text.strip_prefix('\'') {
            let plain = plain.strip_suffix('\'')?;
            return (!plain.contains(['\\', '\''])).then(|| plain.to_owned());
        }
        let json = Value::parse(text.as_bytes()).ok()?;
        json.as_str().map(str::to_owned)
    };
    let text = unquote(text)?;
    let json = Value::parse(format!("[{}]", quoted(&text)).as_bytes()).ok()?;
    let value = json.as_array()?.first()?.clone();
    Some((unquote(name)?.into(), value))
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    corvid_json::write::string(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !matches!(target, Value::Object(_)) {
        *target = Value::Object(Default::default());
    }
    let Value::Object(members) = target else {
        return;
    };
    for (name, value) in patch {
        if matches!(value, Value::Null) {
            members.remove(&name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// The members that annotations add to the top of a schema, for generators of C.
const ADDED: [&str; 4] = ["cDecls", "hDecls", "idlHeader", "idlPrefix"];

/// Leaves the schema alone. Code that columns and tables bring along is for another language, and cannot be left out.
pub(crate) fn strip(json: &mut Value) -> Result<(), Error> {
    if let Value::Object(members) = json {
        for name in ADDED {
            members.remove(name.as_bytes());
        }
    }
    let tables = json.get("tables").and_then(Value::as_object);
    for (table, json) in tables.into_iter().flatten() {
        if json.get("extensions").is_some() {
            return Err(Error::Extension(format!("table {table}")));
        }
        let columns = json.get("columns").and_then(Value::as_object);
        for (column, json) in columns.into_iter().flatten() {
            if json.get("extensions").is_some() {
                let what = format!("column {column} of table {table}");
                return Err(Error::Extension(what));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_as_text() {
        let merged =
            annotate(r#"{"a":1}"#, "\n  s['b'] = 'x'\ns[\"c\"] = \"\\\"y\\\"\"\n").unwrap();
        assert_eq!(merged, r#"{"a":1,"b":"x","c":"\"y\""}"#);
        let error = annotate("{}", "\nimport os\n").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
