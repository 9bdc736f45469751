//! The packaged programs, with the directories in which they are installed.

use corvid_shell::manual::Manual;

/// A program.
pub(crate) struct Program {
    /// The manual.
    pub(crate) manual: Manual,
    /// The directory in which it is installed.
    pub(crate) directory: &'static str,
}

impl Program {
    /// Returns the file name of the manual page.
    pub(crate) fn page(&self) -> String {
        format!("man{0}/{1}.{0}", self.manual.section, self.manual.name)
    }
}

/// Returns all programs. Their directories and sections are those of the programs that they
/// replace.
pub(crate) fn all() -> [Program; 5] {
    let program = |manual, directory| Program { manual, directory };
    [
        program(corvid_server::manual::manual(), "usr/sbin"),
        program(corvid_tools::client::manual::manual(), "usr/bin"),
        program(corvid_tools::tool::manual::manual(), "usr/bin"),
        program(corvid_tools::appctl::manual::manual(), "usr/bin"),
        program(corvid_idlc::manual::manual(), "usr/bin"),
    ]
}
