//! One connection above its bytes: the inactivity probe, and the `echo` messages that both sides
//! handle without their user.
//!
//! Connections between members of a cluster have one each, and so has a reading of the past for a
//! relay's client. Sessions of a shard and [`Reconnect`](crate::Reconnect) have the [`Probe`]
//! alone. A session owns neither a queue nor a socket; it returns the bytes to send.

use crate::message::{self, Message};
use crate::probe::{Demand, Probe};

/// The state of one connection. All times are monotonic ms.
#[derive(Debug, Clone)]
pub struct Session {
    probe: Probe,
}

/// How to handle a received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received<'a> {
    /// An `echo` request; this is the reply to send.
    Echo(Vec<u8>),
    /// The reply to this side's probe: nothing is left to do.
    ProbeReply,
    /// Any other message: the caller handles it.
    Message(Message<'a>),
}

/// The action due when the probe's interval has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes.
    Send(&'static [u8]),
    /// Close the connection: the peer has not answered a probe.
    Close {
        /// Time since the probe was sent, ms.
        unanswered_ms: u64,
    },
}

impl<'a> Received<'a> {
    /// Decides how a message must be handled.
    #[must_use]
    pub fn of(message: Message<'a>) -> Received<'a> {
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
}

impl Session {
    /// The session of a connection that has just been established; a probe interval of 0 disables
    /// probes.
    #[must_use]
    pub fn new(now_ms: u64, probe_interval_ms: u64) -> Self {
        Session {
            probe: Probe::new(now_ms, probe_interval_ms),
        }
    }

    /// The probe timer, to which the caller reports received bytes and attempts to read.
    pub fn probe(&mut self) -> &mut Probe {
        &mut self.probe
    }

    /// Decides how to handle a message ([`Received::of`]).
    #[must_use]
    pub fn receive<'a>(&self, message: Message<'a>) -> Received<'a> {
        Received::of(message)
    }

    /// The action that is due now, if any.
    pub fn handle(&mut self, now_ms: u64) -> Option<Action> {
        self.probe.handle(now_ms).map(|demand| match demand {
            Demand::Probe { .. } => Action::Send(message::PROBE),
            Demand::Disconnect { unanswered_ms } => Action::Close { unanswered_ms },
        })
    }

    /// When to call [`Session::handle`] next; `None` if never.
    #[must_use]
    pub fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        self.probe.deadline_ms(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Received, Session};
    use crate::message::{Message, PROBE};

    fn receive(text: &str) -> Received<'_> {
        Session::new(0, 0).receive(Message::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn echo_requests_are_answered_with_their_params() {
        let received = receive(r#"{"method":"echo", "params":[1.50, "a"], "id":{"b":1,"a":2}}"#);
        assert_eq!(
            received,
            Received::Echo(br#"{"id":{"a":2,"b":1},"result":[1.5,"a"],"error":null}"#.to_vec())
        );
    }

    #[test]
    fn only_replies_to_probes_are_consumed() {
        assert_eq!(
            receive(r#"{"id":"echo","result":[]}"#),
            Received::ProbeReply
        );
        assert_eq!(
            receive(r#"{"id":"\u0065cho","result":[]}"#),
            Received::ProbeReply
        );
        for text in [
            r#"{"id":"echo","error":[]}"#,
            r#"{"id":"other","result":[]}"#,
            r#"{"id":null,"method":"echo","params":[]}"#,
            r#"{"id":1,"method":"transact","params":[]}"#,
        ] {
            assert!(matches!(receive(text), Received::Message(_)), "{text}");
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
