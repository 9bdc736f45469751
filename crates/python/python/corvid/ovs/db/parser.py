"""Member-by-member parsing of JSON objects, with the error texts that OVSDB users know.

It owns the check that an object has the members it needs, of the right JSON types, and no others.
It knows nothing of schemas or values; `ovs.db.types` and `ovs.db.schema` build on it.
"""

import math
import re

from . import error

id_re = re.compile("[_a-zA-Z][_a-zA-Z0-9]*$")

# Every integral float below this magnitude stands for exactly one integer.
_EXACT_FLOAT_LIMIT = 2 ** 53


class Parser(object):
    """Takes the members of one JSON object one by one.

    `finish()` then complains about the members that nobody took.  `name` says in messages which
    construct is being parsed.
    """

    def __init__(self, json, name):
        self.name = name
        self.json = json
        self.used = set()
        if not isinstance(json, dict):
            self._fail("Object expected.")

    def get(self, name, types):
        """Returns the required member `name`, whose type must be one of `types`.

        The string "id" among `types` stands for a string that is an OVSDB identifier.  Without
        any `types`, every type is right.
        """
        if name not in self.json:
            self._fail("Required '%s' member is missing." % name)
        return self._take(name, types)

    def get_optional(self, name, types, default=None):
        """Like `get`, but returns `default` when the object has no such member."""
        if name not in self.json:
            return default
        return self._take(name, types)

    def finish(self):
        """Raises an error if the object has members that were never asked for."""
        unused = [name for name in self.json if name not in self.used]
        if not unused:
            return
        # The smallest name makes the message the same in every run.
        name = min(unused, key=str)
        others = len(unused) - 1
        if others == 0:
            text = "Member '%s' is present but not allowed here" % name
        else:
            text = ("Member '%s' and %d other member%s are present but not allowed here"
                    % (name, others, "" if others == 1 else "s"))
        self._fail(text)

    def _take(self, name, types):
        value = float_to_int(self.json[name])
        self.used.add(name)
        if types and not _has_type(value, types):
            self._fail("Type mismatch for member '%s'." % name)
        return value

    def _fail(self, message):
        raise error.Error("Parsing %s failed: %s" % (self.name, message), self.json)


def _has_type(value, types):
    for type_ in types:
        if type_ == "id":
            if is_identifier(value):
                return True
        elif isinstance(type_, type) and isinstance(value, type_):
            return True
    return False


def float_to_int(x):
    """Returns a float with an integral value as an int, and everything else unchanged.

    Floats of 2**53 and more stay floats, because they do not determine an integer exactly.
    Infinities and not-a-number stay as they are.
    """
    if isinstance(x, float) and math.isfinite(x):
        integer = int(x)
        if integer == x and -_EXACT_FLOAT_LIMIT <= integer < _EXACT_FLOAT_LIMIT:
            return integer
    return x


def is_identifier(s):
    """Returns a true value if `s` is a string that may name a table or a column."""
    return isinstance(s, str) and id_re.match(s)


def json_type_to_string(type_):
    """Returns the JSON name of a Python type, or "<invalid>"."""
    if type_ is None:
        return "null"
    for python_type, name in ((bool, "boolean"), (dict, "object"), (list, "array"),
                              ((int, float), "number"), (str, "string")):
        if issubclass(type_, python_type):
            return name
    return "<invalid>"


def unwrap_json(json, name, types, desc):
    """Returns X of a two-element array `[name, X]`, where X must have one of `types`.

    `desc` describes X in the error message.
    """
    if (not isinstance(json, (list, tuple)) or len(json) != 2 or json[0] != name
            or not isinstance(json[1], tuple(types))):
        raise error.Error('expected ["%s", <%s>]' % (name, desc), json)
    return json[1]


def parse_json_pair(json):
    """Returns `json`, which must be a list of two elements."""
    if not isinstance(json, list) or len(json) != 2:
        raise error.Error("expected 2-element array", json)
    return json
