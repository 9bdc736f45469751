//! The file of a member: its records, and the snapshots in it, its own and those of peers.
//!
//! ```text
//! snapshot of the database --Rewrite--> new file --Written, Extend, Swap--> in place
//! body from a peer --> FILE.received --InstallSnapshot--> new file --Written, Swap--> in place
//! ```
//!
//! Invariant: while a swap is in progress no request reaches the old file: later requests wait
//! until the new file is in place or has failed. A snapshot that the database has made is kept
//! until the member has written it or rejects it. The thread of a member owns the file, in the
//! server and in the simulator; disk and threads are [`FileEffects`].

mod effects;
mod installation;
mod reception;
mod refusal;
mod stored;

use std::sync::Arc;

use corvid_consensus::member::Rewrite;
use corvid_consensus::message::SnapshotMeta;
use corvid_consensus::{Input, MemberEvent};
use corvid_engine::Snapshot;
use corvid_log::cluster::{Eid, Index, MemberIdentity, Recovered};
use corvid_log::storage::{
    FileContent, FileSize, RewriteNumber, RewriteStage, RowProgress, StorageReply, StorageRequest,
    StoreError,
};

use crate::once::recorded::snapshot_comment;
use crate::storage::{FileState, Growth, MemberContent};
use reception::Reception;
use refusal::error_of;
use stored::StoredSnapshot;

pub use effects::{FileEffects, Handle};
pub use installation::INSTALLATIONS;
pub use reception::{BodyPart, ReceptionNumber};
pub use refusal::{REFUSED, refusal, refusal_without};

/// The comment in a snapshot's record.
const COMMENT: &str = "compacting database online";

/// A snapshot that the database has made.
#[derive(Debug)]
struct Made {
    /// The command that asked for it.
    token: Option<u64>,
    snapshot: Snapshot,
    /// The last commits in it.
    commits: Vec<Eid>,
}

/// The file of a member, and the new file that may be about to replace it.
#[derive(Debug)]
pub struct MemberFile<E: FileEffects> {
    effects: E,
    identity: MemberIdentity,
    growth: Growth,
    /// The snapshot in the file, for peers.
    stored: Option<StoredSnapshot<Handle<E>>>,
    made: Option<Made>,
    /// The member's rewrite in progress, and the last entry that its snapshot includes.
    rewriting: Option<(RewriteNumber, Index)>,
    /// The body that a peer is sending.
    receiving: Option<Reception<E>>,
    last_reception: ReceptionNumber,
    /// The installation in progress.
    installing: Option<(RewriteNumber, SnapshotMeta)>,
    last_installation: u64,
    /// Requests held until a swap in progress, or an installation, has ended.
    held: Option<Vec<StorageRequest>>,
}

/// The consequences of a storage reply.
#[derive(Debug, Default)]
pub struct Consequences {
    /// Inputs of the member, in order.
    pub inputs: Vec<Input>,
    /// An event for the database.
    pub event: Option<MemberEvent>,
}

impl<E: FileEffects> MemberFile<E> {
    /// The member's file, just opened; `file` is a handle to it.
    pub fn open(
        mut effects: E,
        file: Handle<E>,
        recovered: &Recovered,
        now_ms: u64,
    ) -> MemberFile<E> {
        let stored = recovered.joined().map(|joined| StoredSnapshot {
            checked_ms: None,
            index: joined.snapshot.index,
            body: joined.body,
            file,
        });
        let entries = recovered.joined().map_or(0, |joined| joined.entries.len());
        let state = FileState {
            records: entries as u64 + 2,
            size: FileSize {
                base: recovered.base,
                end: recovered.good_end,
            },
        };
        let growth = Growth::new(state, now_ms, effects.draw());
        MemberFile {
            effects,
            identity: MemberIdentity {
                server_id: recovered.server_id,
                cluster_id: recovered.cluster_id,
                name: recovered.name.clone(),
                local_address: recovered.local_address.clone(),
            },
            growth,
            stored,
            made: None,
            rewriting: None,
            receiving: None,
            last_reception: ReceptionNumber::default(),
            installing: None,
            last_installation: INSTALLATIONS,
            held: None,
        }
    }

    /// The disk and the threads.
    pub fn effects(&self) -> &E {
        &self.effects
    }

    /// The disk and the threads; the simulator executes their work itself.
    pub fn effects_mut(&mut self) -> &mut E {
        &mut self.effects
    }

    /// The disk and the threads, for closing them. Drops a body that is being received.
    pub fn into_effects(self) -> E {
        self.effects
    }

    /// Executes requests, or holds them while a new file replaces the old one. Returns the replies
    /// of those that are complete.
    pub fn store(&mut self, mut requests: Vec<StorageRequest>) -> Vec<StorageReply> {
        // The new file may take over at any moment: a record appended to the old file now would
        // vanish with it. In order: [append 1, swap, append 2] sends 1 and the swap, and holds 2
        // for the new file.
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
        // A held record is counted when it is sent to the file that it ends up in.
        for request in &requests {
            if let StorageRequest::Append { record, .. } = request {
                self.growth.appended(record.len());
            }
        }
        self.effects.store(requests)
    }

