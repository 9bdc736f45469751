//! A snapshot on its way from one member's database to another's.

use corvid_engine::Snapshot;
use corvid_log::cluster::{Eid, Index, Term};
use corvid_service::message::InstalledSnapshot;
use corvid_service::once::RecordedCommits;

use crate::cluster::Numbered;

/// A snapshot that a database has made for its member.
#[derive(Debug)]
pub(crate) struct MadeSnapshot {
    pub(crate) index: Index,
    pub(crate) eid: Eid,
    pub(crate) snapshot: Snapshot,
    pub(crate) commits: Vec<Eid>,
}

impl MadeSnapshot {
    /// The snapshot as a member installs it.
    pub(crate) fn installed(&self) -> InstalledSnapshot {
        let schema = self.snapshot.schema().clone();
        let database = self.snapshot.convert(schema, &mut Numbered(88, 0));
        let mut recorded = RecordedCommits::default();
        for commit in &self.commits {
            recorded.append_entry(*commit, Term(1));
        }
        InstalledSnapshot {
            database: database.expect("the same schema").into_database(),
            index: self.index,
            // Set by the installation.
            term: Term(0),
            eid: self.eid,
            recorded,
        }
    }
}
