//! The control commands of the logger.

use super::{Level, Module};
use crate::unixctl::{Command, Registry};

/// Registers `vlog/set`, `vlog/list` and so on.
pub fn register<C: 'static>(registry: &mut Registry<C>) {
    registry.add([
        Command::new(
            "vlog/set",
            "{spec | PATTERN:destination:pattern}",
            0..=usize::MAX,
            "set logging levels, or patterns; without an argument, log everything",
            |_, args| {
                if args.is_empty() {
                    super::set_level(None, None, Level::Dbg);
                }
                // Arguments before an invalid one stay applied.
                args.iter()
                    .try_for_each(|spec| super::set(spec))
                    .map_err(|error| error.to_string())?;
                Ok(String::new())
            },
        )
        .shown("[SPEC | PATTERN:DESTINATION:PATTERN]..."),
        Command::new("vlog/list", "", 0..=0, "list logging levels", |_, _| {
            Ok(super::list())
        }),
        Command::new(
            "vlog/list-pattern",
            "",
            0..=0,
            "list logging patterns",
            |_, _| Ok(super::list_patterns()),
        ),
        Command::new(
            "vlog/enable-rate-limit",
            "[module]...",
            0..=usize::MAX,
            "limit the rate of repeated messages again",
            |_, args| set_limits(args, true),
        )
        .shown("[MODULE]..."),
        Command::new(
            "vlog/disable-rate-limit",
            "[module]...",
            0..=usize::MAX,
            "log repeated messages however often they come",
            |_, args| set_limits(args, false),
        )
        .shown("[MODULE]..."),
        Command::new(
            "vlog/reopen",
            "",
            0..=0,
            "reopen the log file, after it has been renamed",
            |_, _| {
                super::reopen_file()
                    .map(|()| String::new())
                    .map_err(|error| match error {
                        super::FileError::Open(_, error) => corvid_net::errno::text(&error),
                        other => other.to_string(),
                    })
            },
        ),
        Command::new("vlog/close", "", 0..=0, "close the log file", |_, _| {
            super::close_file();
            Ok(String::new())
        }),
        Command::new(
            "vlog/message",
            "message",
            1..=1,
            "log a message",
            |_, args| {
                super::info(Module::Vlog, format_args!("user-message: {}", args[0]));
                Ok(String::new())
            },
        )
        .hidden(),
    ]);
}

fn set_limits(args: &[String], limited: bool) -> Result<String, String> {
    if args.is_empty() {
        super::set_rate_limiting(None, limited);
    }
    for name in args {
        if name.eq_ignore_ascii_case("any") {
            super::set_rate_limiting(None, limited);
        } else {
            let module = Module::parse(name).ok_or("unknown module")?;
            super::set_rate_limiting(Some(module), limited);
        }
    }
    Ok(String::new())
}
