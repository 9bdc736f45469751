"""Waiting: timers, readable and writable sockets, hang-ups, closed descriptors, signals, the clock."""

import os
import sys

sys.path.pop(0)  # This folder has the names of standard modules.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import signal
import socket
import time

import ovs.poller
import ovs.timeval
import ovs.vlog
from transcript import attempt, say


def log_at(level):
    def log(self, message, **kwargs):
        say("  log", level, message.split(" on fd")[0] if "timeout" not in message else "timeout")
    return log


for level in ("emer", "err", "warn", "info", "dbg"):
    setattr(ovs.vlog.Vlog, level, log_at(level))

say([getattr(ovs.poller, "POLL" + name) for name in ("IN", "OUT", "ERR", "HUP", "NVAL")])


def wait(name, *registrations):
    poller = ovs.poller.Poller()
    results = [attempt(register, poller) for register in registrations]
    begin = time.monotonic()
    result = attempt(poller.block)
    say(name, results, result, int((time.monotonic() - begin) * 10))


a, b = socket.socketpair()
for name, registrations in (
        ("timer", [lambda p: p.timer_wait(220)]), ("timer of 0", [lambda p: p.timer_wait(0)]),
        ("negative", [lambda p: p.timer_wait(-5), lambda p: p.timer_wait(220)]),
        ("earlier", [lambda p: p.timer_wait(220), lambda p: p.timer_wait(700)]),
        ("earlier", [lambda p: p.timer_wait(700), lambda p: p.timer_wait(220)]),
        ("until", [lambda p: p.timer_wait_until(ovs.timeval.msec() + 220)]),
        ("until before", [lambda p: p.timer_wait_until(ovs.timeval.msec() - 220)]),
        ("immediate", [lambda p: p.immediate_wake(), lambda p: p.timer_wait(220)]),
        ("silent", [lambda p: p.fd_wait(a, ovs.poller.POLLIN), lambda p: p.timer_wait(220)]),
        ("no events", [lambda p: p.fd_wait(a, 0), lambda p: p.timer_wait(220)]),
        ("writable", [lambda p: p.fd_wait(a, ovs.poller.POLLOUT), lambda p: p.timer_wait(220)]),
        ("number", [lambda p: p.fd_wait(a.fileno(), ovs.poller.POLLOUT), lambda p: p.timer_wait(220)]),
        ("both", [lambda p: p.fd_wait(a, ovs.poller.POLLOUT | ovs.poller.POLLIN), lambda p: p.timer_wait(220)])):
    wait(name, *registrations)
b.send(b"x")
wait("readable", lambda p: p.fd_wait(a, ovs.poller.POLLIN), lambda p: p.timer_wait(500))
wait("both", lambda p: p.fd_wait(a, ovs.poller.POLLIN), lambda p: p.fd_wait(a, ovs.poller.POLLOUT))
a.recv(1)
b.close()
wait("hung up", lambda p: p.fd_wait(a, ovs.poller.POLLIN), lambda p: p.timer_wait(500))
number = a.fileno()
a.close()
wait("closed number", lambda p: p.fd_wait(number, ovs.poller.POLLIN), lambda p: p.timer_wait(500))
for fd in (None, "x", 0.5, object()):
    say("not a descriptor", attempt(ovs.poller.Poller().fd_wait, fd, ovs.poller.POLLIN))
poller = ovs.poller.Poller()
poller.timer_wait(0)
poller.block()
poller.timer_wait(120)
begin = time.monotonic()
poller.block()
say("one block only", int((time.monotonic() - begin) * 10))
signal.signal(signal.SIGALRM, lambda *arguments: say("  signal"))
signal.setitimer(signal.ITIMER_REAL, 0.05)
wait("signal", lambda p: p.timer_wait(220))
say("clock", type(ovs.timeval.msec()).__name__, 0 <= ovs.timeval.msec() - time.monotonic() * 1000 + 5 < 20,
    attempt(ovs.timeval.postfork), abs(ovs.timeval.monotonic() - time.monotonic()) < 0.1)
