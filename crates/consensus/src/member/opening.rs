//! A member as the recovery of its file opens it: its identity, its first row in `_Server`, and the
//! state with which it starts.
//!
//! Invariant: entries after the commit index are part of the state, because a quorum may have
//! stored them. A damaged file yields neither a snapshot nor an entry, only its promises
//! ([`Repair`]). The server and the simulator call this module after opening a file.

use corvid_data::WireError;
use corvid_log::cluster::{Index, Recovered as RecoveredFile, RecoveredMembership};
use corvid_log::storage::LogPosition;

use super::{Absence, KeptEntries, Recovered, Repair, ServerRow, Settings};
use crate::entry::EntryBody;
use crate::peers::PeersSettings;

impl Settings {
    /// The identity from this file; `kept` limits the entries that the member keeps after a
    /// snapshot.
    #[must_use]
    pub fn of_file(file: &RecoveredFile, kept: KeptEntries) -> Settings {
        Settings {
            sid: file.server_id,
            name: file.name.clone(),
            address: file.local_address.clone(),
            kept,
        }
    }
}

impl PeersSettings {
    /// The identity from this file; `message_bytes_max` limits received messages.
    #[must_use]
    pub fn of_file(file: &RecoveredFile, message_bytes_max: usize) -> PeersSettings {
        PeersSettings {
            sid: file.server_id,
            cid: file.cluster_id,
            address: file.local_address.clone(),
            message_bytes_max,
        }
    }
}

impl ServerRow {
    /// The row to show until the member reports its own.
    #[must_use]
    pub fn of_file(file: &RecoveredFile) -> ServerRow {
        let absence = match &file.membership {
            _ if file.unfit.is_some() => Some(Absence::Failed),
            RecoveredMembership::Joining { .. } => Some(Absence::Joining),
            RecoveredMembership::Damaged(_) => Some(Absence::Damaged),
            RecoveredMembership::Joined(_) => None,
        };
        ServerRow {
            is_connected: false,
            is_leader: false,
            cid: file.cluster_id,
            sid: file.server_id,
            absence,
        }
    }
}

impl Recovered {
    /// The state with which a member of this file starts.
    ///
    /// # Errors
    /// An entry has an unknown form.
    pub fn of_file(file: RecoveredFile) -> Result<Recovered, WireError> {
        let mut state = Recovered {
            cid: file.cluster_id,
            remote_addresses: Vec::new(),
            snapshot: None,
            term: file.term,
            vote: file.vote,
            commit: Index(0),
            entries: Vec::new(),
            repair: None,
            unfit: file.unfit,
            position: LogPosition::OPENING,
        };
        match file.membership {
            RecoveredMembership::Joining { remote_addresses } => {
                state.remote_addresses = remote_addresses;
            }
            RecoveredMembership::Damaged(promises) => {
                state.repair = Some(Repair {
                    servers: promises.servers,
                    last: promises.last,
                    election_timer_ms: promises.election_timer_ms,
                });
            }
            RecoveredMembership::Joined(joined) => {
                state.commit = joined.commit;
                state.snapshot = Some(joined.snapshot);
                for entry in joined.entries {
                    let body = EntryBody::from_text(entry.text);
                    state.entries.push(body.parse(entry.term, entry.index)?);
                }
            }
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;
    use corvid_log::cluster::{Promises, Servers, Sid, Term};

    fn file(membership: RecoveredMembership) -> RecoveredFile {
        RecoveredFile {
            server_id: Sid(Uuid([7; 16])),
            cluster_id: None,
            name: "D".to_owned(),
            local_address: "tcp:1.2.3.4:5".to_owned(),
            term: Term(3),
            vote: Some(Sid(Uuid([8; 16]))),
            leader: None,
            membership,
            unfit: None,
            records: 1,
            base: 100,
            good_end: 100,
            damage: None,
        }
    }

    #[test]
    fn a_joining_server_begins_with_its_remotes() {
        let remote_addresses = vec!["tcp:1.2.3.5:6".to_owned()];
        let file = file(RecoveredMembership::Joining {
            remote_addresses: remote_addresses.clone(),
        });
        let state = Recovered::of_file(file).expect("it has no entries");
        assert_eq!(state.remote_addresses, remote_addresses);
        assert_eq!((state.snapshot, state.repair), (None, None));
    }

    #[test]
    fn a_damaged_file_yields_its_promises_alone() {
        let text = r#"{"07070707-0707-0707-0707-070707070707":"tcp:1.2.3.4:5"}"#;
        let servers = Servers::decode(text.as_bytes()).expect("one server");
        let file = file(RecoveredMembership::Damaged(Promises {
            servers: servers.clone(),
            last: (Term(3), Index(40)),
            election_timer_ms: 2000,
        }));
        let state = Recovered::of_file(file).expect("it has no entries");
        assert_eq!((state.term, state.commit), (Term(3), Index(0)));
        assert!(state.snapshot.is_none() && state.entries.is_empty());
        let repair = state.repair.expect("its promises");
        assert_eq!(
            (repair.last, repair.servers),
            ((Term(3), Index(40)), servers)
        );
    }
}
