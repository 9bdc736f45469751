//! Logging: messages of modules, at levels, to the console, the system log and a file.
//!
//! There is one logger per process, usable from every thread. A disabled message costs one atomic
//! load and no formatting; an enabled one is written to each destination before the call returns,
//! in one write per line. The counter `%N` counts messages that reached at least one destination. A
//! message is one line without control characters ([`message`]), so a client cannot forge a log
//! line. All messages come through the `log` facade ([`facade`]), by the functions of
//! [`corvid_net::logging`]; pure crates return their messages as values. A message before
//! [`crate::program::init`] is dropped.
//!
//! ```
//! use corvid_shell::vlog::{self, Module};
//! vlog::set("console:off").unwrap();
//! vlog::info(Module::Reconnect, format_args!("{}: connected", "tcp:127.0.0.1:6640"));
//! ```

mod commands;
mod facade;
mod file;
mod json;
mod level;
mod message;
pub mod options;
mod pattern;
mod spec;
mod syslog;

use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::program;
use corvid_json::shown::Shown;
use corvid_net::{clock, dirs, errno};

pub use commands::register as register_commands;
use corvid_net::logging;
pub use corvid_net::logging::{
    Module, RateLimit, dbg, err, err_limited, info, log_limited, set_rate_limiting, warn,
    warn_limited,
};
pub use level::{Destination, Level};
pub use options::{GROUP, LogOption, apply, specs, verbose_spec};
pub use spec::SpecError;

use file::LogFile;
use message::Message;
use pattern::Context;
use spec::Spec;

const FILE_PATTERN: &str = "%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m";
const CONSOLE_PATTERN: &str = "%D{%Y-%m-%dT%H:%M:%SZ}|%05N|%c%T|%p|%m";
const SYSLOG_PATTERN: &str = "ovs|%05N|%c%T|%p|%m";

const FACILITY_DAEMON: u8 = 3;
const FACILITY_LOCAL0: u8 = 16;
const DESTINATIONS: usize = Destination::ALL.len();

/// The level of each module for each destination.
static LEVELS: [[AtomicU8; DESTINATIONS]; Module::COUNT] =
    [const { [const { AtomicU8::new(Level::Info as u8) }; DESTINATIONS] }; Module::COUNT];
/// The most verbose level of each module over all destinations, for the fast path.
static ENABLED: [AtomicU8; Module::COUNT] =
    [const { AtomicU8::new(Level::Info as u8) }; Module::COUNT];
static STARTED_MS: AtomicU64 = AtomicU64::new(0);
static SINKS: Mutex<Sinks> = Mutex::new(Sinks {
    forms: [const { Form::Default }; DESTINATIONS],
    facility: None,
    counter: 0,
    file: None,
    method: None,
    target: None,
    warning_is_due: false,
    subprogram: String::new(),
    line: String::new(),
});

/// The state of all destinations, under one lock so that lines do not interleave.
struct Sinks {
    forms: [Form; DESTINATIONS],
    /// `None` until chosen: `daemon` for the system log, `local0` elsewhere.
    facility: Option<u8>,
    counter: u32,
    file: Option<LogFile>,
    /// `None` until the first message or `--syslog-method`.
    method: Option<syslog::Method>,
    target: Option<(UdpSocket, SocketAddr)>,
    /// `--syslog-target` was given, and nothing has been logged since. Later options still apply to
    /// the warning.
    warning_is_due: bool,
    subprogram: String,
    /// The buffer for a line, reused.
    line: String,
}

/// The form of a destination's lines.
#[derive(Clone, Debug)]
enum Form {
    /// The destination's default pattern.
    Default,
    /// This pattern.
    Pattern(String),
    /// A JSON object.
    Json,
}

fn sinks() -> MutexGuard<'static, Sinks> {
    SINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any destination would show a message of this level.
fn is_enabled(module: Module, level: Level) -> bool {
    ENABLED[module as usize].load(Ordering::Relaxed) >= level as u8
}

/// Writes a message to its destinations. Every message ends here, by way of the `log` facade
/// ([`facade`]).
fn log(module: Module, level: Level, message: fmt::Arguments<'_>) {
    if is_enabled(module, level) {
        sinks().emit(module, level, &message.to_string());
    }
}

