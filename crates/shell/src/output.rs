//! Standard output and standard error of the programs. Printing never panics.
//!
//! Standard output is buffered as the C library buffers it: line by line on a terminal, in blocks
//! elsewhere. It is written when the buffer is full, when a program calls [`flush`], and when the
//! process ends by [`program::exit`](crate::program::exit). A command that waits calls [`flush`]
//! first. All programs print through this module; `tests/tests/repository/output.rs` finds code
//! that does not.
//!
//! On a terminal and on standard error, control characters other than newlines and tabs are escaped
//! ([`corvid_json::shown`]), except those of [`Painted`] text: a person reads them, and names,
//! values and errors come from clients and servers. A pipe or a file gets the exact bytes.
//!
//! A reader that stops early, as `| grep -q` and `| head` do, is not an error: the rest of the
//! output is discarded, and the exit status is that of the work. Commands whose output never ends
//! check [`reader_is_gone`]. If output is lost for another reason, such as a full disk, the exit
//! status is 1 instead of 0.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::RawFd;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corvid_json::shown::{self, Shown, ShownLines};
use corvid_net::{errno, interrupt, poll};

use crate::terminal::Painted;
use crate::{pager, program, window};

/// The size at which buffered output is written, bytes: the capacity of a pipe, so that shorter
/// output is written in one piece.
const BUFFERED_BYTES_MAX: usize = 64 * 1024;

static OUTPUT: Mutex<Buffer<Stdout>> = Mutex::new(Buffer::new(Stdout { pager: None }));

/// Standard output as a writer. Its errors report lost output; a reader that is gone is not an
/// error.
#[derive(Debug, Clone, Copy)]
pub struct Output;

/// Adds text to standard output.
pub fn print(text: impl Display) {
    // An error stays recorded, and the exit reports it.
    let _ = output().print(format_args!("{text}"));
}

/// Adds a line to standard output.
pub fn line(text: impl Display) {
    let _ = output().print(format_args!("{text}\n"));
}

/// Adds text to standard output and writes it at once, for programs that report as they go.
pub fn report_text(text: impl Display) {
    print(text);
    // An error stays recorded, and the exit reports it.
    let _ = flush();
}

/// As [`report_text`], for a line.
pub fn report(text: impl Display) {
    report_text(format_args!("{text}\n"));
}

/// Writes buffered output. Commands call this before they wait.
///
/// # Errors
/// Output is lost, now or earlier, and not because its reader is gone.
pub fn flush() -> io::Result<()> {
    output().flush()
}

/// Whether standard output is a terminal, so that a person reads it.
#[must_use]
pub fn is_terminal() -> bool {
    output().is_terminal()
}

/// The number of columns of the terminal that standard output is; `None`: it is none, or does not
/// tell.
#[must_use]
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Writes a control sequence to a terminal, unbuffered. Errors are ignored.
pub fn control(sequence: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(sequence).and_then(|()| out.flush());
}

/// Foreign text as part of a line of standard output. On a terminal its newlines are escaped too,
/// so it cannot forge a line; elsewhere it is exact.
#[must_use]
pub fn part(text: &str) -> Cow<'_, str> {
    match is_terminal() {
        true => shown::line(text),
        false => Cow::Borrowed(text),
    }
}

/// Writes painted text, and what was printed before it. Its colours reach the terminal.
///
/// # Errors
/// As for [`flush`].
pub fn show(painted: &Painted) -> io::Result<()> {
    output().show(painted.as_str())
}

/// As [`show`], by way of a pager if standard output is a terminal with fewer lines than the text:
/// the command in `PAGER`, else `less` if there is one. Nobody pages if `PAGER` is empty or `cat`.
///
/// # Errors
/// As for [`flush`].
pub fn show_page(painted: &Painted) -> io::Result<()> {
    if let Some(size) = terminal_size()
        && painted.height(size.columns) >= size.lines
        && let Some(pager) = pager::start()
    {
        let mut output = output();
        output.flush()?;
        output.sink.pager = Some(pager);
    }
    show(painted)
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub columns: usize,
    /// Lines.
    pub lines: usize,
}

/// The size of the terminal that shows standard output; 80 by 24 if the terminal does not say.
/// `None` if it is none.
#[must_use]
pub fn terminal_size() -> Option<TerminalSize> {
    if !is_terminal() {
        return None;
    }
    let size = window::size(libc::STDOUT_FILENO);
    let known = |value: u16, default| match value {
        0 => default,
        value => usize::from(value),
    };
    Some(TerminalSize {
        columns: known(size.columns, 80),
        lines: known(size.lines, 24),
    })
}

/// Whether output is discarded because its reader has closed the pipe.
#[must_use]
pub fn reader_is_gone() -> bool {
    matches!(output().state, State::ReaderGone)
}

