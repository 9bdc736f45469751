"""Finds where a JSON object or array that arrives in pieces ends, without parsing it."""

import re

_STRING_REST = r'[^"\\]*(?:\\.[^"\\]*)*'
# A bracket, or a whole string, or the start of a string that the piece does not end.
_MARK = re.compile(r'[\[\]{}]|"' + _STRING_REST + r'(?P<closing>"?)', re.DOTALL)
_REST = re.compile(_STRING_REST + r'(?P<closing>"?)', re.DOTALL)


class EndFinder:
    """Counts the open brackets. Brackets inside strings do not count, so the state of a string is kept, too."""

    def __init__(self):
        self._depth = 0
        self._in_string = False
        self._after_backslash = False

    def find(self, s):
        """The index behind the bracket that closes the value, or None if the value goes on after `s`."""
        position = 0
        if self._in_string:
            position = 1 if self._after_backslash else 0
            rest = _REST.match(s, position)
            if not self._string_ends(s, rest):
                return None
            position = rest.end()
        for mark in _MARK.finditer(s, position):
            c = s[mark.start()]
            if c == '"':
                if not self._string_ends(s, mark):
                    return None
            elif c in "[{":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return mark.end()
        return None

    def _string_ends(self, s, mark):
        """Whether `mark` reaches the closing quote. If not, the piece ends inside the string, perhaps in an escape."""
        self._in_string = not mark.group("closing")
        # Only a backslash at the very end of the piece stops the expression before the end.
        self._after_backslash = self._in_string and mark.end() < len(s)
        return not self._in_string
