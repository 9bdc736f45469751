//! The file of a simulated member: its first content, and the state that a member finds in the file
//! when it starts.
//!
//! Files are read with the cluster reader of `log` and its rules for the order of records. Every
//! run therefore also checks that the records that a member writes can be read back.

use bytes::Bytes;
use corvid_consensus::member::Repair;
use corvid_consensus::message::SnapshotMeta;
use corvid_consensus::{EntryBody, Recovered};
use corvid_log::cluster::{
    Cid, ClusterReader, Data, Eid, Entry, Header, Index, Joined, Kind, Membership, Record,
    RecoveredMembership, Replay, Servers, Sid, Snapshot, Step, Term, recover,
};
use corvid_log::storage::LogPosition;
use corvid_log::{DiskFile as _, Magic, RecordReader};

use super::oracle::{MemberLog, hash};
use super::registers::{Applied, SCHEMA, of_data};
use crate::server::opening::FileSource;
use crate::world::disk::Handle;

/// The name of the database.
pub(super) const NAME: &str = "A";

/// The id of the last entry of the first snapshot.
pub(super) const FIRST_EID: Eid = Eid(corvid_data::Uuid([1; 16]));

/// A member's identity.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) sid: Sid,
    pub(super) address: String,
    pub(super) cid: Option<Cid>,
}

/// The state that a member finds in its file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) recovered: Recovered,
    /// The same state as the server reads it.
    pub(super) judged: corvid_log::cluster::Recovered,
    pub(super) log: MemberLog,
    pub(super) applied: Applied,
    /// The end of the good part of the file, in bytes.
    pub(super) end: u64,
    pub(super) has_left: bool,
}

/// Returns these servers as a member list.
pub(super) fn servers(identities: &[Identity]) -> Servers {
    let listed: Vec<String> = identities
        .iter()
        .map(|identity| format!("\"{}\":\"{}\"", identity.sid.0, identity.address))
        .collect();
    let text = format!("{{{}}}", listed.join(","));
    Servers::decode(text.as_bytes()).expect("it has ids and addresses")
}

/// Returns the file of a member with an empty database.
pub(super) fn first(identity: &Identity, servers: &Servers) -> Vec<u8> {
    let header = Header {
        server_id: identity.sid,
        name: NAME.to_owned(),
        local_address: identity.address.clone(),
        cluster_id: identity.cid,
        membership: Membership::Joined {
            servers: servers.clone(),
            snapshot: Some(Snapshot {
                index: Index(1),
                term: Term(1),
                eid: FIRST_EID,
                data: Data::of(Some(SCHEMA.as_bytes()), Some(b"{}")),
                election_timer_ms: None,
            }),
        },
    };
    framed(&header)
}

/// Returns the file of a server that is to join.
pub(super) fn joining(identity: &Identity, remote_addresses: Vec<String>) -> Vec<u8> {
    framed(&Header {
        server_id: identity.sid,
        name: NAME.to_owned(),
        local_address: identity.address.clone(),
        cluster_id: identity.cid,
        membership: Membership::Joining { remote_addresses },
    })
}

/// Returns a header as the first record of a file.
pub(super) fn framed(header: &Header) -> Vec<u8> {
    let mut file = Vec::new();
    let mut record = corvid_log::Record::begin(&mut file, Magic::Clustered);
    header.encode(record.body());
    record.finish();
    file
}

