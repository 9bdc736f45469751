"""Milliseconds of a clock that no change of the system's time moves."""

import time


def monotonic():
    """Seconds, a float."""
    return time.monotonic()


def msec():
    """Milliseconds, a float."""
    return monotonic() * 1000.0


def postfork():
    """Called in a child after fork(). The clock needs nothing then; programs call this function all the same."""
