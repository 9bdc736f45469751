//! Names for values that differ from run to run, mainly UUIDs, and the comparison of messages that
//! contain such names.
//!
//! | written | means |
//! |---|---|
//! | `<k1>` (lower-case letters, then digits) | a UUID: bound when first met in a received message, the same ever after |
//! | `<#7>` | the fixed UUID `00000000-0000-4000-8000-000000000007`, for rows whose order matters |
//! | `<*>` | any value; inside a longer string, any text |
//! | `["<any-order>",A,B]` | an array of these elements in any order |
//! | `<xff>` | one byte, in what is sent, and a byte that is not UTF-8 in what was received |
//! | `<998*[>` | a repetition, expanded before anything else is read |
//! | `<dir>` | the server's directory |
//!
//! Invariant: two names never stand for the same UUID, so a server that confuses two rows is
//! noticed. Nothing else in angle brackets has a special meaning, so the texts of the protocol
//! (`<db-name>`, `<string>`) stand for themselves.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

const FIXED_PREFIX: &str = "00000000-0000-4000-8000-";
const ZERO: &str = "00000000-0000-0000-0000-000000000000";
const UUID_LENGTH: usize = 36;

/// The values of the names of one case.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    dir: String,
    uuids: BTreeMap<String, String>,
}

/// A piece of a text with placeholders.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
    Fixed(&'a str),
    Any,
    Byte(u8),
    Repeat(usize, &'a str),
    Dir,
}

impl Bindings {
    /// Creates bindings without names, for a server in the directory `dir`.
    pub fn new(dir: String) -> Bindings {
        Bindings {
            dir,
            uuids: BTreeMap::new(),
        }
    }

    /// Returns the bytes that a written text stands for.
    ///
    /// # Errors
    ///
    /// If the text uses a name that is not bound yet, or `<*>`.
    pub fn expand(&self, written: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for piece in pieces(written) {
            match piece {
                Piece::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Piece::Name(name) => match self.uuids.get(name) {
                    Some(uuid) => bytes.extend_from_slice(uuid.as_bytes()),
                    None => return Err(format!("<{name}> is sent before it was received")),
                },
                Piece::Fixed(digits) => bytes.extend_from_slice(fixed(digits).as_bytes()),
                Piece::Any => return Err("<*> cannot be sent".to_owned()),
                Piece::Byte(byte) => bytes.push(byte),
                Piece::Repeat(count, text) => {
                    bytes.extend_from_slice(text.repeat(count).as_bytes());
                }
                Piece::Dir => bytes.extend_from_slice(self.dir.as_bytes()),
            }
        }
        Ok(bytes)
    }

    /// Returns true if a received value matches the expected one. In this case, new names are
    /// bound.
    pub fn matches(&mut self, expected: &Value, actual: &Value) -> bool {
        let mut attempt = self.clone();
        let equal = attempt.matches_value(expected, actual);
        if equal {
            *self = attempt;
        }
        equal
    }

    fn matches_value(&mut self, expected: &Value, actual: &Value) -> bool {
        match (expected, actual) {
            (Value::String(text), _) if text == "<*>" => true,
            (Value::String(expected), Value::String(actual)) => self.matches_text(expected, actual),
            (Value::Array(expected), Value::Array(actual)) => match expected.split_first() {
                Some((Value::String(mark), expected)) if mark == "<any-order>" => {
                    self.matches_any_order(expected, &actual.iter().collect::<Vec<_>>())
                }
                _ => {
                    expected.len() == actual.len()
                        && expected
                            .iter()
                            .zip(actual)
                            .all(|(e, a)| self.matches_value(e, a))
                }
            },
            (Value::Object(expected), Value::Object(actual)) => self.matches_members(
                &expected.iter().collect::<Vec<_>>(),
                &actual.iter().collect::<Vec<_>>(),
            ),
            _ => expected == actual,
        }
    }

    fn matches_any_order(&mut self, expected: &[Value], actual: &[&Value]) -> bool {
        let Some((first, expected)) = expected.split_first() else {
            return actual.is_empty();
        };
        (0..actual.len()).any(|index| {
            let mut attempt = self.clone();
            let equal = attempt.matches_value(first, actual[index])
                && attempt.matches_any_order(expected, &without(actual, index));
            if equal {
                *self = attempt;
            }
            equal
        })
    }

    fn matches_members(
        &mut self,
        expected: &[(&String, &Value)],
        actual: &[(&String, &Value)],
    ) -> bool {
        let Some((&(name, value), expected)) = expected.split_first() else {
            return actual.is_empty();
        };
        (0..actual.len()).any(|index| {
            let mut attempt = self.clone();
            let equal = attempt.matches_text(name, actual[index].0)
                && attempt.matches_value(value, actual[index].1)
                && attempt.matches_members(expected, &without(actual, index));
            if equal {
                *self = attempt;
            }
            equal
        })
    }

    fn matches_text(&mut self, expected: &str, actual: &str) -> bool {
        if !expected.contains('<') {
            return expected == actual;
        }
        self.matches_pieces(&pieces(expected), actual)
    }

    fn matches_pieces(&mut self, expected: &[Piece<'_>], actual: &str) -> bool {
        let Some((piece, expected)) = expected.split_first() else {
            return actual.is_empty();
        };
        match piece {
            Piece::Text(text) => actual
                .strip_prefix(text)
                .is_some_and(|rest| self.matches_pieces(expected, rest)),
            Piece::Name(name) => match actual.split_at_checked(UUID_LENGTH) {
                Some((uuid, rest)) => self.bind(name, uuid) && self.matches_pieces(expected, rest),
                None => false,
            },
            Piece::Fixed(digits) => actual
                .strip_prefix(&fixed(digits))
                .is_some_and(|rest| self.matches_pieces(expected, rest)),
            Piece::Any => actual
                .char_indices()
                .map(|(index, _)| index)
                .chain([actual.len()])
                .any(|end| self.clone().matches_pieces(expected, &actual[end..])),
            Piece::Byte(byte) => actual
                .strip_prefix(&format!("<x{byte:02x}>"))
                .is_some_and(|rest| self.matches_pieces(expected, rest)),
            Piece::Repeat(count, text) => actual
                .strip_prefix(&text.repeat(*count))
                .is_some_and(|rest| self.matches_pieces(expected, rest)),
            Piece::Dir => actual
                .strip_prefix(&self.dir.clone())
                .is_some_and(|rest| self.matches_pieces(expected, rest)),
        }
    }

    fn bind(&mut self, name: &str, uuid: &str) -> bool {
        match self.uuids.get(name) {
            Some(bound) => bound == uuid,
            None if is_uuid(uuid)
                && uuid != ZERO
                && !self.uuids.values().any(|bound| bound == uuid) =>
            {
                self.uuids.insert(name.to_owned(), uuid.to_owned());
                true
            }
            None => false,
        }
    }

    /// Returns a received value as it would be written in a script. UUIDs that are not `literal`
    /// become names; new names are bound.
    pub fn abstracted(&mut self, actual: &Value, literal: &dyn Fn(&str) -> bool) -> Value {
        match actual {
            Value::String(text) => Value::String(self.abstracted_text(text, literal)),
            Value::Array(values) => values
                .iter()
                .map(|value| self.abstracted(value, literal))
                .collect(),
            Value::Object(members) => {
                let written: Map<String, Value> = members
                    .iter()
                    .map(|(name, value)| {
                        (
                            self.abstracted_text(name, literal),
                            self.abstracted(value, literal),
                        )
                    })
                    .collect();
                Value::Object(written)
            }
            other => other.clone(),
        }
    }

    fn abstracted_text(&mut self, text: &str, literal: &dyn Fn(&str) -> bool) -> String {
        let text = if self.dir.is_empty() {
            text.to_owned()
        } else {
            text.replace(&self.dir, "<dir>")
        };
        let mut written = String::new();
        let mut rest = text.as_str();
        while let Some(next) = rest.chars().next() {
            match rest.split_at_checked(UUID_LENGTH) {
                Some((uuid, tail)) if is_uuid(uuid) => {
                    written.push_str(&self.written_uuid(uuid, literal));
                    rest = tail;
                }
                _ => {
                    written.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
        }
        written
    }

    fn written_uuid(&mut self, uuid: &str, literal: &dyn Fn(&str) -> bool) -> String {
        if let Some(digits) = uuid.strip_prefix(FIXED_PREFIX)
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && digits.bytes().any(|byte| byte != b'0')
        {
            return format!("<#{}>", digits.trim_start_matches('0'));
        }
        if uuid == ZERO || literal(uuid) {
            return uuid.to_owned();
        }
        if let Some((name, _)) = self.uuids.iter().find(|(_, bound)| *bound == uuid) {
            return format!("<{name}>");
        }
        let number = (1..)
            .find(|number| !self.uuids.contains_key(&format!("u{number}")))
            .unwrap_or(0);
        let name = format!("u{number}");
        self.uuids.insert(name.clone(), uuid.to_owned());
        format!("<{name}>")
    }
}

/// Returns a written expectation with its repetitions expanded, so that it can be read as JSON.
pub fn unrepeated(written: &str) -> String {
    let mut text = String::new();
    let mut rest = written;
    while let Some(open) = rest.find('<') {
        let inside = rest[open + 1..].split('>').next().unwrap_or_default();
        let (end, repeated) = match special(inside) {
            Some((Piece::Repeat(count, part), length)) => (open + length + 2, part.repeat(count)),
            _ => (open + 1, "<".to_owned()),
        };
        text.push_str(&rest[..open]);
        text.push_str(&repeated);
        rest = &rest[end..];
    }
    text + rest
}

/// Returns received bytes as text. Bytes that are not UTF-8 become `<xNN>`.
pub fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("<x{byte:02x}>"));
        }
    }
    text
}

