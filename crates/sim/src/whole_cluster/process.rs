//! One life of a server's process: shards and databases ([`Machine`]), the member with its connections and its file, the thread that loads
//! installed snapshots, and the main thread as far as a member concerns it.
//!
//! The member's turn is that of the server's `member/thread.rs`: what has arrived on sockets, then messages of other threads, then time; then
//! all outputs in order; then events to the database, and bytes to the sockets. Invariant: messages between two threads stay in order; which
//! thread acts next is drawn by the caller, who also sees everything that happens ([`Observed`]).

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_consensus::member::{Command, CommandToken, ServerRow};
use corvid_consensus::{
    Committed, Finding, Input, Member, MemberEvent, MemberRequest, Output, PeerMessage, Peers,
    PeersOutput, PeersSettings, Recovered as MemberState, Settings,
};
use corvid_log::cluster::{Cid, Eid, Index, Recovered, Sid, Term};
use corvid_log::storage::StorageReply;
use corvid_log::{DiskFile as _, LogWriter};
use corvid_service::Now;
use corvid_service::member::file::Consequences;
use corvid_service::member::{Contents, DatabaseQueue};
use corvid_service::message::{Control, InstalledSnapshot, ToDatabase};

use super::member_file::{FileThreads, Load, MemberFile};
use super::opening;
use super::wires::{Arrival, Wires};
use crate::dice::Dice;
use crate::server::disk::{Handle, SimDisk};
use crate::server::machine::{Choice, Machine};
use crate::server::trace::Trace;

/// Bytes of one message of another member, at most.
const MESSAGE_BYTES_MAX: usize = 1 << 26;
/// Outputs of one turn, at most: one that has more never comes to rest.
const OUTPUTS_MAX: usize = 50_000;

/// A message to the member's thread.
enum Mail {
    Request(MemberRequest),
    Storage(StorageReply),
    Command(CommandToken, Command),
    SnapshotChecked(Sid, Index, Result<bool, String>),
    Loaded(Index, Contents),
    Served(Index),
}

/// An event for the main thread.
enum ToMain {
    RowChanged,
    Joined(Contents),
}

/// A step that is possible next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A turn of the member's thread.
    Member,
    /// A shard, a database, or what belongs to them.
    Machine(Choice),
    /// The disk thread acts.
    Disk,
    /// The rewrite thread acts.
    Rewrite,
    /// A snapshot is checked before a peer gets it.
    Check,
    /// The contents of an installed snapshot are loaded.
    Load,
    /// The main thread handles an event.
    Main,
}

/// Something that has happened and concerns the rules of the cluster.
#[derive(Debug)]
pub(super) enum Observed {
    /// The database has proposed an entry.
    Proposed(Eid, Bytes),
    /// The member reports entries as committed.
    Committed {
        through: Index,
        term: Term,
        entries: Vec<Committed>,
    },
    /// The member's file has been replaced by a snapshot through this entry.
    Replaced(Index),
    /// The database has applied everything through this entry.
    Applied(Index),
    /// The database is told that it leads.
    Leads(Term),
    /// The database is told whether entries are part of the snapshot that it has installed.
    Found(Vec<(Eid, Finding)>),
    /// A command is done.
    CommandDone(CommandToken, Result<String, String>),
    /// The member cannot go on.
    Failed(String),
    /// A vote leaves the member, for itself or another one.
    Voted(Term, Sid),
    /// The file has grown so much that it is to be written again.
    Grown,
    /// The member refuses a message.
    Refused(Sid, String),
    /// A joining server has learned its cluster.
    LearnedCluster(Cid),
    /// The server has left its cluster.
    Left,
}

