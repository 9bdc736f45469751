//! Message patterns: expands the `%`-escapes of a destination's pattern into a line.
//!
//! A pure function of the pattern and a [`Context`]. An unknown escape yields its letter. Control
//! characters of a message are escaped, so a message can neither forge a line nor control a
//! terminal.

#![allow(unsafe_code)]

use std::ffi::CString;

use super::message::Message;
use super::{Level, Module};

/// The values of the escapes.
pub(super) struct Context<'a> {
    pub(super) program: &'a str,
    pub(super) subprogram: &'a str,
    pub(super) host: &'a str,
    pub(super) module: Module,
    pub(super) level: Level,
    /// The facility number for `%B`.
    pub(super) facility: u8,
    pub(super) counter: u32,
    pub(super) wall_ms: i64,
    pub(super) since_start_ms: u64,
    pub(super) message: Message<'a>,
}

impl Context<'_> {
    /// The priority (RFC 5424 6.2.1).
    pub(super) fn priority(&self) -> u32 {
        u32::from(self.facility) * 8 + u32::from(self.level.severity())
    }
}

const DATE_DEFAULT: &str = "%Y-%m-%d %H:%M:%S.###";

/// Appends the message, formatted by `pattern`.
pub(super) fn format(pattern: &str, context: &Context<'_>, out: &mut String) {
    let mut rest = pattern;
    while let Some(position) = rest.find('%') {
        out.push_str(&rest[..position]);
        rest = &rest[position + 1..];
        let padding = Padding::take(&mut rest);
        let Some(escape) = rest.chars().next() else {
            return;
        };
        rest = &rest[escape.len_utf8()..];
        let start = out.len();
        expand(escape, &mut rest, context, out);
        padding.apply(out, start);
    }
    out.push_str(rest);
}

/// The padding between `%` and its letter.
struct Padding {
    left: bool,
    fill: char,
    width: usize,
}

impl Padding {
    /// The maximum padding, whatever a pattern asks for.
    const WIDTH_MAX: usize = 1024;

    fn take(rest: &mut &str) -> Padding {
        let mut flag = |flag: char| match rest.strip_prefix(flag) {
            Some(after) => {
                *rest = after;
                true
            }
            None => false,
        };
        let left = flag('-');
        let fill = if flag('0') { '0' } else { ' ' };
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let width = rest[..digits].parse().unwrap_or(0).min(Self::WIDTH_MAX);
        *rest = &rest[digits..];
        Padding { left, fill, width }
    }

    fn apply(&self, out: &mut String, start: usize) {
        let missing = self.width.saturating_sub(out.len() - start);
        let fill = std::iter::repeat_n(self.fill, missing);
        if self.left {
            out.extend(fill);
        } else if missing > 0 {
            out.insert_str(start, &fill.collect::<String>());
        }
    }
}

fn expand(escape: char, rest: &mut &str, context: &Context<'_>, out: &mut String) {
    match escape {
        'A' => out.push_str(context.program),
        'B' => out.push_str(&context.priority().to_string()),
        'c' => {
            take_braces(rest);
            out.push_str(context.module.name());
        }
        'd' => out.push_str(&date(take_braces(rest), context.wall_ms, Zone::Local)),
        'D' => out.push_str(&date(take_braces(rest), context.wall_ms, Zone::Utc)),
        'E' => out.push_str(context.host),
        'm' => out.push_str(&context.message.shown()),
        'N' => out.push_str(&context.counter.to_string()),
        'n' => out.push('\n'),
        'p' => out.push_str(context.level.name()),
        'P' => out.push_str(&std::process::id().to_string()),
        'r' => out.push_str(&context.since_start_ms.to_string()),
        't' if context.subprogram.is_empty() => out.push_str("main"),
        't' => out.push_str(context.subprogram),
        'T' if context.subprogram.is_empty() => {}
        'T' => {
            out.push('(');
            out.push_str(context.subprogram);
            out.push(')');
        }
        other => out.push(other),
    }
}

