//! A change of a row as a line: for people, or as JSON.
//!
//! Functions of values. `watch` prints the lines.

use corvid_data::diff::{self, Change as ElementChange};
use corvid_data::{AtomRef, ColumnId, Datum, TableSchema, Uuid, text};
use corvid_json::writer::ObjectWriter;
use corvid_shell::output;
use corvid_shell::terminal::{Colour, Painted};

use super::show::label;
use super::watch::Row;
use crate::plain_json;

/// A change of a row.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) uuid: Uuid,
    /// The row was there when the watch began.
    pub(super) is_first: bool,
    /// The row before; `None` if it appears.
    pub(super) before: Option<Row>,
    /// The row after; `None` if it disappears.
    pub(super) after: Option<Row>,
}

impl Change {
    /// A row that disappears.
    pub(super) fn gone(uuid: Uuid, row: &Row) -> Change {
        Change {
            uuid,
            is_first: false,
            before: Some(row.clone()),
            after: None,
        }
    }
}

/// How changes of a table's rows become lines.
pub(super) struct Lines<'s> {
    pub(super) table: &'s TableSchema,
    /// The column that names rows.
    pub(super) name: Option<ColumnId>,
    /// The columns to print.
    pub(super) shown: Vec<ColumnId>,
    /// JSON instead of text.
    pub(super) is_json: bool,
}

impl Lines<'_> {
    /// The line of a change; `None` if no shown column has changed.
    pub(super) fn of(&self, change: &Change) -> Option<Painted> {
        match self.is_json {
            true => self.json(change),
            false => self.text(change, Painted::for_output()),
        }
    }

    /// The shown columns that differ, with their values.
    fn differing<'r>(
        &self,
        before: &'r Row,
        after: &'r Row,
    ) -> impl Iterator<Item = (ColumnId, &'r Datum, &'r Datum)> {
        self.shown.iter().filter_map(|id| {
            let (old, new) = (before.get(id)?, after.get(id)?);
            (old != new).then_some((*id, old, new))
        })
    }

    fn text(&self, change: &Change, mut line: Painted) -> Option<Painted> {
        match (&change.before, &change.after) {
            (None, None) => return None,
            (None, Some(row)) => {
                line.part(
                    Colour::Green,
                    &format!("+ {}", self.label(row, change.uuid)),
                );
                for id in &self.shown {
                    let (column, value) = (self.table.column(*id), row.get(id)?);
                    if !value.is_default(&column.column_type) && Some(*id) != self.name {
                        let value = self.value(*id, value);
                        line.part(Colour::Plain, &format!(" {}={value}", column.name));
                    }
                }
            }
            (Some(row), None) => {
                line.part(Colour::Red, &format!("- {}", self.label(row, change.uuid)));
            }
            (Some(before), Some(after)) => {
                let mut differing = self.differing(before, after).peekable();
                differing.peek()?;
                line.part(
                    Colour::Yellow,
                    &format!("~ {}", self.label(after, change.uuid)),
                );
                for (number, (id, old, new)) in differing.enumerate() {
                    let separator = if number > 0 { "," } else { "" };
                    let name = &self.table.column(id).name;
                    line.part(Colour::Plain, &format!("{separator} {name}:"));
                    self.add_difference(&mut line, id, old, new);
                }
            }
        }
        line.end_line();
        Some(line)
    }

    /// Adds what has changed in a value: the elements of a set or map that are new, gone or
    /// replaced, else the old and the new value.
    fn add_difference(&self, line: &mut Painted, id: ColumnId, old: &Datum, new: &Datum) {
        if !self.table.column(id).column_type.is_composite() {
            line.part(Colour::Plain, " ");
            line.part(Colour::Red, &self.value(id, old));
            line.part(Colour::Plain, " -> ");
            line.part(Colour::Green, &self.value(id, new));
            return;
        }
        diff::changes(old, new, &mut |change| {
            line.part(Colour::Plain, " ");
            match change {
                ElementChange::Added(key, value) => {
                    line.part(Colour::Green, &format!("+{}", element(key, value)));
                }
                ElementChange::Removed(key, value) => {
                    line.part(Colour::Red, &format!("-{}", element(key, value)));
                }
                ElementChange::Replaced(key, old, new) => {
                    line.part(Colour::Plain, &format!("{}=", element(key, None)));
                    line.part(Colour::Red, &element(old, None));
                    line.part(Colour::Plain, "->");
                    line.part(Colour::Green, &element(new, None));
                }
            }
        });
    }

    /// One object: what happens to the row, its UUID, and its columns; of a changed row also the
    /// old values of the changed columns.
    fn json(&self, change: &Change) -> Option<Painted> {
        let (event, row) = match (&change.before, &change.after) {
            (None, None) => return None,
            (None, Some(row)) if change.is_first => ("present", row),
            (None, Some(row)) => ("insert", row),
            (Some(row), None) => ("delete", row),
            (Some(_), Some(row)) => ("modify", row),
        };
        let mut bytes = Vec::new();
        let mut object = ObjectWriter::new(&mut bytes)
            .string("event", event.as_bytes())
            .string("uuid", &change.uuid.to_text());
        let mut columns = Vec::new();
        self.write(&mut columns, row, &self.shown);
        object = object.raw("row", &columns);
        if let (Some(before), Some(after)) = (&change.before, &change.after) {
            let differing = self.differing(before, after).map(|(id, ..)| id);
            let differing: Vec<ColumnId> = differing.collect();
            if differing.is_empty() {
                return None;
            }
            columns.clear();
            self.write(&mut columns, before, &differing);
            object = object.raw("old", &columns);
        }
        object.end();
        // JSON escapes control characters itself.
        let mut line = Painted::new(output::is_terminal(), false);
        line.part(Colour::Plain, &String::from_utf8_lossy(&bytes));
        line.end_line();
        Some(line)
    }

    fn write(&self, out: &mut Vec<u8>, row: &Row, columns: &[ColumnId]) {
        let mut object = ObjectWriter::new(out);
        for id in columns {
            let column = self.table.column(*id);
            if let Some(value) = row.get(id) {
                plain_json::datum_value(value, &column.column_type)
                    .write(object.member(column.name.as_bytes()));
            }
        }
        object.end();
    }

    fn label(&self, row: &Row, uuid: Uuid) -> String {
        let name = self.name.and_then(|name| row.get(&name)).cloned();
        label(&name.unwrap_or_default(), uuid)
    }

    fn value(&self, column: ColumnId, value: &Datum) -> String {
        let mut shown = String::new();
        text::write_datum(&mut shown, value, &self.table.column(column).column_type);
        shown
    }
}

