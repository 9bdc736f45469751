//! The contents of a clustered database that a member's file yields: its snapshot plus the
//! committed entries after it.
//!
//! Invariant: the contents end with the last entry known to be committed, and carry the id of the
//! last entry that has data. A server that is joining, or whose log is damaged, has no contents in
//! its file; they come from the leader. Called by the server and the simulator after opening a
//! file; the caller reads the file.

use corvid_data::{Schema, Tag, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{BodyLocation, Eid, Index, Recovered, StoredEntry};

use crate::once::RecordedCommits;
use crate::storage::member_loading::LoadedMember;

/// The contents of a clustered database after an entry.
#[derive(Debug)]
pub struct Contents {
    /// Schema and rows.
    pub database: Database,
    /// The last entry that the contents include.
    pub applied: Index,
    /// The last entry with data that the contents include.
    pub eid: Eid,
    /// The last commits that the contents include, as the file tells them, without a gap.
    pub recorded: RecordedCommits,
}

impl Contents {
    /// The contents of a file; `None` if it has none. `load` builds a database from the snapshot
    /// and the committed entries after it.
    ///
    /// # Errors
    /// Those of `load`, in the reference's words where it has some; or the schema cannot belong to
    /// this database.
    pub fn of_file(
        file: &Recovered,
        load: impl FnOnce(BodyLocation, &[StoredEntry]) -> Result<LoadedMember, WireError>,
    ) -> Result<Option<Contents>, WireError> {
        let Some(joined) = file.joined() else {
            return Ok(None);
        };
        let committed = joined.committed();
        let LoadedMember { database, recorded } = load(joined.body, committed)?;
        check_schema(&file.name, database.schema())?;
        let snapshot = &joined.snapshot;
        let mut recorded = recorded.through(snapshot.eid);
        for entry in committed {
            if let Some((eid, _)) = &entry.commit {
                recorded.append_entry(*eid, entry.term);
            }
        }
        let mut eids = committed.iter().rev().filter_map(|entry| {
            let (eid, _) = entry.commit.as_ref()?;
            Some(*eid)
        });
        Ok(Some(Contents {
            database,
            applied: joined.commit,
            eid: eids.next().unwrap_or(snapshot.eid),
            recorded,
        }))
    }
}

/// Checks that a schema can belong to a member's database.
fn check_schema(database: &str, schema: &Schema) -> Result<(), WireError> {
    if *schema.name != *database {
        let details = format!(
            "name {database} in header does not match name {} in schema",
            schema.name
        );
        return Err(WireError::new(Tag::OvsdbError, details));
    }
    schema.check_clustered()
}
