//! A few databases of the clustered model on a fake log that is always right: the leader appends
//! entries, which are committed later and lost only when the leader changes. Messages between
//! members are delayed, and results may be lost. Clients talk to the databases directly.
//!
//! [`Cluster::step`] executes one drawn event. The fake keeps the promises of
//! `corvid_consensus::database`, and checks that the databases keep theirs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use corvid_consensus::database::{
    Committed, Forward, ForwardOrigin, ForwardOutcome, MemberEvent, MemberRequest,
};
use corvid_data::{HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::{Context, Database, LockOwner, Outcome, WorkBudget};
use corvid_json::Value;
use corvid_log::cluster::{Eid, Index, Sid, Term};
use corvid_monitor::SessionId;
use corvid_service::job::Job;
use corvid_service::locks::{Decision, Locks, Mode};
use corvid_service::message::{
    Completion, Control, DatabaseId, Event, InstalledSnapshot, Piece, SessionInfo, ToDatabase,
};
use corvid_service::pump::Output;
use corvid_service::schema_epoch::{SchemaEpoch, SchemaEpochs};
use corvid_service::{DatabaseService, Model, Now, Options, Pump, Setting};

use crate::cluster_search::{Findings, Search};
use crate::databases::contents;
use crate::limits::assert_is_taken;
use crate::made_snapshot::MadeSnapshot;
use crate::world::Dice;

/// The index of the state in which all members start.
pub(crate) const FIRST: u64 = 1;

/// UUIDs that differ between members.
pub(crate) struct Numbered(pub(crate) u64, pub(crate) u64);

impl UuidSource for Numbered {
    fn fresh(&mut self) -> Uuid {
        self.1 += 1;
        Uuid((u128::from(self.0) << 96 | 0x4000_u128 << 64 | u128::from(self.1)).to_be_bytes())
    }
}

struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _lock: &str) -> bool {
        false
    }
}

/// An entry of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub(crate) term: u64,
    pub(crate) data: Option<(Eid, Bytes)>,
    pub(crate) result: Option<Bytes>,
}

/// A client's end of a session.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) node: usize,
    pub(crate) info: Option<Arc<SessionInfo>>,
    /// Messages in order.
    pub(crate) received: Vec<Value>,
    /// How many requests were reported as complete.
    pub(crate) completed: usize,
    pub(crate) is_closed: bool,
}

/// A member with its database.
pub(crate) struct Node {
    pub(crate) pump: Pump,
    pub(crate) locks: Arc<Mutex<Locks>>,
    pub(crate) inbox: VecDeque<ToDatabase>,
    /// Number of log entries that the database has been told.
    told: usize,
    /// The term in which the database has been told that it leads; `None` if it has not.
    leads: Option<u64>,
    /// The last entry that the database has reported as applied.
    pub(crate) applied: u64,
    /// Forwarded transactions on their way to the leader, and outcomes for other members.
    forwards: VecDeque<(u64, Forward)>,
    outcomes: VecDeque<(Sid, Eid, ForwardOutcome)>,
    pub(crate) snapshots: Vec<MadeSnapshot>,
    /// Jobs that other threads have not executed yet.
    pub(crate) jobs: VecDeque<Job>,
    /// The search that the database has requested.
    pub(crate) search: Option<Search>,
    /// No messages reach or leave the member.
    pub(crate) is_cut: bool,
    pub(crate) events: Vec<Event>,
    pub(crate) is_paused: bool,
}

pub(crate) struct Cluster {
    pub(crate) dice: Dice,
    pub(crate) now_ms: u64,
    pub(crate) nodes: Vec<Node>,
    /// The log of the current leader; entries up to `committed` are committed.
    pub(crate) log: Vec<LogEntry>,
    pub(crate) committed: usize,
    pub(crate) term: u64,
    pub(crate) leader: Option<usize>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// Contents of the databases by index; equal everywhere.
    states: BTreeMap<u64, Vec<String>>,
    /// Outcomes of forwarded transactions that the members still know.
    pub(crate) outcomes: BTreeMap<Eid, ForwardOutcome>,
    pub(crate) findings: Findings,
    /// No member has seen all entries of a snapshot.
    pub(crate) is_forgetful: bool,
    /// One result in this many is lost; 0: none.
    pub(crate) loss: usize,
    /// Some inputs are executed inline.
    pub(crate) inline: bool,
    /// Jobs are executed when nothing else is left to do.
    pub(crate) has_time: bool,
    last_session: u64,
}

