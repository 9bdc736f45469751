//! Decodes text into messages.
//!
//! A message in the form that Corvid writes is validated and read in one pass. Any other text takes
//! the slow path: first its envelope, then its members again, with the reference's error texts.

use bytes::Bytes;
use corvid_data::{Kinds, Members, Subject, Tag, WireError, members};
use corvid_json::{Kind, PEER_DEPTH_MAX, Reader};
use corvid_log::cluster::fields::{
    take_required_number, take_required_text, take_required_uuid, take_text, take_uuid,
};
use corvid_log::cluster::ids::short;
use corvid_log::cluster::{Cid, Eid, Index, Servers, Sid, Term, address};
use corvid_rpc::{Message, MessageError};

use super::entries::{self, Fault};
use super::method::{self, Method};
use super::{DecodeError, Incoming, Receiver, chunk, transactions};
use crate::entry::EntryBody;
use crate::message::{LIST_MAX, PeerMessage, Rejection, SnapshotMeta};

/// The members of an object as raw JSON.
pub(super) type Fields<'a> = Members<'a, &'a [u8]>;

/// Decodes one text, which is a whole frame.
///
/// # Errors
/// The first problem, in the reference's words. `cluster` and `to` are checked first.
pub fn decode<'a>(text: &'a Bytes, receiver: &Receiver) -> Result<Incoming<'a>, DecodeError> {
    match decode_own_form(text, receiver) {
        Some(incoming) => Ok(incoming),
        None => decode_any_form(text, receiver),
    }
}

/// Decodes a message written by [`super::encode()`] in one pass; `None` for any other form and for
/// every error.
pub(super) fn decode_own_form(text: &Bytes, receiver: &Receiver) -> Option<Incoming<'static>> {
    let mut reader = Reader::new(text).with_depth_max(PEER_DEPTH_MAX);
    reader.begin_object().ok()?;
    if !reader.try_member(b"id") {
        return None;
    }
    reader.null().ok()?;
    if !reader.try_member(b"method") {
        return None;
    }
    let method = Method::parse(&reader.string().ok()?)?;
    if !reader.try_member(b"params") {
        return None;
    }
    reader.begin_array().ok()?;
    if !reader.next_element().ok()? {
        return None;
    }
    let incoming = decode_parameter(text, text, &mut reader, method, receiver).ok()?;
    let is_last = !reader.next_element().ok()?;
    (is_last && reader.try_end_object() && reader.end().is_ok()).then_some(incoming)
}

/// The slow path.
#[cold]
fn decode_any_form<'a>(text: &'a Bytes, receiver: &Receiver) -> Result<Incoming<'a>, DecodeError> {
    let kind = match Message::parse_nested(text, PEER_DEPTH_MAX)? {
        Message::Notification { method, params } => {
            return decode_notification(text, &method, params, receiver);
        }
        message @ Message::Request { .. } if is_echo(&message) => {
            return Ok(Incoming::Echo(message));
        }
        message @ Message::Reply { .. } if is_echo(&message) => return Ok(Incoming::Echo(message)),
        Message::Request { .. } => "request",
        Message::Reply { .. } => "reply",
        Message::ErrorReply { .. } => "error",
    };
    let problem = format!("expecting notify RPC but received {kind}");
    Err(WireError::new(Tag::OvsdbError, problem).into())
}

fn is_echo(message: &Message<'_>) -> bool {
    match message {
        Message::Request { method, .. } => &**method == b"echo",
        Message::Reply { id, .. } => corvid_rpc::message::is_probe_id(id),
        _ => false,
    }
}

fn decode_notification(
    text: &Bytes,
    name: &[u8],
    params: &[u8],
    receiver: &Receiver,
) -> Result<Incoming<'static>, DecodeError> {
    let Some(method) = Method::parse(name) else {
        return Err(match method::of_reference(name) {
            Some(method) => DecodeError::ReferenceMethod(method),
            None => {
                let name = String::from_utf8_lossy(name);
                WireError::new(Tag::OvsdbError, format!("unknown method {name}")).into()
            }
        });
    };
    let count = members::elements(params);
    if count != 1 {
        let name = method.name();
        let problem = format!("{name} RPC has {count} parameters (expected 1)");
        return Err(WireError::new(Tag::OvsdbError, problem).into());
    }
    let mut reader = Reader::new(params).with_depth_max(PEER_DEPTH_MAX);
    let found = reader
        .begin_array()
        .and_then(|()| reader.next_element().map(drop));
    found.map_err(MessageError::Syntax)?;
    decode_parameter(text, params, &mut reader, method, receiver)
}

