//! The file of a member as the server's `member/file.rs` handles it, on the simulated disk: the records, the snapshots in it, and the body of
//! a snapshot that a peer sends.
//!
//! Invariant: while a swap is under way no request reaches the old file: those behind it wait until the new file is in place, or has failed.
//! A snapshot that the database has made is kept until the member says that it is written, or not wanted. Called by [`super::process`].

use std::sync::Arc;

use bytes::Bytes;
use corvid_consensus::member::Rewrite;
use corvid_consensus::message::SnapshotMeta;
use corvid_consensus::{Input, MemberEvent};
use corvid_engine::Snapshot;
use corvid_log::cluster::snapshot_header::{locate_body, read_body};
use corvid_log::cluster::{BodyLocation, Cid, Index, MemberIdentity, ReceivedBody, Recovered};
use corvid_log::storage::{
    FileContent, RewriteNumber, RewriteStage, StorageReply, StorageRequest, StoreError,
};
use corvid_log::{DiskFile as _, Fault, LogWriter};
use corvid_service::storage::MemberContent;

use crate::dice::Dice;
use crate::server::disk::{Handle, SimDisk};
use crate::server::storage::Storage;

/// Rewrites that install a peer's snapshot have numbers from here on; the member's own are smaller.
const INSTALLATIONS: u64 = 1 << 63;

/// See the module.
pub(super) struct MemberFile {
    storage: Storage,
    disk: Arc<SimDisk>,
    identity: MemberIdentity,
    /// The snapshot in the file, for peers.
    stored: Option<StoredSnapshot>,
    /// The snapshot that the database has made, with the token of the command that asked for it.
    made: Option<(Option<u64>, Snapshot)>,
    /// The member's rewrite under way, and the last entry that its snapshot includes.
    rewriting: Option<(RewriteNumber, Index)>,
    /// The body that a peer sends.
    receiving: Option<(SnapshotMeta, ReceivedBody<SimDisk>)>,
    /// The installation under way.
    installing: Option<(RewriteNumber, SnapshotMeta)>,
    last_installation: u64,
    /// The requests behind a swap under way, or behind the beginning of an installation.
    held: Option<Vec<StorageRequest>>,
}

/// A snapshot in the file. The handle stays valid when the file is replaced.
struct StoredSnapshot {
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
    /// The file that has just been opened.
    pub(super) fn open(
        disk: &SimDisk,
        file: Handle,
        recovered: &Recovered,
        is_quick: bool,
    ) -> Result<MemberFile, String> {
        let stored = match recovered.joined() {
            None => None,
            Some(joined) => Some(StoredSnapshot {
                index: joined.snapshot.index,
                body: joined.body,
                file: file.share().map_err(|fault| fault.text)?,
            }),
        };
        let mut writer = LogWriter::new(disk.clone(), file);
        writer.set_end(recovered.good_end);
        Ok(MemberFile {
            storage: Storage::new(writer, is_quick),
            disk: Arc::new(disk.clone()),
            identity: MemberIdentity {
                server_id: recovered.server_id,
                cluster_id: recovered.cluster_id,
                name: recovered.name.clone(),
                local_address: recovered.local_address.clone(),
            },
            stored,
            made: None,
            rewriting: None,
            receiving: None,
            installing: None,
            last_installation: INSTALLATIONS,
            held: None,
        })
    }

    /// Whether the disk thread has work.
    pub(super) fn disk_has_work(&self) -> bool {
        self.storage.disk_has_work()
    }

    /// The disk thread takes a step.
    pub(super) fn work_on_disk(&mut self, dice: &mut Dice) -> Vec<StorageReply> {
        self.storage.work_on_disk(dice)
    }

    /// Whether the rewrite thread has work.
    pub(super) fn rewrite_has_work(&self) -> bool {
        self.storage.rewrite_has_work()
    }

    /// The rewrite thread takes a step.
    pub(super) fn work_on_rewrite(&mut self) -> Option<StorageReply> {
        let (rewriter, reply) = self.storage.work_on_rewrite();
        let Some(mut rewriter) = rewriter else {
            return reply;
        };
        let end = self.storage.end();
        let outcome = rewriter.run(|| end, || true);
        self.storage.written(rewriter, outcome)
    }

    /// Carries out requests; returns the replies of those that are complete.
    pub(super) fn store(&mut self, mut requests: Vec<StorageRequest>) -> Vec<StorageReply> {
        if let Some(held) = &mut self.held {
            held.append(&mut requests);
            return Vec::new();
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
        self.storage.answered(&reply);
        let mut consequences = Consequences::default();
        match reply {
            StorageReply::Rewrite(number, stage) if number.0 >= INSTALLATIONS => {
                self.installation_stage(number, stage, &mut consequences);
            }
            StorageReply::Rewrite(number, stage) => {
                // A rewrite that was given up may have failed before.
                let is_known = self.rewriting.is_some_and(|(known, _)| known == number);
                match &stage {
                    Ok(RewriteStage::InPlace(_)) => {
                        if let Some((_, index)) = self.rewriting {
                            self.find_snapshot(index);
                        }
                    }
                    Ok(RewriteStage::Lasting) if is_known => {
                        consequences.event = self.rewritten(Ok(()));
                    }
                    Err(error) if is_known => {
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

    /// The member does not want the snapshot, or has given its rewrite up.
    pub(super) fn reject_snapshot(&mut self) -> Option<MemberEvent> {
        self.rewriting = None;
        let (token, _) = self.made.take()?;
        let result = Err(error_of("not storing a duplicate snapshot"));
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
            comment: "compacting database online",
            date_ms: 0,
            records: rewrite.records,
        };
        let content: Box<dyn FileContent> = Box::new(content);
        self.storage
            .store(vec![StorageRequest::Rewrite(number, content)])
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
        let bytes = bytes.map_err(|fault| failed(&fault))?;
        Ok((stored.body.length, Bytes::from(bytes)))
    }

    /// Begins a file for the body of a peer's snapshot.
    pub(super) fn begin_snapshot(&mut self, meta: SnapshotMeta) {
        self.receiving = None;
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
            Ok(RewriteStage::InPlace(_)) => self.find_snapshot(index),
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
        let file = self.disk.open();
        let body = locate_body(&file).ok().flatten();
        self.stored = body.map(|body| StoredSnapshot { index, body, file });
    }

    /// The snapshot of this index in the file, for a thread that loads it.
    pub(super) fn snapshot(&self, index: Index) -> Result<(Handle, BodyLocation), String> {
        let stored = self.stored.as_ref().filter(|stored| stored.index == index);
        let stored = stored.ok_or("the file has another snapshot by now")?;
        let file = stored.file.share().map_err(|fault| fault.text)?;
        Ok((file, stored.body))
    }
}

fn failed(fault: &Fault) -> StoreError {
    StoreError {
        details: "a.db: read failed".to_owned(),
        io_error: fault.text.clone(),
    }
}

fn error_of(details: &str) -> StoreError {
    StoreError {
        details: details.to_owned(),
        io_error: String::new(),
    }
}
