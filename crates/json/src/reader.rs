//! A pull reader: one pass over a slice, no tree. Strings are byte strings (invalid UTF-8 passes,
//! docs/spec/protocol.md 1.2).
//!
//! The caller drives: it enters arrays and objects and reads values of the kinds that it expects,
//! so the text goes straight into typed data. Values that the caller skips are validated as
//! strictly as those that it reads. No method recurses, so nesting costs no stack. `lex` makes the
//! messages of errors; here a failure is only an offset.

use std::borrow::Cow;

use crate::{
    DEPTH_MAX, Error, Number, PEER_DEPTH_MAX, Value, escape, frame, lex, number, scan, tree,
    validator,
};

/// The kind of a value, known from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// a number
    Number,
    /// a string
    String,
    /// an array
    Array,
    /// an object
    Object,
}

/// Reads values from a slice. Every method validates the bytes that it passes, so a text read to
/// its end is valid JSON.
///
/// After an error the reader's position is unspecified, and the reader is unusable.
///
/// ```
/// use corvid_json::{Number, Reader};
/// let mut reader = Reader::new(br#"["set",[1,2.0]]"#);
/// reader.begin_array()?;
/// assert!(reader.next_element()?);
/// assert_eq!(&*reader.string()?, b"set");
/// assert!(reader.next_element()?);
/// reader.begin_array()?;
/// let mut sum = 0;
/// while reader.next_element()? {
///     if let Number::Integer(integer) = reader.number()? {
///         sum += integer;
///     }
/// }
/// assert!(!reader.next_element()?);
/// reader.end()?;
/// assert_eq!(sum, 3);
/// # Ok::<(), corvid_json::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of open brackets.
    depth: usize,
    /// Limit on open brackets.
    depth_max: usize,
    /// A bracket was just opened: no comma is due before the next value.
    fresh: bool,
    trusted: bool,
}

/// A string as it is written in the text.
struct Quoted<'a> {
    /// The bytes between the quotes.
    raw: &'a [u8],
    /// Offset of the closing quote, where the reference reports a bad escape.
    quote: usize,
    has_escapes: bool,
}

