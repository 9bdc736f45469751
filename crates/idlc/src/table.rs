//! Generates the Rust code for one table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use corvid_data::{ColumnSchema, Schema, TableId};

use crate::element::{self, ElementType};
use crate::error::Error;
use crate::names;

/// One column, with its names and types in Rust.
struct Column<'a> {
    schema: &'a ColumnSchema,
    number: u16,
    method: String,
    constant: String,
    key: ElementType,
    value: Option<ElementType>,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    OneRow,
    Optional,
    Set,
    Map,
}

impl Column<'_> {
    /// Returns the column's kind as a type of `corvid::typed`.
    fn kind(&self) -> String {
        let key = &self.key.name;
        match (self.shape, &self.value) {
            (Shape::Map, Some(value)) => format!("Map<{key}, {}>", value.name),
            (Shape::OneRow, _) => format!("OneRow<{key}>"),
            (Shape::Optional, _) => format!("Optional<{key}>"),
            (Shape::Set, _) => format!("Set<{key}>"),
            _ => format!("One<{key}>"),
        }
    }

    /// Returns the type of the values that the getter returns.
    fn shown(&self) -> String {
        let key = &self.key.name;
        match (self.shape, &self.value) {
            (Shape::Map, Some(value)) => format!("BTreeMap<{key}, {}>", value.name),
            (Shape::OneRow | Shape::Optional, _) => format!("Option<{key}>"),
            (Shape::Set, _) => format!("BTreeSet<{key}>"),
            _ => key.clone(),
        }
    }

    /// Returns the type of the setter's argument, and the expression that converts the argument to
    /// a value.
    fn taken(&self) -> (String, String) {
        let (key, convert) = (self.key.argument(), self.key.conversion());
        match (self.shape, &self.value) {
            (Shape::Map, Some(value)) => {
                let pairs = format!("impl IntoIterator<Item = ({key}, {})>", value.argument());
                let made = if self.key.is_text() || value.is_text() {
                    let converted = value.conversion();
                    format!(
                        "value.into_iter().map(|(key, value)| (key{convert}, value{converted})).collect()"
                    )
                } else {
                    "value.into_iter().collect()".to_owned()
                };
                (pairs, made)
            }
            (Shape::Optional, _) if self.key.is_text() => {
                ("Option<&str>".to_owned(), "value.map(Str::new)".to_owned())
            }
            (Shape::OneRow | Shape::Optional, _) => {
                (format!("Option<{}>", self.key.name), "value".to_owned())
            }
            (Shape::Set, _) if self.key.is_text() => (
                format!("impl IntoIterator<Item = {key}>"),
                "value.into_iter().map(Into::into).collect()".to_owned(),
            ),
            (Shape::Set, _) => (
                format!("impl IntoIterator<Item = {key}>"),
                "value.into_iter().collect()".to_owned(),
            ),
            _ => (key.to_owned(), format!("value{convert}")),
        }
    }
}

