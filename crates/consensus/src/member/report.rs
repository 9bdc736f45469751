//! The report for operators: the state of each part, combined as `cluster/status` prints it.
//!
//! Invariant: a report changes nothing.

use corvid_log::cluster::Sid;

use super::attention::{is_late, known_commit};
use super::{Connected, Member, PeerStatus, Phase, Role, Status};

/// The state of a member.
pub(crate) fn status(member: &Member, now_ms: u64) -> Status {
    let ago = |then_ms: u64| now_ms.saturating_sub(then_ms);
    let Member { cx, election, .. } = member;
    let view = &election.view;
    let index_age_ms = member.attention.own_age_ms(now_ms);
    Status {
        sid: cx.own(),
        cid: cx.cid,
        name: cx.settings.name.clone(),
        address: cx.settings.address.clone(),
        connected: connected(member),
        file: member.disk.state(cx),
        file_error: member.disk.error().map(str::to_owned),
        remote_addresses: member.roster.remotes().to_vec(),
        role: cx.node.role(),
        term: cx.node.term(),
        leader: cx.node.leader(),
        vote: cx.node.vote(),
        election_started: view
            .election()
            .map(|(then_ms, is_transfer)| (ago(then_ms), is_transfer)),
        election_won_ms: view.won_ms().map(ago),
        election_timer_ms: election.timer_ms(),
        next_election_timer_ms: member.commits.proposed_timer_ms(),
        log_start: member.disk.snapshot().index.next(),
        log_end: cx.node.last_index().next(),
        commit: cx.node.commit(),
        applied: member.commits.applied(),
        known_commit: known_commit(cx, election),
        index_age_ms,
        is_still: is_late(index_age_ms, election.timer_ms()),
        servers: member
            .roster
            .phases()
            .map(|(sid, address, phase)| peer_status(member, now_ms, sid, address, phase))
            .collect(),
        receiving: member.snapshots.receiving.progress(),
        log_bytes: cx.node.log_bytes(),
        elections: view.elections(),
    }
}

fn connected(member: &Member) -> Connected {
    let Member { roster, .. } = member;
    if roster.has_left() {
        Connected::Left
    } else if let Some(failure) = &member.cx.failure {
        // Checked before the next two: an old file may say that the server is still joining or
        // leaving.
        Connected::Failed(failure.text().to_owned())
    } else if roster.is_joining() {
        Connected::Joining
    } else if member.disk.is_repairing() {
        Connected::Repairing(member.snapshots.receiving.progress())
    } else if roster.is_leaving() {
        Connected::Leaving
    } else if member.election.view.is_retrying() {
        Connected::Disconnected
    } else {
        Connected::Member
    }
}

fn peer_status(member: &Member, now_ms: u64, sid: Sid, address: &str, phase: Phase) -> PeerStatus {
    let Member {
        cx,
        election,
        attention,
        ..
    } = member;
    let timer_ms = election.timer_ms();
    let peer = cx.peers.get(sid);
    let progress = cx.node.progress(sid).filter(|_| cx.node.is_leader());
    let is_candidate = cx.node.role() == Role::Candidate;
    let is_self = sid == cx.own();
    let (voted_for, silent_ms) = if is_self {
        (cx.node.vote(), 0)
    } else {
        let silent_ms = attention.silent_ms(cx, election, now_ms, sid);
        (peer.voted_for, silent_ms)
    };
    let age_ms = attention.peer_age_ms(now_ms, sid);
    PeerStatus {
        silent_ms,
        is_silent: is_late(silent_ms, timer_ms),
        index_age_ms: progress.map(|_| age_ms),
        is_still: progress.is_some() && is_late(age_ms, timer_ms),
        sid,
        address: address.to_owned(),
        phase,
        voted_for: voted_for.filter(|_| is_candidate),
        next_index: progress.map(|it| it.next),
        match_index: progress.map(|it| it.matched),
        last_message_ms: peer
            .last_message_ms
            .map(|then_ms| now_ms.saturating_sub(then_ms)),
        snapshot: member.snapshots.sending.progress(sid),
        is_up: is_self || peer.is_up,
    }
}
