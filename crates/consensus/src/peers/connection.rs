//! One established connection.

use corvid_json::unfinished::Growth;
use corvid_json::{Assembler, Framer, PEER_DEPTH_MAX};
use corvid_log::cluster::Sid;
use corvid_rpc::Session;
use corvid_rpc::session::Action;

use super::BacklogLimits;
use super::backlog::{Backlog, Report};
use super::long_messages::{InboundParts, OutboundQueue};

/// A peer that has not identified itself within this time is disconnected, ms.
pub const IDENTIFICATION_MS: u64 = 10_000;

/// An established connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The name in log lines.
    pub(super) name: String,
    /// The address that was dialled; `None` if the connection was accepted.
    pub(super) dialled: Option<String>,
    /// When it was established, ms.
    pub(super) since_ms: u64,
    /// The server at the other end, once it has identified itself.
    pub(super) peer: Option<Sid>,
    /// The address that the server has announced.
    pub(super) address: Option<String>,
    /// Position in the order of identifications.
    pub(super) identified: u64,
    /// Whether the network leads to the server's listed place ([`super::vouching`]).
    pub(super) is_vouched: bool,
    /// Deadline by which something must arrive, because another connection claims the server, ms.
    pub(super) answer_until_ms: Option<u64>,
    pub(super) assembler: Assembler,
    /// Probes the peer when it is silent.
    pub(super) session: Session,
    pub(super) backlog: Backlog,
    /// Messages queued until parts of a long one have left.
    pub(super) outbound: OutboundQueue,
    /// The parts of a long message received so far.
    pub(super) inbound: InboundParts,
    /// Growth of the message that is arriving.
    pub(super) growth: Growth,
}

impl Connection {
    pub(super) fn new(
        name: &str,
        dialled: Option<String>,
        now_ms: u64,
        probe_ms: u64,
    ) -> Connection {
        Connection {
            name: name.to_owned(),
            dialled,
            since_ms: now_ms,
            peer: None,
            address: None,
            identified: 0,
            is_vouched: false,
            answer_until_ms: None,
            // A forwarded transaction may nest as deeply as a client's message, and is wrapped
            // here.
            assembler: Assembler::new(Framer::with_depth_max(PEER_DEPTH_MAX)),
            session: Session::new(now_ms, probe_ms),
            backlog: Backlog::default(),
            outbound: OutboundQueue::default(),
            inbound: InboundParts::default(),
            growth: Growth::new(now_ms),
        }
    }

    /// Bytes of messages that have begun to arrive.
    pub(super) fn begun_bytes(&self) -> usize {
        self.assembler.begun().len() + self.inbound.bytes()
    }

    /// Deadline for the peer to identify itself, ms.
    pub(super) fn identification_ms(&self) -> Option<u64> {
        let is_unknown = self.peer.is_none();
        is_unknown.then(|| self.since_ms.saturating_add(IDENTIFICATION_MS))
    }

    /// Reports what is due, at most a few things. The caller has tried to read before.
    pub(super) fn collect_due(
        &mut self,
        now_ms: u64,
        limits: BacklogLimits,
        mut report: impl FnMut(Due),
    ) {
        if let Some(backlog) = self.backlog.check(limits) {
            report(Due::Backlog(backlog));
        }
        let is_late = self
            .identification_ms()
            .is_some_and(|end_ms| now_ms >= end_ms);
        if is_late {
            return report(Due::Unidentified);
        }
        if self.answer_until_ms.is_some_and(|end_ms| now_ms >= end_ms) {
            return report(Due::Unanswered);
        }
        self.session.probe().receive_attempted(now_ms);
        if let Some(action) = self.session.handle(now_ms) {
            report(Due::Probe(action));
        }
    }
}

/// A condition that time or the backlog has brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The peer has not identified itself.
    Unidentified,
    /// Another connection claims the server, and this one has not answered.
    Unanswered,
    /// The peer is silent: probe it, or give up.
    Probe(Action),
    /// Much is unsent.
    Backlog(Report),
}
