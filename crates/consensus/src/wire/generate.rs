//! Generates messages for tests.

use bytes::Bytes;
use corvid_data::Uuid;
use corvid_log::cluster::{Eid, Index, Servers, Sid, Term};

use crate::database::{ClientIdentity, Forward, ForwardMethod, ForwardOnce, ForwardOutcome};
use crate::entry::EntryBody;
use crate::message::{PeerMessage, Rejection, SnapshotMeta};

/// A small xorshift generator.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A number: small, large, or at the border of the signed integers.
    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => self.below(3),
            1 => self.next(),
            2 => u64::MAX - self.below(2),
            3 => (1 << 63) - 1 + self.below(2),
            _ => self.below(1_000_000),
        }
    }

    fn term(&mut self) -> Term {
        Term(self.number())
    }

    fn index(&mut self) -> Index {
        Index(self.number())
    }

    fn uuid(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        Uuid(bytes)
    }

    fn sid(&mut self) -> Sid {
        Sid(self.uuid())
    }

    fn eid(&mut self) -> Eid {
        Eid(self.uuid())
    }

    fn some<T>(&mut self, most: u64, mut make: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    fn string(&mut self) -> String {
        const PARTS: [&str; 9] = [
            "a",
            "\"",
            "\\",
            "\n",
            "é",
            "'",
            "`",
            "\u{1}",
            "tcp:1.2.3.4:5",
        ];
        let parts = self.some(4, |random| PARTS[random.below(9) as usize]);
        parts.concat()
    }

    /// A text of any bytes except NUL, which JSON text cannot hold.
    fn bytes(&mut self) -> Bytes {
        let length = self.below(300);
        let bytes = (0..length).map(|_| 1 + self.below(255) as u8);
        bytes.collect::<Vec<u8>>().into()
    }

    /// A JSON array.
    fn array(&mut self) -> Bytes {
        const ARRAYS: [&str; 4] = [
            "[]",
            r#"["db",{"op":"select","table":"t","where":[]}]"#,
            r#"[ null , {"t":{"a":"]}\""}} ]"#,
            "[[[1.5,-3]],\"é\\u0041\"]",
        ];
        Bytes::from_static(ARRAYS[self.below(4) as usize].as_bytes())
    }

    fn json(&mut self) -> Bytes {
        match self.below(4) {
            0 => Bytes::from_static(b"null"),
            1 => Bytes::from_static(br#"{"error":"x","details":"\"y"}"#),
            _ => self.array(),
        }
    }

    fn servers(&mut self) -> Servers {
        let mut text = Vec::new();
        text.push(b'{');
        for number in 0..=self.below(3) {
            let comma = if number > 0 { "," } else { "" };
            let uuid = self.uuid();
            let server = format!("{comma}\"{uuid}\":\"tcp:10.0.0.{number}:6644\"");
            text.extend_from_slice(server.as_bytes());
        }
        text.push(b'}');
        Servers::decode(&text).expect("servers")
    }

    fn entry(&mut self) -> (Term, EntryBody) {
        let body = match self.below(6) {
            0 => EntryBody::empty(),
            1 => EntryBody::servers(&self.servers()),
            2 => EntryBody::election_timer(1 + self.below(600_000)),
            _ => EntryBody::commit(self.eid(), &self.array()),
        };
        (self.term(), body)
    }

    fn forward(&mut self) -> Forward {
        let client = ClientIdentity {
            role: self.string(),
            client_id: self.coin().then(|| self.string()),
            is_read_only: self.coin(),
            locks: self.some(2, Random::string),
            further: self.some(2, |random| {
                (random.string(), random.coin().then(|| random.string()))
            }),
            description: self.coin().then(|| self.string()),
            for_source: None,
        };
        Forward {
            id: self.eid(),
            method: match self.coin() {
                true => ForwardMethod::Transact,
                false => ForwardMethod::Convert,
            },
            params: self.array(),
            client,
            elapsed_ms: self.number(),
            once: self.coin().then(|| ForwardOnce {
                id: self.eid(),
                after: self.coin().then(|| self.eid()),
                is_repeated: self.coin(),
            }),
        }
    }

    fn outcome(&mut self) -> ForwardOutcome {
        match self.below(4) {
            0 => ForwardOutcome::Proposed(self.json()),
            1 => ForwardOutcome::Unchanged(self.index(), self.json()),
            2 => ForwardOutcome::Refused(self.index(), self.json()),
            _ => ForwardOutcome::Blocked(self.index()),
        }
    }

    /// A message of any kind.
    pub(crate) fn message(&mut self) -> PeerMessage {
        let term = self.term();
        match self.below(20) {
            0 => PeerMessage::Append {
                term,
                prev_index: self.index(),
                prev_term: self.term(),
                commit: self.index(),
                entries: self.some(4, Random::entry),
            },
            1 => PeerMessage::AppendReply {
                term,
                index: self.index(),
                commit: self.index(),
                rejection: self.coin().then(|| Rejection {
                    hint: self.index(),
                    hint_term: self.term(),
                }),
            },
            2 => PeerMessage::Heartbeat {
                term,
                commit: self.index(),
            },
            3 => PeerMessage::HeartbeatReply {
                term,
                commit: self.index(),
            },
            4 => PeerMessage::Vote {
                term,
                last_index: self.index(),
                last_term: self.term(),
                commit: self.index(),
                commit_term: self.term(),
                is_prevote: self.coin(),
                is_transfer: self.coin(),
            },
            5 => PeerMessage::VoteReply {
                term,
                is_prevote: self.coin(),
                is_granted: self.coin(),
                commit: self.index(),
                commit_term: self.term(),
            },
            6 => PeerMessage::TimeoutNow { term },
            7 => PeerMessage::SnapshotOffer {
                term,
                snapshot: SnapshotMeta {
                    index: self.index(),
                    term: self.term(),
                    eid: self.eid(),
                    servers: self.servers(),
                    election_timer_ms: self.number(),
                    body_bytes: self.number(),
                },
            },
            8 => PeerMessage::SnapshotChunk {
                term,
                index: self.index(),
                offset: self.number(),
                bytes: self.bytes(),
            },
            9 => PeerMessage::SnapshotProgress {
                term,
                index: self.index(),
                offset: self.number(),
            },
            10 => PeerMessage::Forward {
                term,
                first: self.number(),
                answered: self.number(),
                forwards: self.some(3, Random::forward),
            },
            11 => PeerMessage::Outcomes {
                term,
                outcomes: self.some(3, |random| {
                    (random.number(), random.eid(), random.outcome())
                }),
            },
            12 => PeerMessage::AddServer {
                address: self.string(),
                name: self.string(),
            },
            13 => PeerMessage::AddServerReply {
                is_success: self.coin(),
                comment: self.string(),
                remote_addresses: self.some(2, |_| "tcp:[::1]:6644".to_owned()),
            },
            14 => PeerMessage::RemoveServer {
                server_id: self.sid(),
            },
            15 => PeerMessage::RemoveServerReply {
                is_success: self.coin(),
                target: self.coin().then(|| self.sid()),
                comment: self.string(),
            },
            16 => PeerMessage::SnapshotRequest {
                term,
                last_index: self.index(),
                last_term: self.term(),
                address: self.string(),
                name: self.string(),
            },
            17 => PeerMessage::FindEntries {
                after: self.index(),
                through: self.index(),
                ids: self.some(3, Random::eid),
            },
            18 => PeerMessage::FoundEntries {
                after: self.index(),
                through: self.index(),
                is_complete: self.coin(),
                found: self.some(3, Random::eid),
                outcomes: self.some(3, |random| (random.eid(), random.outcome())),
            },
            _ => PeerMessage::NotMember { term },
        }
    }
}
