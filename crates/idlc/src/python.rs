//! Generates Python for the tables of a schema: row classes whose columns type checkers and editors
//! know, and client classes that know the tables.

mod names;
mod signatures;
mod types;

use std::fmt::Write as _;

use corvid_data::{Schema, TableSchema};

use self::names::{class_name, is_client_attribute, is_row_attribute, row_alias};

/// Generates the module for a schema.
pub(crate) fn module(schema: &Schema) -> String {
    let name = schema.name.as_str();
    let version = &schema.version;
    let mut out = format!(
        "\"\"\"The rows of database {name}, version {version}. Made by ovsdb-idlc from its schema; do not edit it.\"\"\"\n\n\
         # The methods here take the names of this schema, and those of their base classes any name. The base classes implement them.\n\
         # mypy: disable-error-code=\"override, no-overload-impl\"\n\
         # pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false, reportNoOverloadImplementation=false\n\n\
         from __future__ import annotations\n\n\
         import builtins as _b\nimport typing as _t\nimport uuid as _uuid\n\nimport corvid as _corvid\nimport corvid.aio as _aio\n\n\
         if _t.TYPE_CHECKING:\n    from typing_extensions import Unpack as _Unpack\n\n    \
         from corvid._typing import RowBase as _Row\nelse:\n    _Row = _corvid.Row\n"
    );
    for table in schema.tables() {
        write_class(&mut out, table);
    }
    out.push_str("\n\n#: The classes, by the names of their tables.\nROW_CLASSES: _t.Dict[_b.str, _t.Type[_Row]] = {\n");
    for table in schema.tables() {
        let _ = writeln!(out, "    \"{}\": {},", table.name, class_name(&table.name));
    }
    out.push_str("}\n\n# Names for scopes in which tables and columns are attributes.\n");
    for table in schema.tables() {
        let _ = writeln!(
            out,
            "{} = {}",
            row_alias(&table.name),
            class_name(&table.name)
        );
    }
    out.push('\n');
    out.push_str(&signatures::tables(schema));
    for front in signatures::Front::ALL {
        let _ = write!(
            out,
            "\n\nclass {}({}):\n    \"\"\"A client of database {name}, with the types of its tables.\"\"\"\n",
            front.class(),
            front.base(),
        );
        out.push_str(&signatures::client(schema, front));
        for table in schema.tables() {
            if is_client_attribute(&table.name) {
                let _ = write!(
                    out,
                    "\n    @_b.property\n    def {0}(self) -> _tables.{1}:\n        return self[\"{0}\"]\n",
                    table.name,
                    class_name(&table.name)
                );
            }
        }
    }
    out.push_str(&connect(name));
    out
}

/// Generates the functions that connect to the database.
fn connect(name: &str) -> String {
    let arguments = "remotes: _b.str, tables: _Chosen = None, *, schema: _t.Optional[_corvid.Schema] = None, \
         timeout: _t.Optional[_b.float] = 60, **settings: _Unpack[_corvid.Settings]";
    let passed = "schema=schema, timeout=timeout, row_classes=ROW_CLASSES, **settings";
    format!(
        "\n\ndef connect({arguments}) -> Client:\n    \
         \"\"\"Connects to the database and waits for its contents: see :func:`corvid.connect`.\"\"\"\n    \
         return _corvid.connect(remotes, \"{name}\", tables, client_class=Client, {passed})\n\n\n\
         async def connect_aio({arguments}) -> AioClient:\n    \
         \"\"\"The same for asyncio: see :func:`corvid.aio.connect`.\"\"\"\n    \
         return await _aio.connect(remotes, \"{name}\", tables, client_class=AioClient, {passed})\n"
    )
}

fn write_class(out: &mut String, table: &TableSchema) {
    let about = match (table.is_root, table.max_rows) {
        (_, 1) => " There is at most one.",
        (false, _) => " It exists only while another row refers to it.",
        (true, _) => "",
    };
    let _ = write!(
        out,
        "\n\nclass {}(_Row):\n    \"\"\"A row of table {}.{about}\"\"\"\n\n    __slots__ = ()\n\n",
        class_name(&table.name),
        table.name
    );
    for column in table.columns() {
        let kind = types::read(&column.column_type);
        if is_row_attribute(&column.name) {
            let _ = writeln!(out, "    {}: {kind}", column.name);
        } else {
            let _ = writeln!(out, "    # row[\"{}\"]: {kind}", column.name);
        }
    }
}
