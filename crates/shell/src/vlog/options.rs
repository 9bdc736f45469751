//! The logging options that all programs share: `-v`, `--log-file`, `--syslog-method`, `--syslog-target`, and `--log-format`, which
//! the reference does not have.

use std::path::Path;

use crate::args::{Arg, Spec};
use crate::program;

/// One of these options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named by its option")]
pub enum LogOption {
    Verbose,
    LogFile,
    SyslogMethod,
    SyslogTarget,
    LogFormat,
}

/// The heading of these options.
pub const GROUP: &str = "Logging options";

/// The table of these options; `wrap` makes them options of the program.
pub fn specs<I: Copy>(wrap: impl Fn(LogOption) -> I) -> [Spec<I>; 5] {
    [
        verbose_spec(wrap(LogOption::Verbose)),
        Spec::long("log-file", Arg::Optional, wrap(LogOption::LogFile))
            .means("FILE", "log to FILE (default: {logdir}/{program}.log)")
            .within(GROUP)
            .more("Lines are appended. After the file has been renamed, `vlog/reopen` on the control socket begins a new one."),
        Spec::long("syslog-method", Arg::Required, wrap(LogOption::SyslogMethod))
            .means("METHOD", "how to reach the system log")
            .within(GROUP)
            .more(
                "`libc` (the default), `null` for not at all, `unix:FILE` or `udp:IP:PORT`. The variable `OVS_SYSLOG_METHOD` sets another \
                default. Of several the first counts.",
            ),
        Spec::long("syslog-target", Arg::Required, wrap(LogOption::SyslogTarget))
            .means("HOST:PORT", "also send log messages there, over UDP")
            .within(GROUP)
            .more("In the form of RFC 5424. Deprecated in favour of `--syslog-method`."),
        Spec::long("log-format", Arg::Required, wrap(LogOption::LogFormat))
            .in_full()
            .means("FORMAT", "how console and log file look: text or json (default: text)")
            .within(GROUP)
            .more("`json` writes an object on each line. A pattern given later makes text of its destination again."),
    ]
}

/// `-v`, also for programs that log to the terminal only.
pub const fn verbose_spec<I: Copy>(id: I) -> Spec<I> {
    Spec::both("verbose", 'v', Arg::Optional, id)
        .means("SPEC", "set logging levels; without SPEC, log everything")
        .within(GROUP)
        .more(
            "SPEC consists of words between colons, commas or spaces: at most one module, one destination (`syslog`, `console`, \
            `file`) and one level (`off`, `emer`, `err`, `warn`, `info`, `dbg`). A missing module or destination means all of them, a \
            missing level means `dbg`. `PATTERN:DESTINATION:PATTERN` sets the form of lines, `FACILITY:NAME` the facility of the system \
            log. May be given repeatedly.",
        )
}

/// Applies one option at once. A bad SPEC or method, or a log file that was named and cannot be opened, ends the process.
pub fn apply(option: LogOption, value: Option<&str>) {
    match option {
        LogOption::Verbose => {
            let spec = value.unwrap_or_default();
            if let Err(error) = super::set(spec) {
                program::fatal(format_args!("processing \"{spec}\": {error}"));
            }
        }
        LogOption::LogFile => {
            // The failure is logged. It ends the process only when the user named a file.
            if super::open_file(value.map(Path::new)).is_err() && value.is_some() {
                program::exit(1);
            }
        }
        LogOption::SyslogMethod => {
            if let Err(error) = super::set_syslog_method(value.unwrap_or_default()) {
                program::fatal(error);
            }
        }
        LogOption::LogFormat => match value.unwrap_or_default() {
            "json" => super::set_json(true),
            "text" => super::set_json(false),
            other => program::fatal(format_args!(
                "--log-format: \"{other}\" is neither \"text\" nor \"json\""
            )),
        },
        LogOption::SyslogTarget => super::set_syslog_target(value.unwrap_or_default()),
    }
}
