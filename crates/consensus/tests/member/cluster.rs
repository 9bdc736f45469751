//! A cluster whose network, disks and clocks belong to the test, all from one seed.

use std::collections::{BTreeMap, BTreeSet};

use corvid_consensus::member::{Command, CommandToken, Repeated, Role};
use corvid_consensus::message::PeerMessage;
use corvid_consensus::{
    Committed, Input, KeptEntries, Member, MemberEvent, MemberRequest, Output, Settings,
};
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Eid, Index, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, RewriteStage, StorageReply};
use corvid_rpc::Level;

use crate::disk::Disk;
use crate::replica::Replica;

/// One process with its file.
pub(crate) struct Node {
    pub(crate) disk: Disk,
    pub(crate) member: Option<Member>,
    pub(crate) replica: Replica,
    pub(crate) disk_delay_ms: u64,
    /// This many reads of the snapshot fail.
    pub(crate) failing_reads: u32,
    pub(crate) lines: Vec<(Level, String)>,
    /// The number of lines about requests for admission that were answered at once.
    pub(crate) joiner_lines: usize,
    pub(crate) done: BTreeMap<u64, Result<String, String>>,
    pub(crate) has_left: bool,
    pub(crate) is_connected: bool,
    /// Its log differs from the cluster's, so it must stop; `failed` is what it says then.
    pub(crate) is_astray: bool,
    pub(crate) failed: Option<String>,
    /// A snapshot is kept until it is written or rejected; no other one is taken before.
    has_snapshot: bool,
    /// Why snapshots were rejected.
    pub(crate) rejections: Vec<&'static str>,
    /// Counts starts, so that events from before a crash do not arrive.
    starts: u64,
    disk_until_ms: u64,
}

enum Event {
    Message(Sid, PeerMessage),
    Storage(StorageReply),
    Database(MemberRequest),
    Other(Input),
}

pub(crate) struct Cluster {
    pub(crate) now_ms: u64,
    pub(crate) nodes: BTreeMap<Sid, Node>,
    pub(crate) cuts: BTreeSet<(Sid, Sid)>,
    /// This many of a hundred messages are lost.
    pub(crate) loss: u64,
    pub(crate) doubled: u64,
    pub(crate) delay_max_ms: u64,
    /// The address of an ended process refuses connections.
    pub(crate) refuses: bool,
    /// Whether each commit of a leader is checked against the files of a majority.
    pub(crate) counts_copies: bool,
    kept: KeptEntries,
    random: u64,
    events: BTreeMap<(u64, u64), (Sid, u64, Event)>,
    sequence: u64,
    links: BTreeMap<(Sid, Sid), u64>,
    /// The leader of each term.
    leaders: BTreeMap<Term, Sid>,
    /// The entries that were committed anywhere.
    pub(crate) committed: BTreeMap<Index, Eid>,
    pub(crate) known: BTreeSet<Eid>,
    next_eid: u64,
    next_token: u64,
    cid: Cid,
}

pub(crate) fn sid(number: u8) -> Sid {
    let mut bytes = [number; 16];
    bytes[15] = 0;
    Sid(Uuid(bytes))
}

pub(crate) fn address(sid: Sid) -> String {
    format!("tcp:10.0.0.{}:6644", sid.0.0[0])
}

impl Cluster {
    /// A cluster of this many members, all running.
    pub(crate) fn new(count: u8, seed: u64) -> Cluster {
        Cluster::keeping(count, seed, KeptEntries::DEFAULT)
    }

