//! The content of an entry or a snapshot: `[schema, transaction]`, either of which may be null.
//!
//! | Data | Means |
//! |---|---|
//! | `[null, T]` | apply transaction T |
//! | `[S, T]` | replace schema and all rows |
//! | `[S, null]` | convert the rows to schema S |
//!
//! Kept as the JSON text of the record, so that it can be stored again unchanged. Consensus uses
//! the same form.

use corvid_data::{Schema, Tag, WireError};
use corvid_json::{Reader, Value};

/// The text of a JSON array or object, valid JSON. Only [`Data::parts`] checks that it has two
/// elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data(Box<[u8]>);

/// The two halves of data; `None` stands for `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// JSON text of a schema, unchecked.
    pub schema: Option<&'a [u8]>,
    /// JSON text of a transaction in the form of a standalone file's record, unchecked.
    pub transaction: Option<&'a [u8]>,
}

impl Data {
    /// Wraps JSON text that is known to be valid.
    #[must_use]
    pub fn from_valid(json: &[u8]) -> Data {
        Data(json.into())
    }

    /// Joins two halves, whose texts must be valid JSON.
    #[must_use]
    pub fn of(schema: Option<&[u8]>, transaction: Option<&[u8]>) -> Data {
        let [schema, transaction] = [schema, transaction].map(|part| part.unwrap_or(b"null"));
        Data([b"[", schema, b",", transaction, b"]"].concat().into())
    }

    /// The JSON text.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.0
    }

    /// Splits the data into halves; `None` if it is not an array of two.
    #[must_use]
    pub fn parts(&self) -> Option<Parts<'_>> {
        Parts::of(&self.0)
    }
}

impl<'a> Parts<'a> {
    /// Splits the text of data, which must be valid JSON, into halves; `None` if it is not an array
    /// of two.
    #[must_use]
    pub fn of(json: &'a [u8]) -> Option<Parts<'a>> {
        let mut reader = Reader::trusted(json);
        reader.begin_array().ok()?;
        let mut part = || match reader.next_element() {
            Ok(true) => reader.skip().ok(),
            _ => None,
        };
        let (schema, transaction) = (part()?, part()?);
        let given = |part| (part != b"null").then_some(part);
        match reader.next_element() {
            Ok(false) => Some(Parts {
                schema: given(schema),
                transaction: given(transaction),
            }),
            _ => None,
        }
    }
}

impl Parts<'_> {
    /// Parses and validates the schema, if there is one.
    ///
    /// # Errors
    /// As [`Schema::from_json`].
    pub fn schema(&self) -> Result<Option<Schema>, WireError> {
        let Some(raw) = self.schema else {
            return Ok(None);
        };
        let json = Value::parse(raw)
            .map_err(|error| WireError::new(Tag::SyntaxError, error.to_string()))?;
        Schema::from_json(&json).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_split_and_joined() {
        let data = Data::of(None, Some(br#"{"t":[1,{"a":null}]}"#));
        assert_eq!(data.json(), br#"[null,{"t":[1,{"a":null}]}]"#);
        let parts = data.parts().expect("two halves");
        assert_eq!(parts.schema, None);
        assert_eq!(parts.transaction, Some(&br#"{"t":[1,{"a":null}]}"#[..]));
        let spaced = Data::from_valid(b"[ {} , null ]");
        let parts = spaced.parts().expect("two halves");
        assert_eq!((parts.schema, parts.transaction), (Some(&b"{}"[..]), None));
        for other in ["{}", "[]", "[{}]", "[null,null,null]"] {
            assert_eq!(Data::from_valid(other.as_bytes()).parts(), None, "{other}");
        }
    }
}
