"""The form of log records: patterns with escapes, as the options of Open vSwitch describe them.

It owns the meaning of the escapes and the layout of their fields.  `ovs.vlog` calls it for every
record; it knows nothing of levels and destinations.
"""

import datetime
import os
import re
import socket
import threading

from . import _shown
from . import util

_ESCAPE = re.compile(r"%(?P<left>-?)(?P<zero>0?)(?P<width>[0-9]*)"
                     r"(?:(?P<date>[dD])(?:\{(?P<form>[^}]*)\})?|(?P<field>[ABcEmNnpPrtT%]))")
_FRACTION = re.compile("#+")
_DEFAULT_DATE = "%Y-%m-%dT%H:%M:%S"

# The severities of RFC 5424.
_SEVERITIES = {"EMER": 1, "ERR": 3, "WARN": 4, "INFO": 6, "DBG": 7}


class Record(object):
    """One message: its number in the process, module, level, text and time since the start."""

    def __init__(self, number, module, level, message, elapsed_ms, facility_code):
        self.number = number
        self.module = module
        self.level = level
        self.message = message
        self.elapsed_ms = elapsed_ms
        self.facility_code = facility_code
        self.time = datetime.datetime.now(datetime.timezone.utc)

    def text(self, pattern):
        """Returns the record in the form of `pattern`, without blanks at both ends."""
        return _ESCAPE.sub(self._replacement, pattern).strip()

    def _replacement(self, match):
        if match.group("date"):
            return _pad(self._date(match.group("date"), match.group("form")), match)
        field = match.group("field")
        if field == "%":
            return "%"
        if field == "n":
            return "\n"
        if field == "B":
            return str(8 * self.facility_code + _SEVERITIES[self.level])
        return _pad(self._field(field), match)

    def _field(self, field):
        if field == "A":
            return util.PROGRAM_NAME
        if field == "c":
            return self.module
        if field == "E":
            return socket.gethostname()
        if field == "m":
            return _shown.one_line(self.message.rstrip("\n"))
        if field == "N":
            return str(self.number)
        if field == "p":
            return self.level
        if field == "P":
            return str(os.getpid())
        if field == "r":
            return str(round(self.elapsed_ms, 3))
        name = _thread_name()
        if field == "t":
            return name or "main"
        return "(%s)" % name if name else ""

    def _date(self, kind, form):
        """Returns the time: of this place for "d" and of UTC for "D".

        Each `#` in the form stands for one digit of the fraction of the second.
        """
        time = self.time if kind == "D" else self.time.astimezone()
        if form is None:
            form = _DEFAULT_DATE
        fraction = "%06d" % time.microsecond

        def digits(run):
            return fraction[:len(run.group())].ljust(len(run.group()), "0")

        return time.strftime(_FRACTION.sub(digits, form))


def _thread_name():
    """Returns the name of this thread, or "" in the main thread."""
    thread = threading.current_thread()
    return "" if thread is threading.main_thread() else thread.name


def _pad(text, match):
    """Surrounds a field with blanks.

    A field has one blank at each side, or more to fill its width.  A width that begins with 0 is
    the width of the field with its blanks, even when no blank fits.  This layout is the one that
    readers of logs of Python daemons know.
    """
    width = int(match.group("width") or 0)
    if not text and not width:
        return ""
    if match.group("left"):
        return text.center(len(text) + 2)
    if match.group("zero"):
        return text.center(width)
    return text.center(max(width, len(text) + 2))
