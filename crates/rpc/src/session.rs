//! One connection above its bytes: probes, and the messages that either side answers or swallows without asking anyone.
//!
//! Servers, clients and relays all hold one per connection. It owns no queue and no socket; what it wants sent it returns.

use crate::message::{self, Message};
use crate::probe::{Demand, Probe};

/// The state of one connection. Times are in milliseconds.
#[derive(Debug, Clone)]
pub struct Session {
    probe: Probe,
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received<'a> {
    /// It was an `echo` request; this is the reply to send.
    Echo(Vec<u8>),
    /// It was the reply to a probe of this side. Nothing is left to do.
    ProbeReply,
    /// Any other message: the caller handles it.
    Message(Message<'a>),
}

/// What a session wants done when its timer ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes.
    Send(&'static [u8]),
    /// Close: the peer left a probe unanswered that long.
    Close {
        /// How long ago it was asked.
        unanswered_ms: u64,
    },
}

impl Session {
    /// The session of a connection that was just established; a probe interval of 0 turns probes off.
    #[must_use]
    pub fn new(now_ms: u64, probe_interval_ms: u64) -> Self {
        Session {
            probe: Probe::new(now_ms, probe_interval_ms),
        }
    }

    /// The probe timer: tell it of bytes and of attempts to read.
    pub fn probe(&mut self) -> &mut Probe {
        &mut self.probe
    }

    /// Sorts a message out.
    #[must_use]
    pub fn receive<'a>(&self, message: Message<'a>) -> Received<'a> {
        match message {
            Message::Request { method, params, id } if &*method == b"echo" => {
                let mut answer = Vec::with_capacity(params.len() + id.len() + 32);
                message::write_reply(
                    &mut answer,
                    &message::canonical_id(id),
                    &message::canonical(params),
                );
                Received::Echo(answer)
            }
            Message::Reply { id, .. } if message::is_probe_id(id) => Received::ProbeReply,
            message => Received::Message(message),
        }
    }

    /// What is due now, if anything.
    pub fn handle(&mut self, now_ms: u64) -> Option<Action> {
        self.probe.handle(now_ms).map(|demand| match demand {
            Demand::Ask { .. } => Action::Send(message::PROBE),
            Demand::GiveUp { unanswered_ms } => Action::Close { unanswered_ms },
        })
    }

    /// When [`Session::handle`] is to be called next; `None` when never.
    #[must_use]
    pub fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        self.probe.deadline_ms(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Received, Session};
    use crate::message::{Message, PROBE};

    fn hear(text: &str) -> Received<'_> {
        Session::new(0, 0).receive(Message::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn echo_requests_are_answered_with_their_params() {
        let heard = hear(r#"{"method":"echo", "params":[1.50, "a"], "id":{"b":1,"a":2}}"#);
        assert_eq!(
            heard,
            Received::Echo(br#"{"id":{"a":2,"b":1},"result":[1.5,"a"],"error":null}"#.to_vec())
        );
    }

    #[test]
    fn answers_to_probes_are_swallowed_and_nothing_else_is() {
        assert_eq!(hear(r#"{"id":"echo","result":[]}"#), Received::ProbeReply);
        assert_eq!(
            hear(r#"{"id":"\u0065cho","result":[]}"#),
            Received::ProbeReply
        );
        for text in [
            r#"{"id":"echo","error":[]}"#,
            r#"{"id":"other","result":[]}"#,
            r#"{"id":null,"method":"echo","params":[]}"#,
            r#"{"id":1,"method":"transact","params":[]}"#,
        ] {
            assert!(matches!(hear(text), Received::Message(_)), "{text}");
        }
    }

    #[test]
    fn a_silent_peer_is_probed_and_dropped() {
        let mut session = Session::new(0, 5000);
        session.probe().receive_attempted(5000);
        assert_eq!(session.handle(5000), Some(Action::Send(PROBE)));
        assert_eq!(session.deadline_ms(5000), Some(10_000));
        session.probe().receive_attempted(10_000);
        assert_eq!(
            session.handle(10_000),
            Some(Action::Close {
                unanswered_ms: 5000
            })
        );
    }
}
