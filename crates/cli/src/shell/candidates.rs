//! The candidates at the cursor: names that fit there, from the schema and from rows.

use corvid_data::{
    AtomRef, AtomType, BaseType, ColumnId, ColumnSchema, ColumnType, Datum, Schema, TableId,
    TableSchema, text,
};
use corvid_json::shown;

use super::cursor::{Cursor, Follows, Wanted};
use super::request;
use super::words::quoted;
use crate::commands::{COMMANDS, Command, EXPLAIN};
use crate::grammar::names;

/// The names that are known without asking about rows.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The schema of the database in use.
    pub schema: Option<Schema>,
    /// The databases of the server.
    pub databases: Vec<String>,
    /// The servers that have names.
    pub servers: Vec<String>,
}

/// Values of rows, from a source that answers small questions only.
pub(crate) trait Rows {
    /// The UUIDs and names of the rows of a table.
    fn names(&mut self, schema: &Schema, table: TableId) -> Vec<(String, String)>;

    /// The values of a column: of one record, or of all.
    fn values(
        &mut self,
        schema: &Schema,
        table: TableId,
        record: Option<&str>,
        column: ColumnId,
    ) -> Vec<Datum>;
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The text in a list of candidates. Contains no control characters.
    pub shown: String,
    /// The text that replaces the word at the cursor, with its quotes.
    pub replacement: String,
}

/// Limit on the number of candidates.
const CANDIDATES_MAX: usize = 500;

/// The candidates at the cursor, in order.
pub(crate) fn candidates(cursor: &Cursor, known: &Known, rows: &mut dyn Rows) -> Vec<Candidate> {
    let word = cursor.word.as_str();
    let mut found = match (&cursor.wanted, &known.schema) {
        (Wanted::Command { is_first: true }, _) => whole(word, request::names()),
        (Wanted::Command { is_first: false }, _) => {
            let commands = COMMANDS.iter().map(|command| command.name);
            whole(word, commands.filter(|name| *name != EXPLAIN))
        }
        (Wanted::Topic, _) => whole(word, request::names()),
        (Wanted::Option, _) => options(word),
        (Wanted::Database, _) => whole(word, known.databases.iter().map(String::as_str)),
        (Wanted::Server, _) => whole(word, known.servers.iter().map(String::as_str)),
        (Wanted::Table, Some(schema)) => whole(
            word,
            schema.tables().iter().map(|table| table.name.as_str()),
        ),
        (Wanted::Record { table }, Some(schema)) => match names::table(schema, table) {
            Ok(table) => records(word, rows.names(schema, table)),
            Err(_) => Vec::new(),
        },
        (
            Wanted::Column {
                table,
                record,
                follows,
            },
            Some(schema),
        ) => match names::table(schema, table) {
            Ok(table) => {
                let about = About {
                    schema,
                    table,
                    record: record.as_deref(),
                };
                about.column(word, *follows, rows)
            }
            Err(_) => Vec::new(),
        },
        (
            Wanted::Element {
                table,
                record,
                column,
                is_present,
            },
            Some(schema),
        ) => match column_of(schema, table, column) {
            Some((table, column)) => {
                let about = About {
                    schema,
                    table,
                    record: Some(record),
                };
                about.element(word, column, *is_present, rows)
            }
            None => Vec::new(),
        },
        _ => Vec::new(),
    };
    found.sort_by(|a, b| a.shown.cmp(&b.shown));
    found.dedup();
    found.truncate(CANDIDATES_MAX);
    found
}

fn column_of(schema: &Schema, table: &str, column: &str) -> Option<(TableId, ColumnId)> {
    let table = names::table(schema, table).ok()?;
    let column = names::column(schema.table(table), column).ok()?;
    Some((table, column))
}

/// Names that are whole words: a blank follows.
fn whole<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<Candidate> {
    let fitting = names.filter(|name| begins(name, word) && !has_controls(name));
    fitting
        .map(|name| Candidate {
            shown: name.to_owned(),
            replacement: format!("{} ", quoted(name)),
        })
        .collect()
}

fn options(word: &str) -> Vec<Candidate> {
    let all = COMMANDS.iter().flat_map(|command| command.options);
    all.filter(|option| option.starts_with(word))
        .map(|option| Candidate {
            shown: (*option).to_owned(),
            replacement: match option.ends_with('=') {
                true => (*option).to_owned(),
                false => format!("{option} "),
            },
        })
        .collect()
}