/// See the module.
pub(super) struct Process {
    pub(super) member: Member,
    pub(super) peers: Peers,
    pub(super) file: MemberFile,
    /// `None` until the server has joined its cluster.
    pub(super) machine: Option<Machine>,
    disk: SimDisk,
    host: usize,
    sid: Sid,
    dice: Dice,
    trace: Trace,
    mail: VecDeque<Mail>,
    main: VecDeque<ToMain>,
    to_database: DatabaseQueue<Contents>,
    /// The database was told that it leads, and has not handled the news of its end.
    is_told_to_lead: bool,
    may_be_ahead: bool,
    /// The newest row for `_Server`.
    pub(super) row: Option<ServerRow>,
    is_row_shown: bool,
    /// The disk thread works until then, in the time of all.
    pub(super) disk_ms: u64,
    pub(super) has_left: bool,
    /// A snapshot in its file has been checked, and may be sent without another look.
    pub(super) has_checked: bool,
    pub(super) observed: Vec<Observed>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

/// The beginning of a process.
pub(super) struct Start {
    pub(super) host: usize,
    pub(super) disk: SimDisk,
    pub(super) file: Handle,
    pub(super) recovered: Recovered,
    pub(super) contents: Option<Contents>,
    pub(super) now: Now,
    pub(super) seed: u64,
    pub(super) trace: Trace,
}

impl Process {
    /// Starts a process on an opened file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn start(start: Start) -> Result<Process, String> {
        let Start {
            host,
            disk,
            file,
            recovered,
            contents,
            now,
            seed,
            trace,
        } = start;
        let mut dice = Dice::new(seed);
        let sid = recovered.server_id;
        let kept = crate::cluster::kept_entries(&mut dice);
        let settings = Settings::of_file(&recovered, kept);
        let peers = Peers::new(PeersSettings::of_file(&recovered, MESSAGE_BYTES_MAX));
        let row = ServerRow::of_file(&recovered);
        let machine = contents.map(|contents| {
            let applied = (contents.applied, contents.eid);
            Machine::start_clustered(
                now,
                dice.draw(),
                &disk,
                contents.database,
                applied,
                row.clone(),
            )
        });
        let handle = file.share().map_err(|fault| fault.text)?;
        let mut writer = LogWriter::new(disk.clone(), file);
        writer.set_end(recovered.good_end);
        let threads = FileThreads::new(writer, dice.chance(50), Dice::new(dice.draw()));
        let file = MemberFile::open(threads, handle, &recovered, now.mono_ms);
        let state = MemberState::of_file(recovered).map_err(|error| error.to_string())?;
        let mut member = Member::new(settings, state, now.mono_ms, dice.draw());
        member.set_chunk_bytes(*dice.pick(&[100, 1000, 1 << 20]));
        Ok(Process {
            member,
            peers,
            file,
            to_database: DatabaseQueue::new(machine.is_some()),
            machine,
            disk,
            host,
            sid,
            dice,
            trace,
            mail: VecDeque::new(),
            main: VecDeque::new(),
            is_told_to_lead: false,
            may_be_ahead: false,
            row: Some(row),
            is_row_shown: true,
            disk_ms: 0,
            has_left: false,
            has_checked: false,
            observed: Vec::new(),
        })
    }

    /// An operator's command.
    pub(super) fn command(&mut self, token: CommandToken, command: Command) {
        self.mail.push_back(Mail::Command(token, command));
    }

    /// Whether the database may have executed more than is committed.
    pub(super) fn may_be_ahead(&mut self) -> bool {
        let has_handled = self
            .machine
            .as_ref()
            .is_some_and(Machine::has_handled_inputs);
        if has_handled && !self.is_told_to_lead {
            self.may_be_ahead = false;
        }
        self.may_be_ahead
    }

    /// Messages and events that wait.
    pub(super) fn queued(&self) -> usize {
        let machine = self.machine.as_ref().map_or(0, Machine::queued);
        self.mail.len() + self.to_database.queued() + machine
    }

    /// Whether the database waits for a snapshot to be loaded.
    pub(super) fn is_loading(&self) -> bool {
        self.machine.is_none() || self.to_database.is_loading()
    }

