//! Columns in C: the types of members and arguments, and the statements that turn arguments into
//! atoms (docs/spec/idl.md 7.3).
//!
//! This module handles one column at a time; [`super`] builds tables and files from its results.

use corvid_data::{AtomType, BaseType, ColumnSchema, ColumnType};

use crate::annotation::Synthetic;

/// The keywords of C and C++, which no struct member can have as its name (docs/spec/idl.md 7.2),
/// and `header_`, which every row struct uses.
const KEYWORDS: &str = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept const \
    consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit export \
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public \
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local throw \
    true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq header_ ";

/// The names that the parameter of a setter must not have: those of its other parameters, and those
/// that its body uses.
const TAKEN: &str = " row condition function keys values n i calloc free map_count map_atoms size_t int64_t corvid_atom_integer corvid_atom_real corvid_atom_boolean \
    corvid_atom_string corvid_atom_uuid corvid_idl_txn_write corvid_idl_index_write corvid_idl_condition_add_clause ";

/// The prefix and the texts that annotations give for the generated code.
pub(crate) struct Names {
    /// The prefix of all names, such as `ovsrec_`.
    pub(crate) prefix: String,
    /// The operand of `#include` in the source, such as `"vswitch-idl.h"` with its quotes.
    pub(crate) header: String,
    /// The annotation `hDecls`: text for the header.
    pub(crate) header_text: String,
    /// The annotation `cDecls`: text for the source.
    pub(crate) source_text: String,
    /// The columns that C code of the annotations computes.
    pub(crate) synthetic: Vec<Synthetic>,
}

/// One column of a table.
pub(super) struct Column<'a> {
    pub(super) schema: &'a ColumnSchema,
    /// The name of the struct member in C.
    pub(super) name: String,
    pub(super) shape: Shape,
}

/// The form in which the struct shows a column (docs/spec/idl.md 7.3).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Scalar,
    Pointer,
    Array,
    StringMap,
    Map,
    ScalarMap,
}

pub(super) fn shape_of(column_type: &ColumnType) -> Shape {
    let is_string = |base: &BaseType| base.atom == AtomType::String;
    let is_scalar = (column_type.min, column_type.max) == (1, 1);
    match &column_type.value {
        Some(_) if is_scalar => Shape::ScalarMap,
        Some(value) if is_string(value) && is_string(&column_type.key) => Shape::StringMap,
        Some(_) => Shape::Map,
        None if is_scalar => Shape::Scalar,
        None if column_type.max == 1
            && (is_string(&column_type.key) || column_type.key.reference.is_some()) =>
        {
            Shape::Pointer
        }
        None => Shape::Array,
    }
}