fn without<T: Copy>(items: &[T], index: usize) -> Vec<T> {
    let mut rest = items.to_vec();
    rest.remove(index);
    rest
}

fn fixed(digits: &str) -> String {
    format!("{FIXED_PREFIX}{digits:0>12}")
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_LENGTH
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

fn pieces(written: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(open) = written[from..].find('<').map(|offset| from + offset) {
        let special = written[open..]
            .find('>')
            .and_then(|length| special(&written[open + 1..open + length]));
        match special {
            Some((piece, length)) => {
                if open > start {
                    pieces.push(Piece::Text(&written[start..open]));
                }
                pieces.push(piece);
                start = open + length + 2;
                from = start;
            }
            None => from = open + 1,
        }
    }
    if start < written.len() {
        pieces.push(Piece::Text(&written[start..]));
    }
    pieces
}

/// Returns the placeholder between angle brackets and its length, if it is one of ours.
fn special(inside: &str) -> Option<(Piece<'_>, usize)> {
    let piece = if inside == "*" {
        Piece::Any
    } else if inside == "dir" {
        Piece::Dir
    } else if let Some(digits) = inside.strip_prefix('#') {
        let good =
            (1..=12).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        good.then_some(Piece::Fixed(digits))?
    } else if let Some((count, text)) = inside.split_once('*') {
        Piece::Repeat(count.parse().ok()?, text)
    } else if let (Some(hex), 3) = (inside.strip_prefix('x'), inside.len()) {
        Piece::Byte(u8::from_str_radix(hex, 16).ok()?)
    } else {
        let digits = inside.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        let good = !digits.is_empty()
            && digits.len() < inside.len()
            && digits.bytes().all(|byte| byte.is_ascii_digit());
        good.then_some(Piece::Name(inside))?
    };
    Some((piece, inside.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const A: &str = "11111111-aaaa-4bbb-8ccc-000000000001";
    const B: &str = "22222222-aaaa-4bbb-8ccc-000000000002";

    #[test]
    fn names_are_bound_on_first_sight_and_hold() {
        let mut bindings = Bindings::default();
        assert!(bindings.matches(&json!(["uuid", "<k1>"]), &json!(["uuid", A])));
        assert!(!bindings.matches(&json!("<k1>"), &json!(B)));
        assert!(
            !bindings.matches(&json!("<k2>"), &json!(A)),
            "two names for one UUID"
        );
        assert!(bindings.matches(
            &json!("row <k1> and <k2>."),
            &json!(format!("row {A} and {B}."))
        ));
        assert_eq!(
            bindings.expand("[<k2>,<#3>,<2*ab>]").unwrap(),
            format!("[{B},{},abab]", fixed("3")).into_bytes()
        );
        assert!(bindings.expand("<k3>").is_err());
    }

    #[test]
    fn member_names_are_found_in_any_order() {
        let mut bindings = Bindings::default();
        let expected = json!({"<a1>": {"n": 2}, "<b1>": {"n": 1}});
        assert!(bindings.matches(&expected, &json!({A: {"n": 1}, B: {"n": 2}})));
        assert_eq!(bindings.expand("<a1>").unwrap(), B.as_bytes());
        assert!(!bindings.matches(&expected, &json!({A: {"n": 1}})));
    }

    #[test]
    fn texts_of_the_protocol_are_not_placeholders() {
        let mut bindings = Bindings::default();
        for text in [
            "must begin with <db-name>",
            "expected [\"uuid\", <string>]",
            "<",
            "a<=b>",
            "<id>",
        ] {
            assert!(bindings.matches(&json!(text), &json!(text)));
            assert_eq!(bindings.expand(text).unwrap(), text.as_bytes());
        }
        assert!(bindings.matches(&json!("after <*> ms"), &json!("after 12 ms")));
        assert!(!bindings.matches(&json!("after <*> ms"), &json!("after 12 s")));
    }

    #[test]
    fn numbers_compare_by_spelling() {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(!Bindings::default().matches(&read("1"), &read("1.0")));
        assert!(Bindings::default().matches(&read("1e+20"), &read("1e+20")));
    }

    #[test]
    fn received_values_are_written_back_with_names() {
        let mut bindings = Bindings::default();
        let written = bindings.abstracted(
            &json!({A: ["uuid", fixed("12")], "t": format!("{B}!")}),
            &|uuid| uuid == B,
        );
        assert_eq!(
            written,
            json!({"<u1>": ["uuid", "<#12>"], "t": format!("{B}!")})
        );
    }

    #[test]
    fn elements_in_any_order() {
        let mut bindings = Bindings::default();
        assert!(bindings.matches(&json!(["<any-order>", 1, 2]), &json!([2, 1])));
        assert!(!bindings.matches(&json!(["<any-order>", 1, 2]), &json!([2, 1, 1])));
    }

    #[test]
    fn repetitions_are_written_out() {
        assert_eq!(unrepeated("[<3*[><2*ab>]<k1>"), "[[[[abab]<k1>");
        assert_eq!(unrepeated("a <= <2*x> >"), "a <= xx >");
    }

    #[test]
    fn bytes_that_are_not_utf8_become_readable() {
        assert_eq!(readable(b"a\xed\xb0\x80z"), "a<xed><xb0><x80>z");
        assert_eq!(
            Bindings::default().expand("a<xed><xb0><x80>z").unwrap(),
            b"a\xed\xb0\x80z"
        );
    }
}
