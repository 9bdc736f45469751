//! Pages as command lines of the program `corvid`, for any shell of POSIX.

use corvid::data::{ColumnId, TableSchema, text};
use corvid::{Column, Idl, RowId};

use crate::database::{Database, Open};

/// The command that prints what a page of a table shows.
pub(crate) fn list(
    database: &Database,
    open: &Open,
    table: &TableSchema,
    filter: &str,
    columns: &[String],
) -> String {
    let mut line = begin(database, open);
    if !columns.is_empty() {
        line.push_str(" --columns=");
        line.push_str(&quoted(&columns.join(",")));
    }
    if !filter.is_empty() {
        line.push_str(" --where=");
        line.push_str(&quoted(filter));
    }
    format!("{line} list {}", table.name)
}

/// The command that makes a row like this one.
pub(crate) fn create(database: &Database, open: &Open, idl: &Idl, row: RowId) -> String {
    let table = open.schema.table(row.table);
    let mut line = format!("{} create {}", begin(database, open), table.name);
    for (id, column) in table.iter() {
        let value = idl.read(row, column_of(row, id)).unwrap_or_default();
        if value.is_default(&column.column_type) {
            continue;
        }
        let mut argument = format!("{}=", column.name);
        text::write_datum(&mut argument, &value, &column.column_type);
        line.push_str(" \\\n    ");
        line.push_str(&quoted(&argument));
    }
    line
}

fn column_of(row: RowId, id: ColumnId) -> Column {
    Column {
        table: row.table,
        id,
    }
}

fn begin(database: &Database, open: &Open) -> String {
    let remotes = quoted(&database.source.remotes);
    format!("corvid {remotes} --database={}", open.schema.name)
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-+=:,./@%".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("tcp:127.0.0.1:6640"), "tcp:127.0.0.1:6640");
        assert_eq!(quoted("name=[\"it's\"]"), r#"'name=["it'\''s"]'"#);
        assert_eq!(quoted("$(reboot)"), "'$(reboot)'");
        assert_eq!(quoted(""), "''");
    }
}
