//! One host of a cluster: a member, its file on a disk that fails, its database, and a clock of its
//! own. In the server, these parts run on threads of their own. Here they are queues, and the run
//! draws which queue is served next.
//!
//! Invariant: messages between two parts stay in order. When a life ends, its disk remains, and the
//! log that its records describe. The next life is checked against that log.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use corvid_consensus::member::{Rewrite, ServerRow};
use corvid_consensus::message::SnapshotMeta;
use corvid_consensus::{Input, Member, MemberEvent, Output, Settings};
use corvid_log::LogWriter;
use corvid_log::cluster::{Eid, Entry, Index, Kind, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, RewriteNumber, RewriteStage, StorageReply, StorageRequest};
use corvid_service::member::file::{Consequences, INSTALLATIONS};

use super::ballot::{Ballot, next_ballot, note_ballots};
use super::file::{self, Identity, Opened};
use super::oracle::{MemberLog, hash};
use super::registers::Registers;
use crate::world::clock::Clock;
use crate::world::dice::Dice;
use crate::world::disk::SimDisk;
use crate::world::member_file::{FileThreads, MemberFile};

/// Maximum number of outputs of a member for one input. A member with more never comes to rest.
pub(super) const OUTPUTS_MAX: usize = 20_000;

/// An append without a reply.
#[derive(Debug)]
struct Unanswered {
    position: LogPosition,
    is_durable: bool,
    entries: Vec<(Index, Term)>,
    ballot: Option<Ballot>,
    /// All terms and votes that the append contains.
    ballots: Vec<Ballot>,
    /// The term, and the last entry of the log, at the time when this was the newest append.
    accepted: (Term, Index),
}

/// The content of a new file.
#[derive(Debug)]
struct NewLog {
    entries: Vec<Written>,
    /// The last entry of the snapshot.
    base: (Index, Term),
    /// The terms and votes of the file, in order. Some of them exist only here: they were written
    /// while nothing could be appended.
    ballots: Vec<Ballot>,
}

/// An entry that a member has written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) index: Index,
    pub(super) term: Term,
    /// Hash of the body.
    pub(super) body: u64,
    /// The term of the preceding entry.
    pub(super) before: Option<Term>,
    pub(super) servers: Option<Servers>,
    pub(super) payload: Option<(Eid, Bytes)>,
}

impl Written {
    fn of(entry: &Entry, before: Option<Term>) -> Written {
        Written {
            index: entry.index,
            term: entry.term,
            body: hash(corvid_consensus::EntryBody::of(entry).text()),
            before,
            servers: entry.servers.clone(),
            payload: entry.payload.as_ref().map(|payload| {
                let data = Bytes::copy_from_slice(payload.data.json());
                (payload.eid, data)
            }),
        }
    }
}

/// One life of the process.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) member: Member,
    pub(super) file: MemberFile,
    pub(super) registers: Registers,
    /// Inputs from the network.
    pub(super) inbox: VecDeque<Input>,
    /// Replies of the disk.
    pub(super) replies: VecDeque<StorageReply>,
    /// Events for the database.
    pub(super) events: VecDeque<MemberEvent>,
    unanswered: VecDeque<Unanswered>,
    /// The last entry that the member has reported as committed.
    pub(super) reported: Index,
    /// The disk thread is busy until this time, ms.
    pub(super) disk_ms: u64,
    pub(super) row: Option<ServerRow>,
    /// The last entry in the database's snapshot, which the file keeps for the member.
    pub(super) snapshot: Option<Index>,
    pub(super) wants_snapshot: bool,
    /// New files that are being written. An abandoned file may still be swapped in.
    rewrites: BTreeMap<u64, NewLog>,
    /// The new file that is in place and not durable yet.
    in_place: Option<RewriteNumber>,
    /// Terms and votes in the file that installs a peer's snapshot.
    installed_ballots: Vec<Ballot>,
    /// The reason, if the life has ended by itself.
    pub(super) ended: Option<String>,
    /// Newest term and vote in the records. `synced_ballot` is the newest one that is synced.
    ballot: Ballot,
    pub(super) synced_ballot: Ballot,
    /// For each term, the last entry of the log that was synced in that term. A leader of a later
    /// term may have replaced the entry since.
    accepted: BTreeMap<Term, Index>,
    /// The synced vote of each term, including terms that are over.
    votes: BTreeMap<Term, Option<Sid>>,
}

