//! The measured server: a program with the command line of ovsdb-server, or the address of a
//! running server.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::stream::Address;

/// A server to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Program(Program),
    /// A running server. Its CPU time, memory and file cannot be measured, and it cannot be
    /// controlled.
    Address(Address),
}

/// A program with the settings with which it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Libraries that are preloaded (`LD_PRELOAD`): another allocator or a slow disk.
    pub(crate) preload: Vec<PathBuf>,
    /// Environment variables.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Program {
    /// A program without preloaded libraries and environment variables.
    pub(crate) fn plain(path: PathBuf) -> Program {
        Program {
            path,
            preload: Vec::new(),
            variables: Vec::new(),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if text.starts_with("unix:") || text.starts_with("tcp:") {
            return Ok(Target::Address(text.parse()?));
        }
        Ok(Target::Program(Program::plain(text.into())))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Program(program) => write!(f, "{}", program.path.display()),
            Target::Address(address) => write!(f, "{address}"),
        }
    }
}