/// Generates all code for one table.
pub(crate) fn table(
    schema: &Schema,
    id: TableId,
    types: &BTreeMap<TableId, String>,
) -> Result<String, Error> {
    let table = schema.table(id);
    let (row, name) = (&types[&id], &table.name);
    let mut columns = Vec::new();
    let mut taken = BTreeSet::new();
    for (number, schema) in (0u16..).zip(table.columns()) {
        let column = column(schema, number, row, types);
        let functions = [column.method.clone(), format!("set_{}", column.method)];
        if !functions.into_iter().all(|function| taken.insert(function)) {
            return Err(Error::Clash(format!(
                "column {} of table {name}",
                schema.name
            )));
        }
        columns.push(column);
    }
    let mut out = String::new();
    let about = match (table.is_root, table.max_rows) {
        (_, 1) => " There is at most one.",
        (false, _) => " It exists only while another row refers to it.",
        (true, _) => "",
    };
    write_out(
        &mut out,
        &format!(
            "/// A row of `{name}`.{about}\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]\n\
         pub struct {row}(RowId);\n\
         impl Row for {row} {{\n\
         const TABLE: TableId = TableId({number});\n\
         fn of(row: RowId) -> Self {{ Self(row) }}\n\
         fn id(self) -> RowId {{ self.0 }}\n\
         }}\n",
            number = id.0
        ),
    );
    write_out(
        &mut out,
        &format!(
            "/// The columns of `{name}`, for classes, indexes, conditions, fetches and tracked changes.\nimpl {row} {{\n"
        ),
    );
    for column in &columns {
        write_out(&mut out, &constant(column));
    }
    write_out(
        &mut out,
        &format!(
            "}}\n/// Values of rows of `{name}`, in columns that the class selects. All values of a missing row are empty.\nimpl {row} {{\n"
        ),
    );
    for column in &columns {
        write_out(&mut out, &getter(column));
    }
    write_out(
        &mut out,
        &format!("}}\n/// Changes to rows of `{name}`, in the open transaction.\nimpl {row} {{\n"),
    );
    for column in &columns {
        write_out(&mut out, &setters(column));
    }
    write_out(&mut out, "}\n");
    for column in &columns {
        let column_type = &column.schema.column_type;
        let bases = [
            Some((&column_type.key, &column.key)),
            column_type.value.as_ref().zip(column.value.as_ref()),
        ];
        for (base, element) in bases.into_iter().flatten() {
            let variants =
                element::variants(base).filter(|_| !element.is_row && !element.is_text());
            if let Some(variants) = variants {
                let what = format!("`{}` of `{name}`", column.schema.name);
                write_out(&mut out, &enumeration(&element.name, &what, &variants));
            }
        }
    }
    Ok(out)
}

/// Appends text to a string. Writing to a string cannot fail, so the result is ignored.
fn write_out(out: &mut String, text: &str) {
    let _ = out.write_str(text);
}

fn column<'a>(
    schema: &'a ColumnSchema,
    number: u16,
    row: &str,
    types: &BTreeMap<TableId, String>,
) -> Column<'a> {
    let column_type = &schema.column_type;
    let enumeration = format!("{row}{}", names::camel(&schema.name));
    let key = element::element(&column_type.key, &enumeration, types);
    let value = column_type.value.as_ref();
    let value = value.map(|value| element::element(value, &format!("{enumeration}Value"), types));
    let shape = match (value.is_some(), column_type.min, column_type.max) {
        (true, ..) => Shape::Map,
        (false, 1, 1) if key.is_row => Shape::OneRow,
        (false, 1, 1) => Shape::One,
        (false, 0, 1) => Shape::Optional,
        _ => Shape::Set,
    };
    Column {
        schema,
        number,
        method: names::method(&schema.name),
        constant: names::constant(&schema.name),
        key,
        value,
        shape,
    }
}

fn constant(column: &Column<'_>) -> String {
    format!(
        "/// `{name}`: {words}{fixed}.\n\
         pub const {constant}: TypedColumn<Self, {kind}> = TypedColumn::new(ColumnId({number}), \"{name}\");\n",
        name = column.schema.name,
        words = element::in_words(&column.schema.column_type),
        fixed = if column.schema.mutable {
            ""
        } else {
            "; immutable after the insert"
        },
        constant = column.constant,
        kind = column.kind(),
        number = column.number,
    )
}

fn getter(column: &Column<'_>) -> String {
    let Column {
        method, constant, ..
    } = column;
    let hidden = match (
        column.shape,
        column.key.is_row || column.value.as_ref().is_some_and(|value| value.is_row),
    ) {
        (_, false) => "",
        (Shape::OneRow | Shape::Optional, true) => " `None` if the row is missing.",
        (_, true) => " Missing rows are omitted.",
    };
    format!(
        "/// The value of `{}`.{hidden}\n#[must_use]\n\
         pub fn {method}(self, idl: &Idl) -> {} {{ Self::{constant}.read(self, idl) }}\n",
        column.schema.name,
        column.shown(),
    )
}

