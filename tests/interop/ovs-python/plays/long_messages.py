"""JSON messages far longer than one read, cut anywhere: inside strings, escapes and numbers."""

import hashlib
import random

import ovs.json
from play import say, seed

ovs.json.PARSER = ovs.json.PARSER_PY
generator = random.Random(seed())
for turn in range(12):
    value = {
        "rows": [
            {"name": 'port "%d" \\ [{' % i, "tag": i, "text": "\u00e9\U0001F600\\" * (i % 5), "real": i / 8}
            for i in range(900)
        ]
    }
    text = ovs.json.to_string(value, pretty=turn % 3 == 0) + '{"next":1}'
    parser = ovs.json.Parser()
    at = fed = 0
    while not parser.is_done():
        step = generator.choice([1, 2, 3, 500, 4096, 30000])
        piece = text[at : at + step]
        used = parser.feed(piece)
        fed += used
        at += len(piece)
    result = parser.finish()
    say("turn %d" % turn, (fed == len(text) - len('{"next":1}'), result == value))
    say("digest", hashlib.sha256(ovs.json.to_string(result).encode()).hexdigest())
