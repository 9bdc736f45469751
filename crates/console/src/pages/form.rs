//! The form for simple operations on the page Query: it writes their JSON into the box, where a
//! viewer reads it before executing it. It works without scripts: each step reads the page again.

use corvid::data::{Atom, AtomType, ColumnSchema, ColumnType, Datum, Schema, TableSchema, text};
use corvid::json::{Object, Value};

use super::complete::{self, FUNCTIONS, MUTATORS};
use super::params::Params;

/// The operations that the form writes.
const OPS: [&str; 5] = ["select", "insert", "update", "mutate", "delete"];

/// The form.
pub(crate) struct Form {
    pub(crate) ops: Vec<Choice>,
    pub(crate) tables: Vec<Choice>,
    /// The table is chosen, so the fields below are shown.
    pub(crate) has_table: bool,
    /// The condition; `None` for operations without one.
    pub(crate) condition: Option<Triple>,
    pub(crate) mutation: Option<Triple>,
    pub(crate) fields: Vec<Field>,
}

/// A word of a list, and whether it is chosen.
pub(crate) struct Choice {
    pub(crate) word: String,
    pub(crate) is_chosen: bool,
}

/// A column, a word between, and a value.
pub(crate) struct Triple {
    pub(crate) columns: Vec<Choice>,
    pub(crate) words: Vec<Choice>,
    pub(crate) value: String,
}

/// A column of a row to write.
pub(crate) struct Field {
    pub(crate) column: String,
    pub(crate) kind: String,
    pub(crate) value: String,
    /// All values that the type has, if they are few.
    pub(crate) choices: Vec<Choice>,
}

fn choices<'w>(words: impl IntoIterator<Item = &'w str>, chosen: &str) -> Vec<Choice> {
    words
        .into_iter()
        .map(|word| Choice {
            word: word.to_owned(),
            is_chosen: word == chosen,
        })
        .collect()
}

impl Form {
    /// The form with what a viewer has chosen so far.
    pub(crate) fn new(schema: &Schema, params: &Params) -> Form {
        let op = params.get("op");
        let table = schema.table_id(params.get("table"));
        let table = table.map(|id| schema.table(id));
        let triple = |wanted: bool, words: &[&'static str], names: [&str; 3]| {
            let table = table.filter(|_| wanted)?;
            Some(Triple {
                columns: choices(
                    table.iter().map(|(_, column)| column.name.as_str()),
                    params.get(names[0]),
                ),
                words: choices(words.iter().copied(), params.get(names[1])),
                value: params.get(names[2]).to_owned(),
            })
        };
        let fields = table.filter(|_| matches!(op, "insert" | "update"));
        let fields = fields.into_iter().flat_map(TableSchema::iter);
        Form {
            ops: choices(OPS, op),
            tables: choices(
                schema.iter().map(|(_, table)| table.name.as_str()),
                params.get("table"),
            ),
            has_table: table.is_some(),
            condition: triple(op != "insert", &FUNCTIONS, ["wc", "wf", "wv"]),
            mutation: triple(op == "mutate", &MUTATORS, ["mc", "mf", "mv"]),
            fields: fields
                .map(|(_, column)| {
                    let value = params.get(&format!("c.{}", column.name));
                    let has_one = column.column_type.max == 1 && !column.column_type.is_map();
                    let fixed = match has_one {
                        true => complete::fixed(&column.column_type),
                        false => Vec::new(),
                    };
                    Field {
                        column: column.name.to_string(),
                        kind: column.column_type.english(),
                        choices: choices(fixed.iter().map(String::as_str), value),
                        value: value.to_owned(),
                    }
                })
                .collect(),
        }
    }
}

