//! The control channel: a Unix socket on which operators and scripts send commands to a running
//! daemon (docs/spec/cli.md 2).
//!
//! [`Registry`] holds the commands, [`Server`] serves them from the program's main loop, [`Client`]
//! is the other side. Commands are generic over a context type, so that they can reach the
//! program's state without globals. The channel handles only command names and texts.

mod client;
mod commands;
mod message;
mod registry;
mod server;

pub use client::{Client, ClientError, TargetError, socket_of};
pub use commands::register_builtin;
pub use registry::{Command, Outcome, Registry};
pub use server::{Replier, Server};

/// How replies are rendered; each connection chooses with `set-options`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Plain text, which ends in a newline.
    #[default]
    Text,
    /// JSON: native if the command has a JSON form, else the text wrapped in an object.
    Json,
}

impl Format {
    /// The format with this name, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Format> {
        [("text", Format::Text), ("json", Format::Json)]
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, format)| format)
    }
}
