//! The placeholders in a manual's texts, words in braces: the program's name and the directories.
//!
//! `--help` shows the values of this process, manual pages the built-in ones.

use crate::program;
use corvid_net::dirs;

/// The values of the placeholders.
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
    /// The values of this process: its name, and the directories from the environment.
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

    /// The built-in values, for a program of this name.
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

    /// `text` with the placeholders replaced.
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
