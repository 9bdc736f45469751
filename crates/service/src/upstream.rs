//! Following another server: the part of a database that members of a cluster and relays share.
//!
//! The other server is the leader of a cluster, or the source of a relay. The database passes
//! transactions on to it, and applies what it has committed.
//!
//! ```text
//! requests of sessions --> forwarding --> requests for the member, or the source
//!                            |   ^
//!          outcomes, doubt --+   | applied through
//!                            v   |
//! events, news ----------> contents --> actions of the database
//! ```
//!
//! | File | Contents |
//! |---|---|
//! | `steps.rs` | the steps that an event makes necessary, in order: the database's and the upstream's own |
//! | `forwarding.rs` | transactions of a follower's sessions: answered here, blocked here, or forwarded |
//! | `answering.rs` | their order within a session: replies, and execution here |
//! | `relaying.rs` | the differences between a relay and a follower in a cluster |
//! | `relayed_locks.rs` | locks that a relay's sessions have at its source |
//! | `in_flight.rs` | requests that depend on the other server: forwarded, in doubt, or waiting for it |
//! | `request_stage.rs` | one of them, and what is known of it |
//! | `requests.rs` | the requests of a batch for the other server |
//! | `role.rs` | whether this server leads or follows |
//! | `contents.rs` | the entries that are applied; contents that take the place of the present ones |
//! | `changes.rs` | changes of a relay's source |
//! | `execution.rs` | execution of a transaction for a client that is described |
//! | `identity.rs` | the client of a forwarded request, as access control sees it |
//! | `transaction_kind.rs` | whether a transaction may write, judged by its text |
//!
//! The upstream is given the [`Parts`] of the database that it uses, and returns [`Action`]s:
//! answer, execute, publish, replace. The database carries them out. `database/clustered.rs` has
//! the rest of a cluster's member: leading, entries, snapshots that others know more about. Crate
//! `corvid-consensus` is the member itself, and knows nothing of relays; `relay.rs` is the
//! conversation with a relay's source.
//!
//! Invariants: while the server follows, no commit is pending, so the tables are those after the
//! last applied entry. Each transaction of a session that stays is executed exactly once. The
//! upstream knows no queue of pending replies, no monitors and no file.

mod answering;
mod changes;
mod contents;
mod execution;
mod forwarding;
mod identity;
mod in_flight;
mod relayed_locks;
mod relaying;
mod request_stage;
mod requests;
mod role;
mod steps;
mod transaction_kind;

use corvid_consensus::database::{ForwardOutcome, MemberRequest};
use corvid_data::{Arc, Delta};
use corvid_engine::Database;
use corvid_log::cluster::{Eid, Index, Term};

use crate::barrier::{Activity, BarrierQueue};
use crate::environment::Environment;
use crate::executor::OnceState;
use crate::job::garbage::Garbage;
use crate::job::{JobNumber, JobResult};
use crate::message::{
    InstalledSnapshot, Now, RELAY_TERM, Request, SessionInfo, SourceNews, SourceRequest, ToDatabase,
};
use crate::observers::AuditEntries;
use crate::replies::{Answer, Outputs};
use crate::schema_epoch::SchemaEpoch;
use requests::Requests;
use steps::Step;

pub(crate) use contents::{Contents, Source, plan_contents};
pub(crate) use execution::execute_for;
pub(crate) use forwarding::{Forwarding, is_sent_again};
pub(crate) use identity::identity_of;
pub(crate) use in_flight::{InFlight, Number};
pub(crate) use request_stage::{Entry, Stage, Turn};
pub(crate) use role::Role;
pub(crate) use steps::{Action, EntryBatch, MemberTask, Reply, Steps, Task};
pub(crate) use transaction_kind::TransactionKind;

