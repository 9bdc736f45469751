//! The order in which long bodies are written: initial contents, long results and long updates take
//! turns, slice by slice.
//!
//! A body belongs to the first session that asked for it; all bodies of a session form its queue.
//! Two choices alternate:
//!
//! - *the smallest*: the queue with the fewest rows left, and in it the body with the fewest;
//! - *the oldest*: the body that was requested first, by any session.
//!
//! So a body that is short compared with all others is finished after twice its own slices, however
//! many and however long the others are. No body starves: every second slice goes to the oldest. So
//! each body waits for at most twice the work requested before it, as if bodies were written in
//! order of arrival at half the speed. (A round robin that starts with new bodies would need no
//! estimate, but a body of two slices would wait for one slice of every other body. Always choosing
//! the smallest would starve long bodies while short ones keep coming.) The number of rows
//! estimates the time: a wrong estimate affects only the order.
//!
//! Updates that no session waits for yet ([`Job::PrecomputedUpdate`]) are written when there is
//! nothing else to write. When their commit is released and sessions wait, the same body is
//! requested again, and writing continues where it stopped.
//!
//! Invariant: the bytes do not depend on the order of writing. Called by a thread, or as a step of
//! the simulator. A choice costs O(log of waiting sessions), in addition to its slice.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc as StdArc;

use corvid_data::TrustedKeys;
use corvid_engine::Slice;
use corvid_monitor::{Contents, DeferredBody, SessionId};

use super::{Job, JobDone, JobNumber, JobResult};
use crate::client_memory::Charge;

/// Steps of a slice: about 700 us, or 2,000 rows of 200 bytes.
pub const SLICE_STEPS: u64 = 32_768;

/// The position of a body in the order of requests.
type Arrival = u64;

/// Bodies to write.
#[derive(Debug)]
pub struct BodyScheduler {
    slice_steps: u64,
    queues: HashMap<SessionId, SessionQueue, TrustedKeys>,
    /// All bodies in queues, by arrival.
    by_age: BTreeMap<Arrival, SessionId>,
    /// All queues, by rows left, then by their oldest body.
    by_size: BTreeSet<(usize, Arrival, SessionId)>,
    /// The queue of each body that sessions wait for, by the body's address; the body lives as long
    /// as its entry.
    bodies: HashMap<usize, (SessionId, Arrival), TrustedKeys>,
    precomputed: VecDeque<StdArc<dyn DeferredBody>>,
    arrivals: Arrival,
    is_oldest_next: bool,
}

/// The bodies of one session; never empty.
#[derive(Debug, Default)]
struct SessionQueue {
    tasks: BTreeMap<Arrival, Task>,
    /// The same bodies by rows left.
    by_size: BTreeSet<(usize, Arrival)>,
    /// Sum of the rows left of these bodies.
    rows_left: usize,
}

/// A body that is being written.
#[derive(Debug)]
struct Task {
    body: Body,
    rows_left: usize,
}

#[derive(Debug)]
enum Body {
    Contents(Box<ContentsTask>),
    /// A body, and the sessions that wait for it.
    Deferred(StdArc<dyn DeferredBody>, Vec<SessionId>),
}

/// Initial contents that are being written.
#[derive(Debug)]
struct ContentsTask {
    contents: Contents,
    charge: Charge,
    /// Bytes charged so far.
    charged: usize,
    /// Refused because replies together take too much memory.
    is_refused: bool,
}

impl Default for BodyScheduler {
    /// A scheduler with slices of [`SLICE_STEPS`].
    fn default() -> BodyScheduler {
        BodyScheduler::new(SLICE_STEPS)
    }
}

impl BodyScheduler {
    /// An empty scheduler whose slices have this many steps.
    #[must_use]
    pub fn new(slice_steps: u64) -> BodyScheduler {
        BodyScheduler {
            slice_steps,
            queues: HashMap::default(),
            by_age: BTreeMap::new(),
            by_size: BTreeSet::new(),
            bodies: HashMap::default(),
            precomputed: VecDeque::new(),
            arrivals: 0,
            is_oldest_next: false,
        }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.precomputed.is_empty()
    }