    /// The next moment at which something happens without input, by the process's clock.
    pub(super) fn deadline_ms(&self, now: Now) -> u64 {
        let machine = self.machine.as_ref();
        let machine = machine.and_then(|machine| machine.next_deadline_ms(now));
        let peers = self.peers.deadline_ms(now.mono_ms);
        let file = self.growth_deadline_ms(now.mono_ms);
        let deadlines = [Some(self.member.deadline_ms()), machine, peers, file];
        deadlines.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// When the growth of the file is looked at.
    fn growth_deadline_ms(&self, local_ms: u64) -> Option<u64> {
        self.machine.as_ref()?;
        self.file.deadline_ms(local_ms)
    }

    /// All steps that are possible now.
    pub(super) fn steps(&self, now: Now, now_ms: u64, wires: &Wires) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.has_left {
            return steps;
        }
        let peers = self.peers.deadline_ms(now.mono_ms);
        let is_due = self.member.deadline_ms() <= now.mono_ms
            || peers.is_some_and(|at_ms| at_ms <= now.mono_ms)
            || self
                .growth_deadline_ms(now.mono_ms)
                .is_some_and(|at_ms| at_ms <= now.mono_ms);
        if is_due
            || !self.mail.is_empty()
            || self.machine.is_some() && self.to_database.is_ready()
            || wires.has_arrived(self.host)
            || wires.can_flush(self.host)
        {
            steps.push(Step::Member);
        }
        if let Some(machine) = &self.machine {
            steps.extend(machine.choices(now).into_iter().map(Step::Machine));
        }
        let threads = self.file.effects();
        if threads.disk_has_work() && self.disk_ms <= now_ms {
            steps.push(Step::Disk);
        }
        if threads.rewrite_has_work() {
            steps.push(Step::Rewrite);
        }
        if threads.has_check() {
            steps.push(Step::Check);
        }
        if threads.has_load() {
            steps.push(Step::Load);
        }
        if !self.main.is_empty() {
            steps.push(Step::Main);
        }
        steps
    }

    /// Takes a step.
    ///
    /// # Errors
    /// A part breaks its contract.
    pub(super) fn act(
        &mut self,
        step: Step,
        now: Now,
        now_ms: u64,
        wires: &mut Wires,
    ) -> Result<(), String> {
        match step {
            Step::Member => self.turn(now, now_ms, wires)?,
            Step::Machine(choice) => {
                if let Some(machine) = &mut self.machine {
                    machine.act(now, choice, &mut self.dice);
                }
                self.collect_requests();
            }
            Step::Disk => {
                let replies = self.file.effects_mut().work_on_disk(&mut self.dice);
                self.mail.extend(replies.into_iter().map(Mail::Storage));
            }
            Step::Rewrite => {
                let reply = self.file.effects_mut().work_on_rewrite();
                self.mail.extend(reply.map(Mail::Storage));
            }
            Step::Check => {
                self.has_checked = true;
                let (to, index, outcome) = self.file.effects_mut().check();
                self.mail
                    .push_back(Mail::SnapshotChecked(to, index, outcome));
            }
            Step::Load => self.load()?,
            Step::Main => self.main_event(now),
        }
        Ok(())
    }

    /// The requests of the database go to the member.
    fn collect_requests(&mut self) {
        let Some(machine) = &mut self.machine else {
            return;
        };
        for request in machine.to_member.drain(..) {
            match &request {
                MemberRequest::Applied(index) => self.observed.push(Observed::Applied(*index)),
                MemberRequest::Propose { proposals, .. } => {
                    let proposals = proposals.iter();
                    self.observed.extend(
                        proposals.map(|proposal| {
                            Observed::Proposed(proposal.eid, proposal.data.clone())
                        }),
                    );
                }
                _ => {}
            }
            self.mail.push_back(Mail::Request(request));
        }
    }

    /// One of the threads that load contents.
    fn load(&mut self) -> Result<(), String> {
        let Load { index, eid, source } = self.file.effects_mut().take_load();
        let (file, body) =
            source.map_err(|problem| format!("snapshot {index} cannot be loaded: {problem}"))?;
        let database = opening::load_body(&file, body, &[], self.dice.draw());
        let database =
            database.map_err(|error| format!("snapshot {index} does not load: {error}"))?;
        let contents = Contents {
            database,
            applied: index,
            eid,
        };
        self.mail.push_back(Mail::Loaded(index, contents));
        Ok(())
    }

