//! Names of a schema as names of Python.

/// Words that no attribute may be called.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Names of clients, which those of tables must not hide: such tables are items only.
const CLIENT_NAMES: [&str; 23] = [
    "changes",
    "close",
    "fetch",
    "fetch_column",
    "fetch_table",
    "has_lock",
    "metrics",
    "native",
    "reconnect",
    "run",
    "schema",
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

/// Names of rows, which hide columns: such columns are items only.
const ROW_NAMES: [&str; 2] = ["as_dict", "uuid"];

/// Names that the module has for itself, with and without the underscore of an alias.
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

/// Whether Python can spell a name.
fn is_name(name: &str) -> bool {
    !KEYWORDS.contains(&name)
}

/// Whether a table is an attribute of clients.
pub(super) fn is_client_attribute(table: &str) -> bool {
    is_name(table) && !CLIENT_NAMES.contains(&table)
}

/// Whether a column is an attribute of rows.
pub(super) fn is_row_attribute(column: &str) -> bool {
    is_name(column) && !ROW_NAMES.contains(&column)
}

/// Whether a column is an attribute of the columns of a table.
pub(super) fn is_column_attribute(column: &str) -> bool {
    is_name(column)
}

/// Whether a column can be a keyword of a method.
pub(super) fn is_keyword(column: &str) -> bool {
    is_name(column) && column != "self"
}

/// The class for a table's rows.
pub(super) fn class_name(table: &str) -> String {
    if MODULE_NAMES.contains(&table) || !is_name(table) || table.starts_with("__") {
        format!("{table}_")
    } else {
        table.to_owned()
    }
}

/// A second name of that class, for scopes in which the first one is an attribute.
pub(super) fn row_alias(table: &str) -> String {
    format!("_{}", class_name(table))
}
