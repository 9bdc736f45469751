//! The commands that every daemon has.

use super::Registry;
use crate::{events, program, vlog};
use corvid_net::coverage::{self, events as net_events};
use corvid_reactor::events as reactor_events;

/// Registers them. `list-commands` and `set-options` are handled by the server itself and are here for the listing and
/// for their argument counts.
pub fn register_builtin<C: 'static>(registry: &mut Registry<C>) {
    registry.register("list-commands", "", 0, 0, |_, _| Ok(String::new()));
    registry.register("set-options", "[--format text|json]", 1, 2, |_, _| {
        Ok(String::new())
    });
    registry.register("version", "", 0, 0, |_, _| {
        Ok(format!("{}\n{}", program::version_line(), program::CORVID))
    });
    vlog::register_commands(registry);
    register_coverage(registry);
    registry.describe(&[
        ("list-commands", "list the commands"),
        (
            "set-options",
            "choose the format of replies on this connection",
        ),
        ("version", "print the version"),
        (
            "vlog/set",
            "set logging levels, or patterns; without an argument, log everything",
        ),
        ("vlog/list", "list logging levels"),
        ("vlog/list-pattern", "list logging patterns"),
        (
            "vlog/enable-rate-limit",
            "limit the rate of repeated messages again",
        ),
        (
            "vlog/disable-rate-limit",
            "log repeated messages however often they come",
        ),
        (
            "vlog/reopen",
            "reopen the log file, after it has been renamed",
        ),
        ("vlog/close", "close the log file"),
        (
            "coverage/show",
            "print how often internal events have happened",
        ),
        (
            "coverage/read-counter",
            "print the count of one internal event",
        ),
    ]);
}

/// Registers `coverage/show` and `coverage/read-counter`, and lists the counters of this crate and of those below it.
fn register_coverage<C: 'static>(registry: &mut Registry<C>) {
    for counter in net_events::ALL
        .iter()
        .chain(&reactor_events::ALL)
        .chain(&events::ALL)
    {
        counter.list();
    }
    registry.register("coverage/show", "", 0, 0, |_, _| Ok(coverage::show()));
    registry.register("coverage/read-counter", "COUNTER", 1, 1, |_, args| {
        let total = coverage::read(&args[0]).ok_or("No such counter")?;
        Ok(format!("{total}\n"))
    });
}
