//! The connection below the session: which remote to connect to and when, and which messages have
//! arrived.
//!
//! Combines the reconnect machine, the list of remotes and the framing of the stream. An attempt
//! after a backoff is delayed by up to half of the backoff at random, so the clients of a failed
//! server do not all return at once. Nothing here knows methods.

use std::collections::VecDeque;

use corvid_json::{Assembler, StreamError};
use corvid_rpc::log_event::End;
use corvid_rpc::reconnect::Action;
use corvid_rpc::remote::RemoteList;
use corvid_rpc::{LogEvent, Reconnect};

use crate::prng::Prng;
use crate::remotes::{self, Remotes};

/// Bytes of unhandled messages at which the driver stops reading.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Longest message, bytes; a longer one ends the connection.
const MESSAGE_BYTES_MAX: usize = 2 << 30;

/// After a connection of at least this length, ms, the other remotes are tried at once, without a
/// backoff.
const GOOD_MS: u64 = 8000;

/// An action for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Demand {
    Connect(String),
    Disconnect,
    Probe,
}

/// The connection to one of several remotes.
#[derive(Debug)]
pub(crate) struct Link {
    reconnect: Reconnect,
    remotes: Remotes,
    assembler: Assembler,
    /// Complete messages that have not been handled.
    frames: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    prng: Prng,
    shuffles: bool,
    /// The due attempt is delayed until this time, monotonic ms.
    held_until_ms: Option<u64>,
    probe_interval_ms: Option<u64>,
    good_since_ms: Option<u64>,
}

impl Link {
    pub(crate) fn new(seed: u64) -> Link {
        Link {
            reconnect: Reconnect::new(),
            remotes: Remotes::default(),
            assembler: assembler(),
            frames: VecDeque::new(),
            waiting_bytes: 0,
            prng: Prng::new(seed),
            shuffles: true,
            held_until_ms: None,
            probe_interval_ms: None,
            good_since_ms: None,
        }
    }

    pub(crate) fn set_shuffle(&mut self, shuffles: bool) {
        self.shuffles = shuffles;
    }

    pub(crate) fn set_probe_interval(&mut self, interval_ms: Option<u64>) {
        self.probe_interval_ms = interval_ms;
        self.apply_probe_interval();
    }

    fn apply_probe_interval(&mut self) {
        let interval_ms = self.probe_interval_ms.or_else(|| {
            self.remotes
                .present()
                .map(remotes::default_probe_interval_ms)
        });
        self.reconnect
            .set_probe_interval(interval_ms.unwrap_or_default());
    }

    pub(crate) fn set_backoff(&mut self, min_ms: u64, max_ms: u64) {
        self.reconnect.backoff().set_limits(min_ms, max_ms);
    }

    /// Replaces the list. Returns whether the current connection, if any, is to a remote that is
    /// still listed.
    pub(crate) fn set_remotes(&mut self, now_ms: u64, list: RemoteList, retry: bool) -> bool {
        let present = self.remotes.present().map(str::to_owned);
        let shuffle = self.shuffles.then_some(&mut self.prng);
        self.remotes = Remotes::new(list, shuffle);
        let is_kept = present.is_some_and(|present| self.remotes.keep(&present));
        let count = self.remotes.count();
        self.reconnect.set_tries((!retry).then_some(count));
        if count == 0 {
            self.reconnect.disable(now_ms);
        } else {
            self.reconnect.enable(now_ms);
            self.reconnect.backoff().set_free_tries(count);
        }
        is_kept
    }

    /// Retries forever from now on.
    pub(crate) fn enable_retries(&mut self, now_ms: u64) {
        self.reconnect.set_tries(None);
        if self.remotes.count() > 0 {
            self.reconnect.enable(now_ms);
        }
    }

    pub(crate) fn remotes(&self) -> &[String] {
        self.remotes.names()
    }

    /// The remote that is connected, or was last tried.
    pub(crate) fn remote(&self) -> &str {
        self.remotes.present().unwrap_or("void")
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.reconnect.is_connected()
    }

    /// Whether [`Link::force`] has demanded another connection and the current one has not ended
    /// yet.
    pub(crate) fn is_forced(&self) -> bool {
        self.reconnect.is_forced()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.reconnect.is_enabled()
    }

    pub(crate) fn seqno(&self) -> u64 {
        self.reconnect.seqno()
    }

    pub(crate) fn take_log_events(&mut self) -> Vec<LogEvent> {
        self.reconnect.take_log_events()
    }

    /// From now on the connection serves its purpose.
    pub(crate) fn is_good(&mut self, now_ms: u64) {
        self.good_since_ms.get_or_insert(now_ms);
    }