/// An element of a set, or a pair of a map.
fn element(key: AtomRef<'_>, value: Option<AtomRef<'_>>) -> String {
    let mut shown = String::new();
    text::write_atom(&mut shown, key);
    if let Some(value) = value {
        shown.push('=');
        text::write_atom(&mut shown, value);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Schema;
    use corvid_json::Value;

    const SCHEMA: &str = r#"{"name":"D","tables":{"T":{"columns":{
        "name":{"type":"string"},
        "n":{"type":"integer"},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "labels":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;

    fn row(table: &TableSchema, values: &[(&str, &str)]) -> Row {
        let value = |id: ColumnId| {
            let column = table.column(id);
            let given = values.iter().find(|(name, _)| *name == &*column.name);
            given.map_or_else(
                || Datum::default_for(&column.column_type),
                |(_, value)| text::read_datum(value, &column.column_type, &mut |_| None).unwrap(),
            )
        };
        table.iter().map(|(id, _)| (id, value(id))).collect()
    }

    #[test]
    fn changed_elements_are_marked() {
        let schema = Schema::from_json(&Value::parse(SCHEMA.as_bytes()).unwrap()).unwrap();
        let table = schema.tables().first().unwrap();
        let mut lines = Lines {
            table,
            name: table.column_id("name"),
            shown: table.iter().map(|(id, _)| id).collect(),
            is_json: false,
        };
        let before = row(
            table,
            &[("name", "a"), ("tags", "x,y"), ("labels", "k=v,l=w")],
        );
        let after = row(
            table,
            &[
                ("name", "a"),
                ("n", "5"),
                ("tags", "y,z"),
                ("labels", "k=u,m=w"),
            ],
        );
        let change = |before: Option<&Row>, after: Option<&Row>| Change {
            uuid: Uuid::ZERO,
            is_first: false,
            before: before.cloned(),
            after: after.cloned(),
        };
        let text = |lines: &Lines<'_>, change: &Change, is_coloured| {
            let line = lines.text(change, Painted::new(true, is_coloured));
            line.map(|line| line.as_str().to_owned())
        };
        let changed = change(Some(&before), Some(&after));
        assert_eq!(
            text(&lines, &changed, false).unwrap(),
            "~ a labels: k=v->u -l=w +m=w, n: 0 -> 5, tags: -x +z\n"
        );
        assert!(
            text(&lines, &changed, true)
                .unwrap()
                .contains("\x1b[32m+z\x1b[0m")
        );
        let same = change(Some(&after), Some(&after));
        assert_eq!(text(&lines, &same, false), None);
        let gone = change(Some(&after), None);
        assert_eq!(text(&lines, &gone, false).unwrap(), "- a\n");
        let new = change(None, Some(&after));
        assert_eq!(
            text(&lines, &new, false).unwrap(),
            "+ a labels={k=u, m=w} n=5 tags=[y, z]\n"
        );
        lines.shown.truncate(1);
        let json = lines.json(&changed).unwrap();
        assert_eq!(
            json.as_str(),
            "{\"event\":\"modify\",\"uuid\":\"00000000-0000-0000-0000-000000000000\",\
             \"row\":{\"labels\":{\"k\":\"u\",\"m\":\"w\"}},\"old\":{\"labels\":{\"k\":\"v\",\"l\":\"w\"}}}\n"
        );
    }
}
