//! One member's log after all its records, as far as comparing it with others needs.

use std::collections::BTreeMap;
use std::path::Path;

use corvid_json::{Object, Value};
use corvid_log::cluster::{Entry, Index, Kind, Record, Replay, Sid, Step, Term};
use corvid_log::header::Header as Hash;

use super::Names;
use crate::failure::Failure;
use crate::tool::cluster_file::ClusterFile;

/// What is remembered of a file.
pub(super) struct Member {
    /// Its name.
    pub(super) file: String,
    /// Whose it is.
    pub(super) server_id: Sid,
    /// The log.
    pub(super) log: Replay,
    /// Its entries, the first at [`Replay::start`].
    entries: Vec<EntryPrint>,
    /// Who won which election, by the records.
    pub(super) leaders: BTreeMap<Term, Reported>,
    /// Up to where entries were committed when the member was in a term.
    pub(super) commits: BTreeMap<Term, Index>,
}

/// An entry without its contents.
#[derive(Clone, Copy)]
pub(super) struct EntryPrint {
    pub(super) term: Term,
    /// SHA-1 of the entry in canonical form: equal entries, equal prints.
    pub(super) hash: [u8; 20],
    /// The record that holds it.
    record: u64,
}

/// A winner of an election, as a record tells.
#[derive(Clone, Copy)]
pub(super) struct Reported {
    pub(super) leader: Sid,
    /// The record.
    record: u64,
    /// Where the member's own log ended then.
    pub(super) end: Index,
}

/// What is unusual but no fault.
#[derive(Clone, Copy)]
pub(super) enum Note {
    /// Entries from the second index on were dropped; the log ended at the first.
    Truncated(Index, Index),
    /// The member left its cluster.
    Left,
}

impl Member {
    /// Reads a file to its end; `note` is told of what is unusual.
    pub(super) fn read(
        mut file: ClusterFile,
        names: &Names,
        note: impl Fn(&str, u64, Note),
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
            if let Some(unusual) = member.take(number, &record, names)? {
                note(&member.file, number, unusual);
            }
        }
        Ok(member)
    }

    fn take(
        &mut self,
        number: u64,
        record: &Record,
        names: &Names,
    ) -> Result<Option<Note>, Failure> {
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
            Kind::Leader { term, leader } => self.elect(number, *term, *leader, names)?,
            _ => {}
        }
        let (Step::Appended { truncated }, Kind::Entry(entry)) = (step, &record.kind) else {
            return Ok((step == Step::Left).then_some(Note::Left));
        };
        let note = match truncated {
            Some(cut) if cut.by_leader => {
                return Err(fault(format!(
                    "record {number} truncates log from {} to {} entries while server is leader",
                    cut.from, cut.to
                )));
            }
            Some(cut) => Some(Note::Truncated(cut.from, cut.to)),
            None => None,
        };
        self.entries.truncate(self.place(entry.index));
        self.entries.push(EntryPrint {
            term: entry.term,
            hash: Hash::of(&canonical(entry).to_bytes()).sha1,
            record: number,
        });
        Ok(note)
    }

    /// Notes the winner of an election.
    fn elect(
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

    /// The print of an entry that is in the log.
    pub(super) fn entry(&self, index: Index) -> Option<EntryPrint> {
        self.entries.get(self.place(index)).copied()
    }

    /// Reads an entry again, as text for people.
    pub(super) fn show(&self, print: EntryPrint) -> Result<Value, Failure> {
        let mut file = ClusterFile::open(Path::new(&self.file))?;
        while let Some((number, record)) = file.next()? {
            if let Kind::Entry(entry) = &record.kind
                && number == print.record
            {
                return Ok(canonical(entry));
            }
        }
        Err(Failure::new(format!(
            "{}: changed while it was checked",
            self.file
        )))
    }

    fn place(&self, index: Index) -> usize {
        usize::try_from(index.0.wrapping_sub(self.log.start().0)).unwrap_or(usize::MAX)
    }
}

/// An entry without its index, members sorted at every depth.
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
