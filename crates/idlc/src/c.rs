//! Generates C for the tables of a schema: a header and a source over `corvid.h`, in the shape of
//! the code that Open vSwitch's generator makes (docs/spec/idl.md 7).
//!
//! The source contains constants that describe the row structs, and functions that turn C values
//! into atoms. All other code is in the library.

/// Appends formatted text and a newline to a string. Writing to a string cannot fail, so the result
/// is ignored.
macro_rules! put {
    ($out:expr, $($text:tt)*) => { let _ = writeln!($out, $($text)*); };
}

mod column;
mod column_type;
mod macros;
mod synthetic;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use corvid_data::{AtomType, BaseType, ColumnType, Schema, TableSchema};

pub(crate) use self::column::Names;
use self::column::{Column, Shape, atom, is_identifier, member, shape_of};
use crate::annotation::Synthetic;
use crate::error::Error;

/// One table, with its names in C.
struct Table<'a> {
    schema: &'a TableSchema,
    /// The name of the row struct: the prefix and the table's name in lower case. `capital` is the
    /// same name in capitals.
    s: String,
    capital: String,
    columns: Vec<Column<'a>>,
    /// The synthetic columns of the table, each after those that it depends on.
    synthetic: Vec<&'a Synthetic>,
}

fn tables<'a>(schema: &'a Schema, names: &'a Names) -> Vec<Table<'a>> {
    let mut tables: Vec<Table<'a>> = schema
        .tables()
        .iter()
        .map(|table| {
            let s = format!("{}{}", names.prefix, table.name.to_lowercase());
            let mut columns: Vec<Column<'a>> = table
                .columns()
                .iter()
                .map(|column| Column {
                    schema: column,
                    name: member(&column.name),
                    shape: shape_of(&column.column_type),
                })
                .collect();
            columns.sort_by(|left, right| left.schema.name.cmp(&right.schema.name));
            Table {
                synthetic: synthetic::of_table(&names.synthetic, &table.name),
                schema: table,
                capital: s.to_uppercase(),
                s,
                columns,
            }
        })
        .collect();
    tables.sort_by(|left, right| left.schema.name.cmp(&right.schema.name));
    tables
}

