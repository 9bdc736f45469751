//! One member, whose peers and disk are the test's: messages of one turn, which a cluster of members seldom has.

use corvid_consensus::member::{Command, CommandToken, Role};
use corvid_consensus::message::PeerMessage;
use corvid_consensus::{
    EntryBody, Input, KeptEntries, Member, MemberEvent, MemberRequest, Output, Settings,
};
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Index, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, StorageReply, StorageRequest};

use crate::cluster::{address, sid};
use crate::disk::Disk;

/// Long enough for an election, in steps of [`STEP_MS`].
const STEPS: u32 = 200;
const STEP_MS: u64 = 50;

/// See the module.
struct Solitary {
    member: Member,
    disk: Disk,
    /// Requests are kept and not answered.
    is_slow: bool,
    kept: Vec<StorageRequest>,
    sent: Vec<(Sid, PeerMessage)>,
    /// The database was told that it leads.
    leads: Option<Term>,
    now_ms: u64,
}

fn servers(count: u8) -> Servers {
    let first = Servers::one(sid(1), &address(sid(1)));
    let others = (2..=count).map(sid);
    others.fold(first, |list, sid| list.with(sid, &address(sid)))
}

impl Solitary {
    /// Server 1 of so many.
    fn new(count: u8) -> Solitary {
        let settings = Settings {
            sid: sid(1),
            name: "T".to_owned(),
            address: address(sid(1)),
            kept: KeptEntries::DEFAULT,
        };
        let cid = Cid::new(Uuid([7; 16])).expect("an id");
        let disk = Disk::new(sid(1), cid, &servers(count));
        let mut solitary = Solitary {
            member: Member::new(settings, disk.recover(), 0, 1),
            disk,
            is_slow: false,
            kept: Vec::new(),
            sent: Vec::new(),
            leads: None,
            now_ms: 0,
        };
        let opening = StorageReply::Appended(LogPosition::OPENING, Ok(()));
        solitary.handle(Input::Storage(opening));
        solitary
    }

    fn handle(&mut self, input: Input) {
        self.member.handle(self.now_ms, input);
        while let Some(output) = self.member.next_output() {
            match output {
                Output::Store(requests) => {
                    self.kept.extend(requests);
                    if !self.is_slow {
                        self.store();
                    }
                }
                Output::Send { to, message } => self.sent.push((to, message)),
                Output::Database(event) => self.event(&event),
                _ => {}
            }
        }
    }

    /// The database applies at once.
    fn event(&mut self, event: &MemberEvent) {
        match event {
            MemberEvent::Leads { term } => self.leads = Some(*term),
            MemberEvent::Follows { .. } => self.leads = None,
            MemberEvent::Committed { through, .. } => {
                let applied = MemberRequest::Applied(*through);
                self.member.handle(self.now_ms, Input::Database(applied));
            }
            _ => {}
        }
    }

    /// The disk carries out and answers what was kept.
    fn store(&mut self) {
        for request in std::mem::take(&mut self.kept) {
            for reply in self.disk.request(request) {
                self.member.handle(self.now_ms, Input::Storage(reply));
            }
        }
    }

    /// The disk is quick again.
    fn recover(&mut self) {
        self.is_slow = false;
        self.store();
        self.handle(Input::Time);
    }

    fn hear(&mut self, from: u8, message: PeerMessage) {
        let from = sid(from);
        self.handle(Input::Peer { from, message });
    }

    fn wait(&mut self) {
        self.now_ms += STEP_MS;
        self.handle(Input::Time);
    }

    /// The messages for this server since the last call, and those for others, which are dropped.
    fn take(&mut self, to: u8) -> Vec<PeerMessage> {
        let sent = std::mem::take(&mut self.sent).into_iter();
        sent.filter_map(|(receiver, message)| (receiver == sid(to)).then_some(message))
            .collect()
    }

    /// Server 2 agrees to everything, until this member leads. Returns the term.
    fn lead(&mut self) -> Term {
        for _ in 0..STEPS {
            self.wait();
            while self.sent.iter().any(|(to, _)| *to == sid(2)) {
                for message in self.take(2) {
                    self.agree(message);
                }
            }
            if let Some(term) = self.leads {
                return term;
            }
        }
        panic!("no leader: {:?}", self.member.status(self.now_ms));
    }

    fn commit(&self) -> Index {
        self.member.status(self.now_ms).commit
    }

