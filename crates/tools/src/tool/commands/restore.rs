//! `restore`: writes the contents at a moment to a new standalone file. Rows keep their UUIDs.

use corvid_net::os_name;
use corvid_shell::program;

use super::{Invocation, Outcome};
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::history;
use crate::tool::replacement::{Target, Wording};
use crate::uuids::RandomUuids;

/// Writes the new file. If this fails, no file remains.
pub(super) fn restore(invocation: &Invocation<'_>) -> Outcome {
    let [_, new] = invocation.args else {
        return Err(Failure::new("FILE NEW expected"));
    };
    let moment = invocation.options.history.at.as_deref();
    let moment = moment.ok_or_else(|| Failure::new("--at=MOMENT is required"))?;
    let target = Target::lock_new(&os_name::path(new), Wording::Tagged)?;
    let mut uuids = RandomUuids::new()?;
    let database = history::state_at(&invocation.database(0), moment, &mut uuids)?;
    let comment = format!("restored by ovsdb-tool {}", program::VERSION);
    target.fill(&database, &comment)?;
    Ok(Answer::Yes)
}
