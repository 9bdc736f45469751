//! Candidates while a viewer types: in the filter of a table, and in the operations of the
//! page Query. The script of the pages shows them; without the script, nothing is missing but help.
//!
//! An answer is computed from the schema, and from the table's rows in the replica for values.

use corvid::data::{AtomType, ColumnType, Schema, TableId, TableSchema};
use corvid::json::{Object, Value};

use super::values;
use crate::database::Open;

/// The number of candidates.
const CANDIDATES_MAX: usize = 40;

/// The number of rows whose values are candidates. They are counted for each letter that is typed.
const ROWS_MAX: usize = 20_000;

/// Something that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    text: String,
    note: String,
}

/// Candidates, and where the text that they replace begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    from: usize,
    candidates: Vec<Candidate>,
}

impl Completion {
    /// Keeps what fits what is typed already: what begins with it comes before what contains it.
    fn of(
        from: usize,
        typed: &str,
        candidates: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let typed = typed.to_lowercase();
        let (mut first, mut then) = (Vec::new(), Vec::new());
        for (text, note) in candidates {
            let lower = text.trim_start_matches('"').to_lowercase();
            let place = match lower.find(&typed) {
                Some(0) => &mut first,
                Some(_) => &mut then,
                None => continue,
            };
            place.push(Candidate { text, note });
        }
        first.append(&mut then);
        first.truncate(CANDIDATES_MAX);
        Completion {
            from,
            candidates: first,
        }
    }

    /// As the script reads it: positions in UTF-16 units, as a browser counts them.
    pub(crate) fn to_json(&self, text: &str) -> Vec<u8> {
        let from = text[..self.from].encode_utf16().count();
        let candidates = self.candidates.iter().map(|one| {
            Value::Array(vec![
                Value::string(one.text.as_str()),
                Value::string(one.note.as_str()),
            ])
        });
        let mut object = Object::new();
        let from = i64::try_from(from).unwrap_or(0);
        object.insert("from".into(), Value::Integer(from));
        object.insert("candidates".into(), Value::Array(candidates.collect()));
        Value::Object(object).to_bytes()
    }
}

/// A piece of a filter, with its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Word(&'t str),
    Sign(&'t str),
}

/// Splits the text before the cursor as the filter's grammar does, and returns the word that is
/// being typed: the last piece, if nothing ends it.
fn pieces(text: &str) -> (Vec<Piece<'_>>, usize) {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().unwrap_or(' ');
        let length = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if matches!(first, '"' | '\'') {
            let mut is_escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, letter)| {
                let is_end = *letter == first && !is_escaped;
                is_escaped = *letter == '\\' && !is_escaped;
                is_end
            });
            match end {
                Some((end, _)) => end + 1,
                None => return (pieces, at),
            }
        } else if "=!<>~".contains(first) {
            rest.find(|letter| !"=!<>~".contains(letter))
                .unwrap_or(rest.len())
        } else if "(),".contains(first) {
            1
        } else {
            let end =
                rest.find(|letter: char| letter.is_whitespace() || "=!<>~(),\"'".contains(letter));
            match end {
                Some(end) => end,
                None => return (pieces, at),
            }
        };
        let piece = &rest[..length];
        let is_sign = "=!<>~(),".contains(first);
        pieces.push(if is_sign {
            Piece::Sign(piece)
        } else {
            Piece::Word(piece)
        });
        at += length;
    }
    (pieces, at)
}

/// The part that a filter needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need<'t> {
    /// A column, or `not`.
    Term,
    /// An operator after this column.
    Operator(&'t str),
    /// A value to compare this column with.
    Value(&'t str),
    /// `and` or `or`.
    Junction,
}

fn need<'t>(pieces: &[Piece<'t>]) -> Need<'t> {
    let mut need = Need::Term;
    let mut list_of = None;
    for piece in pieces {
        need = match (need, *piece) {
            (Need::Term, Piece::Word(word)) if word.eq_ignore_ascii_case("not") => Need::Term,
            (Need::Term, Piece::Word(word)) => Need::Operator(word),
            (Need::Operator(column), Piece::Word(word)) if word.eq_ignore_ascii_case("in") => {
                list_of = Some(column);
                Need::Value(column)
            }
            (Need::Operator(column), Piece::Word(word)) if word.eq_ignore_ascii_case("not") => {
                Need::Operator(column)
            }
            (Need::Operator(_) | Need::Junction, Piece::Word(_)) => Need::Term,
            (Need::Operator(_), Piece::Sign(")")) => Need::Junction,
            (Need::Operator(column), Piece::Sign(_)) => Need::Value(column),
            (Need::Value(column), Piece::Sign("(")) => Need::Value(column),
            (Need::Value(_), Piece::Word(_)) => Need::Junction,
            (Need::Junction, Piece::Sign(",")) => list_of.map_or(Need::Junction, Need::Value),
            (_, Piece::Sign(")")) => {
                list_of = None;
                Need::Junction
            }
            (need, Piece::Sign(_)) => need,
        };
    }
    need
}

