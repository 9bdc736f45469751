//! One member whose peers and disk belong to the test: combinations of messages in one turn that a
//! cluster seldom produces.

use corvid_consensus::member::{Command, CommandToken, Role, ServerRow};
use corvid_consensus::message::{PeerMessage, Rejection};
use corvid_consensus::{
    EntryBody, Input, KeptEntries, Member, MemberEvent, MemberRequest, Output, Proposal, Settings,
};
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Eid, Index, Servers, Sid, Term};
use corvid_log::storage::{LogPosition, StorageReply, StorageRequest};

use crate::cluster::{address, sid};
use crate::disk::Disk;

/// Long enough for an election, in steps of [`STEP_MS`].
const STEPS: u32 = 200;
const STEP_MS: u64 = 50;

/// One member, with its disk and its database.
struct Solitary {
    member: Member,
    disk: Disk,
    /// Whether requests are held back and not answered.
    is_slow: bool,
    kept: Vec<StorageRequest>,
    sent: Vec<(Sid, PeerMessage)>,
    /// The term in which the database was told that it leads.
    leads: Option<Term>,
    /// Whether the database applies nothing at present.
    is_database_slow: bool,
    /// The database has not applied the entries up to this one.
    unapplied: Option<Index>,
    /// All rows for `_Server`.
    rows: Vec<ServerRow>,
    now_ms: u64,
}

fn servers(count: u8) -> Servers {
    let first = Servers::one(sid(1), &address(sid(1)));
    let others = (2..=count).map(sid);
    others.fold(first, |list, sid| list.with(sid, &address(sid)))
}

impl Solitary {
    /// Server 1 of this many.
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
            is_database_slow: false,
            unapplied: None,
            rows: Vec::new(),
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
                Output::Row(row) => self.rows.push(row),
                _ => {}
            }
        }
    }

    /// Delivers an event to the database, which applies at once.
    fn event(&mut self, event: &MemberEvent) {
        match event {
            MemberEvent::Leads { term } => self.leads = Some(*term),
            MemberEvent::Follows { .. } => self.leads = None,
            MemberEvent::Committed { through, .. } if self.is_database_slow => {
                self.unapplied = Some(*through);
            }
            MemberEvent::Committed { through, .. } => {
                let applied = MemberRequest::Applied(*through);
                self.member.handle(self.now_ms, Input::Database(applied));
            }
            _ => {}
        }
    }

    /// The disk executes and answers the requests that were held back.
    fn store(&mut self) {
        for request in std::mem::take(&mut self.kept) {
            for reply in self.disk.request(request) {
                self.member.handle(self.now_ms, Input::Storage(reply));
            }
        }
    }

    /// The database applies what it lacks.
    fn apply(&mut self) {
        self.is_database_slow = false;
        if let Some(through) = self.unapplied.take() {
            self.handle(Input::Database(MemberRequest::Applied(through)));
        }
    }

    fn is_connected(&self) -> bool {
        self.rows.last().is_some_and(|row| row.is_connected)
    }

    /// The disk becomes quick again.
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

    /// Takes the messages for this server since the last call. Messages for others are dropped.
    fn take(&mut self, to: u8) -> Vec<PeerMessage> {
        let sent = std::mem::take(&mut self.sent).into_iter();
        sent.filter_map(|(receiver, message)| (receiver == sid(to)).then_some(message))
            .collect()
    }

    /// Server 2 agrees to everything until this member leads. Returns the term.
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

    /// Server 2 answers a message.
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

/// The voters of its election would be those of the previous list. Its requests leave only when the
/// list is stored, so look at the role.
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
    // Nothing else keeps it from standing for election, and the new server has a vote.
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

