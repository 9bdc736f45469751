//! The logging options that all programs share: `-v`, `--log-file`, `--syslog-method`, `--syslog-target`.

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
}

/// What `--help` says about these options.
pub const HELP: &str = "
Logging options:
  -vSPEC, --verbose=SPEC   set logging levels
  -v, --verbose            set maximum verbosity level
  --log-file[=FILE]        enable logging to specified FILE (default: LOGDIR/PROG.log)
  --syslog-method=(libc|unix:file|udp:ip:port|null)
                           specify how to send messages to syslog daemon
  --syslog-target=HOST:PORT  also send syslog messages to HOST:PORT via UDP
";

/// The table of these options; `wrap` makes them options of the program.
pub fn specs<I>(wrap: impl Fn(LogOption) -> I) -> [Spec<I>; 4] {
    [
        Spec::both("verbose", 'v', Arg::Optional, wrap(LogOption::Verbose)),
        Spec::long("log-file", Arg::Optional, wrap(LogOption::LogFile)),
        Spec::long(
            "syslog-method",
            Arg::Required,
            wrap(LogOption::SyslogMethod),
        ),
        Spec::long(
            "syslog-target",
            Arg::Required,
            wrap(LogOption::SyslogTarget),
        ),
    ]
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
            // The failure is logged. It matters only to those who asked for a certain file.
            if super::open_file(value.map(Path::new)).is_err() && value.is_some() {
                program::exit(1);
            }
        }
        LogOption::SyslogMethod => {
            if let Err(error) = super::set_syslog_method(value.unwrap_or_default()) {
                program::fatal(error);
            }
        }
        LogOption::SyslogTarget => super::set_syslog_target(value.unwrap_or_default()),
    }
}
