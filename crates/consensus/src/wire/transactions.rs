//! Forwarded transactions, their outcomes, and the search for their entries. `params`, results and
//! errors are spliced as JSON texts.

use bytes::Bytes;
use corvid_data::{Kinds, Members, Subject, Tag, Uuid, WireError, members};
use corvid_json::{ArrayWriter, ObjectWriter, Reader, write};
use corvid_log::cluster::fields::{
    take_required_number, take_required_uuid, write_number, write_text, write_uuid,
};
use corvid_log::cluster::{Eid, Index};

use super::decode::{Fields, TOO_MANY, strings, take_flag, take_string};
use super::splices::Splices;
use crate::database::{ClientIdentity, Forward, ForwardMethod, ForwardOnce, ForwardOutcome};
use crate::limits::FORWARD_OVERHEAD_BYTES;
use crate::message::LIST_MAX;

/// Approximate bytes of a transaction or an outcome, without its texts.
pub(super) const OVERHEAD_BYTES: usize = FORWARD_OVERHEAD_BYTES;

/// Bytes of an id in an array of ids.
pub(super) const ID_BYTES: usize = 39;

/// Appends an array of transactions.
pub(super) fn write_forwards(out: &mut Vec<u8>, forwards: &[Forward], splices: &mut Splices) {
    let mut array = ArrayWriter::new(out);
    for forward in forwards {
        let client = &forward.client;
        let mut object = ObjectWriter::new(array.element());
        write_uuid(&mut object, "id", forward.id.0);
        if forward.method == ForwardMethod::Convert {
            write::boolean(object.member("convert"), true);
        }
        write_number(&mut object, "elapsed", forward.elapsed_ms);
        if let Some(once) = forward.once {
            write_uuid(&mut object, "once", once.id.0);
            if let Some(after) = once.after {
                write_uuid(&mut object, "after", after.0);
            }
            if once.is_repeated {
                write::boolean(object.member("repeated"), true);
            }
        }
        if !client.role.is_empty() {
            write_text(&mut object, "role", &client.role);
        }
        if let Some(client_id) = &client.client_id {
            write_text(&mut object, "client_id", client_id);
        }
        if client.is_read_only {
            write::boolean(object.member("read_only"), true);
        }
        if !client.locks.is_empty() {
            write_strings(object.member("locks"), &client.locks);
        }
        if !client.further.is_empty() {
            write_identities(object.member("further"), &client.further);
        }
        if let Some(description) = &client.description {
            write_text(&mut object, "description", description);
        }
        splices.append(object.member("params"), &forward.params);
        object.end();
    }
    array.end();
}

/// Appends an array of objects, each with a role and an optional common name.
fn write_identities(out: &mut Vec<u8>, identities: &[(String, Option<String>)]) {
    let mut array = ArrayWriter::new(out);
    for (role, client_id) in identities {
        let mut object = ObjectWriter::new(array.element());
        write_text(&mut object, "role", role);
        if let Some(client_id) = client_id {
            write_text(&mut object, "client_id", client_id);
        }
        object.end();
    }
    array.end();
}

/// Appends an array of strings.
pub(super) fn write_strings(out: &mut Vec<u8>, strings: &[String]) {
    let mut array = ArrayWriter::new(out);
    for string in strings {
        write::string(array.element(), string.as_bytes());
    }
    array.end();
}

/// Reads an array of transactions; `raw` is valid JSON within `text`.
pub(super) fn read_forwards(
    text: &Bytes,
    method: &'static str,
    raw: &[u8],
) -> Result<Vec<Forward>, WireError> {
    each(method, raw, |members| {
        let id = Eid(take_required_uuid(members, "id")?);
        let forward_method = match take_flag(members, "convert")? {
            Some(true) => ForwardMethod::Convert,
            _ => ForwardMethod::Transact,
        };
        let elapsed_ms = take_required_number(members, "elapsed")?;
        let once = match members.optional("once", Kinds::STRING)? {
            Some(raw) => Some(ForwardOnce {
                id: Eid(uuid(members, "once", raw)?),
                after: match members.optional("after", Kinds::STRING)? {
                    Some(raw) => Some(Eid(uuid(members, "after", raw)?)),
                    None => None,
                },
                is_repeated: take_flag(members, "repeated")?.unwrap_or_default(),
            }),
            None => None,
        };
        let role = take_string(members, "role")?.unwrap_or_default();
        let client_id = take_string(members, "client_id")?;
        let is_read_only = take_flag(members, "read_only")?.unwrap_or_default();
        let locks = match members.optional("locks", Kinds::ARRAY)? {
            Some(raw) => strings(members, "locks", raw)?,
            None => Vec::new(),
        };
        let further = match members.optional("further", Kinds::ARRAY)? {
            Some(raw) => each(method, raw, |identity| {
                let role = take_string(identity, "role")?.unwrap_or_default();
                Ok((role, take_string(identity, "client_id")?))
            })?,
            None => Vec::new(),
        };
        let description = take_string(members, "description")?;
        let params = text.slice_ref(members.required("params", Kinds::ARRAY)?);
        let client = ClientIdentity {
            role,
            client_id,
            is_read_only,
            locks,
            further,
            description,
            for_source: None,
        };
        Ok(Forward {
            id,
            method: forward_method,
            params,
            client,
            elapsed_ms,
            once,
        })
    })
}

