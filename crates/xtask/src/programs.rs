//! The packaged programs, with the directories in which they are installed.

use corvid_shell::manual::Manual;

/// A program.
pub(crate) struct Program {
    /// The manual.
    pub(crate) manual: Manual,
    /// The directory in which it is installed.
    pub(crate) directory: &'static str,
    /// Whether packages of Open vSwitch have a program of this name.
    pub(crate) replaces_another: bool,
}

impl Program {
    /// Returns the file name of the manual page.
    pub(crate) fn page(&self) -> String {
        format!("man{0}/{1}.{0}", self.manual.section, self.manual.name)
    }
}

/// Returns all programs. Those that replace another one have its directory and section.
pub(crate) fn all() -> [Program; 7] {
    let replacement = |manual, directory| Program {
        manual,
        directory,
        replaces_another: true,
    };
    let addition = |manual| Program {
        manual,
        directory: "usr/bin",
        replaces_another: false,
    };
    [
        replacement(corvid_server::manual::manual(), "usr/sbin"),
        replacement(corvid_tools::client::manual::manual(), "usr/bin"),
        replacement(corvid_tools::tool::manual::manual(), "usr/bin"),
        replacement(corvid_tools::appctl::manual::manual(), "usr/bin"),
        replacement(corvid_idlc::manual::manual(), "usr/bin"),
        addition(corvid_cli::manual::manual()),
        addition(corvid_console::manual::manual()),
    ]
}
