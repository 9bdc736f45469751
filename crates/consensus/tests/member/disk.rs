//! A member's file in memory: records after a header. A crash keeps what was synced and some of the
//! rest.

use corvid_consensus::Recovered;
use corvid_consensus::member::{Repair, Rewrite};
use corvid_consensus::message::SnapshotMeta;
use corvid_log::RecordReader;
use corvid_log::cluster::{
    Cid, Data, Entry, Header, Index, Kind, Membership, Record, Replay, Servers, Sid, Snapshot,
    Step, Unfit,
};
use corvid_log::header::Magic;
use corvid_log::storage::{
    LogPosition, RewriteNumber, RewriteStage, StorageReply, StorageRequest, StoreError,
};

/// The file of one member.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) sid: Sid,
    pub(crate) cid: Option<Cid>,
    pub(crate) remotes: Vec<String>,
    pub(crate) meta: Option<SnapshotMeta>,
    pub(crate) body: Vec<u8>,
    pub(crate) records: Vec<u8>,
    pub(crate) synced: usize,
    /// Whether appends fail.
    pub(crate) is_full: bool,
    /// The size of the disk, bytes, if that matters.
    pub(crate) size: Option<usize>,
    /// Whether a sync has failed.
    pub(crate) is_poisoned: bool,
    /// Whether records in the middle are unreadable. The promises that the rest proves can still be
    /// read.
    pub(crate) is_damaged: bool,
    /// The damage is at the end, and may hide this many entries after the last one.
    pub(crate) room_at_end: u64,
    has_failed: bool,
    position: LogPosition,
    next: Option<(RewriteNumber, SnapshotMeta, Vec<u8>, Vec<u8>)>,
    /// A snapshot that is being received.
    pub(crate) incoming: Option<(SnapshotMeta, Vec<u8>)>,
}

impl Disk {
    pub(crate) fn new(sid: Sid, cid: Cid, servers: &Servers) -> Disk {
        let meta = SnapshotMeta {
            index: Index(1),
            term: corvid_log::cluster::Term(1),
            eid: corvid_log::cluster::Eid(corvid_data::Uuid([9; 16])),
            servers: servers.clone(),
            election_timer_ms: 1000,
            body_bytes: 2,
        };
        let mut disk = Disk::joining(sid, Vec::new());
        disk.cid = Some(cid);
        disk.meta = Some(meta);
        disk.body = b"[]".to_vec();
        disk
    }

    pub(crate) fn joining(sid: Sid, remotes: Vec<String>) -> Disk {
        Disk {
            sid,
            cid: None,
            remotes,
            meta: None,
            body: Vec::new(),
            records: Vec::new(),
            synced: 0,
            is_full: false,
            size: None,
            is_poisoned: false,
            is_damaged: false,
            room_at_end: 0,
            has_failed: false,
            position: LogPosition::OPENING,
            next: None,
            incoming: None,
        }
    }

    /// Ends the process. Of the unsynced bytes, the first `kept` survive.
    pub(crate) fn crash(&mut self, kept: usize) {
        self.records.truncate(self.synced + kept);
        // A torn record is cut off at the next opening.
        let whole = self.parse().1;
        self.records.truncate(whole);
        self.synced = self.records.len();
        self.has_failed = false;
        self.is_poisoned = false;
        self.position = LogPosition::OPENING;
        self.next = None;
        self.incoming = None;
    }

    /// The records, and where the last whole one ends.
    fn parse(&self) -> (Vec<Record>, usize) {
        let mut reader = RecordReader::new(&self.records[..], Magic::Clustered);
        let mut records = Vec::new();
        while let Ok(Some(raw)) = reader.next() {
            records.push(Record::decode(raw.body).expect("a record"));
        }
        let end = usize::try_from(reader.good_end()).expect("small");
        (records, end)
    }

    /// Everything in the file, checked against the rules for the order of records.
    pub(crate) fn recover(&self) -> Recovered {
        let Some(meta) = &self.meta else {
            return Recovered {
                cid: self.cid,
                remote_addresses: self.remotes.clone(),
                snapshot: None,
                term: corvid_log::cluster::Term(0),
                vote: None,
                commit: Index(0),
                entries: Vec::new(),
                repair: None,
                unfit: None,
                position: LogPosition::OPENING,
            };
        };
        let header = Header {
            server_id: self.sid,
            name: "T".to_owned(),
            local_address: "tcp:1.2.3.4:5".to_owned(),
            cluster_id: self.cid,
            membership: Membership::Joined {
                servers: meta.servers.clone(),
                snapshot: Some(Snapshot {
                    index: meta.index,
                    term: meta.term,
                    eid: meta.eid,
                    data: Data::of(Some(b"{}"), Some(b"{}")),
                    election_timer_ms: Some(meta.election_timer_ms),
                }),
            },
        };
        let mut replay = Replay::new(&header).expect("a member's file");
        let mut entries: Vec<Entry> = Vec::new();
        let (records, end) = self.parse();
        assert_eq!(end, self.records.len(), "the file has whole records only");
        let mut unfit = None;
        for (number, record) in records.iter().enumerate() {
            if let Kind::Note(note) = &record.kind
                && let Some(found) = Unfit::of_note(note)
            {
                unfit = Some((found, record.comment.clone().expect("a reason")));
            }
            let step = replay.apply(record).unwrap_or_else(|violation| {
                let text = violation.text(number as u64 + 1, |sid| sid.to_string());
                panic!("{}: {text} in {records:?}", self.sid)
            });
            if let (Step::Appended { truncated }, Kind::Entry(entry)) = (step, &record.kind) {
                if let Some(truncation) = truncated {
                    entries.retain(|entry| entry.index < truncation.to);
                }
                entries.push(entry.clone());
            }
        }
        let recovered = Recovered {
            cid: self.cid,
            remote_addresses: self.remotes.clone(),
            snapshot: Some(meta.clone()),
            term: replay.term(),
            vote: replay.vote_cast(),
            commit: replay.commit_index(),
            entries,
            repair: None,
            unfit,
            position: LogPosition::OPENING,
        };
        if self.is_damaged {
            damaged(&recovered, self.room_at_end)
        } else {
            recovered
        }
    }

