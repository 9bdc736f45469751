//! The tape of one database: records batches, or plays recorded ones back.
//!
//! Invariant: an inactive tape costs one branch. Every value that no input contains is read through
//! the tape. If a replay reads other values than were recorded, the tape keeps the first difference
//! and supplies made-up values until the end of the batch.

mod input;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corvid_data::{Uuid, UuidSource};
use corvid_monitor::SharedBody;

use crate::codec::{Checksum, Damage, Reader, Recordable, Writer};
use crate::message::{Deliver, Now, Piece, ToDatabase};
use input::Sessions;

pub(crate) use input::Input;

/// Checksums kept within a batch, at most: of bodies that a group of sessions shares.
const BODIES_MAX: usize = 16;

/// The tape. Shared by a pump, its database and the database's source of UUIDs; one thread at a
/// time uses all three.
#[derive(Clone, Default)]
pub(crate) struct Tape(Option<Arc<Mutex<State>>>);

struct State {
    sessions: Sessions,
    /// Checksum of the current batch's deliveries.
    sum: Checksum,
    /// Checksums of shared bodies. The bodies are kept so that their addresses are not reused.
    bodies: Vec<(SharedBody, u64)>,
    side: Side,
}

enum Side {
    /// Recorded frames; the frame that is being written starts at `begin`.
    Recording { frames: Vec<u8>, begin: usize },
    Replaying {
        items: VecDeque<Item>,
        problem: Option<String>,
    },
}

/// The executor of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Thread,
    /// A shard, with a work budget of this many steps.
    Inline(u64),
    /// Not a batch: a setting of the database changes.
    Setting(Setting, u64),
}

/// Settings that the database's holder can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// How many rows the database reads itself for the initial contents of a monitor; contents of
    /// more are left to a job.
    InitialRowsMax,
    /// How many changed rows an update may have before its body is deferred to a job. A step of a
    /// long update gets the text of so many rows of 1 KiB, and 4 KiB at least.
    UpdateRowsMax,
    /// How many steps the database spends on the selections of one transaction; the rest is
    /// deferred to a job.
    SelectStepsMax,
    /// From how many atoms on a commit is long.
    LongAtoms,
    /// Bytes of records during a conversion after which all inputs wait.
    ConversionBytesMax,
    /// Whether records name the clients of their commits: 0 or 1.
    RecordClients,
}

/// Settings by their numbers in recordings.
const SETTINGS: [Setting; 6] = [
    Setting::InitialRowsMax,
    Setting::UpdateRowsMax,
    Setting::SelectStepsMax,
    Setting::LongAtoms,
    Setting::ConversionBytesMax,
    Setting::RecordClients,
];

const THREAD: u64 = 0;
const INLINE: u64 = 1;
const SETTING: u64 = 2;

/// An item of a batch.
pub(crate) enum Item {
    Now(Now),
    Uuid(Uuid),
    Number(u64),
    Input(Input),
    Answers(Vec<Input>),
    Sum(u64),
}

const NOW: u8 = 1;
const UUID: u8 = 2;
const NUMBER: u8 = 3;
const INPUT: u8 = 4;
const ANSWERS: u8 = 5;
const SUM: u8 = 6;

/// Bytes of a frame's length and checksum.
const FRAME_BYTES: usize = 12;

impl Tape {
    /// A tape that records.
    pub(crate) fn recording() -> Tape {
        Tape::of(Side::Recording {
            frames: Vec::new(),
            begin: 0,
        })
    }

    /// A tape that replays.
    pub(crate) fn replaying() -> Tape {
        Tape::of(Side::Replaying {
            items: VecDeque::new(),
            problem: None,
        })
    }

    fn of(side: Side) -> Tape {
        Tape(Some(Arc::new(Mutex::new(State {
            sessions: Sessions::default(),
            sum: Checksum::default(),
            bodies: Vec::new(),
            side,
        }))))
    }

    /// Ends the recording.
    pub(crate) fn end(&mut self) {
        self.0 = None;
    }