    /// Like [`Cluster::new`], with other limits of the entries kept after snapshots.
    pub(crate) fn keeping(count: u8, seed: u64, kept: KeptEntries) -> Cluster {
        let cid = Cid::new(Uuid([0xcc; 16])).expect("an id");
        let mut servers = Servers::one(sid(1), &address(sid(1)));
        for number in 2..=count {
            servers = servers.with(sid(number), &address(sid(number)));
        }
        let mut cluster = Cluster {
            now_ms: 1000,
            nodes: BTreeMap::new(),
            cuts: BTreeSet::new(),
            loss: 0,
            doubled: 0,
            delay_max_ms: 3,
            refuses: false,
            counts_copies: false,
            kept,
            random: seed,
            events: BTreeMap::new(),
            sequence: 0,
            links: BTreeMap::new(),
            leaders: BTreeMap::new(),
            committed: BTreeMap::new(),
            known: BTreeSet::new(),
            next_eid: 1,
            next_token: 1,
            cid,
        };
        for number in 1..=count {
            cluster.add(Disk::new(sid(number), cid, &servers));
        }
        for number in 1..=count {
            cluster.start(sid(number));
        }
        cluster
    }

    fn add(&mut self, disk: Disk) {
        let node = Node {
            disk,
            member: None,
            replica: Replica::default(),
            disk_delay_ms: 2,
            failing_reads: 0,
            lines: Vec::new(),
            joiner_lines: 0,
            done: BTreeMap::new(),
            has_left: false,
            is_connected: false,
            is_astray: false,
            failed: None,
            has_snapshot: false,
            rejections: Vec::new(),
            starts: 0,
            disk_until_ms: 0,
        };
        self.nodes.insert(node.disk.sid, node);
    }

    /// Adds a server that asks the others for admission.
    pub(crate) fn join(&mut self, number: u8) {
        let remotes = self.nodes.keys().map(|sid| address(*sid)).collect();
        self.add(Disk::joining(sid(number), remotes));
        self.start(sid(number));
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below.max(1)
    }

    pub(crate) fn start(&mut self, sid: Sid) {
        let seed = self.random(u64::MAX);
        let now_ms = self.now_ms;
        let cid = self.cid;
        let node = self.nodes.get_mut(&sid).expect("a server");
        if node.member.is_some() || node.has_left {
            return;
        }
        let recovered = node.disk.recover();
        node.replica = Replica::default();
        node.replica.index = recovered.commit;
        if recovered.repair.is_none() {
            node.replica.applied = Replica::load(&node.disk.body);
        }
        for entry in recovered
            .entries
            .iter()
            .filter(|entry| entry.index <= recovered.commit)
        {
            if let Some(payload) = &entry.payload {
                node.replica.applied.push((entry.index, payload.eid));
            }
        }
        let settings = Settings {
            sid,
            name: "T".to_owned(),
            address: address(sid),
            kept: self.kept,
        };
        node.starts += 1;
        node.has_snapshot = false;
        node.disk_until_ms = 0;
        node.member = Some(Member::new(settings, recovered, now_ms, seed));
        self.drain(sid);
        // The first sync is done.
        let synced = StorageReply::Appended(LogPosition::OPENING, Ok(()));
        self.post(0, sid, Event::Storage(synced));
        let others: Vec<Sid> = self
            .nodes
            .keys()
            .copied()
            .filter(|other| *other != sid)
            .collect();
        for other in others {
            if self.nodes[&other].member.is_some() {
                self.post(1, other, Event::Other(Input::PeerUp(sid)));
                self.post(1, sid, Event::Other(Input::PeerUp(other)));
                self.post(1, sid, Event::Other(Input::LearnedCluster(cid)));
            }
        }
    }

    pub(crate) fn crash(&mut self, sid: Sid) {
        let unsynced = {
            let disk = &self.nodes[&sid].disk;
            disk.records.len() - disk.synced
        };
        let kept = usize::try_from(self.random(unsynced as u64 + 1)).expect("small");
        let node = self.nodes.get_mut(&sid).expect("a server");
        if node.member.take().is_none() {
            return;
        }
        node.disk.crash(kept);
        let others: Vec<Sid> = self
            .nodes
            .keys()
            .copied()
            .filter(|other| *other != sid)
            .collect();
        for other in others {
            // A connection ends after its messages.
            let last_ms = self.links.get(&(sid, other)).copied().unwrap_or_default();
            let delay_ms = last_ms.saturating_sub(self.now_ms) + 1;
            self.post(delay_ms, other, Event::Other(Input::PeerDown(sid)));
            if self.refuses {
                self.post(delay_ms + 1, other, Event::Other(Input::PeerRefused(sid)));
            }
        }
    }

