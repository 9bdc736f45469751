//! Severities and destinations: the two axes of a module's configuration.

/// The severity of a message, and the limit up to which a destination shows messages. `Off` is only
/// a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Show nothing.
    Off,
    /// The process is about to end.
    Emer,
    /// Something failed.
    Err,
    /// Something is unexpected.
    Warn,
    /// A routine event worth keeping.
    Info,
    /// A trace for developers.
    Dbg,
}

impl Level {
    const ALL: [(Level, &'static str); 6] = [
        (Level::Off, "OFF"),
        (Level::Emer, "EMER"),
        (Level::Err, "ERR"),
        (Level::Warn, "WARN"),
        (Level::Info, "INFO"),
        (Level::Dbg, "DBG"),
    ];

    /// The upper-case name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Level::ALL[self as usize].1
    }

    /// The level with this name, in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Level> {
        Level::ALL
            .into_iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(word))
            .map(|(level, _)| level)
    }

    pub(super) fn from_u8(value: u8) -> Level {
        Level::ALL
            .get(usize::from(value))
            .map_or(Level::Dbg, |(level, _)| *level)
    }

    /// The syslog severity (RFC 5424 6.2.1).
    pub(super) fn severity(self) -> u8 {
        match self {
            Level::Off | Level::Emer => 1,
            Level::Err => 3,
            Level::Warn => 4,
            Level::Info => 5,
            Level::Dbg => 7,
        }
    }
}

/// A destination of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Destination {
    /// The system log.
    Syslog,
    /// Standard error.
    Console,
    /// The log file, if one is open.
    File,
}

impl Destination {
    /// All destinations, in the order of listings.
    pub const ALL: [Destination; 3] =
        [Destination::Syslog, Destination::Console, Destination::File];

    /// The lower-case name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Destination::Syslog => "syslog",
            Destination::Console => "console",
            Destination::File => "file",
        }
    }

    /// The pattern of its lines, unless another is set.
    pub(super) fn default_pattern(self) -> &'static str {
        match self {
            Destination::Syslog => super::SYSLOG_PATTERN,
            Destination::Console => super::CONSOLE_PATTERN,
            Destination::File => super::FILE_PATTERN,
        }
    }

    /// The destination with this name, in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Destination> {
        Destination::ALL
            .into_iter()
            .find(|destination| destination.name().eq_ignore_ascii_case(word))
    }
}
