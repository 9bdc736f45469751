//! A member of a cluster, and the messages of a peer that does not follow any rules.

use bytes::Bytes;
use corvid_consensus::member::KeptEntries;
use corvid_consensus::message::SnapshotMeta;
use corvid_consensus::wire::{self, Incoming, Receiver};
use corvid_consensus::{
    ForwardOutcome, Input, Member, MemberEvent, MemberRequest, Output, Proposal, Recovered,
    Settings,
};
use corvid_data::Uuid;
use corvid_json::frame::whole_texts;
use corvid_log::RecordReader;
use corvid_log::cluster::{
    Cid, Data, Eid, Header, Index, Membership, Record, Replay, Servers, Sid, Snapshot, Term,
};
use corvid_log::header::Magic;
use corvid_log::storage::{LogPosition, StorageReply, StorageRequest, StoreError};

/// The member, and the peer that sends the messages of the seeds.
const MEMBER: Sid = Sid(Uuid([0xbb; 16]));
const PEER: Sid = Sid(Uuid([0xaa; 16]));

/// The time between two messages, in ms. It is long enough for the member to stand for election
/// within some tens of messages.
const STEP_MS: u64 = 150;

/// Sends a stream of messages to a member of a cluster of two. The member does not panic, its
/// outputs come to an end, and the records that it writes make a file that can be reopened.
///
/// # Panics
/// If one of these invariants is broken.
pub fn member_messages(input: &[u8]) {
    let mut world = World::new();
    let receiver = Receiver {
        sid: MEMBER,
        cid: Cid::new(Uuid([0xcc; 16])),
    };
    for text in whole_texts(input) {
        let text = Bytes::copy_from_slice(text);
        if let Ok(Incoming::Message { from, message, .. }) = wire::decode(&text, &receiver) {
            world.handle(Input::Peer { from, message });
        }
        world.pass(STEP_MS);
    }
    world.handle(Input::PeerDown(PEER));
    for _ in 0..50 {
        world.pass(STEP_MS);
    }
}

struct World {
    now_ms: u64,
    member: Member,
    /// Checks the rules that the records of the file must follow.
    replay: Replay,
    /// The snapshot that is being received.
    incoming: Option<(SnapshotMeta, Vec<u8>)>,
    has_ended: bool,
    commits: u8,
}

impl World {
    fn new() -> World {
        let servers = format!(
            r#"{{"{}":"tcp:10.0.0.1:6644","{}":"tcp:10.0.0.2:6644"}}"#,
            PEER.0, MEMBER.0
        );
        let snapshot = SnapshotMeta {
            index: Index(1),
            term: Term(1),
            eid: Eid(Uuid([9; 16])),
            servers: Servers::decode(servers.as_bytes()).expect("servers"),
            election_timer_ms: 1000,
            body_bytes: 2,
        };
        let replay = replay(&snapshot);
        let recovered = Recovered {
            cid: Cid::new(Uuid([0xcc; 16])),
            remote_addresses: Vec::new(),
            snapshot: Some(snapshot),
            term: Term(1),
            vote: None,
            commit: Index(1),
            entries: Vec::new(),
            repair: None,
            unfit: None,
            position: LogPosition::OPENING,
        };
        let settings = Settings {
            sid: MEMBER,
            name: "D".to_owned(),
            address: "tcp:10.0.0.2:6644".to_owned(),
            kept: KeptEntries::DEFAULT,
        };
        let mut world = World {
            now_ms: 0,
            member: Member::new(settings, recovered, 0, 1),
            replay,
            incoming: None,
            has_ended: false,
            commits: 0,
        };
        let synced = StorageReply::Appended(LogPosition::OPENING, Ok(()));
        world.handle(Input::Storage(synced));
        world.handle(Input::PeerUp(PEER));
        world
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        if self.member.deadline_ms() <= self.now_ms {
            self.handle(Input::Time);
        }
    }

    /// Handles an input, and all inputs that follow from it.
    fn handle(&mut self, input: Input) {
        let mut inputs = vec![input];
        let mut count = 0;
        while !inputs.is_empty() {
            for input in std::mem::take(&mut inputs) {
                self.member.handle(self.now_ms, input);
                while let Some(output) = self.member.next_output() {
                    count += 1;
                    assert!(count < 10_000, "outputs end");
                    self.carry_out(output, &mut inputs);
                }
            }
        }
    }

