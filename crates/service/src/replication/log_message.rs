//! Log messages of a backup, in the reference's words where it has some.

use std::fmt::{self, Display, Formatter};

use corvid_data::WireError;
use corvid_rpc::Level;

use super::Mismatch;

/// A log message; its display is the logged text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogMessage {
    /// The source's schema of this database differs from this server's.
    OtherSchema(String),
    /// A table or column of the source's schema is missing or different here.
    Mismatch(Mismatch),
    /// All tables and columns of this database fit.
    CanBeReplicated(String),
    /// Some tables or columns of this database do not fit.
    CannotBeReplicated(String),
    /// The contents of this database have arrived and replace this server's.
    Resetting(String),
    /// The source sent something that stops replication, for this reason.
    Failed(String),
    /// An update of this database does not fit this server's rows.
    UpdateFailed(String, WireError),
    /// Changes of this database could not be stored.
    NotStored(String),
}

impl LogMessage {
    /// The level: an error stops the replication, a warning starts the copy again.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            LogMessage::Failed(_) => Level::Error,
            LogMessage::UpdateFailed(..) | LogMessage::NotStored(_) => Level::Warn,
            _ => Level::Info,
        }
    }
}

impl Display for LogMessage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LogMessage::OtherSchema(database) => write!(
                f,
                "{database}: Schema version mismatch, checking if {database} can still be replicated or not."
            ),
            LogMessage::Mismatch(mismatch) => mismatch.fmt(f),
            LogMessage::CanBeReplicated(database) => write!(f, "{database} can be replicated."),
            LogMessage::CannotBeReplicated(database) => {
                write!(f, "{database} cannot be replicated.")
            }
            LogMessage::Resetting(database) => {
                write!(
                    f,
                    "{database}: Monitor reply received. Resetting the database."
                )
            }
            LogMessage::Failed(why) => write!(f, "unexpected ovsdb error: {why}"),
            LogMessage::UpdateFailed(database, error) => write!(
                f,
                "{database}: an update of the active server does not fit ({error}); fetching everything again"
            ),
            LogMessage::NotStored(database) => write!(
                f,
                "{database}: what the active server sent could not be stored; fetching everything again"
            ),
        }
    }
}