    fn main_event(&mut self, now: Now) {
        match self.main.pop_front() {
            Some(ToMain::RowChanged) => {
                if let (Some(machine), Some(row)) = (&mut self.machine, &self.row) {
                    machine.show_member(row);
                }
                self.is_row_shown = true;
            }
            Some(ToMain::Joined(contents)) => {
                let applied = (contents.applied, contents.eid);
                let seed = self.dice.draw();
                let Some(row) = self.row.clone() else {
                    return;
                };
                let machine = Machine::start_clustered(
                    now,
                    seed,
                    &self.disk,
                    contents.database,
                    applied,
                    row,
                );
                self.machine = Some(machine);
                self.mail.push_back(Mail::Served(applied.0));
            }
            None => {}
        }
    }

    fn turn(&mut self, now: Now, now_ms: u64, wires: &mut Wires) -> Result<(), String> {
        let local_ms = now.mono_ms;
        for arrival in wires.take(self.host) {
            self.arrive(local_ms, arrival, wires);
        }
        self.carry_out(local_ms, now_ms, wires)?;
        for mail in std::mem::take(&mut self.mail) {
            self.receive(local_ms, mail);
        }
        self.carry_out(local_ms, now_ms, wires)?;
        self.peers.time(local_ms);
        if self.machine.is_some() && self.file.is_compaction_due(local_ms) {
            self.observed.push(Observed::Grown);
            self.make_snapshot();
        }
        if self.member.deadline_ms() <= local_ms {
            self.member.handle(local_ms, Input::Time);
        }
        self.carry_out(local_ms, now_ms, wires)?;
        for (number, bytes) in wires.flush(now_ms, self.host) {
            self.peers.written(local_ms, number, bytes);
        }
        self.carry_out(local_ms, now_ms, wires)?;
        self.post_to_database();
        Ok(())
    }

    fn arrive(&mut self, local_ms: u64, arrival: Arrival, wires: &mut Wires) {
        match arrival {
            Arrival::Incoming(end) => {
                let number = self.peers.accepted(local_ms, "tcp:10.0.0.9:41514");
                wires.accept(end, number);
            }
            Arrival::Connected(number) => self.peers.connected(local_ms, number),
            Arrival::Bytes(end, bytes) => {
                if let Some(number) = wires.number(end) {
                    self.peers.received(local_ms, number, &bytes);
                }
            }
            Arrival::Ended(end, how) => {
                if let Some(number) = wires.number(end) {
                    wires.ended(end);
                    self.peers.closed(local_ms, number, how);
                }
            }
            Arrival::Refused(number, how) => self.peers.refused(local_ms, number, how),
        }
    }

    fn post_to_database(&mut self) {
        if let Some(machine) = &mut self.machine {
            for message in self.to_database.ready().drain(..) {
                match &message {
                    ToDatabase::Member(MemberEvent::Leads { .. }) => {
                        (self.is_told_to_lead, self.may_be_ahead) = (true, true);
                    }
                    ToDatabase::Member(MemberEvent::Follows { .. }) => self.is_told_to_lead = false,
                    _ => {}
                }
                machine.member(message);
            }
        }
    }

