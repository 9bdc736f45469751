//! Prints changes of logical switch ports, one line for each.
//!
//! ```text
//! + lsp1 ["0a:00:00:00:00:01 10.0.0.1"]     it came
//! ~ lsp1 up: true                           a column of it changed
//! - lsp1                                    it went
//! ```

use std::io::{self, Write};

use corvid::Class;
use corvid::Idl;
use corvid::typed::{Row, Tracked};

use crate::ovn_northbound::{LogicalSwitchPort, class};

/// The columns that are shown, and that changes are told of.
#[must_use]
pub fn watched() -> Class {
    let mut class = class();
    class.track(LogicalSwitchPort::NAME);
    class.track(LogicalSwitchPort::ADDRESSES);
    class.track(LogicalSwitchPort::UP);
    class
}

/// Shows what changed since the last time.
///
/// # Errors
/// `out` does not take it.
pub fn show(idl: &mut Idl, out: &mut impl Write) -> io::Result<()> {
    for (port, change) in LogicalSwitchPort::changes(idl) {
        show_port(idl, port, change, out)?;
    }
    idl.clear_changes();
    out.flush()
}

fn show_port(
    idl: &Idl,
    port: LogicalSwitchPort,
    change: &Tracked,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = port.name(idl);
    if change.is_new && change.is_deleted {
        return Ok(());
    }
    if change.is_deleted {
        return writeln!(out, "- {name}");
    }
    if change.is_new {
        return writeln!(out, "+ {name} {:?}", Vec::from_iter(port.addresses(idl)));
    }
    if LogicalSwitchPort::ADDRESSES.is_changed(change) {
        writeln!(
            out,
            "~ {name} addresses: {:?}",
            Vec::from_iter(port.addresses(idl))
        )?;
    }
    if LogicalSwitchPort::UP.is_changed(change) {
        let up = port
            .up(idl)
            .map_or("unknown", |up| if up { "true" } else { "false" });
        writeln!(out, "~ {name} up: {up}")?;
    }
    Ok(())
}
