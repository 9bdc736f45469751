//! Columns in C: types of members and arguments, and the statements that turn arguments into atoms (docs/spec/idl.md 7.3).
//!
//! It knows one column at a time; files and tables are the business of the module above.

use corvid_data::{AtomType, BaseType, ColumnSchema, ColumnType};

use crate::annotation::Synthetic;

/// Words that no member may be called: those of C and C++ (docs/spec/idl.md 7.2).
const KEYWORDS: &str = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept const \
    consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit export \
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public \
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local throw \
    true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq header_ ";

/// Names that no parameter of a setter may have: those of the others, and what the bodies use.
const TAKEN: &str = " row condition function keys values n i calloc free map_count map_atoms size_t int64_t corvid_atom_integer corvid_atom_real corvid_atom_boolean \
    corvid_atom_string corvid_atom_uuid corvid_idl_txn_write corvid_idl_index_write corvid_idl_condition_add_clause ";

/// The names that the code begins with, and the operand of its include.
pub(crate) struct Names {
    /// For example `ovsrec_`.
    pub(crate) prefix: String,
    /// For example `"vswitch-idl.h"`, with its quotes.
    pub(crate) header: String,
    /// `hDecls`: text for the header.
    pub(crate) header_text: String,
    /// `cDecls`: text for the source.
    pub(crate) source_text: String,
    /// Columns that code computes.
    pub(crate) synthetic: Vec<Synthetic>,
}

/// One column.
pub(super) struct Column<'a> {
    pub(super) schema: &'a ColumnSchema,
    /// Its name in C.
    pub(super) name: String,
    pub(super) shape: Shape,
}

/// How a column is shown (docs/spec/idl.md 7.3).
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

/// A text as a literal of C.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            // Trigraphs of old C are none without their question marks in a row.
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

/// Whether C takes a name as an identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// A name of a column as an identifier.
pub(super) fn member(name: &str) -> String {
    if KEYWORDS.contains(&format!(" {name} ")) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

/// The parameter of a setter for a column with this name in C.
pub(super) fn parameter(name: &str) -> String {
    if TAKEN.contains(&format!(" {name} ")) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

impl Names {
    /// The struct that a reference points to.
    pub(super) fn target(&self, base: &BaseType) -> Option<String> {
        let reference = base.reference.as_ref()?;
        Some(format!(
            "{}{}",
            self.prefix,
            reference.table_name.to_lowercase()
        ))
    }

    /// The type of a member.
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

    /// The type of an argument with one value.
    pub(super) fn argument(&self, base: &BaseType, is_clause: bool) -> String {
        match (base.atom, base.reference.is_some()) {
            (_, true) if is_clause => "const corvid_uuid *".to_owned(),
            (AtomType::String, _) | (_, true) => format!("const {}", self.type_of(base)),
            _ => self.type_of(base),
        }
    }

    /// The type of an argument that is an array.
    pub(super) fn array(&self, base: &BaseType, is_clause: bool) -> String {
        match (base.atom, base.reference.is_some()) {
            (_, true) if is_clause => "corvid_uuid **".to_owned(),
            (_, true) => format!("{}*", self.type_of(base)),
            (AtomType::String, _) => "const char **".to_owned(),
            _ => format!("const {}*", self.type_of(base)),
        }
    }

    /// The arguments of a setter behind the row.
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

    /// The statements that make atoms of the arguments of a setter and call a function with them.
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

/// An atom of an expression.
pub(super) fn atom(base: &BaseType, expression: &str, is_clause: bool) -> String {
    match (base.atom, base.reference.is_some()) {
        (_, true) if is_clause => format!("corvid_atom_uuid(*{expression})"),
        // A row that could not be inserted is null; an atom of another type makes the commit fail.
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

/// Atoms of arrays. Memory that is not there is reported by the library, as a null pointer.
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