/// The parts of the database that following another server uses.
pub(crate) struct Parts<'a> {
    pub(crate) now: Now,
    pub(crate) database: &'a mut Database,
    pub(crate) environment: &'a mut Environment,
    pub(crate) once: &'a mut OnceState,
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) barrier_queue: &'a mut BarrierQueue,
    pub(crate) audit: &'a AuditEntries,
    /// The database is removed.
    pub(crate) is_removed: bool,
    /// The epoch of its last conversion.
    pub(crate) epoch: SchemaEpoch,
    /// All inputs wait for a conversion: its entry must be the only one under way.
    pub(crate) is_converting: bool,
    /// Bytes of events that are held while contents are replaced.
    pub(crate) held_bytes_max: usize,
    /// Modified rows are recorded as column differences.
    pub(crate) is_diff: bool,
    /// Records name the clients of their commits.
    pub(crate) names_clients: bool,
}

impl Parts<'_> {
    /// Whether a session is about to be closed ([`Environment::is_dismissed`]).
    fn is_dismissed(&self, info: &SessionInfo) -> bool {
        self.environment
            .is_dismissed(info, self.is_removed, self.epoch)
    }
}

/// The part of a database that depends on another server.
pub(crate) struct Upstream {
    pub(crate) forwarding: Forwarding,
    pub(crate) contents: Contents,
    pub(crate) steps: Steps,
}

/// The next step that the upstream does not take itself.
pub(crate) enum Next {
    /// One of the database.
    Action(Action),
    /// One of the member of a cluster.
    Member(MemberTask),
}

impl Upstream {
    /// Of a member of a cluster whose contents are those after the entry `applied`; the last entry
    /// with data is `eid`. It follows no leader.
    pub(crate) fn of_member(applied: Index, eid: Eid) -> Upstream {
        let role = Role::Follows(Term(0), None);
        Upstream {
            forwarding: Forwarding::new(role, Requests::Member(Vec::new())),
            contents: Contents::new(applied, eid, true),
            steps: Steps::default(),
        }
    }

    /// Of a relay whose contents are those after this change of its source. It reaches no source.
    pub(crate) fn of_relay(applied: Index, eid: Eid) -> Upstream {
        let role = Role::Follows(RELAY_TERM, None);
        Upstream {
            forwarding: Forwarding::new(role, Requests::Relay(Vec::new())),
            contents: Contents::new(applied, eid, false),
            steps: Steps::default(),
        }
    }

    /// Reports what is under way with the other server.
    pub(crate) fn report_activity(&self, activity: &mut Activity) {
        let Upstream {
            forwarding,
            contents,
            // They are all taken before the next input.
            steps: _,
        } = self;
        forwarding.report_activity(activity);
        contents.report_activity(activity);
    }

    /// Takes the requests for the member, in order.
    pub(crate) fn take_member_requests(&mut self) -> Vec<MemberRequest> {
        self.forwarding.take_member_requests()
    }

    /// Takes the requests for the source of a relay, in order.
    pub(crate) fn take_source_requests(&mut self) -> Vec<SourceRequest> {
        self.forwarding.take_source_requests()
    }
}

/// Inputs.
impl Upstream {
    /// Handles news of a relay's source, or contents that it has sent.
    pub(crate) fn handle(&mut self, input: ToDatabase, parts: &mut Parts<'_>) {
        match self.hold(input, parts) {
            Some(ToDatabase::Relay(news)) => self.handle_news(news, parts),
            Some(ToDatabase::Installed(installed)) => self.install(*installed, parts),
            Some(_) | None => {}
        }
    }

    /// Holds an event while contents are replaced; otherwise returns it.
    pub(crate) fn hold(&mut self, input: ToDatabase, parts: &mut Parts<'_>) -> Option<ToDatabase> {
        self.contents.hold(input, &mut self.steps, parts)
    }

