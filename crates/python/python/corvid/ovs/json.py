"""JSON texts as OVSDB reads and writes them.

It owns the conversion between texts and Python values: the strict rules (a text is an object or an
array, no null bytes, numbers within the range of 64-bit integers and doubles, 1000 levels at most)
and the error messages, which are returned as strings.  The scanner of the standard library decodes
every text that it judges by the same rules; `_json_machine` decides about all the others.

`ovs.jsonrpc` and programs call it; it knows nothing of what the values mean.
"""

import functools
import json

from . import _json_machine

SPACES_PER_LEVEL = 2

# These name the parsers of the original.  There is one parser here.
PARSER_C = "C"
PARSER_PY = "PYTHON"
PARSER = PARSER_PY

_READ_SIZE = 4096

dumper = functools.partial(json.dumps, separators=(",", ":"))

Parser = _json_machine.Parser


def to_string(obj, pretty=False, sort_keys=True):
    """Returns `obj` as JSON text, on one line or, with `pretty`, indented."""
    if pretty:
        return dumper(obj, indent=SPACES_PER_LEVEL, sort_keys=sort_keys)
    return dumper(obj, sort_keys=sort_keys)


def to_stream(obj, stream, pretty=False, sort_keys=True):
    """Writes `obj` as JSON text to a text stream."""
    stream.write(to_string(obj, pretty, sort_keys))


def to_file(obj, name, pretty=False, sort_keys=True):
    """Writes `obj` as JSON text to the file `name`, which it replaces."""
    text = to_string(obj, pretty, sort_keys)
    with open(name, "w") as stream:
        stream.write(text)


def from_string(s):
    """Returns the value of the JSON text `s`, or a string that says why `s` is not one.

    The two cannot be confused, because a text is an object or an array.
    """
    if not isinstance(s, str):
        try:
            s = str(s, "utf-8")
        except UnicodeDecodeError as e:
            wrong = " ".join("0x%02x" % byte for byte in e.object[e.start:e.end])
            return "not a valid UTF-8 string: invalid UTF-8 sequence %s" % wrong
    parser = Parser(check_trailer=True)
    parser.feed(s)
    return parser.finish()


def from_stream(stream):
    """Like `from_string`, for the text that a text stream contains up to its end."""
    parser = Parser(check_trailer=True)
    while True:
        chunk = stream.read(_READ_SIZE)
        if not chunk or parser.feed(chunk) != len(chunk):
            return parser.finish()


def from_file(name):
    """Like `from_string`, for the contents of the file `name`."""
    with open(name, "r", encoding="utf-8") as stream:
        return from_stream(stream)


# Messages name the class as one of this module.
Parser.__module__ = __name__