/// Reads the object that comes next in `reader`; `base` is the reader's text, a part of `text`.
fn decode_parameter<'a>(
    text: &'a Bytes,
    base: &'a [u8],
    reader: &mut Reader<'a>,
    method: Method,
    receiver: &Receiver,
) -> Result<Incoming<'static>, DecodeError> {
    let subject = Subject::RaftRpc(method.name());
    let mut entries = None;
    let mut fields = if method == Method::Append && reader.peek() == Ok(Kind::Object) {
        let shared = text.slice_ref(base);
        let fields = Members::read_apart(subject, base, reader, "entries", |reader| {
            entries = Some(entries::read(&shared, reader)?);
            Ok(())
        });
        fields.map_err(MessageError::Syntax)?
    } else {
        Members::read(subject, base, reader)?
    };
    let (from, cluster) = take_envelope(&mut fields, method, receiver)?;
    let comment = take_text(&mut fields, "comment")?;
    if method == Method::Hello {
        let address = take_required_text(&mut fields, "address")?;
        fields.finish()?;
        return Ok(Incoming::Hello {
            from,
            cluster,
            address,
            codec: comment,
        });
    }
    if method == Method::Part {
        let bytes = take_chunk(&mut fields)?;
        let is_last = take_flag(&mut fields, "last")?.unwrap_or_default();
        fields.finish()?;
        return Ok(Incoming::Part {
            from,
            bytes,
            is_last,
        });
    }
    let message = match method {
        Method::Append => take_append(&mut fields, entries)?,
        _ => take_message(text, &mut fields, method, comment)?,
    };
    fields.finish()?;
    Ok(Incoming::Message {
        from,
        cluster,
        message,
    })
}

fn take_envelope(
    fields: &mut Fields<'_>,
    method: Method,
    receiver: &Receiver,
) -> Result<(Sid, Option<Cid>), WireError> {
    let cluster = if method.may_lack_cluster() {
        take_uuid(fields, "cluster")?
    } else {
        Some(take_required_uuid(fields, "cluster")?)
    };
    if let (Some(cluster), Some(own)) = (cluster, receiver.cid)
        && cluster != own.uuid()
    {
        let (cluster, own) = (short(cluster), short(own.uuid()));
        return Err(fields.error(&format!("wrong cluster {cluster} (expected {own})")));
    }
    let to = if method == Method::Hello {
        take_uuid(fields, "to")?
    } else {
        Some(take_required_uuid(fields, "to")?)
    };
    if let Some(to) = to.map(Sid).filter(|to| *to != receiver.sid) {
        let own = receiver.sid;
        let problem = format!("misrouted message (addressed to {to} but we're {own})");
        return Err(fields.error(&problem));
    }
    let from = Sid(take_required_uuid(fields, "from")?);
    Ok((from, cluster.and_then(Cid::new)))
}

/// The error text about a list longer than [`LIST_MAX`].
pub(super) const TOO_MANY: &str = "too many elements in a message of a peer";

fn take_append(
    fields: &mut Fields<'_>,
    entries: Option<Result<Vec<(Term, EntryBody)>, Fault>>,
) -> Result<PeerMessage, WireError> {
    let message = PeerMessage::Append {
        term: take_term(fields, "term")?,
        prev_index: take_index(fields, "prev_index")?,
        prev_term: take_term(fields, "prev_term")?,
        commit: take_index(fields, "commit")?,
        entries: match entries {
            Some(Ok(entries)) => entries,
            Some(Err(Fault::Entry(error))) => return Err(error),
            Some(Err(Fault::NotArray)) => {
                return Err(fields.error("Type mismatch for member 'entries'."));
            }
            Some(Err(Fault::TooMany)) => {
                return Err(WireError::new(Tag::OvsdbError, TOO_MANY));
            }
            None => return Err(fields.error("Required 'entries' member is missing.")),
        },
    };
    Ok(message)
}