/// Candidates in a filter of a table's rows, at a place of the text.
pub(crate) fn filter(open: &Open, table: TableId, text: &str) -> Completion {
    let schema = open.schema.table(table);
    let (pieces, from) = pieces(text);
    let typed = text[from..].trim_start_matches(['"', '\'']);
    match need(&pieces) {
        Need::Term => {
            let keys = typed.split_once(':').and_then(|(name, _)| {
                let id = schema.column_id(name)?;
                schema.column(id).column_type.is_map().then_some((name, id))
            });
            if let Some((name, id)) = keys {
                open.look(table);
                let counts = open
                    .client
                    .read(|idl| values::count(idl, &open.naming, table, id, ROWS_MAX));
                let mut known: Vec<String> = Vec::new();
                for key in counts.values.into_iter().filter_map(|one| one.key) {
                    if !known.contains(&key) && known.len() < CANDIDATES_MAX {
                        known.push(key);
                    }
                }
                let keys = known
                    .into_iter()
                    .map(|key| (format!("{name}:{key}"), "key".to_owned()));
                return Completion::of(from, typed, keys);
            }
            let columns = schema
                .iter()
                .map(|(_, column)| (column.name.to_string(), column.column_type.english()));
            let not = ("not".to_owned(), String::new());
            Completion::of(from, typed, columns.chain([not]))
        }
        Need::Operator(place) => {
            let operators = operators(column_type(schema, place));
            Completion::of(
                from,
                typed,
                operators
                    .iter()
                    .map(|(sign, note)| ((*sign).to_owned(), (*note).to_owned())),
            )
        }
        Need::Value(place) => Completion::of(from, typed, of_column(open, table, place)),
        Need::Junction => Completion::of(
            from,
            typed,
            ["and", "or"].map(|word| (word.to_owned(), String::new())),
        ),
    }
}

fn column_type<'s>(schema: &'s TableSchema, place: &str) -> Option<&'s ColumnType> {
    let name = place.split(':').next().unwrap_or_default();
    let id = schema.column_id(name)?;
    Some(&schema.column(id).column_type)
}

fn operators(column_type: Option<&ColumnType>) -> &'static [(&'static str, &'static str)] {
    match column_type.map(|column_type| values::element(column_type).atom) {
        Some(AtomType::String) => &[
            ("==", "equal"),
            ("!=", "not equal"),
            ("~", "matches a pattern"),
            ("!~", "matches no pattern"),
            ("in", "one of a list"),
        ],
        Some(AtomType::Integer | AtomType::Real) => &[
            ("==", "equal"),
            ("!=", "not equal"),
            ("<", "less"),
            ("<=", "at most"),
            (">", "greater"),
            (">=", "at least"),
            ("in", "one of a list"),
        ],
        _ => &[
            ("==", "equal"),
            ("!=", "not equal"),
            ("in", "one of a list"),
        ],
    }
}

/// Values of a column: all that its type has, or those that rows have, the most frequent first.
fn of_column(open: &Open, table: TableId, place: &str) -> Vec<(String, String)> {
    let schema = open.schema.table(table);
    let (name, key) = match place.split_once(':') {
        Some((name, key)) => (name, Some(key)),
        None => (place, None),
    };
    let Some(id) = schema.column_id(name) else {
        return Vec::new();
    };
    open.look(table);
    let counts = open
        .client
        .read(|idl| values::count(idl, &open.naming, table, id, ROWS_MAX));
    let counted = counts
        .values
        .into_iter()
        .filter(|one| match (key, &one.key) {
            (Some(key), Some(own)) => own == key,
            (None, own) => own.is_none(),
            (Some(_), None) => false,
        });
    let mut found: Vec<(String, String)> = counted
        .map(|one| {
            let rows = super::grid::counted(one.count, "row");
            match one.shown == one.word {
                true => (one.word, rows),
                false => (one.word, format!("{}, {rows}", one.shown)),
            }
        })
        .collect();
    for word in fixed(&schema.column(id).column_type) {
        if !found.iter().any(|(known, _)| *known == word) {
            found.push((word, String::new()));
        }
    }
    found
}

/// All values that a type has, if they are few.
pub(crate) fn fixed(column_type: &ColumnType) -> Vec<String> {
    let base = values::element(column_type);
    match (&base.enumeration, base.atom) {
        (Some(allowed), _) => allowed
            .iter()
            .map(|(atom, _)| {
                let mut text = String::new();
                corvid::data::text::write_atom_bare(&mut text, atom);
                text
            })
            .collect(),
        (None, AtomType::Boolean) => vec!["true".to_owned(), "false".to_owned()],
        _ => Vec::new(),
    }
}