    fn handle_news(&mut self, news: SourceNews, parts: &mut Parts<'_>) {
        let steps = &mut self.steps;
        match news {
            SourceNews::Reachable(is_reachable) => {
                let source = is_reachable.then_some(role::SOURCE);
                self.forwarding.follow(RELAY_TERM, source, steps);
            }
            SourceNews::Changes { through, changes } => {
                if !self.contents.are_broken() {
                    steps.plan(Task::ApplyChanges(through, changes.into_iter()));
                }
            }
            SourceNews::Outcome { id, outcome } => {
                self.forwarding.handle_outcome(id, outcome, steps, parts);
            }
            SourceNews::Lock { name, number, news } => {
                let news = (&*name, number, news);
                relayed_locks::hear(&mut self.forwarding, news, parts);
            }
        }
    }

    /// Whether an installed snapshot takes the place of the contents.
    pub(crate) fn awaits(&self, installed: &InstalledSnapshot) -> bool {
        self.forwarding.follows() && self.contents.lack(installed)
    }

    /// A snapshot is installed: its contents take the place of the present ones, unless those have
    /// all of its entries.
    pub(crate) fn install(&mut self, installed: InstalledSnapshot, parts: &mut Parts<'_>) {
        if self.awaits(&installed) {
            self.contents.install(installed, &mut self.steps, parts);
        } else {
            parts.outputs.free(Garbage::database(installed.database));
        }
    }

    /// The result of a job has come. Returns it if it is not a step of a replacement.
    pub(crate) fn finish_replacement(
        &mut self,
        number: JobNumber,
        done: JobResult,
        parts: &mut Parts<'_>,
    ) -> Option<JobResult> {
        self.contents
            .finish_replacement(number, done, &mut self.steps, parts)
    }

    /// The database is removed: nothing replaces its contents from now on.
    pub(crate) fn give_up_replacement(&mut self, parts: &mut Parts<'_>) {
        self.contents.give_up_replacement(parts);
    }

    /// The lock table has claims for the source of a relay.
    pub(crate) fn claim_locks(&mut self, parts: &Parts<'_>) {
        relayed_locks::claim(&mut self.forwarding, parts);
    }

    /// Forwards a request to the leader, or the source, now or when there is one.
    pub(crate) fn forward(&mut self, request: Box<Request>, parts: &mut Parts<'_>) {
        self.forwarding.forward(request, &mut self.steps, parts);
    }

    /// An applied change is shown to the sessions: those whose replies depend on it are answered.
    /// `reply`: that of the request that asked for it, and whether it has changed something.
    pub(crate) fn answer_published(
        &mut self,
        eid: Eid,
        reply: Option<(Entry, Answer, bool)>,
        delta: Arc<Delta>,
        parts: &mut Parts<'_>,
    ) {
        let steps = &mut self.steps;
        if let Some((entry, answer, has_changed)) = reply {
            self.forwarding
                .finish(entry, answer, has_changed, steps, parts);
        }
        steps.plan(Task::FinishSeen(eid));
        steps.plan(Task::Advance);
        // Requests of sessions come first: they may change what blocked transactions wait for.
        steps.push(Action::RetryAffected(delta));
    }

    /// A transaction that was tried here has ended ([`Action::TryHere`]).
    pub(crate) fn end_trial(&mut self, turn: Turn, before: Option<Number>, parts: &mut Parts<'_>) {
        self.forwarding
            .end_trial(turn, before, &mut self.steps, parts);
    }
}

/// Steps.
impl Upstream {
    /// Plans to continue the sessions that may be able to.
    pub(crate) fn advance(&mut self) {
        if self.forwarding.in_flight_mut().has_due() {
            self.steps.plan(Task::Advance);
        }
    }

    /// Whether there are steps to take.
    pub(crate) fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Takes steps up to the next one that is not the upstream's, and returns that.
    pub(crate) fn next(&mut self, parts: &mut Parts<'_>) -> Option<Next> {
        loop {
            match self.steps.next()? {
                Step::Action(action) => return Some(Next::Action(action)),
                Step::Member(task) => return Some(Next::Member(task)),
                Step::Task(task) => self.carry_out(task, parts),
            }
        }
    }

