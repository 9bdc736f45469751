"""The lines that plays print.

A play runs unchanged on the original library and on ours, and the two outputs must be equal.  This
module turns values and errors of `ovs.db` into text that shows all that programs rely on and
nothing that may differ, such as addresses.
"""

import os
import random
import uuid

import ovs.db.data
import ovs.db.error
import ovs.db.types

SEED = int(os.environ.get("PLAY_SEED", "1"))


def generator(name):
    """Prints the seed and returns the random numbers of play `name`."""
    print("play %s, seed %d" % (name, SEED))
    return random.Random("%s %d" % (name, SEED))


def text(value):
    """Returns `value` as text."""
    if isinstance(value, ovs.db.data.Atom):
        return "<%s %s>" % (value.type, text(value.value))
    if isinstance(value, ovs.db.data.Datum):
        items = sorted(value.values.items(), key=lambda item: item[0].value)
        return "{%s}" % ", ".join(text(k) if v is None else "%s=%s" % (text(k), text(v))
                                  for k, v in items)
    if isinstance(value, ovs.db.types.BaseType):
        return "base(%s)" % ", ".join(text(x) for x in (
            value.type, value.enum, value.min, value.max, value.min_length, value.max_length,
            value.ref_table_name, value.ref_type, value.ref_table))
    if isinstance(value, ovs.db.types.Type):
        return "type(%s)" % ", ".join(text(x) for x in (value.key, value.value, value.n_min,
                                                        value.n_max))
    if isinstance(value, ovs.db.types.AtomicType):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "%s[%s]" % (type(value).__name__[0], ", ".join(text(x) for x in value))
    if isinstance(value, dict):
        return "d{%s}" % ", ".join("%s: %s" % (text(k), text(v)) for k, v in value.items())
    if value is None or isinstance(value, (bool, int, float, str, bytes, uuid.UUID)):
        return ascii(value)
    return "object of %s" % type(value).__name__


def attempt(function, *args, **kwargs):
    """Returns the text of the result of a call, or of its exception."""
    try:
        return text(function(*args, **kwargs))
    except ovs.db.error.Error as e:
        return "%s %s %s %s %s" % (type(e).__name__, ascii(e.tag), ascii(e.msg), ascii(e.json),
                                   ascii(str(e)))
    except Exception as e:
        # The messages of Python itself vary with its version.
        return "raises %s" % type(e).__name__


def say(*words):
    """Prints one line."""
    print(*words)
