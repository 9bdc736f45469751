//! Opens the file of a cluster member: its state, and the contents of its database through the last
//! entry known to be committed (docs/spec/distribution.md 1.4).
//!
//! Invariant: a member whose file may have forgotten a vote is not opened. A member with a
//! committed entry that does not apply is not opened either: its contents would differ from those
//! of the other members. A member whose file has lost entries but proves what it has promised opens
//! without contents, and gets them from its leader.

use corvid_data::{HashSeed, Tag, UuidSource, WireError};
use corvid_disk::log_file::{Handle, LogFile};
use corvid_log::cluster::{BodyLocation, Obstacle, Recovered, RecoveryError, StoredEntry, recover};
use corvid_log::{DiskFile, Extent};
use corvid_net::errno;
use corvid_net::logging::{self, Module};
use corvid_service::member::Contents;
use corvid_service::storage::member_loading::{LoadedMember, load_member};

use super::damage::Offsets;
use super::load::{load_feed, useful_workers};
use super::{FileSource, Progress, failed, fresh_versions, workers};

/// The file of a member, and the contents of its database.
#[derive(Debug)]
pub(crate) struct OpenedMember {
    /// The recovered state, with the log.
    pub(crate) recovered: Recovered,
    /// The contents; `None` while the server joins its cluster.
    pub(crate) contents: Option<Contents>,
    /// The file, ready to append to.
    pub(crate) file: LogFile,
}

/// Opens the file of a member.
///
/// # Errors
/// In the reference's words where it has some: the file cannot be read, contains records that must
/// not be there, or has lost some.
pub(super) fn open(
    name: &str,
    mut file: LogFile,
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    progress: &Progress,
) -> Result<OpenedMember, WireError> {
    let length = std::fs::metadata(file.disk().path())
        .map_err(|error| failed(name, &errno::text(&error)))?
        .len();
    let recovered = recover(Offsets(file.file(), progress), length);
    let recovered = recovered.map_err(|error| match error {
        RecoveryError::Damaged(damage, obstacle) => refusal(&damage.to_wire(name), obstacle),
        error => error.to_wire(name),
    })?;
    if let Some(damage) = &recovered.damage {
        let error = damage.to_wire(name);
        if damage.may_have_forgotten() {
            if let Some(obstacle) = damage.obstacle {
                return Err(refusal(&error, obstacle));
            }
            logging::warn(
                Module::Raft,
                format_args!("{error}; the cluster still has the lost records"),
            );
        } else {
            logging::warn(
                Module::Raft,
                format_args!(
                    "{error}; the write was never completed, and the next one replaces its record"
                ),
            );
        }
    }
    let contents = Contents::of_file(&recovered, |body, committed| {
        load(name, file.file(), body, committed, seed, uuids, progress)
    })?;
    // Opening does not change the file: the bytes after the good end stay until the first append.
    file.set_end(recovered.good_end);
    Ok(OpenedMember {
        recovered,
        contents,
        file,
    })
}

/// Says why a damaged file is not opened, and what to do.
fn refusal(error: &WireError, obstacle: Obstacle) -> WireError {
    let advice = if obstacle == Obstacle::Alone {
        "restore the database from a backup, or recover the readable rows of this file with \"ovsdb-tool \
         salvage\", and create a new cluster from it with \"ovsdb-tool create-cluster\""
    } else {
        "if a majority of the other members is running, remove this member with cluster/kick at one of them, \
         and join with a new file"
    };
    let details = format!(
        "{error}; records that this member has acknowledged may be lost, so it must not vote or serve, and the \
         other members cannot repair it because {obstacle}: {advice}"
    );
    WireError::new(Tag::OvsdbError, details)
}

/// Loads the snapshot at `body` of `file`, and applies `entries`, which are committed.
///
/// # Errors
/// Reading failed, or the contents are invalid.
pub(crate) fn load(
    name: &str,
    file: &Handle,
    body: BodyLocation,
    entries: &[StoredEntry],
    seed: HashSeed,
    uuids: &mut dyn UuidSource,
    progress: &Progress,
) -> Result<LoadedMember, WireError> {
    let open = || {
        let file = file.share();
        Ok(FileSource {
            file: file.map_err(|fault| failed(name, &fault.text))?,
            offset: body.offset,
            bytes: body.end(),
            progress,
        })
    };
    let behind: usize = entries.iter().map(|entry| entry.text.len()).sum();
    let workers = useful_workers(workers(), Some(body.length + behind as u64));
    let run = |feed, database, uuids: &mut dyn UuidSource| {
        load_feed(
            feed,
            database,
            Extent::default(),
            workers,
            uuids,
            &fresh_versions,
        )
    };
    load_member(body, entries, open, seed, uuids, run).map_err(WireError::from)
}
