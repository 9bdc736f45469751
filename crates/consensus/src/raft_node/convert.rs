//! Converts messages and entries between the library's form and Corvid's. Texts of entries are
//! shared, never copied.
//!
//! Kinds of message that no peer may send have no Corvid form: proposals, requests for a transfer
//! of leadership, read requests.

use corvid_log::cluster::{Index, Term};
use raft::eraftpb::{Entry, EntryType, Message, MessageType};

use super::{LogEntry, raft_entry};
use crate::entry::EntryBody;
use crate::message::{PeerMessage, Rejection};

/// The library's mark of a vote request in a leadership transfer.
const TRANSFER: &[u8] = b"CampaignTransfer";

/// Corvid's form of an entry.
pub(super) fn entry(entry: &Entry) -> LogEntry {
    let is_change = entry.get_entry_type() != EntryType::EntryNormal;
    let body = if is_change {
        EntryBody::from_text(entry.context.clone())
    } else {
        EntryBody::from_text(entry.data.clone()).with_result(entry.context.clone())
    };
    LogEntry {
        term: Term(entry.term),
        index: Index(entry.index),
        body,
    }
}

/// Converts a peer's message for the library; `None` for kinds that the library does not know.
pub(super) fn to_raft(from: u64, to: u64, message: PeerMessage) -> Option<Message> {
    let mut raft = Message {
        from,
        to,
        term: message.term()?.0,
        ..Message::default()
    };
    match message {
        PeerMessage::Append {
            prev_index,
            prev_term,
            commit,
            entries,
            ..
        } => {
            raft.set_msg_type(MessageType::MsgAppend);
            raft.index = prev_index.0;
            raft.log_term = prev_term.0;
            raft.commit = commit.0;
            let mut index = prev_index;
            let entries: Vec<Entry> = entries
                .into_iter()
                .map(|(term, body)| {
                    index = index.next();
                    raft_entry(&LogEntry { term, index, body })
                })
                .collect();
            raft.set_entries(entries.into());
        }
        PeerMessage::AppendReply {
            index,
            commit,
            rejection,
            ..
        } => {
            raft.set_msg_type(MessageType::MsgAppendResponse);
            raft.index = index.0;
            raft.commit = commit.0;
            if let Some(Rejection { hint, hint_term }) = rejection {
                raft.reject = true;
                raft.reject_hint = hint.0;
                raft.log_term = hint_term.0;
            }
        }
        PeerMessage::Heartbeat { commit, .. } => {
            raft.set_msg_type(MessageType::MsgHeartbeat);
            raft.commit = commit.0;
        }
        PeerMessage::HeartbeatReply { commit, .. } => {
            raft.set_msg_type(MessageType::MsgHeartbeatResponse);
            raft.commit = commit.0;
        }
        PeerMessage::Vote {
            last_index,
            last_term,
            commit,
            commit_term,
            is_prevote,
            is_transfer,
            ..
        } => {
            raft.set_msg_type(if is_prevote {
                MessageType::MsgRequestPreVote
            } else {
                MessageType::MsgRequestVote
            });
            raft.index = last_index.0;
            raft.log_term = last_term.0;
            raft.commit = commit.0;
            raft.commit_term = commit_term.0;
            if is_transfer {
                raft.context = bytes::Bytes::from_static(TRANSFER);
            }
        }
        PeerMessage::VoteReply {
            is_prevote,
            is_granted,
            commit,
            commit_term,
            ..
        } => {
            raft.set_msg_type(if is_prevote {
                MessageType::MsgRequestPreVoteResponse
            } else {
                MessageType::MsgRequestVoteResponse
            });
            raft.reject = !is_granted;
            raft.commit = commit.0;
            raft.commit_term = commit_term.0;
        }
        PeerMessage::TimeoutNow { .. } => raft.set_msg_type(MessageType::MsgTimeoutNow),
        _ => return None,
    }
    Some(raft)
}

/// Converts a message of the library for a peer; `None` for kinds that stay inside.
pub(super) fn from_raft(message: &Message) -> Option<PeerMessage> {
    let term = Term(message.term);
    let commit = Index(message.commit);
    let kind = message.get_msg_type();
    Some(match kind {
        MessageType::MsgAppend => PeerMessage::Append {
            term,
            prev_index: Index(message.index),
            prev_term: Term(message.log_term),
            commit,
            entries: message
                .get_entries()
                .iter()
                .map(|raft| {
                    let LogEntry { term, body, .. } = entry(raft);
                    (term, body)
                })
                .collect(),
        },
        MessageType::MsgAppendResponse => PeerMessage::AppendReply {
            term,
            index: Index(message.index),
            commit,
            rejection: message.reject.then_some(Rejection {
                hint: Index(message.reject_hint),
                hint_term: Term(message.log_term),
            }),
        },
        MessageType::MsgHeartbeat => PeerMessage::Heartbeat { term, commit },
        MessageType::MsgHeartbeatResponse => PeerMessage::HeartbeatReply { term, commit },
        MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => PeerMessage::Vote {
            term,
            last_index: Index(message.index),
            last_term: Term(message.log_term),
            commit,
            commit_term: Term(message.commit_term),
            is_prevote: kind == MessageType::MsgRequestPreVote,
            is_transfer: message.context.as_ref() == TRANSFER,
        },
        MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse => {
            PeerMessage::VoteReply {
                term,
                is_prevote: kind == MessageType::MsgRequestPreVoteResponse,
                is_granted: !message.reject,
                commit,
                commit_term: Term(message.commit_term),
            }
        }
        MessageType::MsgTimeoutNow => PeerMessage::TimeoutNow { term },
        _ => return None,
    })
}
