"""Waiting for file descriptors and timers.

It owns the wait of programs that are written around `run()` and `wait()`: each part registers with
a `Poller` the events that it waits for, and `block()` sleeps until the first of them.  It uses
`select.select`, looked up at each call, because that is the function that eventlet and gevent
replace.  Linux's limit of 1024 descriptors for it does not hold where neither of them is active:
there `block()` asks `select.poll` instead.
"""

import errno
import select
import socket
import ssl
import sys

from . import timeval
from . import vlog as _vlog

vlog = _vlog.Vlog("poller")

POLLIN = 0x001
POLLOUT = 0x004
POLLERR = 0x008
POLLHUP = 0x010
POLLNVAL = 0x020

_NAMES = ((POLLIN, "[POLLIN]"), (POLLOUT, "[POLLOUT]"), (POLLERR, "[POLLERR]"),
          (POLLHUP, "[POLLHUP]"), (POLLNVAL, "[POLLNVAL]"))

# Descriptors from this number on do not fit into the sets of select(2).
_SELECT_MAX = 1024


class _SelectSelect(object):
    """The interface of `select.poll` on top of `select.select`.

    A descriptor that select(2) reports as exceptional has the event `POLLERR`.
    """

    def __init__(self):
        self.rlist = []
        self.wlist = []
        self.xlist = []

    def register(self, fd, events):
        """Waits for `events` on `fd`, a number or a socket, in the next `poll()`."""
        if isinstance(fd, socket.socket):
            fd = fd.fileno()
        assert isinstance(fd, int)
        if events & POLLIN:
            self.rlist.append(fd)
        if events & POLLOUT:
            self.wlist.append(fd)
        if events & (POLLERR | POLLHUP | POLLNVAL):
            self.xlist.append(fd)

    def poll(self, timeout):
        """Waits up to `timeout` milliseconds, or without limit if it is negative.

        Returns a list of pairs of a descriptor and its events.
        """
        if self._exceeds_select():
            return self._system_poll(timeout)
        seconds = None if timeout < 0 else timeout / 1000.0
        found = select.select(self.rlist, self.wlist, self.xlist, seconds)
        events = {}
        for fds, event in zip(found, (POLLIN, POLLOUT, POLLERR)):
            for fd in fds:
                events[fd] = events.get(fd, 0) | event
        return sorted(events.items())

    def _exceeds_select(self):
        fds = self.rlist + self.wlist + self.xlist
        return bool(fds) and max(fds) >= _SELECT_MAX and not _select_is_patched()

    def _system_poll(self, timeout):
        wanted = {}
        for fds, event in ((self.rlist, POLLIN), (self.wlist, POLLOUT), (self.xlist, POLLERR)):
            for fd in fds:
                wanted[fd] = wanted.get(fd, 0) | event
        poll = get_system_poll()
        for fd, events in wanted.items():
            poll.register(fd, events)
        return sorted(poll.poll(timeout if timeout >= 0 else None))


SelectPoll = _SelectSelect


def _select_is_patched():
    """Returns true if a library of green threads has replaced `select.select`."""
    return type(select.select) is not type(len) or _using_eventlet_green_select()


def _using_eventlet_green_select():
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and patcher.is_monkey_patched("select")


def get_system_poll():
    """Returns a `select.poll` object of the operating system."""
    return select.poll()


class Poller(object):
    """The events that the next `block()` waits for.

    Registrations last for one `block()`.
    """

    def __init__(self):
        self.__reset()

    def fd_wait(self, fd, events):
        """Makes the next `block()` return when `fd` has one of `events`, `POLLIN` or `POLLOUT`.

        `fd` is the number of a descriptor, a socket, or a pyOpenSSL-like object that has a
        `fileno()`.  It must stay open until `block()`.
        """
        if isinstance(fd, (socket.socket, ssl.SSLSocket)) or not isinstance(fd, int):
            assert hasattr(fd, "fileno")
            fd = fd.fileno()
        self.poll.register(fd, events)

    def timer_wait(self, msec):
        """Makes the next `block()` return after `msec` milliseconds at the latest.

        Of several timers the first one counts.  A time that is not positive means at once.
        """
        msec = max(msec, 0)
        if self.timeout < 0 or msec < self.timeout:
            self.timeout = msec

    def timer_wait_until(self, msec):
        """Makes the next `block()` return when the clock of `timeval.msec()` shows `msec`."""
        self.timer_wait(msec - timeval.msec())

    def immediate_wake(self):
        """Makes the next `block()` return at once."""
        self.timeout = 0

    def block(self):
        """Waits for the first of the registered events, and forgets all of them."""
        timeout = self.timeout
        try:
            events = self.poll.poll(timeout)
            self.__log_wakeup(events, timeout)
        except OSError as e:
            # A signal is a reason to look at the program's state again.
            if e.errno != errno.EINTR:
                vlog.err("poll: %s" % e.strerror)
        finally:
            self.__reset()

    def __log_wakeup(self, events, timeout):
        if not events:
            vlog.dbg("%d-ms timeout" % timeout)
            return
        for fd, event in events:
            if event:
                names = "".join(name for bit, name in _NAMES if event & bit)
                vlog.dbg("%s on fd %d" % (names, fd))

    def __reset(self):
        self.poll = SelectPoll()
        self.timeout = -1