pub(crate) const SCHEMA: &str = r#"{"name":"A","version":"1.0.0","tables":{
 "T":{"isRoot":true,"indexes":[["k"]],"columns":{"k":{"type":"string"},"n":{"type":"integer"},
    "s":{"type":{"key":"integer","min":0,"max":"unlimited"}}}},
 "Log":{"isRoot":true,"columns":{"id":{"type":"integer"}}}}}"#;

pub(crate) fn cluster_schema(text: &str) -> corvid_data::Arc<Schema> {
    let json = Value::parse(text.as_bytes()).expect("JSON");
    corvid_data::Arc::new(Schema::from_json(&json).expect("a schema"))
}

/// A database with one row, `a`.
fn first_contents() -> Database {
    let mut database = Database::new(cluster_schema(SCHEMA), HashSeed::FIXED);
    let mut context = Context {
        elapsed_ms: 0,
        read_only: false,
        identities: &[],
        can_wait: false,
        uuids: &mut Numbered(99, 0),
        locks: &NoLocks,
    };
    let params = br#"["A",{"op":"insert","table":"T","row":{"k":"a","n":0}}]"#;
    let outcome = database.execute(params, &mut context);
    assert!(matches!(outcome, Outcome::Done { delta: Some(_), .. }));
    database
}

pub(crate) fn sid(node: usize) -> Sid {
    Sid(Uuid([u8::try_from(node).expect("few") + 1; 16]))
}

impl Cluster {
    /// This many members, without a leader.
    pub(crate) fn new(seed: u64, members: usize) -> Cluster {
        let node = |number: usize| {
            let options = Options {
                id: DatabaseId(1),
                model: Model::clustered(Index(FIRST), Eid(Uuid([7; 16]))),
                file: None,
                column_diff: true,
                history: false,
                recorded: Default::default(),
            };
            let uuids = Box::new(Numbered(number as u64 + 1, 0));
            let locks = Arc::new(Mutex::new(Locks::new()));
            let mut service = DatabaseService::new(
                Now::default(),
                options,
                first_contents(),
                locks.clone(),
                SchemaEpochs::default(),
                uuids,
            );
            if seed % 3 == 1 {
                service.set(Setting::LongAtoms, 0);
            }
            if seed % 5 == 2 {
                service.set(Setting::InitialRowsMax, 0);
            }
            Node {
                pump: Pump::new(service),
                locks,
                inbox: VecDeque::new(),
                told: 0,
                leads: None,
                applied: FIRST,
                forwards: VecDeque::new(),
                outcomes: VecDeque::new(),
                snapshots: Vec::new(),
                jobs: VecDeque::new(),
                search: None,
                is_cut: false,
                events: Vec::new(),
                is_paused: false,
            }
        };
        Cluster {
            dice: Dice::new(seed),
            now_ms: 1000,
            nodes: (0..members).map(node).collect(),
            log: Vec::new(),
            committed: 0,
            term: 0,
            leader: None,
            sessions: BTreeMap::new(),
            states: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            findings: Findings::default(),
            is_forgetful: false,
            loss: 0,
            inline: false,
            has_time: true,
            last_session: 0,
        }
    }

    fn now(&self) -> Now {
        Now {
            mono_ms: self.now_ms,
            wall_ms: 1_700_000_000_000,
        }
    }

    /// A client connects to a member.
    pub(crate) fn connect(&mut self, node: usize) -> SessionId {
        self.connect_as(node, SessionInfo::new(false, String::new(), None))
    }

    pub(crate) fn connect_as(&mut self, node: usize, info: SessionInfo) -> SessionId {
        self.last_session += 1;
        let id = SessionId(self.last_session);
        info.set_aware(true, SchemaEpoch::default());
        let session = Session {
            node,
            info: Some(Arc::new(info)),
            ..Session::default()
        };
        self.sessions.insert(id, session);
        id
    }

    pub(crate) fn disconnect(&mut self, id: SessionId) {
        let session = self.sessions.get_mut(&id).expect("connected");
        session.is_closed = true;
        session.info.as_ref().expect("connected").set_closed();
        let node = session.node;
        self.nodes[node].inbox.push_back(ToDatabase::Closed(id));
    }

    /// The current leader loses its term. Uncommitted entries survive up to a drawn one, for the
    /// next leader to commit.
    pub(crate) fn depose(&mut self) {
        if self.leader.take().is_some() {
            let tail = self.log.len() - self.committed;
            let kept = self.committed + self.dice.below(tail + 1);
            self.log.truncate(kept);
        }
    }

