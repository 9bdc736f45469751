//! Signatures that only type checkers see: the methods of tables, transactions and clients,
//! narrowed to the names in a schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use corvid_data::{AtomType, ColumnSchema, Schema, TableSchema};

use super::names::{class_name, is_column_attribute, is_keyword, row_alias};
use super::types;

/// One of the two programming interfaces of the Python package.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    /// The blocking interface, `corvid`.
    Blocking,
    /// The interface for asyncio, `corvid.aio`.
    Aio,
}

impl Front {
    pub(super) const ALL: [Front; 2] = [Front::Blocking, Front::Aio];

    /// Returns the name of the generated client class.
    pub(super) fn class(self) -> &'static str {
        match self {
            Front::Blocking => "Client",
            Front::Aio => "AioClient",
        }
    }

    /// Returns the client class of the package from which the generated class is derived.
    pub(super) fn base(self) -> &'static str {
        match self {
            Front::Blocking => "_corvid.Client",
            Front::Aio => "_aio.Client",
        }
    }

    /// Returns the word before the `def` of a method that waits.
    fn prefix(self) -> &'static str {
        match self {
            Front::Blocking => "",
            Front::Aio => "async ",
        }
    }

    /// Returns the types of a transaction block and of the iterator over changes.
    fn types(self) -> (&'static str, &'static str) {
        match self {
            Front::Blocking => ("_t.ContextManager", "_t.Iterator"),
            Front::Aio => ("_t.AsyncContextManager", "_t.AsyncIterator"),
        }
    }
}

/// Makes type checkers reject names that a class does not have. Its base class accepts every name.
const NO_OTHER_NAMES: &str = "__getattr__: None  # type: ignore[assignment, misc]\n";

const LIMIT: &str = "timeout: _t.Optional[_b.float] = None";

/// Writes the variants of a method. A single variant must not be marked as an overload.
fn overloads(out: &mut String, variants: &[String], indent: &str) {
    for variant in variants {
        if variants.len() > 1 {
            let _ = writeln!(out, "{indent}@_t.overload");
        }
        let _ = writeln!(out, "{indent}{variant}: ...");
    }
}

fn literal(name: &str) -> String {
    types::names([name])
}

fn column_names(table: &TableSchema) -> String {
    types::names(table.columns().iter().map(|column| &*column.name))
}

/// Generates the classes for columns, tables and transactions, and the types of their names.
pub(super) fn tables(schema: &Schema) -> String {
    let mut out = "_Result = _t.TypeVar(\"_Result\")\n\nif _t.TYPE_CHECKING:\n".to_owned();
    let names = types::names(schema.tables().iter().map(|table| &*table.name));
    let _ = writeln!(out, "    _TableName = {names}");
    out.push_str(&chosen(schema));
    out.push_str("\n    class _columns:\n");
    for table in schema.tables() {
        out.push_str(&columns(table));
    }
    out.push_str("\n    class _tables:\n");
    for table in schema.tables() {
        out.push_str(&self::table(table));
    }
    out.push_str(&transaction(schema));
    out.push_str("else:\n    Transaction = _corvid.Transaction\n\n_Transaction = Transaction\n");
    out
}

/// Generates the type of the argument that selects the replicated tables and columns.
fn chosen(schema: &Schema) -> String {
    let mut members = String::new();
    for table in schema.tables() {
        let columns = column_names(table);
        let _ = writeln!(
            members,
            "            \"{}\": _t.Union[None, {}, _t.Mapping[{columns}, _t.Literal[\"read\", \"write\", \"on_demand\"]]],",
            table.name,
            several(&columns)
        );
    }
    format!(
        "    _Columns = _t.TypedDict(\n        \"_Columns\",\n        {{\n{members}        }},\n        total=False,\n    )\n    \
         _Chosen = _t.Union[None, {}, _Columns]\n",
        several("_TableName")
    )
}

/// Returns the type of a collection of names. It is not `Iterable`, which would also accept a dict
/// and leave its values unchecked.
fn several(name: &str) -> String {
    format!("_t.List[{name}], _t.Tuple[{name}, ...], _t.AbstractSet[{name}]")
}

fn columns(table: &TableSchema) -> String {
    let mut out = format!(
        "\n        class {}(_corvid.tables.Columns):\n            {NO_OTHER_NAMES}",
        class_name(&table.name)
    );
    for column in table.columns() {
        if is_column_attribute(&column.name) {
            let kind = types::write(&column.column_type);
            let _ = writeln!(
                out,
                "            {}: _corvid.conditions.ColumnRef[{kind}]",
                column.name
            );
        }
    }
    out
}

/// Generates the keyword parameters for a table's columns, which are all optional.
fn keywords(table: &TableSchema) -> String {
    let columns = table.columns().iter();
    let shown = columns.filter(|column| is_keyword(&column.name));
    shown.fold(String::new(), |mut text, column| {
        let kind = types::write(&column.column_type);
        let _ = write!(text, ", {}: {kind} = ...", column.name);
        text
    })
}

/// Puts a `*` before keyword parameters. Python does not allow a `*` without parameters after it.
fn starred(keywords: &str) -> String {
    if keywords.is_empty() {
        String::new()
    } else {
        format!(", *{keywords}")
    }
}

fn table(table: &TableSchema) -> String {
    let class = class_name(&table.name);
    let row = row_alias(&table.name);
    let keywords = starred(&keywords(table));
    let both = table.columns().iter().map(|column| &*column.name);
    let descending: Vec<String> = both.clone().map(|name| format!("-{name}")).collect();
    let sorted = types::names(both.chain(descending.iter().map(String::as_str)));
    format!(
        "\n        class {class}(_corvid.Table[{row}]):\n            c: _columns.{class}\n\
         \x20           def find(self{keywords}) -> _t.Optional[{row}]: ...\n\
         \x20           def find_all(self{keywords}) -> _t.List[{row}]: ...\n\
         \x20           def index(self, *columns: {sorted}) -> _corvid.Index[{row}]: ...\n"
    )
}

