//! A program on a pseudo terminal: keys go in, and what a person would see comes out.
//!
//! `script` of util-linux provides the terminal, and `vt100` the screen. Nothing here waits for a
//! fixed time: [`Terminal::await_screen`] waits for a condition, with a limit for a busy machine.

use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit for a condition on a machine that stalls.
const LIMIT: Duration = Duration::from_secs(90);
/// Between two looks at the screen.
const PAUSE: Duration = Duration::from_millis(10);
/// The number of lines of the screen.
const ROWS: NonZeroU16 = vt100::Parser::DEFAULT_ROWS;

/// The editor begins: the terminal marks pasted text.
const BEGIN_OF_EDITING: &[u8] = b"\x1b[?2004h";
/// The editor has ended.
const END_OF_EDITING: &[u8] = b"\x1b[?2004l";

/// The Enter key.
pub const ENTER: &str = "\r";
/// The Tab key.
pub const TAB: &str = "\t";
/// Ctrl-A, which moves to the beginning of a line.
pub const CTRL_A: &str = "\x01";
/// Ctrl-C.
pub const CTRL_C: &str = "\x03";
/// Ctrl-D.
pub const CTRL_D: &str = "\x04";
/// The key that moves up.
pub const UP: &str = "\x1b[A";

/// A program on a terminal.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    output: Arc<Mutex<Vec<u8>>>,
    columns: u16,
}

impl Terminal {
    /// Starts a shell command on a terminal of this width, with these variables.
    ///
    /// # Errors
    ///
    /// `script` is not installed or cannot start.
    pub fn start(line: &str, columns: u16, variables: &[(&str, &str)]) -> io::Result<Terminal> {
        let line = format!("stty rows {ROWS} cols {columns}; {line}");
        let mut child = Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(keys), Some(mut screen)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let output = Arc::<Mutex<Vec<u8>>>::default();
        let written = Arc::clone(&output);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                written.extend_from_slice(&bytes[..count]);
            }
        });
        Ok(Terminal {
            child,
            keys,
            output,
            columns,
        })
    }

    /// Presses keys.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn press(&mut self, keys: &str) {
        let written = self.keys.write_all(keys.as_bytes());
        written
            .and_then(|()| self.keys.flush())
            .unwrap_or_else(|error| panic!("{error}:\n{}", self.screen()));
    }

    /// The bytes that the terminal has received so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The text on the screen.
    pub fn screen(&self) -> String {
        let columns = NonZeroU16::new(self.columns).unwrap_or(vt100::Parser::DEFAULT_COLS);
        let mut parser = vt100::Parser::new(ROWS, columns, 0);
        parser.process(&self.bytes());
        parser.screen().contents()
    }

    /// Waits until the screen satisfies a condition, and returns it.
    ///
    /// # Panics
    /// It never does.
    pub fn await_screen(&mut self, what: &str, mut holds: impl FnMut(&str) -> bool) -> String {
        let end = Instant::now() + LIMIT;
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(
                Instant::now() < end,
                "{what} is not on the screen:\n{screen}"
            );
            thread::sleep(PAUSE);
        }
    }

    /// Waits until the line editor has returned the line that was entered, so that the terminal
    /// turns Ctrl-C into a signal. Before, Ctrl-C would be a key of the next line.
    ///
    /// # Panics
    /// It never does.
    pub fn await_command(&mut self) {
        let at = |bytes: &[u8], text: &[u8]| {
            bytes.windows(text.len()).rposition(|window| window == text)
        };
        let end = Instant::now() + LIMIT;
        loop {
            let bytes = self.bytes();
            let is_editing = at(&bytes, BEGIN_OF_EDITING) > at(&bytes, END_OF_EDITING);
            if !is_editing && bytes.ends_with(b"\n") {
                return;
            }
            assert!(Instant::now() < end, "no command runs:\n{}", self.screen());
            thread::sleep(PAUSE);
        }
    }

    /// Waits until the screen contains a text.
    ///
    /// # Panics
    /// It never does.
    pub fn await_text(&mut self, text: &str) -> String {
        self.await_screen(text, |screen| screen.contains(text))
    }

    /// Waits until the last line with text ends with these characters.
    ///
    /// # Panics
    /// It never does.
    pub fn await_last(&mut self, end: &str) -> String {
        let end = end.trim_end();
        self.await_screen(end, |screen| screen.trim_end().ends_with(end))
    }

    /// Waits for the program's end, and returns its exit status.
    ///
    /// # Panics
    /// It does not end.
    pub fn await_end(&mut self) -> Option<i32> {
        let end = Instant::now() + LIMIT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code();
            }
            assert!(Instant::now() < end, "it still runs:\n{}", self.screen());
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The end of the terminal ends the program.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
