//! The terminal: its width, whether it shows colours, its state before the line editor changed it,
//! and a screen of its own for a picture.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use corvid_shell::{output, signals};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

/// The width of a terminal that does not tell it.
const COLUMNS: usize = 80;
/// Ends the mode in which the terminal marks pasted text.
const END_OF_PASTE_MODE: &[u8] = b"\x1b[?2004l\r\n";

/// Begins a second screen without a cursor, and ends it.
const BEGIN_OF_SCREEN: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const END_OF_SCREEN: &[u8] = b"\x1b[?25h\x1b[?1049l";

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

/// A [`Screen`] is open.
static HAS_SCREEN: AtomicBool = AtomicBool::new(false);

fn restore() {
    if HAS_SCREEN.load(Ordering::SeqCst) {
        output::control(END_OF_SCREEN);
    }
    if let Some(state) = SAVED.get() {
        // The process ends: nobody is left to tell about errors.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, state);
        output::control(END_OF_PASTE_MODE);
    }
}

/// The terminal's second screen, on which keys arrive at once and unseen, Ctrl-C among them. Ends
/// when it is dropped, or when a signal ends the process.
#[derive(Debug)]
pub(crate) struct Screen {
    before: Option<Termios>,
}

impl Screen {
    /// Opens it.
    pub(crate) fn open() -> Screen {
        restore_at_death();
        let before = termios::tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            let modes = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            raw.local_modes.remove(modes);
            // Without it, keys arrive with the next line.
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        }
        HAS_SCREEN.store(true, Ordering::SeqCst);
        output::control(BEGIN_OF_SCREEN);
        Screen { before }
    }

    /// Draws lines over the last picture, as many as there is room for. They contain no control
    /// characters except for colours, and are not wider than the screen.
    pub(crate) fn draw(&self, text: &str, lines: usize) {
        let mut bytes = b"\x1b[H".to_vec();
        for line in text.lines().take(lines.saturating_sub(1)) {
            bytes.extend_from_slice(line.as_bytes());
            bytes.extend_from_slice(b"\x1b[K\r\n");
        }
        bytes.extend_from_slice(b"\x1b[J");
        output::control(&bytes);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        output::control(END_OF_SCREEN);
        HAS_SCREEN.store(false, Ordering::SeqCst);
        if let Some(before) = &self.before {
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
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
