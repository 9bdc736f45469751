"""JSON: which texts are accepted, the messages of the others, round trips, texts in pieces, and random texts."""

import io
import random
import sys

import ovs.json
from play import seed, show, say

ovs.json.PARSER = ovs.json.PARSER_PY
sys.setrecursionlimit(20000)

TEXTS = [
    "", " ", "{}", "[]", "1", '"a"', "true", "null", "[1", '{"a"', '{"a":1,', "[1,]", "{,}", '{"a" 1}', '{"a":1 "b"}',
    "{1:2}", "[1 2]", "[1]x", "[1] 2", "{}{}", "[", '{"a":', '"', '"abc', '"\\x"', '"\\u12"', '"\\uzzzz"', '"\\ud800"',
    '"\\ud800\\u0041"', '"\\udc00"', '["\\udc00"]', '"\\ud83d\\ude00"', '["\\ud83d\\ude00"]', '"\\u0000"', '"a\\u0000b"',
    '["\t"]', '["\n"]', '["\x01"]', "[tru]", "[TRUE]", "[nul", "[-]", "[01]", "[1.]", "[.5]", "[1e]", "[1e5]",
    "[1.5e-1]", "[1e400]", "[-0]", "[-0.0]", "[0e99999]", "[1e15]", "[1e16]", "[1e18]", "[1e19]", "[1+2]", "[+1]",
    "[9223372036854775807]", "[9223372036854775808]", "[-9223372036854775808]", "[-9223372036854775809]",
    "[123456789012345678901234567890]", "[1.0]", "[1.5]", "[1e-400]", "[0.0001e4]", "[9223372036854775807.0]",
    "[9007199254740993.0]", "[1-]", "[@]", "@", "[/]", '{"a":1,"a":2}', '{"a":1}}', "[[1]]]", "[1,2", '["a" "b"]',
    "[NaN]", "[Infinity]", "\ufeff[]", "[\u00a0]", '["\u00e9"]', '["\x7f"]', "[1]\x0b", '{"a":}', '{"a":1,}', '{"a":,}',
    "[,1]", "abc", "-", "-1", "- 1", "[1e+5]", "[1E5]", '["a\\/b"]', '["\\"]', '["a\nb"]', "[fals\u00e9]", ":", ",", "}",
    "[" * 1001, "[" * 1000 + "]" * 1000, '{"":1}', '["\\ud83d\\ude0"]', '["\\ud83dx"]', '["\\ud83d\\n"]', "['a']",
    "[1//2]", "[1]\x00", "[1e99999999999]", "[0x1]", "[1.2.3]", "[100e-2]", '["\u00e9" x', "[\n\n 1,\n\n  @",
    "[\r\n 1,\n\n  true false", "[1e22]", "[12345678901234567890e-10]", "[10e18]", '["' + "x" * 40000 + '",]',
]  # fmt: skip

for text in TEXTS:
    show("from_string %r" % (text if len(text) < 100 else text[:20] + "..."), ovs.json.from_string, text)
show("from_string bytes", ovs.json.from_string, b"[1]")

VALUES = [
    {}, [], {"b": 1, "a": [1, 2, {"c": None}], "d": {"x": 1.5}}, "\u00e9\x01\n\u2028\"\\/\x7f\U0001F600", 1.0, 1e100,
    1e15, 1e16, True, None, 10**30, (1, 2), {1: 2}, {"a": {}, "b": []}, [[], [1]], {"z": 1, "a": 2}, b"x", {1}, 0.1, -0.0,
]  # fmt: skip
for value in VALUES:
    for options in ({}, {"pretty": True}, {"sort_keys": False}):
        show("to_string %r %r" % (value, options), ovs.json.to_string, value, **options)
stream = io.StringIO()
ovs.json.to_stream({"a": [1]}, stream, pretty=True)
say("to_stream", repr(stream.getvalue()))
show("from_stream", ovs.json.from_stream, io.StringIO("[1,2]"))
show("from_stream error", ovs.json.from_stream, io.StringIO("[1,2] x"))
show("from_file missing", ovs.json.from_file, "/nonexistent/file")


def feed(pieces, trailer):
    parser = ovs.json.Parser(trailer)
    seen = []
    for piece in pieces:
        seen += [parser.feed(piece), parser.is_done()]
    return seen + [parser.finish()]


PIECES = [
    ['{"a"', ":1}"], ["{}{}"], ["{}  ", "[1]"], ["[1"], [""], ["[1]]"], ["[x", "y"], ["  [1] x"], ["12"], ['"\u00e9', '"'],
    ["[1,", "x"], ["  "], ['["a\\', '"b', '"]'], ['["a\\\\', '"]'], ["@"], ["[", "]", "]"], ['["\\u00', 'e9"]'],
]  # fmt: skip
for pieces in PIECES:
    for trailer in (False, True):
        show("feed %r trailer %s" % (pieces, trailer), feed, pieces, trailer)

generator = random.Random(seed())
BITS = list('{}[]:,"\\ \n-+.eE0123456789truefalsn') + ["true", "null", '"a"', '"b":', "\\u00e9", "\\ud83d", "\\ude00", "1.5", "\u00e9"]


def random_value(depth):
    kind = generator.randrange(8 if depth < 4 else 5)
    if kind == 0:
        return generator.choice([None, True, False])
    if kind == 1:
        return generator.randrange(-(10**generator.randrange(1, 22)), 10**20)
    if kind == 2:
        return generator.choice([0.5, 1e10, 1e300, 1.25e-7, 2.0**62, 2.0**63, -(2.0**63), 12345678.875])
    if kind < 5:
        return "".join(generator.choice('a"\\\n\u00e9\u2028\U0001F600[{') for _ in range(generator.randrange(8)))
    if kind < 7:
        return [random_value(depth + 1) for _ in range(generator.randrange(5))]
    return {"k%d" % i: random_value(depth + 1) for i in range(generator.randrange(5))}


for turn in range(400):
    text = ovs.json.to_string([random_value(0) for _ in range(4)], pretty=turn % 2 == 0)
    show("whole %d" % turn, ovs.json.from_string, text)
    characters = list(text)
    for _ in range(generator.randrange(1, 4)):
        place = generator.randrange(len(characters))
        action = generator.randrange(3)
        if action == 0:
            del characters[place]
        elif action == 1:
            characters.insert(place, generator.choice(BITS))
        else:
            characters[place] = generator.choice(BITS)
        if not characters:
            break
    broken = "".join(characters)
    show("broken %d" % turn, ovs.json.from_string, broken)
    cuts = sorted(generator.randrange(len(broken) + 1) for _ in range(3))
    parts = [broken[a:b] for a, b in zip([0] + cuts, cuts + [len(broken)])]
    show("pieces %d" % turn, feed, parts, False)
for turn in range(300):
    text = "[" + "".join(generator.choice(BITS) for _ in range(generator.randrange(1, 9)))
    show("junk %d %r" % (turn, text), ovs.json.from_string, text)
for turn in range(300):
    text = "".join(generator.choice("0123456789-+.eE") for _ in range(generator.randrange(1, 9)))
    show("number %r" % text, ovs.json.from_string, "[%s]" % text)
