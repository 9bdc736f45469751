"""A JSON parser that takes text in pieces and tells the line, column and byte of an error.

It reads a character at a time and is slow; `json` uses it for texts that Python's own scanner refuses.
"""

import re
from decimal import Decimal

MAX_HEIGHT = 1000

_KEYWORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_LETTERS = _LOWER | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NUMBER_START = frozenset("-0123456789")
_NUMBER_REST = frozenset("0123456789.eE+-")
_SPACE = frozenset(" \t\n\r")
_TOKENS = frozenset("[]{}:,")
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')


class Refused(ValueError):
    """The text of an error, without its place."""


def number(text):
    """The value of a number that is well formed: an int when it is whole and fits 64 bits, otherwise a float.

    A number with more digits than a float has is whole only if its text says so. One too small for a float is 0.
    """
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Refused("number outside valid range")
    if value.is_integer() and abs(value) <= 2.0**63:
        if not value:
            return 0
        exact = Decimal(text)
        whole = int(exact)
        if whole == exact and -(1 << 63) <= whole < 1 << 63:
            return whole
    return value


# The first pattern that fits a bad number, without its sign, gives the message.
_BAD_NUMBERS = (
    (re.compile(r"(?![0-9])"), "'-' must be followed by digit"),
    (re.compile(r"0[0-9]"), "leading zeros not allowed"),
    (re.compile(r"[0-9]+\.(?![0-9])"), "decimal point must be followed by digit"),
    (re.compile(r".*e(?![0-9])"), "exponent must contain at least one digit"),
    (re.compile(r""), "syntax error in number"),
)


def _number_token(text):
    if _NUMBER.match(text):
        return number(text)
    digits = text[1:] if text.startswith("-") else text
    raise Refused(next(message for pattern, message in _BAD_NUMBERS if pattern.match(digits)))


def _hex4(raw, at):
    if len(raw) < at + 4:
        raise Refused("quoted string ends within \\u escape")
    if not _HEX4.match(raw, at):
        raise Refused("malformed \\u escape")
    code = int(raw[at : at + 4], 16)
    if not code:
        raise Refused("null bytes not supported in quoted strings")
    return code


def _unescape(raw):
    """The characters that the inside of a quoted string stands for."""
    if "\\" not in raw:
        return raw
    pieces = []
    at = 0
    while True:
        backslash = raw.find("\\", at)
        if backslash < 0:
            pieces.append(raw[at:])
            return "".join(pieces)
        pieces.append(raw[at:backslash])
        letter = raw[backslash + 1]
        at = backslash + 2
        if letter in _ESCAPES:
            pieces.append(_ESCAPES[letter])
        elif letter == "u":
            code = _hex4(raw, at)
            at += 4
            if 0xD800 <= code < 0xDC00:
                if raw[at : at + 2] != "\\u":
                    raise Refused("malformed escaped surrogate pair")
                low = _hex4(raw, at + 2)
                at += 6
                if not 0xDC00 <= low < 0xE000:
                    raise Refused("second half of escaped surrogate pair is not trailing surrogate")
                code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF)
            pieces.append(chr(code))
        else:
            raise Refused(f"bad escape \\{letter}")