    /// A member wins an election.
    pub(crate) fn elect(&mut self, node: usize) {
        self.depose();
        self.term += 1;
        self.leader = Some(node);
        self.log.push(LogEntry {
            term: self.term,
            data: None,
            result: None,
        });
        // Messages of the old term may or may not arrive.
        let loss = self.dice.below(2) == 0;
        for node in &mut self.nodes {
            if loss {
                node.forwards.clear();
                node.outcomes.clear();
            }
        }
    }

    /// Tells a database the current term, and the leader unless it is the member itself.
    pub(crate) fn tell_follows(&mut self, node: usize) {
        let term = Term(self.term);
        let leader = self.leader.filter(|leader| *leader != node);
        let leader = leader.map(sid);
        self.nodes[node].leads = None;
        self.nodes[node]
            .inbox
            .push_back(ToDatabase::Member(MemberEvent::Follows { term, leader }));
    }

    /// The member tells its database of committed entries, at most this many, and of its role.
    fn tell(&mut self, node: usize, entries_max: usize) {
        if self.nodes[node].is_cut {
            return;
        }
        let leads = self.nodes[node].leads;
        if leads.is_some() && (self.leader != Some(node) || leads != Some(self.term)) {
            self.tell_follows(node);
        }
        self.carry_outcomes_to(node);
        let (from, to) = (self.nodes[node].told, self.committed);
        let to = to.min(from + entries_max);
        if from < to {
            let leads = self.nodes[node].leads;
            let mut entries = Vec::new();
            for (at, entry) in self.log[from..to].iter().enumerate() {
                let index = Index(FIRST + (from + at) as u64 + 1);
                let Some((eid, data)) = &entry.data else {
                    continue;
                };
                entries.push(if leads == Some(entry.term) {
                    Committed::Own { index, eid: *eid }
                } else {
                    Committed::Data {
                        index,
                        eid: *eid,
                        data: data.clone(),
                        result: entry.result.clone(),
                    }
                });
            }
            self.nodes[node].told = to;
            let event = MemberEvent::Committed {
                through: Index(FIRST + to as u64),
                term: Term(self.log[to - 1].term),
                entries,
            };
            self.nodes[node].inbox.push_back(ToDatabase::Member(event));
        }
        // It leads once the entry that begins its term is committed and told.
        let is_ready = self.leader == Some(node)
            && self.log[..self.nodes[node].told]
                .last()
                .is_some_and(|entry| entry.term == self.term);
        if is_ready && self.nodes[node].leads.is_none() {
            self.nodes[node].leads = Some(self.term);
            let term = Term(self.term);
            self.nodes[node]
                .inbox
                .push_back(ToDatabase::Member(MemberEvent::Leads { term }));
        }
    }

    /// A leading database learns the election timer.
    pub(crate) fn set_election_timer(&mut self, node: usize, timer_ms: u64) {
        let event = MemberEvent::ElectionTimer { timer_ms };
        let inbox = &mut self.nodes[node].inbox;
        inbox.push_back(ToDatabase::Member(event));
    }

    /// A database executes this many inputs.
    pub(crate) fn execute(&mut self, node: usize, inputs_max: usize) {
        let mut now = self.now();
        let is_inline = self.inline && self.dice.below(2) == 0;
        let mut budget = WorkBudget::new(self.dice.below(60) as u64);
        let this = &mut self.nodes[node];
        if is_inline && !this.pump.has_postponed() {
            let taken = inputs_max.min(this.inbox.len());
            let mut inputs: Vec<ToDatabase> = this.inbox.drain(..taken).collect();
            this.pump.execute_inline(&mut now, &mut inputs, &mut budget);
            for input in inputs.into_iter().rev() {
                this.inbox.push_front(input);
            }
            self.walk(node);
            let _ = self.nodes[node].pump.end_inline();
            return;
        }
        let mut inputs = std::iter::from_fn(|| this.inbox.pop_front()).take(inputs_max);
        this.pump.execute_batch(&mut now, &mut inputs);
        self.walk(node);
    }

