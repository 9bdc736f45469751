//! Names of methods: Corvid's own, and those of the reference that are refused.

use crate::message::PeerMessage;

/// A method of Corvid's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Hello,
    Part,
    Append,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    Vote,
    VoteReply,
    TimeoutNow,
    SnapshotOffer,
    SnapshotChunk,
    SnapshotProgress,
    SnapshotRequest,
    Forward,
    Outcomes,
    AddServer,
    AddServerReply,
    RemoveServer,
    RemoveServerReply,
    NotMember,
    FindEntries,
    FoundEntries,
}

impl Method {
    const ALL: [Method; 22] = [
        Method::Append,
        Method::AppendReply,
        Method::Heartbeat,
        Method::HeartbeatReply,
        Method::Forward,
        Method::Outcomes,
        Method::SnapshotChunk,
        Method::SnapshotProgress,
        Method::SnapshotOffer,
        Method::SnapshotRequest,
        Method::Vote,
        Method::VoteReply,
        Method::TimeoutNow,
        Method::Part,
        Method::Hello,
        Method::AddServer,
        Method::AddServerReply,
        Method::RemoveServer,
        Method::RemoveServerReply,
        Method::NotMember,
        Method::FindEntries,
        Method::FoundEntries,
    ];

    /// The name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Hello => "hello_request",
            Method::Part => "part",
            Method::Append => "append_entries",
            Method::AppendReply => "append_entries_result",
            Method::Heartbeat => "heartbeat",
            Method::HeartbeatReply => "heartbeat_result",
            Method::Vote => "request_vote",
            Method::VoteReply => "request_vote_result",
            Method::TimeoutNow => "timeout_now",
            Method::SnapshotOffer => "snapshot_offer",
            Method::SnapshotChunk => "snapshot_chunk",
            Method::SnapshotProgress => "snapshot_progress",
            Method::SnapshotRequest => "snapshot_request",
            Method::Forward => "forward",
            Method::Outcomes => "forward_outcomes",
            Method::AddServer => "join_cluster",
            Method::AddServerReply => "join_cluster_result",
            Method::RemoveServer => "leave_cluster",
            Method::RemoveServerReply => "leave_cluster_result",
            Method::NotMember => "not_member",
            Method::FindEntries => "find_entries",
            Method::FoundEntries => "find_entries_result",
        }
    }

    /// The method with this name.
    pub(super) fn parse(name: &[u8]) -> Option<Method> {
        Method::ALL
            .into_iter()
            .find(|method| method.name().as_bytes() == name)
    }

    /// The method of a message.
    pub(super) fn of(message: &PeerMessage) -> Method {
        match message {
            PeerMessage::Append { .. } => Method::Append,
            PeerMessage::AppendReply { .. } => Method::AppendReply,
            PeerMessage::Heartbeat { .. } => Method::Heartbeat,
            PeerMessage::HeartbeatReply { .. } => Method::HeartbeatReply,
            PeerMessage::Vote { .. } => Method::Vote,
            PeerMessage::VoteReply { .. } => Method::VoteReply,
            PeerMessage::TimeoutNow { .. } => Method::TimeoutNow,
            PeerMessage::SnapshotOffer { .. } => Method::SnapshotOffer,
            PeerMessage::SnapshotChunk { .. } => Method::SnapshotChunk,
            PeerMessage::SnapshotProgress { .. } => Method::SnapshotProgress,
            PeerMessage::SnapshotRequest { .. } => Method::SnapshotRequest,
            PeerMessage::Forward { .. } => Method::Forward,
            PeerMessage::Outcomes { .. } => Method::Outcomes,
            PeerMessage::AddServer { .. } => Method::AddServer,
            PeerMessage::AddServerReply { .. } => Method::AddServerReply,
            PeerMessage::RemoveServer { .. } => Method::RemoveServer,
            PeerMessage::RemoveServerReply { .. } => Method::RemoveServerReply,
            PeerMessage::NotMember { .. } => Method::NotMember,
            PeerMessage::FindEntries { .. } => Method::FindEntries,
            PeerMessage::FoundEntries { .. } => Method::FoundEntries,
        }
    }

    /// Whether the sender may not know the cluster yet: it is joining, or answers a joining server.
    pub(super) fn may_lack_cluster(self) -> bool {
        matches!(
            self,
            Method::Hello | Method::AddServer | Method::AddServerReply
        )
    }
}

/// Methods of the reference other than `hello_request` (docs/spec/distribution.md 1.13).
const REFERENCE: [&str; 13] = [
    "append_request",
    "append_reply",
    "vote_request",
    "vote_reply",
    "add_server_request",
    "add_server_reply",
    "remove_server_request",
    "remove_server_reply",
    "install_snapshot_request",
    "install_snapshot_reply",
    "become_leader",
    "execute_command_request",
    "execute_command_reply",
];

/// The reference's method with this name.
pub(super) fn of_reference(name: &[u8]) -> Option<&'static str> {
    REFERENCE
        .into_iter()
        .find(|method| method.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_documented() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/wire-extensions.md"
        );
        let page = std::fs::read_to_string(page).unwrap();
        for method in Method::ALL {
            let name = method.name();
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn names_are_found_and_are_not_the_references() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.name().as_bytes()), Some(method));
            assert_eq!(of_reference(method.name().as_bytes()), None);
        }
        assert_eq!(Method::parse(b"append_request"), None);
        assert_eq!(of_reference(b"append_request"), Some("append_request"));
    }
}
