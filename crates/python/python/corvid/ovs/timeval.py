"""The clock of the library.

It owns the choice of the clock: the monotonic one, which no change of the date moves.
"""

import time


def monotonic():
    """Returns the seconds since some fixed moment, as a float."""
    return time.monotonic()


def msec():
    """Returns the milliseconds since the same moment, as a float."""
    return monotonic() * 1000.0


def postfork():
    """Does nothing: the clock of a child process is that of its parent."""