    fn walk(&mut self, node: usize) {
        let mut has_proposed = false;
        while let Some(output) = self.nodes[node].pump.next_output() {
            match output {
                Output::Job(job) => self.nodes[node].jobs.push_back(job),
                Output::Member(request) => {
                    if let MemberRequest::Propose { .. } = &request {
                        assert!(!has_proposed, "one proposal a batch");
                        has_proposed = true;
                    }
                    self.member_request(node, request);
                }
                Output::Deliver(deliver) => {
                    let session = self.sessions.get_mut(&deliver.session).expect("a session");
                    let is_of_request = !matches!(
                        deliver.completion,
                        Completion::None | Completion::MonitorLost(_)
                    );
                    session.completed += usize::from(is_of_request);
                    for piece in &deliver.pieces {
                        let bytes = match piece {
                            Piece::Message(text) => text.clone(),
                            Piece::Long(frame) | Piece::Update(frame) => frame.to_bytes(),
                        };
                        let message = Value::parse(&bytes).expect("JSON");
                        session.received.push(message);
                    }
                    if deliver.report_drained && !session.is_closed {
                        let drained = ToDatabase::Drained(deliver.session);
                        self.nodes[node].inbox.push_back(drained);
                    }
                }
                Output::Event(event) => self.nodes[node].events.push(event),
                Output::Store(_) => panic!("the member owns the file"),
                _ => {}
            }
        }
        self.nodes[node].pump.check();
    }

    fn member_request(&mut self, node: usize, request: MemberRequest) {
        match request {
            MemberRequest::Propose { term, proposals } => {
                assert!(!proposals.is_empty());
                if self.leader != Some(node) || term != Term(self.term) {
                    return;
                }
                for proposal in proposals {
                    self.log.push(LogEntry {
                        term: self.term,
                        data: Some((proposal.eid, proposal.data)),
                        result: proposal.result,
                    });
                }
            }
            MemberRequest::Forward { term, forward } => {
                assert_is_taken(&forward);
                self.nodes[node].forwards.push_back((term.0, *forward));
            }
            MemberRequest::Outcome {
                origin,
                id,
                outcome,
            } => {
                self.outcomes.insert(id, outcome.clone());
                let outcomes = &mut self.nodes[node].outcomes;
                outcomes.push_back((origin.sid, id, outcome));
            }
            MemberRequest::Find {
                after,
                through,
                ids,
            } => {
                assert!(after < through && !ids.is_empty());
                self.nodes[node].search = Some(Search::new(after, through, ids));
            }
            MemberRequest::Applied(index) => {
                let this = &mut self.nodes[node];
                assert!(this.applied < index.0, "each event is answered once");
                this.applied = index.0;
                // Later inputs of the batch have been executed, so only a database without any is
                // exactly at this index.
                let is_exact = this.leads.is_none() && this.inbox.is_empty();
                if is_exact && FIRST + this.told as u64 == index.0 {
                    let found = contents(this.pump.service().database());
                    let known = self.states.entry(index.0).or_insert_with(|| found.clone());
                    assert_eq!(*known, found, "at {index}");
                }
            }
            MemberRequest::Snapshot {
                index,
                eid,
                snapshot,
                commits,
                ..
            } => self.nodes[node].snapshots.push(MadeSnapshot {
                index,
                eid,
                snapshot,
                commits,
            }),
        }
    }

    /// The first forwarded transactions of a term arrive at the leader, at most this many, as one
    /// event.
    fn carry_forwards_within(&mut self, node: usize, count_max: usize) {
        if self.nodes[node].is_cut {
            return;
        }
        let queue = &mut self.nodes[node].forwards;
        let Some((term, _)) = queue.front() else {
            return;
        };
        let term = *term;
        let run = queue.iter().take(count_max);
        let count = run.take_while(|(of, _)| *of == term).count();
        let leader = self.leader.filter(|_| term == self.term);
        if leader.is_some_and(|leader| self.nodes[leader].leads != Some(term)) {
            // The leader does not execute yet: the messages come again.
            return;
        }
        let run = self.nodes[node].forwards.drain(..count);
        let forwards = run.map(|(_, forward)| forward).collect();
        let Some(leader) = leader else {
            return;
        };
        let origin = ForwardOrigin {
            sid: sid(node),
            term: Term(term),
        };
        let execute = MemberEvent::Execute { origin, forwards };
        self.nodes[leader]
            .inbox
            .push_back(ToDatabase::Member(execute));
    }

    /// All forwarded transactions of one term arrive at the leader, as one event.
    pub(crate) fn carry_forwards(&mut self, node: usize) {
        self.carry_forwards_within(node, usize::MAX);
    }

