"""UUIDs as text, as JSON and as C source."""

# differs: debian: \\n: a UUID that a newline follows is not valid in ours
# differs: pypi: \\n: a UUID that a newline follows is not valid in ours

import os
import sys

# The folder of plays may hold files with the names of modules of Python.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)

import uuid

import ovs.ovsuuid as ovsuuid
from transcript import attempt, say, text

U = uuid.UUID("12345678-9abc-def0-0234-56789abcdef0")

TEXTS = [str(U), str(U).upper(), "", "x", str(U)[:-1], str(U) + "0", str(U) + "\n", " " + str(U),
         "{%s}" % U, U.hex, "urn:uuid:%s" % U, str(U).replace("-", "_"), str(U).replace("a", "g"),
         "\u0661" + str(U)[1:], None, 5, U]

say(text(ovsuuid.zero()))
for s in TEXTS:
    say("text", ascii(s), attempt(ovsuuid.is_valid_string, s), attempt(ovsuuid.from_string, s),
        attempt(lambda: bool(ovsuuid.uuidRE.match(s))))
for json in [["uuid", s] for s in TEXTS if isinstance(s, str)] + [
        ["named-uuid", "a"], ["named-uuid", 5], ["uuid", 5], ["uuid"], [], ["uuid", str(U), 1],
        ["set", []], {}, {"uuid": str(U)}, None, 5, "x", str(U), ("uuid", str(U)), [["uuid"], "x"]]:
    for symtab in (None, {}, {"a": U}):
        say("json", ascii(json), symtab is None or len(symtab), attempt(ovsuuid.from_json, json, symtab))
symtab = {"a": U}
new = ovsuuid.from_json(["named-uuid", "b c"], symtab)
say(isinstance(new, uuid.UUID), new != U, symtab == {"a": U, "b c": new},
    new == ovsuuid.from_json(["named-uuid", "b c"], symtab))
for u in (U, uuid.UUID(int=0), uuid.UUID(int=2 ** 128 - 1)):
    say(ovsuuid.to_json(u), ovsuuid.to_c_initializer(u, "variable"))
