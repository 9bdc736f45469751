//! Batches of databases, executed by their thread or by a shard, and their outputs. [`World`] calls
//! this for a drawn event.

use corvid_engine::WorkBudget;
use corvid_service::Now;
use corvid_service::frontend::shard_of;
use corvid_service::job::Job;
use corvid_service::message::{DatabaseId, ToDatabase, ToShard};
use corvid_service::pump::{Holder, Output};
use corvid_service::recording::Replay;

use crate::databases::contents;
use crate::disk::Disk;
use crate::world::{Served, World};

/// The holder of a database: its thread, or a shard.
struct Hand<'w> {
    now: Now,
    disk: Option<&'w mut Disk>,
}

impl Holder for Hand<'_> {
    fn now(&mut self) -> Now {
        self.now
    }

    fn begin(&mut self, input: &ToDatabase) {
        if let (ToDatabase::Storage(reply), Some(disk)) = (input, &mut self.disk) {
            disk.answered(reply);
        }
    }

    fn executed(&mut self) {}
}

impl World {
    /// A batch of a database thread, with at most this many inputs.
    pub(crate) fn execute_batch(&mut self, id: DatabaseId, inputs_max: usize) {
        let now = self.now();
        let Some(served) = self.databases.get_mut(&id) else {
            return;
        };
        let mut hand = Hand {
            now,
            disk: served.disk.as_mut(),
        };
        let mut inputs = std::iter::from_fn(|| served.inbox.pop_front()).take(inputs_max);
        served.pump.execute_batch(&mut hand, &mut inputs);
        served.is_left = served.pump.has_postponed();
        self.walk(id);
    }

    /// A batch of a shard; inputs that it cannot execute are left to the database thread.
    pub(crate) fn execute_inline(&mut self, id: DatabaseId) {
        let now = self.now();
        let steps = self.inline_steps.unwrap_or_default();
        let Some(served) = self.databases.get_mut(&id) else {
            return;
        };
        let mut hand = Hand {
            now,
            disk: served.disk.as_mut(),
        };
        let taken = 1 + self.dice.below(served.inbox.len());
        let mut inputs: Vec<ToDatabase> = served.inbox.drain(..taken).collect();
        let mut budget = WorkBudget::new(steps);
        let pump = &mut served.pump;
        pump.execute_inline(&mut hand, &mut inputs, &mut budget);
        self.walk(id);
        let served = self.databases.get_mut(&id).expect("served");
        served.is_left = !served.pump.end_inline();
        for input in inputs.into_iter().rev() {
            served.inbox.push_front(input);
        }
    }

    /// Carries out the outputs of a batch.
    fn walk(&mut self, id: DatabaseId) {
        let now = self.now();
        let Some(served) = self.databases.get_mut(&id) else {
            return;
        };
        while let Some(output) = served.pump.next_output() {
            match output {
                Output::Job(job @ Job::PrecomputedUpdate(_)) => {
                    if self.precomputes_updates && !served.is_worker_held {
                        job.carry_out();
                    }
                }
                Output::Job(job) => served.jobs.push_back(job),
                Output::Store(stores) => {
                    let disk = served.disk.as_mut().expect("writes only with a file");
                    let answers = disk.store(stores);
                    let disk = Some(disk);
                    served.pump.stored(
                        &mut Hand { now, disk },
                        answers.into_iter().map(ToDatabase::Storage).collect(),
                    );
                }
                Output::Audit(entries) => served.audit.extend(entries),
                Output::Event(event) => self.main.push_back(event),
                Output::Deliver(deliver) => {
                    let shard = usize::from(shard_of(deliver.session));
                    let inbox = &mut self.shards[shard].inbox;
                    inbox.push_back(ToShard::Deliver(deliver));
                }
                Output::Relay(request) => served.relay_requests.push_back(request),
                Output::SourceOrder(source, connection, order) => {
                    served.source_orders.push((source, connection, order));
                }
                // Not needed here: no client connects to configured remotes, every delivery is
                // posted at once, files are checked later, and no database is a member of a
                // cluster.
                Output::Applied(_)
                | Output::Member(_)
                | Output::AwaitMain
                | Output::PostDeliveries
                | Output::CloseFile => {}
            }
        }
        served.pump.check();
        served.recording.extend(served.pump.drain_tape());
    }
}

/// Replays a recording: every session must be sent the same bytes, and the final contents must be
/// equal.
pub(crate) fn replay(served: &Served) {
    let mut replay = Replay::open(&served.recording).expect("a recording");
    let outcome = replay.run(&mut |_| {});
    assert_eq!(outcome.problem, None, "of {outcome:?}");
    let (left, right) = (served.pump.service(), replay.service());
    assert_eq!(contents(left.database()), contents(right.database()));
}
