//! Reading a `where` array.

use corvid_data::{
    AtomType, ColumnSchema, ColumnType, Datum, Symbols, TableSchema, Tag, WireError, wire,
};
use corvid_json::{Kind, Reader};

use super::{Clause, Condition, Function};
use crate::names::reborrow;

impl Condition {
    /// Reads the raw text of a `where` array (valid JSON; anything but an array is the caller's type mismatch).
    /// `symbols: None` in monitors, where named UUIDs are not allowed.
    ///
    /// # Errors
    /// The table of protocol.md 5.4.
    pub fn parse(
        table: &TableSchema,
        raw: &[u8],
        mut symbols: Option<&mut dyn Symbols>,
    ) -> Result<Condition, WireError> {
        let mut reader = Reader::trusted(raw);
        let mut clauses = Vec::new();
        let malformed = |_| malformed(raw);
        reader.begin_array().map_err(malformed)?;
        while reader.next_element().map_err(malformed)? {
            clauses.push(read_clause(table, &mut reader, reborrow(&mut symbols))?);
        }
        Ok(Condition::new(clauses))
    }
}

fn malformed(clause: &[u8]) -> WireError {
    WireError::syntax(clause, "Parse error in condition.")
}

fn read_clause(
    table: &TableSchema,
    reader: &mut Reader<'_>,
    symbols: Option<&mut dyn Symbols>,
) -> Result<Clause, WireError> {
    if let Ok(Kind::Bool) = reader.peek() {
        let constant = reader.boolean().map_err(|_| malformed(b"null"))?;
        return Ok(Clause::Constant(constant));
    }
    let raw = reader.skip().map_err(|_| malformed(b"null"))?;
    read_comparison(table, raw, symbols)
}

/// Reads `[column, function, argument]`. The shape is checked before anything in it.
fn read_comparison(
    table: &TableSchema,
    raw: &[u8],
    symbols: Option<&mut dyn Symbols>,
) -> Result<Clause, WireError> {
    let Some([name, function_name, argument]) = triple(raw) else {
        return Err(malformed(raw));
    };
    let (Ok(name), Ok(function_name)) = (
        Reader::trusted(name).string(),
        Reader::trusted(function_name).string(),
    ) else {
        return Err(malformed(raw));
    };
    let Some(column) = std::str::from_utf8(&name)
        .ok()
        .and_then(|name| table.column_id(name))
    else {
        return Err(unknown_column(table, &name, raw));
    };
    let Some(function) = Function::from_name(&function_name) else {
        let name = String::from_utf8_lossy(&function_name);
        return Err(WireError::new(
            Tag::UnknownFunction,
            format!("No function named {name}."),
        ));
    };
    let column_schema = table.column(column);
    if function.is_ordering() && !is_ordered(&column_schema.column_type) {
        return Err(type_mismatch(&function_name, column_schema, raw));
    }
    let argument = read_argument(function, &column_schema.column_type, argument, symbols)?;
    Ok(Clause::Compare {
        column,
        function,
        argument,
    })
}

/// The three elements of an array of three.
pub(crate) fn triple(raw: &[u8]) -> Option<[&[u8]; 3]> {
    let mut reader = Reader::trusted(raw);
    reader.begin_array().ok()?;
    let mut elements: [&[u8]; 3] = [&[]; 3];
    for element in &mut elements {
        if !reader.next_element().ok()? {
            return None;
        }
        *element = reader.skip().ok()?;
    }
    let has_more = reader.next_element().ok()?;
    (!has_more).then_some(elements)
}

/// `No column C in table T.`, with the clause, mutation or row it was found in.
pub(crate) fn unknown_column(table: &TableSchema, name: &[u8], fragment: &[u8]) -> WireError {
    let name = String::from_utf8_lossy(name);
    WireError::new(
        Tag::UnknownColumn,
        format!("No column {name} in table {}.", table.name),
    )
    .with_fragment(fragment)
}

/// `Type mismatch: ...`, with the clause or mutation it was found in.
pub(crate) fn type_mismatch(operator: &[u8], column: &ColumnSchema, fragment: &[u8]) -> WireError {
    WireError::syntax(
        fragment,
        format!(
            "Type mismatch: \"{}\" operator may not be applied to column {} of type {}.",
            String::from_utf8_lossy(operator),
            column.name,
            column.column_type.english(),
        ),
    )
}

/// Scalars and optional scalars of numbers have an order.
fn is_ordered(column_type: &ColumnType) -> bool {
    (column_type.is_scalar() || column_type.is_optional_scalar())
        && matches!(column_type.key.atom, AtomType::Integer | AtomType::Real)
}

fn read_argument(
    function: Function,
    column_type: &ColumnType,
    raw: &[u8],
    symbols: Option<&mut dyn Symbols>,
) -> Result<Datum, WireError> {
    let reader = &mut Reader::trusted(raw);
    let with_min = |min| ColumnType {
        min,
        ..column_type.clone()
    };
    match function {
        Function::Equal | Function::NotEqual => wire::read_datum(reader, column_type, symbols),
        _ if column_type.is_scalar() => wire::read_datum(reader, column_type, symbols),
        Function::Excludes => wire::read_diff(reader, column_type, symbols),
        Function::Includes => wire::read_datum(reader, &with_min(0), symbols),
        // What has an order holds at most one element, so one is also the most.
        _ => wire::read_datum(reader, &with_min(1), symbols),
    }
}
