//! Honest messages pass; forged and untimely ones do not.

use super::*;
use bytes::Bytes;
use corvid_log::cluster::Eid;

const OWN: Sid = Sid(Uuid([1; 16]));
const PEER: Sid = Sid(Uuid([2; 16]));
const OTHER: Sid = Sid(Uuid([3; 16]));

/// A log with entries 4 to 10 after a boundary at 3.
#[derive(Debug)]
struct TestLog {
    commit: u64,
}

/// The terms of entries 3 to 10.
const TERMS: [u64; 8] = [2, 2, 3, 5, 5, 5, 5, 5];

impl CommittedLog for TestLog {
    fn commit(&self) -> Index {
        Index(self.commit)
    }

    fn boundary(&self) -> (Index, Term) {
        (Index(3), Term(TERMS[0]))
    }

    fn term(&self, index: Index) -> Option<Term> {
        let at = usize::try_from(index.0.checked_sub(3)?).ok()?;
        TERMS.get(at).copied().map(Term)
    }

    fn eid(&self, index: Index) -> Option<Eid> {
        // Entry 5 begins a leadership, so it has no id.
        (index > Index(3) && index != Index(5)).then_some(Eid(Uuid([9; 16])))
    }
}

fn view() -> GuardView<'static> {
    GuardView {
        sid: OWN,
        term: Term(5),
        leader: Some(PEER),
        last_index: Index(10),
        persisted: Index(10),
        sent: Index(0),
        log: &TestLog { commit: 0 },
    }
}

/// The view of a member that has committed entries up to 8.
fn committed() -> GuardView<'static> {
    GuardView {
        log: &TestLog { commit: 8 },
        ..view()
    }
}

/// The view of a leader that has sent entries up to 8.
fn leading() -> GuardView<'static> {
    GuardView {
        leader: Some(OWN),
        sent: Index(8),
        ..view()
    }
}

fn append(term: u64, prev: (u64, u64), terms: &[u64]) -> PeerMessage {
    let body = EntryBody::commit(Eid(Uuid([9; 16])), b"[null,{}]");
    PeerMessage::Append {
        term: Term(term),
        prev_index: Index(prev.0),
        prev_term: Term(prev.1),
        commit: Index(1),
        entries: terms
            .iter()
            .map(|term| (Term(*term), body.clone()))
            .collect(),
    }
}

fn configuration(body: EntryBody) -> PeerMessage {
    PeerMessage::Append {
        term: Term(5),
        prev_index: Index(10),
        prev_term: Term(5),
        commit: Index(1),
        entries: vec![(Term(5), body)],
    }
}

fn reply(index: u64, hint: Option<u64>) -> PeerMessage {
    PeerMessage::AppendReply {
        term: Term(5),
        index: Index(index),
        commit: Index(1),
        rejection: hint.map(|hint| Rejection {
            hint: Index(hint),
            hint_term: Term(1),
        }),
    }
}

fn vote(last: (u64, u64), commit: (u64, u64)) -> PeerMessage {
    PeerMessage::Vote {
        term: Term(6),
        last_index: Index(last.0),
        last_term: Term(last.1),
        commit: Index(commit.0),
        commit_term: Term(commit.1),
        is_prevote: false,
        is_transfer: false,
    }
}

fn request(term: u64, last: (u64, u64), address: &str) -> PeerMessage {
    PeerMessage::SnapshotRequest {
        term: Term(term),
        last_index: Index(last.0),
        last_term: Term(last.1),
        address: address.to_owned(),
        name: "D".to_owned(),
    }
}

fn offer(index: u64, term: u64, timer_ms: u64, servers: &str) -> PeerMessage {
    PeerMessage::SnapshotOffer {
        term: Term(5),
        snapshot: SnapshotMeta {
            index: Index(index),
            term: Term(term),
            eid: Eid(Uuid([4; 16])),
            servers: Servers::decode(servers.as_bytes()).expect("servers"),
            election_timer_ms: timer_ms,
            body_bytes: 100,
        },
    }
}

const SERVERS: &str = r#"{"01010101-0101-0101-0101-010101010101":"tcp:1.2.3.4:5","02020202-0202-0202-0202-020202020202":"tcp:1.2.3.4:6"}"#;
const ALIKE: &str = r#"{"01010101-0101-0101-0101-010101010101":"tcp:1.2.3.4:5","01010101-0101-0101-0202-020202020202":"tcp:1.2.3.4:6"}"#;
const ZERO: &str = r#"{"00000000-0000-0000-0101-010101010101":"tcp:1.2.3.4:5"}"#;

