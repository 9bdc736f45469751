//! `create` and `destroy`: whole records.

use corvid_data::Uuid;

use super::change::set_column;
use super::{Context, Output};
use crate::contents::Origin;
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::grammar::record;

pub(super) fn create(
    context: &mut Context<'_>,
    invocation: &Invocation,
) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    let number = context.number;
    let (row, origin) = match invocation.value("--id") {
        None => {
            if !schema.is_root {
                context.warnings.push(format!(
                    "applying \"create\" command to table {} without --id option will have no effect",
                    schema.name
                ));
            }
            (context.names.fresh(), Origin::Created(number))
        }
        Some(id) => match Uuid::parse(id.as_bytes()) {
            Some(uuid) => (uuid, Origin::CreatedAs(number)),
            None => {
                let uuid = context.names.define(id, schema.is_root)?;
                (uuid, Origin::Created(number))
            }
        },
    };
    context.contents.create(table, row, origin);
    for text in &invocation.args[1..] {
        set_column(context, (table, schema), row, text)?;
    }
    Ok(Output::Created(row))
}

pub(super) fn destroy(
    context: &mut Context<'_>,
    invocation: &Invocation,
) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    if !schema.is_root {
        context.warnings.push(format!(
            "applying \"destroy\" command to table {} has no effect by itself: the server deletes a record when no other refers to it",
            schema.name
        ));
    }
    let words = &invocation.args[1..];
    let is_optional = invocation.has("--if-exists");
    let mut rows = Vec::new();
    if invocation.has("--all") {
        if !words.is_empty() {
            return Err(Failure::usage(
                "--all and records argument should not be specified together",
            ));
        }
        if is_optional {
            return Err(Failure::usage(
                "--all and --if-exists should not be specified together",
            ));
        }
        rows = context.contents.rows(table, &[], &[])?;
    }
    for word in words {
        // One after the other: the second of two equal names finds nothing.
        if let Some(row) = record::get(&mut context.contents, table, word, is_optional)? {
            context.contents.delete(table, row);
        }
    }
    for row in rows {
        context.contents.delete(table, row);
    }
    Ok(Output::Text(String::new()))
}
