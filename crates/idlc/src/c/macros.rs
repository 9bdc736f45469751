//! Macros of the generated header: loops over rows, and names that need types of other headers.

use std::fmt::Write as _;

use super::Table;

/// Generates the loops over the rows of a table.
pub(super) fn of_table(out: &mut String, s: &str, capital: &str) {
    let walk = |suffix: &str, argument: &str, first: &str, next: &str| {
        format!(
            "#define {capital}{suffix}(ROW, {argument}) \\\n    for ((ROW) = {first}({argument}); (ROW); (ROW) = {next}(ROW))\n"
        )
    };
    let safe = |suffix: &str, argument: &str, first: &str| {
        format!(
            "#define {capital}{suffix}_LONG(ROW, NEXT, {argument}) \\\n    for ((ROW) = {first}({argument}); (ROW) ? ((NEXT) = {s}_next(ROW), 1) : 0; (ROW) = (NEXT))\n\
             #define {capital}{suffix}_SHORT(ROW, {argument}) \\\n    for (const struct {s} *ROW##_next_ = ((ROW) = {first}({argument}), (const struct {s} *) 0); \\\n         \
             (ROW) ? (ROW##_next_ = {s}_next(ROW), 1) : 0; (ROW) = ROW##_next_)\n\
             #define {capital}{suffix}(...) \\\n    CORVID_IDL_PICK(__VA_ARGS__, {capital}{suffix}_LONG, {capital}{suffix}_SHORT, 0)(__VA_ARGS__)\n"
        )
    };
    *out += "\n";
    *out += &walk(
        "_FOR_EACH",
        "IDL",
        &format!("{s}_first"),
        &format!("{s}_next"),
    );
    *out += &safe("_FOR_EACH_SAFE", "IDL", &format!("{s}_first"));
    *out += &walk(
        "_TABLE_FOR_EACH",
        "TABLE",
        &format!("{s}_table_first"),
        &format!("{s}_next"),
    );
    *out += &safe("_TABLE_FOR_EACH_SAFE", "TABLE", &format!("{s}_table_first"));
    let next = format!("{s}_track_get_next");
    *out += &walk(
        "_FOR_EACH_TRACKED",
        "IDL",
        &format!("{s}_track_get_first"),
        &next,
    );
    *out += &walk(
        "_TABLE_FOR_EACH_TRACKED",
        "TABLE",
        &format!("{s}_table_track_get_first"),
        &next,
    );
    put!(
        out,
        "#define {capital}_FOR_EACH_RANGE(ROW, FROM, TO, INDEX) \\\n    for (struct corvid_idl_cursor cursor__ = {s}_cursor_first_ge(INDEX, FROM); \\\n         \
         (cursor__.row && {s}_index_compare(INDEX, {s}_cursor_data(&cursor__), TO) <= 0) \\\n         ? ((ROW) = {s}_cursor_data(&cursor__), 1) : 0; corvid_idl_cursor_next(&cursor__))\n\
         #define {capital}_FOR_EACH_EQUAL(ROW, KEY, INDEX) \\\n    for (struct corvid_idl_cursor cursor__ = {s}_cursor_first_eq(INDEX, KEY); \\\n         \
         cursor__.row ? ((ROW) = {s}_cursor_data(&cursor__), corvid_idl_cursor_next_eq(&cursor__), 1) : 0; )\n\
         #define {capital}_FOR_EACH_BYINDEX(ROW, INDEX) \\\n    for (struct corvid_idl_cursor cursor__ = {s}_cursor_first(INDEX); \\\n         \
         cursor__.row ? ((ROW) = {s}_cursor_data(&cursor__), corvid_idl_cursor_next(&cursor__), 1) : 0; )\n"
    );
}

/// Generates names for programs that include corvid-idl-compat.h, which declares their result
/// types.
pub(super) fn of_columns(out: &mut String, table: &Table<'_>) {
    let s = &table.s;
    for column in &table.columns {
        let name = &column.name;
        let (arguments, value_type) = match column.schema.column_type.value {
            Some(_) => ("ROW, KEY_TYPE, VALUE_TYPE", "VALUE_TYPE"),
            None => ("ROW, KEY_TYPE", "OVSDB_TYPE_VOID"),
        };
        // The table already has functions with these names.
        if name != "seqno" && name != "for_uuid" {
            put!(
                out,
                "#define {s}_get_{name}({arguments}) ovsdb_idl_get(&(ROW)->header_, &{s}_col_{name}, KEY_TYPE, {value_type})"
            );
        }
        put!(
            out,
            "#define {s}_{name}_server_type(IDL) ovsdb_idl_server_column_type(IDL, &{s}_col_{name})"
        );
    }
}
