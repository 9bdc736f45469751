//! The scenarios of `cluster/failure-test` (docs/spec/distribution.md 1.12): failures at chosen
//! moments, for tests and for operators' rehearsals.
//!
//! Invariant: at most one scenario is in force for the whole process; members that are served later
//! get it too. A member's thread checks the scenario at each of these moments; without a scenario
//! the check is one comparison.

use corvid_consensus::PeerMessage;
use corvid_consensus::member::Rehearsal;
use corvid_shell::program;
use corvid_shell::vlog::Module;

/// A failure scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// No scenario.
    Clear,
    /// All messages to and from other members stop.
    StopTraffic,
    /// Vote requests are not sent.
    NoVoteRequests,
    /// The leader transfers its leadership, once.
    Transfer,
    /// The leader transfers its leadership after the next message with entries, once.
    TransferAfterAppend,
    /// A scenario that the member itself carries out.
    Rehearsal(Rehearsal),
    /// The process ends at this moment, with this message.
    Crash(Moment, &'static str),
}

/// A moment at which a scenario may end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before a message of this kind is sent.
    BeforeSending(Kind),
    /// After a message of this kind was handed to the connection.
    AfterSending(Kind),
    /// After entries have arrived.
    AfterReceivingEntries,
    /// Before a peer's snapshot is installed.
    BeforeInstalling,
}

/// A kind of message that scenarios distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Entries of the log.
    Entries,
    /// Results of forwarded transactions.
    Outcomes,
    /// Forwarded transactions.
    Forwards,
}

impl Scenario {
    /// The scenario with this name, if it exists.
    pub(crate) fn parse(name: &str) -> Option<Scenario> {
        use Kind::{Entries, Forwards, Outcomes};
        use Moment::{AfterReceivingEntries, AfterSending, BeforeInstalling, BeforeSending};
        let crash = |moment, text| Some(Scenario::Crash(moment, text));
        match name {
            "clear" => Some(Scenario::Clear),
            "stop-raft-rpc" => Some(Scenario::StopTraffic),
            "dont-send-vote-request" => Some(Scenario::NoVoteRequests),
            "transfer-leadership" => Some(Scenario::Transfer),
            "transfer-leadership-after-sending-append-request" => {
                Some(Scenario::TransferAfterAppend)
            }
            "transfer-leadership-after-starting-to-add" => {
                Some(Scenario::Rehearsal(Rehearsal::TransferAfterStartingToAdd))
            }
            "delay-election" => Some(Scenario::Rehearsal(Rehearsal::DelayElections)),
            "force-election" => Some(Scenario::Rehearsal(Rehearsal::ForceElection)),
            "crash-before-sending-append-request" => crash(
                BeforeSending(Entries),
                "crash before sending append_request.",
            ),
            "crash-after-sending-append-request" => {
                crash(AfterSending(Entries), "crash after sending append_request.")
            }
            "crash-before-sending-execute-command-reply" => crash(
                BeforeSending(Outcomes),
                "crash before sending execute_command_reply",
            ),
            "crash-after-sending-execute-command-reply" => crash(
                AfterSending(Outcomes),
                "crash after sending execute_command_reply.",
            ),
            "crash-before-sending-execute-command-request" => crash(
                BeforeSending(Forwards),
                "crash before sending execute_command_request",
            ),
            "crash-after-sending-execute-command-request" => crash(
                AfterSending(Forwards),
                "crash after sending execute_command_request",
            ),
            "crash-after-receiving-append-request-update" => crash(
                AfterReceivingEntries,
                "crash after receiving append_request with update.",
            ),
            "crash-before-sending-install-snapshot-reply" => crash(
                BeforeInstalling,
                "crash before sending install_snapshot_reply",
            ),
            _ => None,
        }
    }

    /// The scenario in force after this one is engaged while `before` was in force.
    pub(crate) fn lasting(self, before: Scenario) -> Scenario {
        match self {
            Scenario::Rehearsal(Rehearsal::ForceElection) => before,
            Scenario::Transfer => Scenario::Clear,
            _ => self,
        }
    }

    /// Ends the process if the scenario asks for it at this moment.
    pub(super) fn reach(self, moment: Moment) {
        if let Scenario::Crash(awaited, text) = self
            && awaited == moment
        {
            program::fatal_logged(Module::Raft, format_args!("Raft test: {text}"));
        }
    }
}

/// The kind of a message, if scenarios distinguish it.
pub(super) fn kind(message: &PeerMessage) -> Option<Kind> {
    match message {
        PeerMessage::Append { entries, .. } if !entries.is_empty() => Some(Kind::Entries),
        PeerMessage::Outcomes { .. } => Some(Kind::Outcomes),
        PeerMessage::Forward { .. } => Some(Kind::Forwards),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_reference_are_known() {
        // The table in docs/spec/distribution.md 1.12.
        let specification = include_str!("../../../../docs/spec/distribution.md");
        let table = specification
            .lines()
            .skip_while(|line| !line.starts_with("| scenario | effect |"))
            .skip(2)
            .take_while(|line| line.starts_with("| `"));
        let mut names = 0;
        for line in table {
            let name = line.split('`').nth(1).expect("a name");
            assert!(Scenario::parse(name).is_some(), "{name}");
            names += 1;
        }
        assert!(names > 14, "{names}");
        assert_eq!(Scenario::parse("nothing"), None);
    }
}
