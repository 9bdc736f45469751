//! Column types as C initializers, for the member `type` of `struct corvid_idl_column`.
//!
//! Initializers name the struct members, and give atomic types as numbers, so that a program that
//! links Open vSwitch's library can compile the same text with that library's structs.

use std::fmt::Write as _;

use corvid_data::types::Bounds;
use corvid_data::{AtomRef, AtomType, BaseType, ColumnType, RefType};

use super::column::quoted;

/// The macros that the initializers use. With Open vSwitch's library, the strings are made when the
/// program starts ([`constructor`]).
pub(super) const MACROS: &str = "\
#ifdef CORVID_OVSDB_TYPES
#include <corvid-compat-ovsdb-data.h>
#define ENUMERATION(NAME, N, ...) &NAME
#define NUMBERS(N, ...) NULL
#else
#define NUMBERS(N, ...) &(struct corvid_idl_values) {.n = N, .keys = (union corvid_idl_atom[]) {__VA_ARGS__}}
#define ENUMERATION(NAME, N, ...) NUMBERS(N, __VA_ARGS__)
#endif
";

/// Lists the strings that a column's type enumerates, by the name of the datum that holds them.
pub(super) fn enumerations(column: &str, column_type: &ColumnType) -> Vec<(String, Vec<String>)> {
    let bases = [Some(&column_type.key), column_type.value.as_ref()];
    let named = bases.into_iter().zip(["key", "value"]);
    named
        .filter_map(|(base, half)| {
            let base = base.filter(|base| base.atom == AtomType::String)?;
            let texts = base.enumeration.as_ref()?.keys();
            let texts = texts.filter_map(|atom| atom.as_string().map(quoted));
            Some((format!("{column}_{half}_values"), texts.collect()))
        })
        .collect()
}

/// Generates the function that makes the strings for Open vSwitch's library.
pub(super) fn constructor(prefix: &str, enumerations: &[(String, Vec<String>)]) -> String {
    let mut out = String::new();
    if enumerations.is_empty() {
        return out;
    }
    put!(
        out,
        "#ifdef CORVID_OVSDB_TYPES\n__attribute__((constructor)) static void\n{prefix}enumerate_(void)\n{{"
    );
    for (name, texts) in enumerations {
        put!(
            out,
            "    corvid_compat_enumerate(&{name}, (const char *const[]) {{{}}}, {});",
            texts.join(", "),
            texts.len()
        );
    }
    put!(out, "}}\n#endif\n");
    out
}

/// Generates the initializer of a column's type. `column` is the prefix of the column's names in C.
pub(super) fn initializer(column: &str, column_type: &ColumnType) -> String {
    let value = match &column_type.value {
        Some(value) => base(value, &format!("{column}_value_values")),
        None => "{.type = 0}".to_owned(),
    };
    format!(
        "{{.key = {}, .value = {value}, .n_min = {}, .n_max = {}}}",
        base(&column_type.key, &format!("{column}_key_values")),
        column_type.min,
        limit(column_type.max)
    )
}

fn limit(number: u32) -> String {
    match number {
        u32::MAX => "UINT_MAX".to_owned(),
        number => number.to_string(),
    }
}

fn base(base: &BaseType, name: &str) -> String {
    let number = match base.atom {
        AtomType::Integer => 1,
        AtomType::Real => 2,
        AtomType::Boolean => 3,
        AtomType::String => 4,
        AtomType::Uuid => 5,
    };
    let constraint = match (base.atom, &base.bounds, &base.reference) {
        (_, _, Some(reference)) => {
            let is_weak = u8::from(reference.ref_type == RefType::Weak);
            let name = quoted(&reference.table_name);
            format!(", .uuid = {{.refTableName = (char *) {name}, .refType = {is_weak}}}")
        }
        (_, Bounds::Integer { min, max }, _) => {
            let (min, max) = (integer(*min), integer(*max));
            format!(", .integer = {{.min = {min}, .max = {max}}}")
        }
        (_, Bounds::Real { min, max }, _) => {
            format!(", .real = {{.min = {min:?}, .max = {max:?}}}")
        }
        (_, Bounds::Length { min, max }, _) => {
            format!(", .string = {{.minLen = {min}, .maxLen = {}}}", limit(*max))
        }
        (AtomType::Integer, ..) => ", .integer = {.min = INT64_MIN, .max = INT64_MAX}".to_owned(),
        (AtomType::Real, ..) => ", .real = {.min = -DBL_MAX, .max = DBL_MAX}".to_owned(),
        (AtomType::String, ..) => ", .string = {.minLen = 0, .maxLen = UINT_MAX}".to_owned(),
        _ => String::new(),
    };
    let enumeration = base.enumeration.as_ref().map(|datum| {
        let atoms: Vec<String> = datum.keys().map(atom).collect();
        let (n, atoms) = (atoms.len(), atoms.join(", "));
        match base.atom {
            AtomType::String => format!(", .enum_ = ENUMERATION({name}, {n}, {atoms})"),
            _ => format!(", .enum_ = NUMBERS({n}, {atoms})"),
        }
    });
    format!(
        "{{.type = {number}{}{constraint}}}",
        enumeration.unwrap_or_default()
    )
}

