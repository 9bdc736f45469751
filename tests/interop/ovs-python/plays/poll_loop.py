"""The poller: registrations for one turn, timers, events of sockets, a signal during a wait."""

import signal
import socket
import time

import ovs.poller
import ovs.timeval
from play import print_logs, say, show

print_logs("poller")
poller = ovs.poller.Poller()
say("constants", [getattr(ovs.poller, name) for name in ("POLLIN", "POLLOUT", "POLLERR", "POLLHUP", "POLLNVAL")])


def block(label):
    begin = time.monotonic()
    show(label, poller.block)
    say("  tenths of a second", round((time.monotonic() - begin) * 10))


poller.immediate_wake()
block("immediate_wake")
poller.timer_wait(300)
poller.timer_wait(100)
block("the shorter of two timers")
poller.timer_wait(100)
poller.timer_wait(300)
block("the shorter of two timers")
poller.timer_wait(-5)
block("a negative timer")
poller.timer_wait_until(ovs.timeval.msec() - 5)
block("a timer of the past")
poller.timer_wait_until(ovs.timeval.msec() + 200)
block("a timer of the future")
a, b = socket.socketpair()
poller.fd_wait(a, ovs.poller.POLLIN)
poller.timer_wait(200)
block("nothing to read")
b.send(b"x")
poller.fd_wait(a, ovs.poller.POLLIN)
poller.timer_wait(5000)
block("something to read")
poller.timer_wait(200)
block("the registration is gone")
poller.fd_wait(a.fileno(), ovs.poller.POLLOUT)
poller.timer_wait(5000)
block("room to write")
poller.fd_wait(b, ovs.poller.POLLIN)
poller.fd_wait(b, ovs.poller.POLLOUT)
poller.timer_wait(5000)
block("the same socket twice")
b.close()
poller.fd_wait(a, ovs.poller.POLLIN)
poller.timer_wait(5000)
block("closed by the peer")
show("None", poller.fd_wait, None, 1)
for cls in (ovs.poller.SelectPoll,):
    poll = cls()
    poll.register(a.fileno(), ovs.poller.POLLIN | ovs.poller.POLLOUT)
    say("SelectPoll", [(fd == a.fileno(), events) for fd, events in poll.poll(100)])
    say("SelectPoll without anything", cls().poll(10))
signal.signal(signal.SIGUSR1, lambda *_: say("  signal"))
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGUSR1))
signal.setitimer(signal.ITIMER_REAL, 0.1)
poller = ovs.poller.Poller()
poller.timer_wait(300)
block("a signal meanwhile")
