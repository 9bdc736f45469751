//! `wait-until`: waits for a record, and for conditions about it.

use corvid_data::Uuid;

use super::{Context, Output};
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::grammar::condition::Conditions;
use crate::grammar::record;

pub(super) fn wait_until(
    context: &mut Context<'_>,
    invocation: &Invocation,
) -> Result<Output, Failure> {
    let (table, schema) = context.table(invocation)?;
    let conditions = Conditions::parse(schema, &invocation.args[2..], &mut context.names);
    let word = &invocation.args[1];
    let found = match Uuid::parse(word.as_bytes()) {
        // The row exists until the commit, and afterwards no wait could end.
        Some(uuid) if context.contents.will_delete(table, uuid) => Some(uuid),
        _ => record::find(&mut context.contents, table, word)?,
    };
    let holds = match found {
        None => false,
        Some(row) => conditions.hold(|column| context.contents.read(table, row, column))?,
    };
    if !holds {
        context.must_wait = true;
    }
    Ok(Output::Text(String::new()))
}