    /// Messages between two members stay in order: outcomes arrive before later commits.
    fn carry_outcomes_to(&mut self, node: usize) {
        for from in 0..self.nodes.len() {
            let is_for = |(to, ..): &(Sid, Eid, ForwardOutcome)| *to == sid(node);
            while self.nodes[from].outcomes.iter().any(is_for) {
                self.carry_outcome(from);
            }
        }
    }

    /// Executes the oldest job of a member. Returns false if there is none.
    pub(crate) fn carry_job(&mut self, node: usize) -> bool {
        let job = self.nodes[node].jobs.pop_front();
        let is_done = job.is_some();
        let done = job.and_then(Job::carry_out).map(ToDatabase::from);
        self.nodes[node].inbox.extend(done);
        is_done
    }

    /// One outcome arrives at its member, or is lost.
    fn carry_outcome(&mut self, node: usize) {
        let Some((to, id, outcome)) = self.nodes[node].outcomes.pop_front() else {
            return;
        };
        let is_lost = self.loss > 0 && self.dice.below(self.loss) == 0;
        // The members repeat the other outcomes.
        if is_lost && matches!(outcome, ForwardOutcome::Proposed(_)) {
            return;
        }
        let to = usize::from(to.0.0[0]) - 1;
        if self.nodes[to].is_cut {
            return;
        }
        let outcome = MemberEvent::Outcome { id, outcome };
        self.nodes[to].inbox.push_back(ToDatabase::Member(outcome));
    }

    /// One drawn event of a working cluster.
    pub(crate) fn step(&mut self) {
        let node = self.dice.below(self.nodes.len());
        match self.dice.below(7) {
            6 if self.dice.below(4) == 0 => {
                self.carry_findings(node);
            }
            6 => {
                self.carry_job(node);
            }
            0 => {
                let tail = self.log.len() - self.committed;
                if self.leader.is_some() {
                    self.committed += self.dice.below(tail + 1);
                }
            }
            1 => {
                let entries_max = 1 + self.dice.below(5);
                self.tell(node, entries_max);
            }
            2 => {
                let count_max = 1 + self.dice.below(3);
                self.carry_forwards_within(node, count_max);
            }
            3 => self.carry_outcome(node),
            _ if self.nodes[node].is_paused => {}
            _ => {
                let inputs_max = 1 + self.dice.below(6);
                if !self.nodes[node].inbox.is_empty() {
                    self.execute(node, inputs_max);
                }
            }
        }
    }

