//! Transactions in doubt that an installed snapshot may contain: the answers of the other members
//! of the fake cluster, and plays.

use std::collections::BTreeSet;

use corvid_consensus::database::{Finding, MemberEvent};
use corvid_log::cluster::{Eid, Index};
use corvid_monitor::SessionId;
use corvid_service::message::{Event, ToDatabase};

use crate::cluster::{Cluster, FIRST};

/// A search for entries after the first index, up to the second.
pub(crate) struct Search {
    after: Index,
    through: Index,
    ids: Vec<Eid>,
}

impl Search {
    pub(crate) fn new(after: Index, through: Index, ids: Vec<Eid>) -> Search {
        Search {
            after,
            through,
            ids,
        }
    }
}

/// Number of answers of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) committed: usize,
    pub(crate) absent: usize,
    pub(crate) unknown: usize,
}

impl Cluster {
    /// The other members answer a search. In some cases a member that has not seen all entries
    /// answers first. Returns false if there is no search.
    pub(crate) fn carry_findings(&mut self, node: usize) -> bool {
        if self.nodes[node].is_cut {
            return false;
        }
        let Some(search) = self.nodes[node].search.take() else {
            return false;
        };
        let at = |index: Index| usize::try_from(index.0 - FIRST).expect("few");
        let entries = &self.log[at(search.after)..at(search.through)];
        let known: BTreeSet<Eid> = entries
            .iter()
            .filter_map(|entry| entry.data.as_ref().map(|(eid, _)| *eid))
            .collect();
        let is_partial = self.dice.below(3) == 0;
        let mut findings = Vec::new();
        for id in &search.ids {
            let is_committed = known.contains(id);
            if is_partial {
                findings.extend(is_committed.then_some((*id, Finding::Committed)));
                continue;
            }
            let is_lost = self.loss > 0 && self.dice.below(4 * self.loss) == 0;
            let outcome = self.outcomes.get(id).filter(|_| !is_lost).cloned();
            let has_outcome = outcome.is_some();
            if let Some(outcome) = outcome {
                let event = MemberEvent::Outcome { id: *id, outcome };
                self.nodes[node].inbox.push_back(ToDatabase::Member(event));
            }
            if is_committed {
                self.findings.committed += 1;
                findings.push((*id, Finding::Committed));
            } else if !is_lost && !self.is_forgetful {
                self.findings.absent += 1;
                findings.push((*id, Finding::Absent));
            }
            if !has_outcome {
                self.findings.unknown += 1;
                findings.push((*id, Finding::Unknown));
            }
        }
        let through = search.through;
        if is_partial {
            self.nodes[node].search = Some(search);
        }
        let found = MemberEvent::Found { through, findings };
        self.nodes[node].inbox.push_back(ToDatabase::Member(found));
        true
    }

    /// A member that was cut off installs another member's snapshot.
    fn install_from(&mut self, node: usize, from: usize) {
        let installed = self.snapshot_of(from);
        self.install(node, installed);
    }
}

/// Adds one to the counter of row `a` and a number to its set, and reads the counter.
fn add(number: u64) -> String {
    format!(
        r#"{{"op":"mutate","table":"T","where":[["k","==","a"]],"mutations":[["n","+=",1],["s","insert",{number}]]}},{SELECT}"#
    )
}

const SELECT: &str = r#"{"op":"select","table":"T","where":[["k","==","a"]],"columns":["n"]}"#;

/// Changes nothing.
const NOTHING: &str = r#"{"op":"delete","table":"T","where":[["k","==","none"]]}"#;

const NO_CHANGE: &str = "{\"error\":null,\"id\":1,\"result\":[{\"count\":0}]}\n";

fn added(id: u64, counter: u64) -> String {
    format!(
        "{{\"error\":null,\"id\":{id},\"result\":[{{\"count\":1}},{{\"rows\":[{{\"n\":{counter}}}]}}]}}\n"
    )
}

fn selected(id: u64, counter: u64) -> String {
    format!("{{\"error\":null,\"id\":{id},\"result\":[{{\"rows\":[{{\"n\":{counter}}}]}}]}}\n")
}

fn is_disconnected(cluster: &Cluster, session: SessionId) -> bool {
    let node = cluster.sessions[&session].node;
    let mut events = cluster.nodes[node].events.iter();
    events.any(|event| matches!(event, Event::OutcomeUnknown(unknown, _) if *unknown == session))
}

/// Commits of other clients, on member 0.
fn go_on(cluster: &mut Cluster) {
    let other = cluster.connect(0);
    let first = 100 * (1 + cluster.committed_numbers().len() as u64 / 3);
    for number in first..first + 3 {
        cluster.transact(other, number, &add(number));
    }
    cluster.run();
}

/// Member 2 has forwarded a client's transactions to member 0, and is cut off before it learns
/// their outcome.
fn forwarded(seed: u64, transactions: &[&str]) -> (Cluster, SessionId) {
    let mut cluster = Cluster::led(seed, 3, 0);
    let client = cluster.connect(2);
    for (number, operations) in transactions.iter().enumerate() {
        cluster.transact(client, number as u64 + 1, operations);
    }
    cluster.execute(2, 9);
    cluster.carry_forwards(2);
    cluster.nodes[2].is_cut = true;
    cluster.run();
    assert_eq!(cluster.take(client), "");
    (cluster, client)
}