/// Reads a file.
///
/// # Errors
/// The file breaks a rule; the text says which.
pub(super) fn open(file: &Handle) -> Result<Opened, String> {
    let length = file.length().map_err(|fault| fault.text)?;
    let judged = recover(FileSource { file, offset: 0 }, length)
        .map_err(|error| format!("the file does not open: {error:?}"))?;
    if let RecoveredMembership::Damaged(promises) = judged.membership.clone() {
        return Ok(Opened {
            judged: judged.clone(),
            recovered: Recovered {
                cid: judged.cluster_id,
                remote_addresses: Vec::new(),
                snapshot: None,
                term: judged.term,
                vote: judged.vote,
                commit: Index(0),
                entries: Vec::new(),
                repair: Some(Repair {
                    servers: promises.servers,
                    last: promises.last,
                    election_timer_ms: promises.election_timer_ms,
                }),
                unfit: judged.unfit,
                position: LogPosition::OPENING,
            },
            log: MemberLog::default(),
            applied: Applied::default(),
            end: length,
            has_left: false,
        });
    }
    if judged.may_have_forgotten() {
        return Err(format!(
            "an intact disk is judged to have lost synced records: {:?}",
            judged.damage
        ));
    }
    let mut reader = ClusterReader::new(FileSource { file, offset: 0 });
    let header = match reader.header() {
        Ok(Some(Ok(header))) => header,
        other => return Err(format!("the header cannot be read: {other:?}")),
    };
    let mut entries: Vec<Entry> = Vec::new();
    let mut replay = Replay::new(&header);
    let (mut term, mut vote) = (Term(0), None);
    while let Ok(Some(record)) = reader.next() {
        let record = record.map_err(|error| format!("a record cannot be read: {error:?}"))?;
        let Some(replay) = &mut replay else {
            note_term(&record, &mut term, &mut vote);
            continue;
        };
        let step = replay.apply(&record);
        let step = step.map_err(|violation| violation.text(reader.number(), |s| s.to_string()))?;
        if let (Kind::Entry(entry), Step::Appended { truncated }) = (record.kind, step) {
            if let Some(truncation) = truncated {
                let kept = truncation.to.0 - replay.start().0;
                entries.truncate(usize::try_from(kept).unwrap_or(0));
            }
            entries.push(entry);
        }
    }
    let end = reader.good_end();
    let last = judged.joined().map(Joined::last_index);
    let is_same = end == judged.good_end
        && last.is_none_or(|last| {
            replay
                .as_ref()
                .is_some_and(|replay| replay.end() == last.next())
        });
    if !is_same {
        return Err(format!(
            "the file ends at {end} for one reader and at {} for the other",
            judged.good_end
        ));
    }
    let (snapshot, remote_addresses) = match &header.membership {
        Membership::Joining { remote_addresses } => (None, remote_addresses.clone()),
        Membership::Joined { servers, snapshot } => (
            snapshot.as_ref().map(|snapshot| meta(snapshot, servers)),
            Vec::new(),
        ),
    };
    let mut applied = match header.snapshot() {
        Some(snapshot) => Applied::of_body(snapshot.index, snapshot.eid, snapshot.data.json())?,
        None => Applied::default(),
    };
    let base = snapshot.as_ref().map_or(Index(0), |meta| meta.index);
    let mut log = MemberLog {
        base,
        base_term: snapshot.as_ref().map_or(Term(0), |meta| meta.term),
        ..MemberLog::default()
    };
    let commit = replay.as_ref().map_or(Index(0), Replay::commit_index);
    for entry in &entries {
        log.entries
            .push((entry.term, hash(EntryBody::of(entry).text())));
        if let Some(payload) = entry.payload.as_ref().filter(|_| entry.index <= commit) {
            let (key, number) = of_data(payload.data.json()).ok_or("an entry of no transaction")?;
            applied.values.insert(key, number);
            applied.eid = Some(payload.eid);
            applied.count += 1;
        }
    }
    applied.index = commit.max(applied.index);
    log.synced = log.last();
    Ok(Opened {
        recovered: Recovered {
            cid: header.cluster_id,
            remote_addresses,
            snapshot,
            term: replay.as_ref().map_or(term, Replay::term),
            vote: replay.as_ref().map_or(vote, Replay::vote_cast),
            commit,
            entries,
            repair: None,
            unfit: judged.unfit.clone(),
            position: LogPosition::OPENING,
        },
        judged,
        log,
        applied,
        end,
        has_left: replay.as_ref().is_some_and(Replay::has_left),
    })
}

fn note_term(record: &Record, term: &mut Term, vote: &mut Option<Sid>) {
    let of_record = match &record.kind {
        Kind::Term(of_record) => Some((*of_record, None)),
        Kind::Vote {
            term: of_record,
            vote,
        } => Some((*of_record, Some(*vote))),
        _ => None,
    };
    if let Some((of_record, chosen)) = of_record
        && of_record >= *term
    {
        *vote = chosen.or(vote.filter(|_| of_record == *term));
        *term = of_record;
    }
}

fn meta(snapshot: &Snapshot, servers: &Servers) -> SnapshotMeta {
    SnapshotMeta {
        index: snapshot.index,
        term: snapshot.term,
        eid: snapshot.eid,
        servers: servers.clone(),
        election_timer_ms: snapshot
            .election_timer_ms
            .unwrap_or(corvid_log::cluster::ELECTION_TIMER_DEFAULT_MS),
        body_bytes: snapshot.data.json().len() as u64,
    }
}

/// Returns the records in framed bytes.
///
/// # Errors
/// The bytes cannot be read as records.
pub(super) fn records(bytes: &[u8]) -> Result<Vec<Record>, String> {
    let mut reader = RecordReader::new(bytes, Magic::Clustered);
    let mut records = Vec::new();
    while let Some(raw) = reader
        .next()
        .map_err(|error| format!("a record that is written cannot be read: {error:?}"))?
    {
        records.push(
            Record::decode(raw.body)
                .map_err(|error| format!("a record that is written cannot be read: {error:?}"))?,
        );
    }
    Ok(records)
}

/// Returns the body of the snapshot in a file, and the index of its last entry.
pub(super) fn snapshot_body(file: &Handle) -> Option<(Index, Bytes)> {
    let mut reader = ClusterReader::new(FileSource { file, offset: 0 });
    let header = reader.header().ok()??.ok()?;
    let snapshot = header.snapshot()?;
    Some((snapshot.index, Bytes::copy_from_slice(snapshot.data.json())))
}
