//! The exit status of a command that ran to completion.

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Exit status 0.
    Yes,
    /// Exit status 2.
    No,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Answer {
        if yes { Answer::Yes } else { Answer::No }
    }
}

impl Answer {
    /// The exit status.
    pub(crate) fn status(self) -> i32 {
        match self {
            Answer::Yes => 0,
            Answer::No => 2,
        }
    }
}
