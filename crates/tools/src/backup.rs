//! A database as a standalone file (docs/spec/storage.md 14): read from a server by one
//! transaction, and written piece by piece.
//!
//! `ovsdb-client backup` and `corvid-console` make backups of it. It does not know where the bytes
//! go.

use std::io;

use bstr::BString;
use corvid_data::{Arc, Datum, Row, Schema, TableId, TableSchema, Uuid, wire};
use corvid_json::{Object, Reader, Value};
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_net::clock;
use corvid_shell::progress::Spinner;

use crate::failure::Failure;
use crate::past::Contents;
use crate::session::Session;

/// The contents of a database, in memory.
#[derive(Debug)]
pub struct Backup {
    schema: Schema,
    /// The rows of each table.
    tables: Vec<Vec<Arc<Row>>>,
}

impl Backup {
    /// Reads the contents, or those of the moment `at`.
    ///
    /// # Errors
    /// The server refuses, its reply has another shape, or the connection broke.
    pub fn read(
        session: &mut Session,
        database: &str,
        at: Option<&str>,
    ) -> Result<Backup, Failure> {
        let instead = "ovsdb-tool --at=MOMENT restore FILE NEW";
        let mut contents = Contents::at(session, database, at, instead)?;
        let schema = contents.schema()?;
        let results = contents.select_text(schema.tables().iter().map(select).collect())?;
        let _progress = Spinner::new("Reading the rows");
        let tables = rows(&schema, &results)?;
        Ok(Backup { schema, tables })
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.tables.iter().map(Vec::len).sum()
    }

    /// Writes the file; `program` is named in its comment. `visited` is called twice for each row:
    /// when its record is measured, and when it is written.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write(
        &self,
        program: &str,
        visited: &dyn Fn(),
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut record = Vec::new();
        write_schema(&mut record, &self.schema);
        write(&record)?;
        let comment = format!("produced by \"{program}\"");
        let stamp = Stamp {
            date_ms: clock::wall_ms(),
            comment: &comment,
            is_diff: true,
            with_defaults: true,
        };
        let of_table = |table: TableId| {
            let rows = self.tables[usize::from(table.0)].iter();
            rows.inspect(|_| visited())
        };
        write_snapshot(&self.schema, &stamp, of_table, &mut |piece| write(piece))?;
        Ok(())
    }
}

fn select(table: &TableSchema) -> Value {
    let columns = table
        .columns()
        .iter()
        .filter(|column| column.persistent)
        .map(|column| Value::string(&*column.name));
    let members = [
        ("op", Value::string("select")),
        ("table", Value::string(&*table.name)),
        ("where", Value::Array(Vec::new())),
        (
            "columns",
            Value::Array(
                std::iter::once(Value::string("_uuid"))
                    .chain(columns)
                    .collect(),
            ),
        ),
    ];
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (BString::from(name), value))
            .collect::<Object>(),
    )
}

/// The rows of each table, from one `select` result each. They are read from the text: a tree of
/// its values would need several times the memory.
fn rows(schema: &Schema, text: &[u8]) -> Result<Vec<Vec<Arc<Row>>>, Failure> {
    let results = elements(Reader::new(text)).unwrap_or_default();
    let count = schema.tables().len();
    if results.len() != count {
        let found = results.len();
        return Err(Failure::new(format!(
            "transact reply has {found} results but {count} were expected"
        )));
    }
    let table_rows = |(table, result): (&TableSchema, &[u8])| {
        let rows = member(result, b"rows")
            .and_then(|rows| elements(Reader::trusted(rows)))
            .ok_or_else(|| {
                Failure::new(format!(
                    "{} table reply is not an object with a \"rows\" member array: {}",
                    table.name,
                    compact(result)
                ))
            })?;
        rows.into_iter()
            .map(|json| Ok(Arc::new(row(table, json)?)))
            .collect()
    };
    schema
        .tables()
        .iter()
        .zip(results)
        .map(table_rows)
        .collect()
}

/// The texts of the elements of an array; `None`: it is not one.
fn elements(mut reader: Reader<'_>) -> Option<Vec<&[u8]>> {
    reader.begin_array().ok()?;
    let mut elements = Vec::new();
    while reader.next_element().ok()? {
        elements.push(reader.skip().ok()?);
    }
    Some(elements)
}