/// The removed server would leave. This member, if a crash made it forget the commit, would wait
/// for that server's vote forever.
#[test]
fn a_removed_server_hears_nothing_of_it_before_the_commit_is_stored() {
    let mut member = Solitary::new(2);
    let term = member.lead();
    let before = member.commit();
    let (token, command) = (CommandToken(1), Command::Kick(address(sid(2))));
    member.handle(Input::Command { token, command });
    let list = before.next();
    // After a lost connection the leader sends one append at a time. The answer to it releases the
    // next one, which announces the commit.
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

fn append(term: Term, prev: (u64, u64), count: u64, commit: u64) -> PeerMessage {
    PeerMessage::Append {
        term,
        prev_index: Index(prev.0),
        prev_term: Term(prev.1),
        commit: Index(commit),
        entries: (0..count).map(|_| (term, EntryBody::empty())).collect(),
    }
}

fn answers(sent: Vec<PeerMessage>) -> Vec<(u64, Option<(u64, u64)>)> {
    let answers = sent.into_iter().filter_map(|message| match message {
        PeerMessage::AppendReply {
            index, rejection, ..
        } => {
            let hint = rejection.map(|it| (it.hint.0, it.hint_term.0));
            Some((index.0, hint))
        }
        _ => None,
    });
    answers.collect()
}

/// The library alone would acknowledge everything committed, including entries that the message did
/// not contain.
#[test]
fn a_member_acknowledges_no_entry_that_the_message_did_not_have() {
    let mut member = Solitary::new(3);
    let term = Term(2);
    member.hear(2, append(term, (1, 1), 9, 10));
    member.wait();
    assert_eq!(member.commit(), Index(10));
    assert_eq!(answers(member.take(2)), [(10, None)]);
    // The leader resends what it does not know to have arrived.
    for (message, answer) in [
        (append(term, (1, 1), 3, 10), (1, Some((10, 2)))),
        (append(term, (4, 2), 0, 10), (4, Some((10, 2)))),
        (append(term, (4, 2), 6, 10), (10, None)),
        (append(term, (10, 2), 0, 10), (10, None)),
        (append(term, (4, 2), 7, 10), (10, None)),
        (append(term, (10, 2), 1, 10), (11, None)),
    ] {
        member.hear(2, message.clone());
        assert_eq!(answers(member.take(2)), [answer], "{message:?}");
    }
}

#[test]
fn a_leader_counts_no_acknowledgement_of_what_it_has_not_sent() {
    let mut member = Solitary::new(3);
    let term = member.lead();
    (0..10).for_each(|_| member.wait());
    let before = member.commit();
    member.sent.clear();
    // Server 3 has answered nothing, so it is sent one message at a time. Server 2 gets the new
    // entry.
    let proposals = vec![Proposal {
        eid: Eid(Uuid([5; 16])),
        data: bytes::Bytes::from_static(b"[null,{}]"),
        result: None,
    }];
    member.handle(Input::Database(MemberRequest::Propose { term, proposals }));
    let new = before.next();
    let has_new = |sent: &[(Sid, PeerMessage)], to: u8| {
        sent.iter().any(|(receiver, message)| {
            *receiver == sid(to)
                && matches!(message, PeerMessage::Append { prev_index, entries, .. }
                    if prev_index.0 + entries.len() as u64 >= new.0)
        })
    };
    assert!(has_new(&member.sent, 2) && !has_new(&member.sent, 3));
    let acknowledgement = PeerMessage::AppendReply {
        term,
        index: new,
        commit: before,
        rejection: None,
    };
    member.hear(3, acknowledgement.clone());
    assert_eq!(member.commit(), before, "one file has it");
    member.hear(2, acknowledgement);
    assert_eq!(member.commit(), new);
}

/// The leader names the entry at the member's commit index, or its own last entry, so that the
/// member can compare.
#[test]
fn a_leader_goes_on_from_where_a_member_says_that_it_has_committed() {
    for more in [0, 30] {
        let mut member = Solitary::new(3);
        let term = member.lead();
        (0..10).for_each(|_| member.wait());
        let last = member.commit();
        member.sent.clear();
        let hint = Index(last.0 + more);
        let rejection = PeerMessage::AppendReply {
            term,
            index: Index(1),
            commit: hint,
            rejection: Some(Rejection {
                hint,
                hint_term: Term(1),
            }),
        };
        member.hear(3, rejection);
        let places = member.take(3).into_iter().filter_map(|it| match it {
            PeerMessage::Append {
                prev_index,
                prev_term,
                ..
            } => Some((prev_index, prev_term)),
            _ => None,
        });
        assert_eq!(places.collect::<Vec<_>>(), [(last, term)], "hint {hint}");
        // The member's answer acknowledged nothing.
        let status = member.member.status(member.now_ms);
        let peer = status.servers.iter().find(|it| it.sid == sid(3));
        let matched = peer.expect("a member").match_index;
        assert!(matched < Some(last), "{matched:?}");
    }
}

/// A client that connected earlier would read old contents, and would lose its session when an old
/// conversion is applied.
#[test]
fn a_member_is_connected_when_it_has_applied_what_was_committed_before() {
    let mut member = Solitary::new(3);
    let term = Term(2);
    let append = |prev: u64, prev_term, commit, entries| PeerMessage::Append {
        term,
        prev_index: Index(prev),
        prev_term,
        commit: Index(commit),
        entries,
    };
    member.is_database_slow = true;
    let commit = Index(1);
    member.hear(2, PeerMessage::Heartbeat { term, commit });
    assert!(
        !member.is_connected(),
        "a heartbeat does not tell everything"
    );
    let entries = vec![
        (Term(1), EntryBody::empty()),
        (Term(1), EntryBody::empty()),
        (term, EntryBody::empty()),
    ];
    member.hear(2, append(1, Term(1), 2, entries));
    member.apply();
    assert!(
        !member.is_connected(),
        "entry 3 may have been committed by a leader before"
    );
    member.is_database_slow = true;
    member.hear(2, append(4, term, 4, Vec::new()));
    assert!(!member.is_connected(), "its database lacks entries");
    // From then on it may lag, like any follower.
    member.apply();
    assert!(member.is_connected());
    member.is_database_slow = true;
    member.hear(2, append(4, term, 5, vec![(term, EntryBody::empty())]));
    assert!(member.is_connected());
}

#[test]
fn a_sole_member_is_connected_when_it_leads() {
    let mut member = Solitary::new(1);
    member.is_database_slow = true;
    member.is_slow = true;
    (0..3).for_each(|_| member.wait());
    member.recover();
    (0..STEPS).for_each(|_| member.wait());
    member.apply();
    member.wait();
    let rows = &member.rows;
    assert!(member.is_connected(), "{rows:?}");
    let is_early = |row: &ServerRow| row.is_connected && !row.is_leader;
    assert!(!rows.iter().any(is_early), "{rows:?}");
}

/// Otherwise a follower that has everything would not know it, and would report forever that it is
/// not connected.
#[test]
fn a_leader_without_news_tells_each_follower_the_whole_commit_index() {
    let mut member = Solitary::new(3);
    let term = member.lead();
    member.wait();
    while let message @ [_, ..] = &member.take(2)[..] {
        message.iter().cloned().for_each(|it| member.agree(it));
    }
    let commit = member.commit();
    member.handle(Input::PeerUp(sid(2)));
    member.take(2);
    let known = PeerMessage::HeartbeatReply { term, commit };
    member.hear(2, known.clone());
    let told = |sent: Vec<PeerMessage>| {
        let is_news = |it: &PeerMessage| matches!(it, PeerMessage::Append { commit: it, .. } if *it == commit);
        sent.iter().filter(|it| is_news(it)).count()
    };
    assert_eq!(told(member.take(2)), 1, "after the first answer");
    member.hear(2, known.clone());
    assert_eq!(told(member.take(2)), 0, "and then once in a while");
    let mut repeated = 0;
    for _ in 0..STEPS {
        member.wait();
        for message in member.take(2) {
            repeated += told(vec![message.clone()]);
            member.agree(message);
        }
    }
    assert!((2..20).contains(&repeated), "{repeated}");
}
