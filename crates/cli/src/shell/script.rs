//! The shell without a terminal: executes the lines of standard input.

use std::io::{self, BufRead, BufReader, Stdin};
use std::sync::atomic::AtomicBool;

use corvid_shell::{output, program};

use super::words::{self, Split};
use super::{Flow, Shell, link};
use crate::failure::Failure;

/// Executes every line, and ends with the status of the last one that failed.
///
/// # Errors
/// Standard input cannot be read.
pub(crate) fn run(shell: &mut Shell) -> Result<(), Failure> {
    let mut input = BufReader::new(io::stdin());
    let mut status = 0;
    let mut statement = Vec::new();
    let (mut number, mut first) = (0, 1);
    loop {
        let is_end = read_line(shell, &mut input, &mut statement)? == 0;
        number += usize::from(!is_end);
        let text = String::from_utf8_lossy(&statement).into_owned();
        // A line that ends in a backslash, or within quotes, is continued by the next one.
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let is_continued = words::split(line).is_continued();
        if is_continued && !is_end {
            continue;
        }
        if is_continued {
            // The input may be cut off.
            return Err(Failure::usage("the input ends in the middle of a line"));
        }
        statement.clear();
        let flow = execute(shell, words::split(&text), first, &mut status);
        first = number + 1;
        if is_end || flow == Flow::Ends {
            break;
        }
    }
    if let Err(failure) = shell.end() {
        failure.print(&format!("{}: ", program::prefix()));
        status = failure.status();
    }
    program::exit(status)
}

/// Adds a line to the statement; 0 at the end of the input. The server's probes are answered while
/// none arrives.
fn read_line(
    shell: &Shell,
    input: &mut BufReader<Stdin>,
    statement: &mut Vec<u8>,
) -> io::Result<usize> {
    if input.buffer().contains(&b'\n') {
        return input.read_until(b'\n', statement);
    }
    link::while_idle(&shell.link, &AtomicBool::new(false), || {
        input.read_until(b'\n', statement)
    })
}

/// Executes one statement, and reports its failure.
fn execute(shell: &mut Shell, split: Split, line: usize, status: &mut i32) -> Flow {
    let outcome = shell.execute(&split.texts());
    // An error stays recorded, and the exit reports it.
    let _ = output::flush();
    outcome.unwrap_or_else(|failure| {
        failure.print(&format!("{}: line {line}: ", program::prefix()));
        *status = failure.status();
        Flow::Continues
    })
}
