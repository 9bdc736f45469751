//! The logging options that all programs share: `-v`, `--log-file`, `--syslog-method`,
//! `--syslog-target`, and `--log-format`, which the reference does not have.

use corvid_net::os_name;

use crate::args::{Arg, Spec};
use crate::program;

/// A logging option.
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

/// The table of these options; `wrap` converts them to options of the program.
pub fn specs<I: Copy>(wrap: impl Fn(LogOption) -> I) -> [Spec<I>; 5] {
    [
        verbose_spec(wrap(LogOption::Verbose)),
        Spec::long("log-file", Arg::Optional, wrap(LogOption::LogFile))
            .means("FILE", "log to FILE (default: {logdir}/{program}.log)")
            .within(GROUP)
            .more("Lines are appended. To rotate the file, rename it, then run `vlog/reopen` on the control socket."),
        Spec::long("syslog-method", Arg::Required, wrap(LogOption::SyslogMethod))
            .means("METHOD", "how to reach the system log")
            .within(GROUP)
            .more(
                "`libc` (the default) calls syslog(3), which adds its own prefix to each message. `unix:FILE` writes to the system log's \
                socket, and `udp:IP:PORT` sends datagrams; both send the message as the pattern formats it. With `udp:` the system log must \
                listen on that port, packet filters must pass the datagrams, and datagrams can be lost or forged. rsyslogd up to 8.9 \
                accepts only one message format on its socket: use `udp:` to the local host there. `null` sends nothing. The variable \
                `OVS_SYSLOG_METHOD` changes the default. If the option is repeated, the first one counts.",
            ),
        Spec::long("syslog-target", Arg::Required, wrap(LogOption::SyslogTarget))
            .means("HOST:PORT", "also send log messages there, over UDP")
            .within(GROUP)
            .more("Uses the RFC 5424 format. HOST is a numeric address. Deprecated in favour of `--syslog-method`."),
        Spec::long("log-format", Arg::Required, wrap(LogOption::LogFormat))
            .in_full()
            .means("FORMAT", "format of console and log file: text or json (default: text)")
            .within(GROUP)
            .more("`json` writes one object per line. Setting a pattern later switches its destination back to text."),
    ]
}

/// `-v`, also for programs that log only to the terminal.
pub const fn verbose_spec<I: Copy>(id: I) -> Spec<I> {
    Spec::both("verbose", 'v', Arg::Optional, id)
        .means("SPEC", "set logging levels; without SPEC, log everything")
        .within(GROUP)
        .more(
            "SPEC consists of words between colons, commas or spaces: at most one module, one destination (`syslog`, `console`, \
            `file`) and one level (`off`, `emer`, `err`, `warn`, `info`, `dbg`). A missing module or destination means all of them, a \
            missing level means `dbg`. Case does not count, and the word `any`, of older versions, has no effect. Messages of the level and of \
            more severe ones are logged; `off` logs none. Modules are those of the command `vlog/list`. Nothing goes to a file without \
            `--log-file`. A program in the background has no console. May be given repeatedly.\n\n\
            `PATTERN:DESTINATION:PATTERN` sets the form of lines; `ovs-appctl`(8) lists what a pattern may contain. `FACILITY:NAME` sets the \
            facility of messages to the system log: `kern`, `user`, `mail`, `daemon`, `auth`, `syslog`, `lpr`, `news`, `uucp`, `clock`, `ftp`, \
            `ntp`, `audit`, `alert`, `clock2` or `local0` to `local7`. Without it, it is `daemon` for the local system log and `local0` for \
            `--syslog-target`.",
        )
}

/// Applies one option at once. An invalid SPEC or method, or a named log file that cannot be
/// opened, ends the process.
pub fn apply(option: LogOption, value: Option<&str>) {
    match option {
        LogOption::Verbose => {
            let spec = value.unwrap_or_default();
            if let Err(error) = super::set(spec) {
                program::fatal(format_args!("processing \"{spec}\": {error}"));
            }
        }
        LogOption::LogFile => {
            let path = value.map(os_name::path);
            // The failure is logged. It ends the process only if the user named a file.
            if super::open_file(path.as_deref()).is_err() && value.is_some() {
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
                "--log-format: expected \"text\" or \"json\", not \"{other}\""
            )),
        },
        LogOption::SyslogTarget => super::set_syslog_target(value.unwrap_or_default()),
    }
}
