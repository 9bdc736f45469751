//! `compact`: the same contents without their history.

use std::path::Path;

use corvid_engine::Database;
use corvid_shell::program;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::database::DatabaseFile;
use crate::tool::replacement::{Place, Wording};
use crate::tool::uuids::RandomUuids;

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

/// Reads the database at `path`, lets `change` have it, and writes the outcome to `target`, which must not exist, or over
/// `path`. The file to be written is locked from before the other is read until it is complete.
pub(super) fn rewrite(
    path: &Path,
    target: Option<&Path>,
    comment: &str,
    change: impl FnOnce(Database, &mut RandomUuids) -> Result<Database, Failure>,
) -> Outcome {
    let place = match target {
        Some(target) => Place::lock_new(target, Wording::Bare)?,
        None => Place::lock(path)?,
    };
    let mut uuids = RandomUuids::new()?;
    let (database, _) = DatabaseFile::open(path)?
        .with_progress()
        .load()?
        .finish(&mut uuids)?;
    let database = change(database, &mut uuids)?;
    place.fill(&database, comment)?;
    Ok(Answer::Yes)
}
