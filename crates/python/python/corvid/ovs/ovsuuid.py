"""UUIDs as text, as JSON of the OVSDB protocol, and as C source."""

import re
import uuid

from .db import error
from .db import parser  # noqa: F401 - programs reach it through this module

# No newline may follow, which `$` would let pass and `uuid.UUID` refuses.
uuidRE = re.compile(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


def zero():
    """Returns the UUID of zeros."""
    return uuid.UUID(int=0)


def is_valid_string(s):
    """Returns whether `s` is the usual text of a UUID, with hyphens and without braces."""
    return uuidRE.match(s) is not None


def from_string(s):
    """Returns the UUID with the text `s`, or raises `ovs.db.error.Error`."""
    if not is_valid_string(s):
        raise error.Error("%s is not a valid UUID" % s)
    return uuid.UUID(s)


def from_json(json, symtab=None):
    """Returns the UUID that `["uuid", <text>]` stands for.

    `symtab` is a dict from names to UUIDs.  With one that is not empty, `["named-uuid", <name>]`
    is also accepted; it adds a new UUID to `symtab` for a new name.
    """
    pair = isinstance(json, (list, tuple)) and len(json) == 2 and isinstance(json[1], str)
    if pair and json[0] == "uuid":
        if not is_valid_string(json[1]):
            raise error.Error('"%s" is not a valid UUID' % json[1], json)
        return uuid.UUID(json[1])
    if pair and json[0] == "named-uuid" and symtab:
        name = json[1]
        if name not in symtab:
            symtab[name] = uuid.uuid4()
        return symtab[name]
    raise error.Error('expected ["uuid", <string>]', json)


def to_json(uuid_):
    """Returns the JSON of a UUID."""
    return ["uuid", str(uuid_)]


def to_c_initializer(uuid_, var):
    """Returns C source that initialises a `struct uuid`; the variable `var` is not named in it."""
    digits = uuid_.hex
    return "{ %s }," % ", ".join("0x" + digits[i:i + 8] for i in range(0, 32, 8))
