//! The raw pieces of a monitor request's `params`, before any name is looked up.
//!
//! Invariant: the input is JSON text that was validated when its message was read. A parse error
//! here would be a bug elsewhere, and is answered as `invalid parameters`. Both kinds of requests
//! use this file, which knows no schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

use corvid_data::{Tag, WireError};
use corvid_json::{Kind, Reader, write_canonical};
use smallvec::SmallVec;

/// The elements of the array `raw`, each as raw text.
pub(crate) fn elements(raw: &[u8]) -> Result<SmallVec<[&[u8]; 4]>, WireError> {
    let mut reader = Reader::trusted(raw);
    let mut elements = SmallVec::new();
    let mut read = || {
        reader.begin_array()?;
        while reader.next_element()? {
            elements.push(reader.skip()?);
        }
        Ok::<(), corvid_json::Error>(())
    };
    read().map_err(|_| invalid(raw))?;
    Ok(elements)
}

/// The members of the object `raw` as raw text, by name; `None` if it is not an object. The last of
/// repeated names wins.
pub(crate) fn members(raw: &[u8]) -> Option<BTreeMap<Cow<'_, [u8]>, &[u8]>> {
    let mut reader = Reader::trusted(raw);
    let mut members = BTreeMap::new();
    reader.begin_object().ok()?;
    while let Some(name) = reader.next_member().ok()? {
        members.insert(name, reader.skip().ok()?);
    }
    Some(members)
}

/// Whether `raw` is an array.
pub(crate) fn is_array(raw: &[u8]) -> bool {
    matches!(Reader::trusted(raw).peek(), Ok(Kind::Array))
}

/// Limit on a monitor's id in bytes. Every update repeats the id.
pub(crate) const ID_BYTES_MAX: usize = 4096;

/// A monitor id in the form in which ids are compared and echoed: compact, members sorted, numbers
/// by value.
pub(crate) fn canonical_id(raw: &[u8]) -> Result<StdArc<[u8]>, WireError> {
    let mut id = Vec::new();
    write_canonical(&mut Reader::new(raw), &mut id).map_err(|_| invalid(raw))?;
    if id.len() > ID_BYTES_MAX {
        let details = format!("monitor id is longer than {ID_BYTES_MAX} bytes");
        return Err(WireError::new(Tag::ResourcesExhausted, details));
    }
    Ok(id.into())
}

/// `invalid parameters` about `fragment`.
pub(crate) fn invalid(fragment: &[u8]) -> WireError {
    WireError::syntax(fragment, "invalid parameters")
}

/// `duplicate monitor ID` about `id`.
pub(crate) fn duplicate_id(id: &[u8]) -> WireError {
    WireError::syntax(id, "duplicate monitor ID")
}

/// `no table named T`.
pub(crate) fn no_table(name: &[u8]) -> WireError {
    let name = String::from_utf8_lossy(name);
    WireError::new(Tag::SyntaxError, format!("no table named {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_shape_are_compared_by_value() {
        let canonical = |raw: &str| canonical_id(raw.as_bytes()).expect("id").to_vec();
        assert_eq!(canonical("null"), b"null");
        assert_eq!(
            canonical(r#"{"b": 1.0, "a" : [ 1e3 ]}"#),
            br#"{"a":[1000],"b":1}"#
        );
        assert_eq!(canonical(r#""\u0061""#), canonical(r#""a""#));
    }

    #[test]
    fn ids_are_short() {
        let id = |length: usize| canonical_id(format!("\"{}\"", "i".repeat(length)).as_bytes());
        assert!(id(ID_BYTES_MAX - 2).is_ok());
        let error = id(ID_BYTES_MAX - 1).expect_err("too long");
        assert_eq!(error.tag, Tag::ResourcesExhausted);
    }

    #[test]
    fn the_last_of_repeated_members_wins() {
        let members = members(br#"{"T": [1], "T":[2]}"#).expect("object");
        assert_eq!(members.len(), 1);
        assert_eq!(members.get(&b"T"[..]), Some(&&b"[2]"[..]));
    }
}