/// Operations and their members, the required ones first.
const MEMBERS: [(&str, &[&str]); 9] = [
    ("select", &["table", "where", "columns"]),
    ("insert", &["table", "row", "uuid-name", "uuid"]),
    ("update", &["table", "where", "row"]),
    ("mutate", &["table", "where", "mutations"]),
    ("delete", &["table", "where"]),
    (
        "wait",
        &["table", "where", "columns", "until", "rows", "timeout"],
    ),
    ("assert", &["lock"]),
    ("comment", &["comment"]),
    ("abort", &[]),
];

/// The functions of conditions.
pub(crate) const FUNCTIONS: [&str; 8] = ["==", "!=", "<", "<=", ">", ">=", "includes", "excludes"];

/// The mutators.
pub(crate) const MUTATORS: [&str; 7] = ["+=", "-=", "*=", "/=", "%=", "insert", "delete"];

/// An object or array that is open at the cursor.
#[derive(Debug)]
enum Level<'t> {
    Object {
        key: Option<&'t str>,
        is_value: bool,
        op: Option<&'t str>,
        table: Option<&'t str>,
    },
    Array {
        index: usize,
    },
}

/// Candidates in operations, for a string that is being typed at the end of the text.
pub(crate) fn operations(schema: &Schema, text: &str) -> Completion {
    let (levels, from) = levels(text);
    let Some(from) = from else {
        return Completion::default();
    };
    let typed = &text[from..];
    // The members of the operation that the cursor is in, outermost first.
    let operation = levels.iter().find_map(|level| match level {
        Level::Object { op, table, key, .. } => Some((*op, *table, *key)),
        Level::Array { .. } => None,
    });
    let (op, table, member) = operation.unwrap_or_default();
    let table = table.and_then(|name| schema.table_id(name));
    let columns = || {
        let columns = table.map(|id| {
            let columns = schema.table(id).iter();
            columns.map(|(_, column)| (column.name.to_string(), column.column_type.english()))
        });
        columns.into_iter().flatten().collect::<Vec<_>>()
    };
    let words = |words: &[&str]| -> Vec<(String, String)> {
        words
            .iter()
            .map(|word| ((*word).to_owned(), String::new()))
            .collect()
    };
    let objects = levels
        .iter()
        .filter(|level| matches!(level, Level::Object { .. }))
        .count();
    let found = match (levels.last(), member) {
        // A member's name in the operation, or a column's name in its row.
        (
            Some(Level::Object {
                is_value: false, ..
            }),
            _,
        ) if objects == 1 => {
            let own = MEMBERS.iter().find(|(name, _)| Some(*name) == op);
            let own = own.map_or(&["op", "table", "where", "row"][..], |(_, own)| own);
            words(own)
        }
        (
            Some(Level::Object {
                is_value: false, ..
            }),
            Some("row" | "rows"),
        ) => columns(),
        (Some(Level::Object { is_value: true, .. }), Some("op")) if objects == 1 => {
            words(&MEMBERS.map(|(name, _)| name))
        }
        (Some(Level::Object { is_value: true, .. }), Some("table")) if objects == 1 => schema
            .iter()
            .map(|(_, table)| (table.name.to_string(), String::new()))
            .collect(),
        (Some(Level::Object { is_value: true, .. }), Some("until")) => words(&["==", "!="]),
        (
            Some(Level::Object {
                is_value: true,
                key: Some(name),
                ..
            }),
            Some("row" | "rows"),
        ) => {
            let column_type = table.and_then(|id| column_type(schema.table(id), name));
            let fixed = column_type.map(fixed).unwrap_or_default();
            fixed
                .into_iter()
                .map(|word| (word, String::new()))
                .collect()
        }
        (Some(Level::Array { .. }), Some("columns")) => columns(),
        (Some(Level::Array { index: 0 }), Some("where" | "mutations")) => columns(),
        (Some(Level::Array { index: 1 }), Some("where")) => words(&FUNCTIONS),
        (Some(Level::Array { index: 1 }), Some("mutations")) => words(&MUTATORS),
        _ => Vec::new(),
    };
    Completion::of(from, typed, found)
}