    fn carry_out(&mut self, output: Output, inputs: &mut Vec<Input>) {
        assert!(!self.has_ended, "the last output was the last: {output:?}");
        match output {
            Output::Store(requests) => {
                for request in requests {
                    if let StorageRequest::Append {
                        position, record, ..
                    } = request
                    {
                        self.store(&record.to_slice());
                        inputs.push(Input::Storage(StorageReply::Appended(position, Ok(()))));
                    }
                }
            }
            Output::Send { to, .. } => assert!(to != MEMBER),
            Output::Database(event) => self.database(event, inputs),
            Output::ReadSnapshot {
                to, index, offset, ..
            } => inputs.push(Input::SnapshotRead {
                to,
                index,
                offset,
                bytes: Ok((2, Bytes::from_static(b"[]").slice(offset.min(2) as usize..))),
            }),
            Output::BeginSnapshot(meta) => self.incoming = Some((meta, Vec::new())),
            Output::WriteSnapshot {
                index,
                offset,
                bytes,
            } => {
                let (meta, body) = self.incoming.as_mut().expect("a snapshot was begun");
                assert_eq!((meta.index, body.len() as u64), (index, offset));
                body.extend_from_slice(&bytes);
                let end = Ok(body.len() as u64);
                inputs.push(Input::SnapshotWritten { index, end });
            }
            Output::AbandonSnapshot => self.incoming = None,
            Output::InstallSnapshot {
                snapshot, records, ..
            } => {
                let (meta, body) = self.incoming.take().expect("a snapshot was begun");
                assert_eq!((&meta, body.len() as u64), (&snapshot, meta.body_bytes));
                let index = snapshot.index;
                // Every second snapshot is reported as not being the contents of a database.
                let outcome = if body.len() % 2 == 0 {
                    self.replay = replay(&snapshot);
                    self.store(&records);
                    Ok(())
                } else {
                    Err(StoreError {
                        details: "no contents".to_owned(),
                        io_error: String::new(),
                    })
                };
                inputs.push(Input::SnapshotInstalled { index, outcome });
            }
            Output::Left | Output::Failed(_) => self.has_ended = matches!(output, Output::Left),
            Output::Dial(_)
            | Output::Refuse { .. }
            | Output::ElectionTimer(_)
            | Output::Row(_)
            | Output::CommandDone(..)
            | Output::Log(..)
            | Output::MakeSnapshot
            | Output::Rewrite(_)
            | Output::RejectSnapshot(_) => {}
        }
    }

    fn database(&mut self, event: MemberEvent, inputs: &mut Vec<Input>) {
        match event {
            MemberEvent::Leads { term } => {
                self.commits = self.commits.wrapping_add(1);
                let proposals = vec![Proposal {
                    eid: Eid(Uuid([self.commits; 16])),
                    data: Bytes::from_static(b"[null,{}]"),
                    result: None,
                }];
                inputs.push(Input::Database(MemberRequest::Propose { term, proposals }));
            }
            MemberEvent::Committed { through, .. } => {
                inputs.push(Input::Database(MemberRequest::Applied(through)));
            }
            MemberEvent::Replaced { index, .. } => {
                inputs.push(Input::Database(MemberRequest::Applied(index)));
            }
            MemberEvent::Execute { origin, forwards } => {
                for forward in forwards {
                    let outcome = ForwardOutcome::Blocked(Index(1));
                    inputs.push(Input::Database(MemberRequest::Outcome {
                        origin,
                        id: forward.id,
                        outcome,
                    }));
                }
            }
            MemberEvent::Follows { .. }
            | MemberEvent::ElectionTimer { .. }
            | MemberEvent::Outcome { .. }
            | MemberEvent::Found { .. }
            | MemberEvent::Compacted { .. } => {}
        }
    }

    /// A record that would be rejected when the file is reopened must never be written.
    fn store(&mut self, records: &[u8]) {
        let mut reader = RecordReader::new(records, Magic::Clustered);
        let mut end = 0;
        while let Ok(Some(raw)) = reader.next() {
            let record = Record::decode(raw.body).expect("a record");
            if let Err(violation) = self.replay.apply(&record) {
                let text = violation.text(0, |sid| sid.to_string());
                panic!("{text}: {record:?}");
            }
            end = reader.good_end();
        }
        assert_eq!(end, records.len() as u64, "whole records");
    }
}

/// Returns the file of the member with this snapshot.
fn replay(snapshot: &SnapshotMeta) -> Replay {
    let header = Header {
        server_id: MEMBER,
        name: "D".to_owned(),
        local_address: "tcp:10.0.0.2:6644".to_owned(),
        cluster_id: Cid::new(Uuid([0xcc; 16])),
        membership: Membership::Joined {
            servers: snapshot.servers.clone(),
            snapshot: Some(Snapshot {
                index: snapshot.index,
                term: snapshot.term,
                eid: snapshot.eid,
                data: Data::of(Some(b"{}"), Some(b"{}")),
                election_timer_ms: Some(snapshot.election_timer_ms),
            }),
        },
    };
    Replay::new(&header).expect("a member's file")
}
