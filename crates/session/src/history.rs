//! `read_history` and `select_at`, as clients use them: questions and pages
//! (docs/reference/wire-extensions.md).
//!
//! [`once::reads_history`](crate::once::reads_history) tells whether a server knows the methods.
//! Nothing here knows what a line says: `corvid-history` writes lines, programs read them.

use corvid_json::{Kind, Number, Object, Reader, Value};
use thiserror::Error;

/// The members of each reading, besides `read`: those that it needs, then those that it may have.
const READINGS: [(&str, &[&str], &[&str]); 4] = [
    ("files", &[], &[]),
    (
        "log",
        &[],
        &[
            "table", "row", "column", "client", "since", "until", "newest",
        ],
    ),
    ("diff", &["from", "to"], &["table", "row", "column"]),
    ("schema", &["at"], &[]),
];

/// Why every server would refuse a question.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WrongQuestion {
    /// There is no such reading.
    #[error("history has no {0:?}: read files, log, diff or schema")]
    Unknown(String),
    /// The reading does not have this member.
    #[error("a reading of {read:?} takes no {member:?}")]
    Misplaced {
        /// The reading.
        read: &'static str,
        /// The member.
        member: String,
    },
    /// The reading needs this member.
    #[error("a reading of {read:?} needs {member:?}")]
    Missing {
        /// The reading.
        read: &'static str,
        /// The member.
        member: &'static str,
    },
    /// The number of commits is 0.
    #[error("\"newest\" must be at least 1")]
    NoCommits,
}

/// The part of a database's history that a client asks for: the second parameter of `read_history`.
///
/// ```
/// use corvid_session::history::Question;
///
/// let question = Question::log().table("Port").since("-2h").newest(10);
/// let text = r#"["D",{"newest":10,"read":"log","since":"-2h","table":"Port"}]"#;
/// assert_eq!(question.params("D"), text.as_bytes());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Question(Object);

impl Question {
    /// The files, one line each.
    #[must_use]
    pub fn files() -> Question {
        Question::read("files")
    }

    /// The commits with their changes, oldest first.
    #[must_use]
    pub fn log() -> Question {
        Question::read("log")
    }

    /// The rows that differ between two moments.
    #[must_use]
    pub fn diff(from: &str, to: &str) -> Question {
        Question::read("diff").text("from", from).text("to", to)
    }

    /// The schema at a moment, one line.
    #[must_use]
    pub fn schema(at: &str) -> Question {
        Question::read("schema").text("at", at)
    }

    /// The next page of a reading.
    #[must_use]
    pub fn next(reading: i64) -> Question {
        Question(Object::new()).with("next", Value::Integer(reading))
    }

    /// The end of a reading whose other pages are not wanted.
    #[must_use]
    pub fn stop(reading: i64) -> Question {
        Question(Object::new()).with("stop", Value::Integer(reading))
    }

    /// Restricts a log or difference to rows of this table.
    #[must_use]
    pub fn table(self, table: &str) -> Question {
        self.text("table", table)
    }

    /// Restricts a log or difference to rows whose UUID begins like this.
    #[must_use]
    pub fn row(self, prefix: &str) -> Question {
        self.text("row", prefix)
    }

    /// Restricts a log or difference to rows of which this column has changed.
    #[must_use]
    pub fn column(self, column: &str) -> Question {
        self.text("column", column)
    }

    /// Restricts a log to commits with this text in their client or comment.
    #[must_use]
    pub fn client(self, text: &str) -> Question {
        self.text("client", text)
    }

    /// Restricts a log to changes after this moment.
    #[must_use]
    pub fn since(self, moment: &str) -> Question {
        self.text("since", moment)
    }

    /// Restricts a log to changes up to this moment.
    #[must_use]
    pub fn until(self, moment: &str) -> Question {
        self.text("until", moment)
    }

    /// Restricts a log to the last `count` commits.
    #[must_use]
    pub fn newest(self, count: usize) -> Question {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.with("newest", Value::Integer(count))
    }

    /// A question by the name of its reading. For bindings, whose programs name reading and
    /// members; [`Question::check`] tells whether they fit.
    #[must_use]
    pub fn named(read: &str) -> Question {
        Question::read(read)
    }

    /// Adds a member that is a text, by its name.
    #[must_use]
    pub fn member(self, name: &str, text: &str) -> Question {
        self.text(name, text)
    }

