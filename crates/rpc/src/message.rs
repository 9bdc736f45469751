//! Message envelopes: which of four kinds a JSON text is, and writing each kind
//! (docs/spec/protocol.md 1.5, 1.7).
//!
//! Parsing is one validating pass: a text that parses here is valid JSON throughout, so later
//! readers may trust it. `params` and `id` stay raw slices; only names with escapes are copied.

use std::borrow::Cow;

use corvid_json::{DEPTH_MAX, Kind, Reader, write_canonical};
use thiserror::Error;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A request: the peer must reply.
    Request {
        /// Its name.
        method: Cow<'a, [u8]>,
        /// Raw text of an array.
        params: &'a [u8],
        /// Raw text of any JSON value except `null`.
        id: &'a [u8],
    },
    /// A notification: no reply is expected.
    Notification {
        /// Its name.
        method: Cow<'a, [u8]>,
        /// Raw text of an array.
        params: &'a [u8],
    },
    /// The reply to a request.
    Reply {
        /// Raw text.
        id: &'a [u8],
        /// Raw text.
        result: &'a [u8],
    },
    /// The error reply to a request.
    ErrorReply {
        /// Raw text.
        id: &'a [u8],
        /// Raw text.
        error: &'a [u8],
    },
}

/// Why a text is not a message; the connection is closed then. Its display is the reference's log
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// The text is not JSON.
    #[error("{0}")]
    Syntax(#[from] corvid_json::Error),
    /// The outermost value is an array.
    #[error("message is not a JSON object")]
    NotObject,
    /// `method` is present but not a string.
    #[error("method is not a JSON string")]
    MethodNotString,
    /// `params` is present but not an array.
    #[error("\"params\" must be JSON array")]
    ParamsNotArray,
    /// The message has a member other than the five known ones.
    #[error("message has unexpected member \"{0}\"")]
    UnexpectedMember(String),
    /// The message lacks a member that its kind requires.
    #[error("{kind} must have \"{member}\"")]
    Missing {
        /// Kind of message.
        kind: &'static str,
        /// The missing member.
        member: &'static str,
    },
    /// The message has a member that its kind must not have.
    #[error("{kind} must not have \"{member}\"")]
    Excess {
        /// Kind of message.
        kind: &'static str,
        /// The excess member.
        member: &'static str,
    },
}

impl MessageError {
    /// The text of the log line, after the connection's name.
    #[must_use]
    pub fn log_text(&self) -> String {
        match self {
            MessageError::Syntax(error) => format!("error parsing stream: {error}"),
            error => format!("received bad JSON-RPC message: {error}"),
        }
    }
}

/// The members as written in the text. `null` counts as absent; of repeated members the last one
/// wins.
#[derive(Default)]
struct Members<'a> {
    method: Option<Cow<'a, [u8]>>,
    params: Option<&'a [u8]>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
}

impl<'a> Message<'a> {
    /// Reads one message; `text` is a whole frame.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn parse(text: &'a [u8]) -> Result<Message<'a>, MessageError> {
        Message::parse_nested(text, DEPTH_MAX)
    }

    /// Reads a message that may nest as deeply as `depth_max`, because it wraps another.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn parse_nested(text: &'a [u8], depth_max: usize) -> Result<Message<'a>, MessageError> {
        let members = Members::read(text, depth_max)?;
        if members
            .params
            .is_some_and(|params| params.first() != Some(&b'['))
        {
            return Err(MessageError::ParamsNotArray);
        }
        if let Some(result) = members.result {
            members.check("reply", [false, false, true, false, true])?;
            Ok(Message::Reply {
                id: members.id.unwrap_or_default(),
                result,
            })
        } else if let Some(error) = members.error {
            members.check("error", [false, false, false, true, true])?;
            Ok(Message::ErrorReply {
                id: members.id.unwrap_or_default(),
                error,
            })
        } else if let Some(id) = members.id {
            members.check("request", [true, true, false, false, true])?;
            let params = members.params.unwrap_or_default();
            Ok(Message::Request {
                method: members.method.unwrap_or_default(),
                params,
                id,
            })
        } else {
            members.check("notification", [true, true, false, false, false])?;
            let params = members.params.unwrap_or_default();
            Ok(Message::Notification {
                method: members.method.unwrap_or_default(),
                params,
            })
        }
    }
}