fn take_message(
    text: &Bytes,
    fields: &mut Fields<'_>,
    method: Method,
    comment: Option<String>,
) -> Result<PeerMessage, WireError> {
    let name = method.name();
    let message = match method {
        Method::Hello | Method::Part | Method::Append => {
            unreachable!("read by its own function")
        }
        Method::AppendReply => PeerMessage::AppendReply {
            term: take_term(fields, "term")?,
            index: take_index(fields, "index")?,
            commit: take_index(fields, "commit")?,
            rejection: take_rejection(fields)?,
        },
        Method::Heartbeat => PeerMessage::Heartbeat {
            term: take_term(fields, "term")?,
            commit: take_index(fields, "commit")?,
        },
        Method::HeartbeatReply => PeerMessage::HeartbeatReply {
            term: take_term(fields, "term")?,
            commit: take_index(fields, "commit")?,
        },
        Method::Vote => PeerMessage::Vote {
            term: take_term(fields, "term")?,
            last_index: take_index(fields, "last_index")?,
            last_term: take_term(fields, "last_term")?,
            commit: take_index(fields, "commit")?,
            commit_term: take_term(fields, "commit_term")?,
            is_prevote: take_flag(fields, "prevote")?.unwrap_or_default(),
            is_transfer: take_flag(fields, "transfer")?.unwrap_or_default(),
        },
        Method::VoteReply => PeerMessage::VoteReply {
            term: take_term(fields, "term")?,
            commit: take_index(fields, "commit")?,
            commit_term: take_term(fields, "commit_term")?,
            is_prevote: take_flag(fields, "prevote")?.unwrap_or_default(),
            is_granted: take_flag(fields, "granted")?.unwrap_or_default(),
        },
        Method::TimeoutNow => PeerMessage::TimeoutNow {
            term: take_term(fields, "term")?,
        },
        Method::NotMember => PeerMessage::NotMember {
            term: take_term(fields, "term")?,
        },
        Method::SnapshotOffer => PeerMessage::SnapshotOffer {
            term: take_term(fields, "term")?,
            snapshot: take_snapshot(fields)?,
        },
        Method::SnapshotChunk => PeerMessage::SnapshotChunk {
            term: take_term(fields, "term")?,
            index: take_index(fields, "index")?,
            offset: take_required_number(fields, "offset")?,
            bytes: take_chunk(fields)?,
        },
        Method::SnapshotProgress => PeerMessage::SnapshotProgress {
            term: take_term(fields, "term")?,
            index: take_index(fields, "index")?,
            offset: take_required_number(fields, "offset")?,
        },
        Method::SnapshotRequest => PeerMessage::SnapshotRequest {
            term: take_term(fields, "term")?,
            last_index: take_index(fields, "last_index")?,
            last_term: take_term(fields, "last_term")?,
            address: take_required_text(fields, "address")?,
            name: take_required_text(fields, "name")?,
        },
        Method::Forward => PeerMessage::Forward {
            term: take_term(fields, "term")?,
            first: take_required_number(fields, "first")?,
            answered: take_required_number(fields, "answered")?,
            forwards: {
                let raw = fields.required("transactions", Kinds::ARRAY)?;
                transactions::read_forwards(text, name, raw)?
            },
        },
        Method::Outcomes => PeerMessage::Outcomes {
            term: take_term(fields, "term")?,
            outcomes: {
                let raw = fields.required("outcomes", Kinds::ARRAY)?;
                transactions::read_outcomes(text, name, raw)?
            },
        },
        Method::FindEntries => PeerMessage::FindEntries {
            after: take_index(fields, "after")?,
            through: take_index(fields, "through")?,
            ids: {
                let raw = fields.required("ids", Kinds::ARRAY)?;
                transactions::read_ids(fields, raw)?
            },
        },
        Method::FoundEntries => PeerMessage::FoundEntries {
            after: take_index(fields, "after")?,
            through: take_index(fields, "through")?,
            is_complete: take_flag(fields, "complete")?.unwrap_or_default(),
            found: {
                let raw = fields.required("ids", Kinds::ARRAY)?;
                transactions::read_ids(fields, raw)?
            },
            outcomes: {
                let raw = fields.required("outcomes", Kinds::ARRAY)?;
                transactions::read_found_outcomes(text, name, raw)?
            },
        },
        Method::AddServer => PeerMessage::AddServer {
            address: take_required_text(fields, "address")?,
            name: take_required_text(fields, "name")?,
        },
        Method::AddServerReply => PeerMessage::AddServerReply {
            is_success: take_required_flag(fields, "success")?,
            comment: required_comment(fields, comment)?,
            remote_addresses: take_remote_addresses(fields)?,
        },
        Method::RemoveServer => PeerMessage::RemoveServer {
            server_id: Sid(take_required_uuid(fields, "server_id")?),
        },
        Method::RemoveServerReply => PeerMessage::RemoveServerReply {
            is_success: take_required_flag(fields, "success")?,
            target: take_uuid(fields, "target_server")?.map(Sid),
            comment: required_comment(fields, comment)?,
        },
    };
    Ok(message)
}

