//! The text of `cluster/status` (docs/spec/distribution.md 1.12). Operators' scripts parse it by
//! its labels.

use std::fmt::Write;

use corvid_consensus::Status;
use corvid_consensus::member::{Connected, FileState, PeerStatus, Phase, Role};
use corvid_data::Uuid;
use corvid_json::shown::Shown;
use corvid_log::cluster::ids::{self, short};
use corvid_log::cluster::{Index, Sid};

/// Renders the text, with the member's connections as [`corvid_consensus::Peers`] shows them.
pub(crate) fn render(status: &Status, connections: &str, disconnections: u64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut text, status, connections, disconnections);
    text
}

fn write_all(
    out: &mut String,
    status: &Status,
    connections: &str,
    disconnections: u64,
) -> std::fmt::Result {
    let nickname = |sid: Sid| {
        let mut servers = status.servers.iter();
        match servers.find(|server| server.sid == sid) {
            // Servers report their own addresses, so the nickname may contain any character.
            Some(server) => Shown(ids::nickname(&server.address, Some(sid))).to_string(),
            None => sid.to_string(),
        }
    };
    let named = |sid: Option<Sid>| match sid {
        None => "unknown".to_owned(),
        Some(sid) if sid == status.sid => "self".to_owned(),
        Some(sid) => nickname(sid),
    };
    writeln!(out, "{}", ids::nickname(&status.address, Some(status.sid)))?;
    writeln!(out, "Name: {}", Shown(&status.name))?;
    match status.cid {
        Some(cid) => writeln!(out, "Cluster ID: {}", identity(cid.uuid()))?,
        None => writeln!(out, "Cluster ID: not yet known")?,
    }
    writeln!(out, "Server ID: {}", identity(status.sid.0))?;
    writeln!(out, "Address: {}", Shown(&status.address))?;
    let state = state(&status.connected, status.file);
    write!(out, "Status: {state}")?;
    if status.connected == Connected::Member && status.is_still {
        write!(
            out,
            " (stalled at entry {} for {} s; entry {} is committed)",
            status.applied,
            status.index_age_ms / 1000,
            status.known_commit
        )?;
    }
    writeln!(out)?;
    if !status.remote_addresses.is_empty() {
        let remotes = status.remote_addresses.join(" ");
        writeln!(out, "Remotes for joining: {}", Shown(remotes))?;
    }
    for server in &status.servers {
        let label = match server.phase {
            Phase::Stable => continue,
            Phase::CatchUp | Phase::CaughtUp | Phase::Committing => "Adding",
            Phase::Removing => "Removing",
        };
        let phase = phase(server.phase);
        writeln!(out, "{label} server {} ({phase})", place(server))?;
    }
    let role = match status.role {
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Leader => "leader",
    };
    writeln!(out, "Role: {role}")?;
    writeln!(out, "Term: {}", status.term)?;
    writeln!(out, "Leader: {}", named(status.leader))?;
    writeln!(out, "Vote: {}", named(status.vote))?;
    writeln!(out)?;
    if let Some((ago_ms, is_transfer)) = status.election_started {
        let reason = if is_transfer {
            "leadership_transfer"
        } else {
            "timeout"
        };
        writeln!(
            out,
            "Last Election started {ago_ms} ms ago, reason: {reason}"
        )?;
    }
    if let Some(ago_ms) = status.election_won_ms {
        writeln!(out, "Last Election won: {ago_ms} ms ago")?;
    }
    write!(out, "Election timer: {}", status.election_timer_ms)?;
    if let Some(next) = status.next_election_timer_ms {
        write!(out, " (changing to {next})")?;
    }
    writeln!(out)?;
    writeln!(out, "Log: [{}, {}]", status.log_start, status.log_end)?;
    let behind = |index: Index| status.log_end.0.saturating_sub(index.0.saturating_add(1));
    writeln!(out, "Entries not yet committed: {}", behind(status.commit))?;
    writeln!(out, "Entries not yet applied: {}", behind(status.applied))?;
    let blank = if connections.is_empty() { "" } else { " " };
    writeln!(out, "Connections:{blank}{}", Shown(connections))?;
    writeln!(out, "Disconnections: {disconnections}")?;
    writeln!(out, "Servers:")?;
    let mut listed = status.servers.iter();
    listed.try_for_each(|server| write_server(out, status, server, &named))
}