fn uuid(fields: &Fields<'_>, name: &str, raw: &[u8]) -> Result<Uuid, WireError> {
    let text = members::string(raw).unwrap_or_default();
    Uuid::parse(&text).ok_or_else(|| fields.error(&format!("Type mismatch for member '{name}'.")))
}

/// Appends an array of numbered outcomes.
pub(super) fn write_outcomes(out: &mut Vec<u8>, outcomes: &[(u64, Eid, ForwardOutcome)]) {
    let mut array = ArrayWriter::new(out);
    for (number, id, outcome) in outcomes {
        let mut object = ObjectWriter::new(array.element());
        write_number(&mut object, "number", *number);
        write_outcome(object, *id, outcome);
    }
    array.end();
}

/// Reads an array of numbered outcomes; `raw` is valid JSON within `text`.
pub(super) fn read_outcomes(
    text: &Bytes,
    method: &'static str,
    raw: &[u8],
) -> Result<Vec<(u64, Eid, ForwardOutcome)>, WireError> {
    each(method, raw, |members| {
        let number = take_required_number(members, "number")?;
        let (id, outcome) = take_outcome(text, members)?;
        Ok((number, id, outcome))
    })
}

/// Appends an array of outcomes without numbers.
pub(super) fn write_found_outcomes(out: &mut Vec<u8>, outcomes: &[(Eid, ForwardOutcome)]) {
    let mut array = ArrayWriter::new(out);
    for (id, outcome) in outcomes {
        write_outcome(ObjectWriter::new(array.element()), *id, outcome);
    }
    array.end();
}

/// Reads an array of outcomes without numbers; `raw` is valid JSON within `text`.
pub(super) fn read_found_outcomes(
    text: &Bytes,
    method: &'static str,
    raw: &[u8],
) -> Result<Vec<(Eid, ForwardOutcome)>, WireError> {
    each(method, raw, |members| take_outcome(text, members))
}

fn write_outcome(mut object: ObjectWriter<'_>, id: Eid, outcome: &ForwardOutcome) {
    write_uuid(&mut object, "id", id.0);
    let (status, index, result) = match outcome {
        ForwardOutcome::Proposed(result) => ("proposed", None, Some(result)),
        ForwardOutcome::Unchanged(index, result) => ("unchanged", Some(index), Some(result)),
        ForwardOutcome::Refused(index, error) => ("refused", Some(index), Some(error)),
        ForwardOutcome::Blocked(index) => ("blocked", Some(index), None),
    };
    write_text(&mut object, "status", status);
    if let Some(index) = index {
        write_number(&mut object, "index", index.0);
    }
    if let Some(result) = result {
        object.member("result").extend_from_slice(result);
    }
    object.end();
}

fn take_outcome(
    text: &Bytes,
    members: &mut Fields<'_>,
) -> Result<(Eid, ForwardOutcome), WireError> {
    let id = Eid(take_required_uuid(members, "id")?);
    let status = members::string(members.required("status", Kinds::STRING)?);
    let outcome = match status.as_deref().unwrap_or_default() {
        b"proposed" => ForwardOutcome::Proposed(result(text, members)?),
        b"unchanged" => ForwardOutcome::Unchanged(index(members)?, result(text, members)?),
        b"refused" => ForwardOutcome::Refused(index(members)?, result(text, members)?),
        b"blocked" => ForwardOutcome::Blocked(index(members)?),
        status => {
            let status = String::from_utf8_lossy(status);
            return Err(members.error(&format!("unknown status \"{status}\"")));
        }
    };
    Ok((id, outcome))
}

/// Appends an array of ids.
pub(super) fn write_ids(out: &mut Vec<u8>, ids: &[Eid]) {
    let mut array = ArrayWriter::new(out);
    for id in ids {
        write::string(array.element(), id.0.to_string().as_bytes());
    }
    array.end();
}

/// Reads an array of ids.
pub(super) fn read_ids(fields: &Fields<'_>, raw: &[u8]) -> Result<Vec<Eid>, WireError> {
    let texts = strings(fields, "ids", raw)?;
    let ids = texts
        .iter()
        .map(|text| Uuid::parse(text.as_bytes()).map(Eid));
    let ids: Option<Vec<Eid>> = ids.collect();
    ids.ok_or_else(|| fields.error("Type mismatch for member 'ids'."))
}

fn index(members: &mut Fields<'_>) -> Result<Index, WireError> {
    take_required_number(members, "index").map(Index)
}

fn result(text: &Bytes, members: &mut Fields<'_>) -> Result<Bytes, WireError> {
    Ok(text.slice_ref(members.required("result", Kinds::ANY)?))
}

/// Reads each element of an array of objects. An unknown member is an error.
fn each<'a, T>(
    method: &'static str,
    raw: &'a [u8],
    mut read: impl FnMut(&mut Fields<'a>) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let mut elements = Vec::new();
    let mut reader = Reader::trusted(raw);
    if reader.begin_array().is_err() {
        return Ok(elements);
    }
    while let Ok(true) = reader.next_element() {
        if elements.len() == LIST_MAX {
            return Err(WireError::new(Tag::OvsdbError, TOO_MANY));
        }
        let mut members = Members::read(Subject::RaftRpc(method), raw, &mut reader)?;
        elements.push(read(&mut members)?);
        members.finish()?;
    }
    Ok(elements)
}
