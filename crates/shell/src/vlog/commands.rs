//! The control commands of the logger.

use super::{Level, Module};
use crate::unixctl::Registry;

/// Registers `vlog/set`, `vlog/list` and so on.
pub fn register<C: 'static>(registry: &mut Registry<C>) {
    let any = usize::MAX;
    registry.register(
        "vlog/set",
        "{spec | PATTERN:destination:pattern}",
        0,
        any,
        |_, args| {
            if args.is_empty() {
                super::set_level(None, None, Level::Dbg);
            }
            // Arguments before a bad one stay applied.
            args.iter()
                .try_for_each(|spec| super::set(spec))
                .map_err(|error| error.to_string())?;
            Ok(String::new())
        },
    );
    registry.register("vlog/list", "", 0, 0, |_, _| Ok(super::list()));
    registry.register("vlog/list-pattern", "", 0, 0, |_, _| {
        Ok(super::list_patterns())
    });
    registry.register(
        "vlog/enable-rate-limit",
        "[module]...",
        0,
        any,
        |_, args| set_limits(args, true),
    );
    registry.register(
        "vlog/disable-rate-limit",
        "[module]...",
        0,
        any,
        |_, args| set_limits(args, false),
    );
    registry.register("vlog/reopen", "", 0, 0, |_, _| {
        super::reopen_file()
            .map(|()| String::new())
            .map_err(|error| match error {
                super::FileError::Open(_, error) => corvid_net::errno::text(&error),
                other => other.to_string(),
            })
    });
    registry.register("vlog/close", "", 0, 0, |_, _| {
        super::close_file();
        Ok(String::new())
    });
    registry.register_hidden("vlog/message", "message", 1, 1, |_, args| {
        super::info(Module::Vlog, format_args!("user-message: {}", args[0]));
        Ok(String::new())
    });
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
