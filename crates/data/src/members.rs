//! Objects with named members: the generic parser whose messages operations, monitor requests and
//! schemas share (docs/spec/protocol.md 1.7).
//!
//! An object is split into members once. The caller reads the members that it knows and then calls
//! [`Members::finish`]. Works on raw JSON text (requests, no tree) and on [`Value`] trees
//! (schemas). The last of repeated names wins. The first problem found is the one reported, so the
//! order in which callers read members is the precedence of their errors.

use std::borrow::Cow;
use std::fmt;

use corvid_json::{Kind, Number, Reader, Value};
use smallvec::SmallVec;

use crate::{Tag, WireError};

/// The thing that is being parsed, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// One operation of a `transact` request; `number` counts from 1.
    Operation {
        /// The operation's number, from 1.
        number: usize,
        /// The array that holds the operation, after the name of the database. Only error messages
        /// need its length.
        params: &'a [u8],
    },
    /// A monitor request for a table.
    Table(&'a str),
    /// The `select` member of a monitor request.
    TableSelect(&'a str),
    /// A database schema.
    DatabaseSchema,
    /// A table schema.
    TableSchema(&'a str),
    /// A column schema.
    Column(&'a str),
    /// A column type or base type.
    Type,
    /// The first record of a cluster member's file.
    RaftHeader,
    /// Any other record of a cluster member's file.
    RaftRecord,
    /// The parameter of a message between members of a cluster.
    RaftRpc(&'a str),
    /// A log entry in such a message.
    RaftEntry,
    /// A database in a configuration file.
    Database(&'a str),
    /// The options of a remote in a configuration file.
    RemoteOptions,
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Operation { number, params } => {
                let count = elements(params).saturating_sub(1);
                write!(f, "ovsdb operation {number} of {count}")
            }
            Subject::Table(table) => write!(f, "table {table}"),
            Subject::TableSelect(table) => write!(f, "table {table} select"),
            Subject::DatabaseSchema => f.write_str("database schema"),
            Subject::TableSchema(table) => write!(f, "table schema for table {table}"),
            Subject::Column(column) => write!(f, "schema for column {column}"),
            Subject::Type => f.write_str("ovsdb type"),
            Subject::RaftHeader => f.write_str("raft header"),
            Subject::RaftRecord => f.write_str("raft log record"),
            Subject::RaftRpc(method) => write!(f, "raft {method} RPC"),
            Subject::RaftEntry => f.write_str("raft log entry"),
            Subject::Database(name) => write!(f, "database {name}"),
            Subject::RemoteOptions => f.write_str("JSON-RPC options"),
        }
    }
}

/// The number of elements of an array that was validated before.
#[must_use]
pub fn elements(array: &[u8]) -> usize {
    let mut reader = Reader::trusted(array);
    let mut count = 0;
    if reader.begin_array().is_ok() {
        while let (Ok(true), Ok(_)) = (reader.next_element(), reader.skip()) {
            count += 1;
        }
    }
    count
}

/// A set of JSON kinds that a member may have. Only [`Kinds::ANY`] includes `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// `null`
    pub const NULL: Kinds = Kinds(1);
    /// `true` or `false`
    pub const BOOLEAN: Kinds = Kinds(1 << 1);
    /// A number that is exactly an `i64`.
    pub const INTEGER: Kinds = Kinds(1 << 2);
    /// Any other number.
    pub const REAL: Kinds = Kinds(1 << 3);
    /// Any number.
    pub const NUMBER: Kinds = Kinds(1 << 2 | 1 << 3);
    /// Any string.
    pub const STRING: Kinds = Kinds(1 << 4);
    /// An array.
    pub const ARRAY: Kinds = Kinds(1 << 5);
    /// An object.
    pub const OBJECT: Kinds = Kinds(1 << 6);
    /// A string that is an `<id>` ([`is_id`]).
    pub const ID: Kinds = Kinds(1 << 7);
    /// Every kind.
    pub const ANY: Kinds = Kinds(0x7f);

    /// The union of both sets.
    #[must_use]
    pub const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

/// Whether `text` is an `<id>`: `[A-Za-z_][A-Za-z0-9_]*`.
#[must_use]
pub fn is_id(text: &[u8]) -> bool {
    text.first().is_some_and(|first| !first.is_ascii_digit())
        && text.iter().all(|byte| IN_IDS[usize::from(*byte)])
}

/// The bytes that an `<id>` may have after its first one.
const IN_IDS: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        allowed[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    allowed
};

/// The form of a member's value: raw JSON text (`&[u8]`, validated before) or a tree (`&Value`).
pub trait MemberValue<'a>: Copy {
    /// Whether the value is of one of `kinds`.
    fn is_of(self, kinds: Kinds) -> bool;
    /// A `syntax error` about this value.
    fn error(self, details: String) -> WireError;
    /// Appends the members of the object; `None` if the value is not an object.
    fn split(self, members: &mut List<'a, Self>) -> Option<()>;
}

/// Members in the order of the text. Functions fill a list of their caller, because a list is large
/// to return.
pub type List<'a, V> = SmallVec<[Member<'a, V>; 8]>;

/// A member, and whether the caller has read it.
#[derive(Debug)]
pub struct Member<'a, V> {
    name: Cow<'a, [u8]>,
    value: V,
    is_read: bool,
}

impl<'a, V> Member<'a, V> {
    fn new(name: Cow<'a, [u8]>, value: V) -> Member<'a, V> {
        Member {
            name,
            value,
            is_read: false,
        }
    }
}

impl<'a> MemberValue<'a> for &'a [u8] {
    fn is_of(self, kinds: Kinds) -> bool {
        match Reader::trusted(self).peek() {
            Ok(Kind::Null) => kinds.has(Kinds::NULL),
            Ok(Kind::Bool) => kinds.has(Kinds::BOOLEAN),
            Ok(Kind::Number) if !kinds.has(Kinds::NUMBER) => false,
            Ok(Kind::Number) if kinds.0 & Kinds::NUMBER.0 == Kinds::NUMBER.0 => true,
            Ok(Kind::Number) => match corvid_json::number::parse(self) {
                Some(Number::Integer(_)) => kinds.has(Kinds::INTEGER),
                _ => kinds.has(Kinds::REAL),
            },
            Ok(Kind::String) if kinds.has(Kinds::STRING) => true,
            Ok(Kind::String) => {
                kinds.has(Kinds::ID)
                    && (plain(self).is_some_and(is_id) || string(self).is_some_and(|id| is_id(&id)))
            }
            Ok(Kind::Array) => kinds.has(Kinds::ARRAY),
            Ok(Kind::Object) => kinds.has(Kinds::OBJECT),
            Err(_) => false,
        }
    }

    fn error(self, details: String) -> WireError {
        WireError::syntax(self, details)
    }

    fn split(self, members: &mut List<'a, Self>) -> Option<()> {
        split_next(&mut Reader::trusted(self), members)
    }
}

/// Skips the next value and appends its members; `None` if it is not an object.
fn split_next<'a>(reader: &mut Reader<'a>, members: &mut List<'a, &'a [u8]>) -> Option<()> {
    reader.begin_object().ok()?;
    while let Some(name) = reader.next_member().ok()? {
        members.push(Member::new(name, reader.skip().ok()?));
    }
    Some(())
}