impl<'a> Members<'a> {
    fn read(text: &'a [u8], depth_max: usize) -> Result<Members<'a>, MessageError> {
        let mut reader = Reader::new(text).with_depth_max(depth_max);
        if reader.peek()? != Kind::Object {
            return Err(MessageError::NotObject);
        }
        let mut members = Members::default();
        let mut unexpected = None;
        let mut method_is_string = true;
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            if &*name == b"method" {
                method_is_string = reader.peek()? == Kind::String;
                if method_is_string {
                    members.method = Some(reader.string()?);
                } else {
                    reader.skip()?;
                }
                continue;
            }
            let value = reader.skip()?;
            let value = (value != b"null").then_some(value);
            match &*name {
                b"params" => members.params = value,
                b"result" => members.result = value,
                b"error" => members.error = value,
                b"id" => members.id = value,
                _ => unexpected = Some(String::from_utf8_lossy(&name).into_owned()),
            }
        }
        reader.end()?;
        // In the order of the reference's checks.
        if !method_is_string {
            return Err(MessageError::MethodNotString);
        }
        match unexpected {
            Some(name) => Err(MessageError::UnexpectedMember(name)),
            None => Ok(members),
        }
    }

    /// Checks the presence of each member against `wanted`, in the order method, params, result,
    /// error, id.
    fn check(&self, kind: &'static str, wanted: [bool; 5]) -> Result<(), MessageError> {
        let found = [
            ("method", self.method.is_some()),
            ("params", self.params.is_some()),
            ("result", self.result.is_some()),
            ("error", self.error.is_some()),
            ("id", self.id.is_some()),
        ];
        for ((member, found), wanted) in found.into_iter().zip(wanted) {
            match (found, wanted) {
                (false, true) => return Err(MessageError::Missing { kind, member }),
                (true, false) => return Err(MessageError::Excess { kind, member }),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The canonical text of an id: equal ids (members in any order, numbers by value) have equal
/// texts, and replies echo this text (docs/spec/protocol.md 1.5). Plain integers and strings
/// without escapes, which clients use, are copied unchanged.
#[must_use]
pub fn canonical_id(raw: &[u8]) -> Vec<u8> {
    if is_plain(raw) {
        raw.to_vec()
    } else {
        canonical(raw)
    }
}

/// The canonical text of a value that has been validated: compact, members sorted, numbers by
/// value.
#[must_use]
pub fn canonical(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    match write_canonical(&mut Reader::trusted(raw), &mut out) {
        Ok(()) => out,
        Err(_) => raw.to_vec(),
    }
}

/// Whether the text of a validated value is certain to be canonical.
fn is_plain(raw: &[u8]) -> bool {
    match raw {
        [b'"', ..] => !raw.contains(&b'\\'),
        [b'0'] => true,
        [b'1'..=b'9', digits @ ..] => digits.len() < 18 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether an id is that of [`PROBE`].
#[must_use]
pub fn is_probe_id(raw: &[u8]) -> bool {
    raw == b"\"echo\"" || (raw.contains(&b'\\') && canonical(raw) == b"\"echo\"")
}

/// Appends a reply; `id` and `result` are JSON texts.
pub fn write_reply(out: &mut Vec<u8>, id: &[u8], result: &[u8]) {
    for part in [
        b"{\"id\":".as_slice(),
        id,
        b",\"result\":",
        result,
        b",\"error\":null}",
    ] {
        out.extend_from_slice(part);
    }
}

/// Appends an error reply; `id` and `error` are JSON texts. It has no `result` member
/// (docs/spec/protocol.md 1.7).
pub fn write_error_reply(out: &mut Vec<u8>, id: &[u8], error: &[u8]) {
    for part in [b"{\"id\":".as_slice(), id, b",\"error\":", error, b"}"] {
        out.extend_from_slice(part);
    }
}

/// Appends a notification; `params` is the JSON text of an array.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: &[u8]) {
    write_request(out, method, params, b"null");
}

/// Appends a request; `params` and `id` are JSON texts.
pub fn write_request(out: &mut Vec<u8>, method: &str, params: &[u8], id: &[u8]) {
    let parts = [
        b"{\"id\":".as_slice(),
        id,
        b",\"method\":\"",
        method.as_bytes(),
        b"\",\"params\":",
        params,
        b"}",
    ];
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The probe sent on a silent connection. [`crate::Session`] consumes its reply
/// (docs/spec/protocol.md 1.9).
pub const PROBE: &[u8] = br#"{"id":"echo","method":"echo","params":[]}"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Result<&'static str, String> {
        Message::parse(text.as_bytes())
            .map(|message| match message {
                Message::Request { .. } => "request",
                Message::Notification { .. } => "notification",
                Message::Reply { .. } => "reply",
                Message::ErrorReply { .. } => "error",
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_kind_follows_from_the_members() {
        assert_eq!(
            kind(r#"{"method":"echo","params":[],"id":1}"#),
            Ok("request")
        );
        assert_eq!(
            kind(r#"{"method":"echo","params":[],"result":null,"error":null,"id":false}"#),
            Ok("request")
        );
        assert_eq!(
            kind(r#"{"method":"echo","params":[],"id":null}"#),
            Ok("notification")
        );
        assert_eq!(kind(r#"{"method":"echo","params":[]}"#), Ok("notification"));
        assert_eq!(kind(r#"{"result":{},"id":1}"#), Ok("reply"));
        assert_eq!(kind(r#"{"error":"x","id":1}"#), Ok("error"));
    }

    #[test]
    fn malformed_messages_are_refused_in_the_words_of_the_reference() {
        for (text, reason) in [
            ("[]", "message is not a JSON object"),
            ("{}", r#"notification must have "method""#),
            (r#"{"method":null}"#, "method is not a JSON string"),
            (r#"{"foo":1,"method":1}"#, "method is not a JSON string"),
            (
                r#"{"foo":1,"params":1}"#,
                r#"message has unexpected member "foo""#,
            ),
            (
                r#"{"method":"x","params":[],"id":1,"jsonrpc":"2.0"}"#,
                r#"message has unexpected member "jsonrpc""#,
            ),
            (
                r#"{"method":"x","params":{},"id":1}"#,
                r#""params" must be JSON array"#,
            ),
            (
                r#"{"error":1,"params":5}"#,
                r#""params" must be JSON array"#,
            ),
            (r#"{"method":"x","id":1}"#, r#"request must have "params""#),
            (
                r#"{"method":"x","params":null,"id":1}"#,
                r#"request must have "params""#,
            ),
            (
                r#"{"result":null,"error":null,"id":5}"#,
                r#"request must have "method""#,
            ),
            (r#"{"params":[]}"#, r#"notification must have "method""#),
            (r#"{"method":"x"}"#, r#"notification must have "params""#),
            (r#"{"result":1}"#, r#"reply must have "id""#),
            (
                r#"{"result":1,"error":2,"id":5}"#,
                r#"reply must not have "error""#,
            ),
            (
                r#"{"result":1,"method":"x","id":5}"#,
                r#"reply must not have "method""#,
            ),
            (
                r#"{"result":1,"params":[],"id":5}"#,
                r#"reply must not have "params""#,
            ),
            (r#"{"error":1}"#, r#"error must have "id""#),
            (
                r#"{"error":1,"params":[],"id":1}"#,
                r#"error must not have "params""#,
            ),
        ] {
            let error = Message::parse(text.as_bytes()).unwrap_err();
            assert_eq!(
                error.log_text(),
                format!("received bad JSON-RPC message: {reason}"),
                "{text}"
            );
        }
        let error = Message::parse(br#"{"method":"x","params":[1,],"id":1}"#).unwrap_err();
        let position = "line 0, column 26, byte 26: syntax error expecting value";
        assert_eq!(
            error.log_text(),
            format!("error parsing stream: {position}")
        );
    }

    #[test]
    fn of_repeated_members_the_last_wins() {
        let message = Message::parse(
            br#"{"id":5,"id":null,"method":1,"method":"m","params":{},"params":[2]}"#,
        );
        assert_eq!(
            message,
            Ok(Message::Notification {
                method: b"m".into(),
                params: b"[2]"
            })
        );
        assert_eq!(
            kind(r#"{"method":"m","method":2,"params":[]}"#),
            Err("method is not a JSON string".to_owned())
        );
    }

    #[test]
    fn written_messages_read_back() {
        let mut text = Vec::new();
        write_request(&mut text, "transact", b"[1]", b"\"a\"");
        let request = Message::Request {
            method: b"transact".into(),
            params: b"[1]",
            id: b"\"a\"",
        };
        assert_eq!(Message::parse(&text), Ok(request));
        text.clear();
        write_notification(&mut text, "update", b"[2]");
        assert_eq!(text, br#"{"id":null,"method":"update","params":[2]}"#);
        text.clear();
        write_reply(&mut text, b"7", b"{}");
        assert_eq!(text, br#"{"id":7,"result":{},"error":null}"#);
        text.clear();
        write_error_reply(&mut text, b"7", b"\"canceled\"");
        assert_eq!(text, br#"{"id":7,"error":"canceled"}"#);
        assert!(
            is_probe_id(b"\"echo\"") && is_probe_id(br#""\u0065cho""#) && !is_probe_id(b"\"ech\"")
        );
    }

    #[test]
    fn equal_ids_have_equal_texts() {
        for (raw, canonical) in [
            ("1", "1"),
            ("1.0", "1"),
            ("10", "10"),
            ("1.50", "1.5"),
            (r#"{"b":1,"a":[ 2 ]}"#, r#"{"a":[2],"b":1}"#),
            ("12345678901234567890", "1.23456789012346e+19"),
            ("\"\\u00e9\"", "\"é\""),
        ] {
            assert_eq!(canonical_id(raw.as_bytes()), canonical.as_bytes(), "{raw}");
        }
    }
}