/// Records by name. One whose name cannot be typed is inserted by its UUID.
fn records(word: &str, rows: Vec<(String, String)>) -> Vec<Candidate> {
    let is_fitting = |(_, name): &(String, String)| name.starts_with(word);
    let fitting: Vec<(String, String)> = rows.into_iter().filter(is_fitting).collect();
    let is_only = fitting.len() == 1;
    fitting
        .into_iter()
        .map(|(uuid, name)| Candidate {
            replacement: match (has_controls(&name), is_only) {
                (false, _) => format!("{} ", quoted(&name)),
                (true, true) => format!("{uuid} "),
                // The word stays until it is clear which record is meant.
                (true, false) => quoted(word),
            },
            shown: shown::line(&name).into_owned(),
        })
        .collect()
}

/// Whether `name` begins with `word`, in any case and with `-` for `_`.
fn begins(name: &str, word: &str) -> bool {
    let normal = |letter: char| match letter {
        '-' => '_',
        other => other.to_ascii_lowercase(),
    };
    let mut letters = name.chars();
    word.chars()
        .all(|letter| letters.next().map(normal) == Some(normal(letter)))
}

fn has_controls(name: &str) -> bool {
    name.chars().any(shown::is_control)
}

/// The table and record that a word is about.
struct About<'a> {
    schema: &'a Schema,
    table: TableId,
    record: Option<&'a str>,
}

impl About<'_> {
    fn table(&self) -> &TableSchema {
        self.schema.table(self.table)
    }

    /// Candidates for `COLUMN[:KEY][=VALUE]`.
    fn column(&self, word: &str, follows: Follows, rows: &mut dyn Rows) -> Vec<Candidate> {
        let parts = Parts::of(word);
        let Some(separator) = parts.separator.filter(|_| follows != Follows::Nothing) else {
            let columns = self.table().iter().map(|(_, column)| column);
            let fitting = columns.filter(|column| begins(&column.name, word));
            return fitting.map(|column| name(column, follows)).collect();
        };
        let Ok(id) = names::column(self.table(), parts.column) else {
            return Vec::new();
        };
        let column_type = &self.table().column(id).column_type;
        match (separator, follows) {
            (':', _) if column_type.is_map() => {
                let keys = self.keys(id, rows);
                let after = if follows == Follows::Value { "=" } else { " " };
                parts.completed(keys, after)
            }
            ('=', Follows::Value) => {
                let base = match (parts.has_key, &column_type.value) {
                    (true, Some(value)) => value,
                    _ => &column_type.key,
                };
                parts.completed(choices(base), " ")
            }
            _ => Vec::new(),
        }
    }

    /// Candidates for an element of a column.
    fn element(
        &self,
        word: &str,
        column: ColumnId,
        is_present: bool,
        rows: &mut dyn Rows,
    ) -> Vec<Candidate> {
        let column_type = &self.table().column(column).column_type;
        let elements = match is_present {
            true => self.keys(column, rows),
            false => choices(&column_type.key),
        };
        let after = match column_type.is_map() && !is_present {
            true => "=",
            false => " ",
        };
        let parts = Parts {
            before: "",
            last: word,
            ..Parts::of("")
        };
        parts.completed(elements, after)
    }

    /// The keys of a column: those of its type, or those of the rows.
    fn keys(&self, column: ColumnId, rows: &mut dyn Rows) -> Vec<String> {
        let base = &self.table().column(column).column_type.key;
        let chosen = choices(base);
        if !chosen.is_empty() {
            return chosen;
        }
        let values = rows.values(self.schema, self.table, self.record, column);
        let mut keys: Vec<String> = values
            .iter()
            .flat_map(|value| value.keys().map(atom))
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }
}

/// A word `COLUMN[:KEY][=VALUE]`, as far as it is typed.
struct Parts<'a> {
    column: &'a str,
    has_key: bool,
    /// The last separator: `:` or `=`.
    separator: Option<char>,
    /// Everything up to the last separator.
    before: &'a str,
    /// The rest of the word.
    last: &'a str,
}

