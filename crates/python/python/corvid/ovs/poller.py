"""Waiting for several things at once. Every registration lasts until the next `Poller.block`."""

import errno
import math
import os
import select
import ssl

from . import timeval, vlog

try:
    from eventlet import patcher as eventlet_patcher
except ImportError:
    eventlet_patcher = None

try:
    from gevent import monkey as gevent_monkey
except ImportError:
    gevent_monkey = None

vlog = vlog.Vlog("poller")

POLLIN = 0x001
POLLOUT = 0x004
POLLERR = 0x008
POLLHUP = 0x010
POLLNVAL = 0x020

_NAMES = ((POLLIN, "POLLIN"), (POLLOUT, "POLLOUT"), (POLLERR, "POLLERR"), (POLLHUP, "POLLHUP"), (POLLNVAL, "POLLNVAL"))


def _using_eventlet_green_select():
    return eventlet_patcher is not None and eventlet_patcher.is_monkey_patched("select")


def _using_gevent_select():
    return gevent_monkey is not None and gevent_monkey.is_module_patched("select")


class _SelectSelect(object):
    """poll() by means of select(), which the libraries of green threads replace."""

    def __init__(self):
        self.rlist = []
        self.wlist = []
        self.xlist = []

    def register(self, fd, events):
        if events & POLLIN:
            self.rlist.append(fd)
        if events & POLLOUT:
            self.wlist.append(fd)
        if events & POLLERR:
            self.xlist.append(fd)

    def poll(self, timeout):
        """Pairs of descriptor and events. `timeout` is in milliseconds; a negative one or None is for ever."""
        seconds = None if timeout is None or timeout < 0 else timeout / 1000.0
        ready = {}
        for event, fds in zip((POLLIN, POLLOUT, POLLERR), select.select(self.rlist, self.wlist, self.xlist, seconds)):
            for fd in fds:
                ready[fd] = ready.get(fd, 0) | event
        return list(ready.items())


SelectPoll = _SelectSelect


def get_system_poll():
    """The poll object of this program: of the system, or of the library whose green threads it uses."""
    if _using_eventlet_green_select() or _using_gevent_select() or not hasattr(select, "poll"):
        return SelectPoll()
    return select.poll()


class Poller(object):
    """Collects what to wait for. The same object serves for every turn of a main loop."""

    def __init__(self):
        self.__reset()

    def __reset(self):
        self.poll = get_system_poll()
        self.timeout = -1
        self._events = {}

    def fd_wait(self, fd, events):
        """Wakes when `fd`, a number or an object with a number, is ready for one of `events`."""
        assert isinstance(fd, int) or hasattr(fd, "fileno")
        if isinstance(fd, ssl.SSLSocket) and events & POLLIN and _has_pending(fd):
            # The bytes are in the TLS library, where the system does not see them.
            self.immediate_wake()
        number = fd if isinstance(fd, int) else fd.fileno()
        # select.poll() keeps only the last registration of a descriptor.
        self._events[number] = self._events.get(number, 0) | events

    def timer_wait(self, msec):
        """Wakes after `msec` milliseconds at the latest; at once if that is not positive."""
        # A poll that ended a fraction too early would only run again.
        self.__timer_wait(max(0, math.ceil(msec)))

    def timer_wait_until(self, msec):
        """Wakes when `timeval.msec()` reaches `msec` at the latest."""
        self.timer_wait(msec - timeval.msec())

    def immediate_wake(self):
        self.__timer_wait(0)

    def __timer_wait(self, msec):
        if self.timeout < 0 or msec < self.timeout:
            self.timeout = msec

    def block(self):
        """Waits, and forgets every registration."""
        try:
            for fd, events in self._events.items():
                self.poll.register(fd, events)
            self.__log_wakeup(self.poll.poll(self.timeout))
        except OSError as error:
            if error.errno != errno.EINTR:
                vlog.err("poll: %s" % os.strerror(error.errno))
        finally:
            self.__reset()

    def __log_wakeup(self, events):
        if not events:
            vlog.dbg("%d-ms timeout" % self.timeout)
            return
        for fd, revents in events:
            names = "|".join(name for bit, name in _NAMES if revents & bit)
            vlog.dbg("[%s] on fd %d" % (names, fd))


def _has_pending(sock):
    try:
        return sock.pending() > 0
    except (OSError, ValueError):
        # The handshake is not over, or the socket is closed.
        return False
