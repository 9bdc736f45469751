//! A connection that is established again whenever it ends: attempts, waits, probes, giving up (docs/spec/cli.md 5.2).
//!
//! A pure machine. The shell reports what happened (`connecting`, `connected`, `disconnected`, `activity`, `receive_attempted`), asks
//! [`Reconnect::handle`] what to do, does it, and sleeps until [`Reconnect::deadline_ms`]. An action is repeated until
//! its outcome is reported. Clients, relays and active remotes of the server use it. It manages one connection at a
//! time; a caller with a list of remotes picks the next one at each [`Action::Connect`].
//!
//! ```text
//!             enable               connecting                connected
//!     Void -----------> BackingOff -------------> Trying ------------------> Connected
//!      ^                  ^   |                     |                            |
//!      |                  |   | listening           | time-out      silence, force
//!      | no tries left    |   v                     v                            v
//!      +------------------+---Listening             +---------> Closing <--------+
//!                         |                                        |
//!                         +--------------- disconnected -----------+
//! ```

use crate::backoff::{Backoff, MIN_MS, Step};
use crate::log_event::{End, LogEvent};
use crate::probe::{Demand, Probe};

/// An action that the shell must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Begin an attempt (or open a listener), then report `connecting` (or `listening`), `connected` or `disconnected`.
    Connect,
    /// Close the connection or give up the attempt, then report `disconnected` with [`End::Local`].
    Disconnect,
    /// Send [`crate::message::PROBE`].
    Probe,
}

/// A reconnecting connection. Times are in milliseconds.
#[derive(Debug, Clone)]
pub struct Reconnect {
    state: State,
    backoff: Backoff,
    probe_interval_ms: u64,
    is_passive: bool,
    /// Attempts left; `None` is without limit.
    tries: Option<u32>,
    connected_at_ms: Option<u64>,
    disconnected_at_ms: Option<u64>,
    seqno: u64,
    log_events: Vec<LogEvent>,
}

#[derive(Debug, Clone)]
enum State {
    /// Switched off, or out of tries.
    Void,
    /// An attempt begins then.
    BackingOff {
        until_ms: u64,
    },
    /// Until a peer connects.
    Listening,
    /// An attempt is under way.
    Trying {
        since_ms: u64,
    },
    Connected(Connection),
    /// The attempt, or the established connection `was`, must be closed.
    Closing {
        was: Option<Connection>,
        is_forced: bool,
    },
}

#[derive(Debug, Clone)]
struct Connection {
    since_ms: u64,
    active_ms: u64,
    probe: Probe,
}

impl Default for Reconnect {
    fn default() -> Self {
        Reconnect {
            state: State::Void,
            backoff: Backoff::default(),
            probe_interval_ms: crate::probe::INTERVAL_MS_DEFAULT,
            is_passive: false,
            tries: None,
            connected_at_ms: None,
            disconnected_at_ms: None,
            seqno: 0,
            log_events: Vec::new(),
        }
    }
}

/// Settings.
impl Reconnect {
    /// A machine that is switched off, with the usual settings.
    #[must_use]
    pub fn new() -> Self {
        Reconnect::default()
    }

    /// Waits between attempts.
    pub fn backoff(&mut self) -> &mut Backoff {
        &mut self.backoff
    }

    /// Sets the probe interval, also that of the present connection; 0 turns probes off.
    pub fn set_probe_interval(&mut self, interval_ms: u64) {
        self.probe_interval_ms = interval_ms;
        if let State::Connected(connection) = &mut self.state {
            connection.probe.set_interval(interval_ms);
        }
    }

    /// Sets how many attempts may be made from now on; `None`, the default, is without limit.
    pub fn set_tries(&mut self, tries: Option<u32>) {
        self.tries = tries;
    }

    /// Sets whether to wait for the peer instead of connecting to it. For a machine that is switched off.
    pub fn set_passive(&mut self, is_passive: bool) {
        self.is_passive = is_passive;
    }
}