impl Life {
    /// The new file in place is durable, and so are its terms and votes.
    fn ballots_synced(&mut self, ballots: &[Ballot]) {
        for ballot in ballots {
            self.votes.insert(ballot.0, ballot.1);
            if ballot.0 >= self.synced_ballot.0 {
                self.synced_ballot = *ballot;
            }
        }
    }
}

/// A host.
#[derive(Debug)]
pub(super) struct MemberHost {
    pub(super) identity: Identity,
    pub(super) disk: SimDisk,
    pub(super) clock: Clock,
    pub(super) paused_ms: u64,
    /// When the host starts again, ms.
    pub(super) start_ms: Option<u64>,
    pub(super) life: Option<Life>,
    pub(super) log: MemberLog,
    dice: Dice,
    /// The highest term that an earlier life has synced.
    promised_term: Term,
    /// Bytes of the file have rotted. `log` is then the log that the member has acknowledged, until
    /// a snapshot replaces it.
    pub(super) is_damaged: bool,
    /// The log before the new file. The name of the new file may not be durable yet: a power loss
    /// brings the damaged file back.
    acknowledged: Option<MemberLog>,
    /// The log in the file that installs a peer's snapshot, until the member gets the reply that
    /// the installation has ended.
    installing: Option<MemberLog>,
}

impl MemberHost {
    pub(super) fn new(identity: Identity, disk: SimDisk, seed: u64, clock: Clock) -> MemberHost {
        MemberHost {
            identity,
            disk,
            clock,
            paused_ms: 0,
            start_ms: Some(0),
            life: None,
            log: MemberLog::default(),
            dice: Dice::new(seed),
            promised_term: Term(0),
            is_damaged: false,
            acknowledged: None,
            installing: None,
        }
    }

    /// Starts a life from what the disk holds.
    ///
    /// # Errors
    /// The file lacks something that was synced, or cannot be read.
    pub(super) fn start(&mut self, now_ms: u64) -> Result<(), String> {
        let handle = self.disk.open();
        let Opened {
            recovered,
            judged,
            mut log,
            applied,
            end,
            has_left,
        } = file::open(&handle)?;
        if has_left {
            return Err("the file says that the server has left".to_owned());
        }
        // The process ended after the snapshot was in place and before the member knew it.
        let is_installed = |new: &MemberLog| (new.base, new.base_term) == (log.base, log.base_term);
        if let Some(installed) = self.installing.take().filter(is_installed)
            && !self.is_damaged
        {
            self.log = installed;
        }
        if let Some(repair) = &recovered.repair {
            if let Some(acknowledged) = self.acknowledged.take() {
                self.log = acknowledged;
            }
            let synced = self.log.synced;
            let last = (self.log.term(synced).unwrap_or_default(), synced);
            if !self.is_damaged || repair.last < last {
                return Err(format!(
                    "the file proves entries through {:?}; {last:?} was synced",
                    repair.last
                ));
            }
            // A damaged member has promised nothing apart from these entries.
            log = self.log.clone();
            log.cut(synced);
        } else if self.is_damaged {
            // The process ended after the snapshot was in place.
            let acknowledged = self.log.clone();
            self.acknowledged.get_or_insert(acknowledged);
            self.log.synced = log.base;
        }
        for index in self.log.base.0.max(log.base.0) + 1..=self.log.synced.0 {
            let index = Index(index);
            if log.entry(index) != self.log.entry(index) {
                return Err(format!(
                    "entry {index} was synced as {:?} and is {:?} after a restart; the log ends at {}",
                    self.log.entry(index),
                    log.entry(index),
                    log.last()
                ));
            }
        }
        if recovered.term < self.promised_term {
            return Err(format!(
                "term {} was synced, and the file says {} after a restart",
                self.promised_term, recovered.term
            ));
        }
        log.synced = self.log.synced.max(log.base).min(log.last());
        self.log = log;
        let mut writer = LogWriter::new(self.disk.clone(), handle);
        writer.set_end(end);
        let settings = Settings {
            sid: self.identity.sid,
            name: file::NAME.to_owned(),
            address: self.identity.address.clone(),
            kept: super::kept_entries(&mut self.dice),
        };
        let ballot = (recovered.term, recovered.vote);
        // The first reply reports that everything found in the file is synced.
        let found = Unanswered {
            position: LogPosition::OPENING,
            is_durable: true,
            entries: (self.log.synced.0 + 1..=self.log.last().0)
                .filter_map(|index| Some((Index(index), self.log.term(Index(index))?)))
                .collect(),
            ballot: Some(ballot),
            ballots: vec![ballot],
            accepted: (ballot.0, self.log.last()),
        };
        let reported = recovered.commit;
        let local_ms = self.clock.local(now_ms);
        let mut member = Member::new(settings, recovered, local_ms, self.dice.draw());
        member.set_chunk_bytes(*self.dice.pick(&[8, 30, 1000]));
        let is_quick = self.dice.chance(50);
        let threads = FileThreads::new(writer, is_quick, Dice::new(self.dice.draw()));
        let file = MemberFile::open(threads, self.disk.open(), &judged, local_ms);
        self.life = Some(Life {
            member,
            file,
            registers: Registers::new(self.dice.draw(), applied),
            inbox: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            unanswered: VecDeque::from([found]),
            reported,
            disk_ms: now_ms,
            row: None,
            snapshot: None,
            wants_snapshot: false,
            rewrites: BTreeMap::new(),
            in_place: None,
            installed_ballots: Vec::new(),
            ended: None,
            ballot,
            synced_ballot: (self.promised_term, None),
            accepted: BTreeMap::new(),
            votes: BTreeMap::new(),
        });
        self.start_ms = None;
        Ok(())
    }