    fn receive(&mut self, local_ms: u64, mail: Mail) {
        match mail {
            Mail::Request(MemberRequest::Snapshot {
                token,
                index,
                eid,
                snapshot,
            }) => match self.file.keep_snapshot(token, snapshot) {
                Ok(()) => self
                    .member
                    .handle(local_ms, Input::SnapshotMade { index, eid }),
                Err(event) => self.to_database.push(ToDatabase::Member(event)),
            },
            Mail::Request(request) => self.member.handle(local_ms, Input::Database(request)),
            Mail::Storage(reply) => {
                let consequences = self.file.receive(local_ms, reply);
                self.carry_on(local_ms, consequences);
            }
            Mail::Command(token, command) => {
                self.member
                    .handle(local_ms, Input::Command { token, command });
            }
            Mail::SnapshotChecked(to, index, outcome) => {
                let (input, is_damaged) = self.file.snapshot_checked(local_ms, to, index, outcome);
                if is_damaged {
                    self.member.handle(local_ms, Input::FileDamaged);
                }
                self.member.handle(local_ms, input);
            }
            Mail::Loaded(index, contents) => self.loaded(index, contents),
            Mail::Served(index) => {
                let applied = MemberRequest::Applied(index);
                self.member.handle(local_ms, Input::Database(applied));
            }
        }
    }

    fn loaded(&mut self, index: Index, contents: Contents) {
        let installed = |contents: Contents, term| {
            ToDatabase::Installed(Box::new(InstalledSnapshot {
                database: contents.database,
                index: contents.applied,
                term,
                eid: contents.eid,
            }))
        };
        let first = self.to_database.loaded(index, Some(contents), installed);
        self.main.extend(first.map(ToMain::Joined));
    }

    fn carry_on(&mut self, local_ms: u64, consequences: Consequences) {
        for input in consequences.inputs {
            self.member.handle(local_ms, input);
        }
        if let Some(event) = consequences.event {
            self.to_database.push(ToDatabase::Member(event));
        }
    }

    fn make_snapshot(&mut self) {
        let compact = ToDatabase::Control(Control::Compact(None));
        self.to_database.push(compact);
    }

    /// Carries out the outputs of both machines until there are none, or the machine goes down.
    fn carry_out(&mut self, local_ms: u64, now_ms: u64, wires: &mut Wires) -> Result<(), String> {
        for _ in 0..OUTPUTS_MAX {
            if self.disk.is_down() {
                return Ok(());
            }
            if let Some(output) = self.member.next_output() {
                self.carry_out_of_member(local_ms, output);
            } else if let Some(output) = self.peers.next_output() {
                self.carry_out_of_peers(local_ms, now_ms, output, wires);
            } else {
                return Ok(());
            }
        }
        Err(format!("host {} has outputs without end", self.host))
    }

