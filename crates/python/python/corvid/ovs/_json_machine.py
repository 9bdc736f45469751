"""The JSON parser of `ovs.json`, which takes its text in pieces.

It owns the grammar, the error messages and their positions (line, column and offset, all counted
in characters from 0).  A text that arrives in one piece and is correct goes through the scanner of
the standard library, which is an order of magnitude faster; `_scan` explains when the two agree.
"""

import json
import re

from . import _json_number

_WHITESPACE = " \t\n\r"
_TOKENS = "[]{},:"
_KEYWORDS = {"true": True, "false": False, "null": None}

_skip_whitespace = re.compile("[ \t\n\r]*").match
_skip_letters = re.compile("[a-zA-Z]*").match
_skip_number = re.compile("[-+.0-9eE]*").match
_skip_plain = re.compile('[^"\\\\\x00-\x1f]*').match
_hex_digits = re.compile("[0-9a-fA-F]{4}").match

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

# Escapes about which the standard library's scanner is more tolerant: null bytes, and leading
# surrogates without a trailing one.
_find_odd_escape = re.compile(
    r"\\u(?:0000|[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2}))").search
# Integers that may exceed 64 bits, and strings that look like them.
_find_long_number = re.compile("[0-9]{19}").search


class _Wrong(Exception):
    """The text is not acceptable; the message says why."""


def _refuse_constant(text):
    raise ValueError("not JSON: %s" % text)


def _integer(text):
    return int(text) if len(text) < 19 else _number_or_error(text)


def _number_or_error(text):
    value = _json_number.parse(text)
    if isinstance(value, str):
        raise ValueError(value)
    return value


_scan_short = json.JSONDecoder(parse_float=_number_or_error,
                               parse_constant=_refuse_constant).raw_decode
_scan_long = json.JSONDecoder(parse_float=_number_or_error, parse_int=_integer,
                              parse_constant=_refuse_constant).raw_decode


def _scan(text, start, height_max):
    """Returns the value that begins at `text[start]` and its end, or None.

    None means that the text is wrong, incomplete, or one of those that the standard library judges
    by other rules than OVSDB; the caller then parses it again with care.
    """
    if text[start] not in "[{" or _find_odd_escape(text, start):
        return None
    if text.count("[") + text.count("{") > height_max and _height(text) > height_max:
        return None
    scan = _scan_long if _find_long_number(text, start) else _scan_short
    try:
        return scan(text, start)
    except (ValueError, RecursionError):
        return None


def _height(text):
    """Returns how deep arrays and objects nest in `text`, provided that its strings are correct."""
    # Without escaped characters, every second part between quotes is outside of strings.
    parts = text.replace("\\\\", "").replace('\\"', "").split('"')
    level = highest = 0
    for bracket in re.findall(r"[\[\]{}]", " ".join(parts[::2])):
        if bracket in "[{":
            level += 1
            highest = max(highest, level)
        else:
            level -= 1
    return highest