    /// Whether its members are those of its reading: a `since` of a difference, for example, would
    /// be refused by every server.
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self) -> Result<(), WrongQuestion> {
        let find = |name: &str| {
            let mut members = self.0.iter();
            members.find(|(member, _)| -> bool { AsRef::<[u8]>::as_ref(member) == name.as_bytes() })
        };
        let read = find("read").and_then(|(_, value)| value.as_str());
        let read = read.unwrap_or_default();
        let known = READINGS.iter().find(|(name, ..)| *name == read);
        let Some((read, needed, possible)) = known else {
            return Err(WrongQuestion::Unknown(read.to_owned()));
        };
        if let Some(member) = needed.iter().find(|name| find(name).is_none()) {
            return Err(WrongQuestion::Missing { read, member });
        }
        for member in self.0.keys() {
            let member = String::from_utf8_lossy(member);
            let member: &str = &member;
            if member != "read" && !needed.contains(&member) && !possible.contains(&member) {
                let member = member.to_owned();
                return Err(WrongQuestion::Misplaced { read, member });
            }
        }
        match find("newest").and_then(|(_, value)| value.as_integer()) {
            Some(count) if count < 1 => Err(WrongQuestion::NoCommits),
            _ => Ok(()),
        }
    }

    /// The parameters of `read_history` for a database, as JSON.
    #[must_use]
    pub fn params(&self, database: &str) -> Vec<u8> {
        let question = Value::Object(self.0.clone());
        Value::Array(vec![Value::string(database), question]).to_bytes()
    }

    fn read(what: &str) -> Question {
        Question(Object::new()).text("read", what)
    }

    fn text(self, name: &str, text: &str) -> Question {
        self.with(name, Value::string(text))
    }

    fn with(mut self, name: &str, value: Value) -> Question {
        self.0.insert(name.into(), value);
        self
    }
}

/// The parameters of `select_at`, as JSON. `operations` is a JSON array; `None`: it is not one.
#[must_use]
pub fn select_params(database: &str, moment: &str, operations: &[u8]) -> Option<Vec<u8>> {
    let Value::Array(operations) = Value::parse(operations).ok()? else {
        return None;
    };
    let mut params = vec![Value::string(database), Value::string(moment)];
    params.extend(operations);
    Some(Value::Array(params).to_bytes())
}

/// The reply to `read_history`: a part of what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'r> {
    /// JSON texts.
    pub lines: Vec<&'r [u8]>,
    /// The reading, if it has a next page.
    pub next: Option<i64>,
    /// The date that the reading has reached, ms since the Unix epoch.
    pub at_ms: Option<i64>,
    /// The part of the history that has been read, 0 to 1.
    pub done: f64,
    /// Warnings for people.
    pub warnings: Vec<String>,
}

