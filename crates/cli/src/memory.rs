//! Chains on rows in memory, for tests: no server, fixed UUIDs.

use corvid_data::{ColumnId, Datum, Schema, TableSchema, Uuid, UuidSource, text};
use corvid_json::Value;

use crate::commands::{self, Action, Context, Output};
use crate::contents::{Clause, Contents, Found, Source};
use crate::failure::Failure;
use crate::grammar::chain;
use crate::grammar::row_names::RowNames;
use crate::transaction::Transaction;

const SCHEMA: &str = r#"{"name":"Lab","version":"1.0.0","tables":{
    "Site":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":"string","mutable":false}, "rank":{"type":"integer"},
        "kind":{"type":{"key":{"type":"string","enum":["set",["hall","street"]]},"min":0,"max":1}},
        "devices":{"type":{"key":{"type":"uuid","refTable":"Device"},"min":0,"max":"unlimited"}}}},
    "Device":{"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "ports":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":99},"min":0,"max":4}},
        "up":{"type":{"key":"boolean","min":0,"max":1}},
        "labels":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;

/// The UUID with this number.
fn uuid(number: u8) -> Uuid {
    let mut bytes = [0; 16];
    bytes[15] = number;
    Uuid(bytes)
}

/// UUIDs of rows that a chain creates.
struct Numbered(u8);

impl UuidSource for Numbered {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        uuid(self.0)
    }
}

/// A column and the text of its value.
type Cell = (&'static str, &'static str);

/// Rows: a site `berlin` with the devices `web-1` and `web-2`.
struct Memory {
    rows: Vec<(&'static str, Uuid, Vec<Cell>)>,
    /// The clauses and columns of each select.
    asked: Vec<String>,
}

impl Memory {
    fn new() -> Memory {
        Memory {
            rows: vec![
                (
                    "Device",
                    uuid(1),
                    vec![("name", "web-1"), ("ports", "1,2"), ("labels", "rack=b11")],
                ),
                ("Device", uuid(2), vec![("name", "web-2"), ("up", "true")]),
                (
                    "Site",
                    uuid(3),
                    vec![
                        ("name", "berlin"),
                        (
                            "devices",
                            "00000000-0000-0000-0000-000000000001 00000000-0000-0000-0000-000000000002",
                        ),
                    ],
                ),
            ],
            asked: Vec::new(),
        }
    }

    fn value(table: &TableSchema, row: &[(&str, &str)], uuid: Uuid, column: ColumnId) -> Datum {
        if column == ColumnId::UUID {
            return Datum::one(corvid_data::Atom::Uuid(uuid));
        }
        let schema = table.column(column);
        let value = row.iter().find(|(name, _)| *name == &*schema.name);
        value.map_or_else(
            || Datum::default_for(&schema.column_type),
            |(_, value)| text::read_datum(value, &schema.column_type, &mut |_| None).unwrap(),
        )
    }
}

impl Source for Memory {
    fn select(
        &mut self,
        table: &TableSchema,
        clauses: &[Clause],
        columns: &[ColumnId],
    ) -> Result<Vec<Found>, Failure> {
        let names = clauses
            .iter()
            .map(|clause| table.column(clause.column).name.as_str());
        self.asked.push(format!(
            "{} by {}",
            table.name,
            names.collect::<Vec<_>>().join(",")
        ));
        let rows = self.rows.iter().filter(|(name, ..)| *name == &*table.name);
        let selected = rows.filter(|(_, uuid, row)| {
            clauses.iter().all(|clause| {
                let value = Memory::value(table, row, *uuid, clause.column);
                clause.function.holds(&value, &clause.argument)
            })
        });
        Ok(selected
            .map(|(_, uuid, row)| Found {
                uuid: *uuid,
                values: columns
                    .iter()
                    .map(|column| Memory::value(table, row, *uuid, *column))
                    .collect(),
            })
            .collect())
    }
}

/// The outcome of a chain.
#[derive(Debug)]
struct Outcome {
    /// The texts that its commands print; tables as one line a row.
    printed: String,
    /// The operations, one on a line, without the comment.
    operations: String,
    /// The selects, as `TABLE by COLUMN,...`.
    asked: Vec<String>,
    /// A condition does not hold yet.
    waits: bool,
}

/// Runs a chain, whose words are separated by blanks; `_` in a word stands for a blank.
fn run(line: &str) -> Result<Outcome, String> {
    let words: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
    let json = Value::parse(SCHEMA.as_bytes()).unwrap();
    let schema = Schema::from_json(&json).unwrap();
    let mut memory = Memory::new();
    let mut uuids = Numbered(100);
    let (printed, transaction, waits) =
        attempt(&schema, &mut memory, &mut uuids, &words).map_err(|failure| failure.to_string())?;
    let changes = transaction.operations.len().saturating_sub(1);
    let operations = transaction
        .operations
        .iter()
        .take(changes)
        .map(ToString::to_string);
    Ok(Outcome {
        printed,
        operations: operations.collect::<Vec<_>>().join("\n"),
        asked: memory.asked,
        waits,
    })
}

fn attempt(
    schema: &Schema,
    memory: &mut Memory,
    uuids: &mut Numbered,
    words: &[String],
) -> Result<(String, Transaction, bool), Failure> {
    let chain = chain::parse(words)?;
    let mut context = Context {
        contents: Contents::new(schema, memory),
        names: RowNames::new(uuids),
        number: 0,
        must_wait: false,
        warnings: Vec::new(),
    };
    let mut printed = String::new();
    for invocation in &chain {
        commands::check(schema, invocation)?;
        commands::want(&mut context.contents, invocation)?;
    }
    for (number, invocation) in chain.iter().enumerate() {
        context.number = number;
        let Action::InChain(run) = invocation.command.action else {
            continue;
        };
        match run(&mut context, invocation)? {
            Output::Text(text) => printed.push_str(&text),
            Output::Created(_) => printed.push_str("created\n"),
            Output::Table(table) | Output::Listing(table) => {
                for row in table.rows {
                    let cells = row
                        .iter()
                        .map(|cell| cell.to_text(corvid_tools::table::CellStyle::String));
                    printed.push_str(&cells.collect::<Vec<_>>().join("|"));
                    printed.push('\n');
                }
            }
        }
    }
    context.names.finish()?;
    let transaction = Transaction::of(&context.contents, "test");
    Ok((printed, transaction, context.must_wait))
}

mod tests {
    use super::*;

