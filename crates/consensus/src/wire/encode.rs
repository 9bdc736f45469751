//! Encodes messages as text: one allocation each, of a size computed in advance. Long texts are
//! spliced in without a copy.

use bytes::Bytes;
use corvid_json::{ObjectWriter, write};
use corvid_log::cluster::fields::{write_number, write_text, write_uuid};

use super::method::Method;
use super::splices::{MessageText, Splices};
use super::{CODEC, Envelope, chunk, entries, transactions};
use crate::database::ForwardOutcome;
use crate::message::{PeerMessage, Rejection, SnapshotMeta};

/// Maximum bytes of the envelope, numbers and ids, without the parts that are counted.
const OVERHEAD_BYTES: usize = 512;

/// The text of a message, in one piece.
#[must_use]
pub fn encode(envelope: &Envelope, message: &PeerMessage) -> Bytes {
    encode_shared(envelope, message).into_bytes()
}

/// The text of a message, without copying the long texts in it.
#[must_use]
pub fn encode_shared(envelope: &Envelope, message: &PeerMessage) -> MessageText {
    let mut out = Vec::with_capacity(OVERHEAD_BYTES + parts_bytes(message));
    let mut splices = Splices::default();
    let mut object = begin(&mut out, Method::of(message), envelope);
    write_message(&mut object, message, &mut splices);
    end(object);
    out.extend_from_slice(b"]}");
    splices.complete(out)
}

/// The text of the first message of a connection.
#[must_use]
pub fn encode_hello(envelope: &Envelope, address: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(OVERHEAD_BYTES + address.len());
    let mut object = begin(&mut out, Method::Hello, envelope);
    write_text(&mut object, "address", address);
    write_text(&mut object, "comment", CODEC);
    end(object);
    out.extend_from_slice(b"]}");
    out
}

/// The text of one part of a long message. `is_last`: the message ends with it.
#[must_use]
pub fn encode_part(envelope: &Envelope, part: &[u8], is_last: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(OVERHEAD_BYTES + part.len() + part.len() / 16);
    let mut object = begin(&mut out, Method::Part, envelope);
    chunk::write(object.member("text"), part);
    write_flag(&mut object, "last", is_last);
    end(object);
    out.extend_from_slice(b"]}");
    out
}

fn begin<'a>(out: &'a mut Vec<u8>, method: Method, envelope: &Envelope) -> ObjectWriter<'a> {
    out.extend_from_slice(b"{\"id\":null,\"method\":\"");
    out.extend_from_slice(method.name().as_bytes());
    out.extend_from_slice(b"\",\"params\":[");
    let mut object = ObjectWriter::new(out);
    if let Some(cluster) = envelope.cluster {
        write_uuid(&mut object, "cluster", cluster.uuid());
    }
    if let Some(to) = envelope.to {
        write_uuid(&mut object, "to", to.0);
    }
    write_uuid(&mut object, "from", envelope.from.0);
    object
}

fn end(object: ObjectWriter<'_>) {
    object.end();
}

/// Approximate length of the parts that have no small limit.
fn parts_bytes(message: &PeerMessage) -> usize {
    match message {
        PeerMessage::Append { entries, .. } => {
            let bodies = entries
                .iter()
                .map(|(_, body)| copied_bytes(body.text()) + body.result().len());
            bodies.map(|bytes| bytes + entries::OVERHEAD_BYTES).sum()
        }
        // Escapes are rare.
        PeerMessage::SnapshotChunk { bytes, .. } => bytes.len() + bytes.len() / 16,
        PeerMessage::Forward { forwards, .. } => forwards
            .iter()
            .map(|forward| copied_bytes(&forward.params) + transactions::OVERHEAD_BYTES)
            .sum(),
        PeerMessage::Outcomes { outcomes, .. } => {
            let outcomes = outcomes.iter();
            outcomes.map(|(_, _, outcome)| outcome_bytes(outcome)).sum()
        }
        PeerMessage::FindEntries { ids, .. } => ids.len() * transactions::ID_BYTES,
        PeerMessage::FoundEntries {
            found, outcomes, ..
        } => {
            let outcomes = outcomes.iter().map(|(_, outcome)| outcome_bytes(outcome));
            found.len() * transactions::ID_BYTES + outcomes.sum::<usize>()
        }
        _ => 0,
    }
}

/// Bytes of a text that are copied into the message.
fn copied_bytes(text: &Bytes) -> usize {
    if Splices::takes(text) { 0 } else { text.len() }
}

fn outcome_bytes(outcome: &ForwardOutcome) -> usize {
    let bytes = match outcome {
        ForwardOutcome::Proposed(result)
        | ForwardOutcome::Unchanged(_, result)
        | ForwardOutcome::Refused(_, result) => result.len(),
        ForwardOutcome::Blocked(_) => 0,
    };
    bytes + transactions::OVERHEAD_BYTES
}

