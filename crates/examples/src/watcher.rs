//! Prints the changes of logical switch ports, one line for each change.
//!
//! ```text
//! + lsp1 ["0a:00:00:00:00:01 10.0.0.1"]     the port appeared
//! ~ lsp1 up: true                           a column changed
//! - lsp1                                    the port was deleted
//! ```

use std::io::{self, Write};

use corvid::Class;
use corvid::Idl;
use corvid::typed::{Row, Tracked};

use crate::ovn_northbound::{LogicalSwitchPort, class};

/// Returns a class that replicates and tracks the printed columns.
#[must_use]
pub fn watched() -> Class {
    let mut class = class();
    class.track(LogicalSwitchPort::NAME);
    class.track(LogicalSwitchPort::ADDRESSES);
    class.track(LogicalSwitchPort::UP);
    class
}

/// Prints the changes since the last call.
///
/// # Errors
/// If `out` cannot be written.
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
