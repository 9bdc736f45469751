//! Replays a recording: the same pump gets the same inputs at the same times, with the same random
//! values.
//!
//! The replay stops at the first batch whose deliveries differ, or that reads other values than
//! were recorded.

use std::sync::Arc;

use corvid_data::{Uuid, UuidSource};
use corvid_engine::WorkBudget;

use super::MAGIC;
use crate::codec::{Checksum, Damage, Reader};
use crate::job::{Job, JobKey, JobResult};
use crate::message::ToDatabase;
use crate::pump::{Holder, Output, Pump, head};
use crate::schema_epoch::SchemaEpochs;
use crate::tape::{Input, Mode, Tape};
use crate::{DatabaseService, Now};

/// The outcome of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Number of batches that yielded the same bytes.
    pub batches: u64,
    /// Number of inputs that these batches executed.
    pub inputs: u64,
    /// Why the replay stopped before the end of the recording; `None` if it did not.
    pub problem: Option<String>,
}

/// A recording in replay, batch by batch.
pub struct Replay<'r> {
    rest: &'r [u8],
    tape: Tape,
    pump: Pump,
    /// Jobs whose results are not due yet.
    jobs: Vec<Job>,
    batches: u64,
    inputs: u64,
}

/// A step of a replay, for tools that show it.
#[derive(Debug)]
pub enum ReplayEvent<'s> {
    /// A batch begins.
    Batch(u64),
    /// This input is executed next.
    Input(&'s ToDatabase),
    /// The batch yields this output.
    Output(&'s Output),
}

/// UUIDs after the recorded ones are used up; nothing compares them.
struct NoUuids;

impl UuidSource for NoUuids {
    fn fresh(&mut self) -> Uuid {
        Uuid::ZERO
    }
}

/// The database's holder during a replay.
struct Player<'p> {
    tape: &'p Tape,
    inputs: u64,
    show: &'p mut dyn FnMut(ReplayEvent<'_>),
}

impl Holder for Player<'_> {
    fn now(&mut self) -> Now {
        self.tape.next_now()
    }

    fn begin(&mut self, input: &ToDatabase) {
        (self.show)(ReplayEvent::Input(input));
    }

    fn executed(&mut self) {
        self.inputs += 1;
    }
}

impl<'r> Replay<'r> {
    /// Opens the bytes of a recording.
    ///
    /// # Errors
    /// The bytes are not a recording of this version, or its start is damaged.
    pub fn open(bytes: &'r [u8]) -> Result<Replay<'r>, Damage> {
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
            return Err(Damage::new("not a recording of this version"));
        };
        let payload = frame(&mut rest)?;
        let Some(payload) = payload else {
            return Err(Damage::new("it ends before the database contents"));
        };
        let head = head::read(payload)?;
        let tape = Tape::replaying();
        // The values that the database reads while it is created.
        let Some(first) = frame(&mut rest)? else {
            return Err(Damage::new("it ends before the first batch"));
        };
        tape.load(first)?;
        let mut service = DatabaseService::new(
            head.now,
            head.options,
            head.database,
            Arc::default(),
            SchemaEpochs::default(),
            tape.uuids(Box::new(NoUuids)),
        );
        tape.finish();
        if let Some(problem) = tape.take_problem() {
            return Err(Damage(problem));
        }
        service.set_tape(tape.clone());
        let mut pump = Pump::new(service);
        pump.set_limits(head.limits);
        pump.set_tape(tape.clone());
        Ok(Replay {
            rest,
            tape,
            pump,
            jobs: Vec::new(),
            batches: 0,
            inputs: 0,
        })
    }

    /// The database in its current state.
    #[must_use]
    pub fn service(&self) -> &DatabaseService {
        self.pump.service()
    }

    /// Replays the rest of the recording. `show` is called for each step.
    pub fn run(&mut self, show: &mut dyn FnMut(ReplayEvent<'_>)) -> Outcome {
        let problem = loop {
            match self.step(show) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(problem) => break Some(format!("batch {}: {}", self.batches + 1, problem.0)),
            }
        };
        Outcome {
            batches: self.batches,
            inputs: self.inputs,
            problem,
        }
    }

