//! A connection that is re-established whenever it ends: attempts, waits, probes, giving up
//! (docs/spec/cli.md 5.2).
//!
//! A pure machine. The shell reports events (`connecting`, `connected`, `disconnected`, `activity`,
//! `receive_attempted`), asks [`Reconnect::handle`] for the due action, executes it, and sleeps
//! until [`Reconnect::deadline_ms`]. An action is repeated until its outcome is reported. Clients,
//! relays and the server's active remotes use it. It manages one connection at a time; a caller
//! with a list of remotes picks the next one at each [`Action::Connect`].
//!
//! ```text
//!             enable               connecting                connected
//!     Void -----------> BackingOff -------------> Trying ------------------> Connected
//!      ^                  ^   |                     |                            |
//!      |                  |   | listening           | timeout       silence, force
//!      | no tries left    |   v                     v                            v
//!      +------------------+---Listening             +---------> Closing <--------+
//!                         |                                        |
//!                         +--------------- disconnected -----------+
//! ```

use crate::backoff::{Backoff, MIN_MS, Step};
use crate::log_event::{End, LogEvent};
use crate::probe::{Demand, Probe};

/// An action for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Start an attempt, or open a listener. Then report `connecting` (or `listening`), and
    /// `connected` or `disconnected`.
    Connect,
    /// Close the connection or abandon the attempt, then report `disconnected` with [`End::Local`].
    Disconnect,
    /// Send [`crate::message::PROBE`].
    Probe,
}

/// A reconnecting connection. All times are monotonic ms.
#[derive(Debug, Clone)]
pub struct Reconnect {
    state: State,
    backoff: Backoff,
    probe_interval_ms: u64,
    is_passive: bool,
    /// Attempts left; `None` if unlimited.
    tries: Option<u32>,
    connected_at_ms: Option<u64>,
    disconnected_at_ms: Option<u64>,
    seqno: u64,
    log_events: Vec<LogEvent>,
}

#[derive(Debug, Clone)]
enum State {
    /// Disabled, or out of tries.
    Void,
    /// The next attempt starts at this time.
    BackingOff {
        until_ms: u64,
    },
    /// Waiting until a peer connects.
    Listening,
    /// An attempt is in progress.
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
    /// A disabled machine with default settings.
    #[must_use]
    pub fn new() -> Self {
        Reconnect::default()
    }

    /// The waits between attempts.
    pub fn backoff(&mut self) -> &mut Backoff {
        &mut self.backoff
    }

    /// Sets the probe interval, including that of the current connection, ms; 0 disables probes.
    pub fn set_probe_interval(&mut self, interval_ms: u64) {
        self.probe_interval_ms = interval_ms;
        if let State::Connected(connection) = &mut self.state {
            connection.probe.set_interval(interval_ms);
        }
    }

    /// Sets how many attempts may still be made; `None`, the default, means unlimited.
    pub fn set_tries(&mut self, tries: Option<u32>) {
        self.tries = tries;
    }

    /// Sets whether the next attempt waits for the peer instead of connecting to it.
    pub fn set_passive(&mut self, is_passive: bool) {
        self.is_passive = is_passive;
    }
}

/// Events.
impl Reconnect {
    /// Enables the machine; the first attempt is due at once.
    pub fn enable(&mut self, now_ms: u64) {
        if matches!(self.state, State::Void) && self.take_try() {
            self.backoff.reset();
            self.state = State::BackingOff { until_ms: now_ms };
        }
    }

    /// Disables the machine. The shell closes open connections.
    pub fn disable(&mut self, now_ms: u64) {
        self.leave(now_ms);
        self.state = State::Void;
    }

    /// Abandons the connection or the attempt in favor of a new one.
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

    /// An attempt has started.
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

    /// A listener has been opened.
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

    /// The attempt, the connection or the listener has ended.
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
        // Measured to the last activity, not to the end: a connection that hung for an hour has not
        // been good for an hour.
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

    /// Bytes have arrived, or queued output has been sent.
    pub fn activity(&mut self, now_ms: u64) {
        if let State::Connected(connection) = &mut self.state {
            connection.active_ms = now_ms;
            connection.probe.activity(now_ms);
        }
    }

    /// The shell has tried to read.
    pub fn receive_attempted(&mut self, now_ms: u64) {
        if let State::Connected(connection) = &mut self.state {
            connection.probe.receive_attempted(now_ms);
        }
    }

    /// Sets the wait after a connection that lasted `lasted_ms`, or after a failed attempt
    /// (`None`).
    fn back_off(&mut self, lasted_ms: Option<u64>) {
        let is_passive = self.is_passive;
        // The peer decides when to return, so a listener reopens without a backoff.
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

    /// Records the end of an established connection.
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
    /// The action that is due now, if any.
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

    /// When to call [`Reconnect::handle`] next; `None` if nothing is due before the next event.
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

    /// Takes the log events that have not been reported yet, oldest first.
    pub fn take_log_events(&mut self) -> Vec<LogEvent> {
        std::mem::take(&mut self.log_events)
    }

    /// Whether a connection is established and not being closed.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected(_))
    }

    /// Whether a closing demanded by [`Reconnect::force`] is not complete yet.
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

    /// Whether the machine is enabled: it is connected or will try to connect.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !matches!(self.state, State::Void)
    }

    /// A number that increases by one whenever a connection is established or ends.
    #[must_use]
    pub fn seqno(&self) -> u64 {
        self.seqno
    }

    /// The state's name in status reports (docs/spec/cli.md 1.6).
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

    /// Time since a connection was last established, ms; `None` if never.
    #[must_use]
    pub fn since_connect_ms(&self, now_ms: u64) -> Option<u64> {
        self.connected_at_ms
            .map(|at_ms| now_ms.saturating_sub(at_ms))
    }

    /// Time since an established connection last ended, ms; `None` if never.
    #[must_use]
    pub fn since_disconnect_ms(&self, now_ms: u64) -> Option<u64> {
        self.disconnected_at_ms
            .map(|at_ms| now_ms.saturating_sub(at_ms))
    }
}