/// Waits until a descriptor has input. `false`: the reader of standard output has gone instead, so
/// nobody would see what follows from the input.
///
/// # Errors
/// poll(2) fails.
pub fn await_input(fd: RawFd) -> io::Result<bool> {
    let readable = poll::events(true, false);
    // Of standard output only errors and hang-ups are told.
    let wanted = [Some((fd, readable)), Some((libc::STDOUT_FILENO, 0))];
    let [_, gone] = poll::wait_for_two(wanted, None)?;
    Ok(gone == 0)
}

/// Prints a line on standard error, unbuffered. Errors are ignored, because nothing could report
/// them. Control characters are escaped. Text that must stay on one line is passed as
/// [`corvid_json::shown::Shown`].
pub fn error_line(text: impl Display) {
    error_text(format_args!("{text}\n"));
}

/// As [`error_line`], for text with its own newlines.
pub fn error_text(text: impl Display) {
    // One write, so that lines of several processes do not interleave.
    let _ = io::stderr().write_all(ShownLines(text).to_string().as_bytes());
}

/// Prints a line on a terminal's standard error, which the next line overwrites.
pub fn overwritten_line(text: impl Display) {
    let _ = io::stderr().write_all(format!("{}\r", Shown(text)).as_bytes());
}

/// Writes buffered output at the end of the process. Returns the exit status: 1 instead of 0 if
/// output was lost.
pub(crate) fn close(status: i32) -> i32 {
    let mut output = output();
    let end = output.end();
    output.sink.close();
    match end {
        Err(error) if status == 0 => {
            error_line(format_args!(
                "{}: cannot write output ({})",
                program::prefix(),
                errno::text(&error)
            ));
            1
        }
        _ => status,
    }
}

fn output() -> MutexGuard<'static, Buffer<Stdout>> {
    // The buffer is consistent after every push, so a panic of another thread does no harm.
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        output().add(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        flush()
    }
}

/// A file that output goes to.
trait Sink {
    fn is_terminal(&self) -> bool;
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;
}

#[derive(Debug)]
struct Stdout {
    /// The pager that reads the output and has the terminal.
    pager: Option<Child>,
}

impl Stdout {
    /// Waits until the user has left the pager.
    fn close(&mut self) {
        if let Some(mut pager) = self.pager.take() {
            drop(pager.stdin.take());
            let _ = pager.wait();
        }
    }
}

impl Sink for Stdout {
    fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(pager) = self.pager.as_mut().and_then(|pager| pager.stdin.as_mut()) {
            return pager.write_all(bytes);
        }
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        // The library buffers an unfinished line.
        out.flush()
    }
}

/// Whether output can be written.
#[derive(Debug)]
enum State {
    Open,
    /// The reader has closed the pipe: output is discarded.
    ReaderGone,
    /// Output was lost, with this error code of the system.
    Lost(i32),
}

#[derive(Debug)]
struct Buffer<S> {
    sink: S,
    bytes: Vec<u8>,
    /// `None` before the first output. A terminal gets each line at once, and no control
    /// characters.
    is_terminal: Option<bool>,
    state: State,
}

impl<S: Sink> Buffer<S> {
    const fn new(sink: S) -> Buffer<S> {
        Buffer {
            sink,
            bytes: Vec::new(),
            is_terminal: None,
            state: State::Open,
        }
    }

    fn print(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        let before = self.bytes.len();
        self.bytes.write_fmt(text)?;
        self.after(before)
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.after(before)
    }

    /// Writes the buffer if it is full, or if a terminal is to show a line that was completed after
    /// `before`.
    fn after(&mut self, before: usize) -> io::Result<()> {
        let is_due = self.bytes.len() >= BUFFERED_BYTES_MAX
            || self.is_terminal() && self.bytes[before..].contains(&b'\n');
        if is_due { self.flush() } else { self.outcome() }
    }

    fn is_terminal(&mut self) -> bool {
        let sink = &self.sink;
        *self.is_terminal.get_or_insert_with(|| sink.is_terminal())
    }

    /// Writes the buffer. On a terminal, an incomplete character at its end stays in the buffer.
    fn flush(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        if self.is_terminal() {
            let mut text = String::with_capacity(bytes.len());
            let unfinished = shown::append_lines(&bytes, &mut text).to_vec();
            self.write(text.as_bytes());
            self.bytes = unfinished;
        } else {
            self.write(&bytes);
            bytes.clear();
            self.bytes = bytes;
        }
        self.outcome()
    }