impl<'a> MemberValue<'a> for &'a Value {
    fn is_of(self, kinds: Kinds) -> bool {
        kinds.has(match self {
            Value::Null => Kinds::NULL,
            Value::Bool(_) => Kinds::BOOLEAN,
            Value::Integer(_) => Kinds::INTEGER,
            Value::Real(_) => Kinds::REAL,
            Value::String(text) if is_id(text) => Kinds::STRING.or(Kinds::ID),
            Value::String(_) => Kinds::STRING,
            Value::Array(_) => Kinds::ARRAY,
            Value::Object(_) => Kinds::OBJECT,
        })
    }

    fn error(self, details: String) -> WireError {
        WireError::syntax_value(self, details)
    }

    fn split(self, members: &mut List<'a, Self>) -> Option<()> {
        let object = self.as_object()?.iter();
        members.extend(object.map(|(name, value)| Member::new(Cow::Borrowed(&name[..]), value)));
        Some(())
    }
}

/// The members of one object.
///
/// ```
/// use corvid_data::{Kinds, Members, Subject};
///
/// let raw: &[u8] = br#"{"op":"insert","table":"T","row":{},"x":1}"#;
/// let params = br#"["D",{"op":"insert","table":"T","row":{},"x":1},{}]"#;
/// let mut members = Members::parse(Subject::Operation { number: 1, params }, raw)?;
/// let table = members.required("table", Kinds::ID)?;
/// assert_eq!(table, br#""T""#);
/// members.required("op", Kinds::STRING)?;
/// members.optional("row", Kinds::OBJECT)?;
/// let error = members.finish().expect_err("x is unknown");
/// assert_eq!(
///     error.details,
///     "Parsing ovsdb operation 1 of 2 failed: Member 'x' is present but not allowed here."
/// );
/// # Ok::<(), corvid_data::WireError>(())
/// ```
#[derive(Debug)]
pub struct Members<'a, V> {
    what: Subject<'a>,
    whole: V,
    members: List<'a, V>,
}

