"""The exception that every parser and checker of `ovs.db` raises.

It owns the rendering of an error into one line of text.  It must not depend on the other modules
of the package, because all of them import it.
"""

import json as _json

from .. import json as _ovs_json  # noqa: F401 - programs reach it through this module


def _to_text(value):
    """Returns compact JSON with sorted members, or `repr` for a value that JSON cannot express."""
    try:
        return _json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError):
        return repr(value)


class Error(Exception):
    """An OVSDB error: a tag, a message, and the JSON fragment at fault where there is one.

    Attributes:
        msg: The description, without tag and fragment.
        json: The fragment at fault, or None.
        tag: The kind of the error.  Without an explicit tag it is "syntax error" when there is a
            fragment and "ovsdb error" when there is none.
    """

    def __init__(self, msg, json=None, tag=None):
        self.msg = msg
        self.json = json
        if tag is not None:
            self.tag = tag
        elif json is None:
            self.tag = "ovsdb error"
        else:
            self.tag = "syntax error"

        text = "%s: %s" % (self.tag, msg)
        if json is not None:
            text = 'syntax "%s": %s' % (_to_text(json), text)
        Exception.__init__(self, text)

    def __reduce__(self):
        # The default would pass the rendered text as the message, so that unpickling an error
        # would render it twice.
        return Error._rebuild, (type(self), self.msg, self.json, self.tag), self.__dict__

    @staticmethod
    def _rebuild(class_, msg, json, tag):
        error = class_.__new__(class_)
        Error.__init__(error, msg, json, tag)
        return error