/// Events.
impl Reconnect {
    /// Switches the machine on; the first attempt is due at once.
    pub fn enable(&mut self, now_ms: u64) {
        if matches!(self.state, State::Void) && self.take_try() {
            self.backoff.reset();
            self.state = State::BackingOff { until_ms: now_ms };
        }
    }

    /// Switches the machine off. The shell closes what is open.
    pub fn disable(&mut self, now_ms: u64) {
        self.leave(now_ms);
        self.state = State::Void;
    }

    /// Gives up the connection or the attempt in favour of a new one.
    pub fn force(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Void) {
            State::Connected(connection) => State::Closing {
                was: Some(connection),
                is_forced: true,
            },
            State::Trying { .. } => State::Closing {
                was: None,
                is_forced: true,
            },
            other => other,
        };
    }

    /// An attempt is under way.
    pub fn connecting(&mut self, now_ms: u64) {
        if matches!(self.state, State::Trying { .. }) {
            return;
        }
        self.leave(now_ms);
        if self.is_passive {
            self.log_events.push(LogEvent::Listening);
        } else if !self.backoff.is_at_limit() {
            self.log_events.push(LogEvent::Connecting);
        }
        self.state = State::Trying { since_ms: now_ms };
    }

    /// A listener is open.
    pub fn listening(&mut self, now_ms: u64) {
        if !matches!(self.state, State::Listening) {
            self.leave(now_ms);
            self.log_events.push(LogEvent::Listening);
            self.state = State::Listening;
        }
    }

    /// The connection is established.
    pub fn connected(&mut self, now_ms: u64) {
        if self.is_connected() {
            return;
        }
        self.log_events.push(LogEvent::Connected);
        self.seqno += 1;
        self.connected_at_ms = Some(now_ms);
        let probe = Probe::new(now_ms, self.probe_interval_ms);
        self.state = State::Connected(Connection {
            since_ms: now_ms,
            active_ms: now_ms,
            probe,
        });
    }

    /// The attempt, the connection or the listener ended.
    pub fn disconnected(&mut self, now_ms: u64, end: End) {
        let (event, connection) = match &self.state {
            State::Void | State::BackingOff { .. } => return,
            State::Listening => (Some(LogEvent::ListenFailed(end)), None),
            State::Connected(connection) => (Some(LogEvent::Dropped(end)), Some(connection)),
            State::Closing {
                was: Some(connection),
                is_forced: false,
            } => (Some(LogEvent::Dropped(end)), Some(connection)),
            State::Closing {
                is_forced: true, ..
            } => (Some(LogEvent::ClosedByClient), None),
            State::Trying { .. } | State::Closing { .. } => {
                let event = LogEvent::AttemptFailed {
                    is_passive: self.is_passive,
                    end,
                };
                ((!self.backoff.is_at_limit()).then_some(event), None)
            }
        };
        self.log_events.extend(event);
        let lasted_ms = connection.map(|connection| connection.active_ms - connection.since_ms);
        self.leave(now_ms);
        if !self.take_try() {
            self.state = State::Void;
            return;
        }
        self.back_off(lasted_ms);
        self.state = State::BackingOff {
            until_ms: now_ms.saturating_add(self.backoff.current_ms()),
        };
    }

    /// Bytes arrived, or queued output went out.
    pub fn activity(&mut self, now_ms: u64) {
        if let State::Connected(connection) = &mut self.state {
            connection.active_ms = now_ms;
            connection.probe.activity(now_ms);
        }
    }

    /// The shell tried to read.
    pub fn receive_attempted(&mut self, now_ms: u64) {
        if let State::Connected(connection) = &mut self.state {
            connection.probe.receive_attempted(now_ms);
        }
    }

    /// The wait after a connection that lasted `lasted_ms`, or an attempt that failed.
    fn back_off(&mut self, lasted_ms: Option<u64>) {
        let is_passive = self.is_passive;
        if is_passive && lasted_ms.is_some() {
            self.backoff.reset();
            return;
        }
        let was_good = lasted_ms.is_some_and(|lasted_ms| lasted_ms >= self.backoff.current_ms());
        match self.backoff.fail(was_good) {
            Step::Doubled => {
                let wait_ms = self.backoff.current_ms();
                self.log_events.push(LogEvent::BackingOff {
                    is_passive,
                    wait_ms,
                });
            }
            Step::ReachedLimit => self.log_events.push(LogEvent::Suppressing { is_passive }),
            Step::Short | Step::AtLimit => {}
        }
    }

    /// Accounts for the end of an established connection.
    fn leave(&mut self, now_ms: u64) {
        if self.is_connected() || matches!(self.state, State::Closing { was: Some(_), .. }) {
            self.seqno += 1;
            self.disconnected_at_ms = Some(now_ms);
        }
    }

    fn take_try(&mut self) -> bool {
        match &mut self.tries {
            None => true,
            Some(0) => false,
            Some(tries) => {
                *tries -= 1;
                true
            }
        }
    }
}

