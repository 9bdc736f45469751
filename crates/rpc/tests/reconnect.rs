//! Plays of a reconnecting connection in virtual time, compared by their traces.

use corvid_rpc::Reconnect;
use corvid_rpc::log_event::End;
use corvid_rpc::reconnect::Action;

/// A machine, its clock and its trace so far.
struct Play {
    machine: Reconnect,
    now_ms: u64,
    trace: Vec<String>,
}

impl Play {
    fn new(machine: Reconnect) -> Play {
        let mut play = Play {
            machine,
            now_ms: 1_000_000,
            trace: Vec::new(),
        };
        play.machine.enable(play.now_ms);
        play
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Reports an event and records the machine's log events.
    fn report(&mut self, event: impl FnOnce(&mut Reconnect, u64)) {
        event(&mut self.machine, self.now_ms);
        self.record();
    }

    fn record(&mut self) {
        let at_ms = self.now_ms - 1_000_000;
        let log_events = self.machine.take_log_events();
        self.trace
            .extend(log_events.iter().map(|event| format!("{at_ms} {event}")));
    }

    /// Sleeps until an action is due, and returns it. Reads find nothing meanwhile.
    fn wait(&mut self) -> Option<Action> {
        for _ in 0..10 {
            let action = self.machine.handle(self.now_ms);
            self.record();
            if action.is_some() {
                return action;
            }
            self.now_ms = self.machine.deadline_ms(self.now_ms)?.max(self.now_ms);
            self.machine.receive_attempted(self.now_ms);
        }
        panic!("deadlines without an action: {:?}", self.machine);
    }

    /// Expects an attempt to be due, and lets it fail at once.
    fn refuse(&mut self) {
        assert_eq!(self.wait(), Some(Action::Connect));
        self.report(Reconnect::connecting);
        self.report(|machine, now_ms| {
            machine.disconnected(now_ms, End::Failed("Connection refused".to_owned()));
        });
    }

    fn connect(&mut self) {
        assert_eq!(self.wait(), Some(Action::Connect));
        self.report(Reconnect::connecting);
        self.report(Reconnect::connected);
    }

    fn trace(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }
}

#[test]
fn failures_back_off_and_stop_being_logged() {
    let mut play = Play::new(Reconnect::new());
    (0..6).for_each(|_| play.refuse());
    assert_eq!(
        play.trace(),
        [
            "0 connecting...",
            "0 connection attempt failed (Connection refused)",
            "1000 connecting...",
            "1000 connection attempt failed (Connection refused)",
            "1000 waiting 2 seconds before reconnect",
            "3000 connecting...",
            "3000 connection attempt failed (Connection refused)",
            "3000 waiting 4 seconds before reconnect",
            "7000 connecting...",
            "7000 connection attempt failed (Connection refused)",
            "7000 continuing to reconnect in the background but suppressing further logging",
        ]
    );
    assert_eq!(play.machine.state_name(), "BACKOFF");
    play.connect();
    assert_eq!(play.trace(), ["31000 connected"]);
}

#[test]
fn an_attempt_times_out() {
    let mut play = Play::new(Reconnect::new());
    assert_eq!(play.wait(), Some(Action::Connect));
    play.report(Reconnect::connecting);
    assert_eq!(play.machine.state_name(), "CONNECTING");
    assert_eq!(play.wait(), Some(Action::Disconnect));
    play.report(|machine, now_ms| machine.disconnected(now_ms, End::Local));
    assert_eq!(
        play.trace(),
        ["0 connecting...", "1000 connection attempt timed out"]
    );
    assert_eq!(play.wait(), Some(Action::Connect));
    assert_eq!(play.now_ms(), 1_002_000);
}

#[test]
fn a_silent_peer_is_probed_and_dropped() {
    let mut play = Play::new(Reconnect::new());
    play.connect();
    assert_eq!(play.machine.state_name(), "ACTIVE");
    assert_eq!(play.wait(), Some(Action::Probe));
    assert_eq!(play.machine.state_name(), "IDLE");
    assert_eq!(play.wait(), Some(Action::Disconnect));
    assert_eq!(play.wait(), Some(Action::Disconnect), "until it is done");
    play.report(|machine, now_ms| machine.disconnected(now_ms, End::Local));
    assert_eq!(
        play.trace(),
        [
            "0 connecting...",
            "0 connected",
            "5000 idle 5000 ms, sending inactivity probe",
            "10000 no response to inactivity probe after 5 seconds, disconnecting",
            "10000 connection dropped",
        ]
    );
    assert_eq!(play.machine.since_connect_ms(play.now_ms), Some(10_000));
    assert_eq!(play.machine.since_disconnect_ms(play.now_ms), Some(0));
    assert_eq!(play.machine.seqno(), 2);
}

#[test]
fn a_sign_of_life_keeps_the_connection() {
    let mut play = Play::new(Reconnect::new());
    play.connect();
    for _ in 0..3 {
        assert_eq!(play.wait(), Some(Action::Probe));
        play.now_ms += 10;
        play.report(Reconnect::activity);
        assert_eq!(play.machine.state_name(), "ACTIVE");
    }
    assert_eq!(play.now_ms(), 1_015_030);
    assert!(play.machine.is_connected());
}

#[test]
fn a_connection_that_lasted_resets_the_wait() {
    let mut play = Play::new(Reconnect::new());
    (0..3).for_each(|_| play.refuse());
    play.connect();
    play.trace();
    play.now_ms += 4000;
    play.report(Reconnect::activity);
    play.report(|machine, now_ms| machine.disconnected(now_ms, End::Closed));
    assert_eq!(play.trace(), ["11000 connection closed by peer"]);
    play.refuse();
    assert_eq!(play.now_ms(), 1_012_000);
}

#[test]
fn a_connection_that_was_cut_at_once_does_not_reset_the_wait() {
    let mut play = Play::new(Reconnect::new());
    play.refuse();
    play.connect();
    play.trace();
    play.report(|machine, now_ms| machine.disconnected(now_ms, End::Closed));
    assert_eq!(
        play.trace(),
        [
            "1000 connection closed by peer",
            "1000 waiting 2 seconds before reconnect"
        ]
    );
}

#[test]
fn each_remote_of_a_list_is_tried_without_a_wait() {
    let mut machine = Reconnect::new();
    machine.backoff().set_free_tries(3);
    let mut play = Play::new(machine);
    (0..4).for_each(|_| play.refuse());
    let attempts: Vec<_> = play
        .trace()
        .into_iter()
        .filter(|line| line.ends_with("connecting..."))
        .collect();
    assert_eq!(
        attempts,
        [
            "0 connecting...",
            "0 connecting...",
            "0 connecting...",
            "1000 connecting..."
        ]
    );
}

#[test]
fn tries_run_out() {
    let mut machine = Reconnect::new();
    machine.set_tries(Some(2));
    let mut play = Play::new(machine);
    play.refuse();
    assert!(play.machine.is_enabled());
    play.refuse();
    assert!(!play.machine.is_enabled());
    assert_eq!(play.wait(), None);
    assert_eq!(play.machine.state_name(), "VOID");
}

#[test]
fn a_forced_reconnection_closes_first() {
    let mut play = Play::new(Reconnect::new());
    play.connect();
    play.machine.force();
    assert!(!play.machine.is_connected());
    assert_eq!(play.machine.state_name(), "RECONNECT");
    assert_eq!(play.wait(), Some(Action::Disconnect));
    play.report(|machine, now_ms| machine.disconnected(now_ms, End::Local));
    assert_eq!(
        play.trace(),
        [
            "0 connecting...",
            "0 connected",
            "0 connection closed by client"
        ]
    );
    assert_eq!(play.machine.seqno(), 2);
    play.connect();
    assert_eq!(play.machine.seqno(), 3);
}

#[test]
fn a_passive_session_listens_again_at_once() {
    let mut machine = Reconnect::new();
    machine.set_passive(true);
    let mut play = Play::new(machine);
    assert_eq!(play.wait(), Some(Action::Connect));
    play.report(Reconnect::listening);
    assert_eq!(play.wait(), None);
    play.report(Reconnect::connected);
    play.report(|machine, now_ms| machine.disconnected(now_ms, End::Closed));
    assert_eq!(play.wait(), Some(Action::Connect));
    assert_eq!(
        play.trace(),
        [
            "0 listening...",
            "0 connected",
            "0 connection closed by peer"
        ]
    );
}