    /// Writes everything, including an incomplete character, which can no longer be completed.
    fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        if !self.bytes.is_empty() {
            self.bytes.clear();
            let replacement = char::REPLACEMENT_CHARACTER.to_string();
            self.write(replacement.as_bytes());
        }
        self.outcome()
    }

    /// Adds text without control characters of others, which a terminal gets as it is.
    fn show(&mut self, text: &str) -> io::Result<()> {
        if !self.is_terminal() {
            return self.add(text.as_bytes());
        }
        self.flush()?;
        self.write(text.as_bytes());
        self.outcome()
    }

    fn write(&mut self, bytes: &[u8]) {
        // The rest of a cancelled command's output is discarded.
        if matches!(self.state, State::Open)
            && !bytes.is_empty()
            && !interrupt::is_cancelled()
            && let Err(error) = self.sink.write_all(bytes)
        {
            self.state = match error.kind() {
                io::ErrorKind::BrokenPipe => State::ReaderGone,
                _ => State::Lost(error.raw_os_error().unwrap_or(libc::EIO)),
            };
        }
    }

    fn outcome(&mut self) -> io::Result<()> {
        match self.state {
            State::Open | State::ReaderGone => Ok(()),
            State::Lost(code) => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts everything, or fails with an error code.
    struct Script {
        written: Vec<Vec<u8>>,
        is_terminal: bool,
        error: Option<i32>,
    }

    impl Sink for Script {
        fn is_terminal(&self) -> bool {
            self.is_terminal
        }

        fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
            match self.error {
                Some(code) => Err(io::Error::from_raw_os_error(code)),
                None => {
                    self.written.push(bytes.to_vec());
                    Ok(())
                }
            }
        }
    }

    fn buffer(is_terminal: bool, error: Option<i32>) -> Buffer<Script> {
        Buffer::new(Script {
            written: Vec::new(),
            is_terminal,
            error,
        })
    }

    #[test]
    fn output_is_written_in_blocks_and_on_demand() {
        let mut buffer = buffer(false, None);
        buffer.print(format_args!("a\nb\n")).unwrap();
        assert!(buffer.sink.written.is_empty());
        buffer.add(&vec![b'c'; BUFFERED_BYTES_MAX]).unwrap();
        assert_eq!(buffer.sink.written.len(), 1);
        assert!(buffer.sink.written[0].starts_with(b"a\nb\nccc"));
        buffer.add(b"d").unwrap();
        buffer.flush().unwrap();
        buffer.flush().unwrap();
        assert_eq!(buffer.sink.written[1..], [b"d"]);
    }

    #[test]
    fn a_terminal_shows_each_line() {
        let mut buffer = buffer(true, None);
        buffer.add(b"a").unwrap();
        assert!(buffer.sink.written.is_empty());
        buffer.add(b"b\n").unwrap();
        assert_eq!(buffer.sink.written, [b"ab\n"]);
    }

    #[test]
    fn a_terminal_gets_no_control_characters_and_a_pipe_gets_exact_bytes() {
        let text = "\u{1b}[2J\u{9b}m\u{202e}é\tx\r\n".as_bytes();
        for is_terminal in [false, true] {
            let mut buffer = buffer(is_terminal, None);
            // In pieces that split characters.
            for piece in text.chunks(1) {
                buffer.add(piece).unwrap();
                buffer.flush().unwrap();
            }
            buffer.add(b"\xc3").unwrap();
            buffer.end().unwrap();
            let written = buffer.sink.written.concat();
            match is_terminal {
                false => assert_eq!(written, [text, b"\xc3"].concat()),
                true => assert_eq!(
                    String::from_utf8(written).unwrap(),
                    "\\u001b[2J\\u009bm\\u202eé\tx\\r\n\u{fffd}"
                ),
            }
        }
    }

    #[test]
    fn shown_text_comes_after_what_was_printed_before() {
        let mut buffer = buffer(true, None);
        buffer.add(b"a\x1b").unwrap();
        buffer.show("\x1b[1mb\x1b[0m\n").unwrap();
        assert_eq!(buffer.sink.written.concat(), b"a\\u001b\x1b[1mb\x1b[0m\n");
    }

    #[test]
    fn output_without_a_reader_is_discarded() {
        let mut buffer = buffer(false, Some(libc::EPIPE));
        buffer.add(b"a").unwrap();
        buffer.flush().unwrap();
        assert!(matches!(buffer.state, State::ReaderGone));
        buffer.add(&vec![b'b'; BUFFERED_BYTES_MAX]).unwrap();
        assert!(buffer.bytes.is_empty());
    }

    #[test]
    fn lost_output_stays_an_error() {
        let mut buffer = buffer(false, Some(libc::ENOSPC));
        buffer.add(b"a").unwrap();
        for _ in 0..2 {
            let error = buffer.flush().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        }
        assert!(buffer.add(b"b").is_err());
        assert!(matches!(buffer.state, State::Lost(libc::ENOSPC)));
    }
}