impl<'a> Members<'a, &'a [u8]> {
    /// Splits the next value of `reader` in the same pass that finds its end. `text` is the
    /// reader's whole text, validated before.
    ///
    /// # Errors
    /// Those of [`Members::parse`]; the reader has then moved past the value.
    #[inline(always)]
    pub fn read(
        what: Subject<'a>,
        text: &'a [u8],
        reader: &mut Reader<'a>,
    ) -> Result<Members<'a, &'a [u8]>, WireError> {
        let mut members = Members {
            what,
            whole: &text[..0],
            members: List::new(),
        };
        let is_object = matches!(reader.peek(), Ok(Kind::Object));
        let start = reader.offset();
        if !is_object || split_next(reader, &mut members.members).is_none() {
            let _ = reader.skip();
            return Err(no_object(what));
        }
        members.whole = &text[start..reader.offset()];
        Ok(members)
    }

    /// Splits the object that comes next in `reader`, whose text may be invalid. Members named
    /// `apart` are not listed: `read` reads the value of each in place, so that a long value is
    /// scanned only once.
    ///
    /// # Errors
    /// Those of the reader and of `read`.
    pub fn read_apart<E: From<corvid_json::Error>>(
        what: Subject<'a>,
        text: &'a [u8],
        reader: &mut Reader<'a>,
        apart: &str,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<(), E>,
    ) -> Result<Members<'a, &'a [u8]>, E> {
        reader.peek()?;
        let start = reader.offset();
        let mut members = List::new();
        reader.begin_object()?;
        while let Some(name) = reader.next_member()? {
            if *name == *apart.as_bytes() {
                read(reader)?;
            } else {
                members.push(Member::new(name, reader.skip()?));
            }
        }
        Ok(Members {
            what,
            whole: &text[start..reader.offset()],
            members,
        })
    }
}

impl<'a, V: MemberValue<'a>> Members<'a, V> {
    /// Splits an object. `whole` is its valid JSON text or tree.
    ///
    /// # Errors
    /// `Parsing WHAT failed: Object expected.`, without a fragment.
    #[inline(always)]
    pub fn parse(what: Subject<'a>, whole: V) -> Result<Members<'a, V>, WireError> {
        let mut members = Members {
            what,
            whole,
            members: List::new(),
        };
        match whole.split(&mut members.members) {
            Some(()) => Ok(members),
            None => Err(no_object(what)),
        }
    }

    /// The whole object, for fragments of errors about it.
    #[must_use]
    pub fn whole(&self) -> V {
        self.whole
    }

    /// Whether a member is present. This does not count as reading it.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.members
            .iter()
            .any(|member| *member.name == *name.as_bytes())
    }

    /// Reads a member that must be present.
    ///
    /// # Errors
    /// The member is missing, or is of another kind.
    pub fn required(&mut self, name: &str, kinds: Kinds) -> Result<V, WireError> {
        match self.optional(name, kinds)? {
            Some(value) => Ok(value),
            None => Err(self.error(&format!("Required '{name}' member is missing."))),
        }
    }

    /// Reads a member that may be absent.
    ///
    /// # Errors
    /// The member is present, but of another kind.
    pub fn optional(&mut self, name: &str, kinds: Kinds) -> Result<Option<V>, WireError> {
        let mut found = None;
        for member in &mut self.members {
            if *member.name == *name.as_bytes() {
                member.is_read = true;
                found = Some(member.value);
            }
        }
        match found {
            Some(value) if !value.is_of(kinds) => {
                Err(self.error(&format!("Type mismatch for member '{name}'.")))
            }
            found => Ok(found),
        }
    }

    /// Checks that every member was read.
    ///
    /// # Errors
    /// The message about unexpected members.
    #[inline]
    pub fn finish(&self) -> Result<(), WireError> {
        if self.members.iter().all(|member| member.is_read) {
            return Ok(());
        }
        Err(self.unexpected())
    }

    #[cold]
    fn unexpected(&self) -> WireError {
        let mut unexpected: Vec<&[u8]> = self
            .members
            .iter()
            .filter(|member| !member.is_read)
            .map(|member| &*member.name)
            .collect();
        unexpected.sort_unstable();
        unexpected.dedup();
        let first = String::from_utf8_lossy(unexpected[0]);
        self.error(&match unexpected.len() - 1 {
            0 => format!("Member '{first}' is present but not allowed here."),
            1 => format!("Member '{first}' and 1 other member are present but not allowed here."),
            others => format!(
                "Member '{first}' and {others} other members are present but not allowed here."
            ),
        })
    }

    /// A `syntax error` about the whole object: `Parsing WHAT failed: PROBLEM`.
    #[must_use]
    pub fn error(&self, problem: &str) -> WireError {
        self.whole
            .error(format!("Parsing {} failed: {problem}", self.what))
    }
}

#[cold]
fn no_object(what: Subject<'_>) -> WireError {
    WireError::new(
        Tag::SyntaxError,
        format!("Parsing {what} failed: Object expected."),
    )
}

/// The bytes between the first and the last one: the string itself, if `raw` is a quoted string
/// without escapes.
fn plain(raw: &[u8]) -> Option<&[u8]> {
    raw.get(1..raw.len().checked_sub(1)?)
}

