//! The program's name, its version line and its fatal errors.
//!
//! The name is the base name of `argv[0]` without a leading `lt-`. It begins every message and
//! names the pidfile, log file and control socket. `main` sets it once.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use crate::{output, vlog};
use corvid_json::shown::Shown;
use corvid_net::{cleanup, errno};

/// The version that programs report. Stop scripts require a dotted number that compares as at least
/// 2.5.90.
pub const VERSION: &str = "3.7.0";

static NAME: OnceLock<String> = OnceLock::new();

/// Records the program's name from `argv[0]` and ignores SIGPIPE, as every program of the family
/// does. Later calls are no-ops.
pub fn init(argv0: &OsStr) {
    let base = Path::new(argv0)
        .file_name()
        .unwrap_or(argv0)
        .to_string_lossy();
    let name = base.strip_prefix("lt-").unwrap_or(&base);
    NAME.get_or_init(|| name.to_owned());
    crate::signals::ignore_sigpipe();
    vlog::mark_start();
}

/// As [`init`], and also catches the fatal signals. For programs that wait: they must handle their
/// deadline's signal.
pub fn init_waiting(argv0: &OsStr) {
    init(argv0);
    if let Err(error) = crate::signals::init() {
        fatal_error("could not catch signals", &error);
    }
}

/// The program's name; `corvid` before [`init`].
#[must_use]
pub fn name() -> &'static str {
    NAME.get().map_or("corvid", String::as_str)
}

/// The name and the version of this implementation.
pub const CORVID: &str = concat!("Corvid ", env!("CARGO_PKG_VERSION"));

/// `PROG (Open vSwitch) VERSION`: the first line of `--version` and of the reply to the command
/// `version`. Scripts take the last word of this line, or of the line with the words
/// `Open vSwitch`. [`CORVID`] is the second line.
#[must_use]
pub fn version_line() -> String {
    format!("{} (Open vSwitch) {VERSION}", name())
}

/// Prints the text of an option such as `--help`, and ends the process with status 0.
pub fn answer(text: impl fmt::Display) -> ! {
    output::print(text);
    // As in the reference, an answer that cannot be written is not a failure.
    let _ = output::flush();
    cleanup::run();
    std::process::exit(0)
}

/// Answers `--version`.
pub fn answer_version() -> ! {
    answer(format_args!("{}\n{CORVID}\n", version_line()))
}

/// Prints `PROG: MESSAGE` on one line of standard error, removes the files in the cleanup list, and
/// ends the process with status 1.
pub fn fatal(message: impl fmt::Display) -> ! {
    output::error_line(format_args!("{}: {}", prefix(), Shown(message)));
    exit(1)
}

/// As [`fatal`], with the error in parentheses: `PROG: MESSAGE (ERRSTR)`.
pub fn fatal_error(message: impl fmt::Display, error: &std::io::Error) -> ! {
    fatal(format_args!("{message} ({})", errno::text(error)))
}

/// Reports a fatal message through the logger: at level EMER to the file and the system log, and
/// once to standard error whatever the console level. Then ends the process as [`fatal`] does.
pub fn fatal_logged(module: vlog::Module, message: impl fmt::Display) -> ! {
    vlog::emergency(module, &message.to_string());
    fatal(message)
}

/// Writes buffered output, removes the files in the cleanup list, and ends the process. If output
/// was lost, status 0 becomes 1.
pub fn exit(status: i32) -> ! {
    let status = output::close(status);
    cleanup::run();
    std::process::exit(status)
}

/// The program's name at the beginning of messages: `PROG`, or `PROG(monitor)` in the supervisor.
#[must_use]
pub fn prefix() -> String {
    match vlog::subprogram() {
        subprogram if subprogram.is_empty() => name().to_owned(),
        subprogram => format!("{}({subprogram})", name()),
    }
}