/// Actions and state.
impl Reconnect {
    /// The action to do now, if any.
    pub fn handle(&mut self, now_ms: u64) -> Option<Action> {
        match &mut self.state {
            State::Void | State::Listening => None,
            State::BackingOff { until_ms } => (now_ms >= *until_ms).then_some(Action::Connect),
            State::Trying { since_ms } => (now_ms
                >= *since_ms + self.backoff.current_ms().max(MIN_MS))
            .then_some(Action::Disconnect),
            State::Closing { .. } => Some(Action::Disconnect),
            State::Connected(connection) => match connection.probe.handle(now_ms)? {
                Demand::Probe { idle_ms } => {
                    self.log_events.push(LogEvent::Probing { idle_ms });
                    Some(Action::Probe)
                }
                Demand::Disconnect { unanswered_ms } => {
                    self.log_events.push(LogEvent::Unanswered { unanswered_ms });
                    let was = Some(connection.clone());
                    self.state = State::Closing {
                        was,
                        is_forced: false,
                    };
                    Some(Action::Disconnect)
                }
            },
        }
    }

    /// When [`Reconnect::handle`] is to be called next; `None` when nothing is due before the next event.
    #[must_use]
    pub fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        match &self.state {
            State::Void | State::Listening => None,
            State::BackingOff { until_ms } => Some(*until_ms),
            State::Trying { since_ms } => Some(since_ms + self.backoff.current_ms().max(MIN_MS)),
            State::Closing { .. } => Some(now_ms),
            State::Connected(connection) => connection.probe.deadline_ms(now_ms),
        }
    }

    /// Removes and returns the log events that were not reported yet, oldest first.
    pub fn take_log_events(&mut self) -> Vec<LogEvent> {
        std::mem::take(&mut self.log_events)
    }

    /// Whether a connection is established (and not being closed).
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected(_))
    }

    /// Whether the closing that [`Reconnect::force`] asked for is not complete yet.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        matches!(
            self.state,
            State::Closing {
                is_forced: true,
                ..
            }
        )
    }

    /// Whether it is switched on: connected, or going to be.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !matches!(self.state, State::Void)
    }

    /// Grows by one whenever a connection is established or ends.
    #[must_use]
    pub fn seqno(&self) -> u64 {
        self.seqno
    }

    /// The state as status reports name it (docs/spec/cli.md 1.6).
    #[must_use]
    pub fn state_name(&self) -> &'static str {
        match &self.state {
            State::Void => "VOID",
            State::BackingOff { .. } => "BACKOFF",
            State::Listening => "LISTENING",
            State::Trying { .. } => "CONNECTING",
            State::Connected(connection) if connection.probe.is_pending() => "IDLE",
            State::Connected(_) => "ACTIVE",
            State::Closing { .. } => "RECONNECT",
        }
    }

    /// Time since a connection was last established.
    #[must_use]
    pub fn since_connect_ms(&self, now_ms: u64) -> Option<u64> {
        self.connected_at_ms
            .map(|at_ms| now_ms.saturating_sub(at_ms))
    }

    /// Time since an established connection last ended.
    #[must_use]
    pub fn since_disconnect_ms(&self, now_ms: u64) -> Option<u64> {
        self.disconnected_at_ms
            .map(|at_ms| now_ms.saturating_sub(at_ms))
    }
}
