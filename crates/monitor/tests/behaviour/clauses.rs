//! Clauses of conditions that a test evaluates itself.

use corvid_data::TableSchema;
use corvid_json::Value;

use crate::replica::{Cell, Row};

/// A clause as text, and in a form that the test evaluates itself.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    column: &'static str,
    function: &'static str,
    value: &'static str,
}

pub(crate) const CLAUSES: &[(&str, &[Clause])] = &[
    (
        "Keeper",
        &[
            Clause {
                column: "name",
                function: "==",
                value: r#""a""#,
            },
            Clause {
                column: "name",
                function: "includes",
                value: r#""b""#,
            },
            Clause {
                column: "name",
                function: "!=",
                value: r#""c""#,
            },
            Clause {
                column: "age",
                function: "==",
                value: "1",
            },
            Clause {
                column: "age",
                function: "==",
                value: r#"["set",[]]"#,
            },
            Clause {
                column: "age",
                function: "<",
                value: "2",
            },
            Clause {
                column: "tags",
                function: "includes",
                value: r#""x""#,
            },
            Clause {
                column: "tags",
                function: "includes",
                value: r#"["set",["x","y"]]"#,
            },
            Clause {
                column: "tags",
                function: "==",
                value: r#"["set",["y","z"]]"#,
            },
            Clause {
                column: "tags",
                function: "excludes",
                value: r#""x""#,
            },
            Clause {
                column: "cfg",
                function: "includes",
                value: r#"["map",[["k","1"]]]"#,
            },
            Clause {
                column: "cfg",
                function: "==",
                value: r#"["map",[]]"#,
            },
        ],
    ),
    (
        "Pet",
        &[
            Clause {
                column: "kind",
                function: "==",
                value: r#""a""#,
            },
            Clause {
                column: "kind",
                function: "==",
                value: r#""b""#,
            },
            Clause {
                column: "size",
                function: ">=",
                value: "1",
            },
            Clause {
                column: "size",
                function: "==",
                value: "2",
            },
        ],
    ),
];

impl Clause {
    /// Whether a row of the table matches.
    pub(crate) fn holds(&self, schema: &TableSchema, row: &Row) -> bool {
        let column = schema.column_id(self.column).expect("known");
        let value = Value::parse(self.value.as_bytes()).expect("value");
        let value = Cell::parse(&value, &schema.column(column).column_type);
        holds(&row[self.column], self.function, &value)
    }
}

fn holds(cell: &Cell, function: &str, value: &Cell) -> bool {
    let number = |cell: &Cell| match cell {
        Cell::Whole(text) => String::from_utf8_lossy(text).parse::<i64>().ok(),
        _ => None,
    };
    match function {
        "==" => cell == value,
        "!=" => cell != value,
        "<" => number(cell).is_some_and(|own| Some(own) < number(value)),
        ">=" => number(cell).is_some_and(|own| Some(own) >= number(value)),
        "includes" => includes(cell, value),
        "excludes" => match (cell, value) {
            (Cell::Set(own), Cell::Set(asked)) => own.is_disjoint(asked),
            _ => cell != value,
        },
        other => panic!("no function {other}"),
    }
}

fn includes(cell: &Cell, value: &Cell) -> bool {
    match (cell, value) {
        (Cell::Set(own), Cell::Set(asked)) => own.is_superset(asked),
        (Cell::Map(own), Cell::Map(asked)) => {
            asked.iter().all(|(key, value)| own.get(key) == Some(value))
        }
        _ => cell == value,
    }
}

/// The text of a `where`.
pub(crate) fn text(clauses: &[Option<Clause>]) -> String {
    let clause = |clause: &Option<Clause>| match clause {
        Some(Clause {
            column,
            function,
            value,
        }) => format!(r#"["{column}","{function}",{value}]"#),
        None => "false".to_owned(),
    };
    let clauses: Vec<String> = clauses.iter().map(clause).collect();
    format!("[{}]", clauses.join(","))
}