    fn carry_out_of_member(&mut self, local_ms: u64, output: Output) {
        let host = self.host;
        if !matches!(output, Output::Store(_)) {
            self.trace
                .detail(|| format!("{local_ms} member {host} -> {output:?}"));
        }
        match output {
            Output::Store(requests) => {
                for reply in self.file.store(requests) {
                    let consequences = self.file.receive(local_ms, reply);
                    self.carry_on(local_ms, consequences);
                }
            }
            Output::Send { to, message } => {
                let vote = match &message {
                    PeerMessage::VoteReply {
                        term,
                        is_prevote: false,
                        is_granted: true,
                        ..
                    } => Some((*term, to)),
                    PeerMessage::Vote {
                        term,
                        is_prevote: false,
                        ..
                    } => Some((*term, self.sid)),
                    _ => None,
                };
                self.observed
                    .extend(vote.map(|(term, vote)| Observed::Voted(term, vote)));
                self.peers.send(local_ms, to, &message);
            }
            Output::Database(MemberEvent::Replaced { index, term, eid }) => {
                self.observed.push(Observed::Replaced(index));
                self.to_database.begin_load(index, term);
                self.file.load_snapshot(index, eid);
            }
            Output::Database(event) => {
                match &event {
                    MemberEvent::Committed {
                        through,
                        term,
                        entries,
                    } => self.observed.push(Observed::Committed {
                        through: *through,
                        term: *term,
                        entries: entries.clone(),
                    }),
                    MemberEvent::Leads { term } => self.observed.push(Observed::Leads(*term)),
                    MemberEvent::Found { findings, .. } => {
                        self.observed.push(Observed::Found(findings.clone()));
                    }
                    _ => {}
                }
                self.to_database.push(ToDatabase::Member(event));
            }
            Output::Dial(targets) => self.peers.set_targets(local_ms, &targets),
            Output::Refuse { from, reason } => {
                self.observed.push(Observed::Refused(from, reason.clone()));
                self.peers.refuse(local_ms, from, &reason);
            }
            Output::ElectionTimer(timer_ms) => self.peers.set_election_timer(timer_ms),
            Output::Row(row) => {
                self.row = Some(row);
                if std::mem::replace(&mut self.is_row_shown, false) {
                    self.main.push_back(ToMain::RowChanged);
                }
            }
            Output::CommandDone(token, outcome) => {
                self.observed.push(Observed::CommandDone(token, outcome));
            }
            Output::Log(level, _, text) => self
                .trace
                .line(format_args!("{local_ms} host {host}: {level:?}: {text}")),
            Output::ReadSnapshot {
                to,
                index,
                offset,
                bytes_max,
            } => {
                // The first request asks for no bytes, but how many there are.
                if bytes_max == 0 && self.file.check_snapshot(local_ms, to, index) {
                    return;
                }
                let bytes = self.file.read_snapshot(index, offset, bytes_max);
                let input = Input::SnapshotRead {
                    to,
                    index,
                    offset,
                    bytes,
                };
                self.member.handle(local_ms, input);
            }
            Output::BeginSnapshot(meta) => self.file.begin_snapshot(meta),
            Output::WriteSnapshot {
                index,
                offset,
                bytes,
            } => {
                let end = self.file.write_snapshot(index, offset, &bytes);
                self.member
                    .handle(local_ms, Input::SnapshotWritten { index, end });
            }
            Output::AbandonSnapshot => self.file.abandon_snapshot(),
            Output::InstallSnapshot {
                snapshot,
                cid,
                records,
            } => {
                let consequences = self.file.install_snapshot(local_ms, snapshot, cid, records);
                self.carry_on(local_ms, consequences);
            }
            Output::MakeSnapshot => self.make_snapshot(),
            Output::Rewrite(rewrite) => {
                for reply in self.file.rewrite(*rewrite) {
                    let consequences = self.file.receive(local_ms, reply);
                    self.carry_on(local_ms, consequences);
                }
            }
            Output::RejectSnapshot => {
                let status = self.member.status(local_ms);
                let compacted = self.file.reject_snapshot(&status.connected);
                if let Some(compacted) = compacted {
                    self.to_database.push(ToDatabase::Member(compacted));
                }
            }
            Output::Left => {
                self.has_left = true;
                self.observed.push(Observed::Left);
            }
            Output::Failed(reason) => self.observed.push(Observed::Failed(reason)),
        }
    }

    fn carry_out_of_peers(
        &mut self,
        local_ms: u64,
        now_ms: u64,
        output: PeersOutput,
        wires: &mut Wires,
    ) {
        let host = self.host;
        if !matches!(output, PeersOutput::Write { .. }) {
            self.trace
                .detail(|| format!("{local_ms} peers {host} -> {output:?}"));
        }
        match output {
            PeersOutput::Dial { number, address } => wires.dial(now_ms, host, number, &address),
            PeersOutput::Write { number, bytes } => wires.write(host, number, bytes),
            PeersOutput::Close { number } => wires.close(now_ms, host, number),
            PeersOutput::PeerUp(sid) => self.member.handle(local_ms, Input::PeerUp(sid)),
            PeersOutput::PeerDown(sid) => self.member.handle(local_ms, Input::PeerDown(sid)),
            PeersOutput::PeerRefused(sid) => {
                self.member.handle(local_ms, Input::PeerRefused(sid));
            }
            PeersOutput::Message { from, message } => {
                self.member.handle(local_ms, Input::Peer { from, message });
            }
            PeersOutput::LearnedCluster(cid) => {
                self.observed.push(Observed::LearnedCluster(cid));
                self.member.handle(local_ms, Input::LearnedCluster(cid));
            }
            PeersOutput::Log { level, text } => self
                .trace
                .line(format_args!("{local_ms} host {host}: {level:?}: {text}")),
        }
    }
}