    fn printed(line: &str) -> String {
        run(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"))
            .printed
    }

    #[test]
    fn a_chain_sees_its_own_changes() {
        assert_eq!(
            printed("set Device web-1 labels:rack=c12 ports=7 -- get Device web-1 labels ports"),
            "{rack=c12}\n[7]\n"
        );
        assert_eq!(
            printed(
                "add Device web-1 ports 9 -- remove Device web-1 ports 1 -- get Device web-1 ports"
            ),
            "[2, 9]\n"
        );
        assert_eq!(
            printed("--if-exists destroy Device web-1 -- count Device"),
            "1\n"
        );
        assert_eq!(
            printed("create Device name=new -- get Device new name up"),
            "created\nnew\n[]\n"
        );
    }

    const WEB_1: &str =
        r#""where":[["_uuid","==",["uuid","00000000-0000-0000-0000-000000000001"]]]"#;

    #[test]
    fn a_value_that_is_changed_in_part_must_still_be_the_same() {
        let outcome = run("add Device web-1 ports 7").unwrap();
        let wait = format!(
            r#"{{"columns":["ports"],"op":"wait","rows":[{{"ports":["set",[1,2]]}}],"table":"Device","timeout":0,"until":"==",{WEB_1}}}"#
        );
        let update = format!(
            r#"{{"op":"update","row":{{"ports":["set",[1,2,7]]}},"table":"Device",{WEB_1}}}"#
        );
        assert_eq!(outcome.operations, format!("{wait}\n{update}"));
        // A whole value replaces the old one.
        let outcome = run("set Device web-1 ports=5").unwrap();
        assert_eq!(
            outcome.operations,
            format!(r#"{{"op":"update","row":{{"ports":5}},"table":"Device",{WEB_1}}}"#)
        );
    }

    #[test]
    fn elements_of_unlimited_columns_are_changed_without_reading_them() {
        let wait = format!(
            r#"{{"columns":["_uuid"],"op":"wait","rows":[{{"_uuid":["uuid","00000000-0000-0000-0000-000000000001"]}}],"table":"Device","timeout":0,"until":"==",{WEB_1}}}"#
        );
        for (command, mutations) in [
            (
                "add Device web-1 labels a=b",
                r#"[["labels","insert",["map",[["a","b"]]]]]"#,
            ),
            (
                "remove Device web-1 labels a=b rack",
                r#"[["labels","delete",["map",[["a","b"]]]],["labels","delete","rack"]]"#,
            ),
            (
                "set Device web-1 labels:a=b",
                r#"[["labels","delete","a"],["labels","insert",["map",[["a","b"]]]]]"#,
            ),
        ] {
            let outcome = run(command).unwrap();
            let mutate =
                format!(r#"{{"mutations":{mutations},"op":"mutate","table":"Device",{WEB_1}}}"#);
            assert_eq!(outcome.operations, format!("{wait}\n{mutate}"));
            assert_eq!(outcome.asked, ["Device by name"]);
        }
        // A change that is known to have no effect, and one that a new value replaces.
        let outcome = run("get Device web-1 labels -- add Device web-1 labels rack=x").unwrap();
        assert!(
            !outcome.operations.contains("mutate"),
            "{}",
            outcome.operations
        );
        let outcome = run("add Device web-1 labels a=b -- set Device web-1 labels=c=d").unwrap();
        assert!(
            outcome
                .operations
                .starts_with(r#"{"op":"update","row":{"labels":["map",[["c","d"]]]}"#)
        );
        assert_eq!(outcome.operations.lines().count(), 1);
    }

    #[test]
    fn names_refer_to_rows_before_and_after_they_are_created() {
        for line in [
            "--id=@x create Device name=d -- add Site berlin devices @x",
            "add Site berlin devices @x -- --id=@x create Device name=d",
        ] {
            let outcome = run(line).unwrap();
            assert!(
                outcome.operations.contains(r#""uuid-name":"row0""#),
                "{}",
                outcome.operations
            );
            assert!(
                outcome.operations.contains(r#"["named-uuid","row0"]"#),
                "{}",
                outcome.operations
            );
        }
        let error = run("add Site berlin devices @x").unwrap_err();
        assert!(error.contains("referenced but never created"), "{error}");
    }

    #[test]
    fn a_wait_sees_the_row_that_its_chain_destroys() {
        let waits = |line: &str| run(line).unwrap().waits;
        let row = uuid(1).to_text();
        let row = String::from_utf8_lossy(&row);
        assert!(!waits(&format!(
            "destroy Device web-1 -- wait-until Device {row}"
        )));
        assert!(!waits(&format!(
            "destroy Device web-1 -- wait-until Device {row} name=web-1"
        )));
        assert!(waits(&format!(
            "destroy Device web-1 -- wait-until Device {row} name=web-2"
        )));
        // Another row may get the name.
        assert!(waits("destroy Device web-1 -- wait-until Device web-1"));
    }

    #[test]
    fn a_column_with_exactly_one_value_has_none_added() {
        let error = run("add Device web-1 name web-1").unwrap_err();
        assert!(error.contains("exactly one value"), "{error}");
        assert_eq!(
            printed("set Device web-1 name=w -- add Device w name w -- get Device w name"),
            "w\n"
        );
        // Removing what is not there changes nothing.
        assert_eq!(run("remove Device web-1 name x").unwrap().operations, "");
        assert!(
            run("remove Device web-1 name web-1")
                .unwrap_err()
                .contains("minimum")
        );
    }

    #[test]
    fn arguments_of_get_are_read_one_after_the_other() {
        let error = run("get Device web-1 labels:no name:\"open").unwrap_err();
        assert!(error.starts_with("no key \"no\""), "{error}");
        let error = run("get Device nosuch name:\"open").unwrap_err();
        assert_eq!(error, "no row \"nosuch\" in table Device");
    }

    #[test]
    fn changes_of_a_map_follow_one_another() {
        let after = |changes: &str| printed(&format!("{changes} -- get Device web-1 labels"));
        assert_eq!(after("set Device web-1 labels:a=b labels={}"), "{}\n");
        assert_eq!(after("set Device web-1 labels={} labels:a=b"), "{a=b}\n");
        assert_eq!(
            after("remove Device web-1 labels rack -- set Device web-1 labels:rack=c"),
            "{rack=c}\n"
        );
    }

    #[test]
    fn add_keeps_the_value_of_a_key() {
        assert_eq!(
            printed("add Device web-1 labels rack=c12 row=5 -- get Device web-1 labels"),
            "{rack=b11, row=\"5\"}\n"
        );
        let error = run("destroy Device web-1 -- get Device 00000000-0000-0000-0000-000000000001");
        assert!(error.unwrap_err().starts_with("no row"));
    }

    #[test]
    fn only_rows_with_the_name_are_fetched() {
        assert_eq!(
            run("get Device web-1 ports").unwrap().asked,
            ["Device by name"]
        );
        assert_eq!(
            run("find Device name=web-1").unwrap().asked,
            ["Device by name"]
        );
        assert_eq!(
            run("--where=name_==_web-1_and_ports_>_1 find Device")
                .unwrap()
                .asked,
            ["Device by name"]
        );
    }

    #[test]
    fn numbers_are_ordered_by_the_server() {
        for (condition, asked) in [
            ("rank>=2", "Site by rank"),
            ("rank{>=}2", "Site by rank"),
            ("rank{<}2", "Site by "),
            ("name<berlin", "Site by "),
        ] {
            let words = format!("find Site {condition}");
            assert_eq!(run(&words).unwrap().asked, [asked], "{condition}");
        }
        // An empty set is less than every number for us, and for the server no set is.
        assert_eq!(run("find Device ports<5").unwrap().asked, ["Device by "]);
    }

    #[test]
    fn words_of_list_are_columns_with_an_expression() {
        assert_eq!(
            printed("list Device up name --where name_~_web"),
            "[]|web-1\ntrue|web-2\n"
        );
        let error = run("list Device colour --where up").unwrap_err();
        assert!(error.contains("\"colour\""), "{error}");
        assert!(run("--columns=up list Device name --where up").is_err());
    }

    #[test]
    fn expressions_select_rows() {
        let names = |expression: &str| {
            let line = format!(
                "--columns=name --where={} list Device",
                expression.replace(' ', "_")
            );
            run(&line).map(|outcome| outcome.printed.trim_end().replace('\n', " "))
        };
        for (expression, rows) in [
            ("name == web-1", "web-1"),
            ("name != web-1", "web-2"),
            ("name ~ ^web", "web-1 web-2"),
            ("name !~ 1$", "web-2"),
            ("name in (web-2, x)", "web-2"),
            ("name not in (web-2)", "web-1"),
            ("ports == 2", "web-1"),
            ("ports > 1", "web-1"),
            ("ports == []", "web-2"),
            ("ports", "web-1"),
            ("up", "web-2"),
            ("not up", "web-1"),
            ("up == true or ports == 1", "web-1 web-2"),
            ("up == true and ports == 1", ""),
            ("not (up or ports == 7) and name ~ web", "web-1"),
            ("labels:rack == b11", "web-1"),
            ("labels:rack != b11", "web-2"),
            ("labels:rack", "web-1"),
            ("labels ~ \"rack=b\"", "web-1"),
            ("name == web-1 or name == web-2 and up", "web-1 web-2"),
        ] {
            assert_eq!(names(expression).as_deref(), Ok(rows), "{expression}");
        }
        for (expression, error) in [
            ("", "--where: a column is expected, not the end"),
            ("name ==", "--where: a value is expected, not the end"),
            ("(name == x", "--where: \")\" is expected, not the end"),
            (
                "name == x y",
                "--where: \"and\" or \"or\" is expected, not \"y\"",
            ),
            (
                "up == maybe",
                "\"maybe\" is not a valid boolean (use \"true\" or \"false\")",
            ),
            (
                "name:k == x",
                "--where: cannot specify key for non-map column name",
            ),
        ] {
            assert_eq!(names(expression).unwrap_err(), error, "{expression}");
        }
        let error = run("--where=kind_==_hal list Site").unwrap_err();
        assert_eq!(error, "--where: \"hal\" is not one of hall, street");
        let deep = "not ".repeat(1000) + "up";
        assert!(names(&deep).unwrap_err().contains("too deeply"));
    }

    #[test]
    fn a_tree_has_what_the_rows_refer_to() {
        let tree = "Site berlin\n    Device web-1\n        labels: {rack=b11}\n        ports: [1, 2]\n    Device web-2\n        up: true\n";
        assert_eq!(printed("show"), tree);
        assert_eq!(printed("show Site berlin"), tree);
        assert_eq!(printed("show Device web-2"), "Device web-2\n    up: true\n");
    }

    #[test]
    fn rows_are_named_by_the_rows_that_an_expression_refers_to() {
        assert_eq!(
            printed("--columns=name --where=devices_==_web-1 list Site"),
            "berlin\n"
        );
        let error = run("--where=devices_==_nosuch list Site").unwrap_err();
        assert_eq!(error, "no row \"nosuch\" in table Device");
    }
}