/// Removes a `{...}` argument from the front; returns an empty text if there is none.
fn take_braces<'a>(rest: &mut &'a str) -> &'a str {
    match rest
        .strip_prefix('{')
        .and_then(|after| after.split_once('}'))
    {
        Some((argument, after)) => {
            *rest = after;
            argument
        }
        None => "",
    }
}

#[derive(Clone, Copy)]
pub(super) enum Zone {
    Local,
    Utc,
}

/// `strftime`, where each `#` is one more digit of the second's fraction.
pub(super) fn date(format: &str, wall_ms: i64, zone: Zone) -> String {
    let format = if format.is_empty() {
        DATE_DEFAULT
    } else {
        format
    };
    let mut fraction = wall_ms.rem_euclid(1000);
    strftime(format, wall_ms.div_euclid(1000), zone)
        .chars()
        .map(|c| {
            if c != '#' {
                return c;
            }
            let digit = fraction / 100;
            fraction = fraction * 10 % 1000;
            char::from_digit(digit as u32, 10).unwrap_or('0')
        })
        .collect()
}

fn strftime(format: &str, seconds: i64, zone: Zone) -> String {
    let Ok(format) = CString::new(format) else {
        return String::new();
    };
    let mut buffer = [0u8; 256];
    // SAFETY: an all-zero `tm` is a valid value (integers and a null zone name); both conversions
    // fill it in. The buffer is valid for its length, and strftime returns how many bytes of it are
    // text, 0 when the text does not fit.
    let length = unsafe {
        let mut broken_down: libc::tm = std::mem::zeroed();
        match zone {
            Zone::Local => libc::localtime_r(&raw const seconds, &raw mut broken_down),
            Zone::Utc => libc::gmtime_r(&raw const seconds, &raw mut broken_down),
        };
        libc::strftime(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            format.as_ptr(),
            &raw const broken_down,
        )
    };
    String::from_utf8_lossy(&buffer[..length.min(buffer.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context<'static> {
        Context {
            program: "ovsdb-server",
            subprogram: "",
            host: "node1",
            module: Module::Jsonrpc,
            level: Level::Info,
            facility: 16,
            counter: 2,
            wall_ms: 1_795_225_454_777,
            since_start_ms: 42,
            message: Message::Line("hello\n\n"),
        }
    }

    fn line(pattern: &str) -> String {
        let mut out = String::new();
        format(pattern, &context(), &mut out);
        out
    }

    #[test]
    fn default_patterns_give_the_documented_lines() {
        assert_eq!(
            line(crate::vlog::FILE_PATTERN),
            "2026-11-21T01:44:14.777Z|00002|jsonrpc|INFO|hello"
        );
        assert_eq!(
            line(crate::vlog::CONSOLE_PATTERN),
            "2026-11-21T01:44:14Z|00002|jsonrpc|INFO|hello"
        );
        assert_eq!(
            line(crate::vlog::SYSLOG_PATTERN),
            "ovs|00002|jsonrpc|INFO|hello"
        );
    }

    #[test]
    fn a_message_is_one_line_without_control_characters() {
        let context = Context {
            message: Message::Line(
                "a\n2026-11-21T01:44:14Z|00003|raft|ERR|forged\u{1b}[2J\u{9b}m\u{202e}\n",
            ),
            ..context()
        };
        let mut out = String::new();
        format("%m%n", &context, &mut out);
        let expected = "a\\n2026-11-21T01:44:14Z|00003|raft|ERR|forged\\u001b[2J\\u009bm\\u202e\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn escapes_and_padding() {
        assert_eq!(
            line("[%-10c|%05N|%8p|%t|%T|%A|%q|%%|%E|%B|%r]"),
            "[jsonrpc   |00002|    INFO|main||ovsdb-server|q|%|node1|133|42]"
        );
        assert_eq!(line("%D{%H:##}%n%c{x}!%"), "01:77\njsonrpc!");
        assert_eq!(line("%D"), "2026-11-21 01:44:14.777");
        assert_eq!(line("%P"), std::process::id().to_string());
        // An incomplete escape at the end yields nothing.
        for unfinished in ["%m%", "%m%-", "%m%05"] {
            assert_eq!(line(unfinished), "hello");
        }
    }
}
