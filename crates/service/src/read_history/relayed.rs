//! A reading of a relay's database, which the relay's source makes: the requests that the relay
//! sends over a connection of its own, and the meaning of the source's replies for the client.
//!
//! ```text
//! client                 relay                                      source
//!   |-- read_history ----->| reading 7: connects, read_history ------->| reading 3
//!   |<-- page, next: 7 ----|<------------------------- page, next: 3 ---|
//!   |-- next: 7 ---------->|------------------------------ next: 3 ---->|
//!   |-- cancel, or closed  |-- closes the connection ------------------>| ends it
//! ```
//!
//! The client's text is passed on as it is, because the source locates moments. Roles restrict
//! writing only, so the source shows the relay nothing that a client of the relay could not read
//! there. Invariant: the relay holds one page of a reading, in the source's own text.

use corvid_data::{Tag, WireError};
use corvid_json::{Kind, ObjectWriter, Reader, Value, write};
use corvid_rpc::message::{self, Message};
use corvid_session::history::Question;

use super::ReadingId;
use super::readings::Start;
use super::request::Query;

/// A reading that the source makes.
#[derive(Debug)]
pub struct RelayedReading {
    id: ReadingId,
    database: String,
    method: &'static str,
    params: Vec<u8>,
    /// The number of the last request.
    asked: u64,
    /// The reading at the source, once it has sent a page.
    next: i64,
}

/// An answer of the source.
#[derive(Debug, PartialEq, Eq)]
pub enum RelayedReply {
    /// A page that is not the last one.
    Page(Vec<u8>),
    /// The last answer.
    Last(Result<Vec<u8>, WireError>),
}

impl RelayedReading {
    /// A reading that begins as its client has asked for.
    #[must_use]
    pub fn new(id: ReadingId, start: Start) -> RelayedReading {
        let is_selection = matches!(start.query, Query::Select { .. });
        RelayedReading {
            id,
            database: start.name,
            method: if is_selection {
                "select_at"
            } else {
                "read_history"
            },
            params: start.params,
            asked: 0,
            next: 0,
        }
    }

    /// The request that begins the reading, then the one for each next page.
    #[must_use]
    pub fn request(&mut self) -> Vec<u8> {
        let params = match self.asked {
            0 => std::mem::take(&mut self.params),
            _ => Question::next(self.next).params(&self.database),
        };
        self.asked += 1;
        let mut text = Vec::with_capacity(params.len() + 64);
        message::write_request(&mut text, self.method, &params, &self.message_id());
        text
    }

    fn message_id(&self) -> Vec<u8> {
        self.asked.to_string().into_bytes()
    }

    /// The source's answer; `None`: another message.
    #[must_use]
    pub fn answer(&mut self, message: &Message<'_>) -> Option<RelayedReply> {
        match message {
            Message::Reply { id, result } if **id == *self.message_id() => {
                if self.method == "select_at" {
                    return Some(RelayedReply::Last(Ok(result.to_vec())));
                }
                let page = self.renumber(result);
                Some(page.unwrap_or_else(|| {
                    let details = "the source of the relay sent a page in another form";
                    let error = WireError::new(Tag::NotSupported, details);
                    RelayedReply::Last(Err(error))
                }))
            }
            Message::ErrorReply { id, error } if **id == *self.message_id() => {
                Some(RelayedReply::Last(Err(self.refusal(error))))
            }
            _ => None,
        }
    }

    /// The source's page with the number that the relay's client knows. `None`: it is not a page.
    fn renumber(&mut self, page: &[u8]) -> Option<RelayedReply> {
        let mut out = Vec::with_capacity(page.len() + 16);
        let mut next = None;
        let mut reader = Reader::trusted(page);
        reader.begin_object().ok()?;
        let mut object = ObjectWriter::new(&mut out);
        while let Some(name) = reader.next_member().ok()? {
            let kind = reader.peek().ok()?;
            let value = reader.skip().ok()?;
            if *name == *b"next" {
                next = match kind {
                    Kind::Null => Some(None),
                    _ => Some(Some(Value::parse(value).ok()?.as_integer()?)),
                };
                continue;
            }
            object = object.raw(&*name, value);
        }
        let member = object.member("next");
        let next = next?;
        match next {
            Some(_) => write::integer(member, i64::try_from(self.id.0).unwrap_or(i64::MAX)),
            None => write::null(member),
        }
        object.end();
        Some(match next {
            Some(next) => {
                self.next = next;
                RelayedReply::Page(out)
            }
            None => RelayedReply::Last(Ok(out)),
        })
    }

    /// The error for the client, from that of the source.
    fn refusal(&self, error: &[u8]) -> WireError {
        let json = Value::parse(error).unwrap_or(Value::Null);
        let text = |name: &str| json.get(name).and_then(Value::as_str);
        let tag = text("error").or(json.as_str()).unwrap_or_default();
        if tag == "unknown method" {
            return not_readable(&self.database);
        }
        let details = text("details").unwrap_or_default().to_owned();
        match Tag::parse(tag) {
            Some(tag) => WireError {
                syntax: text("syntax").map(|syntax| syntax.as_bytes().into()),
                io_error: text("io-error").map(Into::into),
                ..WireError::new(tag, details)
            },
            None => WireError::new(
                Tag::OvsdbError,
                format!("the source of the relay refused: {tag}: {details}"),
            ),
        }
    }
}