#[test]
fn honest_messages_pass() {
    let servers = Servers::decode(SERVERS.as_bytes()).expect("servers");
    for message in [
        append(5, (10, 5), &[5, 5]),
        append(5, (3, 1), &[1, 2, 5]),
        append(6, (200, 5), &[]),
        configuration(EntryBody::servers(&servers)),
        configuration(EntryBody::election_timer(2000)),
        configuration(EntryBody::empty()),
        reply(10, None),
        reply(10, Some(9)),
        // It names an entry that the member has committed, and asks about it.
        reply(9, Some(40)),
        vote((20, 5), (10, 5)),
        vote((0, 0), (0, 0)),
        offer(9, 5, 1000, SERVERS),
        PeerMessage::TimeoutNow { term: Term(5) },
        PeerMessage::NotMember { term: Term(1) },
        request(9, (20, 5), "tcp:1.2.3.4:5"),
    ] {
        assert_eq!(check(PEER, &message, &view()), Ok(()), "{message:?}");
    }
    let far = append((1 << 32) + 5, (10, 5), &[]);
    assert_eq!(check(PEER, &far, &view()), Ok(()));
    // The first leader of a later term of which this member hears.
    assert_eq!(check(OTHER, &append(6, (10, 5), &[6]), &view()), Ok(()));
}

#[test]
fn forged_messages_reset_the_connection() {
    let twice = Servers::decode(ALIKE.as_bytes()).expect("servers");
    let chunk = |offset, length| PeerMessage::SnapshotChunk {
        term: Term(5),
        index: Index(3),
        offset,
        bytes: Bytes::from(vec![b'x'; length]),
    };
    let forward = |first, answered, id| PeerMessage::Forward {
        term: Term(5),
        first,
        answered,
        forwards: vec![Forward {
            id: Eid(Uuid([id; 16])),
            method: crate::database::ForwardMethod::Transact,
            params: Bytes::from_static(b"[]"),
            client: crate::ClientIdentity::default(),
            elapsed_ms: 0,
            once: None,
        }],
    };
    for (message, reason) in [
        (append(0, (10, 0), &[]), "term out of range"),
        (append(1 << 62, (10, 5), &[]), "term out of range"),
        (append((1 << 32) + 6, (10, 5), &[]), "a term too far ahead"),
        (append(u64::MAX, (10, 5), &[]), "term out of range"),
        (append(5, (1 << 62, 5), &[]), "index out of range"),
        (
            request(9, (1 << 62, 5), "tcp:1.2.3.4:5"),
            "index out of range",
        ),
        (
            request(9, (20, 10), "tcp:1.2.3.4:5"),
            "a log that is later than its term",
        ),
        (
            request(9, (20, 5), &"x".repeat(5000)),
            "a text that is too long",
        ),
        (append(5, (u64::MAX, 5), &[]), "index out of range"),
        (append(5, (0, 0), &[]), "an append before the first entry"),
        (
            append(5, (10, 6), &[]),
            "an entry's term is later than its leader's",
        ),
        (
            append(5, (10, 5), &[5, 6]),
            "an entry's term is later than its leader's",
        ),
        (append(5, (10, 4), &[5, 4]), "terms of entries decrease"),
        (append(5, (10, 4), &[3]), "terms of entries decrease"),
        (append(5, (10, 0), &[0]), "terms of entries decrease"),
        (
            append(5, (10, 5), &vec![5; LIST_MAX + 1]),
            "too many entries",
        ),
        (
            configuration(EntryBody::servers(&twice)),
            "two servers have ids that begin alike",
        ),
        (
            configuration(EntryBody::election_timer(600_001)),
            "election timer out of range",
        ),
        (reply(1 << 62, None), "index out of range"),
        (reply(1, Some(1 << 62)), "index out of range"),
        (
            vote((20, 7), (10, 5)),
            "a candidate's log is later than its term",
        ),
        (
            vote((20, 5), (21, 5)),
            "a candidate's commit index is behind its log",
        ),
        (
            vote((20, 4), (10, 5)),
            "a commit index is later than its log",
        ),
        (offer(0, 5, 1000, SERVERS), "a snapshot of index 0"),
        (offer(9, 0, 1000, SERVERS), "a snapshot of term 0"),
        (
            offer(9, 6, 1000, SERVERS),
            "a snapshot's term is later than its leader's",
        ),
        (offer(9, 5, 0, SERVERS), "election timer out of range"),
        (
            offer(9, 5, 1000, ALIKE),
            "two servers have ids that begin alike",
        ),
        (offer(9, 5, 1000, ZERO), "a server's id is zero"),
        (chunk(0, 0), "a chunk that is empty or too long"),
        (
            chunk(0, CHUNK_BYTES_MAX + 1),
            "a chunk that is empty or too long",
        ),
        (chunk(1 << 62, 1), "index out of range"),
        (forward(0, 0, 1), "transactions are numbered from 1"),
        (
            forward(3, 4, 1),
            "an outcome of a transaction that was not forwarded",
        ),
        (forward(3, 2, 0), "a transaction's id is zero"),
        (
            PeerMessage::AddServer {
                address: "x".to_owned(),
                name: "n".to_owned(),
            },
            "an address of another form",
        ),
        (
            PeerMessage::RemoveServerReply {
                is_success: true,
                target: None,
                comment: "x".repeat(TEXT_BYTES_MAX + 1),
            },
            "a text that is too long",
        ),
    ] {
        let refusal = check(PEER, &message, &view()).expect_err(reason);
        assert_eq!(refusal, Refusal::Malformed(reason), "{message:?}");
        assert_eq!(refusal.reaction(), Reaction::Reset);
    }
    let message = append(5, (10, 5), &[]);
    let of_nobody = check(Sid(Uuid::ZERO), &message, &view());
    assert_eq!(
        of_nobody,
        Err(Refusal::Malformed("the sender's id is zero"))
    );
    assert!(check(OWN, &message, &view()).is_err());
}