    /// Accepts a job that writes a body; returns any other job.
    pub fn push(&mut self, job: Job) -> Option<Job> {
        match job {
            Job::InitialContents(session, order) => {
                let (contents, charge) = *order;
                let rows_left = contents.rows_left();
                let contents_task = ContentsTask {
                    contents,
                    charge,
                    charged: 0,
                    is_refused: false,
                };
                self.add(session, Body::Contents(Box::new(contents_task)), rows_left);
            }
            Job::DeferredBody(session, body) => {
                let address = address(&body);
                if let Some(waiting) = self.waiting_for(address) {
                    waiting.push(session);
                    return None;
                }
                let rows_left = body.rows();
                let arrival = self.add(session, Body::Deferred(body, vec![session]), rows_left);
                self.bodies.insert(address, (session, arrival));
            }
            Job::PrecomputedUpdate(body) => {
                // Drop those that are no longer wanted, so the queue never outgrows the updates
                // that groups still hold, however long it waits.
                self.precomputed
                    .retain(|body| !is_unwanted(body) && !body.is_written());
                self.precomputed.push_back(body);
            }
            other => return Some(other),
        }
        None
    }

    /// Writes a slice of one body. Appends the results of a body that is complete. Returns the
    /// session for which it worked: the first one that asked for the body, if any has.
    pub fn run_slice(&mut self, answers: &mut Vec<JobDone>) -> Option<SessionId> {
        let oldest = self.by_age.iter().next();
        let oldest = oldest.map(|(arrival, session)| (*session, *arrival));
        let next = if self.is_oldest_next {
            oldest
        } else {
            self.smallest()
        };
        // Strictly alternating: each choice gets half of the slices.
        self.is_oldest_next = !self.is_oldest_next;
        match next {
            Some((session, arrival)) => self.write(session, arrival, answers),
            None => self.precompute(),
        }
        next.map(|(session, _)| session)
    }

    /// The smallest body of the smallest queue.
    fn smallest(&self) -> Option<(SessionId, Arrival)> {
        let (_, _, session) = self.by_size.first()?;
        let (_, arrival) = self.queues.get(session)?.by_size.first()?;
        Some((*session, *arrival))
    }

    /// The sessions that wait for the body at this address, if it is queued.
    fn waiting_for(&mut self, address: usize) -> Option<&mut Vec<SessionId>> {
        let (session, arrival) = self.bodies.get(&address)?;
        let queue = self.queues.get_mut(session)?;
        match &mut queue.tasks.get_mut(arrival)?.body {
            Body::Deferred(_, waiting) => Some(waiting),
            Body::Contents(..) => None,
        }
    }

    fn add(&mut self, session: SessionId, body: Body, rows_left: usize) -> Arrival {
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.by_age.insert(arrival, session);
        self.change(session, |queue| {
            queue.tasks.insert(arrival, Task { body, rows_left });
            queue.by_size.insert((rows_left, arrival));
            queue.rows_left += rows_left;
        });
        arrival
    }

    /// Changes the queue of a session; creates it if needed, and removes it when it is empty.
    fn change(&mut self, session: SessionId, change: impl FnOnce(&mut SessionQueue)) {
        let queue = self.queues.entry(session).or_default();
        if let Some(key) = queue.key(session) {
            self.by_size.remove(&key);
        }
        change(queue);
        match queue.key(session) {
            Some(key) => {
                self.by_size.insert(key);
            }
            None => {
                assert_eq!(queue.rows_left, 0, "the rows left are those of the bodies");
                self.queues.remove(&session);
            }
        }
        assert_eq!(
            self.by_size.len(),
            self.queues.len(),
            "each queue has its place among the others"
        );
    }

    fn write(&mut self, session: SessionId, arrival: Arrival, answers: &mut Vec<JobDone>) {
        let slice = &mut Slice::new(self.slice_steps);
        let mut done = None;
        self.change(session, |queue| done = queue.advance(arrival, slice));
        let Some(body) = done else { return };
        let owner = self.by_age.remove(&arrival);
        assert_eq!(owner, Some(session), "a body is written once");
        match body {
            Body::Contents(contents_task) => answers.push(contents_task.finish()),
            Body::Deferred(body, waiting) => {
                // A stale entry would add sessions to a body that is already written: they would
                // wait forever.
                let known = self.bodies.remove(&address(&body));
                assert_eq!(
                    known,
                    Some((session, arrival)),
                    "a body that sessions wait for is known"
                );
                let done = |session| JobDone(JobNumber(0), JobResult::DeferredBody(session));
                answers.extend(waiting.into_iter().map(done));
            }
        }
    }

