//! The follower's and the leader's side, given events and asked for actions.

use std::sync::Arc as StdArc;

use corvid_consensus::database::{ForwardOutcome, MemberEvent, MemberRequest};
use corvid_data::{Arc, HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::Database;
use corvid_json::Value;
use corvid_log::cluster::{Eid, Index, Sid, Term};
use corvid_monitor::SessionId;

use super::*;
use crate::barrier::BarrierQueue;
use crate::executor::OnceState;
use crate::message::{DatabaseId, DatabaseMethod, SessionInfo};
use crate::observers::AuditEntries;
use crate::schema_epoch::{SchemaEpoch, SchemaEpochs};

/// UUIDs that differ.
struct Counted(u8);

impl UuidSource for Counted {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        Uuid([self.0; 16])
    }
}

/// A clustered database, and the parts that it uses.
struct Run {
    cluster: Clustered,
    database: Database,
    environment: Environment,
    once: OnceState,
    outputs: Outputs,
    barrier_queue: BarrierQueue,
    audit: AuditEntries,
}

impl Run {
    fn new(cluster: Clustered) -> Run {
        let json = Value::parse(br#"{"name":"D","version":"1.0.0","tables":{}}"#).expect("JSON");
        let schema = Arc::new(Schema::from_json(&json).expect("a schema"));
        Run {
            cluster,
            database: Database::new(schema, HashSeed::FIXED),
            environment: Environment::new(
                StdArc::default(),
                SchemaEpochs::default(),
                Box::new(Counted(0)),
            ),
            once: OnceState::new(Uuid::ZERO),
            outputs: Outputs::new(DatabaseId(0)),
            barrier_queue: BarrierQueue::default(),
            audit: AuditEntries::default(),
        }
    }

    /// A follower with a leader.
    fn follower() -> Run {
        let mut run = Run::new(Clustered::new(Index(1), Eid(Uuid::ZERO)));
        let (term, leader) = (Term(2), Some(Sid(Uuid([9; 16]))));
        run.handle(MemberEvent::Follows { term, leader });
        assert!(run.next().is_none());
        run
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Clustered, &mut Parts<'_>) -> T) -> T {
        let mut parts = Parts {
            now: Now::default(),
            database: &mut self.database,
            environment: &mut self.environment,
            once: &mut self.once,
            outputs: &mut self.outputs,
            barrier_queue: &mut self.barrier_queue,
            audit: &self.audit,
            is_removed: false,
            epoch: SchemaEpoch::default(),
            is_converting: false,
            held_bytes_max: usize::MAX,
            is_diff: true,
            names_clients: false,
        };
        act(&mut self.cluster, &mut parts)
    }

    fn handle(&mut self, event: MemberEvent) {
        let input = ToDatabase::Member(event);
        self.with(|cluster, parts| cluster.handle(input, parts));
    }

    fn next(&mut self) -> Option<Action> {
        self.with(Clustered::next)
    }

    /// The text of the next reply, which leaves.
    fn next_reply(&mut self) -> Option<String> {
        let Action::Answer(reply) = self.next()? else {
            panic!("only replies are due");
        };
        let turn = reply.turn.expect("it is in flight");
        self.with(|cluster, parts| cluster.upstream.forwarding.forget(turn, parts));
        match reply.answer {
            Answer::Result(result) => Some(String::from_utf8(result).expect("UTF-8")),
            _ => panic!("a result"),
        }
    }

    /// Forwards a transaction of this session.
    fn forward(&mut self, session: u64) {
        let params = br#"["D",{"op":"insert","table":"T","row":{}}]"#;
        let request = Box::new(Request {
            session: SessionId(session),
            info: StdArc::new(SessionInfo::new(false, String::new(), None)),
            arrived_ms: 0,
            stamp: 0,
            id: Box::default(),
            method: DatabaseMethod::Transact,
            frame: params.to_vec(),
            params: 0..params.len(),
            seqno: None,
            blocked: false,
            foreign_monitors: Vec::new(),
            once: None,
            client: None,
        });
        self.with(|cluster, parts| cluster.upstream.forward(request, parts));
    }

    /// The ids of the transactions that the leader is to execute.
    fn forwarded(&mut self) -> Vec<Eid> {
        let requests = self.cluster.take_requests().into_iter();
        let ids = requests.map(|request| match request {
            MemberRequest::Forward { term, forward } => {
                assert_eq!(term, Term(2));
                forward.id
            }
            other => panic!("{other:?}"),
        });
        ids.collect()
    }

    /// How many requests are in flight.
    fn in_flight(&self) -> usize {
        self.cluster.upstream.forwarding.requests_in_flight()
    }

    /// The leader has executed a transaction without a commit.
    fn unchanged(&mut self, id: Eid, result: &'static str) {
        let outcome = ForwardOutcome::Unchanged(Index(1), Bytes::from_static(result.as_bytes()));
        self.handle(MemberEvent::Outcome { id, outcome });
    }
}

#[test]
fn replies_of_a_session_leave_in_the_order_of_its_requests() {
    let mut run = Run::follower();
    run.forward(1);
    run.forward(1);
    run.forward(2);
    let ids = run.forwarded();
    assert_eq!(ids.len(), 3, "none waits for another");
    run.unchanged(ids[1], "[1]");
    assert!(run.next().is_none(), "the first one has no outcome");
    run.unchanged(ids[2], "[2]");
    assert_eq!(
        run.next_reply().as_deref(),
        Some("[2]"),
        "of another session"
    );
    run.unchanged(ids[0], "[0]");
    assert_eq!(run.next_reply().as_deref(), Some("[0]"));
    assert_eq!(run.next_reply().as_deref(), Some("[1]"));
    assert!(run.next().is_none() && run.in_flight() == 0);
}

#[test]
fn requests_wait_for_a_leader() {
    let mut run = Run::new(Clustered::new(Index(1), Eid(Uuid::ZERO)));
    run.forward(1);
    assert!(run.forwarded().is_empty());
    let (term, leader) = (Term(2), Some(Sid(Uuid([9; 16]))));
    run.handle(MemberEvent::Follows { term, leader });
    assert!(run.next().is_none());
    assert_eq!(run.forwarded().len(), 1);
}

#[test]
fn a_leader_executes_what_is_in_flight() {
    let mut run = Run::follower();
    run.forward(1);
    run.handle(MemberEvent::Leads { term: Term(3) });
    assert!(matches!(run.next(), Some(Action::Execute(_))));
    assert!(run.next().is_none() && run.in_flight() == 0);
    assert_eq!(run.cluster.led_term(), Some(Term(3)));
}

#[test]
fn a_leadership_is_given_up_before_another_one_begins() {
    let mut run = Run::new(Clustered::new(Index(1), Eid(Uuid::ZERO)));
    run.handle(MemberEvent::Leads { term: Term(3) });
    assert!(run.next().is_none());
    run.handle(MemberEvent::Leads { term: Term(5) });
    let Some(Action::GiveUpLeadership(Term(3), role)) = run.next() else {
        panic!("the earlier leadership is given up first");
    };
    assert_eq!(role, Role::Follows(Term(5), None));
    assert_eq!(run.cluster.led_term(), Some(Term(3)), "until it is undone");
    assert!(run.cluster.give_up_leadership(role).is_empty());
    assert_eq!(run.cluster.led_term(), None);
    assert!(run.next().is_none());
    assert_eq!(run.cluster.led_term(), Some(Term(5)));
}