/// Logs a fatal message, at level EMER, to the system log and the file; the caller shows it on
/// standard error.
pub(crate) fn emergency(module: Module, message: &str) {
    sinks().emit_except_console(module, Level::Emer, Message::Line(message));
}

/// As [`emergency`], from a panicking thread, with its backtrace on further lines. Logs nothing if
/// the panic happened while logging.
pub(crate) fn log_panic(module: Module, panic: &str, trace: &impl fmt::Display) {
    if let Ok(mut sinks) = SINKS.try_lock() {
        // A panic may quote client input.
        let message = format!("{}\n{trace}", Shown(panic));
        sinks.emit_except_console(module, Level::Emer, Message::Trace(&message));
    }
}

impl Sinks {
    fn emit(&mut self, module: Module, level: Level, message: &str) {
        self.emit_to(&Destination::ALL, module, level, Message::Line(message));
    }

    fn emit_except_console(&mut self, module: Module, level: Level, message: Message<'_>) {
        self.emit_to(
            &[Destination::Syslog, Destination::File],
            module,
            level,
            message,
        );
    }

    fn emit_to(
        &mut self,
        destinations: &[Destination],
        module: Module,
        level: Level,
        message: Message<'_>,
    ) {
        self.log_due_warning();
        self.counter = self.counter.wrapping_add(1);
        let wall_ms = clock::wall_ms();
        for &destination in destinations {
            if LEVELS[module as usize][destination as usize].load(Ordering::Relaxed) < level as u8 {
                continue;
            }
            if destination == Destination::Syslog {
                self.emit_to_syslog(module, level, message, wall_ms);
                continue;
            }
            if destination == Destination::File && !self.file.as_ref().is_some_and(LogFile::is_open)
            {
                continue;
            }
            let mut line = self.format(destination, module, level, message, wall_ms);
            line.push('\n');
            match (destination, &mut self.file) {
                (Destination::File, Some(file)) => file.write(line.as_bytes()),
                _ => drop(io::stderr().lock().write_all(line.as_bytes())),
            }
            self.line = line;
        }
    }

    fn log_due_warning(&mut self) {
        if std::mem::take(&mut self.warning_is_due) {
            let text = "--syslog-target flag is deprecated, use --syslog-method instead";
            self.emit(Module::Vlog, Level::Warn, text);
        }
    }

    fn emit_to_syslog(&mut self, module: Module, level: Level, message: Message<'_>, wall_ms: i64) {
        if !matches!(self.method(), syslog::Method::Null) {
            let line = self.format(Destination::Syslog, module, level, message, wall_ms);
            let facility = self.facility.unwrap_or(FACILITY_DAEMON);
            self.method().send(facility, level.severity(), &line);
            self.line = line;
        }
        if let Some((socket, address)) = &self.target {
            let priority = u32::from(self.facility.unwrap_or(FACILITY_LOCAL0)) * 8
                + u32::from(level.severity());
            let date = pattern::date("%Y-%m-%dT%H:%M:%S.###Z", wall_ms, pattern::Zone::Utc);
            let (host, pid) = (host_name(), std::process::id());
            let (name, module) = (program::name(), module.name());
            let message = message.shown();
            let datagram =
                format!("<{priority}>1 {date} {host} {name} {pid} {module} - \u{feff}{message}");
            let _ = socket.send_to(datagram.as_bytes(), address);
        }
    }

    /// Formats the line for one destination, in the reused buffer.
    fn format(
        &mut self,
        to: Destination,
        module: Module,
        level: Level,
        message: Message<'_>,
        wall_ms: i64,
    ) -> String {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        logging::thread_label(|thread| {
            let context = Context {
                program: program::name(),
                subprogram: thread.unwrap_or(&self.subprogram),
                host: host_name(),
                module,
                level,
                facility: self.facility.unwrap_or(FACILITY_LOCAL0),
                counter: self.counter,
                wall_ms,
                since_start_ms: clock::mono_ms().saturating_sub(STARTED_MS.load(Ordering::Relaxed)),
                message,
            };
            match &self.forms[to as usize] {
                Form::Json => {
                    let thread = std::thread::current();
                    json::format(&context, thread.name().unwrap_or_default(), &mut line);
                }
                Form::Pattern(pattern) => pattern::format(pattern, &context, &mut line),
                Form::Default => pattern::format(to.default_pattern(), &context, &mut line),
            }
        });
        line
    }