/// Groups the columns of a table by the arguments that a method takes for them.
fn grouped(
    table: &TableSchema,
    arguments: impl Fn(&ColumnSchema) -> Option<String>,
) -> BTreeMap<String, Vec<&str>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for column in table.columns() {
        if let Some(arguments) = arguments(column) {
            groups.entry(arguments).or_default().push(&column.name);
        }
    }
    groups
}

/// Lists the variants of a method that takes a row and one of its columns.
fn for_columns(
    schema: &Schema,
    method: &str,
    arguments: impl Fn(&ColumnSchema) -> Option<String>,
) -> Vec<String> {
    let mut variants = Vec::new();
    for table in schema.tables() {
        let row = row_alias(&table.name);
        for (arguments, columns) in grouped(table, &arguments) {
            let columns = types::names(columns);
            variants.push(format!(
                "def {method}(self, row: {row}, column: {columns}{arguments}) -> None"
            ));
        }
    }
    variants
}

fn transaction(schema: &Schema) -> String {
    let mut out = "\n    class Transaction(_corvid.Transaction):\n".to_owned();
    let indent = "        ";
    let insert = schema.tables().iter().map(|table| {
        let (name, row) = (literal(&table.name), row_alias(&table.name));
        let keywords = starred(&keywords(table));
        format!("def insert(self, _table: {name}, /{keywords}) -> {row}")
    });
    overloads(&mut out, &insert.collect::<Vec<_>>(), indent);
    let add = for_columns(schema, "add", |column| {
        let kind = &column.column_type;
        let is_set = kind.value.is_none() && (kind.min == 0 || kind.max > 1);
        is_set.then(|| format!(", /, *elements: {}", types::element(&kind.key)))
    });
    let remove = for_columns(schema, "remove", |column| {
        let kind = &column.column_type;
        let has_many = kind.value.is_some() || kind.min == 0 || kind.max > 1;
        has_many.then(|| format!(", /, *elements: {}", types::element(&kind.key)))
    });
    let set_key = for_columns(schema, "set_key", |column| {
        let kind = &column.column_type;
        let value = types::element(kind.value.as_ref()?);
        Some(format!(
            ", key: {}, object: {value}",
            types::element(&kind.key)
        ))
    });
    let increment = for_columns(schema, "increment", |column| {
        let kind = &column.column_type;
        let is_counter =
            kind.value.is_none() && kind.max == 1 && kind.key.atom == AtomType::Integer;
        is_counter.then(|| ", *, force: _b.bool = False".to_owned())
    });
    let verify = schema.tables().iter().map(|table| {
        let (row, columns) = (row_alias(&table.name), column_names(table));
        format!("def verify(self, row: {row}, /, *columns: {columns}) -> None")
    });
    for variants in [add, remove, set_key, increment, verify.collect()] {
        overloads(&mut out, &variants, indent);
    }
    out
}

/// Generates the methods of a client class.
pub(super) fn client(schema: &Schema, front: Front) -> String {
    let mut out = format!("\n    if _t.TYPE_CHECKING:\n        {NO_OTHER_NAMES}");
    let indent = "        ";
    let wait = front.prefix();
    let (block, iterator) = front.types();
    let tables = schema.tables();
    let item = tables.iter().map(|table| {
        let (name, class) = (literal(&table.name), class_name(&table.name));
        format!("def __getitem__(self, name: {name}) -> _tables.{class}")
    });
    overloads(&mut out, &item.collect::<Vec<_>>(), indent);
    let of_one = tables.iter().map(|table| {
        let (name, row) = (literal(&table.name), row_alias(&table.name));
        format!(
            "def changes(self, _table: {name}, /, *, {LIMIT}) -> {iterator}[_corvid.Change[{row}]]"
        )
    });
    let of_several = format!(
        "def changes(self, *tables: _TableName, {LIMIT}) -> {iterator}[_corvid.Change[_Row]]"
    );
    overloads(
        &mut out,
        &of_one.chain([of_several]).collect::<Vec<_>>(),
        indent,
    );
    let fetch = tables.iter().map(|table| {
        let (row, columns) = (row_alias(&table.name), column_names(table));
        format!("{wait}def fetch(self, row: {row}, column: {columns}, {LIMIT}) -> _t.Any")
    });
    overloads(&mut out, &fetch.collect::<Vec<_>>(), indent);
    let fetch_column = tables.iter().map(|table| {
        let (name, columns) = (literal(&table.name), column_names(table));
        format!("{wait}def fetch_column(self, table: {name}, column: {columns}, {LIMIT}) -> None")
    });
    overloads(&mut out, &fetch_column.collect::<Vec<_>>(), indent);
    let comment = "comment: _t.Optional[_b.str] = None";
    let alone = [
        format!("{wait}def fetch_table(self, table: _TableName, {LIMIT}) -> None"),
        format!(
            "{wait}def set_condition(self, table: _TableName, condition: _corvid.Condition, {LIMIT}) -> None"
        ),
        format!(
            "def transaction(self, {comment}, *, dry_run: _b.bool = False, {LIMIT}) -> {block}[_Transaction]"
        ),
        format!(
            "{wait}def transact(self, change: _t.Callable[[_Transaction], _Result], {comment}, {LIMIT}) -> _Result"
        ),
    ];
    for variant in alone {
        overloads(&mut out, &[variant], indent);
    }
    out
}