/// The text of a member of an object.
fn member<'t>(text: &'t [u8], wanted: &[u8]) -> Option<&'t [u8]> {
    let mut reader = Reader::trusted(text);
    reader.begin_object().ok()?;
    while let Some(name) = reader.next_member().ok()? {
        let value = reader.skip().ok()?;
        if *name == *wanted {
            return Some(value);
        }
    }
    None
}

/// A text as messages show it.
fn compact(text: &[u8]) -> Value {
    Value::parse(text).unwrap_or(Value::Null)
}

fn row(table: &TableSchema, text: &[u8]) -> Result<Row, Failure> {
    let malformed = || {
        Failure::new(format!(
            "{} table reply has a row without _uuid: {}",
            table.name,
            compact(text)
        ))
    };
    let mut uuid = None;
    let mut columns: Vec<Option<Datum>> = vec![None; table.columns().len()];
    let mut reader = Reader::trusted(text);
    reader.begin_object().map_err(|_| malformed())?;
    while let Some(name) = reader.next_member().map_err(|_| malformed())? {
        let value = reader.skip().map_err(|_| malformed())?;
        if *name == *b"_uuid" {
            let pair = Value::parse(value).ok();
            let pair = pair.as_ref().and_then(Value::as_array);
            let text = pair.and_then(|pair| pair.get(1)?.as_str());
            uuid = text.and_then(|text| Uuid::parse(text.as_bytes()));
        } else if let Some(id) = table.column_named(&name)
            && let Some(place) = columns.get_mut(usize::from(id.0))
        {
            let column_type = &table.columns()[usize::from(id.0)].column_type;
            // A stored value is kept even if a constraint of a later schema would reject it.
            let datum = wire::read_datum_unconstrained(&mut Reader::new(value), column_type, None)?;
            *place = Some(datum);
        }
    }
    let columns = columns.into_iter().zip(table.columns());
    Ok(Row {
        uuid: uuid.ok_or_else(malformed)?,
        version: Uuid::ZERO,
        columns: columns
            .map(|(datum, column)| datum.unwrap_or_else(|| Datum::default_for(&column.column_type)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = br#"{"name":"D","version":"1.0.0","tables":{"A":{"columns":{
            "name":{"type":"string"},"tags":{"type":{"key":"integer","min":0,"max":"unlimited"}}}},
            "B":{"columns":{"n":{"type":"integer"}}}}}"#;
        Schema::from_json(&Value::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn rows_are_read_from_the_text() {
        let text = br#"[ {"rows": [{"tags":["set",[3,1]], "_uuid":["uuid","00000000-0000-4000-8000-000000000001"],
            "na\u006de":"x\ny"}]},{"other":1,"rows":[]}]"#;
        let tables = rows(&schema(), text).unwrap();
        assert_eq!((tables[0].len(), tables[1].len()), (1, 0));
        let row = &tables[0][0];
        assert_eq!(row.uuid.to_string(), "00000000-0000-4000-8000-000000000001");
        let shown: Vec<String> = row
            .columns
            .iter()
            .map(|datum| format!("{datum:?}"))
            .collect();
        assert!(shown[0].contains("x\\ny"), "{shown:?}");
        assert_eq!(row.columns[1].len(), 2);
        // A column that is not told has its default.
        let text = br#"[{"rows":[]},{"rows":[{"_uuid":["uuid","00000000-0000-4000-8000-000000000002"]}]}]"#;
        let tables = rows(&schema(), text).unwrap();
        assert_eq!(
            tables[1][0].columns[0]
                .first()
                .and_then(corvid_data::AtomRef::as_integer),
            Some(0)
        );
    }

    #[test]
    fn other_shapes_are_told() {
        for (text, said) in [
            ("{}", "transact reply has 0 results but 2 were expected"),
            (
                r#"[{"rows":[]}]"#,
                "transact reply has 1 results but 2 were expected",
            ),
            (
                r#"[{"rows":[]},{"error":"not allowed"}]"#,
                r#"B table reply is not an object with a "rows" member array: {"error":"not allowed"}"#,
            ),
            (
                r#"[{"rows":[]},{"rows":{}}]"#,
                r#"member array: {"rows":{}}"#,
            ),
            (
                r#"[{"rows":[]},{"rows":[{"n":1}]}]"#,
                r#"B table reply has a row without _uuid: {"n":1}"#,
            ),
            (
                r#"[{"rows":[]},{"rows":[5]}]"#,
                "B table reply has a row without _uuid: 5",
            ),
        ] {
            let failure = rows(&schema(), text.as_bytes()).unwrap_err();
            assert!(failure.to_string().contains(said), "{text}: {failure}");
        }
    }
}