impl Parts<'_> {
    fn of(word: &str) -> Parts<'_> {
        let column = &word[..word
            .find([':', '=', '!', '<', '>', '{'])
            .unwrap_or(word.len())];
        let rest = &word[column.len()..];
        let has_key = rest.starts_with(':');
        let (separator, at) = match rest.find('=') {
            // The last element of a set.
            Some(at) => (
                Some('='),
                rest.rfind(',').map_or(at, |comma| comma.max(at)) + 1,
            ),
            None if has_key => (Some(':'), 1),
            None => (None, 0),
        };
        let at = column.len() + at;
        Parts {
            column,
            has_key,
            separator,
            before: &word[..at],
            last: &word[at..],
        }
    }

    /// The word with its last part completed by each text that fits.
    fn completed(&self, texts: Vec<String>, after: &str) -> Vec<Candidate> {
        let fitting = texts
            .into_iter()
            .filter(|text| text.starts_with(self.last) && !has_controls(text));
        fitting
            .map(|text| Candidate {
                replacement: format!("{}{after}", quoted(&format!("{}{text}", self.before))),
                shown: text,
            })
            .collect()
    }
}

/// The name of a column with what must follow it.
fn name(column: &ColumnSchema, follows: Follows) -> Candidate {
    let after = match (follows, column.column_type.is_map()) {
        (Follows::Value, true) => ":",
        (Follows::Value, false) => "=",
        _ => " ",
    };
    Candidate {
        shown: column.name.to_string(),
        replacement: format!("{}{after}", column.name),
    }
}

/// The values that a type lists.
fn choices(base: &BaseType) -> Vec<String> {
    match (&base.enumeration, base.atom) {
        (Some(values), _) => values.keys().map(atom).collect(),
        (None, AtomType::Boolean) => vec!["false".to_owned(), "true".to_owned()],
        _ => Vec::new(),
    }
}

/// An atom as it is typed in an argument.
fn atom(atom: AtomRef<'_>) -> String {
    let mut shown = String::new();
    text::write_atom(&mut shown, atom);
    shown
}

/// A hint for the rest of the line: the type of the column whose value begins, or the missing
/// arguments.
pub(crate) fn hint(cursor: &Cursor, known: &Known) -> Option<String> {
    if cursor.word.is_empty() {
        let (command, count) = cursor.command?;
        return arguments_after(command, count);
    }
    let Wanted::Column { table, .. } = &cursor.wanted else {
        return None;
    };
    let parts = Parts::of(&cursor.word);
    if parts.separator != Some('=') || !parts.last.is_empty() {
        return None;
    }
    let schema = known.schema.as_ref()?;
    let (table, column) = column_of(schema, table, parts.column)?;
    let column_type = &schema.table(table).column(column).column_type;
    let part = match (parts.has_key, &column_type.value) {
        (true, Some(value)) => ColumnType {
            key: value.clone(),
            value: None,
            min: 1,
            max: 1,
        },
        _ => column_type.clone(),
    };
    let words = crate::commands::type_in_words(&part);
    Some(format!(" {}", shown::line(&words)))
}

