//! `create`: a database file without rows.

use corvid_log::write_schema;

use super::{Invocation, Outcome};
use crate::failure::Answer;
use crate::{replacement, schema_file};

/// Makes a new file that holds the schema in canonical form.
pub(super) fn create(invocation: &Invocation<'_>) -> Outcome {
    let schema = schema_file::read(&invocation.schema(1))?;
    let mut record = Vec::new();
    write_schema(&mut record, &schema);
    replacement::create_with(&invocation.database(0), |file| {
        file.append(&[&record])
            .map_err(|error| replacement::disk_failure(&error))
    })?;
    Ok(Answer::Yes)
}