/// The operation of a filled form; `None` if no table is chosen.
///
/// # Errors
/// A value does not fit its column; the text names the column.
pub(crate) fn operation(schema: &Schema, params: &Params) -> Result<Option<String>, String> {
    let Some(id) = schema.table_id(params.get("table")) else {
        return Ok(None);
    };
    let table = schema.table(id);
    let op = params.get("op");
    if !OPS.contains(&op) {
        return Ok(None);
    }
    let mut members = vec![
        ("op", Value::string(op)),
        ("table", Value::string(table.name.as_str())),
    ];
    if op != "insert" {
        let clause = triple(table, &FUNCTIONS, params, ["wc", "wf", "wv"])?;
        members.push(("where", Value::Array(clause.into_iter().collect())));
    }
    if op == "mutate" {
        let mutation = triple(table, &MUTATORS, params, ["mc", "mf", "mv"])?;
        members.push(("mutations", Value::Array(mutation.into_iter().collect())));
    }
    if matches!(op, "insert" | "update") {
        let mut row = Object::new();
        for (_, column) in table.iter() {
            let value = params.get(&format!("c.{}", column.name)).trim();
            if !value.is_empty() {
                let value = read(column, value)?.to_json(column.column_type.is_map());
                row.insert(column.name.as_str().into(), value);
            }
        }
        members.push(("row", Value::Object(row)));
    }
    // In the order that people read, which an object would not keep.
    let members: Vec<String> = members
        .into_iter()
        .map(|(name, value)| format!("\"{name}\": {value}"))
        .collect();
    Ok(Some(format!("[\n  {{{}}}\n]", members.join(", "))))
}

/// A condition or a mutation; `None` if no column is chosen.
fn triple(
    table: &TableSchema,
    words: &[&str],
    params: &Params,
    names: [&str; 3],
) -> Result<Option<Value>, String> {
    let [column, word, value] = names.map(|name| params.get(name).trim());
    let Some(id) = table.column_id(column) else {
        return Ok(None);
    };
    let column = table.column(id);
    let word = words.iter().find(|known| **known == word);
    let word = word.or(words.first()).copied().unwrap_or_default();
    let value = read(column, value)?.to_json(column.column_type.is_map());
    Ok(Some(Value::Array(vec![
        Value::string(column.name.as_str()),
        Value::string(word),
        value,
    ])))
}

/// A value in the notation of the command-line tools. One string needs no quotes.
fn read(column: &ColumnSchema, text: &str) -> Result<Datum, String> {
    let column_type: &ColumnType = &column.column_type;
    let is_one_string =
        column_type.key.atom == AtomType::String && !column_type.is_map() && column_type.max == 1;
    if is_one_string && !text.starts_with(['"', '[']) {
        return Ok(Datum::one(Atom::String(text.into())));
    }
    text::read_datum(text, column_type, &mut |_| None)
        .map_err(|error| format!("{}: {error}", column.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_forms_are_operations() {
        let schema = br#"{"name": "Net", "tables": {"Port": {"columns": {"name": {"type": "string"},
            "tag": {"type": {"key": "integer", "min": 0, "max": 4}},
            "ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}}}}"#;
        let schema = Schema::from_json(&Value::parse(schema).unwrap()).unwrap();
        let made = |query: &str| {
            let params = Params::parse(query.as_bytes());
            operation(&schema, &params).map(Option::unwrap_or_default)
        };
        assert_eq!(
            made("op=insert&table=Port&c.name=two+words&c.tag=1,2&c.ids=a%3Db").unwrap(),
            "[\n  {\"op\": \"insert\", \"table\": \"Port\", \"row\": \
             {\"ids\":[\"map\",[[\"a\",\"b\"]]],\"name\":\"two words\",\"tag\":[\"set\",[1,2]]}}\n]"
        );
        assert_eq!(
            made("op=delete&table=Port&wc=name&wf=!%3D&wv=p0").unwrap(),
            "[\n  {\"op\": \"delete\", \"table\": \"Port\", \"where\": [[\"name\",\"!=\",\"p0\"]]}\n]"
        );
        assert_eq!(
            made("op=mutate&table=Port&mc=tag&mf=insert&mv=7").unwrap(),
            "[\n  {\"op\": \"mutate\", \"table\": \"Port\", \"where\": [], \
             \"mutations\": [[\"tag\",\"insert\",7]]}\n]"
        );
        let error = made("op=update&table=Port&c.tag=many").unwrap_err();
        assert!(error.starts_with("tag: "), "{error}");
        assert_eq!(operation(&schema, &Params::parse(b"op=insert")), Ok(None));
    }
}
