//! One life of a server's process: shards and databases ([`Machine`]), the member with its
//! connections and its file, the thread that loads installed snapshots, and the main thread's work
//! for a member.
//!
//! [`MemberPump`] decides the turns of the member's thread, as in the server; [`super::turn`] has
//! their effects. Invariant: messages between two threads stay in order. The caller draws which
//! thread acts next, and sees everything that happens ([`Observed`]).

use std::collections::VecDeque;

use bytes::Bytes;
use corvid_consensus::member::{Command, CommandToken, ServerRow};
use corvid_consensus::{
    Committed, Finding, Member, MemberRequest, Peers, PeersSettings, Recovered as MemberState,
    Settings,
};
use corvid_log::cluster::{Cid, Eid, Index, Recovered, Sid, Term};
use corvid_log::storage::{StorageReply, StoreError};
use corvid_log::{DiskFile as _, LogWriter};
use corvid_service::Now;
use corvid_service::member::{Contents, MemberPump, ReceptionNumber};
use corvid_service::storage::member_loading::LoadedMember;

use super::opening;
use super::turn::Turn;
use crate::server::machine::{Choice, Machine};
use crate::world::dice::Dice;
use crate::world::disk::{Handle, SimDisk};
use crate::world::member_file::{FileThreads, Load, MemberFile};
use crate::world::network::wires::Wires;
use crate::world::trace::Trace;

/// Maximum length of a message from another member, bytes.
const MESSAGE_BYTES_MAX: usize = 1 << 26;

/// A message to the member's thread.
pub(super) enum Mail {
    Request(MemberRequest),
    Storage(StorageReply),
    Command(CommandToken, Command),
    SnapshotChecked(Sid, Index, Result<bool, String>),
    WrittenBack(ReceptionNumber, Result<(), StoreError>),
    Loaded(Index, Contents),
    Served(Index),
}

/// An event for the main thread.
pub(super) enum ToMain {
    RowChanged,
    Joined(Contents),
}

/// A step that can be taken next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A turn of the member's thread.
    Member,
    /// A shard, a database, or one of their threads acts.
    Machine(Choice),
    /// The disk thread acts.
    Disk,
    /// The rewrite thread acts.
    Rewrite,
    /// A snapshot is checked before it is sent to a peer.
    Check,
    /// A part of a received body reaches the disk.
    WriteBack,
    /// The contents of an installed snapshot are loaded.
    Load,
    /// The main thread handles an event.
    Main,
}

/// An event that concerns the rules of the cluster.
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
    /// The member's file has been replaced by a snapshot up to this entry.
    Replaced(Index),
    /// The database has applied all entries up to this one.
    Applied(Index),
    /// The database is told that it leads.
    Leads(Term),
    /// The database is told whether entries are part of the snapshot that it has installed.
    Found(Vec<(Eid, Finding)>),
    /// A command is done.
    CommandDone(CommandToken, Result<String, String>),
    /// The member cannot continue.
    Failed(String),
    /// A vote leaves the member, for itself or for another server.
    Voted(Term, Sid),
    /// The file has grown so much that it is due to be rewritten.
    Grown,
    /// The member refuses a message.
    Refused(Sid, String),
    /// A joining server has learned its cluster.
    LearnedCluster(Cid),
    /// The server has left its cluster.
    Left,
    /// From now on `_Server` shows this row.
    Shown(ServerRow),
}

/// The leadership as the database knows it.
#[derive(Debug, Default)]
pub(super) struct Leading {
    /// The database was told that it leads, and not yet that its leadership has ended.
    is_told: bool,
    may_be_ahead: bool,
    /// When the member lost its leader, ms, if `connected` does not show it: that stays true until
    /// two elections have passed.
    lost_leader_ms: Option<u64>,
}

impl Leading {
    /// The database is told that it leads.
    pub(super) fn begins(&mut self) {
        (self.is_told, self.may_be_ahead) = (true, true);
    }

    /// The database is told that its leadership has ended.
    pub(super) fn ends(&mut self) {
        self.is_told = false;
    }

