//! The figures of one cluster member: its status as last published, and the counts of its thread.
//!
//! Written by the member's thread, read by the pages. Invariant: the thread publishes a change
//! within [`PUBLISH_MS`], and not more often than that. So the pages show a state at most that old.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use corvid_consensus::Status;
use corvid_consensus::member::{Connected, FileState, Role};
use corvid_shell::durations::Durations;

/// The interval between two publications, ms.
pub(crate) const PUBLISH_MS: u64 = 250;

/// The figures of one cluster member.
#[derive(Debug, Default)]
pub(crate) struct MemberFigures {
    /// From a proposal of this member's database until a quorum has synced it.
    pub(crate) quorum: Durations,
    /// Append messages with entries sent to peers.
    pub(crate) appends: AtomicU64,
    /// Entries in these messages.
    pub(crate) entries: AtomicU64,
    /// Unsent bytes of connections to peers.
    pub(crate) backlog_bytes: AtomicU64,
    /// Open connections to peers.
    pub(crate) connections: AtomicU64,
    status: Mutex<Option<Arc<Status>>>,
}

impl MemberFigures {
    /// Publishes the current state.
    pub(crate) fn publish(&self, status: Status, connections: usize, backlog_bytes: u64) {
        self.connections
            .store(connections as u64, Ordering::Relaxed);
        self.backlog_bytes.store(backlog_bytes, Ordering::Relaxed);
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(status));
    }

    /// The last published state.
    #[must_use]
    pub(crate) fn status(&self) -> Option<Arc<Status>> {
        self.status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Why clients should not be sent to this member; `None`: they may be.
    #[must_use]
    pub(crate) fn fault(&self) -> Option<String> {
        match self.status() {
            Some(status) => fault(&status),
            None => Some("the member is starting".to_owned()),
        }
    }

    /// The state in words, for a check that passes.
    #[must_use]
    pub(crate) fn note(&self) -> Option<String> {
        let status = self.status()?;
        let role = match status.role {
            Role::Leader => "leads",
            Role::Follower | Role::Candidate => "a leader is known",
        };
        let mut text = format!(
            "{role}, {} committed entries are not applied",
            behind(&status)
        );
        for server in &status.servers {
            let name = server.sid;
            if server.is_silent {
                text += &format!(
                    ", server {name} has been silent for {} s",
                    server.silent_ms / 1000
                );
            } else if let Some(age_ms) = server.index_age_ms.filter(|_| server.is_still) {
                text += &format!(", server {name} has been stalled for {} s", age_ms / 1000);
            }
        }
        Some(text)
    }
}

/// Why clients should not be sent to a member with this status; `None`: they may be.
#[must_use]
pub(crate) fn fault(status: &Status) -> Option<String> {
    let behind = behind(status);
    let why = match &status.connected {
        Connected::Joining => "has not joined its cluster yet",
        Connected::Repairing(_) => {
            "the member's file is damaged; a snapshot from the leader will replace it"
        }
        Connected::Leaving => "is leaving its cluster",
        Connected::Left => "has left its cluster",
        Connected::Failed(_) if status.file == FileState::Diverged => {
            "the member has stopped: its committed entries differ from its leader's (see cluster/status)"
        }
        Connected::Failed(_) => "the member has failed: see cluster/status",
        Connected::Disconnected => "is not in contact with a leader",
        Connected::Member if status.file == FileState::Poisoned => {
            "a sync of the member's file failed, or its bytes changed; the file is being rewritten"
        }
        Connected::Member if status.file != FileState::Intact => {
            "writes to the member's file fail; check the disk"
        }
        Connected::Member if status.leader.is_none() => "knows no leader",
        Connected::Member if status.is_still => {
            let (applied, commit) = (status.applied, status.known_commit);
            let seconds = status.index_age_ms / 1000;
            return Some(format!(
                "has applied nothing after entry {applied} for {seconds} s, while entry {commit} is committed"
            ));
        }
        Connected::Member => return None,
    };
    Some(format!("{why}; {behind} committed entries are not applied"))
}

/// The number of committed entries that the database has not applied.
fn behind(status: &Status) -> u64 {
    status.commit.0.saturating_sub(status.applied.0)
}