fn setters(column: &Column<'_>) -> String {
    let Column {
        method, constant, ..
    } = column;
    let name = &column.schema.name;
    let (taken, made) = column.taken();
    let errors = "///\n/// # Errors\n/// As [`Idl::write`].\n";
    let mut out = format!(
        "/// Writes `{name}` as a whole.\n{errors}\
         pub fn set_{method}(self, idl: &mut Idl, value: {taken}) -> Result<(), Misuse> {{\n\
         Self::{constant}.write(self, idl, {made})\n}}\n"
    );
    let (key, convert) = (column.key.argument(), column.key.conversion());
    let bare = method.trim_end_matches('_');
    match (column.shape, &column.value) {
        (Shape::Set, _) => {
            for (verb, does) in [
                ("add", "Adds an element to"),
                ("remove", "Removes an element from"),
            ] {
                write_out(
                    &mut out,
                    &format!(
                        "/// {does} `{name}`; returns whether that changed it.\n{errors}\
                     pub fn {verb}_{bare}(self, idl: &mut Idl, value: {key}) -> Result<bool, Misuse> {{\n\
                     Self::{constant}.{verb}(self, idl, value{convert})\n}}\n"
                    ),
                );
            }
        }
        (Shape::Map, Some(value)) => {
            let (taken, converted) = (value.argument(), value.conversion());
            write_out(
                &mut out,
                &format!(
                    "/// Sets the value at a key of `{name}`; returns whether that changed it.\n{errors}\
                 pub fn set_{bare}_key(self, idl: &mut Idl, key: {key}, value: {taken}) -> Result<bool, Misuse> {{\n\
                 Self::{constant}.set_key(self, idl, key{convert}, value{converted})\n}}\n\
                 /// Removes a key from `{name}`; returns whether that changed it.\n{errors}\
                 pub fn remove_{bare}_key(self, idl: &mut Idl, key: {key}) -> Result<bool, Misuse> {{\n\
                 Self::{constant}.remove_key(self, idl, key{convert})\n}}\n"
                ),
            );
        }
        _ => {}
    }
    out
}

fn enumeration(name: &str, what: &str, variants: &[(String, String)]) -> String {
    let (mut declared, mut shown, mut read) = (String::new(), String::new(), String::new());
    for (variant, text) in variants {
        write_out(&mut declared, &format!("/// `{text}`\n{variant},\n"));
        write_out(&mut shown, &format!("{name}::{variant} => {text:?},\n"));
        write_out(&mut read, &format!("{text:?} => {name}::{variant},\n"));
    }
    format!(
        "/// Values of {what}.\n\
         #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]\n\
         pub enum {name} {{\n{declared}/// A value that this code does not know.\nOther(Str),\n}}\n\
         impl {name} {{\n/// The value as stored in the database.\n#[must_use]\npub fn as_str(&self) -> &str {{\n\
         match self {{\n{shown}{name}::Other(text) => text,\n}}\n}}\n}}\n\
         impl From<&str> for {name} {{\nfn from(text: &str) -> Self {{\nmatch text {{\n{read}_ => {name}::Other(text.into()),\n}}\n}}\n}}\n\
         impl std::fmt::Display for {name} {{\nfn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{\nf.write_str(self.as_str())\n}}\n}}\n\
         impl Default for {name} {{\nfn default() -> Self {{ {name}::Other(Str::default()) }}\n}}\n\
         impl Element for {name} {{\n\
         fn from_atom(atom: AtomRef<'_>) -> Option<Self> {{ Str::from_atom(atom).map(|text| Self::from(text.as_str())) }}\n\
         fn into_atom(self) -> Atom {{ Atom::String(self.as_str().into()) }}\n}}\n"
    )
}
