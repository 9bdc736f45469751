//! Annotations of a schema, which are added before code is generated (docs/spec/idl.md 7.1).
//!
//! Annotations are either a JSON object that is merged into the schema (RFC 7386), or a file of
//! assignments such as `s["idlPrefix"] = "nbrec_"`, as Open vSwitch and OVN have them ([`script`]).
//! Only the C generator uses annotations. The Rust and Python generators ignore those at the top of
//! the schema and refuse `extensions`.

mod script;
mod token;

use bstr::{BStr, ByteSlice as _};
use corvid_data::ColumnType;
use corvid_json::Value;

use crate::error::Error;

/// Merges annotations into a schema, and returns the result as JSON text.
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
/// If the schema is not JSON, or if the annotations are neither a JSON object nor assignments that
/// the generator understands.
pub fn annotate(schema: &str, annotations: &str) -> Result<String, Error> {
    let parse =
        |text: &str| Value::parse(text.as_bytes()).map_err(|error| Error::Json(error.to_string()));
    let mut json = parse(schema)?;
    if annotations.trim_start().starts_with('{') {
        merge(&mut json, parse(annotations)?);
        return Ok(json.to_string());
    }
    if !matches!(json, Value::Object(_)) {
        return Err(Error::Schema("it is not an object".to_owned()));
    }
    script::apply(&mut json, annotations).map_err(Error::Annotations)?;
    Ok(json.to_string())
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

/// The members that annotations add to the top of a schema for the C generator.
const ADDED: [&str; 4] = ["cDecls", "hDecls", "idlHeader", "idlPrefix"];

/// A synthetic column: the database does not have it; code in the program computes it from other
/// columns.
#[derive(Debug, Clone)]
pub(crate) struct Synthetic {
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
    /// The declaration that replaces the usual struct member, if any.
    pub(crate) members: Option<String>,
    /// C code that fills the member. The code finds its row in the variable `row`.
    pub(crate) parse: String,
    /// C code that frees the memory that `parse` allocated.
    pub(crate) unparse: String,
    /// The columns that must be read before this one.
    pub(crate) dependencies: Vec<String>,
}

/// Removes the synthetic columns from a schema, and returns them.
pub(crate) fn take_synthetic(json: &mut Value) -> Result<Vec<Synthetic>, Error> {
    let mut taken = Vec::new();
    for (table, json) in object_mut(json, "tables").into_iter().flatten() {
        let Some(columns) = object_mut(json, "columns") else {
            continue;
        };
        let is_synthetic = |column: &Value| {
            let extensions = column.get("extensions");
            extensions.and_then(|e| e.get("synthetic")) == Some(&Value::Bool(true))
        };
        let names: Vec<_> = columns
            .iter()
            .filter(|(_, column)| is_synthetic(column))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let Some(column) = columns.remove(&name) else {
                continue;
            };
            taken.push(synthetic(table.as_bstr(), name.as_bstr(), &column)?);
        }
    }
    Ok(taken)
}

fn synthetic(table: &BStr, name: &BStr, column: &Value) -> Result<Synthetic, Error> {
    let what = || Error::Extension(format!("column {name} of table {table}"));
    let extensions = column.get("extensions").ok_or_else(what)?;
    let text = |member: &str| {
        let text = extensions.get(member).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let dependencies = extensions.get("dependencies").and_then(Value::as_array);
    let dependencies = dependencies.unwrap_or_default().iter();
    let column_type = ColumnType::from_json(column.get("type").ok_or_else(what)?);
    Ok(Synthetic {
        table: table.to_string(),
        name: name.to_string(),
        column_type: column_type.map_err(|error| Error::Schema(error.to_string()))?,
        members: text("members"),
        parse: text("parse").unwrap_or_default(),
        unparse: text("unparse").unwrap_or_default(),
        dependencies: dependencies
            .map(|column| column.as_str().map(str::to_owned).ok_or_else(what))
            .collect::<Result<_, _>>()?,
    })
}

/// Returns a member that is an object.
fn object_mut<'a>(json: &'a mut Value, name: &str) -> Option<&'a mut corvid_json::Object> {
    let Value::Object(members) = json else {
        return None;
    };
    match members.get_mut(name.as_bytes()) {
        Some(Value::Object(members)) => Some(members),
        _ => None,
    }
}

/// Removes the annotations and leaves the plain schema. Extensions that remain are an error: they
/// carry C code, which would silently be missing from the generated program.
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

    /// The parts of OVN's annotation files: comments, declarations, and a function that adds a
    /// column with its code.
    #[test]
    fn a_file_as_ovn_writes_it() {
        let annotations = r##"
# -*- python -*-

s["idlPrefix"] = "sbrec_"        # the prefix
s["idlHeader"] = "\"lib/ovn-sb-idl.h\""
s["hDecls"] = '#include "a.h"' + '''
#include "b.h"
'''
s['cDecls'] = ('#include '
               '"c.h"')

def add_column(table, column):
    '''Adds a column
    that is computed.'''
    columns = s['tables'][table]["columns"]
    extensions = {}
    extensions['synthetic'] = True
    code = '''
    row->hash = 1;
'''
    extensions["parse"] = code
    columns[column] = {
        "type": {"key": "integer", "min": 1, "max": -1},  # any
        'extensions': extensions,
    }
add_column("T", "hash")
s["tables"]["T"]["columns"]["hash"]["extensions"]["dependencies"] = ["a", 'b']
"##;
        let merged = annotate(r#"{"tables":{"T":{"columns":{"a":{}}}}}"#, annotations).unwrap();
        let expected = concat!(
            r##"{"cDecls":"#include \"c.h\"","hDecls":"#include \"a.h\"\n#include \"b.h\"\n","##,
            r##""idlHeader":"\"lib/ovn-sb-idl.h\"","idlPrefix":"sbrec_","##,
            r##""tables":{"T":{"columns":{"a":{},"hash":{"extensions":{"dependencies":["a","b"],"##,
            r##""parse":"\n    row->hash = 1;\n","synthetic":true},"##,
            r##""type":{"key":"integer","max":-1,"min":1}}}}}}"##
        );
        assert_eq!(merged, expected);
    }

    #[test]
    fn other_code_is_an_error_of_its_line() {
        for (code, line) in [
            ("\nimport os\n", 2),
            ("s['a'] = open('x').read()", 1),
            ("s['a']['b'] = 1", 1),
            ("x = s['none']\ny = x + 'z'", 2),
            ("def f():\n    f()\nf()", 2),
            ("s['a'] = 'x", 1),
            ("s['a'] = '''x\n\n", 1),
            ("s['a'] = [1,", 1),
            ("if True:\n    s['a'] = 1\n", 1),
            ("f()", 1),
            ("  s['a'] = 1\n s['b'] = 2", 2),
            ("x = {'a': 1}\ns['a'] = x\nx['b'] = 2", 3),
            ("x = {'a': 1}\ndef f(y):\n    y['b'] = 2\nf(x)", 3),
            ("s['a'] = '\\x41'", 1),
            ("return\n", 1),
            (&format!("s['a'] = {}", "(".repeat(100_000)), 1),
        ] {
            let error = annotate("{}", code).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}")), "{code:?}: {error}");
        }
    }
}