    /// A source of UUIDs that records them, or replays recorded ones.
    pub(crate) fn uuids(&self, real: Box<dyn UuidSource + Send>) -> Box<dyn UuidSource + Send> {
        Box::new(TapedUuids {
            tape: self.clone(),
            real,
        })
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.0.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A side value, which no input contains: the real one, or in a replay the recorded one.
    pub(crate) fn number(&self, real: impl FnOnce() -> u64) -> u64 {
        let Some(mut state) = self.lock() else {
            return real();
        };
        match &mut state.side {
            Side::Recording { frames, .. } => {
                let number = real();
                frames.push(NUMBER);
                Writer(frames).number(number);
                number
            }
            Side::Replaying { .. } => match state.next("a number") {
                Some(Item::Number(number)) => number,
                other => state.expected("a number", other.as_ref(), 0),
            },
        }
    }

    /// A side value that is a flag.
    pub(crate) fn flag(&self, real: impl FnOnce() -> bool) -> bool {
        if self.0.is_none() {
            return real();
        }
        self.number(|| u64::from(real())) != 0
    }

    /// Records a reading of the clock.
    pub(crate) fn now(&self, now: Now) {
        self.write(|out, _| {
            out.0.push(NOW);
            now.write(out);
        });
    }

    /// Starts a batch; `steps`: the work budget, if a shard executes it.
    pub(crate) fn begin(&self, steps: Option<u64>) {
        self.begin_frame(|out| match steps {
            None => out.number(THREAD),
            Some(steps) => {
                out.number(INLINE);
                out.number(steps);
            }
        });
    }

    /// Records a change of a setting between two batches.
    pub(crate) fn setting(&self, setting: Setting, value: u64) {
        self.begin_frame(|out| {
            out.number(SETTING);
            out.number(setting as u64);
            out.number(value);
        });
        self.end_frame();
    }

    /// Records an input that is about to be executed.
    pub(crate) fn input(&self, input: &ToDatabase) {
        self.write(|out, sessions| {
            out.0.push(INPUT);
            input::write(out, input, sessions);
        });
    }

    /// Records immediate replies of the storage.
    pub(crate) fn answers(&self, answers: &[ToDatabase]) {
        self.write(|out, sessions| {
            out.0.push(ANSWERS);
            out.number(answers.len() as u64);
            for answer in answers {
                input::write(out, answer, sessions);
            }
        });
    }

    /// Adds a delivery to the checksum.
    pub(crate) fn deliver(&self, deliver: &Deliver) {
        if let Some(mut state) = self.lock() {
            state.add(deliver);
        }
    }

    /// Ends the batch: records the checksum of its deliveries, or compares it with the recorded
    /// one.
    pub(crate) fn finish(&self) {
        let Some(mut state) = self.lock() else {
            return;
        };
        let sum = std::mem::take(&mut state.sum).value();
        state.bodies.clear();
        // A replay compares and ends here. A recording writes the checksum as the batch's last
        // item.
        if let Side::Replaying { .. } = state.side {
            match state.next("the end of a batch") {
                Some(Item::Sum(recorded)) if recorded == sum => {}
                Some(Item::Sum(_)) => {
                    state.report_difference("sessions were sent other bytes".to_owned());
                }
                other => state.expected("the end of a batch", other.as_ref(), ()),
            }
            return;
        }
        drop(state);
        self.write(|out, _| {
            out.0.push(SUM);
            out.0.extend_from_slice(&sum.to_le_bytes());
        });
        self.end_frame();
    }

    /// Starts a frame with the bytes that `write` appends.
    pub(crate) fn begin_frame(&self, write: impl FnOnce(&mut Writer<'_>)) {
        if let Some(mut state) = self.lock()
            && let Side::Recording { frames, begin } = &mut state.side
        {
            *begin = frames.len();
            // Room for length and checksum, which are known only at the end.
            frames.extend_from_slice(&[0; FRAME_BYTES]);
            write(&mut Writer(frames));
        }
    }

    /// Completes the frame: fills in its length and checksum.
    pub(crate) fn end_frame(&self) {
        if let Some(mut state) = self.lock()
            && let Side::Recording { frames, begin } = &mut state.side
        {
            let (head, payload) = frames[*begin..].split_at_mut(FRAME_BYTES);
            let mut sum = Checksum::default();
            sum.bytes(payload);
            let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            head[..4].copy_from_slice(&length.to_le_bytes());
            head[4..].copy_from_slice(&sum.value().to_le_bytes());
        }
    }

    fn write(&self, write: impl FnOnce(&mut Writer<'_>, &mut Sessions)) {
        if let Some(mut state) = self.lock() {
            let State { sessions, side, .. } = &mut *state;
            if let Side::Recording { frames, .. } = side {
                write(&mut Writer(frames), sessions);
            }
        }
    }

    /// Takes the complete frames. Call between two batches.
    pub(crate) fn take_frames(&self) -> Vec<u8> {
        match self.lock().as_deref_mut() {
            Some(State {
                side: Side::Recording { frames, begin },
                ..
            }) => {
                *begin = 0;
                std::mem::take(frames)
            }
            _ => Vec::new(),
        }
    }

    /// Loads the items of a batch to replay. Returns the batch's executor.
    pub(crate) fn load(&self, payload: &[u8]) -> Result<Mode, Damage> {
        let mut from = Reader(payload);
        let mode = match from.number()? {
            THREAD => Mode::Thread,
            INLINE => Mode::Inline(from.number()?),
            SETTING => {
                let setting = usize::try_from(from.number()?).ok();
                let setting = setting.and_then(|number| SETTINGS.get(number));
                let setting = setting.ok_or_else(|| Damage::new("an unknown setting"))?;
                Mode::Setting(*setting, from.number()?)
            }
            _ => return Err(Damage::new("a batch of an unknown kind")),
        };
        let Some(mut state) = self.lock() else {
            return Err(Damage::new("nothing is replayed"));
        };
        let State { sessions, side, .. } = &mut *state;
        if let Side::Replaying { items, .. } = side {
            items.clear();
            while !from.is_empty() {
                items.push_back(Item::read(&mut from, sessions)?);
            }
        }
        Ok(mode)
    }

    /// The next input of the replayed batch; `None` if the next item is not an input.
    pub(crate) fn next_input(&self) -> Option<Input> {
        let mut state = self.lock()?;
        match &mut state.side {
            Side::Replaying { items, .. } => {
                // The batch ends where its recorded inputs end, even if the pump would accept more.
                if !matches!(items.front(), Some(Item::Input(_))) {
                    return None;
                }
                match items.pop_front() {
                    Some(Item::Input(input)) => Some(input),
                    _ => None,
                }
            }
            Side::Recording { .. } => None,
        }
    }

    /// The next reading of the clock in the replayed batch.
    pub(crate) fn next_now(&self) -> Now {
        let Some(mut state) = self.lock() else {
            return Now::default();
        };
        match state.next("the time") {
            Some(Item::Now(now)) => now,
            other => state.expected("the time", other.as_ref(), Now::default()),
        }
    }

    pub(crate) fn next_answers(&self) -> Vec<Input> {
        let Some(mut state) = self.lock() else {
            return Vec::new();
        };
        match state.next("answers of the disk") {
            Some(Item::Answers(answers)) => answers,
            other => state.expected("answers of the disk", other.as_ref(), Vec::new()),
        }
    }

    /// Records a difference, unless there is an earlier one.
    pub(crate) fn report_difference(&self, problem: String) {
        if let Some(mut state) = self.lock() {
            state.report_difference(problem);
        }
    }

    /// Takes the first difference of the replayed batch.
    pub(crate) fn take_problem(&self) -> Option<String> {
        match &mut self.lock()?.side {
            Side::Replaying { items, problem } => {
                let is_left = (!items.is_empty()).then(|| "less was asked for".to_owned());
                items.clear();
                problem.take().or(is_left)
            }
            Side::Recording { .. } => None,
        }
    }
}

impl State {
    fn next(&mut self, what: &str) -> Option<Item> {
        let Side::Replaying { items, problem } = &mut self.side else {
            return None;
        };
        let item = items.pop_front();
        if item.is_none() && problem.is_none() {
            *problem = Some(format!("{what} is asked for, and nothing follows"));
        }
        item
    }

    fn expected<T>(&mut self, what: &str, found: Option<&Item>, instead: T) -> T {
        let found = found.map_or("nothing", Item::name);
        self.report_difference(format!("{what} is asked for, and {found} follows"));
        instead
    }

    fn report_difference(&mut self, found: String) {
        if let Side::Replaying { problem, .. } = &mut self.side {
            problem.get_or_insert(found);
        }
    }

    fn add(&mut self, deliver: &Deliver) {
        let mut sum = self.sum;
        sum.number(deliver.session.0);
        sum.number(u64::from(deliver.report_drained));
        for piece in &deliver.pieces {
            match piece {
                Piece::Message(text) => sum.bytes(text),
                Piece::Long(frame) | Piece::Update(frame) => {
                    sum.bytes(&frame.head);
                    sum.number(self.sum_of(&frame.body));
                    sum.bytes(frame.tail);
                }
            }
        }
        self.sum = sum;
    }

    /// The checksum of a body, computed once per batch although many sessions may share the body.
    fn sum_of(&mut self, body: &SharedBody) -> u64 {
        let pieces = body.pieces();
        let address = |text: &SharedBody| text.pieces().first().map(|piece| piece.as_ptr());
        let is_it = |known: &&(SharedBody, u64)| {
            address(&known.0) == address(body) && known.0.pieces().len() == pieces.len()
        };
        if let Some((_, sum)) = self.bodies.iter().find(is_it) {
            return *sum;
        }
        let mut sum = Checksum::default();
        let mut length = 0;
        for piece in pieces {
            sum.bytes(piece);
            length += piece.len() as u64;
        }
        sum.number(length);
        if self.bodies.len() < BODIES_MAX {
            self.bodies.push((body.clone(), sum.value()));
        }
        sum.value()
    }
}

impl Item {
    fn read(from: &mut Reader<'_>, sessions: &mut Sessions) -> Result<Item, Damage> {
        Ok(match from.byte()? {
            NOW => Item::Now(Now::read(from)?),
            UUID => Item::Uuid(Uuid::read(from)?),
            NUMBER => Item::Number(from.number()?),
            INPUT => Item::Input(input::read(from, sessions)?),
            ANSWERS => {
                let mut answers = Vec::new();
                for _ in 0..from.number()? {
                    answers.push(input::read(from, sessions)?);
                }
                Item::Answers(answers)
            }
            SUM => {
                let bytes: Result<[u8; 8], _> = from.take(8)?.try_into();
                Item::Sum(u64::from_le_bytes(bytes.unwrap_or_default()))
            }
            _ => return Err(Damage::new("something of an unknown kind")),
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Item::Now(_) => "the time",
            Item::Uuid(_) => "an identity",
            Item::Number(_) => "a number",
            Item::Input(_) => "an input",
            Item::Answers(_) => "answers of the disk",
            Item::Sum(_) => "the end of the batch",
        }
    }
}

struct TapedUuids {
    tape: Tape,
    real: Box<dyn UuidSource + Send>,
}

impl UuidSource for TapedUuids {
    fn fresh(&mut self) -> Uuid {
        let Some(mut state) = self.tape.lock() else {
            return self.real.fresh();
        };
        match &mut state.side {
            Side::Recording { frames, .. } => {
                let uuid = self.real.fresh();
                frames.push(UUID);
                uuid.write(&mut Writer(frames));
                uuid
            }
            Side::Replaying { .. } => match state.next("an identity") {
                Some(Item::Uuid(uuid)) => uuid,
                other => state.expected("an identity", other.as_ref(), self.real.fresh()),
            },
        }
    }
}
