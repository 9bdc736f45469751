//! The contents of a clustered database, as they come from a member's file: the snapshot in it, and the committed entries behind.
//!
//! Invariant: the contents end with the last entry that is known to be committed, and carry the id of the last one that has data. A file of a
//! server that joins, or whose log is damaged, has none: they come from the leader. Called by the server and the simulator when a file has
//! been opened; the caller reads the file.

use corvid_data::{Schema, Tag, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{BodyLocation, Eid, Index, Recovered, StoredEntry};

/// The contents of a clustered database after an entry.
#[derive(Debug)]
pub struct Contents {
    /// Schema and rows.
    pub database: Database,
    /// The last entry in them.
    pub applied: Index,
    /// The last entry with data in them.
    pub eid: Eid,
}

impl Contents {
    /// The contents of a file. `load` makes a database of the snapshot and the committed entries behind it.
    ///
    /// # Errors
    /// Those of `load`, in the reference's words where it has some; or the schema may not be that of this database.
    pub fn of_file(
        file: &Recovered,
        load: impl FnOnce(BodyLocation, &[StoredEntry]) -> Result<Database, WireError>,
    ) -> Result<Option<Contents>, WireError> {
        let Some(joined) = file.joined() else {
            return Ok(None);
        };
        let committed = joined.committed();
        let database = load(joined.body, committed)?;
        check_schema(&file.name, database.schema())?;
        let mut eids = committed.iter().rev().filter_map(|entry| {
            let (eid, _) = entry.commit.as_ref()?;
            Some(*eid)
        });
        Ok(Some(Contents {
            database,
            applied: joined.commit,
            eid: eids.next().unwrap_or(joined.snapshot.eid),
        }))
    }
}

/// Checks that a schema may be that of a member's database.
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