fn write_message(object: &mut ObjectWriter<'_>, message: &PeerMessage, splices: &mut Splices) {
    if let Some(term) = message.term() {
        write_number(object, "term", term.0);
    }
    match message {
        PeerMessage::Append {
            term: _,
            prev_index,
            prev_term,
            commit,
            entries,
        } => {
            write_number(object, "prev_index", prev_index.0);
            write_number(object, "prev_term", prev_term.0);
            write_number(object, "commit", commit.0);
            entries::write(object.member("entries"), entries, splices);
        }
        PeerMessage::AppendReply {
            term: _,
            index,
            commit,
            rejection,
        } => {
            write_number(object, "index", index.0);
            write_number(object, "commit", commit.0);
            if let Some(Rejection { hint, hint_term }) = rejection {
                write_number(object, "hint", hint.0);
                write_number(object, "hint_term", hint_term.0);
            }
        }
        PeerMessage::Heartbeat { term: _, commit }
        | PeerMessage::HeartbeatReply { term: _, commit } => {
            write_number(object, "commit", commit.0);
        }
        PeerMessage::Vote {
            term: _,
            last_index,
            last_term,
            commit,
            commit_term,
            is_prevote,
            is_transfer,
        } => {
            write_number(object, "last_index", last_index.0);
            write_number(object, "last_term", last_term.0);
            write_number(object, "commit", commit.0);
            write_number(object, "commit_term", commit_term.0);
            write_flag(object, "prevote", *is_prevote);
            write_flag(object, "transfer", *is_transfer);
        }
        PeerMessage::VoteReply {
            term: _,
            is_prevote,
            is_granted,
            commit,
            commit_term,
        } => {
            write_number(object, "commit", commit.0);
            write_number(object, "commit_term", commit_term.0);
            write_flag(object, "prevote", *is_prevote);
            write_flag(object, "granted", *is_granted);
        }
        PeerMessage::TimeoutNow { term: _ } | PeerMessage::NotMember { term: _ } => {}
        PeerMessage::SnapshotOffer { term: _, snapshot } => write_snapshot(object, snapshot),
        PeerMessage::SnapshotChunk {
            term: _,
            index,
            offset,
            bytes,
        } => {
            write_number(object, "index", index.0);
            write_number(object, "offset", *offset);
            chunk::write(object.member("text"), bytes);
        }
        PeerMessage::SnapshotProgress {
            term: _,
            index,
            offset,
        } => {
            write_number(object, "index", index.0);
            write_number(object, "offset", *offset);
        }
        PeerMessage::Forward {
            term: _,
            first,
            answered,
            forwards,
        } => {
            write_number(object, "first", *first);
            write_number(object, "answered", *answered);
            transactions::write_forwards(object.member("transactions"), forwards, splices);
        }
        PeerMessage::Outcomes { term: _, outcomes } => {
            transactions::write_outcomes(object.member("outcomes"), outcomes);
        }
        PeerMessage::SnapshotRequest {
            term: _,
            last_index,
            last_term,
            address,
            name,
        } => {
            write_number(object, "last_index", last_index.0);
            write_number(object, "last_term", last_term.0);
            write_text(object, "address", address);
            write_text(object, "name", name);
        }
        PeerMessage::FindEntries {
            after,
            through,
            ids,
        } => {
            write_number(object, "after", after.0);
            write_number(object, "through", through.0);
            transactions::write_ids(object.member("ids"), ids);
        }
        PeerMessage::FoundEntries {
            after,
            through,
            is_complete,
            found,
            outcomes,
        } => {
            write_number(object, "after", after.0);
            write_number(object, "through", through.0);
            write_flag(object, "complete", *is_complete);
            transactions::write_ids(object.member("ids"), found);
            transactions::write_found_outcomes(object.member("outcomes"), outcomes);
        }
        PeerMessage::AddServer { address, name } => {
            write_text(object, "address", address);
            write_text(object, "name", name);
        }
        PeerMessage::AddServerReply {
            is_success,
            comment,
            remote_addresses,
        } => {
            write::boolean(object.member("success"), *is_success);
            write_text(object, "comment", comment);
            if !remote_addresses.is_empty() {
                transactions::write_strings(object.member("remote_addresses"), remote_addresses);
            }
        }
        PeerMessage::RemoveServer { server_id } => {
            write_uuid(object, "server_id", server_id.0);
        }
        PeerMessage::RemoveServerReply {
            is_success,
            target,
            comment,
        } => {
            write::boolean(object.member("success"), *is_success);
            if let Some(target) = target {
                write_uuid(object, "target_server", target.0);
            }
            write_text(object, "comment", comment);
        }
    }
}

fn write_snapshot(object: &mut ObjectWriter<'_>, snapshot: &SnapshotMeta) {
    write_number(object, "last_index", snapshot.index.0);
    write_number(object, "last_term", snapshot.term.0);
    write_uuid(object, "last_eid", snapshot.eid.0);
    snapshot.servers.encode(object.member("last_servers"));
    write_number(object, "election_timer", snapshot.election_timer_ms);
    write_number(object, "length", snapshot.body_bytes);
}

/// Writes a flag only if it is set.
fn write_flag(object: &mut ObjectWriter<'_>, name: &str, is_set: bool) {
    if is_set {
        write::boolean(object.member(name), true);
    }
}