    /// Demands another connection. If `is_urgent`, each remote is tried once before any backoff.
    pub(crate) fn force(&mut self, is_urgent: bool) {
        if is_urgent {
            // The end of the present connection uses up one of these tries.
            let tries = self.remotes.count() + u32::from(self.is_connected());
            self.reconnect.backoff().set_free_tries(tries);
        }
        self.reconnect.force();
    }
}

/// Events from the driver.
impl Link {
    pub(crate) fn listening(&mut self, now_ms: u64) {
        self.reconnect.listening(now_ms);
    }

    pub(crate) fn connected(&mut self, now_ms: u64) {
        self.clear_input();
        self.reconnect.connected(now_ms);
    }

    /// The connection or the attempt has ended.
    pub(crate) fn disconnected(&mut self, now_ms: u64, end: End) {
        self.clear_input();
        let was_good = (self.good_since_ms.take())
            .is_some_and(|since_ms| now_ms.saturating_sub(since_ms) >= GOOD_MS);
        // Before the reconnect machine learns of the end, because it then computes the wait.
        if was_good {
            let backoff = self.reconnect.backoff();
            backoff.reset();
            backoff.set_free_tries(self.remotes.count());
        }
        self.reconnect.disconnected(now_ms, end);
    }

    /// Bytes have arrived, or an attempt to read found none.
    pub(crate) fn received(&mut self, now_ms: u64, bytes: &[u8]) -> Result<(), String> {
        // An empty read counts too: a probe expires only after an attempt to read.
        self.reconnect.receive_attempted(now_ms);
        if bytes.is_empty() {
            return Ok(());
        }
        self.reconnect.activity(now_ms);
        for text in self.assembler.texts(bytes) {
            let frame = text.map_err(problem)?.into_owned();
            self.waiting_bytes += frame.len();
            self.frames.push_back(frame);
        }
        Ok(())
    }

    /// Output has been sent.
    pub(crate) fn sent(&mut self, now_ms: u64) {
        self.reconnect.activity(now_ms);
    }

    /// Whether the driver should read more.
    pub(crate) fn wants_input(&self) -> bool {
        self.waiting_bytes < WAITING_BYTES_MAX
    }

    /// Takes the next complete message.
    pub(crate) fn pop_frame(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.waiting_bytes -= frame.len();
        // Bytes left over would stop the driver from reading for good.
        assert!(
            !self.frames.is_empty() || self.waiting_bytes == 0,
            "waiting bytes are those of the messages"
        );
        Some(frame)
    }

    fn clear_input(&mut self) {
        self.assembler = assembler();
        self.frames.clear();
        self.waiting_bytes = 0;
    }
}

fn assembler() -> Assembler {
    let mut assembler = Assembler::default();
    assembler.set_bytes_max(MESSAGE_BYTES_MAX);
    assembler
}

fn problem(error: StreamError) -> String {
    match error {
        StreamError::Syntax(error) => error.to_string(),
        StreamError::TooLong(_) => "message is too long".to_owned(),
    }
}

/// Due actions.
impl Link {
    /// The action that is due, if any. The caller reports the end of a connection that it closes.
    pub(crate) fn handle(&mut self, now_ms: u64) -> Option<Demand> {
        match self.reconnect.handle(now_ms)? {
            Action::Disconnect => Some(Demand::Disconnect),
            Action::Probe => Some(Demand::Probe),
            Action::Connect => {
                // No delay without a backoff: first attempts and failovers are immediate. The delay
                // is drawn once per attempt, since this is called repeatedly until it has passed.
                let wait_ms = self.reconnect.backoff().current_ms();
                if wait_ms > 0 {
                    let prng = &mut self.prng;
                    let held_until_ms = *self
                        .held_until_ms
                        .get_or_insert_with(|| now_ms + prng.below(wait_ms / 2));
                    if now_ms < held_until_ms {
                        return None;
                    }
                }
                self.held_until_ms = None;
                let remote = self.remotes.advance()?.to_owned();
                self.reconnect.set_passive(remotes::is_passive(&remote));
                self.apply_probe_interval();
                self.reconnect.connecting(now_ms);
                Some(Demand::Connect(remote))
            }
        }
    }

    /// When to call [`Link::handle`] next, monotonic ms; `None` if nothing is due before the next
    /// event.
    pub(crate) fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        if !self.frames.is_empty() {
            return Some(now_ms);
        }
        let deadline_ms = self.reconnect.deadline_ms(now_ms)?;
        Some(
            self.held_until_ms
                .map_or(deadline_ms, |held| held.max(deadline_ms)),
        )
    }
}