    fn carry_out(&mut self, task: Task, parts: &mut Parts<'_>) {
        let Upstream {
            forwarding,
            contents,
            steps,
        } = self;
        match task {
            Task::Advance => forwarding.advance_due(steps, parts),
            Task::AdvanceSession(session) => forwarding.advance_session(session, steps, parts),
            Task::AdvanceFirst(session) => forwarding.advance_first(session, steps, parts),
            Task::AnswerBefore(session, number) => {
                forwarding.answer_before(session, number, steps);
            }
            Task::AnswerBeforeEntry(eid) => forwarding.answer_before_entry(eid, steps),
            Task::Finish(entry, answer) => forwarding.finish(entry, answer, false, steps, parts),
            Task::Forget(turn) => forwarding.forget(turn, parts),
            Task::ForwardWaiting => forwarding.forward_waiting(steps, parts),
            Task::EndThrottling => forwarding.end_throttling(steps),
            Task::FinishDecided => forwarding.finish_decided(contents.applied(), steps, parts),
            Task::FinishSeen(eid) => forwarding.finish_seen(eid, steps, parts),
            Task::FinishConverted(index) => forwarding.finish_converted(index, steps, parts),
            Task::ApplyChanges(through, changed) => {
                changes::apply_next(through, changed, contents, steps);
            }
            Task::ApplyChange(through, change, rest) => {
                let applied = changes::apply(*change, (through, rest), contents, steps, parts);
                if let Err(error) = applied {
                    let details = error.to_string();
                    forwarding.ask_source(SourceRequest::Misfit { details });
                }
            }
            Task::EndEvent(through, term) => {
                forwarding.report_applied(through);
                forwarding.end_doubt(term, steps, parts);
            }
            Task::EndDoubt(term) => forwarding.end_doubt(term, steps, parts),
            Task::TakeContents(database, index, eid) => self.take_contents(database, index, eid),
            Task::FinishInstallation(index, term, eid, recorded) => {
                contents.finish_installation((index, eid), term, &recorded, steps, parts);
            }
            Task::EndInstallation(index, term) => {
                contents.end_installation();
                forwarding.report_applied(index);
                if !forwarding.is_relay() {
                    steps.plan_for_member(MemberTask::AskForSought(index));
                    steps.push(Action::ForwardBlocked);
                }
                steps.plan(Task::EndDoubt(term));
            }
        }
    }

    /// An entry replaces the contents. Its request, if it is one of this server's sessions, is
    /// answered before those are closed that do not know the new schema.
    fn take_contents(&mut self, database: Box<Database>, index: Index, eid: Eid) {
        self.contents.mark_applied(index, eid);
        self.steps.push(Action::Swap(database, eid));
        if let Some((entry, _)) = self.forwarding.in_flight_mut().take_committed(eid) {
            let answer = Answer::Result(b"{}".to_vec());
            self.steps.plan(Task::Finish(entry, answer));
        }
        self.steps.push(Action::EndSwap);
    }
}

/// More changes of a relay's source are not applied inline.
const SHORT_CHANGES: usize = 256;
/// Nor are changes with more bytes together.
const SHORT_BYTES: usize = 32 * 1024;

/// Whether news that a relay has of its source cost so little that the relay's thread may have its
/// database handle them inline.
pub(crate) fn is_short_news(news: &SourceNews) -> bool {
    match news {
        SourceNews::Changes { changes, .. } => {
            let bytes: usize = changes.iter().map(|change| change.bytes).sum();
            changes.len() <= SHORT_CHANGES && bytes <= SHORT_BYTES
        }
        SourceNews::Outcome { outcome, .. } => !matches!(outcome, ForwardOutcome::Blocked(_)),
        SourceNews::Reachable(_) | SourceNews::Lock { .. } => false,
    }
}