class Parser(object):
    """Parses one JSON text that arrives in pieces.

    `feed()` takes a piece, `is_done()` tells whether the parser wants no more, and `finish()`
    returns the value or, for a wrong text, a message.  With `check_trailer`, nothing but white
    space may follow the value, so the parser is never done before `finish()`, except with an
    error; otherwise it is done with the bracket that closes the value.
    """

    # Arrays and objects nest this deep at most.
    MAX_HEIGHT = 1000

    def __init__(self, check_trailer=False):
        self._check_trailer = check_trailer
        self._line = 0
        self._column = 0
        self._offset = 0
        self._message = None
        self._done = False
        # The lexer: the state that takes the next character, and the pieces of the token so far.
        self._lex = self._lex_start
        self._pieces = []
        # The parser: the state that takes the next token, the open arrays and objects from the
        # outermost inwards, and the names of the members that the open objects wait for.
        self._take = self._at_beginning
        self._stack = []
        self._names = []
        self._value = None
        self._complete = False
        # The scanner for arrays and objects inside of the present piece, or None.
        self._scan_inner = None

    def feed(self, s):
        """Takes the piece `s` and returns the number of its characters that were used.

        It is less than the length of `s` if the text ends within `s`.
        """
        if not isinstance(s, str):
            raise TypeError("expected a string, not %s" % type(s).__name__)
        i = 0
        if self._offset == 0 and not self._done:
            i = self._feed_whole(s)
        # In a piece of a long text, the scanner takes the arrays and objects that it has whole.
        self._scan_inner = _scan_long if (
            i == 0 and not _find_odd_escape(s)
            and s.count("[") + s.count("{") + len(self._stack) <= self.MAX_HEIGHT) else None
        end = len(s)
        while i < end and not self._done:
            # A state moves over characters that cannot be wrong, and then looks at one.
            try:
                i, used = self._lex(s, i)
            except _Wrong as e:
                self._fail(e.args[0])
                used = e.args[1]
            if used:
                self._advance(s, i, i + 1)
                i += 1
        return i

    def is_done(self):
        """Returns true if the text is complete or wrong, so that `feed()` uses nothing more."""
        return self._done

    def finish(self):
        """Ends the text and returns its value, or a message in a string.  Call it once."""
        if self._message is None:
            try:
                self._finish_token()
                if self._take == self._at_beginning:
                    raise _Wrong("empty input stream", False)
                if not self._complete:
                    raise _Wrong("unexpected end of input", False)
            except _Wrong as e:
                self._fail(e.args[0])
        if self._message is not None:
            return self._message
        assert self._value is not None
        value, self._value = self._value, None
        return value

    def _feed_whole(self, s):
        """Takes a whole value at the beginning of `s`, if there is one, and returns its end."""
        start = _skip_whitespace(s).end()
        scanned = _scan(s, start, self.MAX_HEIGHT) if start < len(s) else None
        if scanned is None:
            return 0
        self._value, end = scanned
        self._advance(s, 0, end)
        self._close_value()
        return end

    def _close_value(self):
        self._complete = True
        self._take = self._after_end
        self._done = not self._check_trailer

    def _fail(self, message):
        self._done = True
        if self._message is None:
            self._message = "line %d, column %d, byte %d: %s" % (self._line, self._column,
                                                                 self._offset, message)

    def _advance(self, s, start, end):
        newlines = s.count("\n", start, end)
        if newlines:
            self._line += newlines
            self._column = end - s.rindex("\n", start, end) - 1
        else:
            self._column += end - start
        self._offset += end - start

    # The states of the lexer.  Each gets the piece and an index, and returns the index of the
    # character that it looked at and whether that character is used up.  `_Wrong` carries the
    # message and the same flag.

    def _lex_start(self, s, i):
        end = _skip_whitespace(s, i).end()
        if end > i:
            self._advance(s, i, end)
            return end, False
        c = s[i]
        if c in _TOKENS:
            if c in "[{" and self._scan_inner and self._take in (self._at_value,
                                                                 self._at_first_element):
                try:
                    value, end = self._scan_inner(s, i)
                except (ValueError, RecursionError):
                    pass
                else:
                    self._put(value)
                    self._advance(s, i, end)
                    return end, False
            self._take_token(c, None, True)
        elif c == '"':
            self._lex = self._lex_string
        elif "a" <= c <= "z":
            self._lex = self._lex_keyword
            return i, False
        elif "0" <= c <= "9" or c == "-":
            self._lex = self._lex_number
            return i, False
        elif " " <= c <= "\x7f":
            raise _Wrong("invalid character '%s'" % c, True)
        else:
            raise _Wrong("invalid character U+%04x" % ord(c), True)
        return i, True

    def _lex_keyword(self, s, i):
        return self._lex_run(s, i, _skip_letters(s, i).end())

    def _lex_number(self, s, i):
        return self._lex_run(s, i, _skip_number(s, i).end())

    def _lex_run(self, s, i, end):
        self._pieces.append(s[i:end])
        self._advance(s, i, end)
        if end < len(s):
            try:
                self._finish_token()
            except _Wrong as e:
                self._fail(e.args[0])
        return end, False

    def _lex_string(self, s, i):
        end = _skip_plain(s, i).end()
        if end > i:
            self._pieces.append(s[i:end])
            self._advance(s, i, end)
            return end, False
        c = s[i]
        if c == '"':
            try:
                value = unescape(self._token())
            except _Wrong as e:
                raise _Wrong(e.args[0], True)
            self._take_token("string", value, True)
        elif c == "\\":
            self._pieces.append(c)
            self._lex = self._lex_escape
        else:
            raise _Wrong("U+%04X must be escaped in quoted string" % ord(c), True)
        return i, True

    def _lex_escape(self, s, i):
        # The escape is checked with the whole string, at the closing quote.
        self._pieces.append(s[i])
        self._lex = self._lex_string
        return i, True

    def _token(self):
        token = "".join(self._pieces)
        self._pieces = []
        self._lex = self._lex_start
        return token

    def _finish_token(self):
        """Ends the token that the end of the text, or a character after it, ends."""
        lex = self._lex
        if lex == self._lex_string or lex == self._lex_escape:
            raise _Wrong("unexpected end of input in quoted string", False)
        if lex == self._lex_keyword:
            word = self._token()
            if word not in _KEYWORDS:
                raise _Wrong("invalid keyword '%s'" % word, False)
            self._take_token("value", _KEYWORDS[word], False)
        elif lex == self._lex_number:
            value = _json_number.parse(self._token())
            if isinstance(value, str):
                raise _Wrong(value, False)
            self._take_token("value", value, False)

    # The states of the parser.  Each gets a kind of token (a bracket, a comma, a colon, "string"
    # or "value") and the value of the last two, and returns a message if the token is wrong.

    def _take_token(self, kind, value, used):
        message = self._take(kind, value)
        if message is not None:
            raise _Wrong(message, used)

    def _at_beginning(self, kind, value):
        if kind not in ("[", "{"):
            return "syntax error at beginning of input"
        return self._open(kind)

    def _after_end(self, kind, value):
        return "trailing garbage at end of input"

    def _at_first_name(self, kind, value):
        return self._close() if kind == "}" else self._at_name(kind, value)

    def _at_name(self, kind, value):
        if kind != "string":
            return "syntax error parsing object expecting string"
        self._names.append(value)
        self._take = self._at_colon
        return None

    def _at_colon(self, kind, value):
        if kind != ":":
            return "syntax error parsing object expecting ':'"
        self._take = self._at_value
        return None

    def _at_first_element(self, kind, value):
        return self._close() if kind == "]" else self._at_value(kind, value)

    def _at_value(self, kind, value):
        if kind in ("[", "{"):
            return self._open(kind)
        if kind not in ("string", "value"):
            return "syntax error expecting value"
        self._put(value)
        return None

    def _after_member(self, kind, value):
        if kind == ",":
            self._take = self._at_name
            return None
        return self._close() if kind == "}" else "syntax error expecting '}' or ','"

    def _after_element(self, kind, value):
        if kind == ",":
            self._take = self._at_value
            return None
        return self._close() if kind == "]" else "syntax error expecting ']' or ','"

    def _open(self, kind):
        if len(self._stack) >= self.MAX_HEIGHT:
            return "input exceeds maximum nesting depth %d" % self.MAX_HEIGHT
        container = [] if kind == "[" else {}
        if self._stack:
            self._put(container)
        self._stack.append(container)
        self._take = self._at_first_element if kind == "[" else self._at_first_name
        return None

    def _put(self, value):
        """Puts `value` into the innermost array or object."""
        container = self._stack[-1]
        if isinstance(container, dict):
            container[self._names.pop()] = value
            self._take = self._after_member
        else:
            container.append(value)
            self._take = self._after_element

    def _close(self):
        container = self._stack.pop()
        if not self._stack:
            self._value = container
            self._close_value()
        elif isinstance(self._stack[-1], dict):
            self._take = self._after_member
        else:
            self._take = self._after_element


