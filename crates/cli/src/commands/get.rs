//! `get`: values of one record.

use corvid_data::{ColumnId, text};

use super::{Context, Output};
use crate::failure::Failure;
use crate::grammar::argument;
use crate::grammar::chain::Invocation;
use crate::grammar::record;

pub(super) fn get(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    let (id, is_optional) = (invocation.value("--id"), invocation.has("--if-exists"));
    if id.is_some() && is_optional {
        return Err(Failure::usage(
            "--if-exists and --id may not be specified together",
        ));
    }
    let (table, schema) = context.table(invocation)?;
    let word = &invocation.args[1];
    let Some(row) = record::get(&mut context.contents, table, word, is_optional)? else {
        return Ok(Output::Text(String::new()));
    };
    if let Some(id) = id {
        context.names.define_existing(id, row)?;
    }
    let mut out = String::new();
    for text in &invocation.args[2..] {
        let argument = match text.eq_ignore_ascii_case("_uuid") {
            true => None,
            false => Some(argument::without_value(schema, text)?),
        };
        let column = argument.as_ref().map_or(ColumnId::UUID, |it| it.column);
        let datum = context.contents.rely_on(table, row, column)?;
        let column = schema.column(column);
        match argument.and_then(|argument| argument.key) {
            None => text::write_datum(&mut out, &datum, &column.column_type),
            Some(_) if !column.column_type.is_map() => {
                return Err(Failure::usage(format!(
                    "cannot specify key to get for non-map column {}",
                    column.name
                )));
            }
            Some(text) => {
                let key = context.names.read_atom(&text, &column.column_type.key);
                let key = key.map_err(Failure::usage)?;
                match datum.get(key.as_ref()) {
                    Some(value) => text::write_atom(&mut out, value),
                    None if is_optional => {}
                    None => {
                        return Err(Failure::no_match(format!(
                            "no key \"{text}\" in {} record \"{word}\" column {}",
                            schema.name, column.name
                        )));
                    }
                }
            }
        }
        out.push('\n');
    }
    Ok(Output::Text(out))
}