    /// Writes a slice of an update that no session waits for yet, unless it is no longer needed.
    fn precompute(&mut self) {
        if let Some(body) = self.precomputed.front() {
            let slice = &mut Slice::new(self.slice_steps);
            if is_unwanted(body) || body.advance(slice) == 0 {
                self.precomputed.pop_front();
            }
        }
    }
}

impl SessionQueue {
    /// The queue's sort key; `None` if it is empty.
    fn key(&self, session: SessionId) -> Option<(usize, Arrival, SessionId)> {
        let (oldest, _) = self.tasks.first_key_value()?;
        Some((self.rows_left, *oldest, session))
    }

    /// Writes a slice of one body; returns the body if it is complete.
    fn advance(&mut self, arrival: Arrival, slice: &mut Slice) -> Option<Body> {
        let writing = self.tasks.get_mut(&arrival)?;
        let was_there = self.by_size.remove(&(writing.rows_left, arrival));
        assert!(was_there, "a body has its place among the others");
        self.rows_left -= writing.rows_left;
        writing.rows_left = writing.body.advance(slice);
        if writing.rows_left == 0 {
            return self.tasks.remove(&arrival).map(|writing| writing.body);
        }
        self.by_size.insert((writing.rows_left, arrival));
        self.rows_left += writing.rows_left;
        None
    }
}

impl Body {
    /// Writes a slice; returns an estimate of the rows left, 0 at the end.
    fn advance(&mut self, slice: &mut Slice) -> usize {
        match self {
            Body::Contents(contents_task) => contents_task.advance(slice),
            // The sessions that waited have closed.
            Body::Deferred(body, _) if is_unwanted(body) => 0,
            Body::Deferred(body, _) => body.advance(slice),
        }
    }
}

impl ContentsTask {
    /// Writes a slice; returns an estimate of the rows left, 0 at the end.
    fn advance(&mut self, slice: &mut Slice) -> usize {
        // Checked at each slice: other replies may have used up the memory since the last one.
        self.is_refused = !self.charge.may_go_on();
        if self.is_refused {
            return 0;
        }
        let is_written = self.contents.advance(slice);
        let written = self.contents.bytes();
        self.charge.add(written - self.charged);
        self.charged = written;
        if is_written {
            return 0;
        }
        // At least 1: 0 would mean that the contents are complete.
        self.contents.rows_left().max(1)
    }

    fn finish(self) -> JobDone {
        let number = JobNumber(self.contents.id().0);
        let written = if self.is_refused {
            self.charge.give_up();
            self.contents.refuse()
        } else {
            self.contents.finish(StdArc::new(self.charge))
        };
        JobDone(number, JobResult::InitialContents(written))
    }
}

/// Identifies a body as long as it lives.
fn address(body: &StdArc<dyn DeferredBody>) -> usize {
    StdArc::as_ptr(body).cast::<()>() as usize
}

