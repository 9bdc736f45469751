//! The configurable limits on what clients take: the options, their defaults, and how the limit of
//! file descriptors reduces them.
//!
//! `--max-client-memory` bounds all memory that clients make the server hold. Each kind has a
//! share, so no kind starves another: request texts half, replies a quarter, conditions and waiting
//! transactions a quarter. `--max-message-size` and `--max-reply-memory` override the shares of
//! their kinds.
//!
//! Called by the command line at the start, and by changes at run time. Other parts enforce the
//! limits ([`corvid_reactor::shard::Limits`], [`corvid_service::client_memory`]). The limits of one
//! session in one database are not configurable ([`corvid_service::session_limits`]).

use corvid_net::errno;
use corvid_reactor::shard::Limits;
use corvid_service::client_memory::ClientMemory;
use corvid_shell::args::{Arg, Spec};
use corvid_shell::vlog::{self, Module};
use corvid_shell::{descriptors, program, size};

/// The default maximum of a message, bytes: more than any transaction that restores a known
/// database.
const MESSAGE_BYTES: u64 = 1 << 30;

/// The default maximum of a session's unread output, bytes: the reference's limit between cluster
/// members.
const BACKLOG_BYTES: u64 = 4 << 30;

/// The default maximum of the memory that all clients together make the server hold, bytes. A
/// quarter of it suffices for more clients reading their initial contents than any known deployment
/// has. It also suffices for 500 clients with conditions of 10,000 clauses each, no two of them
/// equal.
const MEMORY_BYTES: u64 = 4 << 30;

/// File descriptors reserved for files, the control socket and connections that the server opens.
const RESERVED_DESCRIPTORS: u64 = 256;

/// An option that sets a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LimitOption {
    /// `--max-sessions`
    Sessions,
    /// `--max-message-size`
    Message,
    /// `--max-session-backlog`
    Backlog,
    /// `--max-client-memory`
    Memory,
    /// `--max-reply-memory`
    Replies,
}

impl LimitOption {
    /// All options, sorted by name.
    pub(crate) const ALL: [LimitOption; 5] = [
        LimitOption::Memory,
        LimitOption::Message,
        LimitOption::Replies,
        LimitOption::Backlog,
        LimitOption::Sessions,
    ];

    /// The option of this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<LimitOption> {
        LimitOption::ALL
            .into_iter()
            .find(|option| option.name() == name)
    }

    /// The option's name, without dashes.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            LimitOption::Sessions => "max-sessions",
            LimitOption::Message => "max-message-size",
            LimitOption::Backlog => "max-session-backlog",
            LimitOption::Memory => "max-client-memory",
            LimitOption::Replies => "max-reply-memory",
        }
    }

    /// The value in force: sessions, or bytes.
    #[must_use]
    pub(crate) fn of(self, limits: &Limits, settings: &Settings) -> usize {
        match self {
            LimitOption::Sessions => limits.connections_max,
            LimitOption::Message => limits.text_bytes_max,
            LimitOption::Backlog => limits.backlog_bytes_max,
            LimitOption::Memory => narrow(settings.memory_bytes()),
            LimitOption::Replies => settings.reply_bytes_max(),
        }
    }
}

/// The heading of these options in the manual.
pub(crate) const GROUP: &str = "Limits on clients (SIZE in bytes, or with suffix K, M or G)";

/// The table of these options; `wrap` converts them to options of the program.
pub(crate) fn specs<I: Copy>(wrap: impl Fn(LimitOption) -> I) -> [Spec<I>; 5] {
    let option = |option: LimitOption| {
        Spec::long(option.name(), Arg::Required, wrap(option))
            .in_full()
            .within(GROUP)
    };
    [
        option(LimitOption::Sessions)
            .means("N", "maximum number of client sessions (default: as many as the open-file limit allows)")
            .more(
                "Further connections are closed at once. The server raises its soft limit of open files to the hard limit, and reserves 256 \
                descriptors for files, the control socket and outgoing connections.",
            ),
        option(LimitOption::Message)
            .means("SIZE", "maximum size of one message from a client (default: 1G)")
            .more(
                "A client that sends a longer message is disconnected. If this option is given, all unhandled messages together may take twice \
                SIZE. Beyond that the server closes the connection whose incomplete message has not grown for the longest time, or one of the peer \
                with the most bytes.",
            ),
        option(LimitOption::Memory)
            .means("SIZE", "memory for requests, replies, monitors and waits of all clients (default: 4G)")
            .more(
                "Half of it is for messages that are not handled yet (twice `--max-message-size` if that is given), a quarter for unread replies \
                (`--max-reply-memory` if that is given), and a quarter for monitor conditions and waiting transactions. Requests beyond a share are \
                answered with \"resources exhausted\". Database contents do not count.",
            ),
        option(LimitOption::Backlog)
            .means("SIZE", "maximum unread output of one client (default: 4G)")
            .more(
                "A client that leaves more unread is disconnected. One reply may be as large as the database, so SIZE should exceed that.",
            ),
        option(LimitOption::Replies)
            .means("SIZE", "memory for unread replies of all clients (default: a quarter of --max-client-memory)")
            .more(
                "Counts replies that are being composed or are not read yet. Above SIZE, long transactions and monitor requests are answered with \
                \"resources exhausted\" until clients have read their replies; below it, a dump of a database always succeeds. Results that a \
                transaction selects from the same table repeatedly may take half of the remaining room. An echo, or an error that quotes a long \
                request, must fit into the remaining room.",
            ),
    ]
}

/// The values given by the user; `None`: the default applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    sessions: Option<u64>,
    message_bytes: Option<u64>,
    backlog_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    reply_bytes: Option<u64>,
}