    /// Whether this member may truthfully acknowledge the entries up to this index to the leader of
    /// this term.
    ///
    /// An acknowledgement of a term that is over is true if the entries were synced while the term
    /// lasted, even if they have been replaced since: the message could as well have left then and
    /// arrived late. If such replies form a quorum, none of its members had granted a vote of a
    /// later term before it accepted the entry. Every later leader therefore has the entry, and
    /// nothing has replaced it.
    pub(super) fn may_acknowledge(&self, term: Term, index: Index) -> bool {
        let Some(life) = &self.life else {
            return false;
        };
        let is_over = term < life.ballot.0;
        let was_accepted = life.accepted.get(&term).is_some_and(|last| *last >= index);
        index <= self.log.synced || is_over && was_accepted
    }

    /// Whether a vote for this server is synced. The term may be over by now: the message could as
    /// well have left in time and arrived late.
    ///
    /// If a later term is synced, the vote need not be in the file: the member may have voted and
    /// learned of the later term before it wrote anything. Neither this life nor the next can vote
    /// in the earlier term again, so the vote is as good as synced. The oracle checks, over all
    /// lives, that the vote is the only one of its term.
    pub(super) fn has_voted(&self, term: Term, vote: Sid) -> bool {
        let Some(life) = &self.life else {
            return false;
        };
        term < self.synced_term()
            || life.synced_ballot == (term, Some(vote))
            || life.votes.get(&term) == Some(&Some(vote))
    }

    /// The highest term that is synced.
    pub(super) fn synced_term(&self) -> Term {
        let of_life = self.life.as_ref().map(|life| life.synced_ballot.0);
        self.promised_term.max(of_life.unwrap_or_default())
    }

    /// The process ends.
    pub(super) fn end(&mut self) {
        if let Some(life) = self.life.take() {
            self.promised_term = self.promised_term.max(life.synced_ballot.0);
        }
    }

    /// Passes inputs to the member, all of them before its first output is taken. The caller
    /// executes the returned outputs in order.
    pub(super) fn handle(&mut self, now_ms: u64, inputs: Vec<Input>) -> Vec<Output> {
        let local_ms = self.clock.local(now_ms);
        let Some(life) = &mut self.life else {
            return Vec::new();
        };
        if life.ended.is_some() {
            return Vec::new();
        }
        for input in inputs {
            life.member.handle(local_ms, input);
        }
        std::iter::from_fn(|| life.member.next_output())
            .take(OUTPUTS_MAX)
            .collect()
    }