/// Writes a string as a C literal.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            // Escaped question marks cannot form trigraphs, which begin with two of them.
            '"' | '\\' | '?' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    quoted += &format!("\\{byte:03o}");
                }
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Returns whether C accepts a name as an identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Returns the name of a column's struct member, which must not be a keyword.
pub(super) fn member(name: &str) -> String {
    if KEYWORDS.contains(&format!(" {name} ")) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

/// Returns the parameter's name in a setter of the column with this name in C.
pub(super) fn parameter(name: &str) -> String {
    if TAKEN.contains(&format!(" {name} ")) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

impl Names {
    /// Returns the name of the struct that a reference points to.
    pub(super) fn target(&self, base: &BaseType) -> Option<String> {
        let reference = base.reference.as_ref()?;
        Some(format!(
            "{}{}",
            self.prefix,
            reference.table_name.to_lowercase()
        ))
    }

    /// Returns the type of a struct member.
    pub(super) fn type_of(&self, base: &BaseType) -> String {
        match (base.atom, self.target(base)) {
            (_, Some(target)) => format!("struct {target} *"),
            (AtomType::Integer, _) => "int64_t ".to_owned(),
            (AtomType::Real, _) => "double ".to_owned(),
            (AtomType::Boolean, _) => "bool ".to_owned(),
            (AtomType::String, _) => "char *".to_owned(),
            (AtomType::Uuid, _) => "corvid_uuid ".to_owned(),
        }
    }

    /// Returns the type of an argument with one value.
    pub(super) fn argument(&self, base: &BaseType, is_clause: bool) -> String {
        match (base.atom, base.reference.is_some()) {
            (_, true) if is_clause => "const corvid_uuid *".to_owned(),
            (AtomType::String, _) | (_, true) => format!("const {}", self.type_of(base)),
            _ => self.type_of(base),
        }
    }

    /// Returns the type of an argument that is an array.
    pub(super) fn array(&self, base: &BaseType, is_clause: bool) -> String {
        match (base.atom, base.reference.is_some()) {
            (_, true) if is_clause => "corvid_uuid **".to_owned(),
            (_, true) => format!("{}*", self.type_of(base)),
            (AtomType::String, _) => "const char **".to_owned(),
            _ => format!("const {}*", self.type_of(base)),
        }
    }

    /// Returns the parameters of a setter that follow the row.
    pub(super) fn arguments(&self, column: &Column<'_>, is_clause: bool) -> String {
        let (name, column_type) = (parameter(&column.name), &column.schema.column_type);
        let key = &column_type.key;
        let value = column_type.value.as_ref().unwrap_or(key);
        match column.shape {
            Shape::Scalar | Shape::Pointer => format!("{}{name}", self.argument(key, is_clause)),
            Shape::Array => format!("{}{name}, size_t n_{name}", self.array(key, is_clause)),
            Shape::StringMap => format!("const corvid_idl_smap *{name}"),
            Shape::Map => format!(
                "{}key_{name}, {}value_{name}, size_t n_{name}",
                self.array(key, is_clause),
                self.array(value, is_clause)
            ),
            Shape::ScalarMap => format!(
                "{}key_{name}, {}value_{name}",
                self.argument(key, is_clause),
                self.argument(value, is_clause)
            ),
        }
    }

    /// Generates the statements that make atoms of a setter's arguments and pass them to a
    /// function.
    pub(super) fn conversion(&self, column: &Column<'_>, is_clause: bool, call: &str) -> String {
        let (name, column_type) = (parameter(&column.name), &column.schema.column_type);
        let key = &column_type.key;
        let value = column_type.value.as_ref().unwrap_or(key);
        match column.shape {
            Shape::Scalar | Shape::Pointer => {
                let is_pointer = column.shape == Shape::Pointer || key.reference.is_some();
                let count = if is_pointer {
                    format!("{name} != NULL")
                } else {
                    "1".to_owned()
                };
                let atom = atom(key, &name, is_clause);
                let has_null = key.reference.is_some() && !is_clause;
                let atom = if is_pointer && !has_null {
                    format!("{name} ? {atom} : corvid_atom_integer(0)")
                } else {
                    atom
                };
                format!(
                    "    const struct corvid_atom keys = {atom};\n    {call}&keys, NULL, {count});\n"
                )
            }
            Shape::ScalarMap => format!(
                "    const struct corvid_atom keys = {};\n    const struct corvid_atom values = {};\n    {call}&keys, &values, 1);\n",
                atom(key, &format!("key_{name}"), is_clause),
                atom(value, &format!("value_{name}"), is_clause)
            ),
            Shape::Array => arrays(
                &format!("n_{name}"),
                &atom(key, &format!("{name}[i]"), is_clause),
                None,
                call,
            ),
            Shape::Map => arrays(
                &format!("n_{name}"),
                &atom(key, &format!("key_{name}[i]"), is_clause),
                Some(&atom(value, &format!("value_{name}[i]"), is_clause)),
                call,
            ),
            Shape::StringMap => format!(
                "    const size_t n = map_count({name});\n\
                 \x20   struct corvid_atom *keys = (struct corvid_atom *) calloc(n + !n, 2 * sizeof *keys);\n\
                 \x20   struct corvid_atom *values = keys ? keys + n : NULL;\n\
                 \x20   if (keys) {{\n        map_atoms({name}, keys, values);\n    }}\n\
                 \x20   {call}keys, values, n);\n    free(keys);\n"
            ),
        }
    }
}

/// Generates the expression that makes an atom.
pub(super) fn atom(base: &BaseType, expression: &str, is_clause: bool) -> String {
    match (base.atom, base.reference.is_some()) {
        (_, true) if is_clause => format!("corvid_atom_uuid(*{expression})"),
        // The pointer is null if the row could not be inserted. An atom of the wrong type then
        // makes the commit fail.
        (_, true) => format!(
            "{expression} ? corvid_atom_uuid({expression}->header_.uuid) : corvid_atom_integer(0)"
        ),
        (AtomType::Integer, _) => format!("corvid_atom_integer({expression})"),
        (AtomType::Real, _) => format!("corvid_atom_real({expression})"),
        (AtomType::Boolean, _) => format!("corvid_atom_boolean({expression})"),
        (AtomType::String, _) => format!("corvid_atom_string({expression})"),
        (AtomType::Uuid, _) => format!("corvid_atom_uuid({expression})"),
    }
}

/// Generates the statements that make atoms of arrays. If memory runs out, the library gets a null
/// pointer and reports it.
pub(super) fn arrays(count: &str, key: &str, value: Option<&str>, call: &str) -> String {
    let halves = if value.is_some() { 2 } else { 1 };
    let (values, put) = match value {
        Some(value) => (
            "keys ? keys + n : keys",
            format!("        keys[n + i] = {value};\n"),
        ),
        None => ("NULL", String::new()),
    };
    format!(
        "    const size_t n = {count};\n\
         \x20   struct corvid_atom *keys = (struct corvid_atom *) calloc(n + !n, {halves} * sizeof *keys);\n\
         \x20   for (size_t i = 0; keys && i < n; i++) {{\n        keys[i] = {key};\n{put}    }}\n\
         \x20   {call}keys, {values}, n);\n    free(keys);\n"
    )
}