fn write_server(
    out: &mut String,
    status: &Status,
    server: &PeerStatus,
    named: &impl Fn(Option<Sid>) -> String,
) -> std::fmt::Result {
    if server.phase == Phase::Removing {
        return Ok(());
    }
    write!(out, "    {}", place(server))?;
    if server.sid == status.sid {
        write!(out, " (self)")?;
    }
    if server.phase != Phase::Stable {
        write!(out, " ({})", phase(server.phase))?;
    }
    if server.voted_for.is_some() {
        write!(out, " (voted for {})", named(server.voted_for))?;
    }
    if let (Some(next), Some(matching)) = (server.next_index, server.match_index) {
        write!(out, " next_index={next} match_index={matching}")?;
    }
    if let Some((have, of)) = server.snapshot {
        write!(out, " snapshot={have}/{of}")?;
    }
    if server.is_silent {
        write!(out, " silent for {} s", server.silent_ms / 1000)?;
    } else if let Some(age_ms) = server.index_age_ms.filter(|_| server.is_still) {
        write!(out, " stalled for {} s", age_ms / 1000)?;
    }
    if let Some(ago_ms) = server.last_message_ms {
        write!(out, " last msg {ago_ms} ms ago")?;
    }
    writeln!(out)
}

/// A server as `989f (989f at tcp:127.0.0.1:17003)`.
fn place(server: &PeerStatus) -> String {
    let nickname = ids::nickname(&server.address, Some(server.sid));
    let (nickname, address) = (Shown(nickname), Shown(&server.address));
    format!("{nickname} ({} at {address})", server.sid)
}

/// An id as `989f (989f...-...)`.
fn identity(uuid: Uuid) -> String {
    format!("{} ({uuid})", short(uuid))
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Stable => "stable",
        Phase::CatchUp => "adding: catchup",
        Phase::CaughtUp => "adding: caught up",
        Phase::Committing => "adding: committing",
        Phase::Removing => "removing",
    }
}

