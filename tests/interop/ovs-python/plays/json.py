"""JSON texts: values, error messages, positions, pieces, and writing."""
# not on: debian: old versions differ from the newest in details, and have a parser in C that counts otherwise

import io
import os
import sys

sys.path.pop(0)  # This folder holds a json.py, which would hide the standard library's.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import ovs.json as json
from transcript import attempt, generator, say, text

rng = generator("json")

NUMBERS = ["0", "-0", "1", "-1", "01", "-01", "00", "-", "--1", "1.", "1.5", "1.0", "1.50", "-0.0", ".5",
           "1e", "1e5", "1E+2", "1e-", "1e-5", "1e400", "-1e400", "1e-400", "1ee5", "1.e5", "1.-5",
           "1.5.5", "1e5e5", "1+1", "1-1", "1a", "-a", "0x1", "9223372036854775807",
           "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1e18", "1e19",
           "9223372036854775810e-1", "18446744073709551620e-1", "922337203685477580.7e1",
           "922337203685477580.70e1", "-922337203685477580.8e1", "100e-2", "1" + "0" * 25 + "e-25",
           "10." + "0" * 25, "0." + "0" * 400 + "1e401", "1" * 309, "1" * 310, "1e0005",
           "1.0e0000000000000000000000019", "1e99999999999999999999", "NaN", "-Infinity", "Infinity"]
STRINGS = ['""', '"a"', '"\\n\\t\\/\\\\\\""', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\udc00"', '"\\ud800"',
           '"\\ud800x"', '"\\ud800\\n"', '"\\ud800\\u0041"', '"\\ud83d\\ud83d\\ude00"', '"\\u0000"',
           '"\\ud800\\u0000"', '"\\u12"', '"\\u12g4"', '"\\x"', '"\\', '"\\u', '"\x01"', '"a\nb"', '"\x7f"',
           '"\u00e9\u2028"', '"\\\\ud800"', '"\\\n"', '"[[{"', '"\\"]"', '"\\q\\u0000"', '"\\uD83D\\uDE0"']
WORDS = ["true", "false", "null", "nul", "nulL", "Null", "truefalse", "n", "a_b", "x1"]
SIGNS = ["[", "]", "{", "}", ",", ":", " ", "\n", "\t", "\r\n", "\x0b", "#", "'", "\x7f", "\u00e9", "\ufeff",
         "\x00", "\U0001f600"]

for word in NUMBERS + STRINGS + WORDS + SIGNS + [""]:
    for shape in ("%s", "[%s]", "[%s", "[%s 1]", '{"a":%s}', "{%s:1}", " \n[1,\n\t%s ,2] ", "[1]%s", "[1] %s",
                  '["%s"]', "[%s,]", '{"a":1,%s}', "[1%s]"):
        json_text = shape % word
        say("text", ascii(json_text), attempt(json.from_string, json_text))

for json_text in (b"[1]", b'["\xc3\xa9"]', bytearray(b"[1]"), b"[1] x", None, 5, ["[", "]"]):
    say("type", text(json_text) if not isinstance(json_text, bytearray) else "bytearray",
        attempt(json.from_string, json_text))
for depth in (998, 999, 1000, 1001, 1002, 5000):
    for shape in ("[", '{"a":', '["]]]",'):
        for last in ("", "x", "1"):
            say("depth", depth, shape, last, attempt(json.from_string, shape * depth + last))
        value = json.from_string(shape * depth + "1" + ("}" if shape[0] == "{" else "]") * depth)
        say("deep value", depth, value if isinstance(value, str) else type(value).__name__)


def in_pieces(pieces, check_trailer):
    parser = json.Parser(check_trailer)
    steps = [(parser.feed(piece), bool(parser.is_done())) for piece in pieces]
    value = parser.finish()
    return steps, value, bool(parser.is_done())