/// The error if a relay's source does not read histories.
#[must_use]
pub fn not_readable(database: &str) -> WireError {
    let details = format!(
        "database {database} is that of a relay, whose source cannot be asked for its history; ask a server that has \
         the database's file"
    );
    WireError::new(Tag::NotSupported, details)
}

/// The error if a relay has no source at present, or has lost it during the reading.
#[must_use]
pub fn not_reachable(database: &str, reason: &str) -> WireError {
    let details = format!(
        "the history of database {database} is read by the relay's source, {reason}; ask again later"
    );
    WireError::new(Tag::DatabaseNotAvailable, details)
}

#[cfg(test)]
mod tests {
    use corvid_monitor::SessionId;

    use super::*;
    use crate::read_history::request;
    use crate::read_history::request::HistoryRequest;

    fn reading(parsed: HistoryRequest, params: &str) -> RelayedReading {
        let HistoryRequest::Begin(query) = parsed else {
            panic!("{params}");
        };
        let start = Start {
            session: SessionId(1),
            name: "D".to_owned(),
            applied: None,
            query,
            params: params.as_bytes().to_vec(),
        };
        RelayedReading::new(ReadingId(7), start)
    }

    fn log() -> RelayedReading {
        let params = r#"["D", {"read":"log","since":"-2h"}]"#;
        reading(request::read_history(params.as_bytes()).unwrap(), params)
    }

    fn answer(reading: &mut RelayedReading, text: &str) -> Option<RelayedReply> {
        reading.answer(&Message::parse(text.as_bytes()).unwrap())
    }

    fn refused(text: &str) -> WireError {
        let mut reading = log();
        let _ = reading.request();
        let text = format!(r#"{{"id":1,"result":null,"error":{text}}}"#);
        match answer(&mut reading, &text) {
            Some(RelayedReply::Last(Err(error))) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pages_are_those_of_the_source_under_the_number_of_the_relay() {
        let mut reading = log();
        assert_eq!(
            String::from_utf8(reading.request()).unwrap(),
            r#"{"id":1,"method":"read_history","params":["D", {"read":"log","since":"-2h"}]}"#
        );
        let page = r#"{"id":1,"result":{"lines":[{"a":1.50}],"next":3,"at":null,"done":0.5},"error":null}"#;
        let Some(RelayedReply::Page(page)) = answer(&mut reading, page) else {
            panic!("a page");
        };
        assert_eq!(
            String::from_utf8(page).unwrap(),
            r#"{"lines":[{"a":1.50}],"at":null,"done":0.5,"next":7}"#
        );
        assert_eq!(
            String::from_utf8(reading.request()).unwrap(),
            r#"{"id":2,"method":"read_history","params":["D",{"next":3}]}"#
        );
        let late = r#"{"id":1,"result":{"lines":[],"next":4},"error":null}"#;
        assert_eq!(answer(&mut reading, late), None, "answered before");
        let last = r#"{"id":2,"result":{"lines":[],"next":null,"done":1},"error":null}"#;
        let text = br#"{"lines":[],"done":1,"next":null}"#.to_vec();
        assert_eq!(
            answer(&mut reading, last),
            Some(RelayedReply::Last(Ok(text)))
        );
    }

    #[test]
    fn results_of_selections_are_passed_on_whole() {
        let params = r#"["D","HEAD",{"op":"select","table":"T","where":[]}]"#;
        let mut reading = reading(request::select_at(params.as_bytes()).unwrap(), params);
        let text = String::from_utf8(reading.request()).unwrap();
        assert!(text.contains(r#""method":"select_at","params":["D","HEAD","#));
        let reply = r#"{"id":1,"result":[{"rows":[]}],"error":null}"#;
        let result = br#"[{"rows":[]}]"#.to_vec();
        assert_eq!(
            answer(&mut reading, reply),
            Some(RelayedReply::Last(Ok(result)))
        );
    }

    #[test]
    fn errors_of_the_source_keep_their_words() {
        let error = refused(
            r#"{"error":"I/O error","details":"a.db: damaged","io-error":"No such file","syntax":"{}"}"#,
        );
        assert_eq!(
            error.to_string(),
            "syntax \"{}\": I/O error: a.db: damaged (No such file)"
        );
        for unknown in [r#""unknown method""#, r#"{"error":"unknown method"}"#] {
            assert_eq!(refused(unknown).tag, Tag::NotSupported, "{unknown}");
        }
        assert_eq!(refused(r#""canceled""#).tag, Tag::Canceled);
        let other = refused(r#"{"error":"odd","details":"x"}"#);
        assert!(other.details.ends_with("odd: x"), "{other}");
    }

    #[test]
    fn what_is_not_a_page_ends_the_reading() {
        for result in ["[]", "{}", r#"{"lines":[],"next":"x"}"#] {
            let mut reading = log();
            let _ = reading.request();
            let text = format!(r#"{{"id":1,"result":{result},"error":null}}"#);
            let answer = answer(&mut reading, &text);
            assert!(
                matches!(&answer, Some(RelayedReply::Last(Err(error))) if error.tag == Tag::NotSupported),
                "{answer:?}"
            );
        }
    }
}
