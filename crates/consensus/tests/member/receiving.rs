//! A snapshot that arrives in chunks, while the disk is slow and messages arrive twice.

use bytes::Bytes;
use corvid_consensus::message::{PeerMessage, SnapshotMeta};
use corvid_consensus::{EntryBody, Input, KeptEntries, Member, Output, Settings};
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Eid, Index, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, StorageReply};

use crate::cluster::sid;
use crate::disk::Disk;

const LEADER: u8 = 2;
const BODY: &[u8] = b"[{\"a\":1},{\"b\":222}]";
const CHUNK: usize = 8;

fn servers() -> Servers {
    let addresses = [1, 2, 3]
        .map(|number| format!("\"{}\":\"tcp:1.2.3.4:{number}\"", sid(number).0))
        .join(",");
    Servers::decode(format!("{{{addresses}}}").as_bytes()).expect("a list")
}

/// A follower of three members, its requests to write parts of the snapshot, and its messages. Its
/// records are stored at once, so no message of the algorithm waits for them.
struct Follower {
    member: Member,
    disk: Disk,
    writes: Vec<(u64, Bytes)>,
    sent: Vec<PeerMessage>,
    is_installing: bool,
    now_ms: u64,
}

impl Follower {
    fn new() -> Follower {
        let own: Sid = sid(1);
        let cid = Cid::new(Uuid([7; 16])).expect("an id");
        let settings = Settings {
            sid: own,
            name: "T".to_owned(),
            address: "tcp:1.2.3.4:1".to_owned(),
            kept: KeptEntries::DEFAULT,
        };
        let disk = Disk::new(own, cid, &servers());
        let mut follower = Follower {
            member: Member::new(settings, disk.recover(), 0, 1),
            disk,
            writes: Vec::new(),
            sent: Vec::new(),
            is_installing: false,
            now_ms: 0,
        };
        let opening = StorageReply::Appended(LogPosition::OPENING, Ok(()));
        follower.handle(Input::Storage(opening));
        follower.offer();
        follower
    }

    fn handle(&mut self, input: Input) {
        self.member.handle(self.now_ms, input);
        while let Some(output) = self.member.next_output() {
            match output {
                Output::Store(requests) => {
                    let replies = requests.into_iter().flat_map(|it| self.disk.request(it));
                    for reply in replies {
                        self.member.handle(self.now_ms, Input::Storage(reply));
                    }
                }
                Output::WriteSnapshot { offset, bytes, .. } => self.writes.push((offset, bytes)),
                Output::Send { message, .. } => self.sent.push(message),
                Output::InstallSnapshot { .. } => self.is_installing = true,
                _ => {}
            }
        }
    }

    fn message(&mut self, message: PeerMessage) {
        let from = sid(LEADER);
        self.handle(Input::Peer { from, message });
    }

    fn offer(&mut self) {
        let snapshot = SnapshotMeta {
            index: Index(50),
            term: Term(2),
            eid: Eid(Uuid([5; 16])),
            servers: servers(),
            election_timer_ms: 1000,
            body_bytes: BODY.len() as u64,
        };
        let term = Term(2);
        self.message(PeerMessage::SnapshotOffer { term, snapshot });
    }

    /// The leader sends the chunk that begins at `offset`.
    fn chunk(&mut self, offset: usize) {
        let end = (offset + CHUNK).min(BODY.len());
        self.message(PeerMessage::SnapshotChunk {
            term: Term(2),
            index: Index(50),
            offset: offset as u64,
            bytes: Bytes::from_static(&BODY[offset..end]),
        });
    }

    /// The disk has written everything that was requested.
    fn written(&mut self) {
        let end = self.writes.iter().map(|(_, bytes)| bytes.len() as u64);
        let (index, end) = (Index(50), Ok(end.sum()));
        self.handle(Input::SnapshotWritten { index, end });
    }

    /// Checks that the requested parts make up the body, in order, each exactly once.
    fn check(&self) {
        let mut body = Vec::new();
        for (offset, bytes) in &self.writes {
            assert_eq!(*offset, body.len() as u64, "{:?}", self.writes);
            body.extend_from_slice(bytes);
        }
        assert_eq!(body, BODY);
    }
}

/// Checks that a chunk that is being written is written only once, although the leader resends it
/// after `interruption`.
fn check_interruption(interruption: impl Fn(&mut Follower)) {
    let mut follower = Follower::new();
    follower.chunk(0);
    interruption(&mut follower);
    follower.written();
    for offset in (0..BODY.len()).step_by(CHUNK) {
        follower.chunk(offset);
    }
    follower.written();
    follower.check();
}

#[test]
fn a_chunk_that_is_being_written_is_written_once_when_the_snapshot_is_offered_again() {
    check_interruption(Follower::offer);
}

#[test]
fn a_chunk_that_is_being_written_is_written_once_when_the_connection_is_made_again() {
    check_interruption(|follower| follower.handle(Input::PeerUp(sid(LEADER))));
}

/// A follower that has handed the whole snapshot to the disk and has not heard that it is in place.
fn installing() -> Follower {
    let mut follower = Follower::new();
    for offset in (0..BODY.len()).step_by(CHUNK) {
        follower.chunk(offset);
    }
    follower.written();
    assert!(follower.is_installing);
    follower.sent.clear();
    follower
}

impl Follower {
    /// The leader sends a heartbeat and an entry.
    fn hear_leader(&mut self) {
        let (term, commit) = (Term(2), Index(1));
        self.message(PeerMessage::Heartbeat { term, commit });
        let entry = EntryBody::commit(Eid(Uuid([6; 16])), b"[]");
        self.message(PeerMessage::Append {
            term,
            prev_index: Index(1),
            prev_term: Term(1),
            commit,
            entries: vec![(term, entry)],
        });
    }

    /// Ten seconds pass: many election timeouts.
    fn wait(&mut self) {
        for _ in 0..100 {
            self.now_ms += 100;
            self.handle(Input::Time);
        }
    }

    /// The disk has put the snapshot in place.
    fn installed(&mut self) {
        let (index, outcome) = (Index(50), Ok(()));
        self.handle(Input::SnapshotInstalled { index, outcome });
        self.sent.clear();
    }
}

#[test]
fn a_member_answers_no_leader_while_a_snapshot_is_put_in_place() {
    let mut follower = installing();
    follower.hear_leader();
    assert_eq!(follower.sent, []);
    // Nothing else keeps it from answering.
    follower.installed();
    follower.hear_leader();
    assert!(!follower.sent.is_empty());
}

#[test]
fn a_member_stands_for_no_election_while_a_snapshot_is_put_in_place() {
    let mut follower = installing();
    follower.wait();
    assert_eq!(follower.sent, []);
    // Nothing else keeps it from standing for election.
    follower.installed();
    follower.wait();
    let is_vote = |message: &PeerMessage| matches!(message, PeerMessage::Vote { .. });
    assert!(follower.sent.iter().any(is_vote), "{:?}", follower.sent);
}
