//! The entries of an `append_entries` message. Each is `{"term":T,BODY}`, where BODY is the same
//! text as in the file's record. It is `{"term":T,BODY,"result":R}` with the result of a
//! transaction that its client may send again.
//!
//! An entry in the form that Corvid writes is cut out without a copy. An entry in any other
//! spelling is read in full, with the reference's error texts, and written anew. So a body never
//! holds a term or an index that contradicts the record around it.

use std::ops::Range;

use bytes::Bytes;
use corvid_data::{Kinds, Members, Subject, Uuid, WireError};
use corvid_json::{Kind, Number, Reader, write};
use corvid_log::cluster::fields::{take_number, take_required_number, take_required_uuid};
use corvid_log::cluster::{Data, Eid, Entry, Index, Payload, Servers, Term};

use super::splices::Splices;
use crate::entry::EntryBody;
use crate::message::LIST_MAX;

/// Maximum bytes of an entry without its body and result:
/// `{"term":-9223372036854775808,,"result":},`.
pub(super) const OVERHEAD_BYTES: usize = 48;

/// Maximum number of entries for which memory is reserved in advance.
const GUESS_MAX: usize = 4096;

/// Appends the array of entries.
pub(super) fn write(out: &mut Vec<u8>, entries: &[(Term, EntryBody)], splices: &mut Splices) {
    out.push(b'[');
    for (number, (term, body)) in entries.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"term\":");
        write::integer(out, term.0.cast_signed());
        if !body.is_empty() {
            out.push(b',');
            splices.append(out, body.text());
        }
        if !body.result().is_empty() {
            out.extend_from_slice(b",\"result\":");
            out.extend_from_slice(body.result());
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Why the `entries` member is refused. The reader has passed it.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is not an array.
    NotArray,
    /// An entry has the wrong form; the first such entry.
    Entry(WireError),
    /// It has more than [`LIST_MAX`] entries.
    TooMany,
}

/// Reads the array of entries; `reader` reads `text` and is positioned before the array.
///
/// # Errors
/// The text is not valid JSON.
pub(super) fn read(
    text: &Bytes,
    reader: &mut Reader<'_>,
) -> Result<Result<Vec<(Term, EntryBody)>, Fault>, corvid_json::Error> {
    if reader.peek()? != Kind::Array {
        reader.skip()?;
        return Ok(Err(Fault::NotArray));
    }
    let mut entries = Ok(Vec::new());
    reader.begin_array()?;
    while reader.next_element()? {
        let begin = reader.offset();
        let mut ahead = reader.clone();
        let entry = if let Some((term, body, result)) = own_form(text, &mut ahead) {
            *reader = ahead;
            let body = EntryBody::from_text(text.slice(body));
            Ok((term, body.with_result(text.slice(result))))
        } else {
            any_form(reader.skip()?)
        };
        if let Ok(list) = &mut entries
            && list.is_empty()
        {
            // The entries of a message are much alike, so one allocation suffices for nearly all of
            // them.
            let rest = text.len() - begin;
            list.reserve((rest / (reader.offset() - begin).max(1)).clamp(1, GUESS_MAX));
        }
        match (&mut entries, entry) {
            (Ok(list), Ok(_)) if list.len() == LIST_MAX => entries = Err(Fault::TooMany),
            (Ok(entries), Ok(entry)) => entries.push(entry),
            (Ok(_), Err(error)) => entries = Err(Fault::Entry(error)),
            (Err(_), _) => {}
        }
    }
    Ok(entries)
}

/// The term of an entry in Corvid's form, and the ranges of its body and result. `None` for any
/// other form, including invalid JSON.
fn own_form(text: &[u8], reader: &mut Reader<'_>) -> Option<(Term, Range<usize>, Range<usize>)> {
    reader.begin_object().ok()?;
    if !reader.try_member(b"term") {
        return None;
    }
    let Number::Integer(term) = reader.number().ok()? else {
        return None;
    };
    let term = Term(term.cast_unsigned());
    let comma = reader.offset();
    if reader.try_end_object() {
        return Some((term, comma..comma, 0..0));
    }
    if text.get(comma) != Some(&b',') {
        return None;
    }
    if reader.try_member(b"servers") {
        Servers::decode(reader.skip().ok()?).ok()?;
    }
    if reader.try_member(b"election_timer") {
        match reader.number().ok()? {
            Number::Integer(timer) if timer != 0 => {}
            _ => return None,
        }
    }
    if reader.try_member(b"eid") {
        Uuid::parse(&reader.string().ok()?)?;
        if !reader.try_member(b"data") {
            return None;
        }
        match reader.peek().ok()? {
            Kind::Array | Kind::Object => reader.skip().ok()?,
            _ => return None,
        };
    }
    let end = reader.offset();
    let mut result = 0..0;
    if end > comma && reader.try_member(b"result") {
        let value = reader.skip().ok()?;
        result = reader.offset() - value.len()..reader.offset();
    }
    reader
        .try_end_object()
        .then_some((term, comma + 1..end, result))
}

/// Reads an entry as the reference does; `raw` is valid JSON.
#[cold]
fn any_form(raw: &[u8]) -> Result<(Term, EntryBody), WireError> {
    let mut members = Members::parse(Subject::RaftEntry, raw)?;
    let term = Term(take_required_number(&mut members, "term")?);
    let servers = members.optional("servers", Kinds::OBJECT)?;
    let servers = servers.map(Servers::decode).transpose()?;
    let election_timer_ms = take_number(&mut members, "election_timer")?;
    let data = members.optional("data", Kinds::OBJECT.or(Kinds::ARRAY))?;
    let payload = match data {
        Some(data) => Some(Payload {
            eid: Eid(take_required_uuid(&mut members, "eid")?),
            data: Data::from_valid(data),
        }),
        None => None,
    };
    members.finish()?;
    let entry = Entry {
        term,
        index: Index(1),
        servers,
        election_timer_ms,
        payload,
    };
    Ok((term, EntryBody::of(&entry)))
}