    /// The pattern of a destination as [`list_patterns`] shows it.
    fn pattern(&self, destination: Destination) -> &str {
        match &self.forms[destination as usize] {
            Form::Default => destination.default_pattern(),
            Form::Pattern(pattern) => pattern,
            Form::Json => "json",
        }
    }

    fn method(&mut self) -> &syslog::Method {
        self.method.get_or_insert_with(|| {
            syslog::open(program::name());
            let chosen = std::env::var("OVS_SYSLOG_METHOD").ok();
            chosen
                .and_then(|text| syslog::Method::parse(&text))
                .unwrap_or(syslog::Method::Libc)
        })
    }
}

fn host_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        match name.trim() {
            "" => "unknown".to_owned(),
            name => name.to_owned(),
        }
    })
}

/// Recomputes the levels for the fast path.
fn refresh_enabled(file_open: bool) {
    let mut most_of_all = 0;
    for (levels, enabled) in LEVELS.iter().zip(&ENABLED) {
        let reachable = Destination::ALL
            .into_iter()
            .filter(|&to| to != Destination::File || file_open);
        let most = reachable
            .map(|to| levels[to as usize].load(Ordering::Relaxed))
            .max();
        let most = most.unwrap_or(0);
        enabled.store(most, Ordering::Relaxed);
        most_of_all = most_of_all.max(most);
    }
    facade::set_max_level(Level::from_u8(most_of_all));
}

/// Sets the level of one module (`None`: all) for one destination (`None`: all).
pub fn set_level(module: Option<Module>, destination: Option<Destination>, level: Level) {
    let sinks = sinks();
    for &each in Module::ALL
        .iter()
        .filter(|&&each| module.is_none_or(|module| module == each))
    {
        for to in Destination::ALL
            .into_iter()
            .filter(|&to| destination.is_none_or(|one| one == to))
        {
            LEVELS[each as usize][to as usize].store(level as u8, Ordering::Relaxed);
        }
    }
    refresh_enabled(sinks.file.as_ref().is_some_and(LogFile::is_open));
}

/// The level of a module for a destination.
#[must_use]
pub fn level(module: Module, destination: Destination) -> Level {
    Level::from_u8(LEVELS[module as usize][destination as usize].load(Ordering::Relaxed))
}

/// Applies the SPEC of `-v` or `vlog/set`.
///
/// # Errors
/// The SPEC is malformed; nothing has changed.
pub fn set(spec: &str) -> Result<(), SpecError> {
    match spec::parse(spec)? {
        Spec::Level {
            module,
            destination,
            level,
        } => set_level(module, destination, level),
        Spec::Facility(code) => sinks().facility = Some(code),
        Spec::Pattern {
            destination,
            pattern,
        } => {
            let mut sinks = sinks();
            for to in Destination::ALL
                .into_iter()
                .filter(|&to| destination.is_none_or(|one| one == to))
            {
                sinks.forms[to as usize] = Form::Pattern(pattern.clone());
            }
        }
    }
    Ok(())
}

/// Writes lines of console and file as JSON objects, or as text in their default patterns. A
/// pattern that is set later changes its destination back to text. The system log always has its
/// own form.
pub fn set_json(is_json: bool) {
    let form = if is_json { Form::Json } else { Form::Default };
    let mut sinks = sinks();
    for to in [Destination::Console, Destination::File] {
        sinks.forms[to as usize] = form.clone();
    }
}

/// Why the log file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is no log file to reopen.
    #[error("Logging to file not configured")]
    NotConfigured,
    /// Opening failed; also logged.
    #[error("failed to open {} for logging: {}", .0.display(), errno::text(.1))]
    Open(PathBuf, io::Error),
}

