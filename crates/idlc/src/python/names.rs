//! Turns names in a schema into names in Python.

/// The keywords of Python, which no attribute can have as its name.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// The attributes of clients. A table with such a name is available only as an item,
/// `client["name"]`.
const CLIENT_NAMES: [&str; 25] = [
    "changes",
    "close",
    "fetch",
    "fetch_column",
    "fetch_table",
    "has_lock",
    "metrics",
    "native",
    "read_history",
    "reconnect",
    "run",
    "schema",
    "select_at",
    "seqno",
    "session",
    "set_condition",
    "set_leader_only",
    "set_lock",
    "set_probe_interval",
    "set_remotes",
    "transact",
    "transaction",
    "wait_for_change",
    "wait_for_lock",
    "wait_until",
];

/// The attributes of rows. A column with such a name is available only as an item, `row["name"]`.
const ROW_NAMES: [&str; 2] = ["as_dict", "uuid"];

/// The names that the module defines for itself, without a leading underscore. A class with such a
/// name, or its alias with an underscore, would hide one of them.
const MODULE_NAMES: [&str; 20] = [
    "AioClient",
    "Chosen",
    "Client",
    "Columns",
    "ROW_CLASSES",
    "Result",
    "Row",
    "TableName",
    "Transaction",
    "Unpack",
    "aio",
    "b",
    "columns",
    "connect",
    "connect_aio",
    "corvid",
    "t",
    "tables",
    "typing",
    "uuid",
];

/// Returns whether Python accepts a name as an identifier.
fn is_name(name: &str) -> bool {
    !KEYWORDS.contains(&name)
}

/// Returns whether a table is an attribute of clients.
pub(super) fn is_client_attribute(table: &str) -> bool {
    is_name(table) && !CLIENT_NAMES.contains(&table)
}

/// Returns whether a column is an attribute of rows.
pub(super) fn is_row_attribute(column: &str) -> bool {
    is_name(column) && !ROW_NAMES.contains(&column)
}

/// Returns whether a column is an attribute of its table's `Columns` class.
pub(super) fn is_column_attribute(column: &str) -> bool {
    is_name(column)
}

/// Returns whether a column can be a keyword argument of a method.
pub(super) fn is_keyword(column: &str) -> bool {
    is_name(column) && column != "self"
}

/// Returns the name of the class for a table's rows.
pub(super) fn class_name(table: &str) -> String {
    if MODULE_NAMES.contains(&table) || !is_name(table) || table.starts_with("__") {
        format!("{table}_")
    } else {
        table.to_owned()
    }
}

/// Returns a second name of the row class, for scopes in which an attribute hides the first one.
pub(super) fn row_alias(table: &str) -> String {
    format!("_{}", class_name(table))
}
