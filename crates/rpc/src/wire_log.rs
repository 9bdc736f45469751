//! Messages as the debug log shows them, in the reference's form:
//! `send request, method="transact", params=[...], id=1`.
//!
//! Nothing is formatted before the log asks for it. Long values are truncated, and only the
//! beginning of a very long message is scanned, so the length of a line is bounded whatever the
//! peer sends. Control characters are escaped as in JSON: a message cannot forge a line, and its
//! strings keep their values.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};

use corvid_json::Reader;
use corvid_json::shown::Shown;

/// How much of a message is scanned, bytes.
const SCANNED_BYTES_MAX: usize = 64 * 1024;

/// How much of a value is shown, bytes.
const SHOWN_BYTES_MAX: usize = 2048;

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}

/// A message for the log.
#[derive(Debug)]
pub struct LoggedMessage<'a> {
    direction: Direction,
    beginning: Cow<'a, [u8]>,
    /// The length of the whole message, bytes.
    length: usize,
}

impl<'a> LoggedMessage<'a> {
    /// A message in one piece.
    #[must_use]
    pub fn new(direction: Direction, text: &'a [u8]) -> LoggedMessage<'a> {
        LoggedMessage::cut(direction, text, text.len())
    }

    /// The beginning of a message of `length` bytes.
    #[must_use]
    pub fn cut(direction: Direction, beginning: &'a [u8], length: usize) -> LoggedMessage<'a> {
        let scanned = &beginning[..beginning.len().min(SCANNED_BYTES_MAX)];
        LoggedMessage {
            direction,
            beginning: Cow::Borrowed(scanned),
            length,
        }
    }

    /// A message in several pieces; only the first pieces are copied.
    #[must_use]
    pub fn of_pieces(
        direction: Direction,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> LoggedMessage<'static> {
        let mut beginning = Vec::new();
        let mut length = 0;
        for piece in pieces {
            let room = SCANNED_BYTES_MAX - beginning.len();
            beginning.extend_from_slice(&piece[..piece.len().min(room)]);
            length += piece.len();
        }
        LoggedMessage {
            direction,
            beginning: Cow::Owned(beginning),
            length,
        }
    }
}

/// The members of an envelope, as far as they have been found.
#[derive(Default)]
struct Members<'a> {
    method: Option<&'a [u8]>,
    params: Option<&'a [u8]>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
}

impl<'a> Members<'a> {
    /// Reads members up to the end, or up to where the text is truncated or not JSON. `null` counts
    /// as absent.
    fn read(text: &'a [u8]) -> Members<'a> {
        let mut members = Members::default();
        let mut reader = Reader::new(text);
        if reader.begin_object().is_err() {
            return members;
        }
        while let Ok(Some(name)) = reader.next_member() {
            let start = reader.offset();
            let skipped = reader.skip();
            let value = skipped.as_ref().map_or(&text[start..], |value| value);
            let slot = match &*name {
                b"method" => &mut members.method,
                b"params" => &mut members.params,
                b"result" => &mut members.result,
                b"error" => &mut members.error,
                b"id" => &mut members.id,
                _ => continue,
            };
            *slot = Some(value.trim_ascii()).filter(|value| *value != b"null");
            if skipped.is_err() {
                break;
            }
        }
        members
    }

    fn kind(&self, direction: Direction, is_whole: bool) -> &'static str {
        match (self.method, self.error, self.id) {
            // If the message is truncated, an id may follow.
            (Some(_), _, None) if is_whole => "notification",
            (Some(_), ..) => "request",
            // The log of the reference's server calls sent errors replies.
            (None, Some(_), _) if direction == Direction::Received => "error",
            (None, ..) => "reply",
        }
    }
}

impl Display for LoggedMessage<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let members = Members::read(&self.beginning);
        let is_whole = self.length == self.beginning.len();
        f.write_str(match self.direction {
            Direction::Sent => "send ",
            Direction::Received => "received ",
        })?;
        f.write_str(members.kind(self.direction, is_whole))?;
        for (name, value) in [
            ("method", members.method),
            ("params", members.params),
            ("result", members.result),
            ("error", members.error),
            ("id", members.id),
        ] {
            if let Some(value) = value {
                write!(f, ", {name}=")?;
                show(value, f)?;
            }
        }
        if !is_whole {
            write!(f, " ({} bytes in all)", self.length)?;
        }
        Ok(())
    }
}

fn show(value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    let shown = &value[..value.len().min(SHOWN_BYTES_MAX)];
    for letter in String::from_utf8_lossy(shown).chars() {
        match letter {
            '\n' | '\r' | '\t' => f.write_char(' ')?,
            letter => write!(f, "{}", Shown(letter))?,
        }
    }
    if shown.len() < value.len() {
        f.write_str("...")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> String {
        LoggedMessage::new(Direction::Sent, text.as_bytes()).to_string()
    }

    #[test]
    fn each_kind_has_the_form_of_the_reference() {
        for (text, line) in [
            (
                r#"{"id":0,"method":"list_dbs","params":[]}"#,
                r#"send request, method="list_dbs", params=[], id=0"#,
            ),
            (
                r#"{"error":null,"id":0,"result":["N","_Server"]}"#,
                r#"send reply, result=["N","_Server"], id=0"#,
            ),
            (
                r#"{"error":{"error":"unknown database"},"id":"x","result":null}"#,
                r#"send reply, error={"error":"unknown database"}, id="x""#,
            ),
            (
                r#"{"id":null,"method":"update","params":[null,{}]}"#,
                r#"send notification, method="update", params=[null,{}]"#,
            ),
        ] {
            assert_eq!(sent(text), line);
        }
        let received =
            LoggedMessage::new(Direction::Received, br#"{"id":1,"result":{},"error":null}"#);
        assert_eq!(received.to_string(), "received reply, result={}, id=1");
        let refused = LoggedMessage::new(
            Direction::Received,
            br#"{"id":1,"result":null,"error":"x"}"#,
        );
        assert_eq!(refused.to_string(), "received error, error=\"x\", id=1");
    }

    #[test]
    fn lines_are_bounded_and_cannot_be_forged() {
        let long = format!(
            r#"{{"id":7,"method":"transact","params":["{}"]}}"#,
            "x".repeat(10 * SCANNED_BYTES_MAX)
        );
        let line = sent(&long);
        assert!(line.starts_with(r#"send request, method="transact", params=["xxx"#));
        assert!(line.ends_with(&format!("..., id=7 ({} bytes in all)", long.len())));
        assert!(line.len() < SHOWN_BYTES_MAX + 200);
        let pieces = long.as_bytes().chunks(1000);
        let in_pieces = LoggedMessage::of_pieces(Direction::Sent, pieces);
        assert_eq!(in_pieces.to_string(), line);
        let forged = sent("{\"id\":1,\n\"method\":\"a\u{9b}31m\",\"params\":[1,\n2]}");
        assert_eq!(
            forged,
            "send request, method=\"a\\u009b31m\", params=[1, 2], id=1"
        );
        assert_eq!(sent("["), "send reply");
        assert_eq!(sent(""), "send reply");
    }
}