class Parser:
    """The grammar is a stack of open containers and `_expect`, the method that takes the next token."""

    def __init__(self, check_trailer):
        self._check_trailer = check_trailer
        self._line = 0
        self._column = 0
        self._byte = 0
        # The token that is being read: its kind, and the characters so far.
        self._kind = None
        self._piece = []
        self._escaped = False
        self._stack = []
        self._names = []
        self._root = None
        self._expect = self._start
        self._complete = False
        self._error = None

    def has_begun(self):
        """Whether an object or array has been opened."""
        return self._root is not None

    def is_done(self):
        return self._error is not None or (self._complete and not self._check_trailer)

    def feed(self, s):
        """Returns how many characters of `s` were read; one that is an error itself counts."""
        i = 0
        end = len(s)
        try:
            while i < end and not self.is_done():
                c = s[i]
                ends_token = self._kind in ("keyword", "number")
                if self._kind == "string" and not self._escaped:
                    plain = _PLAIN.match(s, i)
                    if plain:
                        self._piece.append(plain.group())
                        self._column += plain.end() - i
                        self._byte += plain.end() - i
                        i = plain.end()
                        continue
                if self._take(c):
                    self._byte += 1
                    self._column += 1
                    if c == "\n":
                        self._line += 1
                        self._column = 0
                    i += 1
        except Refused as refused:
            self._fail(str(refused))
            return i if ends_token else i + 1
        return i

    def finish(self):
        """The value, or the text of the error."""
        if self._error is None:
            try:
                if self._kind == "string":
                    raise Refused("unexpected end of input in quoted string")
                self._end_token()
                if not self._complete:
                    raise Refused("empty input stream" if self._root is None else "unexpected end of input")
            except Refused as refused:
                self._fail(str(refused))
        return self._root if self._error is None else self._error

    def _fail(self, message):
        self._error = f"line {self._line}, column {self._column}, byte {self._byte}: {message}"

    # Characters to tokens.

    def _take(self, c):
        """Takes a character. False: it ended a number or keyword and is to be taken again."""
        if self._kind is None:
            self._begin_token(c)
        elif self._kind == "string":
            self._take_in_string(c)
        elif c in (_LETTERS if self._kind == "keyword" else _NUMBER_REST):
            self._piece.append(c)
        else:
            self._end_token()
            return False
        return True

    def _begin_token(self, c):
        if c in _SPACE:
            return
        if c in _TOKENS:
            self._expect(c, None)
        elif c == '"':
            self._kind = "string"
        elif c in _LOWER:
            self._kind = "keyword"
            self._piece = [c]
        elif c in _NUMBER_START:
            self._kind = "number"
            self._piece = [c]
        elif " " <= c <= "~":
            raise Refused(f"invalid character '{c}'")
        else:
            raise Refused(f"invalid character U+{ord(c):04x}")

    def _take_in_string(self, c):
        # A character behind a backslash is judged with the whole string, at its end.
        if c < " " and not self._escaped:
            raise Refused(f"U+{ord(c):04X} must be escaped in quoted string")
        if c == '"' and not self._escaped:
            raw = "".join(self._piece)
            self._kind = None
            self._piece = []
            self._expect("string", _unescape(raw))
            return
        self._escaped = c == "\\" and not self._escaped
        self._piece.append(c)

    def _end_token(self):
        kind, text = self._kind, "".join(self._piece)
        self._kind = None
        self._piece = []
        if kind == "keyword":
            if text not in _KEYWORDS:
                raise Refused(f"invalid keyword '{text}'")
            self._expect("value", _KEYWORDS[text])
        elif kind == "number":
            self._expect("value", _number_token(text))

    # Tokens to values. A token is one of the brackets, a colon, a comma, "string" or "value".

    def _start(self, token, _value):
        if token not in ("{", "["):
            raise Refused("syntax error at beginning of input")
        self._open(token)

    def _open(self, token):
        container = {} if token == "{" else []
        if self._stack:
            if len(self._stack) >= MAX_HEIGHT:
                raise Refused(f"input exceeds maximum nesting depth {MAX_HEIGHT}")
            self._put(container)
        else:
            self._root = container
        self._stack.append(container)
        self._expect = self._name_or_end if token == "{" else self._value_or_end

    def _close(self):
        self._stack.pop()
        if self._stack:
            self._after_value()
        else:
            self._complete = True
            self._expect = self._trailer

    def _put(self, value):
        container = self._stack[-1]
        if isinstance(container, dict):
            container[self._names.pop()] = value
        else:
            container.append(value)

    def _after_value(self):
        self._expect = self._object_next if isinstance(self._stack[-1], dict) else self._array_next

    def _name_or_end(self, token, value):
        if token == "}":
            self._close()
        else:
            self._name(token, value)

    def _name(self, token, value):
        if token != "string":
            raise Refused("syntax error parsing object expecting string")
        self._names.append(value)
        self._expect = self._colon

    def _colon(self, token, _value):
        if token != ":":
            raise Refused("syntax error parsing object expecting ':'")
        self._expect = self._value

    def _value_or_end(self, token, value):
        if token == "]":
            self._close()
        else:
            self._value(token, value)

    def _value(self, token, value):
        if token in ("{", "["):
            self._open(token)
        elif token in ("string", "value"):
            self._put(value)
            self._after_value()
        else:
            raise Refused("syntax error expecting value")

    def _object_next(self, token, _value):
        if token == ",":
            self._expect = self._name
        elif token == "}":
            self._close()
        else:
            raise Refused("syntax error expecting '}' or ','")

    def _array_next(self, token, _value):
        if token == ",":
            self._expect = self._value
        elif token == "]":
            self._close()
        else:
            raise Refused("syntax error expecting ']' or ','")

    def _trailer(self, _token, _value):
        raise Refused("trailing garbage at end of input")