    /// Notes the records of requests. Returns the entries in them.
    ///
    /// # Errors
    /// The records cannot be read, or do not fit the log.
    pub(super) fn note(&mut self, requests: &[StorageRequest]) -> Result<Vec<Written>, String> {
        let mut written = Vec::new();
        for request in requests {
            let Some(life) = &mut self.life else {
                continue;
            };
            if let StorageRequest::Extend(number, records) = request {
                for record in records {
                    let entries = entries(record)?;
                    written.extend(entries.iter().cloned());
                    if let Some(new) = life.rewrites.get_mut(&number.0) {
                        new.entries.extend(entries);
                        note_ballots(record, &mut new.ballots)?;
                    }
                }
            }
            if let StorageRequest::Swap(number) = request
                && let Some(new) = life.rewrites.get(&number.0)
            {
                // Records that follow this request also follow the records of the new file.
                for entry in &new.entries {
                    self.log.merge(entry.index, entry.term, entry.body)?;
                }
                for ballot in &new.ballots {
                    life.ballot = next_ballot(life.ballot, *ballot)?;
                }
            }
            let StorageRequest::Append {
                position,
                record,
                durable,
            } = request
            else {
                continue;
            };
            let mut unanswered = Unanswered {
                position: *position,
                is_durable: *durable,
                entries: Vec::new(),
                ballot: None,
                ballots: Vec::new(),
                accepted: (Term(0), Index(0)),
            };
            for record in file::records(&record.to_slice())? {
                match &record.kind {
                    Kind::Entry(entry) => {
                        let body = hash(corvid_consensus::EntryBody::of(entry).text());
                        if let Some(commit) = Some(life.reported).filter(|at| entry.index <= *at) {
                            return Err(format!(
                                "entry {} is written although {commit} is committed here",
                                entry.index
                            ));
                        }
                        self.log.put(entry.index, entry.term, body)?;
                        unanswered.entries.push((entry.index, entry.term));
                        let before = self.log.term(entry.index.previous());
                        written.push(Written::of(entry, before));
                    }
                    Kind::Term(term) => {
                        life.ballot = next_ballot(life.ballot, (*term, None))?;
                        unanswered.ballots.push(life.ballot);
                    }
                    Kind::Vote { term, vote } => {
                        life.ballot = next_ballot(life.ballot, (*term, Some(*vote)))?;
                        unanswered.ballots.push(life.ballot);
                    }
                    _ => {}
                }
            }
            unanswered.ballot = Some(life.ballot);
            unanswered.accepted = (life.ballot.0, self.log.last());
            life.unanswered.push_back(unanswered);
        }
        Ok(written)
    }

    /// Notes the bytes that a reply of the disk reports as synced. Called before the reply is
    /// delivered.
    pub(super) fn answered(&mut self, reply: &StorageReply) {
        let Some(life) = &mut self.life else {
            return;
        };
        let (position, outcome) = match reply {
            StorageReply::Appended(position, outcome) => (position, outcome),
            StorageReply::Rewrite(number, stage) if number.0 >= INSTALLATIONS => {
                match stage {
                    Ok(RewriteStage::Written) => {}
                    Ok(RewriteStage::InPlace(_)) => {
                        let installed = self.installing.clone().unwrap_or_default();
                        let before = std::mem::replace(&mut self.log, installed);
                        // A power loss may bring the damaged file back, and that file proves only
                        // the old log.
                        if self.is_damaged {
                            self.acknowledged.get_or_insert(before);
                        }
                    }
                    Ok(RewriteStage::Lasting) => {
                        self.installing = None;
                        self.is_damaged = false;
                        self.acknowledged = None;
                        let ballots = std::mem::take(&mut life.installed_ballots);
                        life.ballots_synced(&ballots);
                        life.rewrites.clear();
                        life.in_place = None;
                    }
                    Err(_) => self.installing = None,
                }
                return;
            }
            StorageReply::Rewrite(_, Ok(RewriteStage::Written)) => return,
            StorageReply::Rewrite(number, Ok(RewriteStage::InPlace(_))) => {
                life.in_place = Some(*number);
                if let Some(new) = life.rewrites.get(&number.0) {
                    let (index, term) = new.base;
                    self.log.rebase(index, term, true);
                }
                return;
            }
            StorageReply::Rewrite(number, Ok(RewriteStage::Lasting)) => {
                life.in_place = None;
                if let Some(new) = life.rewrites.remove(&number.0) {
                    self.log.synced_through(&positions(&new.entries));
                    life.ballots_synced(&new.ballots);
                }
                return;
            }
            StorageReply::Rewrite(number, Err(_)) => {
                if life.in_place != Some(*number) {
                    life.rewrites.remove(&number.0);
                }
                return;
            }
        };
        let mut answered = Vec::new();
        while life
            .unanswered
            .front()
            .is_some_and(|first| first.position <= *position)
        {
            answered.extend(life.unanswered.pop_front());
        }
        if outcome.is_err() {
            return;
        }
        let last = answered.iter().rposition(|append| append.is_durable);
        let Some(last) = last else {
            return;
        };
        if let Some(new) = life
            .in_place
            .and_then(|number| life.rewrites.get(&number.0))
        {
            // The first sync of a new file also syncs its name.
            self.log.synced_through(&positions(&new.entries));
            let ballots = new.ballots.clone();
            life.ballots_synced(&ballots);
        }
        // The same holds for the first sync of a file found at the start.
        if self.acknowledged.take().is_some() {
            self.is_damaged = false;
        }
        life.synced_ballot = answered[last].ballot.unwrap_or(life.synced_ballot);
        for append in &answered[..=last] {
            self.log.synced_through(&append.entries);
            let (term, through) = append.accepted;
            let known = life.accepted.entry(term).or_default();
            *known = through.max(*known);
            for (term, vote) in &append.ballots {
                life.votes.insert(*term, *vote);
            }
        }
    }