/// Opens the log file (default: `LOGDIR/PROG.log`) in place of the current one, and writes its
/// first line.
///
/// # Errors
/// The file cannot be opened; a WARN line says so.
pub fn open_file(path: Option<&Path>) -> Result<(), FileError> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => dirs::log().join(format!("{}.log", program::name())),
    };
    match LogFile::open(path.clone()) {
        Ok(file) => {
            let mut sinks = sinks();
            sinks.file = Some(file);
            refresh_enabled(true);
            sinks.emit(
                Module::Vlog,
                Level::Info,
                &format!("opened log file {}", path.display()),
            );
            Ok(())
        }
        Err(error) => {
            let text = errno::text(&error);
            warn(
                Module::Vlog,
                format_args!("failed to open {} for logging: {text}", path.display()),
            );
            Err(FileError::Open(path, error))
        }
    }
}

/// Reopens the configured name, after rotation or [`close_file`]. Does nothing if the name still
/// leads to the open file.
///
/// # Errors
/// No log file was ever configured, or it cannot be opened (the old one stays in use).
pub fn reopen_file() -> Result<(), FileError> {
    let mut sinks = sinks();
    let Some(file) = &sinks.file else {
        return Err(FileError::NotConfigured);
    };
    let path = file.name().to_owned();
    let new = match file.open_again() {
        Ok(None) => return Ok(()),
        Ok(Some(new)) => new,
        Err(error) => {
            let text = format!(
                "failed to open {} for logging: {}",
                path.display(),
                errno::text(&error)
            );
            sinks.emit(Module::Vlog, Level::Warn, &text);
            return Err(FileError::Open(path, error));
        }
    };
    if sinks.file.as_ref().is_some_and(LogFile::is_open) {
        sinks.emit(Module::Vlog, Level::Info, "closing log file");
    }
    if let Some(file) = &mut sinks.file {
        file.replace(new);
    }
    refresh_enabled(true);
    sinks.emit(
        Module::Vlog,
        Level::Info,
        &format!("opened log file {}", path.display()),
    );
    Ok(())
}

/// Stops logging to the file until [`reopen_file`].
pub fn close_file() {
    let mut sinks = sinks();
    if let Some(file) = &mut sinks.file {
        file.close();
    }
    refresh_enabled(false);
}

/// Whether a log file was configured, open or not.
#[must_use]
pub fn has_file() -> bool {
    sinks().file.is_some()
}

/// Changes the owner of the log file to the user that the process is about to switch to.
///
/// # Errors
/// The owner cannot be changed.
pub fn chown_file(user: u32, group: u32) -> io::Result<()> {
    sinks()
        .file
        .as_ref()
        .map_or(Ok(()), |file| file.chown(user, group))
}

/// Chooses the syslog method; a process keeps its first choice.
///
/// # Errors
/// The method is unknown; the text to show is `unsupported syslog method 'X'`.
pub fn set_syslog_method(text: &str) -> Result<(), String> {
    let mut sinks = sinks();
    // Later choices are not even parsed.
    if sinks.method.is_none() {
        let method = syslog::Method::parse(text)
            .ok_or_else(|| format!("unsupported syslog method '{text}'"))?;
        syslog::open(program::name());
        sinks.method = Some(method);
    }
    Ok(())
}

/// Sends a copy of every syslog message to `HOST:PORT` as RFC 5424 datagrams. A warning that this
/// is deprecated precedes the first message.
pub fn set_syslog_target(text: &str) {
    if !text.contains(':') {
        return err(
            Module::SocketUtil,
            format_args!("{text}: port must be specified"),
        );
    }
    if let Some(address) = syslog::udp_address(text)
        && let Some(socket) = syslog::udp_socket(&address)
    {
        sinks().target = Some((socket, address));
    }
    sinks().warning_is_due = true;
}

/// All options have been parsed: logs the warning that would otherwise precede the first message.
pub(crate) fn end_of_options() {
    sinks().log_due_warning();
}

/// Sets the name of this process in its messages: `monitor` in the supervisor, empty in a first
/// server.
pub fn set_subprogram(name: &str) {
    name.clone_into(&mut sinks().subprogram);
}

pub(crate) fn subprogram() -> String {
    sinks().subprogram.clone()
}