/// The arguments of a command after the first ones, if any.
fn arguments_after(command: &Command, count: usize) -> Option<String> {
    let forms = super::cursor::arguments(command);
    let rest = forms.get(count..).filter(|rest| !rest.is_empty())?;
    Some(rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::cursor::at_end;

    const SCHEMA: &str = r#"{"name":"Lab","version":"1.0.0","tables":{
        "Device":{"isRoot":true,"indexes":[["name"]],"columns":{
            "name":{"type":"string"},
            "role":{"type":{"key":{"type":"string","enum":["set",["leaf","spine","top of rack"]]}}},
            "up":{"type":{"key":"boolean","min":0,"max":1}},
            "vlans":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":4095},"min":0,"max":"unlimited"}},
            "labels":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
            "flags":{"type":{"key":{"type":"string","enum":["set",["a","b"]]},"value":"boolean","min":0,"max":"unlimited"}}}},
        "Dock":{"columns":{"n":{"type":"integer"}}}}}"#;

    /// Rows `web-1`, `web 2`, and one with an escape sequence in its name.
    struct Fixed;

    impl Rows for Fixed {
        fn names(&mut self, _: &Schema, _: TableId) -> Vec<(String, String)> {
            ["web-1", "web 2", "x\u{1b}[2J"]
                .into_iter()
                .map(|name| ("0123".to_owned(), name.to_owned()))
                .collect()
        }

        fn values(
            &mut self,
            _: &Schema,
            _: TableId,
            record: Option<&str>,
            _: ColumnId,
        ) -> Vec<Datum> {
            let pair = |key: &str| {
                let text = |text: &str| corvid_data::Atom::String(text.into());
                Datum::pair(text(key), text("v"))
            };
            match record {
                Some("web-1") => vec![pair("rack")],
                Some(_) => Vec::new(),
                None => vec![pair("rack"), pair("row"), pair("rack")],
            }
        }
    }

    fn known() -> Known {
        let json = corvid_json::Value::parse(SCHEMA.as_bytes()).unwrap();
        Known {
            schema: Some(Schema::from_json(&json).unwrap()),
            databases: vec!["Lab".to_owned(), "_Server".to_owned()],
            servers: vec!["lab".to_owned()],
        }
    }

    /// The replacements at the end of a line.
    fn at(before: &str) -> Vec<String> {
        candidates(&at_end(before), &known(), &mut Fixed)
            .into_iter()
            .map(|candidate| candidate.replacement)
            .collect()
    }

    #[test]
    fn names_of_the_schema_are_completed() {
        assert_eq!(at("list De"), ["Device "]);
        assert_eq!(at("list d"), ["Device ", "Dock "]);
        assert_eq!(at("desc"), ["describe "]);
        assert_eq!(at("comm"), ["comment ", "commit "]);
        assert_eq!(at("list Dock -- comm"), ["comment "]);
        assert_eq!(at("--if"), ["--if-exists "]);
        assert_eq!(at("--co"), ["--column=", "--columns=", "--count="]);
        assert_eq!(at("use _"), ["_Server "]);
        assert_eq!(at("connect "), ["lab "]);
        assert_eq!(at("set dev web-1 l"), ["labels:"]);
        assert_eq!(at("set Device web-1 UP"), ["up="]);
        assert_eq!(at("get Device web-1 l"), ["labels "]);
        assert_eq!(at("set Nosuch x l"), [""; 0]);
    }

    #[test]
    fn values_come_from_the_type() {
        assert_eq!(at("set Device x up="), ["up=false ", "up=true "]);
        assert_eq!(at("find Device role=s"), ["role=spine "]);
        assert_eq!(at("find Device role!=s"), ["role!=spine "]);
        assert_eq!(at("set Device x role='t"), [""; 0]);
        assert_eq!(at("set Device x role=\\\"t"), ["'role=\"top of rack\"' "]);
        assert_eq!(at("set Device x flags:"), ["flags:a=", "flags:b="]);
        assert_eq!(at("set Device x flags:a=t"), ["flags:a=true "]);
        assert_eq!(at("add Device x flags "), ["a=", "b="]);
    }

    #[test]
    fn names_and_keys_come_from_rows() {
        assert_eq!(at("list Device web"), ["'web 2' ", "web-1 "]);
        assert_eq!(at("set Device web-1 labels:"), ["labels:rack="]);
        assert_eq!(at("find Device labels:r"), ["labels:rack=", "labels:row="]);
        assert_eq!(at("get Device web-1 labels:"), ["labels:rack "]);
        assert_eq!(at("remove Device web-1 labels r"), ["rack "]);
    }

    #[test]
    fn hostile_names_are_shown_escaped_and_inserted_by_uuid() {
        let found = candidates(&at_end("list Device x"), &known(), &mut Fixed);
        assert_eq!(found[0].shown, "x\\u001b[2J");
        assert_eq!(found[0].replacement, "0123 ");
    }

    #[test]
    fn hints_tell_types_and_missing_arguments() {
        let hinted = |before: &str| hint(&at_end(before), &known());
        for (before, expected) in [
            ("set ", Some("TABLE RECORD COLUMN[:KEY]=VALUE...")),
            ("set Device ", Some("RECORD COLUMN[:KEY]=VALUE...")),
            ("tables ", None),
            ("set Device x role=", Some(" leaf|spine|\"top of rack\"")),
            ("set Device x up=", Some(" optional boolean")),
            ("set Device x labels:a=", Some(" string")),
            ("set Device x vlans=1", None),
            ("se", None),
            ("", None),
        ] {
            assert_eq!(hinted(before).as_deref(), expected, "{before:?}");
        }
    }
}
