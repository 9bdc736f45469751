//! The file of a member: its records, written by the threads of [`Storage`], and the snapshots in it, its own and those of peers.
//!
//! ```text
//! snapshot of the database --Rewrite--> new file --Written, Extend, Swap--> in place       compaction
//! body from a peer --> FILE.received --InstallSnapshot--> new file --Written, Swap--> in place, and loaded
//! ```
//!
//! Invariant: while a swap is under way no request reaches the old file: those behind it wait until the new file is in place, or has failed.
//! A snapshot that the database has made is kept until the member says that it is written, or not wanted.

use bytes::Bytes;
use corvid_consensus::member::Rewrite;
use corvid_consensus::message::SnapshotMeta;
use corvid_consensus::{Input, MemberEvent};
use corvid_data::{HashSeed, WireError};
use corvid_engine::Snapshot;
use corvid_log::cluster::snapshot_header::{is_snapshot_intact, locate_body, read_body};
use corvid_log::cluster::{
    BodyLocation, Cid, Eid, Index, MemberIdentity, ReceivedBody, Recovered, Sid,
};
use corvid_log::storage::{
    FileContent, RewriteNumber, RewriteStage, StorageReply, StorageRequest, StoreError,
};
use corvid_log::{DiskFile, Fault};
use corvid_net::clock;
use corvid_net::random::PseudoRandom;
use corvid_service::member::Contents;
use corvid_service::storage::{FileState, Growth, MemberContent};
use corvid_shell::log_file::{self, Handle, Location, LogFile, OpenMode};

use super::handle::{MemberHandle, ToMember};
use crate::database::open::{self, Progress, RandomUuids};
use crate::database::storage::{FileOwner, Storage};

/// Rewrites that install a peer's snapshot have numbers from here on; the member's own are smaller.
const INSTALLATIONS: u64 = 1 << 63;

/// A snapshot is not checked again for so long, ms: sending it may take several attempts.
const CHECKED_MS: u64 = 600_000;

/// The comment of the record of a snapshot.
const COMMENT: &str = "compacting database online";

/// See the module.
pub(super) struct MemberFile {
    storage: Storage,
    owner: MemberHandle,
    disk: std::sync::Arc<Location>,
    identity: MemberIdentity,
    hash_seed: HashSeed,
    growth: Growth,
    chance: PseudoRandom,
    /// The snapshot in the file, for peers.
    stored: Option<StoredSnapshot>,
    /// The snapshot that the database has made, with the token of the command that asked for it.
    made: Option<(Option<u64>, Snapshot)>,
    /// The member's rewrite under way, and the last entry that its snapshot includes.
    rewriting: Option<(RewriteNumber, Index)>,
    /// The body that a peer sends.
    receiving: Option<(SnapshotMeta, ReceivedBody<Location>)>,
    /// The installation under way.
    installing: Option<(RewriteNumber, SnapshotMeta)>,
    last_installation: u64,
    /// The requests behind a swap under way, or behind the beginning of an installation.
    held: Option<Vec<StorageRequest>>,
}

/// A snapshot in the file. The handle stays valid when the file is replaced.
struct StoredSnapshot {
    /// When its hash was found to be right, monotonic ms.
    checked_ms: Option<u64>,
    index: Index,
    body: BodyLocation,
    file: Handle,
}

/// The consequences of a reply of the file's threads.
#[derive(Default)]
pub(super) struct Consequences {
    /// Inputs of the member, in order.
    pub(super) inputs: Vec<Input>,
    /// An event for the database.
    pub(super) event: Option<MemberEvent>,
}

