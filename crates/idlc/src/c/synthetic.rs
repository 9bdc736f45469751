//! Synthetic columns: struct members that C code of the annotations computes (docs/spec/idl.md
//! 7.1).
//!
//! They are the last columns of their table, because the library reads column descriptions only up
//! to the first synthetic one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use corvid_data::Schema;

use super::column::{Names, member, quoted};
use super::{Table, column_type};
use crate::annotation::Synthetic;
use crate::error::Error;

/// Returns the synthetic columns of a table, each after those that it depends on.
pub(super) fn of_table<'a>(all: &'a [Synthetic], table: &str) -> Vec<&'a Synthetic> {
    let mut left: Vec<&Synthetic> = all.iter().filter(|column| column.table == table).collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let names: BTreeSet<&str> = left.iter().map(|column| column.name.as_str()).collect();
        let waits = |column: &&Synthetic| {
            let mut dependencies = column.dependencies.iter();
            dependencies.any(|other| names.contains(other.as_str()))
        };
        let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
        if now.is_empty() {
            // The rest depend on one another. `check` refuses such a schema.
            return ordered;
        }
        ordered.extend(now);
        left = later;
    }
    ordered
}

/// Refuses unknown and circular dependencies.
pub(super) fn check(schema: &Schema, all: &[Synthetic]) -> Result<(), Error> {
    for column in all {
        let subject = format!("column {} of table {}", column.name, column.table);
        let table = schema.table_id(&column.table);
        for dependency in &column.dependencies {
            let is_stored =
                table.is_some_and(|table| schema.table(table).column_id(dependency).is_some());
            let is_computed = all
                .iter()
                .any(|other| other.table == column.table && other.name == *dependency);
            if !is_stored && !is_computed {
                let text = format!("{subject} depends on {dependency}, which does not exist");
                return Err(Error::Schema(text));
            }
        }
        let ordered = of_table(all, &column.table);
        if !ordered.iter().any(|other| other.name == column.name) {
            return Err(Error::Schema(format!("{subject} depends on itself")));
        }
    }
    Ok(())
}

/// Declares the struct members of the synthetic columns.
pub(super) fn members(out: &mut String, names: &Names, table: &Table<'_>) {
    for column in &table.synthetic {
        put!(out, "\n    /* {}: computed by the program. */", column.name);
        match &column.members {
            Some(members) => {
                put!(out, "    {}", members.trim());
            }
            None => *out += &super::members(names, &member(&column.name), &column.column_type),
        }
    }
}

/// Generates the descriptions of the synthetic columns.
pub(super) fn columns(out: &mut String, table: &Table<'_>) {
    for column in &table.synthetic {
        put!(
            out,
            "    {{{}, 0, 0, 0, false, true, {}}},",
            quoted(&column.name),
            column_type::initializer(&format!("{}_{}", table.s, column.name), &column.column_type)
        );
    }
}

/// Generates the functions that compute the synthetic columns of a row, and that free them.
pub(super) fn functions(out: &mut String, table: &Table<'_>) {
    if table.synthetic.is_empty() {
        return;
    }
    let s = &table.s;
    for verb in ["parse", "unparse"] {
        put!(
            out,
            "static void\n{s}_{verb}_(struct corvid_idl_row *row_)\n{{\n    struct {s} *row = (struct {s} *) row_;\n    (void) row;"
        );
        for column in &table.synthetic {
            let code = match verb {
                "parse" => &column.parse,
                _ => &column.unparse,
            };
            if !code.trim().is_empty() {
                put!(out, "    {{\n{}\n    }}", code.trim_matches('\n'));
            }
        }
        put!(out, "}}\n");
    }
}

/// Returns the initializers that point to these two functions in the description of the table.
pub(super) fn pointers(table: &Table<'_>) -> String {
    match table.synthetic.is_empty() {
        true => "NULL, NULL".to_owned(),
        false => format!("{0}_parse_, {0}_unparse_", table.s),
    }
}

#[cfg(test)]
mod tests {
    use crate::c;

    fn zoo(columns: &str) -> String {
        format!(
            r##"{{"name":"Zoo","version":"1.0.0","hDecls":"#include \"h.h\"","cDecls":"#include \"c.h\"","tables":{{"T":{{"columns":{{"a":{{"type":"integer"}},{columns}}}}}}}}}"##
        )
    }

    #[test]
    fn code_of_synthetic_columns_is_part_of_the_source() {
        let code = c(&zoo(
            r#""hash":{"type":"integer","extensions":{"synthetic":true,"parse":"row->hash = row->kept[0];","dependencies":["a","kept"]}},
               "kept":{"type":"string","extensions":{"synthetic":true,"members":"int *kept;","parse":"row->kept = f(row->a);","unparse":"free(row->kept);"}}"#,
        ))
        .unwrap();
        for expected in [
            "\n#include \"h.h\"\n",
            "    int *kept;\n",
            "    int64_t hash;\n",
            "    ZOO_T_COL_A,\n    ZOO_T_COL_KEPT,\n    ZOO_T_COL_HASH,\n    ZOO_T_N_COLUMNS\n",
            "#define zoo_t_col_hash (zoo_t_columns[ZOO_T_COL_HASH])",
        ] {
            assert!(
                code.header.contains(expected),
                "{expected} is not in\n{}",
                code.header
            );
        }
        assert!(!code.header.contains("zoo_t_set_hash"), "{}", code.header);
        let (before, after) = code.source.split_once("row->kept = f(row->a);").unwrap();
        assert!(before.contains("#include \"c.h\"\n"), "{before}");
        assert!(after.contains("row->hash = row->kept[0];"), "{after}");
        assert!(after.contains("free(row->kept);"), "{after}");
        assert!(
            after.contains("sizeof(struct zoo_t), zoo_t_parse_, zoo_t_unparse_, true, false}"),
            "{after}"
        );
    }

    #[test]
    fn circles_and_unknown_dependencies_are_refused() {
        for (dependencies, part) in [("\"x\"", "depends on itself"), ("\"b\"", "depends on b")] {
            let error = c(&zoo(&format!(
                r#""x":{{"type":"integer","extensions":{{"synthetic":true,"dependencies":[{dependencies}]}}}}"#
            )))
            .unwrap_err()
            .to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