#[test]
fn messages_at_a_wrong_time_are_dropped() {
    let later = PeerMessage::VoteReply {
        term: Term(5),
        is_prevote: false,
        is_granted: true,
        commit: Index(1),
        commit_term: Term(1),
    };
    let unsynced = GuardView {
        persisted: Index(9),
        ..view()
    };
    assert_eq!(check(PEER, &later, &view()), Ok(()));
    let transfer = PeerMessage::TimeoutNow { term: Term(5) };
    for (from, message, view) in [
        (PEER, append(5, (10, 0), &[]), view()),
        (PEER, reply(11, None), view()),
        (PEER, reply(11, Some(9)), view()),
        (PEER, later, unsynced),
        (OTHER, transfer.clone(), view()),
        (PEER, PeerMessage::TimeoutNow { term: Term(6) }, view()),
    ] {
        let refusal = check(from, &message, &view).expect_err("dropped");
        assert_eq!(refusal.reaction(), Reaction::Drop, "{message:?}");
    }
}

#[test]
fn a_second_leader_of_a_term_is_told_of_and_dropped() {
    for message in [
        append(5, (10, 5), &[]),
        offer(9, 5, 1000, SERVERS),
        PeerMessage::Heartbeat {
            term: Term(5),
            commit: Index(1),
        },
    ] {
        let refusal = check(OTHER, &message, &view()).expect_err("a second leader");
        assert_eq!(refusal.reaction(), Reaction::Drop);
        assert_eq!(refusal.level(), Level::Error);
        assert_eq!(
            refusal.to_string(),
            "leader for term 5 changed from 0202 to 0303"
        );
    }
}

#[test]
fn a_leader_is_told_of_another_one_in_its_term() {
    let leads = GuardView {
        leader: Some(OWN),
        ..view()
    };
    let refusal = check(OTHER, &append(5, (10, 5), &[]), &leads).expect_err("a second leader");
    assert_eq!(refusal.reaction(), Reaction::Drop);
    assert_eq!(refusal.level(), Level::Error);
    assert_eq!(
        refusal.to_string(),
        "this server is leader but server 0303 claims to be"
    );
}

#[test]
fn a_member_that_has_lost_its_log_is_told_so() {
    let heartbeat = |term, commit| PeerMessage::Heartbeat {
        term: Term(term),
        commit: Index(commit),
    };
    let refusal = check(PEER, &heartbeat(5, 11), &view()).expect_err("lost");
    assert_eq!(refusal.reaction(), Reaction::Stop(Unfit::Lost));
    assert_eq!(
        refusal.to_string(),
        "this member has acknowledged entries through 11, but its log ends at 10: its file was lost or replaced by an older one"
    );
    assert_eq!(check(PEER, &heartbeat(5, 10), &view()), Ok(()));
    assert_eq!(check(PEER, &heartbeat(4, 11), &view()), Ok(()), "stale");
}