/// The objects and arrays that are open at the end of the text, and where the string that is open
/// there begins.
fn levels(text: &str) -> (Vec<Level<'_>>, Option<usize>) {
    let mut levels = Vec::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '{' => levels.push(Level::Object {
                key: None,
                is_value: false,
                op: None,
                table: None,
            }),
            '[' => levels.push(Level::Array { index: 0 }),
            '}' | ']' => {
                levels.pop();
            }
            ':' => {
                if let Some(Level::Object { is_value, .. }) = levels.last_mut() {
                    *is_value = true;
                }
            }
            ',' => match levels.last_mut() {
                Some(Level::Object { is_value, key, .. }) => {
                    *is_value = false;
                    *key = None;
                }
                Some(Level::Array { index }) => *index += 1,
                None => {}
            },
            '"' => {
                let mut is_escaped = false;
                let end = letters.by_ref().find(|(_, letter)| {
                    let is_end = *letter == '"' && !is_escaped;
                    is_escaped = *letter == '\\' && !is_escaped;
                    is_end
                });
                let Some((end, _)) = end else {
                    return (levels, Some(at + 1));
                };
                let string = &text[at + 1..end];
                if let Some(Level::Object {
                    key,
                    is_value,
                    op,
                    table,
                }) = levels.last_mut()
                {
                    match (*is_value, *key) {
                        (false, _) => *key = Some(string),
                        (true, Some("op")) => *op = Some(string),
                        (true, Some("table")) => *table = Some(string),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    (levels, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &str) -> (Need<'_>, &str) {
        let (pieces, from) = pieces(text);
        (need(&pieces), &text[from..])
    }

    #[test]
    fn a_filter_needs_columns_operators_and_values_in_turn() {
        assert_eq!(needs(""), (Need::Term, ""));
        assert_eq!(needs("na"), (Need::Term, "na"));
        assert_eq!(needs("not (na"), (Need::Term, "na"));
        assert_eq!(needs("name "), (Need::Operator("name"), ""));
        assert_eq!(needs("name =="), (Need::Value("name"), ""));
        assert_eq!(needs("name == \"we b"), (Need::Value("name"), "\"we b"));
        assert_eq!(needs("name == web "), (Need::Junction, ""));
        assert_eq!(needs("name == web an"), (Need::Junction, "an"));
        assert_eq!(needs("name == web and t"), (Need::Term, "t"));
        assert_eq!(needs("tag in (1, "), (Need::Value("tag"), ""));
        assert_eq!(needs("tag in (1) "), (Need::Junction, ""));
        assert_eq!(needs("up and ta"), (Need::Term, "ta"));
        assert_eq!(needs("ids:owner == "), (Need::Value("ids:owner"), ""));
        assert_eq!(needs("größe == ü"), (Need::Value("größe"), "ü"));
    }

    #[test]
    fn what_begins_with_the_typed_text_comes_first() {
        let words = ["other_name", "name", "\"name of\"", "tag"];
        let words = words.map(|word| (word.to_owned(), String::new()));
        let found = Completion::of(3, "NAM", words);
        let texts: Vec<&str> = found.candidates.iter().map(|one| &*one.text).collect();
        assert_eq!(texts, ["name", "\"name of\"", "other_name"]);
        // Positions are in units of UTF-16: three letters of two bytes, and a blank.
        let after = Completion { from: 7, ..found };
        let json = Value::parse(&after.to_json("äöü n")).unwrap();
        assert_eq!(json.get("from").and_then(Value::as_integer), Some(4));
    }

    #[test]
    fn operations_are_completed_from_the_schema() {
        let schema =
            br#"{"name": "Net", "tables": {"Port": {"columns": {"name": {"type": "string"},
            "kind": {"type": {"key": {"type": "string", "enum": ["set", ["vif", "lag"]]}}}}}}}"#;
        let schema = Schema::from_json(&Value::parse(schema).unwrap()).unwrap();
        let found = |text: &str| {
            let found = operations(&schema, text);
            let texts = found.candidates.into_iter().map(|one| one.text);
            texts.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("[{\"o"), "op row");
        assert_eq!(found("[{\"op\": \"se"), "select insert assert");
        assert_eq!(found("[{\"op\": \"select\", \"table\": \"P"), "Port");
        let begin = "[{\"op\": \"insert\", \"table\": \"Port\", ";
        assert_eq!(found(&format!("{begin}\"r")), "row");
        assert_eq!(found(&format!("{begin}\"row\": {{\"na")), "name");
        assert_eq!(found(&format!("{begin}\"row\": {{\"kind\": \"")), "lag vif");
        assert_eq!(found(&format!("{begin}\"where\": [[\"ki")), "kind");
        assert_eq!(
            found(&format!("{begin}\"where\": [[\"kind\", \"inc")),
            "includes"
        );
        assert_eq!(
            found(&format!("{begin}\"columns\": [\"name\", \"k")),
            "kind"
        );
        assert_eq!(found("[{\"op\": \"select\", "), "");
        // A second operation has its own table.
        assert_eq!(
            found(&format!("{begin}\"row\": {{}}}}, {{\"op\": \"de")),
            "delete"
        );
    }
}