fn take_rejection(fields: &mut Fields<'_>) -> Result<Option<Rejection>, WireError> {
    if !fields.has("hint") {
        return Ok(None);
    }
    Ok(Some(Rejection {
        hint: take_index(fields, "hint")?,
        hint_term: take_term(fields, "hint_term")?,
    }))
}

fn take_snapshot(fields: &mut Fields<'_>) -> Result<SnapshotMeta, WireError> {
    Ok(SnapshotMeta {
        index: take_index(fields, "last_index")?,
        term: take_term(fields, "last_term")?,
        eid: Eid(take_required_uuid(fields, "last_eid")?),
        servers: Servers::decode(fields.required("last_servers", Kinds::OBJECT)?)?,
        election_timer_ms: take_required_number(fields, "election_timer")?,
        body_bytes: take_required_number(fields, "length")?,
    })
}

fn take_chunk(fields: &mut Fields<'_>) -> Result<Bytes, WireError> {
    let raw = fields.required("text", Kinds::STRING)?;
    let string = members::string(raw).unwrap_or_default();
    Ok(chunk::read(string.into_owned()).into())
}

fn take_remote_addresses(fields: &mut Fields<'_>) -> Result<Vec<String>, WireError> {
    let Some(raw) = fields.optional("remote_addresses", Kinds::ARRAY)? else {
        return Ok(Vec::new());
    };
    let addresses = strings(fields, "remote_addresses", raw)?;
    if addresses.is_empty() {
        let problem = "at least one remote address is required";
        return Err(WireError::syntax(raw, problem));
    }
    for address in &addresses {
        address::check(address)?;
    }
    Ok(addresses)
}

fn required_comment(fields: &Fields<'_>, comment: Option<String>) -> Result<String, WireError> {
    comment.ok_or_else(|| fields.error("Required 'comment' member is missing."))
}

fn take_term(fields: &mut Fields<'_>, name: &str) -> Result<Term, WireError> {
    take_required_number(fields, name).map(Term)
}

fn take_index(fields: &mut Fields<'_>, name: &str) -> Result<Index, WireError> {
    take_required_number(fields, name).map(Index)
}

/// Reads an optional boolean.
pub(super) fn take_flag(fields: &mut Fields<'_>, name: &str) -> Result<Option<bool>, WireError> {
    let raw = fields.optional(name, Kinds::BOOLEAN)?;
    Ok(raw.and_then(members::boolean))
}

fn take_required_flag(fields: &mut Fields<'_>, name: &str) -> Result<bool, WireError> {
    let raw = fields.required(name, Kinds::BOOLEAN)?;
    Ok(members::boolean(raw).unwrap_or_default())
}

/// Reads an optional string that decides about rights. No byte of it may be replaced, so it must be
/// UTF-8.
pub(super) fn take_string(
    fields: &mut Fields<'_>,
    name: &str,
) -> Result<Option<String>, WireError> {
    let Some(raw) = fields.optional(name, Kinds::STRING)? else {
        return Ok(None);
    };
    match members::text(raw) {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(fields.error(&format!("{name} is not valid UTF-8"))),
    }
}

/// Reads an array of strings; `raw` is the member `name`.
pub(super) fn strings(
    fields: &Fields<'_>,
    name: &str,
    raw: &[u8],
) -> Result<Vec<String>, WireError> {
    let mismatch = || fields.error(&format!("Type mismatch for member '{name}'."));
    let mut strings = Vec::new();
    let mut reader = Reader::trusted(raw);
    reader.begin_array().map_err(|_| mismatch())?;
    while let Ok(true) = reader.next_element() {
        let raw = reader.skip().map_err(|_| mismatch())?;
        if strings.len() == LIST_MAX {
            return Err(WireError::new(Tag::OvsdbError, TOO_MANY));
        }
        let text = members::text(raw).ok_or_else(mismatch)?;
        strings.push(text.into_owned());
    }
    Ok(strings)
}
