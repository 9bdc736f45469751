//! `compact`: the same contents without their history.

use std::path::Path;

use corvid_engine::Database;
use corvid_os::program;

use super::{Invocation, Outcome};
use crate::database::DatabaseFile;
use crate::failure::{Answer, Failure};
use crate::replacement;
use crate::uuids::RandomUuids;

/// Rewrites a database, in place or to a new file.
pub(super) fn compact(invocation: &Invocation<'_>) -> Outcome {
    let comment = format!("compacted by ovsdb-tool {}", program::VERSION);
    rewrite(
        &invocation.database(0),
        invocation.args.get(1).map(Path::new),
        &comment,
        |database, _| Ok(database),
    )
}

/// Reads the database at `path`, lets `change` have it, and writes the outcome to `target` or over `path`. A file that is
/// replaced stays locked from before it is read until it is replaced.
pub(super) fn rewrite(
    path: &Path,
    target: Option<&Path>,
    comment: &str,
    change: impl FnOnce(Database, &mut RandomUuids) -> Result<Database, Failure>,
) -> Outcome {
    let _lock = match target {
        Some(_) => None,
        None => Some(replacement::lock(path)?),
    };
    let mut uuids = RandomUuids::new()?;
    let (database, _) = DatabaseFile::open(path)?.load()?.finish(&mut uuids)?;
    let database = change(database, &mut uuids)?;
    match target {
        Some(target) => replacement::create(target, &database, comment)?,
        None => replacement::replace(path, &database, comment)?,
    }
    Ok(Answer::Yes)
}
