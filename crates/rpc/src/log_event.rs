//! Events of a reconnecting session for the log, as data, with the texts and levels of the
//! reference's `reconnect` module.
//!
//! The shell prefixes the connection's name and `: `. Tests and operators search for these texts
//! (docs/spec/cli.md 5.2, 7.7).

use std::fmt::{self, Display, Formatter};

/// The level of an event. The shell lowers `Info` to debug for sessions that a listener accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every step.
    Debug,
    /// Normal progress.
    Info,
    /// A failure.
    Warn,
    /// The peer does not answer.
    Error,
}

/// Why a connection or an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The peer closed its side.
    Closed,
    /// An error of the operating system, in its words (`Connection refused`).
    Failed(String),
    /// This side ended it: on a timeout, or for no special reason.
    Local,
}

/// One event. Its display is the reference's log text, without the connection's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEvent {
    /// An attempt starts.
    Connecting,
    /// A listener opens.
    Listening,
    /// An attempt succeeded.
    Connected,
    /// An attempt failed.
    AttemptFailed {
        /// Whether the attempt was to listen for a peer instead of connecting to it.
        is_passive: bool,
        /// The reason; [`End::Local`] is a timeout.
        end: End,
    },
    /// A listener failed.
    ListenFailed(End),
    /// An established connection ended.
    Dropped(End),
    /// The user requested a new connection, so the old one was closed.
    ClosedByClient,
    /// The next attempt follows after a wait.
    BackingOff {
        /// As in [`LogEvent::AttemptFailed`].
        is_passive: bool,
        /// The wait, ms.
        wait_ms: u64,
    },
    /// Attempts continue without being logged.
    Suppressing {
        /// As in [`LogEvent::AttemptFailed`].
        is_passive: bool,
    },
    /// A probe has been sent.
    Probing {
        /// Silence so far, ms.
        idle_ms: u64,
    },
    /// A probe has not been answered.
    Unanswered {
        /// Time since the probe, ms.
        unanswered_ms: u64,
    },
}

impl LogEvent {
    /// The event's level.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            LogEvent::Probing { .. } => Level::Debug,
            LogEvent::Unanswered { .. } => Level::Error,
            LogEvent::ListenFailed(End::Failed(_)) | LogEvent::Dropped(End::Failed(_)) => {
                Level::Warn
            }
            _ => Level::Info,
        }
    }
}

impl Display for LogEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LogEvent::Connecting => f.write_str("connecting..."),
            LogEvent::Listening => f.write_str("listening..."),
            LogEvent::Connected => f.write_str("connected"),
            LogEvent::AttemptFailed { is_passive, end } => {
                f.write_str(if *is_passive {
                    "listen attempt "
                } else {
                    "connection attempt "
                })?;
                match end {
                    End::Failed(reason) => write!(f, "failed ({reason})"),
                    End::Closed => f.write_str("failed (End of file)"),
                    End::Local => f.write_str("timed out"),
                }
            }
            LogEvent::ListenFailed(End::Failed(reason)) => {
                write!(f, "error listening for connections ({reason})")
            }
            LogEvent::ListenFailed(_) => f.write_str("error listening for connections"),
            LogEvent::Dropped(End::Failed(reason)) => write!(f, "connection dropped ({reason})"),
            LogEvent::Dropped(End::Closed) => f.write_str("connection closed by peer"),
            LogEvent::Dropped(End::Local) => f.write_str("connection dropped"),
            LogEvent::ClosedByClient => f.write_str("connection closed by client"),
            LogEvent::BackingOff {
                is_passive,
                wait_ms,
            } => {
                let action = if *is_passive {
                    "trying to listen again"
                } else {
                    "reconnect"
                };
                write!(f, "waiting {} seconds before {action}", Seconds(*wait_ms))
            }
            LogEvent::Suppressing { is_passive } => {
                let action = if *is_passive {
                    "try to listen"
                } else {
                    "reconnect"
                };
                write!(
                    f,
                    "continuing to {action} in the background but suppressing further logging"
                )
            }
            LogEvent::Probing { idle_ms } => {
                write!(f, "idle {idle_ms} ms, sending inactivity probe")
            }
            LogEvent::Unanswered { unanswered_ms } => {
                let elapsed = Seconds(*unanswered_ms);
                write!(
                    f,
                    "no response to inactivity probe after {elapsed} seconds, disconnecting"
                )
            }
        }
    }
}

/// Milliseconds, shown as seconds with three significant digits (C's `%.3g`): `5`, `5.01`, `12.3`,
/// `0.25`.
#[derive(Debug, Clone, Copy)]
pub struct Seconds(pub u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // The unit of the last digit shown. From 1000 seconds on, whole seconds are shown, which is
        // more exact than `%.3g`.
        let unit_ms = match self.0 {
            0..1000 => 1,
            1000..9_995 => 10,
            9_995..99_950 => 100,
            _ => 1000,
        };
        let shown_ms = (self.0 + unit_ms / 2) / unit_ms * unit_ms;
        write!(f, "{}", shown_ms / 1000)?;
        match shown_ms % 1000 {
            0 => Ok(()),
            rest => f.write_str(format!(".{rest:03}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Level, LogEvent, Seconds};

    #[test]
    fn words_are_those_of_the_reference() {
        let failed = || End::Failed("Connection refused".to_owned());
        for (event, level, text) in [
            (LogEvent::Connecting, Level::Info, "connecting..."),
            (LogEvent::Connected, Level::Info, "connected"),
            (
                LogEvent::AttemptFailed {
                    is_passive: false,
                    end: failed(),
                },
                Level::Info,
                "connection attempt failed (Connection refused)",
            ),
            (
                LogEvent::AttemptFailed {
                    is_passive: false,
                    end: End::Local,
                },
                Level::Info,
                "connection attempt timed out",
            ),
            (
                LogEvent::Dropped(failed()),
                Level::Warn,
                "connection dropped (Connection refused)",
            ),
            (
                LogEvent::Dropped(End::Closed),
                Level::Info,
                "connection closed by peer",
            ),
            (
                LogEvent::Dropped(End::Local),
                Level::Info,
                "connection dropped",
            ),
            (
                LogEvent::BackingOff {
                    is_passive: false,
                    wait_ms: 2000,
                },
                Level::Info,
                "waiting 2 seconds before reconnect",
            ),
            (
                LogEvent::Suppressing { is_passive: false },
                Level::Info,
                "continuing to reconnect in the background but suppressing further logging",
            ),
            (
                LogEvent::Unanswered {
                    unanswered_ms: 5001,
                },
                Level::Error,
                "no response to inactivity probe after 5 seconds, disconnecting",
            ),
        ] {
            assert_eq!((event.level(), event.to_string().as_str()), (level, text));
        }
    }

    #[test]
    fn seconds_have_three_significant_digits() {
        for (ms, text) in [
            (0, "0"),
            (250, "0.25"),
            (999, "0.999"),
            (1000, "1"),
            (1500, "1.5"),
            (5001, "5"),
            (5012, "5.01"),
            (9999, "10"),
            (12_345, "12.3"),
            (99_960, "100"),
            (123_456, "123"),
        ] {
            assert_eq!(Seconds(ms).to_string(), text);
        }
    }
}