/// Checks that all names are identifiers in C, and that no two names of the schema become one name
/// in C.
pub(crate) fn check(schema: &Schema, names: &Names) -> Result<(), Error> {
    let is_name = |text: &str| {
        text.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if !is_name(&names.prefix) {
        return Err(Error::Clash(format!("the prefix {}", names.prefix)));
    }
    synthetic::check(schema, &names.synthetic)?;
    let (mut taken, mut calls) = (BTreeSet::new(), BTreeSet::new());
    for table in tables(schema, names) {
        if !taken.insert(table.s.clone()) {
            return Err(Error::Clash(format!("table {}", table.schema.name)));
        }
        for function in functions(names, &table) {
            // A column named `condition` would define `TABLE_set_condition` a second time.
            if !calls.insert(function.name().to_owned()) {
                let (name, table) = (function.name(), &table.schema.name);
                return Err(Error::Clash(format!("function {name} of table {table}")));
            }
        }
        let mut members = BTreeSet::new();
        for column in &table.synthetic {
            // Synthetic columns have been taken out of the schema, so the schema's parser has not
            // checked their names.
            let is_free =
                is_identifier(&column.name) && members.insert(member(&column.name).to_uppercase());
            if !is_free {
                let (column, table) = (&column.name, &table.schema.name);
                return Err(Error::Clash(format!("column {column} of table {table}")));
            }
        }
        for column in table.columns {
            let name = &column.name;
            let counts = matches!(column.shape, Shape::Array | Shape::Map);
            let is_free = members.insert(name.to_uppercase())
                && (!counts || members.insert(format!("N_{}", name.to_uppercase())));
            if !is_free {
                let (column, table) = (&column.schema.name, &table.schema.name);
                return Err(Error::Clash(format!("column {column} of table {table}")));
            }
        }
    }
    Ok(())
}

/// Generates the header.
pub(crate) fn header(schema: &Schema, names: &Names) -> String {
    let tables = tables(schema, names);
    let p = &names.prefix;
    let capital = p.to_uppercase();
    let mut out = String::new();
    put!(
        out,
        "/* Rows of the database {}, version {}. Made by ovsdb-idlc; do not edit it. */",
        schema.name,
        schema.version
    );
    put!(out, "#ifndef {capital}IDL_H\n#define {capital}IDL_H 1\n");
    // The row structs of the two generators differ, so no file may use both headers.
    put!(
        out,
        "/* The header of Open vSwitch's generator, included later, adds nothing. */\n\
         #ifdef {capital}IDL_HEADER\n#error \"the header of another generator is included\"\n#endif\n\
         #define {capital}IDL_HEADER 1\n"
    );
    put!(out, "#include <corvid.h>\n");
    out += &modes(names);
    put!(out, "{}", names.header_text);
    put!(out, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n");
    put!(
        out,
        "#ifndef CORVID_IDL_PICK\n/* The name behind two arguments or three. */\n#define CORVID_IDL_PICK(A, B, C, NAME, ...) NAME\n#endif\n"
    );
    for table in &tables {
        put!(out, "struct {};", table.s);
    }
    for table in &tables {
        table_header(&mut out, names, table);
    }
    put!(out, "\nenum {p}table_id {{");
    for table in &tables {
        put!(
            out,
            "    {capital}TABLE_{},",
            table.schema.name.to_uppercase()
        );
    }
    put!(out, "    {capital}N_TABLES\n}};\n");
    put!(
        out,
        "extern const struct corvid_idl_table_class {p}table_classes[{capital}N_TABLES];"
    );
    for table in &tables {
        let name = &table.schema.name;
        put!(
            out,
            "#define {p}table_{} ({p}table_classes[{capital}TABLE_{}])",
            name.to_lowercase(),
            name.to_uppercase()
        );
    }
    put!(
        out,
        "extern const struct corvid_idl_class {p}idl_class;\nconst char *{p}get_db_version(void);\n"
    );
    put!(
        out,
        "/* Each file of the program refers to the tables, so one that was compiled with other structs\n * than the generated source does not link. */\n\
         #if defined(__GNUC__) && !defined(CORVID_IDL_NO_MODE_CHECK)\n\
         static const void *const {p}mode_check __attribute__((used)) = {p}table_classes;\n#endif\n"
    );
    put!(out, "#ifdef __cplusplus\n}}\n#endif\n\n#endif");
    out
}

/// Renames the tables in object files, so that files that were compiled with different row structs
/// do not link. Rows contain either the map of Open vSwitch's library or that of `libcorvid`.
/// libopenvswitch also contains code of its own generator under the usual names, for some schemas.
fn modes(names: &Names) -> String {
    let p = &names.prefix;
    let mut out = String::new();
    put!(
        out,
        "#ifdef CORVID_WITH_OPENVSWITCH\n/* Rows contain Open vSwitch's struct smap, so their code has another name. */\n\
         #define {p}table_classes {p}table_classes_with_openvswitch\n\
         #define {p}idl_class {p}idl_class_with_openvswitch\n#else\n\
         /* libopenvswitch has code of another generator under the usual names. */\n\
         #define {p}table_classes {p}table_classes_of_libcorvid\n\
         #define {p}idl_class {p}idl_class_of_libcorvid\n#endif\n"
    );
    out
}

/// The functions in the source that read maps of strings.
const MAP_FUNCTIONS: &str = "\
#ifdef CORVID_WITH_OPENVSWITCH
#include <corvid-compat-smap.h>
#define map_count corvid_compat_map_count
#define map_atoms corvid_compat_map_atoms
#else
static size_t
map_count(const corvid_idl_smap *map)
{
    return map ? map->n : 0;
}

static void
map_atoms(const corvid_idl_smap *map, struct corvid_atom *keys, struct corvid_atom *values)
{
    for (size_t i = 0; map && i < map->n; i++) {
        keys[i] = corvid_atom_string(map->nodes[i].key);
        values[i] = corvid_atom_string(map->nodes[i].value);
    }
}
#endif
";

/// The map functions that the database's class points to.
const MAP_CLASS: &str = "\
#ifdef CORVID_WITH_OPENVSWITCH
static const struct corvid_idl_map_functions map_functions = {
    sizeof(struct smap), corvid_compat_map_init, corvid_compat_map_fill, corvid_compat_map_destroy};
#define MAP_FUNCTIONS &map_functions
#else
#define MAP_FUNCTIONS NULL
#endif
";

fn table_header(out: &mut String, names: &Names, table: &Table<'_>) {
    let Table { s, capital, .. } = table;
    put!(
        out,
        "\n/* {} */\nstruct {s} {{\n    struct corvid_idl_row header_;",
        table.schema.name
    );
    for column in &table.columns {
        put!(
            out,
            "\n    /* {}: {}. */",
            column.schema.name,
            column.schema.column_type.english()
        );
        *out += &members(names, &column.name, &column.schema.column_type);
    }
    synthetic::members(out, names, table);
    put!(out, "}};\n\nenum {s}_column_id {{");
    for column in &table.columns {
        put!(
            out,
            "    {capital}_COL_{},",
            column.schema.name.to_uppercase()
        );
    }
    for column in &table.synthetic {
        put!(out, "    {capital}_COL_{},", column.name.to_uppercase());
    }
    put!(
        out,
        "    {capital}_N_COLUMNS\n}};\nextern const struct corvid_idl_column {s}_columns[{capital}_N_COLUMNS];"
    );
    for column in &table.columns {
        put!(
            out,
            "#define {s}_col_{} ({s}_columns[{capital}_COL_{}])",
            column.name,
            column.schema.name.to_uppercase()
        );
    }
    for column in &table.synthetic {
        put!(
            out,
            "#define {s}_col_{} ({s}_columns[{capital}_COL_{}])",
            member(&column.name),
            column.name.to_uppercase()
        );
    }
    macros::of_table(out, s, capital);
    macros::of_columns(out, table);
    for function in functions(names, table) {
        put!(out, "{};", function.prototype);
    }
}

/// Declares the struct members of a column.
fn members(names: &Names, name: &str, column_type: &ColumnType) -> String {
    let mut out = String::new();
    let key = names.type_of(&column_type.key);
    let value = column_type.value.as_ref().map(|value| names.type_of(value));
    let value = value.unwrap_or_default();
    let pointer = |name: &str| format!("{name}*");
    match shape_of(column_type) {
        Shape::Scalar | Shape::Pointer => {
            put!(out, "    {key}{name};");
        }
        Shape::Array => {
            put!(out, "    {}{name};\n    size_t n_{name};", pointer(&key));
        }
        Shape::StringMap => {
            put!(out, "    corvid_idl_smap {name};");
        }
        Shape::Map => {
            put!(
                out,
                "    {}key_{name};\n    {}value_{name};\n    size_t n_{name};",
                pointer(&key),
                pointer(&value)
            );
        }
        Shape::ScalarMap => {
            put!(out, "    {key}key_{name};\n    {value}value_{name};");
        }
    }
    out
}

/// Generates the body of `_init`, which fills a row with the defaults of its columns.
fn init(table: &Table<'_>) -> String {
    let mut body = "    memset(row, 0, sizeof *row);\n".to_owned();
    for column in &table.columns {
        let name = &column.name;
        let is_string = |base: &BaseType| base.atom == AtomType::String;
        let column_type = &column.schema.column_type;
        match column.shape {
            Shape::Scalar if is_string(&column_type.key) => {
                put!(body, "    row->{name} = (char *) \"\";");
            }
            Shape::ScalarMap => {
                if is_string(&column_type.key) {
                    put!(body, "    row->key_{name} = (char *) \"\";");
                }
                if column_type.value.as_ref().is_some_and(is_string) {
                    put!(body, "    row->value_{name} = (char *) \"\";");
                }
            }
            Shape::StringMap => {
                put!(
                    body,
                    "#ifdef CORVID_WITH_OPENVSWITCH\n    smap_init(&row->{name});\n#endif"
                );
            }
            _ => {}
        }
    }
    body
}

/// A function of the generated code: its prototype and its body.
struct Function {
    prototype: String,
    body: String,
}

impl Function {
    /// Returns the function's name: the last word before the parameters.
    fn name(&self) -> &str {
        let head = self.prototype.split('(').next().unwrap_or_default();
        head.rsplit([' ', '*']).next().unwrap_or_default()
    }
}

fn function(prototype: String, body: impl Into<String>) -> Function {
    let body = body.into();
    Function { prototype, body }
}

/// Lists all functions of a table. The header declares them and the source defines them.
fn functions(names: &Names, table: &Table<'_>) -> Vec<Function> {
    let s = &table.s;
    let lower = table.schema.name.to_lowercase();
    let class = format!("&{}table_{lower}", names.prefix);
    let row = format!("const struct {s} *");
    let give = |call: String| format!("    return (struct {s} *) {call};\n");
    let idl = "const struct corvid_idl *idl";
    let handle = format!("const struct {s}_table *table");
    let of_handle = "((const struct corvid_idl_table *) table)->idl";
    let p = &names.prefix;
    let mut made = vec![
        function(
            format!("bool {p}server_has_{lower}_table({idl})"),
            format!("    return corvid_idl_server_has_table(idl, {class});\n"),
        ),
        function(format!("void {s}_init(struct {s} *row)"), init(table)),
        function(
            format!("{row}{s}_first({idl})"),
            give(format!("corvid_idl_first_row(idl, {class})")),
        ),
        function(
            format!("{row}{s}_next({row}row)"),
            give("corvid_idl_next_row(&row->header_)".into()),
        ),
        function(
            format!("{row}{s}_get_for_uuid({idl}, const corvid_uuid *uuid)"),
            give(format!("corvid_idl_get_row_for_uuid(idl, {class}, uuid)")),
        ),
        function(
            format!("const struct {s}_table *{s}_table_get({idl})"),
            format!("    return (const struct {s}_table *) corvid_idl_table_get(idl, {class});\n"),
        ),
        function(
            format!("{row}{s}_table_first({handle})"),
            give(format!("corvid_idl_first_row({of_handle}, {class})")),
        ),
        function(
            format!("{row}{s}_table_get_for_uuid({handle}, const corvid_uuid *uuid)"),
            give(format!(
                "corvid_idl_get_row_for_uuid({of_handle}, {class}, uuid)"
            )),
        ),
        function(
            format!("{row}{s}_table_track_get_first({handle})"),
            give(format!("corvid_idl_track_get_first({of_handle}, {class})")),
        ),
        function(
            format!("unsigned int {s}_get_seqno({idl})"),
            format!("    return corvid_idl_table_get_seqno(idl, {class});\n"),
        ),
        function(
            format!("unsigned int {s}_row_get_seqno({row}row, int change)"),
            "    return corvid_idl_row_get_seqno(&row->header_, change);\n",
        ),
        function(
            format!("{row}{s}_track_get_first({idl})"),
            give(format!("corvid_idl_track_get_first(idl, {class})")),
        ),
        function(
            format!("{row}{s}_track_get_next({row}row)"),
            give("corvid_idl_track_get_next(&row->header_)".into()),
        ),
        function(
            format!("bool {s}_is_new({row}row)"),
            "    return corvid_idl_row_get_seqno(&row->header_, CORVID_ROW_INSERT) > 0;\n",
        ),
        function(
            format!("bool {s}_is_deleted({row}row)"),
            "    return corvid_idl_row_get_seqno(&row->header_, CORVID_ROW_DELETE) > 0;\n",
        ),
        function(
            format!("bool {s}_is_updated({row}row, enum {s}_column_id column)"),
            format!(
                "    return corvid_idl_track_is_updated(&row->header_, &{s}_columns[column]);\n"
            ),
        ),
        function(
            format!("struct {s} *{s}_insert(struct corvid_idl_txn *txn)"),
            give(format!("corvid_idl_txn_insert(txn, {class}, NULL, false)")),
        ),
        function(
            format!(
                "struct {s} *{s}_insert_persist_uuid(struct corvid_idl_txn *txn, const corvid_uuid *uuid)"
            ),
            give(format!("corvid_idl_txn_insert(txn, {class}, uuid, true)")),
        ),
        function(
            format!("void {s}_delete({row}row)"),
            "    corvid_idl_txn_delete(&row->header_);\n",
        ),
        function(
            format!(
                "unsigned int {s}_set_condition(struct corvid_idl *idl, struct corvid_idl_condition *condition)"
            ),
            format!("    return corvid_idl_set_condition(idl, {class}, condition);\n"),
        ),
        function(
            format!("struct {s} *{s}_index_init_row(struct corvid_idl_index *index)"),
            give("corvid_idl_index_init_row(index)".into()),
        ),
        function(
            format!("void {s}_index_destroy_row({row}row)"),
            "    corvid_idl_index_destroy_row(row ? &row->header_ : NULL);\n",
        ),
        function(
            format!("{row}{s}_index_find(struct corvid_idl_index *index, {row}key)"),
            give("corvid_idl_index_find(index, &key->header_)".into()),
        ),
        function(
            format!("int {s}_index_compare(struct corvid_idl_index *index, {row}a, {row}b)"),
            "    return corvid_idl_index_compare(index, a ? &a->header_ : NULL, b ? &b->header_ : NULL);\n",
        ),
        function(
            format!("struct corvid_idl_cursor {s}_cursor_first(struct corvid_idl_index *index)"),
            "    return corvid_idl_cursor_first(index);\n",
        ),
        function(
            format!(
                "struct corvid_idl_cursor {s}_cursor_first_eq(struct corvid_idl_index *index, {row}key)"
            ),
            "    return corvid_idl_cursor_first_eq(index, key ? &key->header_ : NULL);\n",
        ),
        function(
            format!(
                "struct corvid_idl_cursor {s}_cursor_first_ge(struct corvid_idl_index *index, {row}key)"
            ),
            "    return corvid_idl_cursor_first_ge(index, key ? &key->header_ : NULL);\n",
        ),
        function(
            format!("{row}{s}_cursor_data(const struct corvid_idl_cursor *cursor)"),
            format!("    return (const struct {s} *) cursor->row;\n"),
        ),
    ];
    for column in &table.columns {
        made.extend(column_functions(names, table, column));
    }
    made
}

fn column_functions(names: &Names, table: &Table<'_>, column: &Column<'_>) -> Vec<Function> {
    let (s, name) = (&table.s, &column.name);
    let lower = table.schema.name.to_lowercase();
    let row = format!("const struct {s} *row");
    let place = format!("&row->header_, &{s}_col_{name}");
    let column_type = &column.schema.column_type;
    let p = &names.prefix;
    let converted = |is_clause: bool, call: &str| names.conversion(column, is_clause, call);
    let arguments = |is_clause: bool| names.arguments(column, is_clause);
    let mut made = vec![
        function(
            format!("bool {p}server_has_{lower}_table_col_{name}(const struct corvid_idl *idl)"),
            format!("    return corvid_idl_server_has_column(idl, &{s}_col_{name});\n"),
        ),
        function(
            format!("void {s}_verify_{name}({row})"),
            format!("    corvid_idl_txn_verify({place});\n"),
        ),
        function(
            format!("void {s}_set_{name}({row}, {})", arguments(false)),
            converted(false, &format!("corvid_idl_txn_write({place}, ")),
        ),
        function(
            format!("void {s}_index_set_{name}({row}, {})", arguments(false)),
            converted(false, &format!("corvid_idl_index_write({place}, ")),
        ),
        function(
            format!(
                "void {s}_add_clause_{name}(struct corvid_idl_condition *condition, int function, {})",
                arguments(true)
            ),
            converted(
                true,
                &format!("corvid_idl_condition_add_clause(condition, function, &{s}_col_{name}, "),
            ),
        ),
    ];
    let element = |base: &BaseType, argument: &str| {
        (names.argument(base, false), atom(base, argument, false))
    };
    let (key_type, key) = element(&column_type.key, "key");
    match (column.shape, &column_type.value) {
        (Shape::Map | Shape::StringMap, Some(value)) => {
            let (value_type, value) = element(value, "value");
            made.push(function(
                format!("void {s}_update_{name}_setkey({row}, {key_type}key, {value_type}value)"),
                format!("    corvid_idl_txn_set_key({place}, {key}, {value});\n"),
            ));
            made.push(function(
                format!("void {s}_update_{name}_delkey({row}, {key_type}key)"),
                format!("    corvid_idl_txn_remove_key({place}, {key});\n"),
            ));
        }
        (Shape::Array | Shape::Pointer, _) => {
            let (value_type, value) = element(&column_type.key, "value");
            for (verb, call) in [("addvalue", "add_value"), ("delvalue", "remove_value")] {
                made.push(function(
                    format!("void {s}_update_{name}_{verb}({row}, {value_type}value)"),
                    format!("    corvid_idl_txn_{call}({place}, {value});\n"),
                ));
            }
        }
        _ => {}
    }
    made
}

/// Generates the source.
pub(crate) fn source(schema: &Schema, names: &Names) -> String {
    let tables = tables(schema, names);
    let p = &names.prefix;
    let mut out = String::new();
    put!(
        out,
        "/* Rows of the database {}, version {}. Made by ovsdb-idlc; do not edit it. */",
        schema.name,
        schema.version
    );
    put!(
        out,
        "#include {}\n#include <float.h>\n#include <limits.h>\n#include <stddef.h>\n#include <stdlib.h>\n#include <string.h>\n\n{}",
        names.header,
        column_type::MACROS
    );
    let has_maps = tables
        .iter()
        .flat_map(|table| &table.columns)
        .any(|column| column.shape == Shape::StringMap);
    if has_maps {
        put!(out, "{MAP_FUNCTIONS}");
    }
    put!(out, "{}", names.source_text);
    let mut enumerations = Vec::new();
    for table in &tables {
        let Table { s, capital, .. } = table;
        let listed: Vec<_> = (table.columns.iter())
            .map(|column| (&column.name, &column.schema.column_type))
            .chain(
                table
                    .synthetic
                    .iter()
                    .map(|column| (&column.name, &column.column_type)),
            )
            .flat_map(|(name, column_type)| {
                column_type::enumerations(&format!("{s}_{name}"), column_type)
            })
            .collect();
        if !listed.is_empty() {
            put!(out, "#ifdef CORVID_OVSDB_TYPES");
            for (name, _) in &listed {
                put!(out, "static struct ovsdb_datum {name};");
            }
            put!(out, "#endif");
        }
        enumerations.extend(listed);
        put!(
            out,
            "const struct corvid_idl_column {s}_columns[{capital}_N_COLUMNS] = {{"
        );
        for column in &table.columns {
            let name = &column.name;
            let offset = |member: String| format!("offsetof(struct {s}, {member})");
            let (keys, values, count) = match column.shape {
                Shape::Scalar | Shape::Pointer | Shape::StringMap => {
                    (offset(name.clone()), "0".into(), "0".into())
                }
                Shape::Array => (
                    offset(name.clone()),
                    "0".into(),
                    offset(format!("n_{name}")),
                ),
                Shape::Map => (
                    offset(format!("key_{name}")),
                    offset(format!("value_{name}")),
                    offset(format!("n_{name}")),
                ),
                Shape::ScalarMap => (
                    offset(format!("key_{name}")),
                    offset(format!("value_{name}")),
                    "0".into(),
                ),
            };
            put!(
                out,
                "    {{\"{}\", {keys}, {values}, {count}, {}, false, {}}},",
                column.schema.name,
                column.schema.mutable,
                column_type::initializer(&format!("{s}_{name}"), &column.schema.column_type)
            );
        }
        synthetic::columns(&mut out, table);
        put!(out, "}};\n");
        synthetic::functions(&mut out, table);
        for function in functions(names, table) {
            put!(out, "{}\n{{\n{}}}\n", function.prototype, function.body);
        }
    }
    out += &column_type::constructor(p, &enumerations);
    put!(
        out,
        "const struct corvid_idl_table_class {p}table_classes[{}N_TABLES] = {{",
        p.to_uppercase()
    );
    for table in &tables {
        put!(
            out,
            "    {{\"{}\", {1}_columns, {2}_N_COLUMNS, sizeof(struct {1}), {3}, {4}, {5}}},",
            table.schema.name,
            table.s,
            table.capital,
            synthetic::pointers(table),
            table.schema.is_root,
            table.schema.max_rows == 1
        );
    }
    put!(
        out,
        "}};\n\n#ifdef __GNUC__\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#endif\nstatic const char schema[] ="
    );
    let text: Vec<char> = schema.to_json().to_string().chars().collect();
    for part in text.chunks(100) {
        let quoted = column::quoted(&part.iter().collect::<String>());
        put!(out, "    {quoted}");
    }
    put!(out, "    ;\n");
    let maps = if has_maps {
        put!(out, "{MAP_CLASS}");
        "MAP_FUNCTIONS"
    } else {
        "NULL"
    };
    put!(
        out,
        "const struct corvid_idl_class {p}idl_class = {{CORVID_IDL_VERSION, sizeof(struct corvid_idl_column), \"{}\", schema, {p}table_classes, {}N_TABLES, {maps}}};\n",
        schema.name,
        p.to_uppercase()
    );
    put!(
        out,
        "const char *\n{p}get_db_version(void)\n{{\n    return \"{}\";\n}}",
        schema.version
    );
    out
}

#[cfg(test)]
mod tests {
    use crate::c;

    fn zoo(columns: &str) -> String {
        format!(
            r#"{{"name":"Zoo","version":"1.0.0","tables":{{"Big_Cat":{{"isRoot":true,"columns":{{{columns}}}}}}}}}"#
        )
    }

    #[test]
    fn names_are_those_of_the_reference() {
        let code = c(&zoo(
            r#""class":{"type":"string"},"prey":{"type":{"key":{"type":"uuid","refTable":"Big_Cat"},"min":0,"max":9}}"#,
        ))
        .unwrap();
        for expected in [
            "struct zoo_big_cat {",
            "    struct corvid_idl_row header_;",
            "    char *class_;",
            "    struct zoo_big_cat **prey;\n    size_t n_prey;",
            "#define zoo_big_cat_col_class_ (zoo_big_cat_columns[ZOO_BIG_CAT_COL_CLASS])",
            "void zoo_big_cat_set_class_(const struct zoo_big_cat *row, const char *class_);",
            "void zoo_big_cat_set_prey(const struct zoo_big_cat *row, struct zoo_big_cat **prey, size_t n_prey);",
            "void zoo_big_cat_update_prey_addvalue(const struct zoo_big_cat *row, const struct zoo_big_cat *value);",
            "#define ZOO_BIG_CAT_FOR_EACH_EQUAL(ROW, KEY, INDEX)",
        ] {
            assert!(
                code.header.contains(expected),
                "{expected} is not in\n{}",
                code.header
            );
        }
        assert!(
            code.source
                .contains("{\"class\", offsetof(struct zoo_big_cat, class_), 0, 0, true, false, {")
        );
    }

    #[test]
    fn parameters_have_names_of_their_own() {
        let code = c(&zoo(
            r#""keys":{"type":{"key":"integer","min":0,"max":9}},"values":{"type":{"key":"string","value":"string","min":0,"max":9}},
               "row":{"type":"integer"},"n":{"type":{"key":"real","value":"integer","min":0,"max":9}},"i":{"type":"string"}"#,
        ))
        .unwrap();
        for expected in [
            "    int64_t *keys;\n    size_t n_keys;",
            "zoo_big_cat_set_keys(const struct zoo_big_cat *row, const int64_t *keys_, size_t n_keys_)",
            "zoo_big_cat_set_values(const struct zoo_big_cat *row, const corvid_idl_smap *values_)",
            "zoo_big_cat_set_row(const struct zoo_big_cat *row, int64_t row_)",
            "zoo_big_cat_set_n(const struct zoo_big_cat *row, const double *key_n_, const int64_t *value_n_, size_t n_n_)",
            "zoo_big_cat_set_i(const struct zoo_big_cat *row, const char *i_)",
        ] {
            assert!(
                code.header.contains(expected),
                "{expected} is not in\n{}",
                code.header
            );
        }
    }

    #[test]
    fn names_that_become_one_are_refused() {
        for columns in [
            r#""condition":{"type":"string"}"#,
            r#""a":{"type":"string"},"A":{"type":"string"}"#,
            r#""a":{"type":{"key":"string","min":0,"max":9}},"n_a":{"type":"integer"}"#,
        ] {
            let error = c(&zoo(columns)).unwrap_err().to_string();
            assert!(error.contains("of table Big_Cat"), "{error}");
        }
    }
}
