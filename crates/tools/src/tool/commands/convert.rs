//! `convert` and `needs-conversion`: put the same rows under another schema.
//!
//! The file is replayed under its own schema, and its rows are converted afterwards, with every
//! check. (The reference replays the old records under the new schema, which silently loses rows if
//! a record no longer commits.)

use corvid_data::Arc;
use corvid_net::os_name;
use corvid_shell::{output, program};

use super::{Invocation, Outcome, compact, schema};
use crate::failure::Failure;
use crate::schema_file;
use crate::tool::answer::Answer;

/// Rewrites a database under another schema, in place or to a new file; if a row does not fit,
/// nothing changes.
pub(super) fn convert(invocation: &Invocation<'_>) -> Outcome {
    let schema = Arc::new(schema_file::read(&invocation.schema(1))?);
    let target = invocation.args.get(2).map(|name| os_name::path(name));
    let comment = format!("converted by ovsdb-tool {}", program::VERSION);
    compact::rewrite(
        &invocation.database(0),
        target.as_deref(),
        &comment,
        |database, uuids| database.convert(schema, uuids).map_err(Failure::from),
    )
}

/// Prints whether the schemas differ in canonical form, version and checksum included.
pub(super) fn needs_conversion(invocation: &Invocation<'_>) -> Outcome {
    let stored = schema::of_database(&invocation.database(0))?;
    let wanted = schema_file::read(&invocation.schema(1))?;
    let differs = stored.to_json() != wanted.to_json();
    output::line(if differs { "yes" } else { "no" });
    Ok(Answer::Yes)
}