    /// Handles a storage reply.
    pub fn receive(&mut self, now_ms: u64, reply: StorageReply) -> Consequences {
        self.effects.observe_reply(&reply);
        let mut consequences = Consequences::default();
        match reply {
            StorageReply::Rewrite(number, stage) if number.0 >= INSTALLATIONS => {
                self.installation_stage(now_ms, number, stage, &mut consequences);
            }
            StorageReply::Rewrite(number, stage) => {
                self.rewrite_stage(now_ms, number, &stage, &mut consequences);
                let is_over = !matches!(stage, Ok(RewriteStage::Written));
                let reply = StorageReply::Rewrite(number, stage);
                consequences.inputs.push(Input::Storage(reply));
                // An installation in progress goes on holding requests until it ends itself.
                if is_over && self.installing.is_none() {
                    self.release(&mut consequences);
                }
            }
            StorageReply::Appended(position, outcome) => {
                let is_failed = outcome.is_err();
                let reply = StorageReply::Appended(position, outcome);
                consequences.inputs.push(Input::Storage(reply));
                if is_failed && self.effects.is_poisoned() {
                    consequences.inputs.push(Input::FilePoisoned);
                }
            }
        }
        consequences
    }

    /// The member's own new file has reached a stage.
    fn rewrite_stage(
        &mut self,
        now_ms: u64,
        number: RewriteNumber,
        stage: &Result<RewriteStage, StoreError>,
        consequences: &mut Consequences,
    ) {
        // An abandoned rewrite may have failed earlier.
        let is_known = self.rewriting.is_some_and(|(known, _)| known == number);
        match stage {
            Ok(RewriteStage::InPlace(size)) => {
                let chance = self.effects.draw();
                self.growth.rewritten(*size, now_ms, chance);
                if let Some((_, index)) = self.rewriting {
                    self.find_snapshot(index);
                }
            }
            Ok(RewriteStage::Lasting) if is_known => {
                consequences.event = self.rewritten(Ok(()));
            }
            Err(error) if is_known => {
                let chance = self.effects.draw();
                self.growth.failed(now_ms, chance);
                consequences.event = self.rewritten(Err(error.clone()));
            }
            _ => {}
        }
    }

    /// Executes the requests held during a swap.
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
        let token = self.made.take()?.token;
        Some(MemberEvent::Compacted { token, result })
    }

    /// Whether the file has grown so much that the database should make a snapshot. Returns true
    /// once per check interval.
    pub fn is_compaction_due(&mut self, now_ms: u64) -> bool {
        let is_due = self.is_idle() && self.growth.is_due(now_ms);
        if is_due {
            // Schedules the next check in case no snapshot comes of this one.
            let chance = self.effects.draw();
            self.growth.failed(now_ms, chance);
        }
        is_due
    }

    /// When [`MemberFile::is_compaction_due`] may change, monotonic ms; `None` while a new file is
    /// in progress.
    pub fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        self.growth.next_check_ms(now_ms).filter(|_| self.is_idle())
    }

    /// Whether no new file is in progress.
    fn is_idle(&self) -> bool {
        self.made.is_none() && self.rewriting.is_none() && self.installing.is_none()
    }

    /// Keeps a snapshot of the database until it is written or rejected.
    ///
    /// # Errors
    /// An earlier snapshot is not written yet: the event that answers the database.
    pub fn keep_snapshot(
        &mut self,
        token: Option<u64>,
        snapshot: Snapshot,
        commits: Vec<Eid>,
    ) -> Result<(), MemberEvent> {
        if self.made.is_some() {
            let result = Err(error_of("a snapshot is being stored already"));
            return Err(MemberEvent::Compacted { token, result });
        }
        self.made = Some(Made {
            token,
            snapshot,
            commits,
        });
        Ok(())
    }

    /// Drops the kept snapshot because the member rejects it or has abandoned its rewrite, for this
    /// reason. Returns the event that answers the database.
    pub fn reject_snapshot(&mut self, reason: &str) -> Option<MemberEvent> {
        self.rewritten(Err(refusal(reason)))
    }

    /// Starts a new file with the snapshot that the database has made.
    pub fn rewrite(&mut self, rewrite: Rewrite) -> Vec<StorageReply> {
        let number = rewrite.number;
        let Some(Made {
            snapshot, commits, ..
        }) = &self.made
        else {
            let error = error_of("the database has made no snapshot");
            return vec![StorageReply::Rewrite(number, Err(error))];
        };
        assert!(
            self.installing.is_none(),
            "one new file is put in place at a time"
        );
        self.identity.cluster_id = rewrite.cid;
        self.rewriting = Some((number, rewrite.index));
        let content = MemberContent {
            progress: Arc::new(RowProgress::new(snapshot.rows_count())),
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
            comment: snapshot_comment(COMMENT, commits),
            date_ms: self.effects.date_ms(),
            records: rewrite.records,
        };
        let content: Box<dyn FileContent> = Box::new(content);
        self.effects
            .store(vec![StorageRequest::Rewrite(number, content)])
    }
}