/// Marks the start of a program: from now on messages of all crates go to its destinations.
pub(crate) fn mark_start() {
    facade::install();
    let sinks = sinks();
    refresh_enabled(sinks.file.as_ref().is_some_and(LogFile::is_open));
    STARTED_MS.store(clock::mono_ms(), Ordering::Relaxed);
}

/// The table of `vlog/list`.
#[must_use]
pub fn list() -> String {
    let mut out = String::from(
        "                 console    syslog    file\n                 -------    ------    ------\n",
    );
    for &module in Module::ALL {
        let name = |to| level(module, to).name();
        let (console, syslog, file) = (
            name(Destination::Console),
            name(Destination::Syslog),
            name(Destination::File),
        );
        let limited = logging::is_limited(module);
        let suffix = if limited {
            ""
        } else {
            "    (rate limiting disabled)"
        };
        out += &format!(
            "{:<16}  {console:>4}       {syslog:>4}       {file:>4}{suffix}\n",
            module.name()
        );
    }
    out
}

/// The table of `vlog/list-pattern`.
#[must_use]
pub fn list_patterns() -> String {
    let mut sinks = sinks();
    let mut out = String::from(
        "         prefix                            format\n         ------                            ------\n",
    );
    for to in Destination::ALL {
        let prefix = if to == Destination::Syslog {
            sinks.method().prefix()
        } else {
            "none"
        };
        out += &format!(
            "{:<7}  {prefix:<32}  {}\n",
            to.name().to_ascii_uppercase(),
            sinks.pattern(to)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_documented_layout() {
        let table = list();
        assert!(table.starts_with(
            "                 console    syslog    file\n                 -------    ------    ------\nbacktrace  "
        ));
        assert!(
            table.contains("\nprocess           INFO       INFO       INFO\n"),
            "{table}"
        );
        assert!(
            list_patterns()
                .contains("\nSYSLOG   <%B> %D{%h %e %T} %E %A:          ovs|%05N|%c%T|%p|%m\n")
        );
    }

    #[test]
    fn json_is_the_form_of_console_and_file_until_a_pattern_is_set() {
        let mut sinks = Sinks {
            forms: [const { Form::Json }; DESTINATIONS],
            facility: None,
            counter: 3,
            file: None,
            method: None,
            target: None,
            warning_is_due: false,
            subprogram: String::new(),
            line: String::new(),
        };
        let line = sinks.format(
            Destination::File,
            Module::Hmap,
            Level::Info,
            Message::Line("a"),
            0,
        );
        assert!(line.starts_with(r#"{"time":"1970-01-01T00:00:00.000Z","seq":3,"#));
        assert_eq!(sinks.pattern(Destination::File), "json");
        sinks.forms[Destination::File as usize] = Form::Pattern("%c|%m".to_owned());
        let line = sinks.format(
            Destination::File,
            Module::Hmap,
            Level::Info,
            Message::Line("a"),
            0,
        );
        assert_eq!(line, "hmap|a");
    }

    #[test]
    fn the_file_is_reopened_by_name_after_rotation() {
        mark_start();
        let directory = tempfile::tempdir().unwrap();
        let (path, rotated) = (
            directory.path().join("a.log"),
            directory.path().join("a.log.1"),
        );
        set("hmap:file:dbg").unwrap();
        open_file(Some(&path)).unwrap();
        dbg(Module::Hmap, format_args!("one\n"));
        reopen_file().unwrap();
        std::fs::rename(&path, &rotated).unwrap();
        reopen_file().unwrap();
        dbg(Module::Hmap, format_args!("two"));
        close_file();
        dbg(Module::Hmap, format_args!("nowhere"));
        let messages = |path: &Path| -> Vec<String> {
            let text = std::fs::read_to_string(path).unwrap();
            let ours = text
                .lines()
                .filter(|line| line.contains("|vlog|") || line.contains("|hmap|"));
            ours.map(|line| line.splitn(3, '|').nth(2).unwrap().to_owned())
                .collect()
        };
        let opened = format!("vlog|INFO|opened log file {}", path.display());
        assert_eq!(
            messages(&rotated),
            [
                opened.as_str(),
                "hmap|DBG|one",
                "vlog|INFO|closing log file"
            ]
        );
        assert_eq!(messages(&path), [opened.as_str(), "hmap|DBG|two"]);
    }
}