/// The state of the membership and of the file, in words.
pub(crate) fn state(connected: &Connected, file: FileState) -> String {
    let state = match connected {
        Connected::Joining => "joining cluster".to_owned(),
        Connected::Repairing(None) => {
            "file damaged, waiting for a snapshot from the leader".to_owned()
        }
        Connected::Repairing(Some((have, of))) => {
            format!("file damaged, receiving a snapshot from the leader ({have} of {of} bytes)")
        }
        Connected::Leaving => "leaving cluster".to_owned(),
        Connected::Left => "left cluster".to_owned(),
        Connected::Failed(reason) if reason.is_empty() => "failed".to_owned(),
        Connected::Failed(reason) => format!("failed: {}", Shown(reason)),
        Connected::Disconnected => "disconnected from the cluster (election timeout)".to_owned(),
        Connected::Member => "cluster member".to_owned(),
    };
    let trouble = match file {
        FileState::Failing => " (writes to its file fail: check the disk)",
        FileState::Poisoned => " (its file is being rewritten: a sync failed or its bytes changed)",
        FileState::Intact | FileState::Damaged | FileState::Lost | FileState::Diverged => "",
    };
    state + trouble
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_log::cluster::{Cid, Term};

    fn uuid(text: &str) -> Uuid {
        Uuid::parse(text.as_bytes()).expect("a UUID")
    }

    fn server(sid: Sid, port: u16, last_message_ms: Option<u64>) -> PeerStatus {
        PeerStatus {
            sid,
            address: format!("tcp:127.0.0.1:{port}"),
            phase: Phase::Stable,
            voted_for: None,
            next_index: None,
            match_index: None,
            last_message_ms,
            snapshot: None,
            is_up: true,
            silent_ms: 0,
            is_silent: false,
            index_age_ms: None,
            is_still: false,
        }
    }

    /// The follower in docs/spec/distribution.md 1.12.
    fn follower() -> Status {
        let own = Sid(uuid("05636736-dabe-466e-8f40-8e194013c642"));
        let leader = Sid(uuid("989f8785-db0f-4416-99e8-63cf8a9d0938"));
        let other = Sid(uuid("fecb8785-db0f-4416-99e8-63cf8a9d0938"));
        Status {
            file: FileState::Intact,
            file_error: None,
            sid: own,
            cid: Cid::new(uuid("fabb2b9d-5ef8-4ff4-a557-667dca861381")),
            name: "T".to_owned(),
            address: "tcp:127.0.0.1:17002".to_owned(),
            connected: Connected::Member,
            remote_addresses: Vec::new(),
            role: Role::Follower,
            term: Term(2),
            leader: Some(leader),
            vote: Some(leader),
            election_started: None,
            election_won_ms: None,
            election_timer_ms: 3000,
            next_election_timer_ms: None,
            log_start: Index(2),
            log_end: Index(12),
            commit: Index(11),
            applied: Index(11),
            known_commit: Index(11),
            index_age_ms: 0,
            is_still: false,
            servers: vec![
                server(other, 17001, Some(3103)),
                server(leader, 17003, Some(17)),
                server(own, 17002, None),
            ],
            log_bytes: 0,
            elections: 0,
            receiving: None,
        }
    }

    #[test]
    fn a_follower_is_shown_as_by_the_reference() {
        let expected = "\
0563
Name: T
Cluster ID: fabb (fabb2b9d-5ef8-4ff4-a557-667dca861381)
Server ID: 0563 (05636736-dabe-466e-8f40-8e194013c642)
Address: tcp:127.0.0.1:17002
Status: cluster member
Role: follower
Term: 2
Leader: 989f
Vote: 989f

Election timer: 3000
Log: [2, 12]
Entries not yet committed: 0
Entries not yet applied: 0
Connections: (->0000) <-989f ->989f
Disconnections: 1
Servers:
    fecb (fecb at tcp:127.0.0.1:17001) last msg 3103 ms ago
    989f (989f at tcp:127.0.0.1:17003) last msg 17 ms ago
    0563 (0563 at tcp:127.0.0.1:17002) (self)
";
        assert_eq!(render(&follower(), "(->0000) <-989f ->989f", 1), expected);
        let alone = render(&follower(), "", 1);
        assert!(
            alone.contains("\nConnections:\nDisconnections: 1\n"),
            "{alone}"
        );
    }

    #[test]
    fn a_file_in_trouble_shows_in_the_status() {
        let mut status = follower();
        let mut shows = |connected: Connected, file: FileState, expected: &str| {
            (status.connected, status.file) = (connected, file);
            let text = render(&status, "", 0);
            assert!(text.contains(&format!("\nStatus: {expected}\n")), "{text}");
        };
        shows(
            Connected::Member,
            FileState::Failing,
            "cluster member (writes to its file fail: check the disk)",
        );
        shows(
            Connected::Disconnected,
            FileState::Poisoned,
            "disconnected from the cluster (election timeout) (its file is being rewritten: a sync failed or its bytes changed)",
        );
        shows(
            Connected::Repairing(None),
            FileState::Damaged,
            "file damaged, waiting for a snapshot from the leader",
        );
        shows(
            Connected::Repairing(Some((3, 10))),
            FileState::Damaged,
            "file damaged, receiving a snapshot from the leader (3 of 10 bytes)",
        );
        shows(
            Connected::Failed("its file is old".to_owned()),
            FileState::Lost,
            "failed: its file is old",
        );
    }

    #[test]
    fn a_member_that_stands_still_and_silent_servers_show_in_the_status() {
        let mut status = follower();
        status.servers[0].silent_ms = 31_000;
        status.servers[1].index_age_ms = Some(45_000);
        let quiet = render(&status, "", 0);
        assert!(
            !quiet.contains("silent") && !quiet.contains("still"),
            "{quiet}"
        );
        status.is_still = true;
        status.index_age_ms = 61_500;
        status.known_commit = Index(40);
        status.servers[0].is_silent = true;
        status.servers[1].is_still = true;
        let text = render(&status, "", 0);
        for line in [
            "\nStatus: cluster member (stalled at entry 11 for 61 s; entry 40 is committed)\n",
            "    fecb (fecb at tcp:127.0.0.1:17001) silent for 31 s last msg 3103 ms ago\n",
            "    989f (989f at tcp:127.0.0.1:17003) stalled for 45 s last msg 17 ms ago\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn a_leader_shows_indexes_and_servers_that_come_and_go() {
        let mut status = follower();
        status.role = Role::Leader;
        status.leader = Some(status.sid);
        status.election_won_ms = Some(5);
        status.servers[0].phase = Phase::Removing;
        status.servers[1].phase = Phase::CaughtUp;
        status.servers[1].next_index = Some(Index(12));
        status.servers[1].match_index = Some(Index(11));
        let text = render(&status, "", 0);
        for line in [
            "Leader: self\n",
            "Last Election won: 5 ms ago\nElection timer",
            "Removing server fecb (fecb at tcp:127.0.0.1:17001) (removing)\n",
            "Adding server 989f (989f at tcp:127.0.0.1:17003) (adding: caught up)\n",
            "    989f (989f at tcp:127.0.0.1:17003) (adding: caught up) next_index=12 match_index=11 last msg 17 ms ago\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("    fecb"), "{text}");
    }
}
