//! A snapshot of a peer on its way into a member's file: the body as it arrives, then a new file that is put in place.
//!
//! Invariant: from the beginning of an installation to its end no request reaches the old file. The new one copies nothing of it, so a vote that
//! was written there meanwhile would be forgotten. The received body is kept until the new file lasts, or the member gives it up.

use bytes::Bytes;
use corvid_consensus::Input;
use corvid_consensus::message::SnapshotMeta;
use corvid_log::cluster::{Cid, Index, ReceivedBody};
use corvid_log::storage::{RewriteNumber, RewriteStage, StorageRequest, StoreError};

use super::effects::FileEffects;
use super::refusal::error_of;
use super::{Consequences, MemberFile};

/// Rewrites that install a peer's snapshot have numbers from here on; the member's own are smaller.
pub(super) const INSTALLATIONS: u64 = 1 << 63;

impl<E: FileEffects> MemberFile<E> {
    /// Begins a file for the body of a peer's snapshot.
    pub fn begin_snapshot(&mut self, meta: SnapshotMeta) {
        self.receiving = None;
        // A failure is reported, and logged, by the first write.
        if let Ok(body) = ReceivedBody::begin(self.effects.disk(), &meta) {
            self.receiving = Some((meta, body));
        }
    }

    /// Appends to the body of that snapshot; returns where it ends now.
    ///
    /// # Errors
    /// It cannot be stored, and is given up.
    pub fn write_snapshot(
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
    pub fn abandon_snapshot(&mut self) {
        self.receiving = None;
    }

    /// Begins to make a file with the received snapshot, and to put it in place.
    pub fn install_snapshot(
        &mut self,
        now_ms: u64,
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
                self.held.get_or_insert_default();
                let request = StorageRequest::Rewrite(number, Box::new(content));
                for reply in self.effects.store(vec![request]) {
                    let more = self.receive(now_ms, reply);
                    consequences.inputs.extend(more.inputs);
                }
            }
        }
        consequences
    }

    /// The new file has reached a stage.
    pub(super) fn installation_stage(
        &mut self,
        now_ms: u64,
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
                let replies = self.effects.store(vec![StorageRequest::Swap(number)]);
                consequences
                    .inputs
                    .extend(replies.into_iter().map(Input::Storage));
            }
            Ok(RewriteStage::InPlace(size)) => {
                let chance = self.effects.draw();
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
}
