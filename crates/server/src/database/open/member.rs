//! Opening the file of a cluster's member: its state, and the contents of its database through the last entry that is known to be committed
//! (docs/spec/distribution.md 1.4).
//!
//! Invariant: a member whose file may have forgotten a vote or an acknowledged entry is not opened, and neither is one with a committed
//! entry that does not apply: its contents would differ from those of the other members.

use corvid_data::{Arc, HashSeed, Tag, UuidSource, WireError};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index, Joined, Parts, Recovered, RecoveredMembership, recover};
use corvid_log::salvage::Bytes;
use corvid_log::{DiskFile, Magic, Record, write_schema};
use corvid_net::errno;
use corvid_net::logging::{self, Module};
use corvid_shell::log_file::{Handle, LogFile};

use super::{Progress, fresh_versions, load, workers};

/// The file of a member, and the contents of its database.
#[derive(Debug)]
pub(crate) struct OpenedMember {
    /// Its state, with the log.
    pub(crate) recovered: Recovered,
    /// The contents; `None` while the server joins its cluster.
    pub(crate) contents: Option<Contents>,
    /// The file, to append to.
    pub(crate) file: LogFile,
}

/// The contents of a clustered database after an entry.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Schema and rows.
    pub(crate) database: Database,
    /// The last entry in them.
    pub(crate) applied: Index,
    /// The last entry with data in them.
    pub(crate) eid: Eid,
}

/// A file that is read at offsets, with progress.
struct Offsets<'f>(&'f Handle, &'f Progress);

impl Bytes for Offsets<'_> {
    fn read_at(&mut self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.1.advance().map_err(|error| error.to_string())?;
        self.0.read_at(room, offset).map_err(|fault| fault.text)
    }
}

/// Opens the file of a member.
///
/// # Errors
/// In the reference's words where it has some: the file cannot be read, has records that must not be there, or has lost some.
pub(super) fn open(
    name: &str,
    mut file: LogFile,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    progress: &Progress,
) -> Result<OpenedMember, WireError> {
    let length = std::fs::metadata(file.disk().path())
        .map_err(|error| super::failed(name, &errno::text(&error)))?
        .len();
    let mut bytes = Offsets(file.file(), progress);
    let recovered = recover(&mut bytes, length).map_err(|error| error.to_wire(name))?;
    if let Some(damage) = &recovered.damage {
        let error = damage.to_wire(name);
        if damage.may_have_forgotten() {
            let details = format!(
                "{error}; records that this member has acknowledged may be lost, so it must not vote or serve: \
                 remove it from the cluster with cluster/kick, and join with a new file"
            );
            return Err(WireError::new(Tag::OvsdbError, details));
        }
        logging::warn(
            Module::Raft,
            format_args!("{error}; the write was never completed, and its record is replaced"),
        );
    }
    let contents = match &recovered.membership {
        RecoveredMembership::Joining { .. } => None,
        RecoveredMembership::Joined(joined) => {
            let loader = Loader {
                name,
                seed,
                uuids,
                progress,
            };
            Some(loader.load(&recovered.name, joined, &mut bytes)?)
        }
    };
    file.set_end(recovered.good_end);
    Ok(OpenedMember {
        recovered,
        contents,
        file,
    })
}

/// The contents of a snapshot in a member's file, which has just been installed.
struct Loader<'l> {
    /// The file, for messages.
    name: &'l str,
    seed: HashSeed,
    uuids: &'l mut dyn UuidSource,
    progress: &'l Progress,
}

impl Loader<'_> {
    /// The contents after the last committed entry. They become records of a standalone file, which is then loaded.
    fn load(
        mut self,
        database: &str,
        joined: &Joined,
        bytes: &mut impl Bytes,
    ) -> Result<Contents, WireError> {
        let body = self.read_body(joined, bytes)?;
        let parts = Parts::of(&body).ok_or_else(|| invalid("Invalid raft header data"))?;
        let Some(schema) = parts.schema()? else {
            return Err(invalid("Invalid raft header data"));
        };
        if *schema.name != *database {
            let details = format!(
                "name {database} in header does not match name {} in schema",
                schema.name
            );
            return Err(WireError::new(Tag::OvsdbError, details));
        }
        schema.check_clustered()?;
        let mut records = Vec::new();
        write_schema(&mut records, &schema);
        append(&mut records, parts.transaction);
        drop(body);
        let mut eid = joined.snapshot.eid;
        for entry in joined.committed() {
            let Some((entry_eid, data)) = &entry.commit else {
                continue;
            };
            eid = *entry_eid;
            let parts =
                Parts::of(data).ok_or_else(|| invalid("Incorrect raft record array length"))?;
            match parts.schema()? {
                None => append(&mut records, parts.transaction),
                Some(schema) if parts.transaction.is_some() => {
                    records.clear();
                    write_schema(&mut records, &schema);
                    append(&mut records, parts.transaction);
                }
                Some(schema) => {
                    let converted = self
                        .finish(&records)?
                        .convert(Arc::new(schema), self.uuids)?;
                    records.clear();
                    write_schema(&mut records, converted.schema());
                    let stamp = corvid_log::Stamp {
                        date_ms: 0,
                        comment: "",
                        is_diff: true,
                        with_defaults: false,
                    };
                    let snapshot = converted.snapshot();
                    corvid_log::write_snapshot(
                        converted.schema(),
                        &stamp,
                        |table| snapshot.rows(table),
                        &mut |piece| -> Result<(), std::convert::Infallible> {
                            records.extend_from_slice(piece);
                            Ok(())
                        },
                    )
                    .unwrap_or_else(|never| match never {});
                }
            }
        }
        Ok(Contents {
            database: self.finish(&records)?,
            applied: joined.commit,
            eid,
        })
    }

    fn read_body(&self, joined: &Joined, bytes: &mut impl Bytes) -> Result<Vec<u8>, WireError> {
        let too_long = |_| invalid("the snapshot is too long for this machine");
        let length = usize::try_from(joined.body.length).map_err(too_long)?;
        let mut body = vec![0; length];
        let mut held = 0;
        while held < length {
            let offset = joined.body.offset + held as u64;
            match bytes.read_at(&mut body[held..], offset) {
                Ok(0) => return Err(invalid("unexpected end of file reading the snapshot")),
                Ok(got) => held += got,
                Err(reason) => {
                    let details = format!("{}: read error ({reason})", self.name);
                    return Err(WireError::new(Tag::IoError, details));
                }
            }
        }
        Ok(body)
    }

    fn finish(&mut self, records: &[u8]) -> Result<Database, WireError> {
        self.progress
            .advance()
            .map_err(|error| super::cancelled(self.name, &error))?;
        let open = || Ok(records);
        let loaded = load::load(
            self.name,
            workers(),
            open,
            self.seed,
            self.uuids,
            fresh_versions,
        )?;
        match loaded.damage {
            None => Ok(loaded.database),
            Some(damage) => Err(invalid(&format!(
                "a committed entry does not apply, so this member's contents would differ from those of the others: {}",
                damage.report(self.name)
            ))),
        }
    }
}

/// Appends a transaction as the record of a standalone file.
fn append(records: &mut Vec<u8>, transaction: Option<&[u8]>) {
    if let Some(transaction) = transaction {
        let mut record = Record::begin(records, Magic::Standalone);
        record.body().extend_from_slice(transaction);
        record.finish();
    }
}

fn invalid(details: &str) -> WireError {
    WireError::new(Tag::OvsdbError, details.to_owned())
}
