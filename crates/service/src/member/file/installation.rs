//! Installs a peer's snapshot that has arrived (`reception.rs`): builds a new file and puts it in
//! place.
//!
//! Invariant: from the start of an installation to its end no request reaches the old file. The new
//! file copies nothing from the old one, so a vote written there meanwhile would be forgotten. The
//! received body is kept until the new file is durable or the member abandons it.

use corvid_consensus::Input;
use corvid_consensus::message::SnapshotMeta;
use corvid_log::cluster::Cid;
use corvid_log::storage::{RewriteNumber, RewriteStage, StorageRequest, StoreError};

use super::effects::FileEffects;
use super::refusal::error_of;
use super::{Consequences, MemberFile};

/// Rewrites that install a peer's snapshot are numbered from here; the member's own have smaller
/// numbers.
pub const INSTALLATIONS: u64 = 1 << 63;

impl<E: FileEffects> MemberFile<E> {
    /// Starts to build a file with the received snapshot and to put it in place.
    pub fn install_snapshot(
        &mut self,
        now_ms: u64,
        snapshot: SnapshotMeta,
        cid: Option<Cid>,
        records: Vec<u8>,
    ) -> Consequences {
        assert!(
            self.installing.is_none(),
            "one snapshot is installed at a time"
        );
        let mut consequences = Consequences::default();
        self.identity.cluster_id = cid;
        let index = snapshot.index;
        let receiving = self.receiving.as_ref();
        let body = receiving.filter(|it| it.meta.index == index && it.body.is_complete());
        let content = match body {
            None => Err(error_of("the snapshot is not complete")),
            Some(receiving) => {
                let content = receiving.body.content(&self.identity, &snapshot, records);
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
                // Held before the rewrite starts, not before its swap: the new file contains only
                // what is known now. A vote written to the old file in between would be missing
                // from it, and the member could vote twice in a term.
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

    /// The new file of an installation has reached a stage.
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
        // A vote written to the old file meanwhile would be forgotten.
        assert!(
            self.held.is_some(),
            "no request reaches the file that is being replaced"
        );
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
