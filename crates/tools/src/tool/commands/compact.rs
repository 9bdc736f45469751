//! `compact`: rewrites a database without its history.

use std::path::Path;

use corvid_engine::Database;
use corvid_net::os_name;
use corvid_shell::program;
use corvid_shell::progress::Spinner;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::database::DatabaseFile;
use crate::tool::replacement::{Target, Wording};
use crate::uuids::RandomUuids;

/// Rewrites a database, in place or to a new file.
pub(super) fn compact(invocation: &Invocation<'_>) -> Outcome {
    let comment = format!("compacted by ovsdb-tool {}", program::VERSION);
    rewrite(
        &invocation.database(0),
        invocation
            .args
            .get(1)
            .map(|name| os_name::path(name))
            .as_deref(),
        &comment,
        |database, _| Ok(database),
    )
}

/// Reads the database at `path`, changes it with `change`, and writes the result to `target`, which
/// must not exist, or over `path`. The written file is locked from before the other one is read
/// until it is complete.
pub(super) fn rewrite(
    path: &Path,
    target: Option<&Path>,
    comment: &str,
    change: impl FnOnce(Database, &mut RandomUuids) -> Result<Database, Failure>,
) -> Outcome {
    let target = match target {
        Some(target) => Target::lock_new(target, Wording::Bare)?,
        None => Target::lock(path)?,
    };
    let mut uuids = RandomUuids::new()?;
    let (database, _) = DatabaseFile::open(path)?.load()?.finish(&mut uuids)?;
    let progress = Spinner::new("Converting");
    let database = change(database, &mut uuids)?;
    drop(progress);
    target.fill(&database, comment)?;
    Ok(Answer::Yes)
}