    /// The member does not hear its leader, and shows that it is connected.
    pub(super) fn loses_leader(&mut self, now_ms: u64) {
        self.lost_leader_ms = Some(now_ms);
    }

    /// The member shows that it is not connected. When it is again, it has caught up.
    pub(super) fn shows_loss(&mut self) {
        self.lost_leader_ms = None;
    }

    /// Whether the member has lost its leader since this time, ms, without showing it.
    pub(super) fn has_lost_leader(&self, since_ms: u64) -> bool {
        self.lost_leader_ms
            .is_some_and(|lost_ms| lost_ms >= since_ms)
    }
}

/// One life of a server's process.
pub(super) struct Process {
    pub(super) pump: MemberPump<FileThreads>,
    /// `None` until the server has joined its cluster.
    pub(super) machine: Option<Machine>,
    disk: SimDisk,
    host: usize,
    sid: Sid,
    dice: Dice,
    trace: Trace,
    mail: VecDeque<Mail>,
    main: VecDeque<ToMain>,
    pub(super) leading: Leading,
    /// The newest row for `_Server`.
    pub(super) row: Option<ServerRow>,
    is_row_shown: bool,
    /// The disk thread is busy until this global time, ms.
    pub(super) disk_ms: u64,
    pub(super) has_left: bool,
    /// A snapshot in the file has been checked, and may be sent without another check.
    pub(super) has_checked: bool,
    /// All entries up to this one were committed when the process began.
    pub(super) owed: Index,
    /// The row in `_Server` says that the server is connected.
    pub(super) is_shown_connected: bool,
    pub(super) observed: Vec<Observed>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

/// The state with which a process begins.
pub(super) struct Start {
    pub(super) host: usize,
    pub(super) disk: SimDisk,
    pub(super) file: Handle,
    pub(super) recovered: Recovered,
    pub(super) contents: Option<Contents>,
    /// All entries up to this one are committed.
    pub(super) owed: Index,
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
            owed,
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
            Machine::start_clustered(now, dice.draw(), &disk, contents, row.clone())
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
            pump: MemberPump::new(member, peers, file, machine.is_some()),
            machine,
            disk,
            host,
            sid,
            dice,
            trace,
            mail: VecDeque::new(),
            main: VecDeque::new(),
            leading: Leading::default(),
            row: Some(row),
            is_row_shown: true,
            disk_ms: 0,
            has_left: false,
            has_checked: false,
            owed,
            is_shown_connected: false,
            observed: Vec::new(),
        })
    }

    /// Passes an operator's command to the member.
    pub(super) fn command(&mut self, token: CommandToken, command: Command) {
        self.mail.push_back(Mail::Command(token, command));
    }

    /// Whether the database may have executed more than is committed.
    pub(super) fn may_be_ahead(&mut self) -> bool {
        let has_handled = self
            .machine
            .as_ref()
            .is_some_and(Machine::has_handled_inputs);
        if has_handled && !self.leading.is_told {
            self.leading.may_be_ahead = false;
        }
        self.leading.may_be_ahead
    }

    /// Number of messages and events that wait.
    pub(super) fn queued(&self) -> usize {
        let machine = self.machine.as_ref().map_or(0, Machine::queued);
        self.mail.len() + self.pump.queued_events() + machine
    }

    /// Whether the database waits for a snapshot to be loaded.
    pub(super) fn is_loading(&self) -> bool {
        self.machine.is_none() || self.pump.is_loading()
    }

    /// Returns the next time at which something happens without input, by the process's clock, ms.
    pub(super) fn deadline_ms(&self, now: Now) -> u64 {
        let machine = self.machine.as_ref();
        let machine = machine.and_then(|machine| machine.next_deadline_ms(now));
        let member = self.pump.deadline_ms(now.mono_ms, self.machine.is_some());
        machine.map_or(member, |at_ms| at_ms.min(member))
    }

    /// Returns all steps that can be taken now.
    pub(super) fn steps(&self, now: Now, now_ms: u64, wires: &Wires) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.has_left {
            return steps;
        }
        let deadline_ms = self.pump.deadline_ms(now.mono_ms, self.machine.is_some());
        if deadline_ms <= now.mono_ms
            || !self.mail.is_empty()
            || self.machine.is_some() && self.pump.has_events()
            || wires.has_arrived(self.host)
            || wires.can_flush(self.host)
        {
            steps.push(Step::Member);
        }
        if let Some(machine) = &self.machine {
            steps.extend(machine.choices(now).into_iter().map(Step::Machine));
        }
        let threads = self.pump.file.effects();
        if threads.disk_has_work() && self.disk_ms <= now_ms {
            steps.push(Step::Disk);
        }
        if threads.rewrite_has_work() {
            steps.push(Step::Rewrite);
        }
        if threads.has_check() {
            steps.push(Step::Check);
        }
        if threads.has_part() {
            steps.push(Step::WriteBack);
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
                let replies = self.pump.file.effects_mut().work_on_disk(&mut self.dice);
                self.mail.extend(replies.into_iter().map(Mail::Storage));
            }
            Step::Rewrite => {
                let reply = self.pump.file.effects_mut().work_on_rewrite();
                self.mail.extend(reply.map(Mail::Storage));
            }
            Step::Check => {
                self.has_checked = true;
                let (to, index, outcome) = self.pump.file.effects_mut().check();
                self.mail
                    .push_back(Mail::SnapshotChecked(to, index, outcome));
            }
            Step::WriteBack => {
                let (reception, outcome) = self.pump.file.effects_mut().take_part();
                self.mail.push_back(Mail::WrittenBack(reception, outcome));
            }
            Step::Load => self.load()?,
            Step::Main => self.main_event(now),
        }
        Ok(())
    }

    /// Passes the requests of the database to the member.
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

    /// Loads the contents of an installed snapshot, as one of the loading threads does.
    fn load(&mut self) -> Result<(), String> {
        let Load { index, eid, source } = self.pump.file.effects_mut().take_load();
        let (file, body) =
            source.map_err(|problem| format!("snapshot {index} cannot be loaded: {problem}"))?;
        let loaded = opening::load_body(&file, body, &[], self.dice.draw());
        let LoadedMember { database, recorded } =
            loaded.map_err(|error| format!("snapshot {index} does not load: {error}"))?;
        let contents = Contents {
            database,
            applied: index,
            eid,
            recorded: recorded.through(eid),
        };
        self.mail.push_back(Mail::Loaded(index, contents));
        Ok(())
    }

    fn main_event(&mut self, now: Now) {
        match self.main.pop_front() {
            Some(ToMain::RowChanged) => {
                if let (Some(machine), Some(row)) = (&mut self.machine, &self.row) {
                    machine.show_member(row);
                    self.observed.push(Observed::Shown(row.clone()));
                }
                self.is_row_shown = true;
            }
            Some(ToMain::Joined(contents)) => {
                let applied = contents.applied;
                let seed = self.dice.draw();
                let Some(row) = self.row.clone() else {
                    return;
                };
                let machine = Machine::start_clustered(now, seed, &self.disk, contents, row);
                self.machine = Some(machine);
                self.mail.push_back(Mail::Served(applied));
            }
            None => {}
        }
    }

    fn turn(&mut self, now: Now, now_ms: u64, wires: &mut Wires) -> Result<(), String> {
        let mut turn = Turn {
            host: self.host,
            sid: self.sid,
            now_ms,
            wires,
            disk: &self.disk,
            trace: &self.trace,
            mail: &mut self.mail,
            main: &mut self.main,
            machine: &mut self.machine,
            leading: &mut self.leading,
            row: &mut self.row,
            is_row_shown: &mut self.is_row_shown,
            has_left: &mut self.has_left,
            observed: &mut self.observed,
            outputs: 0,
        };
        self.pump.turn(now.mono_ms, &mut turn);
        if turn.is_at_rest() {
            Ok(())
        } else {
            Err(format!("host {} has outputs without end", self.host))
        }
    }
}