    /// The members learn the leader.
    pub(crate) fn announce(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_cut {
                continue;
            }
            if self.leader != Some(node) || self.nodes[node].leads != Some(self.term) {
                self.tell_follows(node);
            }
        }
    }

    /// Runs until nothing is left to do; every proposal is committed.
    pub(crate) fn run(&mut self) {
        loop {
            let mut is_idle = true;
            if self.leader.is_some() {
                is_idle &= self.committed == self.log.len();
                self.committed = self.log.len();
            }
            is_idle &= self.run_without_commits();
            if is_idle {
                return;
            }
        }
    }

    /// Like [`Cluster::run`], without further commits. Returns whether there was nothing to do.
    pub(crate) fn run_without_commits(&mut self) -> bool {
        let mut was_idle = true;
        loop {
            let mut is_idle = true;
            for node in 0..self.nodes.len() {
                self.tell(node, usize::MAX / 2);
                let queued = self.nodes[node].forwards.len();
                self.carry_forwards(node);
                is_idle &= self.nodes[node].forwards.len() == queued;
                while !self.nodes[node].outcomes.is_empty() {
                    is_idle = false;
                    self.carry_outcome(node);
                }
                if !self.nodes[node].inbox.is_empty() && !self.nodes[node].is_paused {
                    is_idle = false;
                    self.execute(node, 4);
                } else if self.has_time && (self.carry_job(node) || self.carry_findings(node)) {
                    is_idle = false;
                }
            }
            was_idle &= is_idle;
            if is_idle {
                return was_idle;
            }
        }
    }

    /// A session takes a lock of its member.
    pub(crate) fn lock(&mut self, node: usize, session: SessionId, lock: &str) {
        let mut locks = self.nodes[node].locks.lock().expect("a lock");
        let owned = locks
            .lock(session, lock, Mode::Lock)
            .expect("not requested");
        assert_eq!(owned.0, Decision::Owned);
    }

    /// The contents of a member that follows or has nothing pending, as of its last applied entry.
    pub(crate) fn snapshot_of(&mut self, node: usize) -> InstalledSnapshot {
        let compact = ToDatabase::Control(Control::Compact(None));
        self.nodes[node].inbox.push_back(compact);
        self.drain(node);
        let made = self.nodes[node].snapshots.pop().expect("a snapshot");
        made.installed()
    }

    /// The last entry that a database has been told, or that its snapshot contains.
    pub(crate) fn told(&self, node: usize) -> u64 {
        FIRST + self.nodes[node].told as u64
    }

    /// Executes a member's inputs. Returns whether the member follows and its database knows that.
    pub(crate) fn may_install(&mut self, node: usize) -> bool {
        self.drain(node);
        self.nodes[node].leads.is_none()
    }

    fn drain(&mut self, node: usize) {
        while !self.nodes[node].inbox.is_empty() {
            self.execute(node, 4);
        }
    }

    /// A member that has fallen behind installs a snapshot.
    pub(crate) fn install(&mut self, node: usize, mut installed: InstalledSnapshot) {
        let last = usize::try_from(installed.index.0 - FIRST).expect("few");
        installed.term = Term(self.log[..last].last().map_or(0, |entry| entry.term));
        let is_event = |input: &ToDatabase| matches!(input, ToDatabase::Member(_));
        self.nodes[node].inbox.retain(|input| !is_event(input));
        self.nodes[node].told = last;
        self.nodes[node].is_paused = false;
        self.nodes[node].is_cut = false;
        self.nodes[node]
            .inbox
            .push_front(ToDatabase::Installed(Box::new(installed)));
        self.execute(node, 1);
    }

    /// Whether the database of an ended session has handled the end.
    pub(crate) fn has_ended(&self, id: SessionId) -> bool {
        let session = &self.sessions[&id];
        let is_end =
            |input: &ToDatabase| matches!(input, ToDatabase::Closed(closed) if *closed == id);
        session.is_closed && !self.nodes[session.node].inbox.iter().any(is_end)
    }

    /// Appends an entry that no database has proposed.
    pub(crate) fn push_entry(&mut self, eid: Eid, data: Vec<u8>) {
        self.log.push(LogEntry {
            term: self.term,
            data: Some((eid, data.into())),
            result: None,
        });
    }

    /// The numbers that committed entries add to the set of row `a`.
    pub(crate) fn committed_numbers(&self) -> BTreeSet<u64> {
        numbers_of(&self.log[..self.committed])
    }

    /// The numbers that all entries add, including uncommitted ones.
    pub(crate) fn appended_numbers(&self) -> BTreeSet<u64> {
        numbers_of(&self.log)
    }

    /// A cluster with a leader that all members know.
    pub(crate) fn led(seed: u64, members: usize, leader: usize) -> Cluster {
        let mut cluster = Cluster::new(seed, members);
        cluster.lead(leader);
        cluster
    }

    /// A member is elected, and all members learn it.
    pub(crate) fn lead(&mut self, leader: usize) {
        self.elect(leader);
        self.announce();
        self.run();
    }

    /// Takes the messages of a session since the last call, one per line.
    pub(crate) fn take(&mut self, id: SessionId) -> String {
        let received = std::mem::take(&mut self.sessions.get_mut(&id).expect("one").received);
        let lines = received.iter();
        let lines = lines.map(|line| String::from_utf8_lossy(&line.to_bytes()).into_owned() + "\n");
        lines.collect()
    }

    pub(crate) fn contents(&self, node: usize) -> Vec<String> {
        contents(self.nodes[node].pump.service().database())
    }

    /// All members have the same contents.
    pub(crate) fn check_equal(&self) {
        for node in 1..self.nodes.len() {
            assert_eq!(self.contents(0), self.contents(node), "member {node}");
        }
    }
}

/// The numbers that entries add to the set of row `a`.
fn numbers_of(entries: &[LogEntry]) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for entry in entries {
        let data = entry.data.as_ref();
        let Some((_, data)) = data.filter(|(_, data)| data.starts_with(b"[null,")) else {
            continue;
        };
        let text = String::from_utf8_lossy(data).into_owned();
        let set = text.split("\"s\":").nth(1).unwrap_or_default();
        let set = set.split('}').next().unwrap_or_default();
        let digits = set.split(|c: char| !c.is_ascii_digit() && c != '-');
        for number in digits.filter_map(|digits| digits.parse::<u64>().ok()) {
            assert!(numbers.insert(number), "{number} happened twice");
        }
    }
    numbers
}