/// The string in the JSON text `raw`; borrowed if it has no escapes. `None` if `raw` is not a
/// string.
#[must_use]
pub fn string(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    Reader::trusted(raw).string().ok()
}

/// The `<id>` in the JSON text `raw`. For any other string its contents, for any other value
/// nothing.
#[must_use]
pub fn id(raw: &[u8]) -> Cow<'_, [u8]> {
    match plain(raw).filter(|id| is_id(id)) {
        Some(id) => Cow::Borrowed(id),
        None => string(raw).unwrap_or_default(),
    }
}

/// The text of a string that is valid UTF-8, as every `<id>` is.
#[must_use]
pub fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    match string(raw)? {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

/// The integer in the JSON text `raw`; `None` if it is not one.
#[must_use]
pub fn integer(raw: &[u8]) -> Option<i64> {
    match corvid_json::number::parse(raw)? {
        Number::Integer(integer) => Some(integer),
        Number::Real(_) => None,
    }
}

/// The boolean in the JSON text `raw`; `None` if it is not one.
#[must_use]
pub fn boolean(raw: &[u8]) -> Option<bool> {
    match raw {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(raw: &str) -> Members<'_, &[u8]> {
        let what = Subject::Operation {
            number: 2,
            params: br#"["D", {}, 2, []]"#,
        };
        Members::parse(what, raw.as_bytes()).expect("object")
    }

    #[test]
    fn an_object_is_expected() {
        for raw in ["[]", "5", "\"x\"", "null"] {
            let error = Members::parse(Subject::Table("T"), raw.as_bytes()).expect_err(raw);
            assert_eq!(
                error.to_string(),
                "syntax error: Parsing table T failed: Object expected."
            );
            let tree = Value::parse(raw.as_bytes()).expect("json");
            assert_eq!(
                Members::parse(Subject::Table("T"), &tree).expect_err(raw),
                error
            );
        }
    }

    #[test]
    fn missing_and_mistyped_members_show_the_whole_object_sorted() {
        let error = operation(r#"{"z":1, "a":2.50}"#)
            .required("op", Kinds::STRING)
            .expect_err("missing");
        assert_eq!(
            error.to_string(),
            r#"syntax "{"a":2.5,"z":1}": syntax error: Parsing ovsdb operation 2 of 3 failed: Required 'op' member is missing."#
        );
        for (raw, kinds) in [
            (r#"{"m":null}"#, Kinds::STRING),
            (r#"{"m":5}"#, Kinds::STRING.or(Kinds::REAL)),
            (r#"{"m":1.5}"#, Kinds::INTEGER),
            (r#"{"m":"a b"}"#, Kinds::ID),
            (r#"{"m":"ab","m":"5b"}"#, Kinds::ID),
            (r#"{"m":[]}"#, Kinds::OBJECT),
        ] {
            let error = operation(raw)
                .optional("m", kinds)
                .expect_err("another kind");
            assert_eq!(
                error.details,
                "Parsing ovsdb operation 2 of 3 failed: Type mismatch for member 'm'."
            );
            let tree = Value::parse(raw.as_bytes()).expect("json");
            let mut members = Members::parse(Subject::Type, &tree).expect("object");
            assert!(members.optional("m", kinds).is_err());
        }
    }

    #[test]
    fn the_last_of_repeated_members_wins() {
        let mut members = operation(r#"{"m":1,"\u006d":2,"n":true}"#);
        let raw = members.required("m", Kinds::INTEGER).expect("there");
        assert_eq!(integer(raw), Some(2));
        let raw = members.required("n", Kinds::BOOLEAN).expect("there");
        assert_eq!(boolean(raw), Some(true));
        members.finish().expect("all read");
    }

    #[test]
    fn unexpected_members_are_counted_once_each() {
        for (raw, problem) in [
            (
                r#"{"b":1,"b":2}"#,
                "Member 'b' is present but not allowed here.",
            ),
            (
                r#"{"b":1,"a":2}"#,
                "Member 'a' and 1 other member are present but not allowed here.",
            ),
            (
                r#"{"c":1,"b":1,"a":2,"a":3}"#,
                "Member 'a' and 2 other members are present but not allowed here.",
            ),
        ] {
            let error = operation(raw).finish().expect_err("unexpected");
            assert_eq!(
                error.details,
                format!("Parsing ovsdb operation 2 of 3 failed: {problem}")
            );
        }
    }

    #[test]
    fn ids() {
        for id in ["a", "_", "_uuid", "A9_z"] {
            assert!(is_id(id.as_bytes()), "{id}");
        }
        for other in ["", "9a", "a-b", "a b", "\u{e9}"] {
            assert!(!is_id(other.as_bytes()), "{other}");
        }
    }
}