impl MemberFile {
    /// Starts the file's threads.
    ///
    /// # Errors
    /// Threads or descriptors are exhausted.
    pub(super) fn open(
        mut file: LogFile,
        recovered: &Recovered,
        owner: MemberHandle,
        hash_seed: HashSeed,
    ) -> std::io::Result<MemberFile> {
        let stored = match recovered.joined() {
            None => None,
            Some(joined) => Some(StoredSnapshot {
                checked_ms: None,
                index: joined.snapshot.index,
                body: joined.body,
                file: file
                    .file()
                    .share()
                    .map_err(|fault| std::io::Error::other(fault.text))?,
            }),
        };
        let entries = recovered.joined().map_or(0, |joined| joined.entries.len());
        let state = FileState {
            records: entries as u64 + 2,
            size: corvid_log::storage::FileSize {
                base: recovered.base,
                end: recovered.good_end,
            },
        };
        let mut chance = PseudoRandom::new()?;
        let growth = Growth::new(state, clock::mono_ms(), random(&mut chance));
        let disk = file.disk().clone();
        let storage = Storage::new(file, FileOwner::Member(owner.clone()), None)?;
        Ok(MemberFile {
            storage,
            owner,
            disk,
            identity: MemberIdentity {
                server_id: recovered.server_id,
                cluster_id: recovered.cluster_id,
                name: recovered.name.clone(),
                local_address: recovered.local_address.clone(),
            },
            hash_seed,
            growth,
            chance,
            stored,
            made: None,
            rewriting: None,
            receiving: None,
            installing: None,
            last_installation: INSTALLATIONS,
            held: None,
        })
    }

    /// Carries out requests; returns the replies of those that are complete.
    pub(super) fn store(&mut self, mut requests: Vec<StorageRequest>) -> Vec<StorageReply> {
        if let Some(held) = &mut self.held {
            held.append(&mut requests);
            return Vec::new();
        }
        for request in &requests {
            if let StorageRequest::Append { record, .. } = request {
                self.growth.appended(record.len());
            }
        }
        let swap = requests
            .iter()
            .position(|request| matches!(request, StorageRequest::Swap(_)));
        if let Some(swap) = swap {
            self.held = Some(requests.split_off(swap + 1));
        }
        self.storage.store(requests)
    }

    /// Handles a reply of the file's threads.
    pub(super) fn receive(&mut self, reply: StorageReply) -> Consequences {
        self.storage.observe_reply(&reply);
        let mut consequences = Consequences::default();
        match reply {
            StorageReply::Rewrite(number, stage) if number.0 >= INSTALLATIONS => {
                self.installation_stage(number, stage, &mut consequences);
            }
            StorageReply::Rewrite(number, stage) => {
                // A rewrite that was given up may have failed before.
                let is_known = self.rewriting.is_some_and(|(known, _)| known == number);
                match &stage {
                    Ok(RewriteStage::InPlace(size)) => {
                        let (now_ms, chance) = (clock::mono_ms(), random(&mut self.chance));
                        self.growth.rewritten(*size, now_ms, chance);
                        if let Some((_, index)) = self.rewriting {
                            self.find_snapshot(index);
                        }
                    }
                    Ok(RewriteStage::Lasting) if is_known => {
                        consequences.event = self.rewritten(Ok(()));
                    }
                    Err(error) if is_known => {
                        let (now_ms, chance) = (clock::mono_ms(), random(&mut self.chance));
                        self.growth.failed(now_ms, chance);
                        consequences.event = self.rewritten(Err(error.clone()));
                    }
                    _ => {}
                }
                let is_over = !matches!(stage, Ok(RewriteStage::Written));
                let reply = StorageReply::Rewrite(number, stage);
                consequences.inputs.push(Input::Storage(reply));
                if is_over && self.installing.is_none() {
                    self.release(&mut consequences);
                }
            }
            StorageReply::Appended(position, outcome) => {
                let is_failed = outcome.is_err();
                let reply = StorageReply::Appended(position, outcome);
                consequences.inputs.push(Input::Storage(reply));
                if is_failed && self.storage.is_poisoned() {
                    consequences.inputs.push(Input::FilePoisoned);
                }
            }
        }
        consequences
    }

    /// Carries out the requests behind a swap.
    fn release(&mut self, consequences: &mut Consequences) {
        if let Some(held) = self.held.take() {
            let replies = self.store(held);
            consequences
                .inputs
                .extend(replies.into_iter().map(Input::Storage));
        }
    }

