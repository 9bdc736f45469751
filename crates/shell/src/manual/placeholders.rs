//! The placeholders of a manual's texts, words in braces: the program's name and the directories.
//!
//! `--help` names those of this process, manual pages those that are built in.

use crate::program;
use corvid_net::dirs;

/// Values of the placeholders.
#[derive(Debug, Clone)]
pub struct Placeholders {
    /// `{program}`
    pub program: String,
    /// `{rundir}`
    pub run: String,
    /// `{logdir}`
    pub log: String,
    /// `{dbdir}`
    pub db: String,
    /// `{pkgdatadir}`
    pub pkgdata: String,
}

impl Placeholders {
    /// Those of this process: its name, and directories as the environment has them.
    #[must_use]
    pub fn of_process() -> Placeholders {
        Placeholders {
            program: program::name().to_owned(),
            run: dirs::run().display().to_string(),
            log: dirs::log().display().to_string(),
            db: dirs::db().display().to_string(),
            pkgdata: dirs::pkgdata().display().to_string(),
        }
    }

    /// Those that are built in, for a program of this name.
    #[must_use]
    pub fn built_in(program: &str) -> Placeholders {
        Placeholders {
            program: program.to_owned(),
            run: dirs::RUNDIR.to_owned(),
            log: dirs::LOGDIR.to_owned(),
            db: format!("{}/openvswitch", dirs::SYSCONFDIR),
            pkgdata: dirs::PKGDATADIR.to_owned(),
        }
    }

    /// `text` with the words replaced.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        [
            ("{program}", &self.program),
            ("{rundir}", &self.run),
            ("{logdir}", &self.log),
            ("{dbdir}", &self.db),
            ("{pkgdatadir}", &self.pkgdata),
        ]
        .iter()
        .fold(text.to_owned(), |text, (word, value)| {
            text.replace(word, value)
        })
    }
}
