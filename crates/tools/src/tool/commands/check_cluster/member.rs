//! The summary of one member's log, for comparison with the logs of other members.

use std::collections::BTreeMap;

use corvid_json::{Object, Value};
use corvid_log::cluster::{Entry, Index, Kind, Record, Replay, Sid, Step, Term};
use corvid_log::header::Header as Hash;
use corvid_net::os_name;

use super::Names;
use crate::failure::Failure;
use crate::tool::cluster_file::ClusterFile;

/// The summary of a member's file.
pub(super) struct Member {
    /// The file's name.
    pub(super) file: String,
    /// The member's server id.
    pub(super) server_id: Sid,
    /// The state of the log after all records.
    pub(super) log: Replay,
    /// The log's entries, the first at [`Replay::start`].
    entries: Vec<Fingerprint>,
    /// The leaders by term, as the records report them.
    pub(super) leaders: BTreeMap<Term, Reported>,
    /// The last commit index in each term of the member.
    pub(super) commits: BTreeMap<Term, Index>,
}

/// The fingerprint of an entry: its term and the hash of its contents.
#[derive(Clone, Copy)]
pub(super) struct Fingerprint {
    pub(super) term: Term,
    /// SHA-1 of the entry in canonical form. Equal entries have equal fingerprints.
    pub(super) hash: [u8; 20],
    /// The number of the record with the entry.
    record: u64,
}

/// The winner of an election, as a record reports it.
#[derive(Clone, Copy)]
pub(super) struct Reported {
    pub(super) leader: Sid,
    /// The record's number.
    record: u64,
    /// The end of the member's own log at that record.
    pub(super) end: Index,
}

/// An event that is unusual but not a fault.
#[derive(Clone, Copy)]
pub(super) enum Warning {
    /// Entries from the second index on were dropped; the log ended at the first.
    Truncated(Index, Index),
    /// The member left its cluster.
    Left,
}

impl Member {
    /// Reads a file to its end, and calls `warn` for each unusual event.
    pub(super) fn read(
        mut file: ClusterFile,
        names: &Names,
        warn: impl Fn(&str, u64, Warning),
    ) -> Result<Member, Failure> {
        let Some(log) = Replay::new(&file.header) else {
            return Err(Failure::new(format!("{}: has not joined", file.name)));
        };
        let mut member = Member {
            file: file.name.clone(),
            server_id: file.header.server_id,
            log,
            entries: Vec::new(),
            leaders: BTreeMap::new(),
            commits: BTreeMap::new(),
        };
        while let Some((number, record)) = file.next()? {
            if let Some(warning) = member.apply(number, &record, names)? {
                warn(&member.file, number, warning);
            }
        }
        Ok(member)
    }

    /// Applies a record to the log and to the summary.
    fn apply(
        &mut self,
        number: u64,
        record: &Record,
        names: &Names,
    ) -> Result<Option<Warning>, Failure> {
        let file = self.file.clone();
        let fault = |text: String| Failure::new(format!("{file}: {text}"));
        let step = self
            .log
            .apply(record)
            .map_err(|violation| fault(violation.text(number, |sid| names.of_server(sid))))?;
        match &record.kind {
            Kind::CommitIndex(index) => {
                self.commits.insert(self.log.term(), *index);
            }
            Kind::Leader { term, leader } => self.record_leader(number, *term, *leader, names)?,
            _ => {}
        }
        let (Step::Appended { truncated }, Kind::Entry(entry)) = (step, &record.kind) else {
            return Ok((step == Step::Left).then_some(Warning::Left));
        };
        let warning = match truncated {
            Some(cut) if cut.by_leader => {
                return Err(fault(format!(
                    "record {number} truncates log from {} to {} entries while server is leader",
                    cut.from, cut.to
                )));
            }
            Some(cut) => Some(Warning::Truncated(cut.from, cut.to)),
            None => None,
        };
        self.entries.truncate(self.position(entry.index));
        self.entries.push(Fingerprint {
            term: entry.term,
            hash: Hash::of(&canonical(entry).to_bytes()).sha1,
            record: number,
        });
        Ok(warning)
    }

    /// Records the winner of an election.
    fn record_leader(
        &mut self,
        number: u64,
        term: Term,
        leader: Sid,
        names: &Names,
    ) -> Result<(), Failure> {
        let reported = Reported {
            leader,
            record: number,
            end: self.log.end(),
        };
        let before = self.leaders.entry(term).or_insert(reported);
        if before.leader == leader {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{}: record {number} reports leader {} for term {term} but record {} previously reported the leader as {} in that term",
            self.file,
            names.of_server(leader),
            before.record,
            names.of_server(before.leader)
        )))
    }

    /// The fingerprint of an entry in the log.
    pub(super) fn entry(&self, index: Index) -> Option<Fingerprint> {
        self.entries.get(self.position(index)).copied()
    }

    /// Rereads an entry to show it in a message.
    pub(super) fn show(&self, fingerprint: Fingerprint) -> Result<Value, Failure> {
        let mut file = ClusterFile::open(&os_name::path(&self.file))?;
        while let Some((number, record)) = file.next()? {
            if let Kind::Entry(entry) = &record.kind
                && number == fingerprint.record
            {
                return Ok(canonical(entry));
            }
        }
        Err(Failure::new(format!(
            "{}: changed while it was checked",
            self.file
        )))
    }

    fn position(&self, index: Index) -> usize {
        usize::try_from(index.0.wrapping_sub(self.log.start().0)).unwrap_or(usize::MAX)
    }
}

/// An entry without its index, with members sorted at every depth.
fn canonical(entry: &Entry) -> Value {
    let mut object = Object::new();
    let mut put = |name: &str, value: Value| object.insert(name.into(), value);
    put("term", Value::Integer(entry.term.0.cast_signed()));
    if let Some(servers) = &entry.servers {
        let listed = servers
            .iter()
            .map(|(sid, address)| (sid.0.to_text().as_slice().into(), Value::string(address)))
            .collect();
        put("servers", Value::Object(listed));
    }
    if let Some(timer) = entry.election_timer_ms {
        put("election_timer", Value::Integer(timer.cast_signed()));
    }
    if let Some(payload) = &entry.payload {
        put("eid", Value::string(payload.eid.0.to_text()));
        put(
            "data",
            Value::parse(payload.data.json()).unwrap_or(Value::Null),
        );
    }
    Value::Object(object)
}