impl Settings {
    /// Applies a command-line option; the last one of its kind wins. An invalid value ends the
    /// process.
    pub(crate) fn apply(&mut self, option: LimitOption, value: Option<&str>) {
        let value = value.unwrap_or_default();
        if let Err(expected) = self.set(option, value) {
            program::fatal(format_args!("--{}={value}: {expected}", option.name()));
        }
    }

    /// Changes a value at run time.
    ///
    /// # Errors
    /// The value is invalid; the text says what is expected.
    pub(crate) fn set(&mut self, option: LimitOption, value: &str) -> Result<(), &'static str> {
        match option {
            LimitOption::Sessions => self.sessions = Some(count(value)?),
            LimitOption::Message => self.message_bytes = Some(bytes(value)?),
            LimitOption::Backlog => self.backlog_bytes = Some(bytes(value)?),
            LimitOption::Memory => self.memory_bytes = Some(bytes(value)?),
            LimitOption::Replies => self.reply_bytes = Some(bytes(value)?),
        }
        Ok(())
    }

    /// The maximum of all replies together, bytes.
    #[must_use]
    pub(crate) fn reply_bytes_max(&self) -> usize {
        narrow(self.reply_bytes.unwrap_or(self.memory_bytes() / 4))
    }

    /// The maximum of conditions and waiting transactions together, bytes.
    #[must_use]
    pub(crate) fn kept_bytes_max(&self) -> usize {
        narrow(self.memory_bytes() / 4)
    }

    /// The maximum of unhandled request texts together, bytes.
    fn unfinished_bytes_max(&self) -> usize {
        let of_message = self.message_bytes.map(|bytes| bytes.saturating_mul(2));
        narrow(of_message.unwrap_or(self.memory_bytes() / 2))
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes.unwrap_or(MEMORY_BYTES)
    }

    /// Sets the limits of the clients' memory account.
    pub(crate) fn limit(&self, memory: &ClientMemory) {
        memory.set_bytes_max(self.reply_bytes_max());
        memory.set_kept_bytes_max(self.kept_bytes_max());
    }

    /// Raises the process's limit of file descriptors as far as possible, and returns limits that
    /// fit it.
    #[must_use]
    pub(crate) fn resolve(&self) -> Limits {
        let descriptors = descriptors::raise().unwrap_or_else(|error| {
            let text = errno::text(&error);
            warn(format_args!(
                "cannot read or raise the limit of open files: {text}"
            ));
            RESERVED_DESCRIPTORS * 4
        });
        let possible = sessions_possible(descriptors);
        if let Some(sessions) = self.sessions.filter(|sessions| *sessions > possible) {
            warn(format_args!(
                "--max-sessions={sessions} exceeds the limit of {descriptors} open files; at most {possible} sessions are served"
            ));
        }
        Limits {
            connections_max: narrow(self.sessions.unwrap_or(possible).min(possible)),
            text_bytes_max: narrow(self.message_bytes.unwrap_or(MESSAGE_BYTES)),
            unfinished_bytes_max: self.unfinished_bytes_max(),
            backlog_bytes_max: narrow(self.backlog_bytes.unwrap_or(BACKLOG_BYTES)),
        }
    }
}

/// The maximum of connections: the descriptors minus the reserved ones. If the limit is small, half
/// of it is reserved.
fn sessions_possible(descriptors: u64) -> u64 {
    let reserved = RESERVED_DESCRIPTORS.min(descriptors / 2);
    (descriptors - reserved).max(1)
}

fn count(value: &str) -> Result<u64, &'static str> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|number| is_number && *number > 0);
    number.ok_or("expected a number of sessions, 1 or more")
}

/// Parses a size in bytes. The minimum leaves room for a probe and its reply, so that clients can
/// connect.
fn bytes(value: &str) -> Result<u64, &'static str> {
    match size::parse(value) {
        None => Err("expected a size: a number of bytes, or one with suffix K, M or G"),
        Some(bytes) if bytes < 1024 => Err("too small; the minimum is 1K"),
        Some(bytes) => Ok(bytes),
    }
}

fn narrow(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn warn(text: std::fmt::Arguments<'_>) {
    vlog::warn(Module::OvsdbServer, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_rejected_with_a_reason() {
        assert_eq!(count("1"), Ok(1));
        assert_eq!(bytes("1K"), Ok(1024));
        assert_eq!(bytes("64m"), Ok(64 << 20));
        for bad in ["", "0", "-1", "1K", "many"] {
            assert!(count(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "0", "1023", "-1", "1T", "1 M", "99999999999G"] {
            assert!(bytes(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn kinds_share_the_memory_of_clients() {
        let mut settings = Settings::default();
        let shares = |settings: &Settings| {
            (
                settings.unfinished_bytes_max() >> 20,
                settings.reply_bytes_max() >> 20,
                settings.kept_bytes_max() >> 20,
            )
        };
        assert_eq!(shares(&settings), (2048, 1024, 1024));
        assert_eq!(settings.set(LimitOption::Memory, "400M"), Ok(()));
        assert_eq!(shares(&settings), (200, 100, 100));
        assert_eq!(settings.set(LimitOption::Message, "4M"), Ok(()));
        assert_eq!(settings.set(LimitOption::Replies, "1G"), Ok(()));
        assert_eq!(shares(&settings), (8, 1024, 100));
    }

    #[test]
    fn sessions_leave_reserved_descriptors() {
        assert_eq!(sessions_possible(524_288), 524_288 - 256);
        assert_eq!(sessions_possible(1024), 768);
        assert_eq!(sessions_possible(64), 32);
        assert_eq!(sessions_possible(1), 1);
    }
}