fn integer(number: i64) -> String {
    match number {
        i64::MIN => "INT64_MIN".to_owned(),
        i64::MAX => "INT64_MAX".to_owned(),
        number => format!("INT64_C({number})"),
    }
}

/// Generates the initializer of one atom in an enumeration.
fn atom(atom: AtomRef<'_>) -> String {
    match atom {
        AtomRef::Integer(number) => format!("{{.integer = {}}}", integer(number)),
        AtomRef::Real(real) => format!("{{.real = {:?}}}", real.get()),
        AtomRef::Boolean(boolean) => format!("{{.boolean = {boolean}}}"),
        AtomRef::String(text) => format!(
            "{{.s = &(struct corvid_idl_string) {{(char *) {}}}}}",
            quoted(text)
        ),
        // No schema in use enumerates UUIDs, so the value is left out.
        AtomRef::Uuid(_) => "{.integer = 0}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::c;

    #[test]
    fn types_are_told() {
        let code = c(r#"{"name":"Zoo","version":"1.0.0","tables":{"T":{"isRoot":true,"columns":{
            "kind":{"type":{"key":{"type":"string","enum":["set",["a","b"]]},"min":0,"max":1}},
            "vlan":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":4095}},"mutable":false},
            "rows":{"type":{"key":"string","value":{"type":"uuid","refTable":"T","refType":"weak"},"min":0,"max":"unlimited"}}}}}}"#)
        .unwrap();
        for expected in [
            r#"{"kind", offsetof(struct zoo_t, kind), 0, 0, true, false, {.key = {.type = 4, .enum_ = ENUMERATION(zoo_t_kind_key_values, 2, {.s = &(struct corvid_idl_string) {(char *) "a"}}, {.s = &(struct corvid_idl_string) {(char *) "b"}}), .string = {.minLen = 0, .maxLen = UINT_MAX}}, .value = {.type = 0}, .n_min = 0, .n_max = 1}},"#,
            "offsetof(struct zoo_t, vlan), 0, 0, false, false, {.key = {.type = 1, .integer = {.min = INT64_C(0), .max = INT64_C(4095)}}",
            r#"true, false, {.key = {.type = 4, .string = {.minLen = 0, .maxLen = UINT_MAX}}, .value = {.type = 5, .uuid = {.refTableName = (char *) "T", .refType = 1}}, .n_min = 0, .n_max = UINT_MAX}},"#,
        ] {
            assert!(
                code.source.contains(expected),
                "{expected} is not in\n{}",
                code.source
            );
        }
        let made = "corvid_compat_enumerate(&zoo_t_kind_key_values, (const char *const[]) {\"a\", \"b\"}, 2);";
        assert!(code.source.contains(made), "{}", code.source);
        for expected in [
            "void zoo_t_init(struct zoo_t *row);",
            "#define zoo_t_get_kind(ROW, KEY_TYPE) ovsdb_idl_get(&(ROW)->header_, &zoo_t_col_kind, KEY_TYPE, OVSDB_TYPE_VOID)",
            "#define zoo_t_get_rows(ROW, KEY_TYPE, VALUE_TYPE) ovsdb_idl_get(&(ROW)->header_, &zoo_t_col_rows, KEY_TYPE, VALUE_TYPE)",
            "#define zoo_t_kind_server_type(IDL) ovsdb_idl_server_column_type(IDL, &zoo_t_col_kind)",
        ] {
            assert!(
                code.header.contains(expected),
                "{expected} is not in\n{}",
                code.header
            );
        }
    }
}