/// Whether nothing else refers to the body: no session can request it any more.
fn is_unwanted(body: &StdArc<dyn DeferredBody>) -> bool {
    StdArc::strong_count(body) == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A body whose every step writes a row.
    #[derive(Debug)]
    struct Rows(AtomicUsize);

    impl DeferredBody for Rows {
        fn pieces(&self) -> &[StdArc<[u8]>] {
            unreachable!("nobody reads it")
        }

        fn advance(&self, slice: &mut Slice) -> usize {
            while !slice.is_over() && self.0.load(Ordering::Relaxed) > 0 {
                slice.spend(1, 0);
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
            self.rows()
        }

        fn is_written(&self) -> bool {
            self.rows() == 0
        }

        fn rows(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// A scheduler with slices of ten rows, and its bodies, some of which may have been dropped.
    struct Play {
        scheduler: BodyScheduler,
        bodies: Vec<StdArc<Rows>>,
    }

    impl Play {
        fn new() -> Play {
            Play {
                scheduler: BodyScheduler::new(10),
                bodies: Vec::new(),
            }
        }

        fn body(&mut self, rows: usize) -> StdArc<Rows> {
            let body = StdArc::new(Rows(AtomicUsize::new(rows)));
            self.bodies.push(body.clone());
            body
        }

        fn ask(&mut self, session: u64, rows: usize) {
            let body = self.body(rows);
            self.ask_for(session, &body);
        }

        fn ask_for(&mut self, session: u64, body: &StdArc<Rows>) {
            let job = Job::DeferredBody(SessionId(session), body.clone());
            assert!(self.scheduler.push(job).is_none());
        }

        /// The sessions that get a result from one slice.
        fn slice(&mut self) -> Vec<u64> {
            let mut answers = Vec::new();
            self.scheduler.run_slice(&mut answers);
            let notified = answers.into_iter().map(|answer| match answer {
                JobDone(_, JobResult::DeferredBody(SessionId(session))) => session,
                other => panic!("{other:?}"),
            });
            notified.collect()
        }

        /// The number of slices until that session gets a result.
        fn slices_until(&mut self, session: u64) -> usize {
            (1..).find(|_| self.slice().contains(&session)).unwrap_or(0)
        }
    }

    #[test]
    fn a_short_body_is_finished_after_twice_its_slices_beside_long_ones() {
        let mut play = Play::new();
        for session in 0..50 {
            play.ask(session, 100_000);
        }
        for _ in 0..77 {
            assert_eq!(play.slice(), []);
        }
        play.ask(100, 40);
        assert!(play.slices_until(100) <= 8);
        play.ask(101, 1);
        assert!(play.slices_until(101) <= 2);
    }

    #[test]
    fn a_long_body_is_finished_after_twice_its_slices_beside_short_ones() {
        let mut play = Play::new();
        play.ask(0, 1000);
        let notified = (1..).find(|turn| {
            play.ask(*turn, 10);
            play.slice().contains(&0)
        });
        assert!(
            notified.is_some_and(|scheduler| scheduler <= 200),
            "{notified:?}"
        );
    }

    #[test]
    fn all_bodies_of_a_session_count_together() {
        let mut play = Play::new();
        for _ in 0..30 {
            play.ask(0, 50);
        }
        play.ask(1, 100);
        // Each single body of the other session is shorter.
        assert!(play.slices_until(1) <= 20);
    }

    #[test]
    fn the_shortest_body_of_a_session_is_written_first() {
        let mut play = Play::new();
        play.ask(0, 1000);
        let short = play.body(20);
        play.ask_for(0, &short);
        // Another session also waits for the short body.
        play.ask_for(1, &short);
        assert!((0..4).any(|_| play.slice() == [0, 1]));
    }

    #[test]
    fn a_precomputed_update_is_written_when_idle_and_continued_for_a_session() {
        let mut play = Play::new();
        let body = play.body(100);
        assert!(
            play.scheduler
                .push(Job::PrecomputedUpdate(body.clone()))
                .is_none()
        );
        for _ in 0..3 {
            play.slice();
        }
        assert_eq!(body.rows(), 70);
        play.ask(0, 100);
        assert_eq!(play.slices_until(0), 10);
        assert_eq!(body.rows(), 70);
        play.ask_for(1, &body);
        assert_eq!(play.slices_until(1), 7);
        // The scheduler notices that with the next slice.
        play.slice();
        assert!(play.scheduler.is_empty());
    }

    #[test]
    fn bodies_without_references_are_dropped_unwritten() {
        let mut play = Play::new();
        play.ask(0, 1000);
        for _ in 0..5 {
            let body = play.body(1000);
            assert!(play.scheduler.push(Job::PrecomputedUpdate(body)).is_none());
        }
        play.bodies.truncate(1);
        let last = play.body(10);
        assert!(play.scheduler.push(Job::PrecomputedUpdate(last)).is_none());
        assert_eq!(
            play.scheduler.precomputed.len(),
            1,
            "however long others take"
        );
        play.bodies.clear();
        for _ in 0..2 {
            play.slice();
        }
        assert!(play.scheduler.is_empty());
    }

    #[test]
    fn every_body_is_written_once_and_reported_to_all_its_sessions() {
        let mut state = 7_u64;
        let mut draw = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut play = Play::new();
        let (mut asked, mut notified) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            match draw(4) {
                0 => {
                    let body = play.body(1 + draw(60) as usize);
                    for _ in 0..=draw(3) {
                        let session = draw(10);
                        play.ask_for(session, &body);
                        asked.push(session);
                    }
                }
                _ => notified.extend(play.slice()),
            }
        }
        while !play.scheduler.is_empty() {
            notified.extend(play.slice());
        }
        asked.sort_unstable();
        notified.sort_unstable();
        assert_eq!(asked, notified);
        assert!(play.bodies.iter().all(|body| body.is_written()));
        let scheduler = &play.scheduler;
        assert!(
            scheduler.by_age.is_empty()
                && scheduler.by_size.is_empty()
                && scheduler.bodies.is_empty()
        );
    }
}
