"""Text for people: control characters become the escapes of JSON.

Names, values and errors come from peers and databases.  Raw, a newline in one of them would forge
a line, and an escape sequence would drive the terminal of its reader.  `corvid_json::shown` of the
server does the same.
"""

import re

# C0, DEL, C1, the separators of lines and paragraphs, and the controls of writing direction.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\f": r"\f"}


def one_line(text):
    """Returns `text` as a person reads it: on one line, without control characters."""
    return _CONTROL.sub(lambda match: _SHORT_ESCAPES.get(match.group())
                        or "\\u%04x" % ord(match.group()), text)
