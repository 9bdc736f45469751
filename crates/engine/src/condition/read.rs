//! Parses a `where` array.

use corvid_data::{HashSeed, Symbols, TableSchema, Tag, WireError, wire};
use corvid_json::{Kind, Reader};

use super::{Clause, Condition, Function};
use crate::names::reborrow;
use crate::triple::Triple;

impl Condition {
    /// Parses the raw text of a `where` array. The text is valid JSON, and the caller has checked
    /// that it is an array. `symbols` is `None` in monitors, where named UUIDs are not allowed.
    ///
    /// # Errors
    /// Those of the table in docs/spec/protocol.md 5.4.
    pub fn parse(
        table: &TableSchema,
        raw: &[u8],
        mut symbols: Option<&mut dyn Symbols>,
        seed: HashSeed,
    ) -> Result<Condition, WireError> {
        let mut reader = Reader::trusted(raw);
        let mut clauses = Vec::new();
        let malformed = |_| malformed(raw);
        reader.begin_array().map_err(malformed)?;
        while reader.next_element().map_err(malformed)? {
            clauses.push(read_clause(table, &mut reader, reborrow(&mut symbols))?);
        }
        Ok(Condition::new(clauses, seed))
    }
}

fn malformed(clause: &[u8]) -> WireError {
    WireError::syntax(clause, "Parse error in condition.")
}

fn read_clause(
    table: &TableSchema,
    reader: &mut Reader<'_>,
    mut symbols: Option<&mut dyn Symbols>,
) -> Result<Clause, WireError> {
    if let Ok(Kind::Bool) = reader.peek() {
        let constant = reader.boolean().map_err(|_| malformed(b"null"))?;
        return Ok(Clause::Constant(constant));
    }
    let usual = Triple::read_usual(table, reader, |column, operator, reader| {
        let function = Function::from_name(operator)?;
        if !matches!(function, Function::Equal | Function::NotEqual) {
            return None;
        }
        let column_type = &table.column(column).column_type;
        let argument = wire::read_datum(reader, column_type, reborrow(&mut symbols)).ok()?;
        Some(Clause::Compare {
            column,
            function,
            argument,
        })
    });
    if let Some(usual) = usual {
        return Ok(usual);
    }
    let triple = Triple::read(table, reader, malformed)?;
    let Some(function) = Function::from_name(&triple.operator) else {
        let name = triple.shown_operator();
        return Err(WireError::new(
            Tag::UnknownFunction,
            format!("No function named {name}."),
        ));
    };
    let column = table.column(triple.column);
    if !function.is_defined_for(&column.column_type) {
        return Err(triple.type_mismatch(column));
    }
    Ok(Clause::Compare {
        column: triple.column,
        function,
        argument: function.read_argument(&column.column_type, triple.argument, symbols)?,
    })
}
