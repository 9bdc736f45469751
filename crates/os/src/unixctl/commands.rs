//! The commands that every daemon has, whatever it serves.

use super::Registry;
use crate::{coverage, program, vlog};

/// Registers them. `list-commands` and `set-options` are answered by the server itself and stand here for the listing and
/// for their argument counts.
pub fn register_builtin<C: 'static>(registry: &mut Registry<C>) {
    registry.register("list-commands", "", 0, 0, |_, _| Ok(String::new()));
    registry.register("set-options", "[--format text|json]", 1, 2, |_, _| {
        Ok(String::new())
    });
    registry.register("version", "", 0, 0, |_, _| Ok(program::version_line()));
    vlog::register_commands(registry);
    coverage::register_commands(registry);
}
