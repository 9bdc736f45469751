"""JSON as Open vSwitch reads and writes it. Errors of a text are strings, returned in place of the value.

The language is stricter than that of Python's `json`: a text is an object or an array, at most `Parser.MAX_HEIGHT` deep;
numbers beyond 64 bits become floats and floats that are whole become integers; a null character and half a surrogate
pair are errors. Python's C scanner reads the texts; `_json_strict` reads what that scanner refuses or might read differently,
because the message of an error names its place.
"""

import json as std_json
import re
from itertools import accumulate

from . import _json_end, _json_strict

PARSER_C = "C"
PARSER_PY = "PYTHON"
PARSER = PARSER_PY

SPACES_PER_LEVEL = 2

_MAX_HEIGHT = _json_strict.MAX_HEIGHT

# A message up to this many characters is checked as it arrives. Of a longer one only the end is looked for, and the
# whole is parsed then: the C scanner is much faster than any check in Python.
_CHECKED_AT_ONCE_CHARS = 16 * 1024

_LONG_INTEGER = re.compile(r"[0-9]{19}")
# A null character, or the first half of a surrogate pair without its second half.
_ESCAPE_TO_CHECK = re.compile(r"\\u(?:0000|[dD][89abAB]..(?!\\u[dD][c-fC-F]))")
_BRACKETS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in _BRACKETS)
_WHITE = " \t\n\r"
_SPACE = re.compile(f"[{_WHITE}]*")


def _integer(text):
    value = int(text) if len(text) <= 20 else None
    if value is None or not -(1 << 63) <= value < 1 << 63:
        return _json_strict.number(text)
    return value


def _refuse(name):
    raise ValueError(name)


_decoder = std_json.JSONDecoder(parse_float=_json_strict.number, parse_constant=_refuse)
_long_integer_decoder = std_json.JSONDecoder(
    parse_float=_json_strict.number, parse_int=_integer, parse_constant=_refuse
)


def _too_deep(s):
    """Whether `s` may be deeper than allowed. Brackets inside strings count too, so the answer may be a false alarm."""
    if s.count("[") + s.count("{") <= _MAX_HEIGHT:
        return False
    brackets = s.encode("utf-8", "replace").translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_BRACKETS.__getitem__, brackets))) > _MAX_HEIGHT


def _scan(s):
    """The object or array at the start of `s` and the index behind it, or None when only `_json_strict` can tell."""
    begin = _SPACE.match(s).end()
    if s[begin : begin + 1] not in ("{", "[") or _ESCAPE_TO_CHECK.search(s) or _too_deep(s):
        return None
    decoder = _long_integer_decoder if _LONG_INTEGER.search(s) else _decoder
    try:
        return decoder.raw_decode(s, begin)
    except (ValueError, RecursionError):
        return None


class Parser(object):
    """Reads one value from pieces of text. With `check_trailer`, nothing but white space may follow the value."""

    MAX_HEIGHT = _MAX_HEIGHT

    def __init__(self, check_trailer=False):
        self._check_trailer = check_trailer
        self._strict = _json_strict.Parser(check_trailer)
        self._end = None
        self._chunks = []
        self._chars = 0
        self._value = None
        self._done = False
        self._finished = False

    def feed(self, s):
        """Reads from `s` up to the end of the value; returns how many characters it has read."""
        if self._done or not s:
            return 0
        if self._end is None and not self._search_begins(s):
            return self._check(s)
        if self._done:
            return self._chars
        return self._search(s)

    def _search_begins(self, s):
        """Whether the text up to here is no longer checked at once, because it is complete or long."""
        if self._check_trailer:
            return False
        if not self._chars:
            scanned = _scan(s)
            if scanned:
                self._value, self._chars = scanned
                self._done = True
                return True
        # A text that does not begin with a bracket is wrong, and the strict parser says so at its first character.
        begun = self._strict.has_begun() or s.lstrip(_WHITE)[:1] in ("{", "[")
        if not begun or self._chars + len(s) <= _CHECKED_AT_ONCE_CHARS:
            return False
        self._end = _json_end.EndFinder()
        for chunk in self._chunks:
            self._end.find(chunk)
        return True

    def _check(self, s):
        used = self._strict.feed(s)
        self._chunks.append(s)
        self._chars += len(s)
        self._done = self._strict.is_done()
        return used

    def _search(self, s):
        """Looks for the bracket that closes the value; parses the whole when it is there."""
        end = self._end.find(s)
        if end is None:
            self._chunks.append(s)
            return len(s)
        self._chunks.append(s[:end])
        self._done = True
        text = "".join(self._chunks)
        scanned = _scan(text)
        if scanned and scanned[1] == len(text):
            self._value = scanned[0]
        else:
            self._check_whole(text)
        return end

    def _check_whole(self, text):
        self._end = None
        self._strict = _json_strict.Parser(False)
        self._strict.feed(text)

    def is_done(self):
        """Whether the value is complete, or can no longer become one."""
        return self._done

    def finish(self):
        """The value, or a string that tells the error. The parser is used up."""
        assert not self._finished
        self._finished = True
        if self._value is not None:
            return self._value
        if self._end is not None:
            self._check_whole("".join(self._chunks))
        return self._strict.finish()


def from_string(s):
    """The value of the JSON text `s`, or a string that tells the error."""
    if isinstance(s, (bytes, bytearray)):
        try:
            s = s.decode("utf-8")
        except UnicodeDecodeError:
            return "not a valid UTF-8 string"
    scanned = _scan(s)
    if scanned and _SPACE.match(s, scanned[1]).end() == len(s):
        return scanned[0]
    parser = _json_strict.Parser(True)
    parser.feed(s)
    return parser.finish()


def from_stream(stream):
    return from_string(stream.read())


def from_file(name):
    with open(name, encoding="utf-8") as stream:
        return from_stream(stream)


def _delete_escaped(text):
    # Open vSwitch escapes U+007F, which Python does not; it can occur inside strings only.
    return text.replace("\x7f", "\\u007f") if "\x7f" in text else text


def to_string(obj, pretty=False, sort_keys=True):
    return _delete_escaped(
        std_json.dumps(
            obj, separators=(",", ":"), indent=SPACES_PER_LEVEL if pretty else None, sort_keys=sort_keys
        )
    )


def to_stream(obj, stream, pretty=False, sort_keys=True):
    stream.write(to_string(obj, pretty, sort_keys))


def to_file(obj, name, pretty=False, sort_keys=True):
    with open(name, "w", encoding="utf-8") as stream:
        to_stream(obj, stream, pretty, sort_keys)