    fn post(&mut self, delay_ms: u64, to: Sid, event: Event) {
        self.sequence += 1;
        let starts = self.nodes[&to].starts;
        self.events
            .insert((self.now_ms + delay_ms, self.sequence), (to, starts, event));
    }

    pub(crate) fn input(&mut self, sid: Sid, input: Input) {
        let now_ms = self.now_ms;
        if let Some(member) = &mut self.nodes.get_mut(&sid).expect("a server").member {
            member.handle(now_ms, input);
            self.drain(sid);
        }
    }

    pub(crate) fn command(&mut self, sid: Sid, command: Command) -> u64 {
        self.next_token += 1;
        let token = self.next_token;
        self.input(
            sid,
            Input::Command {
                token: CommandToken(token),
                command,
            },
        );
        token
    }

    /// Gives a command and waits for its reply.
    pub(crate) fn reply(&mut self, sid: Sid, command: Command) -> Result<String, String> {
        let token = self.command(sid, command);
        self.run_until("a reply", 30_000, |cluster| {
            cluster.nodes[&sid].done.contains_key(&token)
        });
        self.nodes[&sid].done[&token].clone()
    }

    /// Clients of this member want this many commits. Returns their ids, if the member accepts
    /// them.
    pub(crate) fn write(&mut self, sid: Sid, count: u64) -> Vec<Eid> {
        let eids: Vec<Eid> = (0..count).map(|_| self.draw_eid(0)).collect();
        self.write_all(sid, eids)
    }

    /// A client of this member wants a commit of this many MiB.
    pub(crate) fn write_long(&mut self, sid: Sid, mebibytes: u8) {
        let eid = self.draw_eid(mebibytes);
        assert_eq!(self.write_all(sid, vec![eid]), [eid]);
    }

