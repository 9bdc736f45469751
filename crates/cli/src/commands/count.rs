//! `count`: the number of records.

use super::{Context, Output, list};
use crate::failure::Failure;
use crate::grammar::chain::Invocation;

pub(super) fn count(context: &mut Context<'_>, invocation: &Invocation) -> Result<Output, Failure> {
    let (table, _) = context.table(invocation)?;
    let rows = list::matching(context, table, invocation, &invocation.args[1..], &[])?;
    Ok(Output::Text(format!("{}\n", rows.len())))
}