    /// Replays the next batch. Returns false if there is none.
    ///
    /// # Errors
    /// The recording is damaged here, or the batch differs from the recorded one.
    pub fn step(&mut self, show: &mut dyn FnMut(ReplayEvent<'_>)) -> Result<bool, Damage> {
        let Some(payload) = frame(&mut self.rest)? else {
            return Ok(false);
        };
        let mode = self.tape.load(payload)?;
        if let Mode::Setting(setting, value) = mode {
            self.pump.service_mut().set(setting, value);
            return Ok(true);
        }
        show(ReplayEvent::Batch(self.batches + 1));
        let tape = self.tape.clone();
        let mut player = Player {
            tape: &tape,
            inputs: 0,
            show,
        };
        // Inputs are read lazily: the result of a job is computed when the batch reaches it, from a
        // job that was ordered earlier.
        let jobs = &mut self.jobs;
        let mut inputs =
            std::iter::from_fn(|| tape.next_input().map(|input| real(&tape, jobs, input)));
        match mode {
            Mode::Inline(steps) => {
                self.pump.execute_inline_from(
                    &mut player,
                    &mut inputs,
                    &mut WorkBudget::new(steps),
                );
            }
            _ => self.pump.execute_batch(&mut player, &mut inputs),
        }
        while let Some(output) = self.pump.next_output() {
            (player.show)(ReplayEvent::Output(&output));
            match output {
                Output::Store(_) => {
                    let answers = tape.next_answers();
                    let answers = answers.into_iter();
                    let answers = answers.map(|answer| real(&tape, &mut self.jobs, answer));
                    let answers = answers.collect();
                    self.pump.stored(&mut player, answers);
                }
                Output::Job(job) if JobKey::of_job(&job).is_some() => self.jobs.push(job),
                _ => {}
            }
        }
        if mode != Mode::Thread {
            // Inputs that are left come again in a later batch.
            let _ = self.pump.end_inline();
        }
        self.inputs += player.inputs;
        // The tape has compared the deliveries when the last output was taken.
        match self.tape.take_problem() {
            Some(problem) => Err(Damage(problem)),
            None => {
                self.batches += 1;
                Ok(true)
            }
        }
    }
}

/// The input as the database gets it; executes the job whose result it is.
fn real(tape: &Tape, jobs: &mut Vec<Job>, input: Input) -> ToDatabase {
    match input {
        Input::Plain(input) => input,
        Input::PastRead(number, read) => {
            let key = JobKey::of_done(number, &JobResult::PastRead(None));
            jobs.retain(|job| JobKey::of_job(job) != Some(key));
            ToDatabase::JobDone(number, JobResult::PastRead(read))
        }
        Input::Done(key, is_refused) => {
            let found = jobs.iter().position(|job| JobKey::of_job(job) == Some(key));
            let job = found.map(|at| jobs.remove(at));
            let answer = job.and_then(|job| match is_refused {
                true => job.refuse(),
                false => job.carry_out(),
            });
            answer.map(ToDatabase::from).unwrap_or_else(|| {
                tape.report_difference("it answers a job that was not requested".to_owned());
                ToDatabase::Drained(corvid_monitor::SessionId(u64::MAX))
            })
        }
    }
}

/// The payload of the next frame; `None` at the end.
fn frame<'r>(rest: &mut &'r [u8]) -> Result<Option<&'r [u8]>, Damage> {
    if rest.is_empty() {
        return Ok(None);
    }
    let cut = || Damage::new("the recording is cut off");
    let mut from = Reader(rest);
    let length: Result<[u8; 4], _> = from.take(4).map_err(|_| cut())?.try_into();
    let length = u32::from_le_bytes(length.unwrap_or_default());
    let recorded: Result<[u8; 8], _> = from.take(8).map_err(|_| cut())?.try_into();
    let recorded = u64::from_le_bytes(recorded.unwrap_or_default());
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let payload = from.take(length).map_err(|_| cut())?;
    let mut sum = Checksum::default();
    sum.bytes(payload);
    if sum.value() != recorded {
        return Err(Damage::new("the recording is damaged: a checksum differs"));
    }
    *rest = from.0;
    Ok(Some(payload))
}