    fn draw_eid(&mut self, mebibytes: u8) -> Eid {
        self.next_eid += 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next_eid.to_be_bytes());
        bytes[15] = mebibytes;
        Eid(Uuid(bytes))
    }

    fn write_all(&mut self, sid: Sid, eids: Vec<Eid>) -> Vec<Eid> {
        let node = self.nodes.get_mut(&sid).expect("a server");
        if node.member.is_none() {
            return Vec::new();
        }
        let requests = node.replica.write(&eids);
        if requests.is_empty() {
            return Vec::new();
        }
        for request in requests {
            self.post(1, sid, Event::Database(request));
        }
        eids
    }

    fn drain(&mut self, sid: Sid) {
        loop {
            let node = self.nodes.get_mut(&sid).expect("a server");
            let Some(member) = &mut node.member else {
                return;
            };
            let Some(output) = member.next_output() else {
                return;
            };
            self.output(sid, output);
        }
    }

    fn output(&mut self, sid: Sid, output: Output) {
        let now_ms = self.now_ms;
        let node = self.nodes.get_mut(&sid).expect("a server");
        match output {
            Output::Store(requests) => {
                // One sync covers everything that has arrived, so a slow disk does not fall further
                // behind.
                node.disk_until_ms = node.disk_until_ms.max(now_ms + node.disk_delay_ms);
                let delay_ms = node.disk_until_ms - now_ms;
                let is_poisoned = node.disk.is_poisoned;
                let mut replies: Vec<StorageReply> = Vec::new();
                for request in requests {
                    replies.extend(node.disk.request(request));
                }
                let has_failed = replies
                    .iter()
                    .any(|reply| matches!(reply, StorageReply::Appended(_, Err(_))));
                for reply in replies {
                    self.post(delay_ms, sid, Event::Storage(reply));
                }
                if is_poisoned && has_failed {
                    self.post(delay_ms, sid, Event::Other(Input::FilePoisoned));
                }
            }
            Output::Send { to, message } => self.send(sid, to, &message),
            Output::Database(event) => {
                if self.counts_copies {
                    self.count_copies(sid, &event);
                }
                let node = self.nodes.get_mut(&sid).expect("a server");
                let body = node.disk.body.clone();
                let requests = node.replica.event(event, &body);
                self.check(sid);
                for request in requests {
                    self.post(1, sid, Event::Database(request));
                }
            }
            Output::CommandDone(token, reply) => {
                node.done.insert(token.0, reply);
            }
            Output::Log(level, kind, text) => {
                if std::env::var("TRACE").is_ok() {
                    println!("{now_ms} {sid} {level:?} {text}");
                }
                if kind == Some(Repeated::Joiner) {
                    node.joiner_lines += 1;
                }
                node.lines.push((level, text));
            }
            Output::Row(row) => node.is_connected = row.is_connected,
            Output::ReadSnapshot {
                to,
                index,
                offset,
                bytes_max,
            } => {
                let fails = node.failing_reads > 0;
                node.failing_reads = node.failing_reads.saturating_sub(1);
                let is_present = !fails
                    && node
                        .disk
                        .meta
                        .as_ref()
                        .is_some_and(|meta| meta.index == index);
                let body = &node.disk.body;
                let from = usize::try_from(offset).expect("small").min(body.len());
                let end = (from + bytes_max).min(body.len());
                let failure = corvid_log::storage::StoreError {
                    details: "another snapshot".to_owned(),
                    io_error: String::new(),
                };
                let bytes = if is_present {
                    Ok((body.len() as u64, body[from..end].to_vec().into()))
                } else {
                    Err(failure)
                };
                self.post(
                    1,
                    sid,
                    Event::Other(Input::SnapshotRead {
                        to,
                        index,
                        offset,
                        bytes,
                    }),
                );
            }
            Output::BeginSnapshot(meta) => node.disk.incoming = Some((meta, Vec::new())),
            Output::WriteSnapshot {
                index,
                offset,
                bytes,
            } => {
                let (meta, body) = node.disk.incoming.as_mut().expect("a snapshot was begun");
                assert_eq!((meta.index, body.len() as u64), (index, offset));
                body.extend_from_slice(&bytes);
                let end = Ok(body.len() as u64);
                self.post(1, sid, Event::Other(Input::SnapshotWritten { index, end }));
            }
            Output::AbandonSnapshot => node.disk.incoming = None,
            Output::InstallSnapshot {
                snapshot,
                cid,
                records,
            } => {
                node.disk.install(cid, records);
                let index = snapshot.index;
                self.post(
                    2,
                    sid,
                    Event::Other(Input::SnapshotInstalled {
                        index,
                        outcome: Ok(()),
                    }),
                );
            }
            Output::MakeSnapshot => self.compact(sid),
            Output::Rewrite(rewrite) => {
                assert_eq!(rewrite.index, node.replica.index);
                let body = node.replica.body();
                let reply = node.disk.rewrite(*rewrite, body);
                self.post(5, sid, Event::Storage(reply));
            }
            Output::Left => {
                node.has_left = true;
                if let Some(mut member) = node.member.take() {
                    assert_ends_at_once(&mut member, now_ms);
                }
            }
            Output::Failed(text) => {
                assert!(node.is_astray, "{sid} failed: {text}");
                node.failed = Some(text);
            }
            Output::RejectSnapshot(reason) => {
                node.has_snapshot = false;
                node.rejections.push(reason);
            }
            Output::Dial(_) | Output::ElectionTimer(_) | Output::Refuse { .. } => {}
        }
    }

    /// Files of this and other members went back to earlier copies, so the cluster forgets what was
    /// committed after this entry.
    pub(crate) fn go_back(&mut self, copies: &[Disk], last: Index) {
        for disk in copies {
            let node = self.nodes.get_mut(&disk.sid).expect("a server");
            assert!(node.member.is_none(), "it does not run");
            node.disk = disk.clone();
            node.disk.crash(0);
        }
        self.committed.retain(|index, _| *index <= last);
        self.known = self.committed.values().copied().collect();
        self.leaders.clear();
    }

    /// A leader reports these commits to its clients: checks that the files of a majority have
    /// them.
    fn count_copies(&self, leader: Sid, event: &MemberEvent) {
        let MemberEvent::Committed { entries, .. } = event else {
            return;
        };
        let own = entries.iter().filter_map(|entry| match entry {
            Committed::Own { eid, .. } => Some(eid.0.to_string().into_bytes()),
            Committed::Data { .. } => None,
        });
        for eid in own {
            let has = |text: &[u8]| text.windows(eid.len()).any(|window| window == eid);
            let holds = |disk: &Disk| has(&disk.records[..disk.synced]) || has(&disk.body);
            let copies = self.nodes.values().filter(|node| holds(&node.disk));
            let count = copies.count();
            assert!(
                count > self.nodes.len() / 2,
                "{leader} acknowledges a commit that {count} files have"
            );
        }
    }

    /// The database makes a snapshot and a new file is written, in one step: nothing is applied in
    /// between.
    pub(crate) fn compact(&mut self, sid: Sid) {
        let node = self.nodes.get_mut(&sid).expect("a server");
        let (index, eid) = (node.replica.index, node.replica.last_eid());
        let now_ms = self.now_ms;
        if std::mem::replace(&mut node.has_snapshot, true) {
            return;
        }
        if let Some(member) = &mut node.member {
            member.handle(now_ms, Input::SnapshotMade { index, eid });
            self.drain(sid);
        }
    }

    /// Damages the file of a member in its middle, after stopping the member.
    pub(crate) fn damage(&mut self, sid: Sid) {
        self.crash(sid);
        let node = self.nodes.get_mut(&sid).expect("a server");
        // A file without a term, or of a server that has not joined, proves nothing and is refused.
        let has_term = node.disk.recover().term > Term(0);
        node.disk.is_damaged = has_term && node.disk.meta.is_some();
    }

    fn send(&mut self, from: Sid, to: Sid, message: &PeerMessage) {
        let is_silent = matches!(
            message,
            PeerMessage::SnapshotRequest { .. } | PeerMessage::SnapshotProgress { .. }
        );
        assert!(
            is_silent || !self.nodes[&from].disk.is_damaged,
            "a damaged member sends {message:?}"
        );
        if self.cuts.contains(&(from, to))
            || !self.nodes.contains_key(&to)
            || self.random(100) < self.loss
        {
            return;
        }
        if std::env::var("TRACE").is_ok_and(|level| level == "2") {
            println!("{} {from} -> {to} {message:?}", self.now_ms);
        }
        let copies = if self.random(100) < self.doubled {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let more_ms = self.random(self.delay_max_ms);
            let now_ms = self.now_ms;
            let at_ms = self.links.entry((from, to)).or_default();
            *at_ms = (*at_ms).max(now_ms + 1 + more_ms);
            let delay_ms = *at_ms - now_ms;
            self.post(delay_ms, to, Event::Message(from, message.clone()));
        }
    }

    /// Checks the rules that hold at every moment.
    fn check(&mut self, sid: Sid) {
        let node = &self.nodes[&sid];
        if node.is_astray {
            return;
        }
        if let Some(term) = node.replica.leads {
            let leader = *self.leaders.entry(term).or_insert(sid);
            assert_eq!(leader, sid, "two leaders in term {term}");
        }
        let fresh = node.replica.applied.iter().rev();
        for (index, eid) in fresh.take(3000) {
            let known = *self.committed.entry(*index).or_insert(*eid);
            assert_eq!(known, *eid, "entry {index} differs");
            if !self.known.contains(eid) {
                self.known.insert(*eid);
                let same = self.committed.values().filter(|other| *other == eid);
                assert_eq!(same.count(), 1, "{eid:?} is committed twice");
            }
        }
    }

    /// Advances the time to the next event.
    pub(crate) fn step(&mut self) {
        let event_ms = self.events.keys().next().map_or(u64::MAX, |key| key.0);
        let deadlines = self
            .nodes
            .iter()
            .filter_map(|(sid, node)| Some((node.member.as_ref()?.deadline_ms(), *sid)));
        let deadline = deadlines.min();
        if let Some((ms, sid)) = deadline
            && ms < event_ms
        {
            self.now_ms = self.now_ms.max(ms);
            self.input(sid, Input::Time);
            return;
        }
        let Some((key, (to, starts, event))) = self.events.pop_first() else {
            // No process is running.
            self.now_ms += 10;
            return;
        };
        self.now_ms = self.now_ms.max(key.0);
        if self.nodes[&to].starts != starts {
            return;
        }
        let input = match event {
            Event::Message(from, message) => Input::Peer { from, message },
            Event::Storage(reply) => {
                if let StorageReply::Rewrite(_, Ok(RewriteStage::Lasting) | Err(_)) = reply {
                    let node = self.nodes.get_mut(&to).expect("a server");
                    node.has_snapshot = false;
                }
                Input::Storage(reply)
            }
            Event::Database(request) => Input::Database(request),
            Event::Other(input) => input,
        };
        self.input(to, input);
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while self.now_ms < end_ms {
            self.step();
        }
    }

    pub(crate) fn run_until(
        &mut self,
        what: &str,
        limit_ms: u64,
        condition: impl Fn(&Cluster) -> bool,
    ) {
        let end_ms = self.now_ms + limit_ms;
        while !condition(self) {
            assert!(
                self.now_ms < end_ms,
                "no {what} after {limit_ms} ms:\n{}",
                self.describe()
            );
            self.step();
        }
    }

    /// The member whose database executes, in the highest term.
    pub(crate) fn leader(&self) -> Option<Sid> {
        let live = self.nodes.iter().filter(|(_, node)| node.member.is_some());
        let leading = live.filter_map(|(sid, node)| Some((node.replica.leads?, *sid)));
        leading.max().map(|(_, sid)| sid)
    }

    pub(crate) fn await_leader(&mut self) -> Sid {
        self.run_until("leader", 30_000, |cluster| cluster.leader().is_some());
        self.leader().expect("a leader")
    }

    /// Waits until all running members have applied the same entries.
    pub(crate) fn await_equal(&mut self) {
        self.run_until("agreement", 60_000, |cluster| {
            let mut live = cluster.nodes.values().filter(|node| node.member.is_some());
            let Some(first) = live.next() else {
                return true;
            };
            let is_idle = |node: &Node| node.replica.doubt.is_empty();
            is_idle(first)
                && live.all(|node| is_idle(node) && node.replica.applied == first.replica.applied)
        });
    }

    pub(crate) fn role(&self, sid: Sid) -> Option<Role> {
        Some(self.nodes[&sid].member.as_ref()?.status(self.now_ms).role)
    }

    pub(crate) fn cut(&mut self, sid: Sid) {
        let others: Vec<Sid> = self
            .nodes
            .keys()
            .copied()
            .filter(|other| *other != sid)
            .collect();
        for other in others {
            self.cuts.insert((sid, other));
            self.cuts.insert((other, sid));
        }
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (sid, node) in &self.nodes {
            let status = node
                .member
                .as_ref()
                .map(|member| member.status(self.now_ms));
            let lines: Vec<&String> = node
                .lines
                .iter()
                .rev()
                .take(8)
                .map(|line| &line.1)
                .collect();
            let replica = (node.replica.leads, node.replica.follows, node.replica.index);
            text += &format!("{sid}: {replica:?} {status:#?}\n{lines:#?}\n");
        }
        text
    }
}

/// The process's exit need not wait for a member that has left.
fn assert_ends_at_once(member: &mut Member, now_ms: u64) {
    let (token, command) = (CommandToken(u64::MAX), Command::Shutdown);
    member.handle(now_ms, Input::Command { token, command });
    let mut outputs = std::iter::from_fn(|| member.next_output());
    let is_done = |output: Output| matches!(output, Output::CommandDone(it, Ok(_)) if it == token);
    assert!(outputs.any(is_done));
}
