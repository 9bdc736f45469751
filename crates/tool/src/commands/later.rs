//! Commands on clusters, which need the consensus crate.

use super::{Invocation, Outcome};
use crate::failure::Failure;

/// Says that the command is known and not available.
pub(super) fn unsupported(invocation: &Invocation<'_>) -> Outcome {
    let name = invocation.options.words.first().map_or("", String::as_str);
    Err(Failure::new(format!(
        "'{name}': clustered databases are not supported by this version"
    )))
}