    fn rewritten(&mut self, result: Result<(), StoreError>) -> Option<MemberEvent> {
        self.rewriting = None;
        let (token, _) = self.made.take()?;
        Some(MemberEvent::Compacted { token, result })
    }

    /// Whether the file has grown so much that the database is to make a snapshot.
    pub(super) fn is_compaction_due(&mut self, now_ms: u64) -> bool {
        let is_due = self.is_idle() && self.growth.is_due(now_ms);
        if is_due {
            // Asked again if nothing comes of it.
            self.growth.failed(now_ms, random(&mut self.chance));
        }
        is_due
    }

    /// When [`MemberFile::is_compaction_due`] may change.
    pub(super) fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        self.growth.next_check_ms(now_ms).filter(|_| self.is_idle())
    }

    /// Whether no new file is under way.
    fn is_idle(&self) -> bool {
        self.made.is_none() && self.rewriting.is_none() && self.installing.is_none()
    }

    /// Keeps a snapshot of the database. Returns the answer about an earlier one that is not written yet.
    pub(super) fn keep_snapshot(
        &mut self,
        token: Option<u64>,
        snapshot: Snapshot,
    ) -> Result<(), MemberEvent> {
        if self.made.is_some() {
            let result = Err(error_of("a snapshot is being stored already"));
            return Err(MemberEvent::Compacted { token, result });
        }
        self.made = Some((token, snapshot));
        Ok(())
    }

    /// The member does not want the snapshot, or has given its rewrite up: nothing has changed since the last one, or it may not write one now.
    pub(super) fn reject_snapshot(&mut self, reason: &str) -> Option<MemberEvent> {
        self.rewriting = None;
        let (token, _) = self.made.take()?;
        let result = Err(refusal(reason));
        Some(MemberEvent::Compacted { token, result })
    }

    /// Begins a new file with the snapshot of the database.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite) -> Vec<StorageReply> {
        let number = rewrite.number;
        let Some((_, snapshot)) = &self.made else {
            let error = error_of("the database has made no snapshot");
            return vec![StorageReply::Rewrite(number, Err(error))];
        };
        self.identity.cluster_id = rewrite.cid;
        self.rewriting = Some((number, rewrite.index));
        let content = MemberContent {
            snapshot: snapshot.clone(),
            identity: self.identity.clone(),
            meta: SnapshotMeta {
                index: rewrite.index,
                term: rewrite.term,
                eid: rewrite.eid,
                servers: rewrite.servers,
                election_timer_ms: rewrite.election_timer_ms,
                body_bytes: 0,
            },
            comment: COMMENT,
            date_ms: clock::wall_ms(),
            records: rewrite.records,
        };
        let content: Box<dyn FileContent> = Box::new(content);
        self.storage
            .store(vec![StorageRequest::Rewrite(number, content)])
    }

    /// Begins to check, on a thread of its own, that the snapshot in the file is what was written: peers cannot tell. The owner gets
    /// [`ToMember::SnapshotChecked`]. False: there is nothing to check, or it was checked a moment ago.
    pub(super) fn check_snapshot(&self, to: Sid, index: Index) -> bool {
        let stored = self.stored.as_ref().filter(|stored| stored.index == index);
        let is_fresh = |then_ms: u64| clock::mono_ms() < then_ms + CHECKED_MS;
        let Some(stored) = stored.filter(|stored| !stored.checked_ms.is_some_and(is_fresh)) else {
            return false;
        };
        let Ok(file) = stored.file.share() else {
            return false;
        };
        let owner = self.owner.clone();
        let work = move || {
            let outcome = is_snapshot_intact(&file).map_err(|fault| fault.text);
            owner.post([ToMember::SnapshotChecked(to, index, outcome)]);
        };
        let thread = std::thread::Builder::new().name("check".to_owned());
        thread.spawn(work).is_ok()
    }

    /// The snapshot has been checked: the answer for the member, and whether the file is damaged.
    pub(super) fn snapshot_checked(
        &mut self,
        to: Sid,
        index: Index,
        outcome: Result<bool, String>,
    ) -> (Input, bool) {
        let is_damaged = outcome == Ok(false);
        let bytes = match outcome {
            Ok(true) => {
                let stored = self.stored.as_mut();
                if let Some(stored) = stored.filter(|stored| stored.index == index) {
                    stored.checked_ms = Some(clock::mono_ms());
                }
                self.read_snapshot(index, 0, 0)
            }
            Ok(false) => Err(error_of("the snapshot in the file is damaged")),
            Err(error) => Err(error_of(&error)),
        };
        let input = Input::SnapshotRead {
            to,
            index,
            offset: 0,
            bytes,
        };
        (input, is_damaged)
    }

    /// Reads a part of the body of the snapshot in the file. Returns the length of the whole body, too.
    pub(super) fn read_snapshot(
        &self,
        index: Index,
        offset: u64,
        bytes_max: usize,
    ) -> Result<(u64, Bytes), StoreError> {
        let stored = self.stored.as_ref().filter(|stored| stored.index == index);
        let stored = stored.ok_or_else(|| error_of("the file has another snapshot by now"))?;
        let bytes = read_body(&stored.file, stored.body, offset, bytes_max);
        let bytes = bytes.map_err(|fault| self.failed("read", &fault))?;
        Ok((stored.body.length, Bytes::from(bytes)))
    }

    /// Begins a file for the body of a peer's snapshot.
    pub(super) fn begin_snapshot(&mut self, meta: SnapshotMeta) {
        self.receiving = None;
        // A failure is reported, and logged, by the first write.
        if let Ok(body) = ReceivedBody::begin(&self.disk, &meta) {
            self.receiving = Some((meta, body));
        }
    }

    /// Appends to the body of that snapshot; returns where it ends now.
    pub(super) fn write_snapshot(
        &mut self,
        index: Index,
        offset: u64,
        bytes: &Bytes,
    ) -> Result<u64, StoreError> {
        let receiving = self
            .receiving
            .as_mut()
            .filter(|(meta, _)| meta.index == index);
        let (_, body) =
            receiving.ok_or_else(|| error_of("the snapshot that is received cannot be stored"))?;
        let outcome = body.write(offset, bytes);
        if outcome.is_err() {
            self.receiving = None;
        }
        Ok(outcome?)
    }

    /// Gives that file up.
    pub(super) fn abandon_snapshot(&mut self) {
        self.receiving = None;
    }

    /// Begins to make a file with the received snapshot, and to put it in place.
    pub(super) fn install_snapshot(
        &mut self,
        snapshot: SnapshotMeta,
        cid: Option<Cid>,
        records: Vec<u8>,
    ) -> Consequences {
        let mut consequences = Consequences::default();
        self.identity.cluster_id = cid;
        let index = snapshot.index;
        let receiving = self.receiving.as_ref();
        let body = receiving.filter(|(meta, body)| meta.index == index && body.is_complete());
        let content = match body {
            None => Err(error_of("the snapshot is not complete")),
            Some((_, body)) => {
                let content = body.content(&self.identity, &snapshot, records);
                content.map_err(StoreError::from)
            }
        };
        match content {
            Err(error) => {
                let outcome = Err(error);
                consequences
                    .inputs
                    .push(Input::SnapshotInstalled { index, outcome });
            }
            Ok(content) => {
                self.last_installation += 1;
                let number = RewriteNumber(self.last_installation);
                self.installing = Some((number, snapshot));
                // The new file copies nothing of the old one: a vote that was written there meanwhile would be forgotten.
                self.held.get_or_insert_default();
                let request = StorageRequest::Rewrite(number, Box::new(content));
                for reply in self.storage.store(vec![request]) {
                    let more = self.receive(reply);
                    consequences.inputs.extend(more.inputs);
                }
            }
        }
        consequences
    }

    fn installation_stage(
        &mut self,
        number: RewriteNumber,
        stage: Result<RewriteStage, StoreError>,
        consequences: &mut Consequences,
    ) {
        let Some((_, snapshot)) = self
            .installing
            .as_ref()
            .filter(|(under_way, _)| *under_way == number)
        else {
            return;
        };
        let index = snapshot.index;
        match stage {
            Ok(RewriteStage::Written) => {
                let replies = self.storage.store(vec![StorageRequest::Swap(number)]);
                consequences
                    .inputs
                    .extend(replies.into_iter().map(Input::Storage));
            }
            Ok(RewriteStage::InPlace(size)) => {
                let (now_ms, chance) = (clock::mono_ms(), random(&mut self.chance));
                self.growth.rewritten(size, now_ms, chance);
                self.find_snapshot(index);
            }
            Ok(RewriteStage::Lasting) => {
                self.installing = None;
                self.receiving = None;
                let outcome = Ok(());
                consequences
                    .inputs
                    .push(Input::SnapshotInstalled { index, outcome });
                self.release(consequences);
            }
            Err(error) => {
                self.installing = None;
                let outcome = Err(error);
                consequences
                    .inputs
                    .push(Input::SnapshotInstalled { index, outcome });
                self.release(consequences);
            }
        }
    }

    /// Finds the snapshot in the file that has just been put in place.
    fn find_snapshot(&mut self, index: Index) {
        self.stored = self.present_file().ok().and_then(|file| {
            let body = locate_body(&file).ok()??;
            Some(StoredSnapshot {
                checked_ms: None,
                index,
                body,
                file,
            })
        });
    }

    fn present_file(&self) -> Result<Handle, String> {
        let path = self.disk.path().display().to_string();
        let mut file =
            log_file::open(&path, OpenMode::ReadOnly).map_err(|error| error.to_string())?;
        file.file().share().map_err(|fault| fault.text)
    }

    /// Begins to load the contents of the snapshot in the file, on a thread of its own; the owner gets [`ToMember::Loaded`].
    pub(super) fn load_snapshot(&self, index: Index, eid: Eid) {
        let owner = self.owner.clone();
        let shown = self.disk.path().display().to_string();
        let seed = self.hash_seed;
        let stored = self.stored.as_ref().filter(|stored| stored.index == index);
        let source = stored.map(|stored| (stored.body, stored.file.share()));
        let work = move || {
            let contents = load(&shown, source, index, eid, seed);
            owner.post([ToMember::Loaded(index, Box::new(contents))]);
        };
        let thread = std::thread::Builder::new().name("open".to_owned());
        if let Err(error) = thread.spawn(work) {
            let error = corvid_net::errno::text(&error);
            let owner = self.owner.clone();
            owner.post([ToMember::Loaded(index, Box::new(Err(error)))]);
        }
    }

    /// Completes all pending writes and closes the file.
    pub(super) fn close(self) {
        self.storage.close();
    }

    fn failed(&self, operation: &str, fault: &Fault) -> StoreError {
        StoreError {
            details: format!("{}: {operation} failed", self.disk.path().display()),
            io_error: fault.text.clone(),
        }
    }
}

fn load(
    shown: &str,
    source: Option<(BodyLocation, Result<Handle, Fault>)>,
    index: Index,
    eid: Eid,
    seed: HashSeed,
) -> Result<Contents, String> {
    let (body, file) = source.ok_or("the file has another snapshot by now")?;
    let file = file.map_err(|fault| fault.text)?;
    let mut uuids = RandomUuids::new().map_err(|error| error.to_string())?;
    let progress = Progress::default();
    let database = open::load_member(shown, &file, body, &[], seed, &mut uuids, &progress);
    let database = database.map_err(|error: WireError| error.to_string())?;
    Ok(Contents {
        database,
        applied: index,
        eid,
    })
}

fn random(chance: &mut PseudoRandom) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = chance.uuid();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The words of an error of the storage that is no error of the system: the command that asked for a snapshot shows the details alone.
pub(crate) const REFUSED: &str = "refused";

/// A snapshot is refused for this reason.
pub(crate) fn refusal(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: REFUSED.to_owned(),
    }
}

fn error_of(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: String::new(),
    }
}