impl<'a> Reader<'a> {
    /// Starts before the first value of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader {
            bytes,
            at: 0,
            depth: 0,
            depth_max: DEPTH_MAX,
            fresh: false,
            trusted: false,
        }
    }

    /// The same reader with another limit than [`DEPTH_MAX`], for a text that wraps another one; at
    /// most [`PEER_DEPTH_MAX`].
    #[must_use]
    pub fn with_depth_max(self, depth_max: usize) -> Self {
        assert!(
            depth_max <= PEER_DEPTH_MAX,
            "levels are tracked up to there"
        );
        Reader { depth_max, ..self }
    }

    /// Starts before a value that was already read successfully, so [`Reader::skip`] only matches
    /// brackets.
    #[must_use]
    pub fn trusted(bytes: &'a [u8]) -> Self {
        Reader {
            trusted: true,
            depth_max: PEER_DEPTH_MAX,
            ..Reader::new(bytes)
        }
    }

    /// The kind of the next value.
    ///
    /// # Errors
    /// End of input, or a byte with which no value begins.
    #[inline]
    pub fn peek(&mut self) -> Result<Kind, Error> {
        self.space();
        match self.bytes.get(self.at) {
            Some(b'"') => Ok(Kind::String),
            Some(b'[') => Ok(Kind::Array),
            Some(b'{') => Ok(Kind::Object),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            _ => Err(self.no_value()),
        }
    }

    /// Succeeds if the next value is an array or object, as the outermost value of a stream or file
    /// must be. Consumes nothing.
    ///
    /// # Errors
    /// `syntax error at beginning of input`, or the first token's own fault.
    pub fn outermost(&mut self) -> Result<(), Error> {
        self.space();
        match self.bytes.get(self.at) {
            Some(b'[' | b'{') => Ok(()),
            _ => Err(self.unexpected(lex::BEGINNING)),
        }
    }

    /// Enters an array (consumes `[`). Then call [`Reader::next_element`] before each element.
    ///
    /// # Errors
    /// The next value is not an array, or nests too deep.
    #[inline]
    pub fn begin_array(&mut self) -> Result<(), Error> {
        self.begin(b'[', "array expected")
    }

    /// Moves to the next element. Returns false after the last one, once the closing bracket is
    /// consumed.
    ///
    /// # Errors
    /// Syntax.
    #[inline]
    pub fn next_element(&mut self) -> Result<bool, Error> {
        self.space();
        let fresh = std::mem::take(&mut self.fresh);
        match self.bytes.get(self.at) {
            Some(b']') => {
                self.leave();
                Ok(false)
            }
            Some(b',') if !fresh => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if fresh => Ok(true),
            _ => Err(self.unexpected("syntax error expecting ']' or ','")),
        }
    }

    /// Enters an object (consumes `{`). Then call [`Reader::next_member`] before each member's
    /// value.
    ///
    /// # Errors
    /// The next value is not an object, or nests too deep.
    #[inline]
    pub fn begin_object(&mut self) -> Result<(), Error> {
        self.begin(b'{', "object expected")
    }

    /// Moves to the next member and returns its name; `None` after the last one. Repeated names are
    /// reported each time.
    ///
    /// # Errors
    /// Syntax.
    #[inline]
    pub fn next_member(&mut self) -> Result<Option<Cow<'a, [u8]>>, Error> {
        match self.next_name()? {
            Some(name) => self.text(&name).map(Some),
            None => Ok(None),
        }
    }

    /// Consumes the name of the next member if it equals `name`, spelled without blanks and
    /// escapes. Otherwise the reader does not move. For callers that expect a certain member;
    /// [`Reader::next_member`] reads any.
    ///
    /// ```
    /// use corvid_json::Reader;
    /// let mut reader = Reader::new(br#"{"a":true, "b":true}"#);
    /// reader.begin_object()?;
    /// assert!(!reader.try_member(b"b") && reader.try_member(b"a"));
    /// assert!(reader.boolean()?);
    /// assert!(!reader.try_end_object() && !reader.try_member(b"b"));
    /// assert_eq!(reader.next_member()?.as_deref(), Some(&b"b"[..]));
    /// assert!(reader.boolean()? && reader.try_end_object());
    /// # Ok::<(), corvid_json::Error>(())
    /// ```
    #[inline]
    pub fn try_member(&mut self, name: &[u8]) -> bool {
        self.try_name(name.len(), |found| (found == name).then_some(()))
            .is_some()
    }

    /// Passes the next member's name to `read` if it has `len` bytes and no blanks around it, and
    /// consumes the name if `read` returns a value. `read` must reject names that need escapes.
    #[inline]
    pub fn try_name<T>(
        &mut self,
        len: usize,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Option<T> {
        let mut rest = &self.bytes[self.at..];
        if !self.fresh {
            rest = rest.strip_prefix(b",")?;
        }
        let (name, rest) = rest.strip_prefix(b"\"")?.split_at_checked(len)?;
        let rest = rest.strip_prefix(b"\":")?;
        let read = read(name)?;
        self.at = self.bytes.len() - rest.len();
        self.fresh = false;
        Some(read)
    }

    /// Leaves the object if its closing bracket is the next byte. Otherwise the reader does not
    /// move. Call it where [`Reader::next_member`] could be called.
    #[inline]
    pub fn try_end_object(&mut self) -> bool {
        let is_end = self.bytes.get(self.at) == Some(&b'}');
        if is_end {
            self.leave();
        }
        is_end
    }

    /// Reads a string; borrowed if it has no escapes.
    ///
    /// # Errors
    /// Not a string, or malformed.
    #[inline]
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>, Error> {
        let quoted = self.quoted("string expected")?;
        self.text(&quoted)
    }

    /// Reads a number by the number rule.
    ///
    /// # Errors
    /// Not a number, or malformed.
    #[inline]
    pub fn number(&mut self) -> Result<Number, Error> {
        self.space();
        if let Some((integer, length)) = number::leading_integer(&self.bytes[self.at..]) {
            self.at += length;
            return Ok(Number::Integer(integer));
        }
        let end = lex::number_end(self.bytes, self.at);
        match number::classify(&self.bytes[self.at..end]) {
            Ok(number) => {
                self.at = end;
                Ok(number)
            }
            Err(_) => Err(self.unexpected("number expected")),
        }
    }

    /// Reads `true` or `false`.
    ///
    /// # Errors
    /// Anything else.
    pub fn boolean(&mut self) -> Result<bool, Error> {
        if let [b't', b'r', b'u', b'e', b',' | b'}' | b']', ..] = self.bytes[self.at..] {
            self.at += 4;
            return Ok(true);
        }
        match self.keyword() {
            b"true" => {
                self.at += 4;
                Ok(true)
            }
            b"false" => {
                self.at += 5;
                Ok(false)
            }
            _ => Err(self.unexpected("boolean expected")),
        }
    }

    /// Reads `null`.
    ///
    /// # Errors
    /// Anything else.
    pub fn null(&mut self) -> Result<(), Error> {
        if self.keyword() != b"null" {
            return Err(self.unexpected("null expected"));
        }
        self.at += 4;
        Ok(())
    }

    /// Skips the next value and returns its text, without surrounding white space.
    ///
    /// # Errors
    /// Syntax.
    pub fn skip(&mut self) -> Result<&'a [u8], Error> {
        self.space();
        let start = self.at;
        if let Some(end) = self.short_string_end() {
            self.at = end;
            return Ok(&self.bytes[start..end]);
        }
        let kind = self.peek()?;
        match kind {
            Kind::Array | Kind::Object if self.trusted => self.skip_trusted()?,
            Kind::Array | Kind::Object => self.skip_container()?,
            _ => self.skip_scalar(kind)?,
        }
        Ok(&self.bytes[start..self.at])
    }

    /// Passes the next `len` bytes to `read`, and consumes them if `read` returns a value: a fast
    /// path for values of fixed length and spelling. `read` must accept only one whole valid value.
    #[inline]
    pub fn try_fixed<T>(
        &mut self,
        len: usize,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Option<T> {
        self.space();
        let value = read(self.bytes.get(self.at..self.at + len)?)?;
        self.at += len;
        Some(value)
    }

    /// Passes the rest of the text to `read`, which returns a value and its length in bytes, and
    /// consumes these bytes: a fast path for usual spellings. The bytes must be one whole valid
    /// value.
    #[inline]
    pub fn try_read<T>(&mut self, read: impl FnOnce(&'a [u8]) -> Option<(T, usize)>) -> Option<T> {
        self.space();
        let (value, length) = read(&self.bytes[self.at..])?;
        self.at += length;
        Some(value)
    }

    /// Reads the next value as a tree.
    ///
    /// # Errors
    /// Syntax.
    pub fn value(&mut self) -> Result<Value, Error> {
        tree::read(self)
    }

    /// Succeeds if only white space remains.
    ///
    /// # Errors
    /// Trailing bytes.
    pub fn end(&mut self) -> Result<(), Error> {
        self.space();
        if self.at < self.bytes.len() {
            return Err(self.unexpected("trailing garbage at end of input"));
        }
        Ok(())
    }

    /// Offset of the next unread byte.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// An error at the next value, for a caller that reads typed data and found a value that does
    /// not fit.
    #[cold]
    #[must_use]
    pub fn unexpected(&self, message: &str) -> Error {
        lex::unexpected(self.bytes, self.at, message)
    }

    #[inline]
    fn space(&mut self) {
        self.at = lex::skip_space(self.bytes, self.at);
    }

    #[inline]
    fn begin(&mut self, bracket: u8, expected: &str) -> Result<(), Error> {
        self.space();
        if self.bytes.get(self.at) != Some(&bracket) {
            return Err(self.unexpected(expected));
        }
        if self.depth == self.depth_max {
            return Err(lex::too_deep(self.bytes, self.at, self.depth_max));
        }
        self.at += 1;
        self.depth += 1;
        self.fresh = true;
        Ok(())
    }

    /// Consumes a closing bracket. A caller that leaves more brackets than it entered reads on as
    /// at the outermost level.
    #[inline]
    fn leave(&mut self) {
        self.at += 1;
        self.depth = self.depth.saturating_sub(1);
        self.fresh = false;
    }

    /// Moves to the next member's value, past its name and colon.
    #[inline]
    fn next_name(&mut self) -> Result<Option<Quoted<'a>>, Error> {
        self.space();
        let fresh = std::mem::take(&mut self.fresh);
        match self.bytes.get(self.at) {
            Some(b'}') => {
                self.leave();
                return Ok(None);
            }
            Some(b',') if !fresh => {
                self.at += 1;
                self.space();
            }
            _ if !fresh => return Err(self.unexpected("syntax error expecting '}' or ','")),
            _ => {}
        }
        let name = self.quoted("syntax error parsing object expecting string")?;
        self.space();
        if self.bytes.get(self.at) != Some(&b':') {
            return Err(self.unexpected("syntax error parsing object expecting ':'"));
        }
        self.at += 1;
        Ok(Some(name))
    }

    /// Consumes a string with its quotes. Its escapes are not checked yet.
    #[inline(always)]
    fn quoted(&mut self, expected: &str) -> Result<Quoted<'a>, Error> {
        self.space();
        let start = self.at;
        let has_escapes = match self.short_string_end() {
            Some(end) => {
                self.at = end;
                false
            }
            None => self.skip_quoted(expected)?,
        };
        let quote = self.at - 1;
        Ok(Quoted {
            raw: &self.bytes[start + 1..quote],
            quote,
            has_escapes,
        })
    }

    /// The offset after the string that begins here, if it is short.
    #[inline(always)]
    fn short_string_end(&self) -> Option<usize> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        scan::short_string_end(self.bytes, self.at + 1)
    }

    /// Consumes a string that begins here. Returns whether it has escapes. A function of its own,
    /// because its result fits into registers.
    fn skip_quoted(&mut self, expected: &str) -> Result<bool, Error> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.unexpected(expected));
        }
        let mut has_escapes = false;
        let mut end = self.at + 1;
        loop {
            end += scan::special(&self.bytes[end..]);
            match self.bytes.get(end) {
                Some(b'"') => {
                    self.at = end + 1;
                    return Ok(has_escapes);
                }
                Some(b'\\') if end + 1 < self.bytes.len() => {
                    has_escapes = true;
                    end += 2;
                }
                _ => return Err(self.unexpected(expected)),
            }
        }
    }

    /// Resolves a string that was just consumed.
    #[inline]
    fn text(&self, quoted: &Quoted<'a>) -> Result<Cow<'a, [u8]>, Error> {
        if !quoted.has_escapes {
            return Ok(Cow::Borrowed(quoted.raw));
        }
        escape::unescape(quoted.raw)
            .map(Cow::Owned)
            .map_err(|fault| self.bad_escape(quoted, &fault))
    }

    #[cold]
    fn bad_escape(&self, quoted: &Quoted<'a>, fault: &escape::Fault) -> Error {
        Error::at(self.bytes, quoted.quote, fault.to_string())
    }

    /// The letters that come next, which are not consumed.
    fn keyword(&mut self) -> &'a [u8] {
        self.space();
        &self.bytes[self.at..lex::keyword_end(self.bytes, self.at)]
    }

    #[cold]
    fn no_value(&self) -> Error {
        self.unexpected(if self.depth == 0 {
            lex::BEGINNING
        } else {
            "syntax error expecting value"
        })
    }

    /// Skips an array or object that was validated before.
    fn skip_trusted(&mut self) -> Result<(), Error> {
        match frame::container_length(&self.bytes[self.at..]) {
            Some(length) => {
                self.at += length;
                self.fresh = false;
                Ok(())
            }
            None => Err(lex::unexpected(
                self.bytes,
                self.bytes.len(),
                lex::BEGINNING,
            )),
        }
    }

    fn skip_scalar(&mut self, kind: Kind) -> Result<(), Error> {
        match kind {
            Kind::Null => self.null(),
            Kind::Bool => self.boolean().map(drop),
            Kind::Number => self.number().map(drop),
            _ => {
                let quoted = self.quoted("string expected")?;
                self.check(&quoted)
            }
        }
    }

    /// Checks the escapes of a string that was just consumed.
    #[inline]
    fn check(&self, quoted: &Quoted<'a>) -> Result<(), Error> {
        if quoted.has_escapes && !self.trusted {
            escape::check(quoted.raw).map_err(|fault| self.bad_escape(quoted, &fault))?;
        }
        Ok(())
    }

    /// Validates the array or object that begins here, with everything in it.
    fn skip_container(&mut self) -> Result<(), Error> {
        if self.depth + validator::LEVELS_MAX <= self.depth_max
            && let Some(end) = validator::container_end(self.bytes, self.at)
        {
            self.at = end;
            self.fresh = false;
            return Ok(());
        }
        self.validate_slowly()
    }

    /// Validates token by token, so that errors are exact.
    pub(crate) fn validate_slowly(&mut self) -> Result<(), Error> {
        let outside = self.depth;
        let mut levels = Levels::default();
        let kind = self.peek()?;
        self.enter(kind, &mut levels)?;
        while self.depth > outside {
            let more = if levels.is_object(self.depth) {
                match self.next_name()? {
                    Some(name) => self.check(&name).map(|()| true)?,
                    None => false,
                }
            } else {
                self.next_element()?
            };
            if more {
                match self.peek()? {
                    kind @ (Kind::Array | Kind::Object) => self.enter(kind, &mut levels)?,
                    kind => self.skip_scalar(kind)?,
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, kind: Kind, levels: &mut Levels) -> Result<(), Error> {
        match kind {
            Kind::Object => self.begin_object()?,
            _ => self.begin_array()?,
        }
        levels.set(self.depth, kind == Kind::Object);
        Ok(())
    }
}

/// One bit per depth: whether the bracket open there is an object's.
#[derive(Default)]
struct Levels {
    bits: [u64; PEER_DEPTH_MAX / 64 + 1],
}

impl Levels {
    fn set(&mut self, depth: usize, is_object: bool) {
        let bit = 1 << (depth % 64);
        if is_object {
            self.bits[depth / 64] |= bit;
        } else {
            self.bits[depth / 64] &= !bit;
        }
    }

    fn is_object(&self, depth: usize) -> bool {
        self.bits[depth / 64] >> (depth % 64) & 1 == 1
    }
}
