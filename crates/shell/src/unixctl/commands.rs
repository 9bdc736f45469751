//! The commands that every daemon has.

use super::{Command, Registry};
use crate::{events, program, vlog};
use corvid_net::coverage::{self, events as net_events};
use corvid_reactor::events as reactor_events;

/// Registers these commands, and lists the counters of this crate and of those below it. The server
/// itself handles `list-commands` and `set-options`; they are registered here for the listing and
/// for their argument counts.
pub fn register_builtin<C: 'static>(registry: &mut Registry<C>) {
    let counters = net_events::ALL.iter().chain(&reactor_events::ALL);
    for counter in counters.chain(&events::ALL) {
        counter.list();
    }
    vlog::register_commands(registry);
    registry.add([
        Command::new("list-commands", "", 0..=0, "list the commands", |_, _| {
            Ok(String::new())
        }),
        Command::new(
            "set-options",
            "[--format text|json]",
            1..=2,
            "choose the format of replies on this connection",
            |_, _| Ok(String::new()),
        ),
        Command::new("version", "", 0..=0, "print the version", |_, _| {
            Ok(format!("{}\n{}", program::version_line(), program::CORVID))
        }),
        Command::new(
            "coverage/show",
            "",
            0..=0,
            "print how often internal events have happened",
            |_, _| Ok(coverage::show()),
        ),
        Command::new(
            "coverage/read-counter",
            "COUNTER",
            1..=1,
            "print the count of one internal event",
            |_, args| {
                let total = coverage::read(&args[0]).ok_or("No such counter")?;
                Ok(format!("{total}\n"))
            },
        ),
    ]);
}
