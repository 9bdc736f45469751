//! The terminal of the shell: its width, whether it shows colours, and its state before the line
//! editor changed it.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use corvid_shell::{output, signals};
use rustix::termios::{self, OptionalActions, Termios};

/// The width of a terminal that does not tell it.
const COLUMNS: usize = 80;
/// Ends the mode in which the terminal marks pasted text.
const END_OF_PASTE_MODE: &[u8] = b"\x1b[?2004l\r\n";

/// The terminal's state at the start.
static SAVED: OnceLock<Termios> = OnceLock::new();

/// Whether a person types and reads here.
#[must_use]
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && output::is_terminal()
}

/// Keeps the state of the terminal, and restores it if a signal ends the process while the user
/// edits a line.
pub(crate) fn restore_at_death() {
    if let Ok(state) = termios::tcgetattr(io::stdin()) {
        SAVED.get_or_init(|| state);
        signals::before_death(restore);
    }
}

fn restore() {
    if let Some(state) = SAVED.get() {
        // The process ends: nobody is left to tell about errors.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, state);
        output::control(END_OF_PASTE_MODE);
    }
}

/// The number of columns.
#[must_use]
pub(crate) fn columns() -> usize {
    output::columns().unwrap_or(COLUMNS)
}

/// Whether to show colours: on a terminal that has them, unless `NO_COLOR` is set
/// (<https://no-color.org>).
#[must_use]
pub(crate) fn has_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    is_interactive() && !is_set("NO_COLOR") && !is_dumb
}
