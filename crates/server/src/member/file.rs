//! The disk of a member's file, and the threads that write, check and load it.
//! [`corvid_service::member::MemberFile`] decides what they do.

use std::sync::Arc;

use corvid_data::{HashSeed, WireError};
use corvid_disk::log_file::{Handle, Location, LogFile};
use corvid_log::cluster::snapshot_header::is_snapshot_intact;
use corvid_log::cluster::{BodyLocation, Eid, Index, Recovered, Sid};
use corvid_log::storage::{StorageReply, StorageRequest, StoreError};
use corvid_log::{DiskFile, Fault};
use corvid_net::os_name;
use corvid_net::random::PseudoRandom;
use corvid_net::{clock, errno};
use corvid_reactor::priority;
use corvid_service::member::{BodyPart, Contents, FileEffects};
use corvid_service::storage::member_loading::LoadedMember;

use super::handle::{MemberHandle, ToMember};
use crate::database::history::Histories;
use crate::database::open::{self, Progress, RandomUuids};
use crate::database::storage::{FileOwner, Storage};
use crate::jobs::Jobs;

/// The file of a member on threads.
pub(crate) type MemberFile = corvid_service::member::MemberFile<FileThreads>;

/// The threads of one member's file.
pub(crate) struct FileThreads {
    storage: Storage,
    owner: MemberHandle,
    disk: Arc<Location>,
    hash_seed: HashSeed,
    chance: PseudoRandom,
}

/// Starts the threads of a member's file. Their results are sent to `owner`.
///
/// # Errors
/// Threads or descriptors are exhausted.
pub(super) fn open(
    mut file: LogFile,
    recovered: &Recovered,
    owner: MemberHandle,
    hash_seed: HashSeed,
    histories: &Arc<Histories>,
    jobs: Jobs,
) -> std::io::Result<MemberFile> {
    let handle = file.file().share();
    let handle = handle.map_err(|fault| std::io::Error::other(fault.text))?;
    let chance = PseudoRandom::new()?;
    let disk = file.disk().clone();
    let storage = Storage::new(
        file,
        &recovered.name,
        FileOwner::Member(owner.clone()),
        None,
        histories,
        jobs,
    )?;
    let threads = FileThreads {
        storage,
        owner,
        disk,
        hash_seed,
        chance,
    };
    let now_ms = clock::mono_ms();
    Ok(MemberFile::open(threads, handle, recovered, now_ms))
}

impl FileThreads {
    /// Completes all pending writes and closes the file.
    pub(super) fn close(self) {
        self.storage.close();
    }

    fn shown(&self) -> String {
        os_name::text(self.disk.path().as_os_str())
    }
}

impl FileEffects for FileThreads {
    type Disk = Location;

    fn disk(&self) -> &Arc<Location> {
        &self.disk
    }

    fn store(&mut self, requests: Vec<StorageRequest>) -> Vec<StorageReply> {
        self.storage.store(requests)
    }

    fn observe_reply(&mut self, reply: &StorageReply) {
        self.storage.observe_reply(reply);
    }

    fn is_poisoned(&self) -> bool {
        self.storage.is_poisoned()
    }

    fn open_present(&self) -> Option<Handle> {
        self.disk.open_again().ok()
    }

    fn begin_check(&mut self, to: Sid, index: Index, file: Handle) -> bool {
        let owner = self.owner.clone();
        let work = move || {
            let outcome = is_snapshot_intact(&file).map_err(|fault: Fault| fault.text);
            owner.post([ToMember::SnapshotChecked(to, index, outcome)]);
        };
        let thread = std::thread::Builder::new().name("check".to_owned());
        thread.spawn(work).is_ok()
    }

    fn begin_load(
        &mut self,
        index: Index,
        eid: Eid,
        source: Result<(Handle, BodyLocation), String>,
    ) {
        let owner = self.owner.clone();
        let shown = self.shown();
        let seed = self.hash_seed;
        let work = move || {
            let contents = load(&shown, source, index, eid, seed);
            owner.post([ToMember::Loaded(index, Box::new(contents))]);
        };
        let thread = std::thread::Builder::new().name("open".to_owned());
        if let Err(error) = thread.spawn(work) {
            let error = errno::text(&error);
            self.owner
                .post([ToMember::Loaded(index, Box::new(Err(error)))]);
        }
    }

    fn begin_write_back(&mut self, part: BodyPart<Handle>) -> bool {
        let owner = self.owner.clone();
        let shown = self.shown();
        let work = move || {
            priority::yield_to_others();
            let mut part = part;
            let outcome = part.file.write_back(part.offset, part.length);
            let outcome = outcome.map_err(|fault| StoreError {
                details: format!("{shown}: writing a received snapshot failed"),
                io_error: fault.text,
            });
            owner.post([ToMember::WrittenBack(part.reception, outcome)]);
        };
        let thread = std::thread::Builder::new().name("receive".to_owned());
        thread.spawn(work).is_ok()
    }

    fn draw(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.chance.uuid();
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    fn date_ms(&self) -> i64 {
        clock::wall_ms()
    }
}

fn load(
    shown: &str,
    source: Result<(Handle, BodyLocation), String>,
    index: Index,
    eid: Eid,
    seed: HashSeed,
) -> Result<Contents, String> {
    let (file, body) = source?;
    let mut uuids = RandomUuids::new().map_err(|error| errno::text(&error))?;
    let progress = Progress::default();
    let loaded = open::load_member(shown, &file, body, &[], seed, &mut uuids, &progress);
    let LoadedMember { database, recorded } =
        loaded.map_err(|error: WireError| error.to_string())?;
    Ok(Contents {
        database,
        applied: index,
        eid,
        recorded: recorded.through(eid),
    })
}