#[test]
fn a_transaction_that_a_snapshot_contains_gets_the_reply_of_the_leader() {
    let (mut cluster, client) = forwarded(41, &[&add(1), &add(2)]);
    go_on(&mut cluster);
    cluster.install_from(2, 0);
    cluster.transact(client, 3, SELECT);
    cluster.run();
    let told = cluster.take(client);
    assert_eq!(told, added(1, 1) + &added(2, 2) + &selected(3, 5));
    cluster.check_equal();
    assert!(cluster.nodes[2].pump.service().is_idle());
}

#[test]
fn a_transaction_that_a_snapshot_does_not_contain_is_executed_once() {
    let mut cluster = Cluster::led(42, 3, 0);
    let client = cluster.connect(2);
    cluster.transact(client, 1, &add(1));
    cluster.execute(2, 9);
    // The message is lost with the leader.
    cluster.nodes[2].is_cut = true;
    cluster.elect(1);
    cluster.announce();
    go_on(&mut cluster);
    cluster.install_from(2, 0);
    cluster.announce();
    cluster.run();
    assert_eq!(cluster.take(client), added(1, 4));
    cluster.check_equal();
    let happened = cluster.committed_numbers();
    assert_eq!(happened, BTreeSet::from([1, 100, 101, 102]));
}

#[test]
fn a_leader_that_was_deposed_finds_its_own_commits_in_a_snapshot() {
    let mut cluster = Cluster::led(43, 3, 2);
    let (client, reader) = (cluster.connect(2), cluster.connect(2));
    cluster.transact(client, 1, &add(1));
    cluster.transact(client, 2, SELECT);
    cluster.transact(reader, 1, NOTHING);
    cluster.execute(2, 9);
    cluster.committed = cluster.log.len();
    cluster.nodes[2].is_cut = true;
    cluster.elect(0);
    cluster.announce();
    go_on(&mut cluster);
    cluster.nodes[2].is_cut = false;
    cluster.tell_follows(2);
    cluster.execute(2, 9);
    assert_eq!(cluster.take(client) + &cluster.take(reader), "", "in doubt");
    cluster.install_from(2, 0);
    cluster.run();
    assert_eq!(cluster.take(client), added(1, 1) + &selected(2, 1));
    assert_eq!(cluster.take(reader), NO_CHANGE);
    cluster.check_equal();
}

#[test]
fn a_member_that_leads_before_it_knows_executes_nothing_twice() {
    let (mut cluster, client) = forwarded(44, &[&add(1), &add(2)]);
    go_on(&mut cluster);
    cluster.has_time = false;
    cluster.install_from(2, 0);
    while cluster.carry_job(2) {
        cluster.execute(2, 9);
    }
    cluster.lead(2);
    cluster.transact(client, 3, SELECT);
    cluster.run();
    assert_eq!(cluster.take(client), "", "it is sought");
    cluster.has_time = true;
    cluster.run();
    let told = cluster.take(client);
    assert_eq!(told, added(1, 1) + &added(2, 2) + &selected(3, 5));
    cluster.check_equal();
}

#[test]
fn a_client_is_disconnected_when_nobody_knows_whether_its_transaction_is_in_a_snapshot() {
    for transactions in [&[&*add(1)][..], &[&add(1), SELECT], &[&add(1), &add(2)]] {
        let (mut cluster, client) = forwarded(45, transactions);
        let reader = cluster.connect(2);
        go_on(&mut cluster);
        cluster.outcomes.clear();
        cluster.is_forgetful = true;
        cluster.install_from(2, 0);
        cluster.run();
        cluster.transact(reader, 1, SELECT);
        cluster.run();
        let all = transactions.iter().filter(|it| **it != SELECT).count() as u64;
        assert_eq!(cluster.take(reader), selected(1, 3 + all));
        assert_eq!(cluster.take(client), "");
        assert!(is_disconnected(&cluster, client) && !is_disconnected(&cluster, reader));
        cluster.disconnect(client);
        cluster.run();
        assert!(cluster.nodes[2].pump.service().is_idle());
        cluster.check_equal();
    }
}

#[test]
fn a_transaction_without_a_change_is_not_executed_behind_a_later_one_of_its_session() {
    for is_known in [true, false] {
        let (mut cluster, client) = forwarded(46, &[NOTHING, &add(1)]);
        go_on(&mut cluster);
        if !is_known {
            let changes = |outcome: &corvid_consensus::database::ForwardOutcome| {
                matches!(
                    outcome,
                    corvid_consensus::database::ForwardOutcome::Proposed(_)
                )
            };
            cluster.outcomes.retain(|_, outcome| changes(outcome));
        }
        cluster.install_from(2, 0);
        cluster.run();
        let told = cluster.take(client);
        if is_known {
            assert_eq!(told, NO_CHANGE.to_owned() + &added(2, 1));
        } else {
            assert_eq!(told, "");
        }
        assert_eq!(is_disconnected(&cluster, client), !is_known);
        cluster.check_equal();
    }
}

#[test]
fn a_second_snapshot_is_searched_from_where_the_first_search_began() {
    let (mut cluster, client) = forwarded(47, &[&add(1)]);
    go_on(&mut cluster);
    cluster.has_time = false;
    cluster.install_from(2, 0);
    while cluster.carry_job(2) {
        cluster.execute(2, 9);
    }
    cluster.nodes[2].is_cut = true;
    go_on(&mut cluster);
    cluster.install_from(2, 0);
    cluster.has_time = true;
    cluster.run();
    assert_eq!(cluster.take(client), added(1, 1));
    cluster.check_equal();
}