#[test]
fn a_leader_with_the_committed_log_is_followed() {
    for message in [
        // Past the commit index, the library compares.
        append(5, (8, 5), &[5, 5]),
        append(5, (9, 4), &[5]),
        append(6, (12, 6), &[]),
        append(5, (7, 5), &[5, 5]),
        append(5, (3, 2), &[2, 3, 5, 5, 5, 5]),
        // Forgotten entries, of a term no later than that of their successors.
        append(5, (1, 1), &[2, 2, 2]),
        append(5, (2, 2), &[]),
        // A leader of an older term may have sent entries that were never committed.
        append(4, (8, 4), &[]),
        offer(8, 5, 1000, SERVERS),
        offer(4, 2, 1000, SERVERS),
        offer(2, 1, 1000, SERVERS),
        offer(30, 5, 1000, SERVERS),
        vote((20, 5), (8, 5)),
        vote((20, 5), (5, 3)),
        vote((20, 5), (12, 4)),
        vote((0, 0), (0, 0)),
    ] {
        assert_eq!(check(PEER, &message, &committed()), Ok(()), "{message:?}");
    }
}

#[test]
fn a_leader_with_another_log_than_the_committed_one_is_found_out() {
    let other = |index, own, leader| Divergence {
        index: Index(index),
        own: Term(own),
        leader: Term(leader),
    };
    for (message, divergence) in [
        (append(5, (8, 4), &[5]), other(8, 5, 4)),
        (append(6, (8, 6), &[6]), other(8, 5, 6)),
        (append(5, (5, 2), &[]), other(5, 3, 2)),
        // The position matches, but an entry does not.
        (append(6, (7, 5), &[6]), other(8, 5, 6)),
        (append(5, (4, 2), &[4, 5, 5, 5]), other(5, 3, 4)),
        // A forgotten entry, but of a later term than one of its successors.
        (append(5, (3, 3), &[]), other(3, 2, 3)),
        (append(5, (2, 3), &[]), other(2, 2, 3)),
        (append(5, (1, 1), &[4]), other(2, 2, 4)),
        (offer(8, 4, 1000, SERVERS), other(8, 5, 4)),
        (offer(2, 3, 1000, SERVERS), other(2, 2, 3)),
        (offer(30, 4, 1000, SERVERS), other(8, 5, 4)),
    ] {
        let refusal = check(PEER, &message, &committed()).expect_err("another log");
        assert_eq!(refusal, Refusal::Diverged(divergence), "{message:?}");
        assert_eq!(refusal.reaction(), Reaction::Stop(Unfit::Diverged));
        assert_eq!(refusal.level(), Level::Error);
    }
}

/// Members whose files lost their votes too may have used a term twice.
#[test]
fn another_commit_of_the_same_term_is_found_out() {
    let commit = |id| EntryBody::commit(Eid(Uuid([id; 16])), b"[null,{}]");
    let message = |body| PeerMessage::Append {
        term: Term(5),
        prev_index: Index(6),
        prev_term: Term(5),
        commit: Index(1),
        entries: vec![(Term(5), body)],
    };
    assert_eq!(check(PEER, &message(commit(9)), &committed()), Ok(()));
    assert_eq!(
        check(PEER, &message(EntryBody::empty()), &committed()),
        Ok(()),
        "an entry without an id has nothing to compare"
    );
    let refusal = check(PEER, &message(commit(7)), &committed()).expect_err("another commit");
    let text = "this member has committed another entry 7 of term 5 than its leader";
    assert!(refusal.to_string().starts_with(text), "{refusal}");
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_refused() {
    assert_eq!(check(PEER, &reply(8, None), &leading()), Ok(()));
    let refusal = check(PEER, &reply(9, None), &leading()).expect_err("not sent");
    assert_eq!(
        (refusal.reaction(), refusal.level()),
        (Reaction::Drop, Level::Warn)
    );
    assert_eq!(
        refusal.to_string(),
        "server 0202 acknowledges entry 9, but this leader has sent it no more than 8: not counted"
    );
    // A rejection counts nothing. An answer to an earlier leadership is left to the library, which
    // ignores it.
    assert_eq!(check(PEER, &reply(9, Some(8)), &leading()), Ok(()));
    assert_eq!(check(PEER, &reply(9, None), &view()), Ok(()));
}

#[test]
fn members_with_different_histories_elect_no_leader_together() {
    let voter = |commit: u64, commit_term: u64| PeerMessage::VoteReply {
        term: Term(5),
        is_prevote: false,
        is_granted: false,
        commit: Index(commit),
        commit_term: Term(commit_term),
    };
    assert_eq!(check(PEER, &voter(8, 5), &committed()), Ok(()));
    assert_eq!(check(PEER, &voter(0, 0), &committed()), Ok(()));
    for message in [voter(8, 4), vote((20, 5), (8, 4)), vote((20, 5), (5, 4))] {
        let refusal = check(PEER, &message, &committed()).expect_err("another history");
        assert_eq!(refusal.reaction(), Reaction::Drop, "{message:?}");
        assert_eq!(refusal.level(), Level::Error);
    }
}
