//! `create`: creates a database file without rows.

use corvid_log::write_schema;

use super::{Invocation, Outcome};
use crate::schema_file;
use crate::tool::answer::Answer;
use crate::tool::new_file;

/// Creates a file with the schema in canonical form.
pub(super) fn create(invocation: &Invocation<'_>) -> Outcome {
    let schema = schema_file::read(&invocation.schema(1))?;
    let mut record = Vec::new();
    write_schema(&mut record, &schema);
    new_file::create(&invocation.database(0), &record)?;
    Ok(Answer::Yes)
}