    /// Whether the disk has room for this many bytes more.
    fn has_room(&self, bytes: usize) -> bool {
        let used = self.body.len() + self.records.len();
        !self.is_full && self.size.is_none_or(|size| used + bytes <= size)
    }

    /// Executes one request.
    pub(crate) fn request(&mut self, request: StorageRequest) -> Vec<StorageReply> {
        let failure = no_space();
        match request {
            StorageRequest::Recover => {
                self.has_failed = false;
                Vec::new()
            }
            StorageRequest::Append {
                position,
                record,
                durable,
            } => {
                assert!(!self.is_damaged, "a damaged file is not written to");
                assert!(position > self.position, "positions grow");
                self.position = position;
                let has_room = self.has_room(record.to_slice().len());
                if !has_room || self.is_poisoned || self.has_failed {
                    self.has_failed = true;
                    return vec![StorageReply::Appended(position, Err(failure))];
                }
                self.records.extend_from_slice(&record.to_slice());
                if durable {
                    self.synced = self.records.len();
                }
                vec![StorageReply::Appended(position, Ok(()))]
            }
            StorageRequest::Rewrite(..) => panic!("a member asks with Output::Rewrite"),
            StorageRequest::Extend(number, records) => {
                let next = self.next.as_mut().expect("a new file");
                assert_eq!(next.0, number);
                next.3.extend(records.concat());
                vec![StorageReply::Rewrite(number, Ok(RewriteStage::Written))]
            }
            StorageRequest::Swap(number) => {
                let (known, meta, body, records) = self.next.take().expect("a new file");
                assert_eq!(known, number);
                (self.meta, self.body, self.records) = (Some(meta), body, records);
                self.synced = self.records.len();
                self.is_poisoned = false;
                self.recover();
                let size = corvid_log::storage::FileSize { base: 0, end: 0 };
                vec![
                    StorageReply::Rewrite(number, Ok(RewriteStage::InPlace(size))),
                    StorageReply::Rewrite(number, Ok(RewriteStage::Lasting)),
                ]
            }
            StorageRequest::Abandon(_) => {
                self.next = None;
                Vec::new()
            }
        }
    }

    /// Begins a new file.
    pub(crate) fn rewrite(&mut self, rewrite: Rewrite, body: Vec<u8>) -> StorageReply {
        let meta = SnapshotMeta {
            index: rewrite.index,
            term: rewrite.term,
            eid: rewrite.eid,
            servers: rewrite.servers,
            election_timer_ms: rewrite.election_timer_ms,
            body_bytes: body.len() as u64,
        };
        let bytes = body.len() + rewrite.records.len();
        if self.size.is_some() && !self.has_room(bytes) {
            return StorageReply::Rewrite(rewrite.number, Err(no_space()));
        }
        self.next = Some((rewrite.number, meta, body, rewrite.records));
        StorageReply::Rewrite(rewrite.number, Ok(RewriteStage::Written))
    }

    /// Replaces the file by a received snapshot.
    pub(crate) fn install(&mut self, cid: Option<Cid>, records: Vec<u8>) {
        let (meta, body) = self.incoming.take().expect("a received snapshot");
        assert_eq!(meta.body_bytes, body.len() as u64);
        (self.meta, self.body, self.records, self.cid) = (Some(meta), body, records, cid);
        self.synced = self.records.len();
        self.has_failed = false;
        self.is_poisoned = false;
        self.is_damaged = false;
        self.room_at_end = 0;
        self.next = None;
        self.recover();
    }
}

fn no_space() -> StoreError {
    StoreError {
        details: "t.db: write failed".to_owned(),
        io_error: "No space left on device".to_owned(),
    }
}

/// The part that is known of a file with unreadable records in the middle.
fn damaged(whole: &Recovered, room: u64) -> Recovered {
    let snapshot = whole.snapshot.as_ref().expect("a member's file");
    let lists = whole.entries.iter().rev();
    let list = lists.filter_map(|entry| entry.servers.clone()).next();
    let last = whole.entries.last().map(|entry| (entry.term, entry.index));
    let (term, index) = last.unwrap_or((snapshot.term, snapshot.index));
    let last = match room {
        0 => (term, index),
        room => (whole.term, Index(index.0 + room)),
    };
    Recovered {
        snapshot: None,
        commit: Index(0),
        entries: Vec::new(),
        repair: Some(Repair {
            servers: list.unwrap_or_else(|| snapshot.servers.clone()),
            last,
            election_timer_ms: snapshot.election_timer_ms,
        }),
        ..whole.clone()
    }
}
