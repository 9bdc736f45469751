//! `wait-until`: waits for a record, and for conditions about it.

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
    let found = record::find(&mut context.contents, table, &invocation.args[1])?;
    let holds = match found {
        None => false,
        Some(row) => conditions.hold(|column| context.contents.read(table, row, column))?,
    };
    if !holds {
        context.must_wait = true;
    }
    Ok(Output::Text(String::new()))
}