def unescape(s):
    """Returns the string that `s`, the text between the quotes, stands for."""
    if "\\" not in s:
        return s
    pieces = []
    i = 0
    while True:
        backslash = s.find("\\", i)
        if backslash < 0:
            pieces.append(s[i:])
            return "".join(pieces)
        pieces.append(s[i:backslash])
        c = s[backslash + 1]
        i = backslash + 2
        if c in _ESCAPES:
            pieces.append(_ESCAPES[c])
            continue
        if c != "u":
            raise _Wrong("bad escape \\%s" % c, False)
        unit = _code_unit(s, i)
        i += 4
        if 0xD800 <= unit <= 0xDBFF:
            if s[i:i + 2] != "\\u":
                raise _Wrong("malformed escaped surrogate pair", False)
            second = _code_unit(s, i + 2)
            i += 6
            if not 0xDC00 <= second <= 0xDFFF:
                raise _Wrong("second half of escaped surrogate pair is not trailing surrogate",
                             False)
            unit = 0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00)
        pieces.append(chr(unit))


def _code_unit(s, i):
    """Returns the number that the four hexadecimal digits at `s[i]` are."""
    if len(s) < i + 4:
        raise _Wrong("quoted string ends within \\u escape", False)
    if not _hex_digits(s, i):
        raise _Wrong("malformed \\u escape", False)
    unit = int(s[i:i + 4], 16)
    if unit == 0:
        raise _Wrong("null bytes not supported in quoted strings", False)
    return unit