    /// Handles a reply of the disk. Returns the inputs for the member, in order.
    pub(super) fn receive(&mut self, now_ms: u64, reply: StorageReply) -> Vec<Input> {
        self.answered(&reply);
        let is_own =
            !matches!(&reply, StorageReply::Rewrite(number, _) if number.0 >= INSTALLATIONS);
        let local_ms = self.clock.local(now_ms);
        let Some(life) = &mut self.life else {
            return Vec::new();
        };
        let Consequences { inputs, .. } = life.file.receive(local_ms, reply);
        // Requests that waited for a swap may be answered at once.
        for input in inputs.iter().skip(usize::from(is_own)) {
            if let Input::Storage(reply) = input {
                self.answered(reply);
            }
        }
        inputs
    }

    /// Begins to write a new file with the database's snapshot. Returns the entries of the file.
    ///
    /// # Errors
    /// The snapshot does not exist, or the records cannot be read.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite) -> Result<Vec<Written>, String> {
        let life = self.life.as_mut().ok_or("it is down")?;
        if life.snapshot.take() != Some(rewrite.index) {
            return Err(format!("there is no snapshot through {}", rewrite.index));
        }
        let written = entries(&rewrite.records)?;
        let mut ballots = Vec::new();
        note_ballots(&rewrite.records, &mut ballots)?;
        let new = NewLog {
            entries: written.clone(),
            base: (rewrite.index, rewrite.term),
            ballots,
        };
        life.rewrites.insert(rewrite.number.0, new);
        let replies = life.file.rewrite(rewrite);
        life.replies.extend(replies);
        Ok(written)
    }

    /// Begins to replace the file by a received snapshot. Returns inputs that the member gets at
    /// once.
    ///
    /// # Errors
    /// The records cannot be read.
    pub(super) fn install(
        &mut self,
        now_ms: u64,
        meta: SnapshotMeta,
        records: Vec<u8>,
    ) -> Result<Vec<Input>, String> {
        let local_ms = self.clock.local(now_ms);
        let life = self.life.as_mut().ok_or("it is down")?;
        let mut log = MemberLog {
            base: meta.index,
            base_term: meta.term,
            entries: Vec::new(),
            synced: meta.index,
        };
        for entry in entries(&records)? {
            log.put(entry.index, entry.term, entry.body)?;
            log.synced = entry.index;
        }
        let mut ballots = Vec::new();
        note_ballots(&records, &mut ballots)?;
        for ballot in &ballots {
            life.ballot = next_ballot(life.ballot, *ballot)?;
        }
        life.installed_ballots = ballots;
        let cid = self.identity.cid;
        let Consequences { inputs, .. } = life.file.install_snapshot(local_ms, meta, cid, records);
        let has_failed = |input: &Input| matches!(input, Input::SnapshotInstalled { .. });
        self.installing = (!inputs.iter().any(has_failed)).then_some(log);
        Ok(inputs)
    }
}

/// Returns the entries in these records.
fn entries(records: &[u8]) -> Result<Vec<Written>, String> {
    let records = file::records(records)?;
    let entries = records.iter().filter_map(|record| match &record.kind {
        Kind::Entry(entry) => Some(Written::of(entry, None)),
        _ => None,
    });
    Ok(entries.collect())
}

fn positions(entries: &[Written]) -> Vec<(Index, Term)> {
    entries
        .iter()
        .map(|entry| (entry.index, entry.term))
        .collect()
}
