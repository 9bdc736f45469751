//! The service model of a database, as one concept: who may write, where commits come from besides, when a commit counts as stored, and what
//! `_Server` shows of it.
//!
//! Everything else asks here. A clustered database and a relay are further kinds: they answer these questions in their own way, and nothing
//! else in the database distinguishes them.

use super::backup::Backup;
use crate::server_db::ServerRow;
use crate::storage::FileState;

/// The service model of a database.
pub struct Model {
    kind: Kind,
    /// The file that commits are written to.
    file: Option<FileState>,
}

enum Kind {
    /// `_Server`: a database that the server keeps for its clients to read.
    Internal,
    /// Clients write.
    Standalone,
    /// A copy of another server's database (docs/spec/distribution.md 3): only its source changes it.
    Backup(Box<Backup>),
}

/// When a commit counts as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredBy {
    /// When it is executed: it is kept in memory only.
    Execution,
    /// When its record is written, and synced if it is durable.
    Log,
}

impl Model {
    /// Of `_Server`: clients may not write, and nothing is kept.
    #[must_use]
    pub fn internal() -> Model {
        Model {
            kind: Kind::Internal,
            file: None,
        }
    }

    /// Of a standalone database; without a file it is kept in memory only.
    #[must_use]
    pub fn standalone(file: Option<FileState>) -> Model {
        Model {
            kind: Kind::Standalone,
            file,
        }
    }

    /// Whether it is `_Server`.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self.kind, Kind::Internal)
    }

    /// What there is of its file.
    pub(crate) fn file(&self) -> Option<FileState> {
        self.file
    }

    /// Whether clients may write.
    pub(super) fn takes_writes(&self) -> bool {
        matches!(self.kind, Kind::Standalone)
    }

    /// Whether the server may write to it on its own account. A copy stays as its source has it.
    pub(super) fn takes_own_writes(&self) -> bool {
        !matches!(self.kind, Kind::Backup(_))
    }

    /// Where commits come from, if not from clients.
    pub(super) fn source(&self) -> Option<&Backup> {
        match &self.kind {
            Kind::Backup(backup) => Some(backup),
            Kind::Internal | Kind::Standalone => None,
        }
    }

    /// The same, to be worked with.
    pub(super) fn source_mut(&mut self) -> Option<&mut Backup> {
        match &mut self.kind {
            Kind::Backup(backup) => Some(backup),
            Kind::Internal | Kind::Standalone => None,
        }
    }

    /// When a commit counts as stored.
    pub(super) fn stored_by(&self) -> StoredBy {
        match self.file {
            Some(_) => StoredBy::Log,
            None => StoredBy::Execution,
        }
    }

    /// It becomes a copy of another server's database.
    pub(super) fn begin_backup(&mut self, backup: Box<Backup>) {
        self.kind = Kind::Backup(backup);
    }

    /// It is a copy no longer, and takes writes. What it was following, if it was one.
    pub(super) fn end_backup(&mut self) -> Option<Box<Backup>> {
        if !matches!(self.kind, Kind::Backup(_)) {
            return None;
        }
        match std::mem::replace(&mut self.kind, Kind::Standalone) {
            Kind::Backup(backup) => Some(backup),
            Kind::Internal | Kind::Standalone => None,
        }
    }

    /// What `_Server` shows of it, but for its schema. A backup counts as standalone there, as with the reference.
    #[must_use]
    pub fn server_row(&self) -> ServerRow {
        match self.kind {
            Kind::Internal | Kind::Standalone | Kind::Backup(_) => ServerRow {
                model: "standalone",
                is_connected: true,
                is_leader: true,
            },
        }
    }
}
