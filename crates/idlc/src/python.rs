//! Typed Python for the tables of a schema: classes for rows, whose columns type checkers and editors know.

use std::fmt::Write as _;

use corvid_data::{AtomRef, AtomType, BaseType, ColumnType, Schema, TableSchema};
use corvid_json::write;

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

/// The module for a schema.
pub(crate) fn module(schema: &Schema) -> String {
    let name = schema.name.as_str();
    let version = &schema.version;
    let mut out = format!(
        "\"\"\"The rows of database {name}, version {version}. Made by ovsdb-idlc from its schema; do not edit it.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         import builtins as _b\nimport typing as _t\nimport uuid as _uuid\n\nimport corvid as _corvid\nimport corvid.aio as _aio\n\n\
         if _t.TYPE_CHECKING:\n    from corvid._typing import RowBase as _Row\nelse:\n    _Row = _corvid.Row\n"
    );
    for table in schema.tables() {
        write_class(&mut out, table);
    }
    out.push_str("\n\n#: The classes, by the names of their tables.\nROW_CLASSES: _t.Dict[_b.str, _t.Type[_Row]] = {\n");
    for table in schema.tables() {
        let _ = writeln!(out, "    \"{}\": {},", table.name, class_name(&table.name));
    }
    out.push_str("}\n");
    out.push_str(
        "\n# Within the classes of clients the names of tables are those of properties.\n",
    );
    for table in schema.tables() {
        let row = class_name(&table.name);
        let _ = writeln!(out, "_{row} = {row}");
    }
    for (class, base) in [("Client", "_corvid.Client"), ("AioClient", "_aio.Client")] {
        let _ = write!(
            out,
            "\n\nclass {class}({base}):\n    \"\"\"A client of database {name}, with the types of its tables.\"\"\"\n"
        );
        let is_shown = |name: &str| is_name(name) && !CLIENT_NAMES.contains(&name);
        for table in schema.tables().iter().filter(|table| is_shown(&table.name)) {
            let row = class_name(&table.name);
            let _ = write!(
                out,
                "\n    @_b.property\n    def {}(self) -> _corvid.Table[_{row}]:\n        return self[\"{}\"]\n",
                table.name, table.name
            );
        }
    }
    let _ = write!(
        out,
        "\n\ndef connect(remotes: _b.str, tables: _corvid.Tables = None, **settings: _t.Any) -> Client:\n    \
         \"\"\"Connects to the database and waits for its contents: see :func:`corvid.connect`.\"\"\"\n    \
         return _corvid.connect(remotes, \"{name}\", tables, client_class=Client, row_classes=ROW_CLASSES, **settings)\n\n\n\
         async def connect_aio(remotes: _b.str, tables: _corvid.Tables = None, **settings: _t.Any) -> AioClient:\n    \
         \"\"\"The same for asyncio: see :func:`corvid.aio.connect`.\"\"\"\n    \
         return await _aio.connect(remotes, \"{name}\", tables, client_class=AioClient, row_classes=ROW_CLASSES, **settings)\n"
    );
    out
}

fn write_class(out: &mut String, table: &TableSchema) {
    let about = match (table.is_root, table.max_rows) {
        (_, 1) => " There is at most one.",
        (false, _) => " It lasts as long as another row refers to it.",
        (true, _) => "",
    };
    let _ = write!(
        out,
        "\n\nclass {}(_Row):\n    \"\"\"A row of table {}.{about}\"\"\"\n\n    __slots__ = ()\n\n",
        class_name(&table.name),
        table.name
    );
    for column in table.columns() {
        let kind = column_type(&column.column_type);
        if is_name(&column.name) && !ROW_NAMES.contains(&column.name.as_str()) {
            let _ = writeln!(out, "    {}: {kind}", column.name);
        } else {
            let _ = writeln!(out, "    # row[\"{}\"]: {kind}", column.name);
        }
    }
}

fn is_name(name: &str) -> bool {
    !KEYWORDS.contains(&name)
}

/// The class for a table's rows.
fn class_name(table: &str) -> String {
    let is_taken = [
        "Client",
        "AioClient",
        "ROW_CLASSES",
        "connect",
        "connect_aio",
    ]
    .contains(&table);
    if is_taken || !is_name(table) || table.starts_with("__") {
        format!("{table}_")
    } else {
        table.to_owned()
    }
}

fn column_type(column: &ColumnType) -> String {
    let key = element(&column.key);
    let is_row = column.key.reference.is_some();
    match &column.value {
        Some(value) => format!("_t.Dict[{key}, {}]", element(value)),
        None if column.max > 1 => format!("_t.FrozenSet[{key}]"),
        None if column.min == 0 || is_row => format!("_t.Optional[{key}]"),
        None => key,
    }
}

fn element(base: &BaseType) -> String {
    if let Some(reference) = &base.reference {
        return class_name(&reference.table_name);
    }
    let listed = base
        .enumeration
        .as_ref()
        .filter(|_| base.atom == AtomType::String);
    if let Some(listed) = listed {
        let values: Vec<String> = listed.keys().filter_map(literal).collect();
        return format!("_t.Literal[{}]", values.join(", "));
    }
    match base.atom {
        AtomType::Integer => "_b.int",
        AtomType::Real => "_b.float",
        AtomType::Boolean => "_b.bool",
        AtomType::String => "_b.str",
        AtomType::Uuid => "_uuid.UUID",
    }
    .to_owned()
}

/// A text as Python spells it; strings of JSON are strings of Python.
fn literal(atom: AtomRef<'_>) -> Option<String> {
    let AtomRef::String(text) = atom else {
        return None;
    };
    let mut json = Vec::new();
    write::string(&mut json, text.as_str().as_bytes());
    String::from_utf8(json).ok()
}
