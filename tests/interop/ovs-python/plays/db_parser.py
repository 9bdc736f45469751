"""Errors and the object parser: texts, tags, types of members, members in excess."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import ovs.db.error as error
import ovs.db.parser as parser
from transcript import attempt, generator, say, text

rng = generator("db_parser")

VALUES = [None, True, False, 0, 1, -7, 1.0, 2.5, -3.0, 2.0 ** 53, 2.0 ** 53 - 1, -2.0 ** 53,
          2.0 ** 60, 2 ** 70, "", "id", "_x1", "1x", "a-b", "\u00e9", 'a"b\\c', [], [1, 2], ["a"],
          {}, {"b": 1, "a": [None, 1.5]}]
TYPES = [[int], [float], [int, float], [bool], [str], [dict], [list], [list, tuple], ["id"],
         [dict, str], [int, str], []]

for value in VALUES:
    for tag in (None, "", "constraint violation"):
        e = error.Error("some text", value, tag)
        say("error", text(value), text(tag), text(e.msg), text(e.json), text(e.tag), ascii(str(e)),
            text(e.args), isinstance(e, Exception))
    say("convert", text(value), attempt(parser.float_to_int, value),
        bool(parser.is_identifier(value)))
    for name in ("set", "map"):
        for types in ([list], [list, tuple], [str], [int]):
            say("unwrap", text(value), name, attempt(parser.unwrap_json, [name, value], "set",
                                                     types, "thing"),
                attempt(parser.unwrap_json, value, "set", types, "thing"))
    say("pair", attempt(parser.parse_json_pair, value), attempt(parser.parse_json_pair, [value]),
        attempt(parser.parse_json_pair, [value, 1]), attempt(parser.parse_json_pair, (value, 1)))

for type_ in (None, bool, int, float, str, list, dict, tuple, bytes, object):
    say("name", attempt(parser.json_type_to_string, type_))


def parse(json, wanted):
    p = parser.Parser(json, "construct")
    got = []
    for name, types, optional in wanted:
        if optional:
            got.append(p.get_optional(name, types, "absent"))
        else:
            got.append(p.get(name, types))
    p.finish()
    return got


for case in range(4000):
    names = rng.sample("abcde", rng.randrange(6))
    json = {name: rng.choice(VALUES) for name in names}
    if rng.random() < 0.05:
        json = rng.choice(VALUES)
    wanted = [(name, rng.choice(TYPES), rng.random() < 0.5)
              for name in sorted(set("abcde") if rng.random() < 0.7 else rng.sample("abcde", 3))]
    result = attempt(parse, json, wanted)
    if "other member" in result:
        # The member that the message names is any of those in excess.
        result = "members in excess, " + re.search(r"and \d+ other members? are", result).group()
    say("parse", ascii(json), result)

for json, name in ((5, "x"), ({}, "y")):
    say("attributes", attempt(lambda: (parser.Parser(json, name).name,
                                       parser.Parser(json, name).json,
                                       sorted(parser.Parser(json, name).used))))