impl<'r> Page<'r> {
    /// Parses a reply, JSON. `None`: it is not a page. Unknown members are skipped.
    #[must_use]
    pub fn parse(reply: &'r [u8]) -> Option<Page<'r>> {
        let mut page = Page {
            lines: Vec::new(),
            next: None,
            at_ms: None,
            done: 0.0,
            warnings: Vec::new(),
        };
        let mut reader = Reader::new(reply);
        reader.begin_object().ok()?;
        while let Some(name) = reader.next_member().ok()? {
            match &*name {
                b"lines" => {
                    reader.begin_array().ok()?;
                    while reader.next_element().ok()? {
                        page.lines.push(reader.skip().ok()?);
                    }
                }
                b"next" => page.next = integer(&mut reader)?,
                b"at" => page.at_ms = integer(&mut reader)?,
                b"warnings" => {
                    let warnings = reader.value().ok()?;
                    for warning in warnings.as_array()? {
                        page.warnings.push(warning.as_str()?.to_owned());
                    }
                }
                b"done" => {
                    page.done = match reader.number().ok()? {
                        Number::Integer(whole) if whole > 0 => 1.0,
                        Number::Integer(_) => 0.0,
                        Number::Real(part) => part.clamp(0.0, 1.0),
                    };
                }
                _ => {
                    reader.skip().ok()?;
                }
            }
        }
        reader.end().ok()?;
        Some(page)
    }
}

/// An integer or `null`. The outer `None`: neither.
#[allow(clippy::option_option)] // as the text says
fn integer(reader: &mut Reader<'_>) -> Option<Option<i64>> {
    if reader.peek().ok()? == Kind::Null {
        return reader.null().ok().map(|()| None);
    }
    match reader.number().ok()? {
        Number::Integer(integer) => Some(Some(integer)),
        Number::Real(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_the_texts_of_their_lines() {
        let reply =
            br#"{"lines":[{"b":1, "a":2},"x"],"next":7,"at":5,"done":0.5,"warnings":["w"],"later":[]}"#;
        let page = Page {
            lines: vec![br#"{"b":1, "a":2}"#, br#""x""#],
            next: Some(7),
            at_ms: Some(5),
            done: 0.5,
            warnings: vec!["w".to_owned()],
        };
        assert_eq!(Page::parse(reply), Some(page));
        let last = Page::parse(br#"{"lines":[],"next":null,"at":null,"done":1}"#).expect("a page");
        assert!(last.lines.is_empty() && last.next.is_none() && last.at_ms.is_none());
        assert!((last.done - 1.0).abs() < f64::EPSILON);
        for malformed in [
            "",
            "null",
            "[]",
            r#"{"lines":7}"#,
            r#"{"next":"7"}"#,
            r#"{"done":null}"#,
            r#"{"warnings":[7]}"#,
            r#"{"lines":[]}x"#,
            r#"{"lines":[1"#,
        ] {
            assert!(Page::parse(malformed.as_bytes()).is_none(), "{malformed}");
        }
    }

    #[test]
    fn questions_have_the_form_that_servers_expect() {
        let text = |question: Question| String::from_utf8(question.params("D")).expect("UTF-8");
        for (question, members) in [
            (Question::files(), r#"{"read":"files"}"#),
            (
                Question::diff("HEAD~1", "HEAD").row("5d").column("c"),
                r#"{"column":"c","from":"HEAD~1","read":"diff","row":"5d","to":"HEAD"}"#,
            ),
            (
                Question::log().client("x").until("@1"),
                r#"{"client":"x","read":"log","until":"@1"}"#,
            ),
            (Question::schema("HEAD"), r#"{"at":"HEAD","read":"schema"}"#),
            (Question::next(7), r#"{"next":7}"#),
            (Question::stop(7), r#"{"stop":7}"#),
        ] {
            assert_eq!(text(question), format!(r#"["D",{members}]"#));
        }
        let named = Question::named("log").member("since", "-2h");
        assert_eq!(named, Question::log().since("-2h"));
        let select = |operations: &[u8]| select_params("D", "-2h", operations);
        assert_eq!(select(b"[{}, {}]"), Some(br#"["D","-2h",{},{}]"#.to_vec()));
        assert_eq!(select(b"[]"), Some(br#"["D","-2h"]"#.to_vec()));
        for wrong in ["", "{}", "[{}", "{},{}"] {
            assert_eq!(select(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn members_of_another_reading_are_refused() {
        let right = [
            Question::files(),
            Question::log().table("T").row("5").column("c").client("x"),
            Question::log().since("-2h").until("HEAD").newest(1),
            Question::diff("HEAD~1", "HEAD")
                .table("T")
                .row("5")
                .column("c"),
            Question::schema("HEAD"),
        ];
        for question in right {
            assert_eq!(question.check(), Ok(()), "{question:?}");
        }
        let wrong = [
            (
                Question::diff("HEAD~1", "HEAD").since("-2h"),
                r#"a reading of "diff" takes no "since""#,
            ),
            (
                Question::schema("HEAD").until("-2h"),
                r#"a reading of "schema" takes no "until""#,
            ),
            (
                Question::files().newest(1),
                r#"a reading of "files" takes no "newest""#,
            ),
            (
                Question::log().member("from", "-2h"),
                r#"a reading of "log" takes no "from""#,
            ),
            (
                Question::named("diff").member("from", "-2h"),
                r#"a reading of "diff" needs "to""#,
            ),
            (
                Question::named("schema"),
                r#"a reading of "schema" needs "at""#,
            ),
            (Question::log().newest(0), r#""newest" must be at least 1"#),
            (
                Question::named("rows"),
                r#"history has no "rows": read files, log, diff or schema"#,
            ),
            (
                Question::next(7),
                r#"history has no "": read files, log, diff or schema"#,
            ),
        ];
        for (question, text) in wrong {
            let error = question.check().expect_err(text);
            assert_eq!(error.to_string(), text);
        }
    }
}