def number():
    digits = "".join(rng.choice("0123456789") for _ in range(rng.choice([1, 2, 3, 17, 18, 19, 20, 25])))
    if rng.random() < 0.5:
        digits += "0" * rng.randrange(30)
    result = rng.choice(["", "-"]) + (digits.lstrip("0") or "0")
    if rng.random() < 0.5:
        result += "." + "".join(rng.choice("0000123456789") for _ in range(rng.randrange(1, 24)))
    if rng.random() < 0.5:
        result += rng.choice("eE") + rng.choice(["", "+", "-"]) + str(rng.randrange(40))
    return result


def some_text(depth):
    kind = rng.random()
    if depth > 3 or kind < 0.3:
        return rng.choice([number(), rng.choice(NUMBERS[:12]), rng.choice(STRINGS[:6]), rng.choice(WORDS[:3])])
    space = rng.choice(["", " ", "\n", "\n\t "])
    if kind < 0.65:
        return "[" + space + (space + "," + space).join(
            some_text(depth + 1) for _ in range(rng.randrange(5))) + space + "]"
    return "{" + space + (space + "," + space).join(
        '"%s"%s:%s' % (rng.choice("abcdef"), space, some_text(depth + 1))
        for _ in range(rng.randrange(5))) + space + "}"


for case in range(4000):
    say("number", attempt(json.from_string, "[%s]" % number()))

for case in range(6000):
    json_text = some_text(0)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
        i = rng.randrange(len(json_text) + 1)
        junk = rng.choice(rng.choice([NUMBERS, STRINGS, WORDS, SIGNS, SIGNS]))
        json_text = json_text[:i] + rng.choice(["", junk, junk]) + json_text[i + rng.randrange(3):]
    if rng.random() < 0.2:
        json_text = json_text[:rng.randrange(len(json_text) + 1)]
    say("random", ascii(json_text), attempt(json.from_string, json_text))
    cuts = sorted(rng.randrange(len(json_text) + 1) for _ in range(rng.randrange(5)))
    pieces = [json_text[a:b] for a, b in zip([0] + cuts, cuts + [len(json_text)])]
    for check_trailer in (False, True):
        say("pieces", attempt(in_pieces, pieces, check_trailer))
        say("pieces", attempt(in_pieces, pieces + [" ", json_text], check_trailer))

for value in [None, True, 1, 1.0, 1.5, -0.0, 1e16, 1e22, 2 ** 70, float("nan"), float("inf"), "\u00e9\U0001f600",
              '"\\/\b\f\n\r\t\x00\x7f\u2028', "\ud800", [], {}, [[]], {"a": {}}, (1, (2,)), {1, 2}, b"a",
              {"b": 1, "a": [1, {"d": None, "c": ""}]}, {1: 2}, {None: 1}, {1.5: 1}, {"a": 1, 1: 2}, {(1,): 1}]:
    for arguments in ((), (True,), (False, False), (True, False)):
        say("to string", attempt(json.to_string, value, *arguments))
        stream = io.StringIO()
        say("to stream", attempt(json.to_stream, value, stream, *arguments), ascii(stream.getvalue()))
say(attempt(json.to_string, {"b": 1, "a": 2}, pretty=True, sort_keys=False), json.SPACES_PER_LEVEL)


class Stream(object):
    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def read(self, size):
        say("read", size)
        return self.pieces.pop(0) if self.pieces else ""


for pieces in (["[1]"], ["[1", ",2]", " \n"], ["[1]", "x", "y"], ["[", "1 1", "]"], [], ["x", "[1]"], ["[1] x y", "z"]):
    say("from stream", attempt(json.from_stream, Stream(*pieces)))
say("no file", attempt(json.from_file, "/nonexistent/file"), attempt(json.to_file, [], "/nonexistent/file"))

parser = json.Parser()
say("fresh", parser.is_done(), parser.finish(), parser.is_done(), parser.feed("[1]"), parser.finish())
parser = json.Parser(check_trailer=True)
say("twice", parser.feed("[1]"), parser.finish(), attempt(parser.finish))
