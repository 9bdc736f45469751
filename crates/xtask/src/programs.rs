//! The packaged programs, with their directories on a system.

use corvid_shell::manual::Manual;

/// A program.
pub(crate) struct Program {
    /// Its manual.
    pub(crate) manual: Manual,
    /// The directory that it is installed in.
    pub(crate) directory: &'static str,
}

impl Program {
    /// The file name of its manual page.
    pub(crate) fn page(&self) -> String {
        format!("man{0}/{1}.{0}", self.manual.section, self.manual.name)
    }
}

/// All programs. Directories and sections are those of the programs that they replace.
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