    /// Server 2 answers.
    fn agree(&mut self, message: PeerMessage) {
        let commit = Index(1);
        let answer = match message {
            PeerMessage::Vote {
                term, is_prevote, ..
            } => PeerMessage::VoteReply {
                term,
                is_prevote,
                is_granted: true,
                commit,
                commit_term: Term(1),
            },
            PeerMessage::Append {
                term,
                prev_index,
                entries,
                ..
            } => PeerMessage::AppendReply {
                term,
                index: Index(prev_index.0 + entries.len() as u64),
                commit,
                rejection: None,
            },
            PeerMessage::Heartbeat { term, .. } => PeerMessage::HeartbeatReply { term, commit },
            _ => return,
        };
        self.hear(2, answer);
    }
}

fn is_of_leader(message: &PeerMessage) -> bool {
    matches!(
        message,
        PeerMessage::Append { .. } | PeerMessage::Heartbeat { .. }
    )
}

/// The voters of its election would be those of the list before. Its requests leave when the list is stored, so the role tells.
#[test]
fn a_member_stands_for_no_election_while_a_committed_list_is_not_stored() {
    let mut member = Solitary::new(3);
    let (term, commit) = (Term(2), Index(1));
    member.hear(2, PeerMessage::Heartbeat { term, commit });
    member.is_slow = true;
    let append = PeerMessage::Append {
        term,
        prev_index: Index(1),
        prev_term: Term(1),
        commit: Index(2),
        entries: vec![(term, EntryBody::servers(&servers(4)))],
    };
    member.hear(2, append);
    assert!(!member.kept.is_empty());
    for _ in 0..STEPS {
        member.wait();
        assert_eq!(member.member.status(member.now_ms).role, Role::Follower);
    }
    // Nothing else keeps it from standing, and the new server has a vote.
    member.recover();
    (0..STEPS).for_each(|_| member.wait());
    let is_vote = |it: &PeerMessage| matches!(it, PeerMessage::Vote { .. });
    assert!(member.take(4).iter().any(is_vote));
}

#[test]
fn a_server_that_was_being_added_gets_nothing_from_the_same_leader_in_a_later_term() {
    let mut member = Solitary::new(3);
    let term = member.lead();
    let add = PeerMessage::AddServer {
        address: address(sid(4)),
        name: "T".to_owned(),
    };
    member.hear(4, add);
    (0..10).for_each(|_| member.wait());
    assert!(member.take(4).iter().any(is_of_leader));
    let (term, commit) = (Term(term.0 + 1), Index(1));
    member.hear(2, PeerMessage::Heartbeat { term, commit });
    let answers = member.take(4);
    let is_refusal = |it: &PeerMessage| {
        matches!(
            it,
            PeerMessage::AddServerReply {
                is_success: false,
                ..
            }
        )
    };
    assert!(answers.iter().any(is_refusal), "{answers:?}");
    assert!(member.lead() > term);
    (0..10).for_each(|_| member.wait());
    assert_eq!(member.take(4), []);
}

/// The removed server would go, and this member, which a crash makes forget the commit, would wait for its vote for ever.
#[test]
fn a_removed_server_hears_nothing_of_it_before_the_commit_is_stored() {
    let mut member = Solitary::new(2);
    let term = member.lead();
    let before = member.commit();
    let (token, command) = (CommandToken(1), Command::Kick(address(sid(2))));
    member.handle(Input::Command { token, command });
    let list = before.next();
    // After a lost connection the leader sends one append at a time. With the answer to it the next one leaves, which tells the commit.
    member.handle(Input::PeerUp(sid(2)));
    let commit = Index(1);
    member.hear(2, PeerMessage::HeartbeatReply { term, commit });
    let sent = member.take(2);
    let has_entries =
        |it: &PeerMessage| matches!(it, PeerMessage::Append { entries, .. } if !entries.is_empty());
    assert!(sent.iter().any(has_entries), "{sent:?}");
    member.is_slow = true;
    let answer = PeerMessage::AppendReply {
        term,
        index: list,
        commit,
        rejection: None,
    };
    member.hear(2, answer);
    assert!(member.commit() >= list && !member.kept.is_empty());
    assert_eq!(member.take(2), []);
    member.recover();
    let sent = member.take(2);
    let tells =
        |it: &PeerMessage| matches!(it, PeerMessage::Append { commit, .. } if *commit >= list);
    assert!(sent.iter().any(tells), "{sent:?}");
}
